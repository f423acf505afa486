"""The benchmark of accuracy: what it computes, keeps and forgets."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV

from benchmarks.comparison import calibrators, command, data, work
from caltree import IdentityCalibrator
from caltree.metrics import rmse
from caltree.paper.generators import rdg1
from caltree.paper.learners import NaiveBayes
from caltree.paper.protocol import outer_folds, run_fold
from caltree.paper.store import Cell, Shape
from tests.support.dask_cluster import small_cluster
from tests.support.paper_data import write_data

SOME = "none,platt"


@pytest.fixture
def carried_out(monkeypatch):
    """The folds that are carried out, with the calibrators."""
    seen, one = [], work._one

    def spy(plan, cell, shape, names):
        seen.append((cell, names))
        return one(plan, cell, shape, names)

    monkeypatch.setattr(work, "_one", spy)
    return seen


def naive_bayes(names=SOME, *more):
    """Options of a run that is over soon."""
    given = ["run", "--data-dir", "data", "--learners", "naive_bayes", "--runs", "1"]
    return [*given, "--calibrators", names, *more]


def all_results(store="accuracy.sqlite"):
    return work.Results(store)._all("SELECT * FROM result")


# Carrying it out


def test_a_fold_is_that_of_the_paper_with_five_folds(run):
    run(*naive_bayes())
    store = work.Results("accuracy.sqlite")
    expected = run_fold(
        data.prepared("sick", "data"), "naive_bayes", 0, 3, ["none", "platt"], n_folds=5, seed=1
    )
    assert len(store.done()) == 10
    for name in ("none", "platt"):
        for measure in ("rmse", "log_loss"):
            found = store.results("sick", "naive_bayes", name, measure)
            assert sorted(found) == [(0, fold) for fold in range(5)]
            assert found[0, 3] == expected.measures[name][measure]


@pytest.mark.parametrize("learner", ["gradient_boosting", "random_forest"])
def test_learners_that_the_paper_does_not_have(run, learner):
    if learner == "gradient_boosting":
        pytest.importorskip("lightgbm")
    given = ["--datasets", "vote", "--learners", f"naive_bayes,{learner}", "--runs", "1"]
    said = run("run", "--data-dir", "data", *given, "--calibrators", "none,platt,isotonic,tree")
    assert "10 of 10 folds are complete in accuracy.sqlite" in said.err
    store = work.Results("accuracy.sqlite")
    one, other = (store.results("vote", name, "none") for name in ("naive_bayes", learner))
    assert one.keys() == other.keys() and one != other
    assert f"| vote | {learner} | 2 | 5 |" in run("table", "--cells").out


def test_what_is_done_is_not_done_again_and_scores_are_kept(run, carried_out, monkeypatch):
    run(*naive_bayes())
    before = all_results()
    assert len(list(Path("accuracy.scores").iterdir())) == len(carried_out) == 10
    monkeypatch.setattr(data, "_made", None)  # no learner is trained any more
    carried_out.clear()
    run(*naive_bayes())
    assert carried_out == [] and all_results() == before
    run(*naive_bayes("isotonic,none,platt"))
    assert {names for _, names in carried_out} == {("isotonic",)}
    assert [row for row in all_results() if row[4] != "isotonic"] == before


def test_only_folds_whose_scores_are_there(run, carried_out):
    said = run(*naive_bayes(SOME, "--only-cached"))
    assert "0 of 0 folds whose scores are there" in said.err
    run(*naive_bayes("none"))
    for path in Path("accuracy.scores").glob("*.0.[1234].pkl"):
        path.unlink()
    carried_out.clear()
    said = run(*naive_bayes(SOME, "--only-cached"))
    assert [cell.fold for cell, _ in carried_out] == [0, 0]
    assert "2 of 2 folds whose scores are there" in said.err


def test_results_are_forgotten_and_measured_again(run, carried_out):
    run(*naive_bayes())
    before = all_results()
    carried_out.clear()
    assert "forgotten: platt, of 10 folds" in run("forget", "--calibrators", "platt").err
    store = work.Results("accuracy.sqlite")
    assert all_results() == [row for row in before if row[4] != "platt"]
    assert {step for _, _, step, _, _ in store.costs()} == {"naive_bayes", "calibrator none"}
    run(*naive_bayes())
    assert {names for _, names in carried_out} == {("platt",)}
    assert all_results() == before


def test_a_calibrator_that_fails_does_not_take_the_others_along(run, monkeypatch):
    def fail(seed):
        raise ValueError("no such thing")

    broken = {**calibrators.CALIBRATORS, "platt": calibrators.Entry(fail)}
    monkeypatch.setattr(work, "ALL", broken)
    said = run(*naive_bayes(), code=1)
    assert said.err.count("failed: ") == 10
    assert "ValueError: no such thing" in said.err
    assert "0 of 10 folds are complete" in said.err
    assert {row[4] for row in all_results()} == {"none"}


def test_dask_gives_the_same(run):
    options = naive_bayes("none,platt,tree", "--datasets", "vote")
    run(*options)
    script = [sys.executable, Path(command.__file__).parents[1] / "accuracy.py"]
    given = [*options, "--store", "dask.sqlite", "--scheduler"]
    with small_cluster() as address:
        from distributed import Client

        # A limit for a program that hangs; on a busy machine it takes minutes.
        said = subprocess.run(
            [*script, *given, address], capture_output=True, encoding="utf-8", timeout=600
        )
        with Client(address) as client:
            modules = client.run(lambda: set(sys.modules))
    assert said.returncode == 0, said.stderr
    assert "5 of 5 folds are complete in dask.sqlite" in said.stderr
    assert all_results("dask.sqlite") == all_results()
    assert len(list(Path("dask.scores").iterdir())) == 5
    assert any("comparison.work" in loaded for loaded in modules.values())


def test_a_scheduler_needs_dask(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    said = run(*naive_bayes(SOME, "--scheduler", "tcp://127.0.0.1:1"), code=1)
    assert said.err == "error: a scheduler needs dask: pip install caltree[dask]\n"
    assert all_results() == []


def test_scores_of_other_data_are_refused(run):
    run(*naive_bayes("none"))
    write_data(Path("data"), n_rows=70)
    data.prepared.cache_clear()
    given = ["--store", "other.sqlite", "--scores", "accuracy.scores"]
    said = run(*naive_bayes("none", *given), code=1)
    assert said.err.count("has the scores of 60 rows, 3 attributes and 2 classes, not 70") == 10
    assert all_results("other.sqlite") == []


def test_data_sets_of_any_name(run):
    write_data(Path("data"), ["zebra", "ant"])
    Path("data/notes.arff.bak").touch()
    assert data.names_in("data") == ("sick", "vote", "ant", "zebra")
    assert "20 of 20 folds" in run(*naive_bayes("none")).err
    assert "10 of 10 folds" in run(*naive_bayes("none", "--datasets", "ant,vote")).err
    said = run(*naive_bayes("none", "--datasets", "ant,bee"), code=1)
    assert "neither" in said.err and "bee.arff.gz" in said.err
    assert set(work.Results("accuracy.sqlite").datasets()) == {"sick", "vote", "ant", "zebra"}


# What is compared


def test_rows_are_capped_always_the_same_way():
    whole = rdg1(30)
    some = data.capped(whole, 20)
    kept = np.sort(np.random.RandomState(1).permutation(30)[:20])
    assert some.X.equals(whole.X.iloc[kept].reset_index(drop=True))
    assert (some.y == whole.y[kept]).all()
    assert data.capped(whole, 30) is whole
    assert [data.most_rows(learner) for learner in ("naive_bayes", "svm")] == [4000, 2000]


def test_mcgrad_is_not_asked_for_many_classes(tmp_path):
    plan = work.Comparison(("vote", "vowel"), ("naive_bayes",), ("none", "mcgrad"), runs=1)
    store = work.Results(tmp_path / "results.sqlite", plan.settings())
    store.add_dataset("vote", Shape(60, 3, 2, "a", ""))
    store.add_dataset("vowel", Shape(60, 3, 11, "b", ""))
    lacking = work.remaining(plan, store)
    assert lacking[Cell("vote", "naive_bayes", 0, 0)] == ("none", "mcgrad")
    assert lacking[Cell("vowel", "naive_bayes", 0, 0)] == ("none",)
    store.add(Cell("vowel", "naive_bayes", 0, 0), {"none": {"rmse": 0.1}}, {})
    assert len(work.remaining(plan, store)) == 9


def test_what_is_not_installed_is_named_before_work_begins(run, monkeypatch):
    monkeypatch.setattr(calibrators, "find_spec", lambda module: None)
    said = run(*naive_bayes("none,mcgrad,venn_abers,logistic"), code=1)
    assert "not installed: mcgrad, venn-abers, probmetrics, numba; run: pip install" in said.err
    given = ["--learners", "gradient_boosting", "--calibrators", "none"]
    assert "not installed: lightgbm" in run("run", "--data-dir", "data", *given, code=1).err
    assert not Path("accuracy.sqlite").exists()


def test_the_forest_gets_the_seed_of_the_fold(run, monkeypatch):
    seeds = []

    class Forest(IdentityCalibrator):
        def __init__(self, *, random_state=None, score_type="auto"):
            super().__init__(score_type=score_type)
            self.random_state = random_state
            if random_state is not None:
                seeds.append(random_state)

    monkeypatch.setattr(calibrators, "CalibrationForest", Forest)
    run(*naive_bayes("forest", "--datasets", "sick"))
    assert seeds == [work.seed_of("sick", 0, fold, 1) for fold in range(5)]


def test_who_trains_the_learner_again_gets_a_fresh_one_of_the_same_seed(run, monkeypatch):
    seeds = []

    def make(seed):
        seeds.append(seed)
        return NaiveBayes()

    learners = {"naive_bayes": make}
    monkeypatch.setattr(data, "LEARNERS", learners)
    monkeypatch.setattr(work, "LEARNERS", learners)
    run(*naive_bayes("none,sklearn_sigmoid", "--datasets", "sick"))
    each = [work.seed_of("sick", 0, fold, 1) for fold in range(5)]
    assert seeds == [seed for seed in each for _ in range(2)]  # for the scores, and again
    rows = data.prepared("sick", "data")
    train, test = outer_folds(rows.y, 0, 5, 1)[3]
    model = CalibratedClassifierCV(NaiveBayes()).fit(rows.X.iloc[train], rows.y[train])
    expected = rmse(rows.y[test], model.predict_proba(rows.X.iloc[test]), labels=model.classes_)
    found = work.Results("accuracy.sqlite").results("sick", "naive_bayes", "sklearn_sigmoid")
    assert found[0, 3] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["run", "--data-dir", "nowhere", "--calibrators", "none"], "nowhere has no data set"),
        (["table"], "accuracy.sqlite does not exist"),
        (["run", "--data-dir", "data", "--calibrators", "nun"], "nun is not among none, platt"),
        (["run", "--data-dir", "data", "--runs", "0"], "0 is not a number of at least 1"),
        (["run", "--data-dir", "data", "--datasets", " ,"], "give at least one name"),
    ],
)
def test_complaints(tmp_path, monkeypatch, capsys, given, complaint):
    monkeypatch.chdir(tmp_path)
    try:
        assert command.main([*given, "--learners", "svm"] if "run" in given else given) == 1
    except SystemExit as error:
        assert error.code == 2
    assert complaint in capsys.readouterr().err
