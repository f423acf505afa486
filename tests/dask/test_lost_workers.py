"""Workers that are lost do not change the tree."""

import os
import signal

import dask.array as da
import numpy as np
import pytest

from caltree import CalibrationTree
from caltree.dask import CalibrationTree as DaskTree
from caltree.dask import pool
from caltree.dask.pool import DaskPool

from ..support.dask_rows import QUICK
from ..support.default_trees import fitted
from ..support.trees import make_rows

PARAMS = {**QUICK, "max_depth": 2}
N_ROWS = 600


@pytest.fixture(scope="module")
def local():
    return CalibrationTree(tree_method="hist", **PARAMS).fit(*make_rows(N_ROWS))


def some_rows(which, block_info):
    """Rows that can be made again wherever they are wanted."""
    begin, end = block_info[None]["array-location"][0]
    return make_rows(N_ROWS)[which][begin:end]


def collections(make=some_rows):
    sizes = (150, 150, 300)
    return [
        da.map_blocks(make, which, chunks=(sizes, *shape), dtype=dtype, meta=np.empty(0, dtype))
        for which, (shape, dtype) in enumerate([((3,), float), ((), int), ((2,), float)])
    ]


def test_with_all_that_it_knew(client, local, monkeypatch):
    run_round, rounds = DaskPool._run_round, []

    def lose_a_worker(chunks, running):
        rounds.append(running)
        if len(rounds) == 3:
            # By now every row has gone some way through the trees. The programs run on the worker
            # of the first address.
            os.kill(min(client.run(os.getpid).items())[1], signal.SIGKILL)
        return run_round(chunks, running)

    monkeypatch.setattr(DaskPool, "_run_round", lose_a_worker)
    monkeypatch.setattr(pool, "_ROUNDS_AHEAD", 1)
    before = set(client.run(os.getpid).values())
    tree = DaskTree(**PARAMS).fit(*collections())
    client.wait_for_workers(2)
    after = set(client.run(os.getpid).values())
    assert len(before & after) == 1
    assert len(rounds) > 3
    assert fitted(tree) == fitted(local)


def test_while_it_reads_rows(client, local, tmp_path):
    def fatal_rows(which, block_info):
        killed = tmp_path / "killed"
        if block_info[None]["chunk-location"][0] == 1 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return some_rows(which, block_info)

    tree = DaskTree(**PARAMS).fit(*collections(fatal_rows))
    client.wait_for_workers(2)
    assert (tmp_path / "killed").exists()
    assert fitted(tree) == fitted(local)
