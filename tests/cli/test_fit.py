"""`caltree fit`."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import caltree
from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)

from .conftest import make_visits, write

ATTRIBUTES = ["channel", "age", "member", "zip"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "jsonl"])
def test_the_model_is_that_of_the_library_whatever_the_format(run, visits, ending):
    write(visits, f"scored.{ending}")
    result = run("fit", f"scored.{ending}", "--out", "model.json", "--categorical", "zip")
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    said = "scores      p_yes, taken as probability of y = yes (by the name of the column)"
    assert said in result.stderr
    # As stored, since JSON and CSV write fewer digits than there are.
    scores = pd.read_csv("scored.csv")["p_yes"] if ending == "csv" else visits["p_yes"]
    expected = CalibrationTree(categorical_features=["zip"]).fit(
        visits[ATTRIBUTES], visits["y"], scores
    )
    found = CalibrationTree.load("model.json")
    assert found.feature_names_in_.tolist() == ATTRIBUTES
    categories = {column.name: column.categories for column in found.model_.attributes.columns}
    assert categories == {
        "channel": ("app", "shop", "web"),
        "age": None,
        "member": (False, True),
        "zip": ("01", "1", "22"),
    }
    assert found.get_n_leaves() == expected.get_n_leaves() > 1
    given = found.predict_proba(visits[ATTRIBUTES], visits["p_yes"])
    wanted = expected.predict_proba(visits[ATTRIBUTES], visits["p_yes"])
    np.testing.assert_allclose(given, wanted, rtol=0, atol=1e-6)


def test_the_model_knows_its_columns(run, visits):
    write(visits.assign(w=2.0, id=range(len(visits))), "scored.csv")
    options = ["--weight", "w", "--exclude", "id,zip", "--label", "y", "--scores", "p_yes"]
    assert run("fit", "scored.csv", "--out", "model.json", *options).exit_code == 0
    assert json.loads(Path("model.json").read_text())["columns"] == {
        "scores": ["p_yes"],
        "attributes": ["channel", "age", "member"],
        "label": "y",
        "weight": "w",
        "groups": None,
    }


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("tree", CalibrationTree()),
        ("forest", CalibrationForest(random_state=0)),
        ("boosting", CalibrationBoosting()),
        ("ensemble", CalibrationEnsemble(random_state=0)),
        ("platt", PlattScaling()),
        ("robust_platt", RobustPlattScaling()),
        ("temperature", TemperatureScaling()),
        ("beta", BetaScaling()),
        ("isotonic", IsotonicScaling()),
        ("smooth_isotonic", SmoothIsotonicScaling()),
        ("regularized_isotonic", RegularizedIsotonicScaling()),
        ("published", PublishedCalibrationTree()),
    ],
    ids=[
        "tree",
        "forest",
        "boosting",
        "ensemble",
        "platt",
        "robust_platt",
        "temperature",
        "beta",
        "isotonic",
        "smooth_isotonic",
        "regularized_isotonic",
        "published",
    ],
)
def test_every_calibrator_can_be_had(run, visits, kind, expected):
    write(visits, "scored.parquet")
    result = run("fit", "scored.parquet", "--out", "m.json", "--calibrator", kind, "--n-jobs", 1)
    assert result.exit_code == 0, result.output
    expected.set_params(score_type="probability", pos_label="yes")
    assert repr(type(expected).load("m.json")) == repr(expected)
    write(visits.drop(columns="y"), "new.parquet")
    assert run("apply", "m.json", "new.parquet", "--out", "out.parquet").exit_code == 0
    expected.fit(visits[ATTRIBUTES], visits["y"], visits["p_yes"])
    wanted = expected.predict_proba(visits[ATTRIBUTES], visits["p_yes"])
    assert np.array_equal(pd.read_parquet("out.parquet")["calibrated_yes"], wanted[:, 1])


def test_the_choice_is_told(run, visits):
    write(visits, "scored.parquet")
    said = run("fit", "scored.parquet", "--out", "m.json").stderr
    tree = CalibrationTree.load("m.json")
    before, after = tree.selection_.candidates[0].loss, tree.selection_.loss
    n_regions = tree.get_n_leaves()
    assert f"choice      local, a model for each of {n_regions} regions; held-out" in said
    assert f"regions; held-out RMSE {before:.4f} -> {after:.4f}\n" in said
    for options in (["--calibrator", "platt"], ["--calibrator", "published"]):
        said = run("fit", "scored.parquet", "--out", "m.json", *options).stderr
        assert "Fitted" in said and "choice" not in said
    write(visits.head(60), "few.parquet")
    said = run("fit", "few.parquet", "--out", "m.json", "--param", "max_depth=0").stderr
    assert CalibrationTree.load("m.json").selection_.chosen == "uncalibrated"
    assert "choice      uncalibrated, since calibration did not clearly help on held-out" in said


def test_parameters_reach_the_calibrator(run, visits):
    write(visits, "scored.parquet")
    given = ["--scoring", "log_loss", "--random-state", 7, "--score-type", "logit"]
    assert run("fit", "scored.parquet", "--out", "m.json", *given).exit_code == 0
    found = CalibrationTree.load("m.json")
    assert (found.scoring, found.random_state, found.score_type_) == ("log_loss", 7, "logit")


def test_a_model_goes_to_standard_output(run, visits):
    write(visits, "scored.parquet")
    result = run("fit", "scored.parquet", "--out", "-", "--calibrator", "platt", "--quiet")
    assert result.stderr == ""
    assert PlattScaling.from_dict(json.loads(result.stdout)).classes_.tolist() == ["no", "yes"]


def test_held_out_rows_judge_but_do_not_teach(run, visits):
    write(visits, "scored.parquet")
    result = run("fit", "scored.parquet", "--out", "m.json", "--holdout", 0.25)
    assert "to 900 rows" in result.stderr and "On 300 rows held out" in result.stderr
    assert CalibrationTree.load("m.json").model_.n_rows[0] == 900
    assert "calibration error" in result.stderr


def test_scores_of_three_classes_are_put_in_order(run, complaint, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([1, 1, 1], 300)
    frame = pd.DataFrame(scores, columns=["p_a", "p_b", "p_c"])
    frame["x"] = rng.random(300)
    frame["label"] = [rng.choice(list("abc"), p=row) for row in scores]
    write(frame, "scored.csv")
    assert run("fit", "scored.csv", "--out", "m.json").exit_code == 0
    assert json.loads(Path("m.json").read_text())["columns"]["scores"] == ["p_a", "p_b", "p_c"]
    assert run("fit", "scored.csv", "--out", "m2.json", "--scores", "p_b,p_a,p_c").exit_code == 0
    assert Path("m2.json").read_text() == Path("m.json").read_text()
    line = complaint("fit", "scored.csv", "--out", "n.json", "--scores", "p_a,p_b")
    assert line.startswith("--scores names 2 column(s), but the label has the 3 classes a, b, c;")


def test_warnings_of_the_library_are_one_line(run, visits):
    write(visits.assign(w=1e-4), "scored.csv")
    result = run("fit", "scored.csv", "--out", "m.json", "--weight", "w", "--quiet")
    [line] = result.stderr.splitlines()
    assert line.startswith("caltree: warning: sample_weight sums to 0.12.")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"y": "Target", "p_yes": "Score"}, (["Score"], "Target")),
        ({"p_yes": "probability"}, (["probability"], "y")),
        ({"p_yes": "proba_YES"}, (["proba_YES"], "y")),
    ],
    ids=["capitals", "plain", "class"],
)
def test_names_tell_label_and_scores(run, visits, names, expected):
    write(visits.rename(columns=names), "scored.csv")
    assert run("fit", "scored.csv", "--out", "m.json", "--calibrator", "platt").exit_code == 0
    columns = json.loads(Path("m.json").read_text())["columns"]
    assert (columns["scores"], columns["label"]) == expected


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("target", "which column of s.csv is the label (it could be y or target); give --label"),
        ("score", "which columns of s.csv are the scores (it could be score or p_yes); give --sc"),
    ],
)
def test_what_is_ambiguous_is_not_guessed(complaint, visits, extra, message, tmp_path):
    write(visits.assign(**{extra: 0.5}), tmp_path / "s.csv")
    line = complaint("fit", "s.csv", "--out", "m.json")
    assert message in line
    assert line.endswith(f"channel, age, member, zip, p_yes, {'y, ' * (extra == 'target')}{extra}")


@pytest.mark.parametrize(
    ("labels", "classes"),
    [(["9", "10"], [9, 10]), (["a", "10"], ["10", "a"]), (["NA", "1"], ["1", "NA"])],
    ids=["numbers", "text", "NA"],
)
def test_labels_of_text_are_numbers_if_all_of_them_are(run, labels, classes):
    frame = make_visits(200).drop(columns="y").assign(y=labels * 100)
    write(frame, "scored.csv")
    given = ["--scores", "p_yes", "--calibrator", "platt"]
    assert run("fit", "scored.csv", "--out", "m.json", *given).exit_code == 0
    assert PlattScaling.load("m.json").classes_.tolist() == classes


def change(frame, column, value, row=6):
    frame = frame.astype({column: object})
    frame.loc[row, column] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (lambda v: change(v, "y", None), [], "'y' holds no label in row 7"),
        (lambda v: change(v, "p_yes", None), [], "'p_yes' holds no score in row 7"),
        (lambda v: change(v, "p_yes", "inf"), [], "'p_yes' holds an infinite score in row 7"),
        (
            lambda v: change(v, "p_yes", "high"),
            [],
            "'p_yes' holds 'high', which is not a number, in",
        ),
        (lambda v: change(v, "age", "inf"), [], "'age' holds infinity in row 7; leave the field"),
        (
            lambda v: change(v, "p_yes", 1.25),
            ["--score-type", "probability"],
            "'p_yes' holds the score 1.25 in row 7; a probability is from 0 to 1",
        ),
        (lambda v: v.assign(w=-1.0), ["--weight", "w"], "'w' holds the weight -1 in row 1"),
        (lambda v: v.assign(y="yes"), [], "'y' holds only one class, yes"),
        (lambda v: v.assign(y=0.5), [], "'y' holds 0.5 in row 1; a label is a word or a whole"),
        (lambda v: v.iloc[:0], [], "s.csv has no rows; give a table with some"),
        (lambda v: v[["y", "p_yes"]], [], "s.csv has no column left for an attribute"),
        (lambda v: v, ["--attributes", "age,y"], "--attributes names y, which is the label"),
        (
            lambda v: v,
            ["--scores", "y"],
            "--scores names y, which is the label, the weight or the g",
        ),
        (lambda v: v, ["--categorical", "p_yes"], "--categorical names p_yes, which is not an"),
        (lambda v: v, ["--categorical", "chanel"], "not an attribute (did you mean channel?);"),
        (lambda v: v, ["--weight", "Age"], "lacks the column Age (did you mean age?); it has cha"),
        (lambda v: v, ["--exclude", "id"], "s.csv lacks the column id; it has channel, age"),
        (lambda v: v, ["--holdout", "0.0001"], "cannot hold out rows: "),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_rows_are_named(complaint, visits, frame, options, message, tmp_path):
    write(frame(visits), tmp_path / "s.csv")
    scores = [] if "--scores" in options else ["--scores", "p_yes"]
    assert message in complaint("fit", "s.csv", "--out", "m.json", *scores, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--calibrator", "platt", "--scoring", "rmse"], "--calibrator platt has no --scoring"),
        (["--holdout", "0", "--report", "r.html"], "--report needs held-out rows; give"),
        (["--report", "r.txt"], "the name of a report must end in .html, got r.txt"),
        (["--scores", ","], "Invalid value for '--scores': it is empty; give names separated"),
        (["--calibrator", "best"], "Invalid value for '--calibrator': 'best' is not one of"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_options_are_a_matter_of_usage(complaint, visits, options, message, tmp_path):
    write(visits, tmp_path / "s.csv")
    line = complaint("fit", "s.csv", "--out", "m.json", *options, code=2)
    assert message in line and line.endswith("(see: caltree fit --help)")


def test_a_type_that_is_neither_number_nor_text_is_named(complaint, visits, tmp_path):
    write(visits.assign(day=pd.Timestamp("2020-01-01")), tmp_path / "s.parquet")
    line = complaint("fit", "s.parquet", "--out", "m.json")
    assert "the column 'day' is of type timestamp" in line
    assert line.endswith("leave it out with --exclude, or turn it into numbers")


@pytest.mark.parametrize(
    "exclude",
    [
        ["--exclude", "zip", "--exclude", "age, in years", "--exclude", "member"],
        ["--exclude", "zip,member", "--exclude", '"age, in years"'],
        ["--exclude", 'zip,"age, in years", member'],
    ],
)
def test_lists_may_be_repeated_and_names_may_have_commas(run, complaint, visits, exclude, tmp_path):
    write(visits.rename(columns={"age": "age, in years"}), tmp_path / "scored.csv")
    if '"' not in "".join(exclude):
        line = complaint("fit", "scored.csv", *exclude, "--out", "m.json")
        assert line == (
            "scored.csv lacks the columns age, in years; it has channel, "
            '"age, in years", member, zip, p_yes, y'
        )
        return
    assert run("fit", "scored.csv", *exclude, "--out", "m.json").exit_code == 0
    assert json.loads((tmp_path / "m.json").read_text())["columns"]["attributes"] == ["channel"]
    assert "NAMES are one or more names" in run("fit", "--help").stdout


# groups


def repeated(visits):
    """Rows that come ten times each, with labels that chance decided on."""
    some = visits.head(150).assign(
        customer=[f"c{i}" for i in range(150)],
        y=np.where(np.random.default_rng(5).random(150) < visits["p_yes"].head(150), "yes", "no"),
    )
    return pd.concat([some] * 10, ignore_index=True)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("tree", "csv"),
        ("tree", "parquet"),
        ("forest", "csv"),
        ("boosting", "parquet"),
        ("ensemble", "csv"),
    ],
)
def test_rows_of_a_group_stay_together(run, visits, kind, ending):
    write(repeated(visits), f"scored.{ending}")
    given = ["--label", "y", "--scores", "p_yes", "--calibrator", kind]
    result = run("fit", f"scored.{ending}", "--out", "m.json", *given, "--groups", "customer")
    assert result.exit_code == 0, result.output
    assert "  groups      customer: 150" in result.stderr.splitlines()
    stored = json.loads(Path("m.json").read_text())
    assert stored["columns"]["groups"] == "customer"
    assert "customer" not in stored["columns"]["attributes"]
    assert "groups      customer" in run("show", "m.json").stdout.splitlines()
    # Rows that were seen before prove nothing.
    assert caltree.load("m.json").selection_.uncalibrated_weight == 1.0
    apart = run("fit", f"scored.{ending}", "--out", "a.json", *given, "--exclude", "customer")
    assert apart.exit_code == 0, apart.output
    assert caltree.load("a.json").selection_.uncalibrated_weight < 0.7


def test_whole_groups_are_held_out(run, visits):
    write(repeated(visits), "scored.csv")
    options = ["--label", "y", "--scores", "p_yes", "--groups", "customer", "--holdout", "0.2"]
    result = run("fit", "scored.csv", "--out", "m.json", "--calibrator", "platt", *options)
    assert result.exit_code == 0, result.output
    assert "On 300 rows held out:" in result.stderr
    assert caltree.load("m.json").made_.n_rows == 1200


def test_groups_held_out_are_those_of_the_report(run, visits):
    write(repeated(visits), "scored.csv")
    options = ["--label", "y", "--scores", "p_yes", "--groups", "customer", "--report", "r.html"]
    given = ["fit", "scored.csv", "--calibrator", "platt", *options]
    result = run(*given, "--out", "m.json", "--holdout", "0.2")
    assert result.exit_code == 0, result.output
    assert "each of which counts as one observation" in Path("r.html").read_text(encoding="utf-8")
    result = run(*given, "--out", "n.json", "--holdout", "0.001")
    assert result.exit_code == 1
    assert "holds out 1 group, but a report needs at least 5" in result.stderr
    assert not Path("n.json").exists()


def test_groups_that_cannot_be_used(complaint, visits, tmp_path):
    frame = visits.assign(customer=np.arange(len(visits)) % 4)
    write(frame, tmp_path / "few.csv")
    write(frame.assign(customer=frame["customer"].where(frame.index != 7)), tmp_path / "gap.csv")
    given = ["--label", "y", "--scores", "p_yes", "--out", "m.json", "--groups"]
    line = complaint("fit", "few.csv", *given, "customer")
    assert "groups has 4 groups, but cv=5 needs at least 5; use fewer folds" in line
    line = complaint("fit", "gap.csv", *given, "customer")
    assert line.startswith("gap.csv: the column 'customer' holds no group in row 8; drop the rows")
    assert "lacks the column client" in complaint("fit", "few.csv", *given, "client")
    line = complaint("fit", "few.csv", *given, "customer", "--calibrator", "platt", code=2)
    assert "--calibrator platt has no folds, so --groups would change nothing" in line
    line = complaint("fit", "few.csv", *given, "customer", "--attributes", "age,customer")
    assert (
        "--attributes names customer, which is the label, a score, the weight, the groups" in line
    )


def test_boosting_without_lightgbm_says_how_to_get_it(complaint, visits, tmp_path, monkeypatch):
    write(visits, tmp_path / "scored.csv")
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    line = complaint("fit", "scored.csv", "--out", "m.json", "--calibrator", "boosting")
    assert 'pip install "caltree[boosting]"' in line


def test_boosting_chooses_by_the_loss_that_is_given(run, visits):
    write(visits, "scored.csv")
    options = ["--calibrator", "boosting", "--scoring", "log_loss", "--random-state", "3"]
    result = run("fit", "scored.csv", "--out", "m.json", *options)
    assert result.exit_code == 0, result.output
    stored = caltree.load("m.json")
    assert stored.selection_.scoring == "log_loss" and stored.random_state == 3
