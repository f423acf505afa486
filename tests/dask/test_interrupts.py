"""A fit that ends early: its tasks are given up, and the client can be used as before."""

import time

import dask.array as da
import numpy as np
import pytest

pytest.importorskip("distributed")

from caltree._histogram import engine
from caltree.dask import CalibrationTree

PATIENCE = 60.0


def make_parts(n_rows, n_parts=4):
    random = np.random.default_rng(0)
    X, scores = random.random((n_rows, 3)), random.random(n_rows)
    y = random.random(n_rows) < np.where(X[:, 0] < 0.5, scores, scores / 2)
    return [
        da.from_array(array, chunks=(n_rows // n_parts, *array.shape[1:]))
        for array in (X, y, scores)
    ]


def tasks_of(client):
    return set(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_fit_that_ends_early_leaves_no_task(client, monkeypatch, error):
    rows = make_parts(2000)
    before = CalibrationTree().fit(*rows).to_dict()
    tasks = tasks_of(client)

    def interrupt(*_):
        raise error

    monkeypatch.setattr(engine, "grow_trees", interrupt)
    with pytest.raises(error) as caught:  # its traceback holds every future of the fit
        CalibrationTree().fit(*rows)
    until = time.monotonic() + PATIENCE
    while tasks_of(client) - tasks and time.monotonic() < until:
        time.sleep(0.05)
    assert not tasks_of(client) - tasks
    assert caught.tb is not None
    monkeypatch.undo()
    assert CalibrationTree().fit(*rows).to_dict() == before


def test_verbose_prints_the_stages(client, capsys):
    rows = make_parts(2000)
    CalibrationTree(verbose=1).fit(*rows)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("[CalibrationTree] put the rows of 4 partitions into bins in ")
    assert lines[1].startswith("[CalibrationTree] grew 6 trees of ")
    assert len(lines) == 4
