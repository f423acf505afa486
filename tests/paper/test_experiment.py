"""The whole experiment: order, parallel work, failures, and going on after being killed."""

import contextlib
import random
import sqlite3
import subprocess
import sys
import sysconfig
import time
from dataclasses import replace
from pathlib import Path

import joblib
import pytest

from caltree.paper import experiment, protocol
from caltree.paper.experiment import Plan, carry_out, remaining, shape_of
from caltree.paper.generators import rdg1
from caltree.paper.protocol import run_fold
from caltree.paper.store import Cell, Store
from tests.support import paper_processes as processes
from tests.support.dask_cluster import small_cluster
from tests.support.paper_data import write_arff, write_data

SCRIPT = Path(sysconfig.get_path("scripts")) / "caltree"


@pytest.fixture
def plan(tmp_path):
    data_dir = str(write_data(tmp_path / "data"))
    return Plan(("vote", "sick"), ("naive_bayes",), ("none", "platt"), 2, 3, 1, data_dir)


@pytest.fixture
def store(tmp_path, plan):
    return Store(tmp_path / "results.sqlite", plan.settings())


@pytest.fixture(autouse=True)
def fresh_cache():
    """Forget data sets that an earlier test has read from the same place."""
    experiment._load.cache_clear()


@pytest.fixture
def carried_out(monkeypatch):
    """The folds that this process carries out, with the calibrators."""
    seen = []

    def spy(data, learner, run, fold, calibrators, **options):
        seen.append((Cell(data.name, learner, run, fold), tuple(calibrators)))
        return run_fold(data, learner, run, fold, calibrators, **options)

    monkeypatch.setattr(experiment, "run_fold", spy)
    return seen


def table(path, name):
    """All rows of a table of the file, as SQLite has them."""
    with contextlib.closing(sqlite3.connect(path, timeout=60)) as db:
        return db.execute(f"SELECT * FROM {name}").fetchall()


# The plan


def test_folds_come_run_by_run():
    plan = Plan(("vote", "sick"), ("svm", "naive_bayes"), ("none",), runs=2, folds=2)
    cells = plan.cells()
    assert cells[:5] == [
        Cell("vote", "svm", 0, 0),
        Cell("vote", "svm", 0, 1),
        Cell("vote", "naive_bayes", 0, 0),
        Cell("vote", "naive_bayes", 0, 1),
        Cell("sick", "svm", 0, 0),
    ]
    assert [cell.run for cell in cells] == [0] * 8 + [1] * 8
    assert len(set(cells)) == 16
    assert plan.settings() == {"folds": "2", "seed": "1"}


def test_a_fold_remains_until_it_has_every_calibrator(plan, store):
    cells = plan.cells()
    assert remaining(plan, store) == cells
    for cell in cells[:3]:
        store.add(cell, {"none": {"rmse": 0.1}}, {})
    assert remaining(plan, store) == cells
    assert remaining(replace(plan, calibrators=("none",)), store) == cells[3:]
    store.add(cells[1], {"platt": {"rmse": 0.1}, "isotonic": {"rmse": 0.1}}, {})
    assert remaining(plan, store) == [cells[0], *cells[2:]]
    assert remaining(replace(plan, runs=1), store) == [cells[0], *cells[2:6]]


def test_a_classifier_alone_needs_no_calibrator(plan, store, carried_out):
    alone = replace(plan, datasets=("vote",), learners=("logistic_model_tree",), runs=1)
    carry_out(alone, store)
    assert carried_out == [(cell, ("none",)) for cell in alone.cells()]
    assert remaining(alone, store) == []
    assert store.done() == {cell: {"none"} for cell in alone.cells()}


# Carrying it out


def test_every_fold_is_carried_out_and_stored(plan, store, carried_out):
    reported = []
    assert carry_out(plan, store, report=reported.append) == []
    assert carried_out == [(cell, ("none", "platt")) for cell in plan.cells()]
    assert [done.cell for done in reported] == plan.cells()
    data = experiment.load("sick", plan.data_dir)
    expected = run_fold(data, "naive_bayes", 1, 2, ["none", "platt"], n_folds=3, seed=1)
    for calibrator in ("none", "platt"):
        for measure in ("rmse", "log_loss", "accuracy"):
            found = store.results("sick", "naive_bayes", calibrator, measure)
            assert found[1, 2] == expected.measures[calibrator][measure]
    steps = ("calibrator none", "calibrator platt", "naive_bayes")
    assert [cost[:5] for cost in table(store.path, "cost")] == [
        (cell.dataset, cell.learner, cell.run, cell.fold, step)
        for cell in sorted(plan.cells())
        for step in steps
    ]
    assert table(store.path, "claim") == []
    assert store.datasets()["sick"] == shape_of(data)


def test_what_is_done_is_not_done_again_and_not_even_read(plan, store, carried_out):
    carry_out(plan, store)
    before = table(store.path, "result")
    carried_out.clear()
    for path in Path(plan.data_dir).iterdir():
        path.unlink()
    experiment._load.cache_clear()
    assert carry_out(plan, store) == []
    assert carried_out == []
    assert table(store.path, "result") == before


def test_a_new_calibrator_adds_only_itself(plan, store, carried_out):
    carry_out(plan, store)
    before = table(store.path, "result")
    carried_out.clear()
    carry_out(replace(plan, calibrators=("isotonic", "none", "platt")), store)
    assert carried_out == [(cell, ("isotonic",)) for cell in plan.cells()]
    after = table(store.path, "result")
    assert [row for row in after if row[4] != "isotonic"] == before
    assert len(after) == len(before) * 3 / 2


def test_a_failing_fold_is_reported_released_and_tried_again(plan, store, monkeypatch):
    good, bad = protocol.CALIBRATORS["platt"], plan.cells()[4]

    def fail():
        raise ValueError("no such thing\nas calibration")

    def carry_out_one(data, learner, run, fold, calibrators, **options):
        is_bad = Cell(data.name, learner, run, fold) == bad
        monkeypatch.setitem(protocol.CALIBRATORS, "platt", fail if is_bad else good)
        return run_fold(data, learner, run, fold, calibrators, **options)

    monkeypatch.setattr(experiment, "run_fold", carry_out_one)
    reported = []
    failures = carry_out(plan, store, report=reported.append)
    assert [failure.cell for failure in failures] == [bad]
    assert failures[0].outcome is None
    assert failures[0].error.startswith("Traceback")
    assert "ValueError: no such thing\nas calibration" in failures[0].error
    assert len(reported) == len(plan.cells()) and failures[0] in reported
    assert remaining(plan, store) == [bad]
    assert bad not in store.done()
    assert table(store.path, "claim") == []
    monkeypatch.setattr(experiment, "run_fold", run_fold)
    monkeypatch.setitem(protocol.CALIBRATORS, "platt", good)
    assert carry_out(plan, store) == []
    assert remaining(plan, store) == []


def test_every_data_set_is_checked_before_any_work(plan, store, carried_out):
    (Path(plan.data_dir) / "sick.arff").unlink()
    with pytest.raises(FileNotFoundError, match=r"neither .*sick\.arff nor sick\.arff\.gz"):
        carry_out(plan, store)
    more = replace(plan, datasets=("vote", "sick", "yeast"))
    with pytest.raises(FileNotFoundError, match=r"missing data sets: sick, yeast; of the first: d"):
        carry_out(more, store)
    (Path(plan.data_dir) / "sick.arff").write_text("no data")
    with pytest.raises(ValueError, match=r"sick\.arff cannot be read as ARFF"):
        carry_out(plan, store)
    assert carried_out == []
    assert store.datasets() == {}


def test_another_copy_of_a_data_set_is_refused(plan, store):
    carry_out(replace(plan, runs=1), store)
    write_arff(Path(plan.data_dir) / "sick.arff", rdg1(60, seed=9))
    experiment._load.cache_clear()
    before = table(store.path, "result")
    with pytest.raises(ValueError, match="has results on another copy of sick"):
        carry_out(plan, store)
    assert table(store.path, "result") == before


def test_a_data_set_is_known_by_every_value():
    data = rdg1(30, n_numeric=1)
    shape = shape_of(data)
    assert (shape.rows, shape.attributes, shape.classes, shape.notes) == (30, 10, 2, "")
    assert shape_of(rdg1(30, n_numeric=1)) == shape
    assert shape_of(replace(data, notes=("One.", "Two."))).notes == "One. Two."
    number, category, label = (rdg1(30, n_numeric=1) for _ in range(3))
    number.X.loc[3, "a0"] += 1e-12
    category.X["a1"] = category.X["a1"].cat.reorder_categories(["true", "false"])
    label.y[0] = "c1" if label.y[0] == "c0" else "c0"
    name = replace(data, X=data.X.rename(columns={"a1": "b1"}))
    prints = [shape_of(each).fingerprint for each in (data, number, category, label, name)]
    assert len(set(prints)) == 5


# Several processes


def test_work_in_parallel_gives_the_same(plan, store, tmp_path):
    carry_out(plan, store)
    parallel = Store(tmp_path / "parallel.sqlite", plan.settings())
    reported = []
    assert carry_out(plan, parallel, n_jobs=2, report=reported.append) == []
    assert sorted(done.cell for done in reported) == sorted(plan.cells())
    assert table(parallel.path, "result") == table(store.path, "result")
    assert table(parallel.path, "claim") == []


def test_what_others_are_at_is_left_alone_and_what_they_finished_is_not_done(
    plan, store, carried_out
):
    first, second, third = plan.cells()[:3]
    busy = processes.PROCESSES.Event(), processes.PROCESSES.Event()
    cell = (first.dataset, first.learner, first.run, first.fold)
    other = processes.start(processes.claim, store.path, cell, *busy)
    assert busy[0].wait(60)
    seen = []

    def report(done):
        # Another process finishes the third fold after the list of folds was made.
        seen.append(done.cell)
        if done.cell == second:
            store.add(third, {"none": {"rmse": 0.1}, "platt": {"rmse": 0.2}}, {})

    carry_out(plan, store, n_jobs=1, report=report)
    assert first not in seen and third not in seen
    assert seen == [second, *plan.cells()[3:]]
    assert [row[:4] for row in table(store.path, "claim")] == [cell]
    busy[1].set()
    processes.finish(other)
    carry_out(plan, store)
    assert [cell for cell, _ in carried_out] == [*seen, first]


def test_two_processes_share_a_file(plan, store, tmp_path):
    carry_out(plan, store)
    shared = tmp_path / "shared.sqlite"
    Store(shared, plan.settings())
    with contextlib.closing(sqlite3.connect(shared)) as db, db:
        # Every insert of a cost is written down, even one that changes nothing.
        db.execute("CREATE TABLE log (dataset, run, fold, step)")
        db.execute(
            "CREATE TRIGGER note BEFORE INSERT ON cost BEGIN "
            "INSERT INTO log VALUES (NEW.dataset, NEW.run, NEW.fold, NEW.step); END"
        )
    both = [processes.start(processes.carry_out, plan, shared) for _ in range(2)]
    for process in both:
        processes.finish(process)
    assert table(shared, "result") == table(store.path, "result")
    log = table(shared, "log")
    assert len(log) == len(set(log)) == len(plan.cells()) * 3
    assert table(shared, "claim") == []


def test_dask_gives_the_same(plan, store, tmp_path):
    carry_out(plan, store)
    elsewhere = Store(tmp_path / "dask.sqlite", plan.settings())
    reported = []
    with small_cluster() as address:
        failures = carry_out(plan, elsewhere, scheduler=address, report=reported.append)
    assert failures == []
    assert len(reported) == len(plan.cells())
    assert table(elsewhere.path, "result") == table(store.path, "result")


def test_a_fold_is_the_work_of_one_worker(plan, store, monkeypatch):
    backends = []

    def spy(*given, **options):
        backends.append(joblib.parallel.get_active_backend()[0])
        return run_fold(*given, **options)

    monkeypatch.setattr(experiment, "run_fold", spy)
    with joblib.parallel_config(backend="threading"):
        carry_out(replace(plan, runs=1), store, n_jobs=2)
    assert {type(backend).__name__ for backend in backends} == {"SequentialBackend"}


def test_a_scheduler_needs_dask(plan, store, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"needs dask: pip install caltree\[dask\]"):
        carry_out(plan, store, scheduler="tcp://127.0.0.1:1")
    assert remaining(plan, store) == plan.cells()


# Being killed

N_KILLS = 10
N_RUNS, N_FOLDS = 24, 4


def command(folder, store):
    """A command whose folds take some hundredths of a second each."""
    options = {
        "--datasets": "vote",
        "--learners": "naive_bayes",
        "--calibrators": "none,platt,isotonic",
        "--runs": N_RUNS,
        "--folds": N_FOLDS,
        "--data-dir": write_data(folder, ["vote"], 40),
        "--store": store,
    }
    return ["paper", "run", *(str(part) for pair in options.items() for part in pair)]


def n_stored(path):
    """The number of folds; none where there is no table yet."""
    try:
        return len(set(row[2:4] for row in table(path, "result")))
    except sqlite3.OperationalError:
        return 0


def wait_until_stored(path, n_folds):
    deadline = time.monotonic() + 600  # on a busy machine, too
    while n_stored(path) < n_folds:
        assert time.monotonic() < deadline, "no progress"
        time.sleep(0.002)


def test_killed_ten_times_it_ends_as_if_it_had_not_been(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed.sqlite", tmp_path / "killed.sqlite"
    script = [SCRIPT, *command(tmp_path / "data", undisturbed)]
    subprocess.run(script, check=True, capture_output=True)
    given = command(tmp_path / "data", killed)
    moments, progress = random.Random(1), []
    for number in range(N_KILLS):
        before = n_stored(killed)
        if number == N_KILLS // 2:  # once as installed; the others start faster
            process = subprocess.Popen([SCRIPT, *given], stderr=subprocess.DEVNULL)
        else:
            process = processes.start(processes.run_command, *given)
        if number % 4:
            wait_until_stored(killed, before + moments.randint(1, 3))
            time.sleep(moments.uniform(0.0, 0.05))
        else:
            time.sleep(moments.uniform(0.0, 0.3))
        processes.kill(process)
        progress.append(n_stored(killed) - before)
    assert sum(map(bool, progress)) >= N_KILLS * 3 // 4
    assert sum(progress) < N_RUNS * N_FOLDS
    done = subprocess.run([SCRIPT, *given], check=True, capture_output=True, encoding="utf-8")
    assert done.stderr.endswith(f"\n96 of 96 folds are in {killed}\n")
    expected = table(undisturbed, "result")
    assert len(expected) == N_RUNS * N_FOLDS * 3 * 6  # calibrators and measures
    assert table(killed, "result") == expected
    assert [row[:5] for row in table(killed, "cost")] == [
        row[:5] for row in table(undisturbed, "cost")
    ]
    assert table(killed, "claim") == []
