"""The content of a report: weights, training rows, choices, attributes, and its forms."""

import json
import re
from importlib import resources

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from caltree import (
    CalibratedClassifier,
    CalibrationTree,
    PlattScaling,
    PublishedCalibrationTree,
    audit,
)
from caltree._fitted.names import format_count, percent
from caltree.report import report
from caltree.report.wording_data import candidate, facts

from ..support.report_scenes import SCENES, make_table, trained
from ..support.trees import fixed_boosted_tree, fixed_tree, make_rows

SCHEMA = json.loads(
    (resources.files("caltree") / "schema" / "report.schema.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("scene", SCENES)
def test_json_is_the_content_and_fits_its_schema(made, scene):
    plain = json.loads(made(scene).to_json())
    assert plain == made(scene).data
    jsonschema.validate(plain, SCHEMA)


@pytest.mark.parametrize("scene", ["loans", "many_classes", "few_rows"])
def test_the_page_of_the_same_evidence_is_the_same(made, scene):
    assert made(scene).to_html() == made(scene).to_html()


def test_in_a_shell_it_is_one_line_and_printed_it_is_its_verdict(made):
    report = made("loans")
    heading, verdict, *sentences = str(report).splitlines()
    assert repr(report) == f"<Report on {heading.split(', ')[-1]}: {verdict}>"
    assert verdict.startswith("Better probabilities") and verdict in report.to_html()
    change = {each["name"]: each for each in report.data["measures"]}["log_loss"]
    ends = [f"{change[end]:+.4f}".replace("-", "−") for end in ("change", "low", "high")]
    assert sentences[0].startswith("Log loss falls from ")
    sure = f"(95\N{NO-BREAK SPACE}% interval: {ends[1]} to {ends[2]})"
    assert sentences[0].endswith(f"; change {ends[0]} {sure}.")
    assert re.match(r"Of this change, −0\.\d+ is in calibration and \S+ in ref", sentences[1])


def test_the_share_of_a_region_is_that_of_its_half(made):
    report = made("loans")
    assert report.to_html().count(" of its half)") == len(report.data["regions"]) > 0


def test_in_a_notebook_it_is_a_table(made):
    shown = made("loans")._repr_html_()
    assert shown.startswith('<div class="caltree-audit">')
    assert "Better probabilities" in shown and "contract = student" in shown
    assert "<script" not in shown and "<script" not in made("hostile")._repr_html_()
    assert "&lt;script&gt;" in made("hostile")._repr_html_()


def test_the_tests_of_the_whole_are_those_of_audits():
    frame, y, scores = make_table(600)
    tree = CalibrationTree().fit(frame[:300], y[:300], scores[:300])
    new, labels, said = frame[300:], y[300:], scores[300:]
    found = report(tree, new, labels, said).data["whole"]
    for when, probabilities in (("before", said), ("after", tree.predict_proba(new, said))):
        assert found[when]["p_value"] == audit(new, labels, probabilities).p_value


# Weights


def test_rows_without_weight_do_not_count(monkeypatch):
    tree, frame, y, scores = trained()
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    keep = weights > 0
    spoiled = np.where(keep, scores, np.nan)
    labels = np.where(keep, y, "unheard of")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    some = report(tree, frame, labels, spoiled, sample_weight=weights).data
    assert some == report(tree, frame[keep], y[keep], scores[keep]).data


def test_rows_of_training_without_weight_raise_no_alarm():
    tree = trained()[0]
    seen, fresh = make_table(3000), make_table(2000, seed=1)
    both = [np.concatenate([one, other]) for one, other in zip(seen, fresh, strict=True)]
    frame = type(seen[0])(both[0], columns=seen[0].columns).infer_objects()
    weights = np.repeat([0.0, 1.0], [3000, 2000])
    with_weights = report(tree, frame, *both[1:], sample_weight=weights).data
    assert with_weights["data"]["training_rows"]["status"] == "not seen"
    assert report(tree, frame, *both[1:]).data["data"]["training_rows"]["status"] == "seen"


# Rows of training


def test_one_column_of_scores_is_known_again_as_two():
    frame, y, scores = make_table(500)
    both = np.column_stack([1 - scores, scores])
    for given, asked in ((scores, both), (both, scores)):
        platt = PlattScaling().fit(None, y, given)
        assert report(platt, frame, y, asked).data["data"]["training_rows"]["status"] == "seen"


def test_a_share_of_training_rows_is_estimated():
    tree = CalibrationTree().fit(*make_table(3000))
    seen, fresh = make_table(3000), make_table(3000, seed=1)
    rows = [
        type(one)(np.concatenate([one[:900], other[:2100]]), columns=one.columns).infer_objects()
        if hasattr(one, "columns")
        else np.concatenate([one[:900], other[:2100]])
        for one, other in zip(seen, fresh, strict=True)
    ]
    found = report(tree, *rows).data["data"]["training_rows"]
    assert found["status"] == "seen" and found["share"] == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_model_knows_its_training_rows_although_their_scores_differ(kind):
    X, y, _ = make_rows(600)
    X = X if kind == "array" else pd.DataFrame(X, columns=list("abc"))
    model = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(X[:300], y[:300])
    assert report(model, X[:300], y[:300]).data["data"]["training_rows"]["status"] == "seen"
    assert report(model, X[300:], y[300:]).data["data"]["training_rows"]["status"] == "not seen"


# Choices and attributes


def test_what_was_chosen_is_told(made):
    choice, selection = made("loans").data["choice"], trained()[0].selection_
    assert choice["selection"] == {**selection.to_dict(), "chosen": selection.chosen}
    [name] = [each.name for each in selection.candidates if each.weight > 0]
    assert (
        "and chose a model for each region. "
        f"All weight is on the tree cut back to at most {name}." in made("loans").to_html()
    )
    assert "and chose the uncalibrated scores" in made("one_leaf").to_html()
    assert "and chose a model for each region" in made("forest").to_html()
    assert "and chose boosted trees" in made("boosting").to_html()
    assert "and chose a forest and boosted trees, blended" in made("ensemble").to_html()
    assert "it looks at the scores alone" in made("scaling").to_html()
    assert "without comparing it" in made("many_leaves").to_html()


def test_attributes_come_by_importance(made):
    found = made("loans").data["importances"]
    shares = {each["name"]: each["share"] for each in found["shares"]}
    tree = trained()[0]
    expected = dict(zip(tree.feature_names_in_, tree.feature_importances_.tolist(), strict=True))
    assert shares == expected and next(iter(shares)) == "contract"
    assert found["reason"] is None


def test_why_attributes_contribute_nothing(made):
    frame, y, scores = make_table(800)
    unmeasured = fixed_boosted_tree(boosting_iterations=2).fit(frame, y, scores)
    stored = fixed_tree(max_depth=1).fit(frame, y, scores).to_dict()
    stored["model"]["gain"][0] = -1.0
    rows = make_table(400, seed=1)
    reasons = {
        "No rows were held out": report(unmeasured, *rows).data["importances"],
        "the splits gained nothing": report(CalibrationTree.from_dict(stored), *rows).data[
            "importances"
        ],
        "left uncalibrated": made("one_leaf").data["importances"],
        "scores alone": made("scaling").data["importances"],
        "same model everywhere": report(fixed_tree(max_depth=0).fit(frame, y, scores), *rows).data[
            "importances"
        ],
    }
    for words, found in reasons.items():
        assert words in found["reason"] and found["shares"] == []


def test_importances_of_a_published_tree_are_measured_on_held_out_rows():
    frame, y, scores = make_table(800)
    tree = PublishedCalibrationTree(boosting_iterations=2).fit(frame, y, scores)
    assert tree.get_n_leaves() > 1
    found = report(tree, *make_table(400, seed=1)).data["importances"]
    assert found["reason"] is None and found["shares"][0]["name"] == "contract"


def margins_report():
    X, y, scores = make_rows(600)
    margins = np.log(scores[:, 1] / scores[:, 0])
    tree = CalibrationTree(score_type="margin").fit(X[:300], y[:300], margins[:300])
    return report(tree, X[300:], y[300:], margins[300:])


def test_margins_are_said_to_be_no_probabilities():
    assert "not probabilities" in margins_report().to_html()


# The names of candidates


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("uncalibrated", "the uncalibrated scores"),
        ("global", "one model for all rows"),
        ("2 regions", "the tree cut back to at most 2 regions"),
        ("regions of 60 rows", "trees with regions of 60 rows"),
        (
            "regions of 60 rows, splits on scores too",
            "trees with regions of 60 rows, splits on scores too",
        ),
    ],
)
def test_candidates_have_names_that_fit_a_sentence(name, words):
    assert candidate(name) == words


def test_the_shares_of_an_average_are_listed():
    tree, *rows = trained()
    stored = tree.to_dict()
    for each in stored["selection"]["candidates"]:
        each["weight"] = {"global": 0.25, "2 regions": 0.75}.get(each["name"], 0.0)
    page = report(CalibrationTree.from_dict(stored), *rows).to_html()
    assert "The probabilities are an average:" in page and "All weight is on" not in page
    assert "the tree cut back to at most 2 regions" in page


# The data


def test_the_data_are_described(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    frame, y, scores = make_table(500, seed=1)
    CalibrationTree().fit(*make_table(1000)).save(tmp_path / "tree.json")
    tree = CalibrationTree.load(tmp_path / "tree.json")
    new = frame.assign(contract=frame["contract"].where(np.arange(500) > 19, "intern"))
    with pytest.warns(UserWarning, match="a new category"):
        data = report(tree, new, y, scores).data
    texts = {name: " ".join(said) for name, said in facts(data)}
    assert texts["Rows"] == "500\xa0rows"
    assert texts["Labels"] == f"no: {(y == 'no').sum()}, yes: {(y == 'yes').sum()}"
    assert texts["Scores"].startswith(
        "Taken as probabilities of yes. No class is ranked backwards: AUC"
    )
    assert "fitted to 1,000\xa0rows with caltree" in texts["Calibrator"]
    assert "stored 2023-11-14T22:13:20Z" in texts["Calibrator"]
    assert texts["Training rows"].startswith("None of ")
    missing = frame["income"].isna().mean()
    assert texts["Missing values"] == f"income {percent(missing)}."
    assert texts["New categories"] == "contract: 20\xa0rows, such as intern"
    assert "2023-11-14T22:13:20Z" in texts["This report"]
    assert "The data" in report(tree, frame, y, scores).to_html()


# Words of numbers


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0 %"),
        (0.0004, "under 0.1 %"),
        (-0.0004, "0.0 %"),
        (0.012, "1.2 %"),
        (0.0996, "10 %"),
        (0.31, "31 %"),
        (0.995, "99.5 %"),
        (0.99999, "over 99.9 %"),
        (1.0, "100 %"),
        (-0.42, "−42 %"),
    ],
)
def test_percent(share, words):
    assert percent(share).replace("\xa0", " ") == words


def test_counts():
    assert (format_count(1234.0), format_count(2.5)) == ("1,234", "2.5")
