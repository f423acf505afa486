"""Work for others: who does it, and with what code."""

import importlib
import os
import sys

import joblib
import pytest

from caltree.paper.workers import workers

from ..support.dask_cluster import small_cluster


@pytest.fixture(scope="module")
def scheduler():
    with small_cluster() as address:
        yield address


def processes():
    """The processes that do eight jobs."""
    return set(joblib.Parallel(n_jobs=1)(joblib.delayed(os.getpid)() for _ in range(8)))


def test_without_a_scheduler_the_work_is_done_here():
    with workers(None):
        assert processes() == {os.getpid()}


def test_the_workers_do_the_work_and_only_inside(scheduler):
    with workers(scheduler):
        found = processes()
    assert os.getpid() not in found and 1 <= len(found) <= 2
    assert processes() == {os.getpid()}


def test_a_package_that_only_we_have_is_sent(scheduler, tmp_path, monkeypatch):
    package = tmp_path / "only_here"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    code = "from . import times\ndef work(n):\n    return times.TWO * n\n"
    (package / "double.py").write_text(code, encoding="utf-8")
    (package / "times.py").write_text("TWO = 2\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    work = importlib.import_module("only_here.double").work
    jobs = [joblib.delayed(work)(n) for n in range(4)]
    monkeypatch.chdir(tmp_path)
    with workers(scheduler, package="only_here"):
        assert joblib.Parallel()(jobs) == [0, 2, 4, 6]
    assert os.listdir(tmp_path) == ["only_here"]


def test_what_fails_there_fails_here(scheduler):
    with pytest.raises(ZeroDivisionError), workers(scheduler):
        joblib.Parallel()(joblib.delayed(divmod)(1, 0) for _ in range(3))


def test_a_scheduler_needs_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(ImportError, match=r"^a scheduler needs dask: pip install caltree\[dask\]$"),
        workers("tcp://127.0.0.1:1"),
    ):
        pass
