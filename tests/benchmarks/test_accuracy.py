"""The benchmark of accuracy: what it computes, keeps, forgets and prints."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from benchmarks.comparison import calibrators, command, data, grid, peers, tables, work
from caltree import IdentityCalibrator
from caltree.metrics import rmse
from caltree.paper.generators import rdg1
from caltree.paper.protocol import run_fold
from caltree.paper.store import Cell, Shape
from tests.support.dask_cluster import small_cluster
from tests.support.paper_data import write_data
from tests.support.trees import make_frame, make_rows

SETS, SOME = ("vote", "sick"), "none,platt"


@pytest.fixture(autouse=True)
def fresh_cache():
    """Forget data sets that an earlier test has read from the same place."""
    data.prepared.cache_clear()


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in a folder that has two small data sets in `data`; returns what it says."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "data", SETS, n_rows=60)

    def run(*given, code=0):
        assert command.main(list(given)) == code
        return capsys.readouterr()

    return run


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


def test_gradient_boosting_is_a_learner_too(run):
    pytest.importorskip("lightgbm")
    given = ["--datasets", "vote", "--learners", "naive_bayes,gradient_boosting", "--runs", "1"]
    said = run("run", "--data-dir", "data", *given, "--calibrators", "none,platt,isotonic,tree")
    assert "10 of 10 folds are complete in accuracy.sqlite" in said.err
    learners = ("naive_bayes", "gradient_boosting")
    store = work.Results("accuracy.sqlite")
    one, other = (store.results("vote", learner, "none") for learner in learners)
    assert one.keys() == other.keys() and one != other
    assert "| vote | gradient_boosting | 2 | 5 |" in run("table", "--cells").out


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

        said = subprocess.run(
            [*script, *given, address], capture_output=True, encoding="utf-8", timeout=120
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
    write_data(Path("data"), SETS, n_rows=70)
    data.prepared.cache_clear()
    given = ["--store", "other.sqlite", "--scores", "accuracy.scores"]
    said = run(*naive_bayes("none", *given), code=1)
    assert said.err.count("has the scores of 60 rows, 3 attributes and 2 classes, not 70") == 10
    assert all_results("other.sqlite") == []


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
    said = run(*naive_bayes("none,mcgrad,venn_abers"), code=1)
    assert "not installed: mcgrad, venn-abers; run: pip install --group benchmark" in said.err
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


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (["run", "--data-dir", "nowhere", "--calibrators", "none"], "nowhere has no data set"),
        (["table"], "accuracy.sqlite does not exist"),
        (["run", "--data-dir", "data", "--calibrators", "nun"], "nun is not among none, platt"),
        (["run", "--data-dir", "data", "--runs", "0"], "0 is no number from 1 on"),
    ],
)
def test_complaints(tmp_path, monkeypatch, capsys, given, complaint):
    monkeypatch.chdir(tmp_path)
    try:
        assert command.main([*given, "--learners", "svm"] if "run" in given else given) == 1
    except SystemExit as error:
        assert error.code == 2
    assert complaint in capsys.readouterr().err


# The peers


def test_temperature_scaling_finds_the_best_temperature():
    _, y, scores = make_rows(400)
    odds = np.log(scores[:, 1] / scores[:, 0])
    wrong = np.where(y == 1, -odds, odds)
    best = minimize_scalar(
        lambda slope: np.logaddexp(0, wrong * slope).mean(), bounds=(0, 10), method="bounded"
    ).x
    for given, kind in ((scores, "probability"), (odds[:, np.newaxis], "margin")):
        peer = peers.TemperatureScaling(score_type=kind).fit(None, y, given)
        found = peer.predict_proba(None, given)
        np.testing.assert_allclose(found[:, 1], expit(best * odds), atol=1e-3)


def test_temperature_scaling_of_many_classes_some_of_one_row():
    _, y, scores = make_rows(60, n_classes=3)
    y = np.where(y == 2, 1, y)
    y[0] = 2
    found = peers.TemperatureScaling(score_type="probability").fit(None, y, scores)
    assert (found.predict_proba(None, scores).argmax(axis=1) == scores.argmax(axis=1)).all()


def test_beta_calibration_of_two_classes_and_of_many():
    betacal = pytest.importorskip("betacal")
    _, y, scores = make_rows(300)
    peer = peers.BetaCalibration().fit(None, y, scores)
    theirs = betacal.BetaCalibration(parameters="abm").fit(scores[:, 1], y).predict(scores[:, 1])
    np.testing.assert_array_equal(peer.predict_proba(None, scores)[:, 1], theirs)
    _, y, scores = make_rows(300, n_classes=3)
    found = peers.BetaCalibration().fit(None, y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert rmse(y, found) < rmse(y, scores)


def test_venn_abers_of_equal_scores_by_hand():
    if find_spec("venn_abers") is None:  # not imported here, which would silence NumPy
        pytest.skip("venn-abers is not installed")
    before = np.geterr()
    y = np.array(["no"] * 7 + ["yes"] * 3)
    peer = peers.VennAbers(score_type="margin").fit(None, y, np.zeros((10, 1)))
    # With a row more, 3 or 4 of 11 are "yes".
    second = (4 / 11) / (1 - 3 / 11 + 4 / 11)
    expected = [[1 - second, second]]
    np.testing.assert_allclose(peer.predict_proba(None, np.zeros((1, 1))), expected)
    assert np.geterr() == before
    _, y, scores = make_rows(300, n_classes=3)
    found = peers.VennAbers().fit(None, y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert rmse(y, found) < rmse(y, scores)


def test_mcgrad_sees_categories_numbers_and_what_is_missing(capfd):
    pytest.importorskip("mcgrad")
    frame, y, scores = make_frame(1200)
    frame = frame[["number", "size"]].assign(colour=frame["colour"].astype("category"))
    assert frame.isna().any().all()
    peer = peers.MCGrad(random_state=3).fit(frame, y, scores)
    found = peer.predict_proba(frame, scores)
    assert rmse(y, found) < rmse(y, scores) - 0.05
    again = peers.MCGrad(random_state=3).fit(frame, y, scores).predict_proba(frame, scores)
    np.testing.assert_array_equal(found, again)
    names = {"red": "blue", "green": "red", "blue": "green"}
    swapped = frame.assign(colour=frame["colour"].cat.rename_categories(names))
    assert not np.array_equal(found, peer.predict_proba(swapped, scores))
    assert capfd.readouterr() == ("", "")


# The tables

MEANS = {
    "vote": {"none": 0.30, "platt": 0.25, "mcgrad": 0.10, "tree": 0.25},
    "vowel": {"none": 0.20, "platt": 0.30, "tree": 0.21},
}
WHOLE_RUNS = [(run, fold) for run in range(2) for fold in range(5)]


@pytest.fixture
def store(tmp_path):
    """Two runs, and the first fold of a third; the tree is never quite as steady as the others."""
    plan = work.Comparison(("vote", "vowel"), ("svm",), ("none",))
    store = work.Results(tmp_path / "results.sqlite", plan.settings())
    store.add_dataset("vote", Shape(60, 3, 2, "a", ""))
    store.add_dataset("vowel", Shape(60, 3, 11, "b", ""))
    for dataset, means in MEANS.items():
        for run_, fold in [*WHOLE_RUNS, (2, 0)]:
            found = {name: {"rmse": mean + 0.001 * fold} for name, mean in means.items()}
            found["tree"]["rmse"] += 0.001 * (fold - 2) + run_ // 2
            store.add(Cell(dataset, "svm", run_, fold), found, {"calibrator tree": fold})
    return store


def table_of(store, title, runs=None):
    [table] = [each for each in tables.all_tables(store, "rmse", runs) if each.title == title]
    return [list(row) for row in table.rows]


def test_wins_draws_and_losses_on_whole_runs(store):
    # The differences from platt on vote are -0.002 to 0.002, and 0 in the mean.
    assert table_of(store, "tree against the others, by RMSE") == [
        ["none", 1, 0, 1, "50%", 2, 0],
        ["platt", 1, 1, 0, "100%", 2, 0],
        ["mcgrad", 0, 0, 1, "0%", 1, 0],
    ]
    rows = table_of(store, "tree against the others, by RMSE", runs=2)
    assert [row[-2:] for row in rows] == [[2, 2], [2, 2], [1, 1]]
    assert tables.all_tables(store, "rmse", 3)[0].rows == []


def test_a_cell_counts_with_the_runs_that_both_have(store):
    cells = [Cell("vote", "svm", run, fold) for run in range(2) for fold in range(5)]
    for cell in cells[:8]:
        store.add(cell, {"isotonic": {"rmse": 0.5}}, {})
    [pair] = grid.compared(grid.read(store, "rmse"), "isotonic", "none")
    assert (pair.place, pair.n_runs, pair.mine, pair.other) == (("vote", "svm"), 1, 0.5, 0.302)
    assert table_of(store, "Mean ranks: cells of two classes, all calibrators")[0][0] == "mcgrad"
    for cell in cells[8:]:
        store.add(cell, {"isotonic": {"rmse": 0.5}}, {})
    assert grid.compared(grid.read(store, "rmse"), "isotonic", "none")[0].n_runs == 2
    assert grid.compared(grid.read(store, "rmse", 1), "isotonic", "none")[0].n_runs == 1


def test_mean_ranks(store):
    assert table_of(store, "Mean ranks: cells of two classes, all calibrators") == [
        ["mcgrad", 1.0, 1, "0.1020"],
        ["platt", 2.5, 0, "0.2520"],
        ["tree", 2.5, 0, "0.2520"],
        ["none", 4.0, 0, "0.3020"],
    ]
    title = "Mean ranks: all cells, the calibrators that know many classes"
    assert table_of(store, title) == [
        ["tree", 1.75, 0, "0.2320"],
        ["none", 2.0, 1, "0.2520"],
        ["platt", 2.25, 0, "0.2770"],
    ]
    store.forget(["mcgrad"])
    assert table_of(store, "Mean ranks: cells of two classes, all calibrators") == [
        ["platt", 1.5, 0, "0.2520"],
        ["tree", 1.5, 0, "0.2520"],
        ["none", 3.0, 0, "0.3020"],
    ]


def test_losses_and_what_is_worse_than_none(store):
    losses = table_of(store, "Significant losses")
    assert [row[:6] + row[7:] for row in losses] == [
        ["tree", "vowel", "svm", "none", "0.2120", "0.2020", 2],
        ["tree", "vote", "svm", "mcgrad", "0.2520", "0.1020", 2],
    ]
    # Ten differences of mean 0.01 and deviation 0.001 sqrt(20 / 9): t is 0.01 / (0.001491 x
    # sqrt(1 / 10 + 1 / 4)) = 11.34 at 9 degrees of freedom.
    assert losses[0][6] == "1.2e-06"
    assert table_of(store, "More than 1% worse than no calibration") == [
        ["tree", "vowel", "svm", "+5.0%", "0.2120", "0.2020", "1.2e-06", 2]
    ]


def test_what_there_is(store):
    rows = table_of(store, "What there is")
    assert rows[-1] == ["tree", 2, 0, 22, pytest.approx(40 / 22), pytest.approx(20 / 11)]
    assert [row[:4] for row in rows[:3]] == [
        ["none", 2, 0, 22],
        ["platt", 2, 0, 22],
        ["mcgrad", 1, 0, 11],
    ]


def test_tables_are_printed_and_nothing_to_show_is_no_error(run, store):
    given = ["--store", str(store.path)]
    said = run("table", *given).out
    assert said.count("**") == 12
    assert "| platt | 1 | 1 | 0 | 100% | 2 | 0 |" in said
    cells = run("table", *given, "--cells", "--runs", "2").out
    assert "| vowel | svm | 11 | 10 | 0.2020 | 0.3020 |  | 0.2120 |" in cells
    run("forget", *given, "--calibrators", "none,platt,mcgrad,tree")
    assert "No significant losses" in run("table", *given, "--measure", "log_loss").out
