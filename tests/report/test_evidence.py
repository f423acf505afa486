"""The numbers of a report, held against other ways to come by them."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from caltree import (
    CalibratedClassifier,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
)
from caltree._fitted.names import format_count
from caltree._fitted.outline import Outline
from caltree.metrics import log_loss, rmse
from caltree.report import report
from caltree.report.evidence import _verdict
from caltree.report.intervals import axis_end, paired_gain
from caltree.report.wording import candidate, percent

from ..support.report_scenes import SCENES, make_table, trained
from ..support.trees import fixed_boosted_tree, fixed_tree, make_rows


@pytest.mark.parametrize("scene", SCENES)
def test_evidence_is_plain(made, scene):
    data = made(scene).data
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@pytest.mark.parametrize("scene", SCENES)
def test_the_page_of_the_same_evidence_is_the_same(made, scene):
    assert made(scene).to_html() == made(scene).to_html()


# The headline


def test_losses_are_those_of_the_metrics():
    tree, frame, y, scores = trained()
    after = tree.predict_proba(frame, scores)
    data = report(tree, frame, y, scores).data
    for name, metric in (("rmse", rmse), ("log_loss", log_loss)):
        gain = data["gains"][name]
        assert gain["before"] == pytest.approx(metric(y, scores))
        assert gain["after"] == pytest.approx(metric(y, after))
        assert gain["gain"] == pytest.approx(gain["before"] - gain["after"])
        assert gain["low"] < gain["gain"] < gain["high"]
    by_name = {row["name"]: row for row in data["metrics"]}
    assert by_name["RMSE"]["before"] == pytest.approx(data["gains"]["rmse"]["before"])
    assert by_name["Log loss"]["after"] == pytest.approx(data["gains"]["log_loss"]["after"])
    assert data["verdict"] == "helped"


def test_the_interval_of_a_gain_is_that_of_a_paired_test():
    rng = np.random.default_rng(0)
    before, after = rng.random(40), rng.random(40)
    interval = stats.ttest_rel(before, after).confidence_interval(0.95)
    found = paired_gain(before, after, np.ones(40))
    assert (found["low"], found["high"]) == pytest.approx((interval.low, interval.high))


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(0)
    before, after, weights = rng.random(500), rng.random(500), rng.integers(1, 3, 500)
    once = paired_gain(before, after, weights.astype(float))
    twice = paired_gain(
        np.repeat(before, weights), np.repeat(after, weights), np.ones(weights.sum())
    )
    assert once["gain"] == pytest.approx(twice["gain"])
    assert once["low"] == pytest.approx(twice["low"], rel=0.01)


def test_one_row_has_no_interval():
    assert paired_gain(np.array([0.5]), np.array([0.2]), np.ones(1))["low"] is None


@pytest.mark.parametrize(
    ("squared", "logarithmic", "verdict"),
    [
        ((0.1, 0.2), (-0.1, 0.2), "helped"),
        ((-0.2, -0.1), (-0.1, 0.2), "harmed"),
        ((0.1, 0.2), (-0.2, -0.1), "mixed"),
        ((-0.1, 0.2), (-0.1, 0.2), "unclear"),
        ((None, None), (None, None), "unclear"),
        ((0.0, 0.0), (0.0, 0.0), "unchanged"),
    ],
)
def test_the_verdict_needs_an_interval_on_one_side(squared, logarithmic, verdict):
    both = {"squared_error": squared, "log_loss": logarithmic}
    gains = {name: {"low": low, "high": high} for name, (low, high) in both.items()}
    assert _verdict(gains) == verdict


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
def test_harm_is_called_harm():
    _, frame, labels, scores = trained()
    contrary = np.where(labels == "yes", "no", "yes")
    tree = CalibrationTree(do_no_harm=False).fit(frame, contrary, scores)
    made = report(tree, *make_table(1000, seed=5))
    assert made.data["verdict"] == "harmed"
    assert "Calibration did harm." in made.to_html()


# Frequencies


def test_a_region_of_three_rows_does_not_pretend():
    tree, frame, y, scores = trained()
    leaf = tree.apply(frame)
    smallest = np.bincount(leaf)[np.unique(leaf)].min()
    data = report(tree, frame, y, scores).data
    assert min(region["rows"] for region in data["regions"] if region["rows"]) == smallest
    for region in data["regions"]:
        assert region["few"] == (region["rows"] < 30)
        assert region["low"] <= region["observed"] <= region["high"]
        assert region["off"] == (not region["low"] <= region["says"] <= region["high"])
        assert not region["few"] or region["high"] - region["low"] > 0.1


# Regions


def test_regions_are_the_leaves_with_their_own_rows():
    tree, frame, y, scores = trained()
    leaf, after = tree.apply(frame), tree.predict_proba(frame, scores)[:, 1]
    data = report(tree, frame, y, scores).data
    assert data["kind"] == "leaves" and data["note"] is None
    assert len(data["regions"]) == tree.get_n_leaves()
    for region in data["regions"]:
        rows = leaf == int(region["id"].removeprefix("node-"))
        assert region["rows"] == rows.sum()
        if rows.any():
            assert region["says"] == pytest.approx(scores[rows].mean())
            assert region["observed"] == pytest.approx((y[rows] == "yes").mean())
            assert region["calibrated"] == pytest.approx(after[rows].mean())
            assert sum(each["rows"] for each in region["before"]) == rows.sum()
    assert data["regions"][0]["words"] == "contract = student"


def test_regions_that_may_be_chance_do_not_lead(made):
    regions = made("many_leaves").data["regions"]
    groups = [(region["few"], not region["off"]) for region in regions]
    assert groups == sorted(groups) and len(set(groups)) == 4
    for group in set(groups):
        harm = [each["harm"] for each, its in zip(regions, groups, strict=True) if its == group]
        assert harm == sorted(harm, reverse=True)
    # By harm alone, others would come before them.
    assert [region["harm"] for region in regions] != sorted(
        (region["harm"] for region in regions), reverse=True
    )


def test_nodes_say_what_their_models_do():
    tree, frame, y, scores = trained()
    data = report(tree, frame, y, scores).data
    text = tree.to_text().splitlines()
    assert data["legend"] == ["p: probability of yes, s: its score"] and data["legend"][0] in text
    for node in data["tree"]:
        if node["children"]:
            assert (node["formulas"], node["outcome"]) == ([], None)
        else:
            [line] = [line for line in text if line.endswith(f"): {node['outcome']}")]
            [formula] = node["formulas"]
            assert text[text.index(line) + 1].strip("| ") == formula
    assert all(region["outcome"] is None for region in margins_report().data["regions"])


def test_splits_on_one_attribute_are_one_for_the_reader(made):
    nodes = {node["id"]: node for node in made("many_leaves").data["tree"]}
    several = [node for node in nodes.values() if node["children"] > 2]
    assert several
    for node in several:
        branches = [each["branch"] for each in nodes.values() if each["parent"] == node["id"]]
        assert any(re.search(r"\S+ < (age|income) <= \S+", branch) for branch in branches)


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_the_probability_is_that_of_the_event(positive):
    _, y, scores = make_table(1500)
    fresh, labels, fresh_scores = make_table(1000, seed=1)
    if positive == "no":
        scores, fresh_scores = 1 - scores, 1 - fresh_scores
    platt = PlattScaling(pos_label=positive).fit(None, y, scores)
    made = report(platt, fresh, labels, fresh_scores)
    assert made.data["event"] == positive
    assert f"the probability is that of <b>{positive}</b>" in made.to_html()
    [curve] = made.data["reliability"]
    assert (curve["class"], curve["rows"]) == (positive, (labels == positive).sum())
    students = next(each for each in made.data["regions"] if each["words"] == "contract = student")
    rows = (fresh["contract"] == "student").to_numpy()
    assert students["says"] == pytest.approx(fresh_scores[rows].mean())
    assert students["observed"] == pytest.approx((labels[rows] == positive).mean())


def test_every_node_has_the_rows_of_its_children(made):
    nodes = made("many_leaves").data["tree"]
    for node in nodes:
        below = [each for each in nodes if each["parent"] == node["id"]]
        assert len(below) == node["children"]
        if below:
            assert sum(each["rows"] for each in below) == node["rows"]
            assert sum(each["leaves"] for each in below) == node["leaves"]


@pytest.mark.parametrize("most", [1, 2, 7, 200])
def test_a_large_tree_is_cut_back_by_the_number_of_rows(most):
    frame, y, scores = make_table(3000, seed=2)
    tree = fixed_tree().fit(frame, y, scores)
    data = report(tree, frame, y, scores, max_regions=most).data
    if most == 1:
        assert data["kind"] == "segments" and len(data["tree"]) == 1
        return
    assert most - 2 <= len(data["regions"]) <= most
    assert f"{tree.get_n_leaves():,} leaves" in data["note"]
    assert sum(region["rows"] for region in data["regions"]) == 3000
    least = min(node["rows"] for node in data["tree"] if node["children"])
    outline, room = Outline.of(tree.model_), most - len(data["regions"])
    for region in data["regions"]:
        n_parts = len(outline.children(int(region["id"].removeprefix("node-"))))
        assert region["rows"] <= least or n_parts == 0 or n_parts - 1 > room


def test_with_many_classes_a_region_speaks_of_the_one_farthest_off(made):
    data = made("many_classes").data
    assert {region["class"] for region in data["regions"]} <= set(data["classes"])
    assert len({node["class"] for node in data["tree"]}) > 1


@pytest.mark.parametrize(
    "make",
    [
        lambda frame, y, scores: CalibrationForest(4, random_state=0).fit(frame, y, scores),
        lambda frame, y, scores: IsotonicScaling().fit(None, y, scores),
    ],
    ids=["forest", "isotonic"],
)
def test_without_a_tree_the_attributes_divide_the_rows(make):
    calibrator = make(*make_table(500))
    frame, y, scores = make_table(400, seed=1)
    data = report(calibrator, frame, y, scores).data
    assert data["kind"] == "segments" and data["tree"] is None
    students = next(each for each in data["regions"] if each["words"] == "contract = student")
    rows = (frame["contract"] == "student").to_numpy()
    assert students["rows"] == rows.sum()
    assert students["says"] == pytest.approx(scores[rows].mean())


def test_segments_agree_with_those_of_the_forest():
    forest = CalibrationForest(4, random_state=0).fit(*make_table(500))
    rows = make_table(400, seed=1)
    ours = {each["words"]: each["harm"] for each in report(forest, *rows).data["regions"]}
    theirs = {each["segment"]: each["harm"] for each in forest.segments(*rows)}
    assert ours == pytest.approx(theirs)


def test_attributes_of_too_many_categories_are_named_and_left_out():
    frame, y, scores = make_table(1000)
    frame["name"] = [f"customer {i}" for i in range(1000)]
    data = report(PlattScaling().fit(None, y, scores), frame, y, scores).data
    assert "Not divided by name: more than 200 categories" in data["note"]
    assert not any(region["words"].startswith("name") for region in data["regions"])


def test_a_table_that_cannot_be_read_gives_no_regions_and_the_reason():
    _, y, scores = make_table(300)
    X = np.array([["a text"]] * 299 + [[b"bytes"]], dtype=object)
    data = report(PlattScaling().fit(None, y, scores), X, y, scores).data
    assert data["kind"] == "none" and "bytes" in data["note"]


# Weights


def test_rows_without_weight_do_not_count():
    tree, frame, y, scores = trained()
    weights = (np.arange(len(y)) % 3 > 0).astype(float)
    keep = weights > 0
    spoiled = np.where(keep, scores, np.nan)
    labels = np.where(keep, y, "unheard of")
    some = report(tree, frame, labels, spoiled, sample_weight=weights).data
    assert some == report(tree, frame[keep], y[keep], scores[keep]).data


def test_rows_of_training_without_weight_raise_no_alarm():
    tree = trained()[0]
    seen, fresh = make_table(3000), make_table(2000, seed=1)
    both = [np.concatenate([one, other]) for one, other in zip(seen, fresh, strict=True)]
    frame = type(seen[0])(both[0], columns=seen[0].columns).infer_objects()
    weights = np.repeat([0.0, 1.0], [3000, 2000])
    with_weights = report(tree, frame, *both[1:], sample_weight=weights).data
    assert with_weights["training_rows"]["status"] == "not seen"
    assert report(tree, frame, *both[1:]).data["training_rows"]["status"] == "seen"


# Rows of training


def test_one_column_of_scores_is_known_again_as_two():
    frame, y, scores = make_table(500)
    both = np.column_stack([1 - scores, scores])
    for given, asked in ((scores, both), (both, scores)):
        platt = PlattScaling().fit(None, y, given)
        assert report(platt, frame, y, asked).data["training_rows"]["status"] == "seen"


def test_a_share_of_training_rows_is_estimated():
    tree = CalibrationTree().fit(*make_table(3000))
    seen, fresh = make_table(3000), make_table(3000, seed=1)
    rows = [
        type(one)(np.concatenate([one[:900], other[:2100]]), columns=one.columns).infer_objects()
        if hasattr(one, "columns")
        else np.concatenate([one[:900], other[:2100]])
        for one, other in zip(seen, fresh, strict=True)
    ]
    found = report(tree, *rows).data["training_rows"]
    assert found["status"] == "seen" and found["share"] == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize("kind", ["array", "frame"])
def test_a_model_knows_its_training_rows_although_their_scores_differ(kind):
    X, y, _ = make_rows(600)
    X = X if kind == "array" else pd.DataFrame(X, columns=list("abc"))
    model = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(X[:300], y[:300])
    assert report(model, X[:300], y[:300]).data["training_rows"]["status"] == "seen"
    assert report(model, X[300:], y[300:]).data["training_rows"]["status"] == "not seen"


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
    found = made("loans").data["attributes"]
    shares = {each["name"]: each["importance"] for each in found["importances"]}
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
        "No rows were held out": report(unmeasured, *rows).data["attributes"],
        "the splits gained nothing": report(CalibrationTree.from_dict(stored), *rows).data[
            "attributes"
        ],
        "left uncalibrated": made("one_leaf").data["attributes"],
        "scores alone": made("scaling").data["attributes"],
        "same model everywhere": report(fixed_tree(max_depth=0).fit(frame, y, scores), *rows).data[
            "attributes"
        ],
    }
    for words, found in reasons.items():
        assert words in found["reason"] and found["importances"] == []


def test_importances_of_a_published_tree_are_measured_on_held_out_rows():
    frame, y, scores = make_table(800)
    tree = PublishedCalibrationTree(boosting_iterations=2).fit(frame, y, scores)
    assert tree.get_n_leaves() > 1
    found = report(tree, *make_table(400, seed=1)).data["attributes"]
    assert found["reason"] is None and found["importances"][0]["name"] == "contract"


def margins_report():
    X, y, scores = make_rows(600)
    margins = np.log(scores[:, 1] / scores[:, 0])
    tree = CalibrationTree(score_type="margin").fit(X[:300], y[:300], margins[:300])
    return report(tree, X[300:], y[300:], margins[300:])


def test_margins_are_said_to_be_no_probabilities():
    assert "no probabilities" in margins_report().to_html()


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


def test_counts_and_axes():
    assert (format_count(1234.0), format_count(2.5)) == ("1,234", "2.5")
    assert (axis_end(0.03), axis_end(0.61), axis_end(1.2)) == (0.05, 1.0, 1.0)
