"""A Dask cluster on this machine."""

import os
from contextlib import contextmanager

import pytest


@contextmanager
def small_cluster():
    """The address of two workers, each a process of its own; joblib would not bother with one."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("distributed")
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster.scheduler_address
