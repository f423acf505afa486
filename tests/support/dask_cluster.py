"""A Dask cluster on this machine."""

import os
from contextlib import contextmanager, suppress

import pytest


@contextmanager
def small_cluster():
    """The address of two workers, each a process of its own; joblib would not bother with one."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("distributed")
    from distributed import LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    try:
        yield cluster.scheduler_address
    finally:
        # On a busy machine the workers may take longer to end than Dask waits for them.
        with suppress(TimeoutError):
            cluster.close()
