"""The file of results: whole transactions, claims of processes, and what is refused."""

import os
import socket
import sqlite3
import time

import numpy as np
import pytest

from caltree.paper.store import Cell, Shape, Store, pair_folds
from tests.support import paper_processes as processes

psutil = pytest.importorskip("psutil")

CELL = Cell("vote", "svm", 0, 3)
SHAPE = Shape(435, 16, 2, "abc", "A note.")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


@pytest.fixture
def store(path):
    return Store(path, {"folds": "10", "seed": "1"})


def raw(path, query, *given):
    with sqlite3.connect(path) as db:
        rows = db.execute(query, given).fetchall()
    db.close()
    return rows


# Results


def test_what_is_added_is_found(store, path):
    store.add(CELL, {"pct": {"rmse": 0.1, "accuracy": 0.9}, "none": {"rmse": 1 / 3}}, {"svm": 2.5})
    store.add(Cell("vote", "svm", 1, 0), {"pct": {"rmse": 0.3}}, {"svm": 1.5, "calibrator pct": 4})
    store.add(Cell("vote", "svm", 0, 10), {"pct": {"rmse": 0.2}}, {})
    again = Store(path)
    assert again.results("vote", "svm", "pct") == {(0, 3): 0.1, (0, 10): 0.2, (1, 0): 0.3}
    assert list(again.results("vote", "svm", "pct")) == [(0, 3), (0, 10), (1, 0)]
    assert again.results("vote", "svm", "pct", "accuracy") == {(0, 3): 0.9}
    assert again.results("vote", "svm", "none") == {(0, 3): 1 / 3}
    assert again.results("vote", "naive_bayes", "pct") == again.results("sick", "svm", "pct") == {}
    assert again.done() == {
        CELL: {"pct", "none"},
        Cell("vote", "svm", 1, 0): {"pct"},
        Cell("vote", "svm", 0, 10): {"pct"},
    }
    assert again.calibrators_of(CELL) == {"pct", "none"}
    assert again.calibrators_of(Cell("vote", "svm", 7, 7)) == set()
    assert again.costs() == [
        ("vote", "svm", "calibrator pct", 4.0, 1),
        ("vote", "svm", "svm", 2.0, 2),
    ]


def test_a_result_that_is_there_stays(store):
    store.add(CELL, {"pct": {"rmse": 0.1}}, {"svm": 1.0})
    store.add(CELL, {"pct": {"rmse": 0.2}, "none": {"rmse": 0.3}}, {"svm": 9.0})
    assert store.results("vote", "svm", "pct") == {(0, 3): 0.1}
    assert store.results("vote", "svm", "none") == {(0, 3): 0.3}
    assert store.costs() == [("vote", "svm", "svm", 1.0, 1)]


def test_a_fold_is_there_with_all_of_its_results_or_not_at_all(store, path):
    assert store.claim(CELL)
    # SQLite makes NULL of NaN, which its table does not allow.
    with pytest.raises(OSError, match=r"NOT NULL constraint failed: result\.value"):
        store.add(CELL, {"pct": {"rmse": 0.1}, "none": {"rmse": np.nan}}, {"svm": 1.0})
    assert (store.done(), store.costs()) == ({}, [])
    with pytest.raises(OSError, match=r"NOT NULL constraint failed: cost\.seconds"):
        store.add(CELL, {"pct": {"rmse": 0.1}}, {"svm": np.nan})
    assert (store.done(), store.costs()) == ({}, [])
    assert len(raw(path, "SELECT * FROM claim")) == 1


def test_folds_of_complete_runs_are_paired():
    one = {(run, fold): run + fold / 10 for run in range(3) for fold in range(2)}
    other = {key: -value for key, value in reversed(one.items()) if key != (1, 0)} | {(9, 0): 1.0}
    first, second = pair_folds(one, other, 2)
    assert first.tolist() == [0.0, 0.1, 2.0, 2.1]
    assert second.tolist() == [-0.0, -0.1, -2.0, -2.1]
    assert [len(part) for part in pair_folds(one, other, 3)] == [0, 0]


def test_processes_may_write_at_the_same_time(store, path):
    barrier = processes.PROCESSES.Barrier(2)
    learners = ("svm", "naive_bayes")
    writers = [processes.start(processes.add, path, name, 200, barrier) for name in learners]
    for writer in writers:
        processes.finish(writer)
    assert len(store.done()) == 400
    for learner in learners:
        values = list(store.results("vote", learner, "pct").values())
        assert values == [number / 7 for number in range(200)]
    assert [row[3:] for row in store.costs()] == [(0.5, 200)] * 2


# Claims


def test_a_fold_that_is_added_is_given_back(store, path):
    other = Cell("vote", "svm", 0, 4)
    assert store.claim(CELL) and store.claim(other)
    store.add(CELL, {"pct": {"rmse": 0.1}}, {})
    assert [row[:4] for row in raw(path, "SELECT * FROM claim")] == [("vote", "svm", 0, 4)]
    store.release(other)
    assert raw(path, "SELECT * FROM claim") == []


def test_a_process_may_claim_again_what_is_its_own(store, path):
    assert store.claim(CELL)
    assert Store(path).claim(CELL)
    assert len(raw(path, "SELECT * FROM claim")) == 1


def test_a_fold_belongs_to_a_living_process_and_to_no_dead_one(store, path):
    ready, go = processes.PROCESSES.Event(), processes.PROCESSES.Event()
    cell = ("vote", "svm", 0, 3)
    holder = processes.start(processes.claim, path, cell, ready, go)
    assert ready.wait(60)
    assert not store.claim(CELL)
    assert raw(path, "SELECT process FROM claim") == [(holder.pid,)]
    assert store.claim(Cell("vote", "svm", 0, 4))
    processes.kill(holder)
    assert store.claim(CELL)
    assert raw(path, "SELECT process FROM claim WHERE fold = 3") == [(os.getpid(),)]


def test_a_fold_is_taken_over_from_a_process_that_nobody_has_buried(store, path):
    child = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ)
    try:
        born = psutil.Process(child).create_time()
        put_claim(path, process=child, born=born)
        assert not store.claim(CELL)
        os.kill(child, 9)
        while psutil.Process(child).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)
        assert store.claim(CELL)
    finally:
        os.waitpid(child, 0)


def put_claim(path, *, host=None, process=None, born=0.0, since=0.0):
    host, process = host or socket.gethostname(), process or os.getppid()
    raw(
        path,
        "INSERT OR REPLACE INTO claim VALUES ('vote', 'svm', 0, 3, ?, ?, ?, ?)",
        *(host, process, born, since),
    )


def test_a_number_that_belongs_to_another_process_by_now_is_no_claim(store, path):
    born = psutil.Process(os.getppid()).create_time()
    put_claim(path, born=born)
    assert not store.claim(CELL)
    put_claim(path, born=born + 0.5)  # the clock has been set a little
    assert not store.claim(CELL)
    put_claim(path, born=born - 60)
    assert store.claim(CELL)


def test_a_claim_of_another_machine_holds_for_a_day(store, path):
    put_claim(path, host="elsewhere", since=time.time() - 80_000)
    assert not store.claim(CELL)
    put_claim(path, host="elsewhere", since=time.time() - 90_000)
    assert store.claim(CELL)


# Settings and data sets


def test_settings_are_kept_and_others_are_refused(store, path):
    assert Store(path).settings() == {"folds": "10", "seed": "1"}
    assert Store(path, {"seed": "1", "folds": "10"}).settings() == store.settings()
    with pytest.raises(ValueError, match=r"results\.sqlite was made with folds = 10, not 5; use"):
        Store(path, {"folds": "5", "colour": "red"})
    assert Store(path).settings() == {"folds": "10", "seed": "1"}


def test_results_on_another_copy_of_a_data_set_are_refused(store, path):
    store.add_dataset("vote", SHAPE)
    Store(path).add_dataset("vote", SHAPE)
    store.add_dataset("sick", Shape(3, 2, 2, "def", ""))
    with pytest.raises(ValueError, match=r"another copy of vote \(435 rows, 16 .*, not 434 and 16"):
        store.add_dataset("vote", Shape(434, 16, 2, "xyz", ""))
    assert store.datasets() == {"sick": Shape(3, 2, 2, "def", ""), "vote": SHAPE}


# Files


def test_a_file_that_does_not_exist_is_not_made_without_settings(path):
    with pytest.raises(FileNotFoundError, match=r"results\.sqlite does not exist; run the exp"):
        Store(path)
    assert not path.exists()


@pytest.mark.parametrize("settings", [None, {"folds": "10"}])
def test_other_files_are_refused_and_left_alone(path, settings):
    raw(path, "CREATE TABLE recipe (name TEXT)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"results\.sqlite is not a file of results; use another"):
        Store(path, settings)
    assert path.read_bytes() == before


@pytest.mark.parametrize("settings", [None, {"folds": "10"}])
def test_a_version_that_is_not_known_is_refused(store, path, settings):
    raw(path, "PRAGMA user_version = 2")
    with pytest.raises(ValueError, match="has version 2 of the format and only version 1 is known"):
        Store(path, settings)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("text", None),
        ("text", {"folds": "10"}),
        ("folder", None),
        ("folder", {"folds": "10"}),
        ("no folder", {"folds": "10"}),
    ],
)
def test_what_sqlite_cannot_use_is_refused_in_one_line(tmp_path, kind, settings):
    path = tmp_path / "there"
    if kind == "text":
        path.write_text("data set, rmse\n" * 100)
    elif kind == "folder":
        path.mkdir()
    else:
        path = path / "results.sqlite"
    with pytest.raises(OSError) as raised:
        Store(path, settings)
    message = str(raised.value)
    assert message.startswith(f"cannot use {path} as a file of results: ") and "\n" not in message


def test_an_empty_file_becomes_a_file_of_results_if_there_are_settings(path):
    path.touch()
    with pytest.raises(ValueError, match="is not a file of results"):
        Store(path)
    assert path.read_bytes() == b""
    assert Store(path, {"folds": "10"}).settings() == {"folds": "10"}


def test_a_file_that_cannot_be_written_can_be_read(store, path):
    store.add(CELL, {"pct": {"rmse": 0.1}}, {})
    content = bytearray(path.read_bytes())
    content[18] = 3  # the version needed to write; SQLite knows 1 and 2
    path.write_bytes(content)
    assert Store(path).results("vote", "svm", "pct") == {(0, 3): 0.1}
    for change in (
        lambda: Store(path, {"folds": "10"}),
        lambda: Store(path).add(CELL, {}, {}),
        lambda: Store(path).claim(CELL),
    ):
        with pytest.raises(OSError, match=r"cannot use .*results\.sqlite.*: .*readonly"):
            change()


def test_a_file_with_a_strange_name_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Store(":memory:", {"folds": "10"}).add(CELL, {"pct": {"rmse": 0.1}}, {})
    assert Store(tmp_path / ":memory:").done() == {CELL: {"pct"}}
