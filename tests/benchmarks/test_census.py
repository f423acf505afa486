"""The benchmark on census data: which rows train what, its figures, and its table."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks.comparison import census, peers
from caltree.metrics import log_loss, rmse
from tests.support.fixtures import ROOT

pytest.importorskip("lightgbm")
pytest.importorskip("pyarrow")


def write_census(folder, n_rows=600, task="ACSMobility"):
    """Made-up rows under the names of the census; codes have an effect that no number tells."""
    for seed, part in enumerate(("validation", "test")):
        random = np.random.default_rng(seed)
        age, code = random.integers(18, 80, n_rows), random.integers(1, 5, n_rows)
        odds = (age - 45) / 15 + np.array([2.0, -2.0, 1.0, -1.0])[code - 1]
        table = pd.DataFrame(
            {
                census.TARGETS[task]: (random.random(n_rows) < 1 / (1 + np.exp(-odds))).astype(int),
                "AGEP": age.astype(float),
                "MAR": code.astype(float),
                "SEX": random.integers(1, 3, n_rows).astype(float),
            }
        )
        table.to_parquet(folder / f"{task}.{part}.parquet")


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command in this process on made-up rows; returns what it says."""
    write_census(tmp_path)

    def run(*given, code=0):
        assert census.main(["--data-dir", str(tmp_path), *given]) == code
        return capsys.readouterr()

    return run


def table_rows(said):
    """The cells of all lines of a table but the head."""
    lines = [line.strip("| ").split(" | ") for line in said.splitlines() if line.startswith("|")]
    return {line[0]: line[1:] for line in lines[2:]}


def test_learners_and_calibrators_see_different_rows(tmp_path, monkeypatch):
    write_census(tmp_path)
    seen, logistic = [], census.BASES["logistic"]

    class Spy:
        def __init__(self, *columns):
            self.columns, self.model = columns, logistic(*columns)

        def fit(self, X, y):
            seen.append((self.columns, X, y))
            self.model.fit(X, y)
            return self

        def predict_proba(self, X):
            return self.model.predict_proba(X)

    monkeypatch.setattr(census, "BASES", {"logistic": Spy})
    training, test = census.score_rows(str(tmp_path), "ACSMobility", "logistic")
    [(columns, X, y)] = seen
    assert columns == (["MAR", "SEX"], ["AGEP"])
    assert (len(y), len(training.y), len(test.y)) == (180, 420, 600)
    given = pd.read_parquet(tmp_path / "ACSMobility.validation.parquet")
    together = pd.concat([X.assign(MIG=y), training.X.assign(MIG=training.y)])[given.columns]
    columns = list(given)
    pd.testing.assert_frame_equal(
        together.astype(float).sort_values(columns, ignore_index=True),
        given.astype(float).sort_values(columns, ignore_index=True),
    )
    assert training.X["MAR"].dtype == test.X["MAR"].dtype == "category"
    assert "MIG" not in training.X and training.scores.shape == (420, 2)


def test_pooled_rows_are_dealt_anew_each_to_one_part(tmp_path):
    write_census(tmp_path)
    training, test = census.score_rows(str(tmp_path), "ACSMobility", "logistic", pool=True)
    assert (len(training.y), len(test.y)) == (816, 180)  # 204 for the learner
    given = [pd.read_parquet(tmp_path / f"ACSMobility.{p}.parquet") for p in ("validation", "test")]
    dealt = census._deal_anew(given)
    columns = list(given[0])
    pd.testing.assert_frame_equal(
        pd.concat(dealt).sort_values(columns, ignore_index=True),
        pd.concat(given).sort_values(columns, ignore_index=True),
    )


def test_some_rows_are_drawn_by_the_seed():
    frame = pd.DataFrame({"AGEP": np.arange(50.0)})
    rows = census.Rows(frame, np.arange(50), np.arange(100.0).reshape(50, 2))
    some, again, others = (rows.take(20, seed) for seed in (1, 1, 2))
    assert len(set(some.y)) == 20 and (some.y == again.y).all() and (some.y != others.y).any()
    assert (some.X["AGEP"] == some.y).all() and (some.scores[:, 0] == 2 * some.y).all()
    assert rows.take(50, 1) is rows


def test_the_table_has_the_losses_of_the_test_rows(run, tmp_path):
    given = ["--base", "logistic", "--rows", "300", "--calibrators", "none,tree,lightgbm"]
    said = run(*given).out
    assert said.startswith("**ACSMobility, scores of logistic, 300 rows**")
    found = table_rows(said)
    assert list(found) == ["none", "tree", "lightgbm"]
    _, test = census.score_rows(str(tmp_path), "ACSMobility", "logistic")
    losses = [f"{loss(test.y, test.scores):.5f}" for loss in (log_loss, rmse)]
    assert found["none"][:2] == losses
    assert found["lightgbm"][4] == found["lightgbm"][6] == "1.00"


def test_ratios_need_lightgbm_and_all_rows_are_named_once(run):
    said = run("--base", "logistic", "--rows", "5000,all", "--calibrators", "none").out
    assert said.count("**") == 2 and "420 rows**" in said
    assert table_rows(said)["none"][4] == ""


def test_the_multicalibration_error_finds_the_wrong_segment(tmp_path):
    metrics = pytest.importorskip("mcgrad.metrics")
    write_census(tmp_path, 2000)
    _, test = census.score_rows(str(tmp_path), "ACSMobility", "logistic")
    right = test.scores[:, 1]
    codes = test.X["MAR"].to_numpy(dtype=float)
    wrong = np.where(codes == 2, np.minimum(right + 0.3, 1), right)
    # Within the segment, ordered by probability, the largest range of sums of residuals.
    order = np.argsort(wrong[codes == 2], kind="stable")
    p, y = wrong[codes == 2][order], test.y[codes == 2][order]
    sums = np.append(0.0, np.cumsum(y - p))
    expected = np.ptp(sums) / np.sqrt(np.sum(p * (1 - p)))
    assert census.mce(test, right) < 5 < expected
    assert census.mce(test, wrong) == pytest.approx(expected, rel=0.2)
    assert metrics.ecce_sigma(y, p) == pytest.approx(expected, rel=1e-3)


def test_lightgbm_has_its_own_defaults(monkeypatch):
    import lightgbm

    given, train = [], lightgbm.train

    def spy(parameters, *others, **more):
        given.append(parameters)
        return train(parameters, *others, **more)

    monkeypatch.setattr(lightgbm, "train", spy)
    frame = pd.DataFrame({"AGEP": np.arange(200.0)})
    y, scores = np.arange(200) % 2, np.full((200, 2), 0.5)
    census.CALIBRATORS["lightgbm"](0).fit(frame, y, scores)
    peers.LightGBM().fit(frame, y, scores)
    assert set(given[0]) == {"num_threads", "verbosity", "objective"}
    assert given[1]["num_leaves"] == 7


def test_files_and_options_that_are_wrong(run, tmp_path, capsys):
    said = run("--task", "ACSPublicCoverage", "--calibrators", "none", code=1).err
    assert "ACSPublicCoverage.validation" in said
    wrong = pd.read_parquet(tmp_path / "ACSMobility.test.parquet").drop(columns="MIG")
    wrong.to_parquet(tmp_path / "ACSMobility.test.parquet")
    assert "has no column MIG" in run("--calibrators", "none", code=1).err
    for given in (["--rows", "many"], ["--rows", "0"], ["--calibrators", "magic"]):
        with pytest.raises(SystemExit):
            run(*given)
        assert given[1] in capsys.readouterr().err


def test_what_is_not_installed_is_named_before_work_starts(run, monkeypatch):
    monkeypatch.setattr(census, "find_spec", lambda name: None)
    assert "not installed: lightgbm" in run("--calibrators", "none,lightgbm", code=1).err
    said = run("--base", "logistic", "--rows", "100", "--calibrators", "none").out
    assert table_rows(said)["none"][2] == ""


def test_the_command_as_a_script(tmp_path):
    write_census(tmp_path, 200)
    options = ["--data-dir", str(tmp_path), "--rows", "100", "--repeats", "2"]
    command = [sys.executable, "benchmarks/census.py", *options, "--calibrators", "none,lightgbm"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "scores of logistic" in done.stdout and "scores of lightgbm" in done.stdout
