"""`caltree evaluate`, `caltree show` and `caltree report`, and the models they read."""

import json
from importlib import resources
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import numpy as np
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
    TemperatureScaling,
)
from caltree.metrics import brier_score, expected_calibration_error, log_loss, rmse

from .conftest import make_visits, write

ATTRIBUTES = ["channel", "age", "member", "zip"]


@pytest.fixture
def held_out(tmp_path):
    frame = make_visits(400, seed=2).assign(w=np.arange(400) % 3)
    write(frame, tmp_path / "held_out.parquet")
    write(frame, tmp_path / "held_out.csv")
    return frame


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_measures_are_those_of_the_library(run, model, held_out, weight, ending):
    options = [] if weight is None else ["--weight", weight]
    result = run("evaluate", model, f"held_out.{ending}", "--json", *options)
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert found["rows"] == 400
    p = held_out["p_yes"].to_numpy()
    after = CalibrationTree.load(model).predict_proba(held_out[ATTRIBUTES], p)
    given = {"sample_weight": None if weight is None else held_out["w"], "labels": ["no", "yes"]}
    for measure in (rmse, brier_score, log_loss, expected_calibration_error):
        if measure is expected_calibration_error:
            given["n_bins"] = 6 if weight is None else 4  # at least 60 rows in each
        of_measure = found["measures"][measure.__name__]
        before = measure(held_out["y"], np.column_stack([1 - p, p]), **given)
        assert of_measure["uncalibrated"] == pytest.approx(before, abs=1e-9)
        assert of_measure["calibrated"] == pytest.approx(
            measure(held_out["y"], after, **given), abs=1e-9
        )
    result = run("report", model, f"held_out.{ending}", "--json", "--out", "r.html", *options)
    [reported] = [
        m for m in json.loads(result.stdout)["measures"] if m["name"] == "calibration_error"
    ]
    assert reported["before"] == pytest.approx(of_measure["uncalibrated"], abs=1e-9)
    assert reported["after"] == pytest.approx(of_measure["calibrated"], abs=1e-9)


@pytest.mark.usefixtures("held_out")
def test_measures_are_a_table_on_a_terminal(run, model):
    result = run("evaluate", model, "held_out.csv", "--label", "y", "--scores", "p_yes")
    assert result.exit_code == 0
    assert "400 rows of held_out.csv:" in result.stdout
    assert "uncalibrated" in result.stdout and "calibration error" in result.stdout


def test_labels_become_the_classes_of_the_model(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = make_visits(300).drop(columns="y").assign(y=rng.integers(0, 2, 300))
    write(frame, tmp_path / "s.csv")
    given = ["--scores", "p_yes", "--calibrator", "platt", "--out", "m.json"]
    assert run("fit", "s.csv", *given).exit_code == 0
    printed = []
    for column, name in ((frame["y"], "a.csv"), (frame["y"].astype(float), "b.parquet")):
        write(frame.assign(y=column), name)
        printed.append(json.loads(run("evaluate", "m.json", name, "--json").stdout)["measures"])
    assert printed[0]["rmse"] == pytest.approx(printed[1]["rmse"])


def test_the_weight_of_the_fit_is_used_if_it_is_there(run, held_out):
    assert run("fit", "held_out.csv", "--weight", "w", "--out", "m.json").exit_code == 0
    with_weight = json.loads(run("evaluate", "m.json", "held_out.csv", "--json").stdout)
    given = json.loads(run("evaluate", "m.json", "held_out.csv", "--json", "--weight", "w").stdout)
    assert with_weight == given
    write(held_out.drop(columns="w"), "unweighted.csv")
    without = json.loads(run("evaluate", "m.json", "unweighted.csv", "--json").stdout)
    assert without["measures"] != given["measures"]


# show


def test_a_tree_is_shown_with_its_columns_and_text(run, model):
    result = run("show", model)
    tree = CalibrationTree.load(model)
    assert (result.exit_code, result.stderr) == (0, "")
    assert tree.to_text() in result.stdout
    assert "scores      p_yes (probability of yes)" in result.stdout
    assert f"leaves      {tree.get_n_leaves()}" in result.stdout
    share = tree.feature_importances_[0]
    assert f"attributes  channel: app, shop, web; importance {share:.2f}\n" in result.stdout
    assert share > 0.5 and "not measured" not in result.stdout
    assert "\np: probability of yes, s: its score\n" in result.stdout
    assert tree.to_text(max_depth=1) in run("show", model, "--max-depth", 1).stdout


def test_json_says_what_was_chosen(run, model):
    found = json.loads(run("show", model, "--json").stdout)
    tree = CalibrationTree.load(model)
    assert found["kind"] == "CalibrationTree" and found["classes"] == ["no", "yes"]
    assert found["columns"]["attributes"] == [item["name"] for item in found["attributes"]]
    assert found["selection"] == tree.selection_.to_dict()
    assert (found["n_leaves"], found["depth"]) == (tree.get_n_leaves(), tree.get_depth())


@pytest.mark.parametrize(
    ("calibrator", "lines"),
    [
        (CalibrationForest(4, random_state=0), ["trees       4", "Held-out RMSE, and weight"]),
        (CalibrationBoosting(), ["trees       ", "Held-out RMSE, and weight"]),
        (CalibrationEnsemble(5), ["trees       ", "    global, forest"]),
        (PlattScaling(), ["slopes      ", "intercepts  "]),
        (TemperatureScaling(), ["slopes      "]),
        (BetaScaling(), ["slopes      ", "intercepts  "]),
        (IsotonicScaling(), ["corners     "]),
    ],
    ids=["forest", "boosting", "ensemble", "platt", "temperature", "beta", "isotonic"],
)
def test_models_that_the_library_saved_are_shown(run, calibrator, lines):
    frame = make_visits(300)
    calibrator.fit(frame[ATTRIBUTES], frame["y"], frame["p_yes"]).save("saved.json")
    result = run("show", "saved.json")
    assert result.exit_code == 0, result.output
    for line in ["label       not known", *lines]:
        assert f"\n{line}" in result.stdout
    assert json.loads(run("show", "saved.json", "--json").stdout)["columns"] is None


def test_a_model_says_how_it_was_made(run, visits, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    write(visits, "scored.csv")
    options = ("--label", "y", "--scores", "p_yes", "--calibrator", "platt")
    assert run("fit", "scored.csv", "--out", "m.json", *options).exit_code == 0
    line = f"made        2023-11-14T22:13:20Z with caltree {caltree.__version__}, from 1,200 rows"
    assert line in run("show", "m.json").stdout.splitlines()
    found = json.loads(run("show", "m.json", "--json").stdout)["made"]
    assert found == json.loads(Path("m.json").read_text())["made"]
    assert isinstance(caltree.load("m.json"), PlattScaling)


# report


@pytest.mark.usefixtures("held_out")
def test_a_report_is_a_page_on_the_rows(run, model):
    pytest.importorskip("jinja2")
    result = run("report", model, "held_out.csv", "--out", "r.html", "--title", "Visits & more")
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert result.stderr == "Report: r.html\n"
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<html" in page and "Visits &amp; more" in page


def test_fit_reports_on_the_rows_held_out(run, visits):
    pytest.importorskip("jinja2")
    write(visits, "s.parquet")
    result = run("fit", "s.parquet", "--out", "m.json", "--report", "r.html")
    assert result.exit_code == 0, result.output
    assert "to 960 rows" in result.stderr and "Report: r.html" in result.stderr
    assert "<html" in Path("r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["tree", "platt"])
def test_a_report_is_given_the_calibrator_and_the_rows(run, held_out, monkeypatch, kind):
    given = {}

    def report(calibrator, parts, title, by, further, groups):
        [(X, y, scores, w)] = parts
        assert (by, further(), groups()) == ([], None, None)
        given.update(calibrator=calibrator, X=X, y=y, scores=scores, w=w, title=title)
        return SimpleNamespace(
            save=lambda path: Path(path).write_text("page"),
            data={"data": {"training_rows": {"status": "not seen"}}},
        )

    monkeypatch.setattr("caltree.report.api.report_on_parts", report)
    assert run("fit", "held_out.csv", "--calibrator", kind, "--out", "m.json").exit_code == 0
    result = run("report", "m.json", "held_out.csv", "--out", "r.html", "--weight", "w", "--quiet")
    assert (result.exit_code, result.output) == (0, "")
    assert Path("r.html").read_text() == "page"
    assert given["title"] == "held_out.csv"
    assert given["y"].tolist() == held_out["y"].tolist()
    np.testing.assert_allclose(given["scores"][:, 0], held_out["p_yes"])
    assert given["w"].tolist() == held_out["w"].tolist()
    after = given["calibrator"].predict_proba(given["X"], given["scores"])
    assert after.shape == (400, 2)


@pytest.mark.usefixtures("held_out")
@pytest.mark.parametrize("kind", ["tree", "platt"])
def test_a_report_by_columns_and_as_json(run, held_out, kind):
    write(held_out.assign(zone=np.where(np.arange(400) % 4, "a", "b")), "zones.csv")
    assert run("fit", "held_out.csv", "--calibrator", kind, "--out", "m.json").exit_code == 0
    result = run("report", "m.json", "zones.csv", "--by", "zone,channel", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    schema = resources.files("caltree") / "schema" / "report.schema.json"
    jsonschema.validate(found, json.loads(schema.read_text(encoding="utf-8")))
    rows = {" and ".join(each["conditions"]): each["rows"] for each in found["groups"]}
    assert (rows["zone = a"], rows["zone = b"]) == (300, 100)
    assert rows["channel = app"] == (held_out["channel"] == "app").sum()
    assert "about 100% of these rows" in result.stderr
    result = run("report", "m.json", "zones.csv", "--by", "zones", "--json")
    assert result.exit_code == 1 and "zones" in result.stderr


def test_rows_of_a_report_that_belong_together_count_as_one_observation(run, held_out):
    customers = np.arange(400) // 4
    write(held_out.assign(customer=customers, zone=customers % 3), "customers.csv")
    assert run("fit", "held_out.csv", "--calibrator", "platt", "--out", "m.json").exit_code == 0
    given = ("report", "m.json", "customers.csv", "--json", "--weight", "w", "--groups")
    result = run(*given, "customer")
    assert result.exit_code == 0, result.stderr
    kept = customers[held_out["w"] > 0]
    assert json.loads(result.stdout)["groups_of_rows"] == len(np.unique(kept))
    result = run(*given, "zone")
    assert result.exit_code == 1
    assert "groups has 3 groups, but a report needs at least 5" in result.stderr
    assert run(*given, "nobody").exit_code == 1


@pytest.mark.usefixtures("held_out")
def test_a_report_needs_somewhere_to_go(run, model):
    result = run("report", model, "held_out.csv")
    assert result.exit_code == 2
    assert "give --out FILE, or --json" in result.stderr


# Training rows

SEEN = (
    "caltree: warning: about 100% of these rows are rows that the model was fitted to, on which it "
    "looks better than it is; give rows that were held out\n"
)


@pytest.mark.parametrize(
    ("kind", "ending"),
    [
        ("tree", "csv"),
        ("tree", "parquet"),
        ("forest", "csv"),
        ("boosting", "csv"),
        ("ensemble", "parquet"),
        ("platt", "csv"),
        ("platt", "parquet"),
        ("beta", "csv"),
        ("isotonic", "csv"),
        ("published", "csv"),
    ],
)
def test_rows_of_the_fit_are_recognised(run, visits, kind, ending):
    visits = visits.assign(w=np.where(np.arange(len(visits)) % 5, 1.0, 0.0))
    write(visits, f"s.{ending}")
    write(make_visits(700, seed=8), f"new.{ending}")
    options = ["--weight", "w", "--calibrator", kind, "--quiet"]
    options += ["--param", "n_estimators=5"] if kind == "forest" else []
    assert run("fit", f"s.{ending}", "--out", "m.json", *options).exit_code == 0
    result = run("evaluate", "m.json", f"s.{ending}", "--json")
    assert (result.exit_code, result.stderr) == (0, SEEN)
    assert json.loads(result.stdout)["training_rows"] == {"status": "seen", "share": 1.0}
    assert run("evaluate", "m.json", f"s.{ending}").stderr == SEEN
    result = run("evaluate", "m.json", f"new.{ending}", "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["training_rows"]["status"] == "not seen"


def test_rows_of_the_fit_are_not_recognised_without_their_hashes(run, visits):
    pytest.importorskip("jinja2")
    write(visits, "s.csv")
    assert run("fit", "s.csv", "--out", "m.json", "--quiet", "--no-fingerprint").exit_code == 0
    assert json.loads(Path("m.json").read_text())["fingerprint"] is None
    result = run("evaluate", "m.json", "s.csv", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["training_rows"] == {"status": "cannot tell", "share": None}
    assert run("report", "m.json", "s.csv", "--out", "r.html").exit_code == 0
    assert "could not be compared" in Path("r.html").read_text(encoding="utf-8")


def test_too_few_rows_cannot_be_told_from_those_of_the_fit(run, model, visits):
    write(make_visits(10, seed=1), "few.csv")
    result = run("evaluate", model, "few.csv", "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout)["training_rows"] == {"status": "cannot tell", "share": None}


def test_a_report_on_rows_of_the_fit_warns_too(run, model, visits):
    pytest.importorskip("jinja2")
    write(visits, "s.csv")
    result = run("report", model, "s.csv", "--out", "r.html", "--quiet")
    assert (result.exit_code, result.stderr) == (0, SEEN)


def test_importances_that_are_not_measured_are_not_0(run, visits):
    write(visits.drop(columns="zip"), "s.csv")
    options = ["--calibrator", "published", "--param", "ccp_alpha=none"]
    assert run("fit", "s.csv", "--out", "m.json", *options).exit_code == 0
    found = json.loads(run("show", "m.json", "--json").stdout)
    assert found["n_leaves"] > 1
    assert [attribute["importance"] for attribute in found["attributes"]] == [None] * 3
    shown = run("show", "m.json").stdout
    assert "age: numbers\n" in shown
    assert "\nimportance  not measured, since no rows were held out\n" in shown


@pytest.mark.parametrize("calibrator", ["tree", "published"])
def test_importances_are_measured_on_held_out_rows(run, visits, calibrator):
    write(visits.drop(columns="zip"), "s.csv")
    assert run("fit", "s.csv", "--out", "m.json", "--calibrator", calibrator).exit_code == 0
    found = json.loads(run("show", "m.json", "--json").stdout)
    assert found["n_leaves"] > 1
    assert sum(attribute["importance"] for attribute in found["attributes"]) == pytest.approx(1.0)
    assert "not measured" not in run("show", "m.json").stdout
