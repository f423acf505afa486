"""`caltree fit --intervals` and `caltree apply --interval`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from caltree import load
from caltree._fitted.spread import KNOTS, Spread
from caltree.cli import large_files

from .conftest import make_visits, write

FIT = ("fit", "visits.csv", "--label", "y", "--scores", "p_yes", "--calibrator", "platt", "--quiet")


def fit_model(run, *options):
    write(make_visits(300), "visits.csv")
    assert run(*FIT, "--out", "model.json", *options).exit_code == 0


def test_apply_adds_both_ends_of_every_class(run):
    fit_model(run, "--intervals")
    new = make_visits(50, seed=1)
    new.loc[3, "p_yes"] = np.nan
    write(new, "new.csv")
    result = run(
        "apply", "model.json", "new.csv", "--out", "out.csv", "--interval", "0.9",
        "--on-bad-row", "null",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    found = pd.read_csv("out.csv")
    platt = load("model.json")
    said = platt.predict_interval(None, new["p_yes"], 0.9, on_bad_rows="nan")
    names = [f"calibrated_{label}_{end}" for label in ("no", "yes") for end in ("lower", "upper")]
    assert found.columns[-6:].tolist() == ["calibrated_no", "calibrated_yes", *names]
    np.testing.assert_allclose(found[names], said.reshape(50, 4), rtol=1e-12)
    assert found[names].isna().all(axis=1).to_numpy().nonzero()[0].tolist() == [3]


def test_apply_asks_the_regions_of_a_tree(run):
    visits = make_visits(600).drop(columns="zip")
    write(visits, "visits.csv")
    fit = [*FIT[:7], "tree", "--quiet", "--out", "model.json"]
    assert run(*fit).exit_code == 0
    stored = json.loads(Path("model.json").read_text(encoding="utf-8"))
    stored["spread"] = Spread(np.ones(len(KNOTS)), 0.5, 100.0).to_dict()
    Path("model.json").write_text(json.dumps(stored), encoding="utf-8")
    tree = load("model.json")
    assert len(np.unique(tree.effective_rows(visits, visits["p_yes"]))) > 1
    said = run("apply", "model.json", "visits.csv", "--out", "out.csv", "--interval", "0.9")
    assert said.exit_code == 0, said.output
    ends = tree.predict_interval(visits, visits["p_yes"], 0.9)[:, 1]
    names = ["calibrated_yes_lower", "calibrated_yes_upper"]
    np.testing.assert_allclose(pd.read_csv("out.csv")[names], ends, rtol=1e-12)


def test_a_model_without_intervals_says_how_to_get_them(run, complaint):
    fit_model(run)
    said = complaint("apply", "model.json", "visits.csv", "--out", "o.csv", "--interval", "0.9")
    assert said == (
        "model.json has no intervals; fit it with caltree fit --intervals, or leave out --interval"
    )


def test_a_confidence_that_is_no_share_is_refused(run, complaint):
    fit_model(run)
    given = ("apply", "model.json", "visits.csv", "--out", "o.csv", "--interval", "95")
    assert complaint(*given, code=2).startswith(
        "--interval must be between 0 and 1, such as 0.95, got 95"
    )


def test_a_large_file_is_read_into_memory(run, monkeypatch):
    monkeypatch.setattr(large_files, "MOST_VALUES", 100)
    monkeypatch.setattr("caltree._intervals._N_STAND_IN", 5)
    monkeypatch.setattr("caltree._intervals._N_TREES", 5)
    write(make_visits(200), "visits.parquet")
    result = run(
        "fit", "visits.parquet", "--out", "model.json", "--intervals",
        "--param", "tree_method=hist", "--param", "cv=2",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "where --intervals needs all rows" in result.stderr
    assert load("model.json").spread_ is not None
