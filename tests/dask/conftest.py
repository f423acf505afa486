"""One cluster for all tests here that ask for a client."""

import pytest

from ..support.dask_cluster import small_cluster


@pytest.fixture(scope="session")
def scheduler():
    with small_cluster() as address:
        yield address


@pytest.fixture(scope="module")
def client(scheduler):
    from distributed import Client

    with Client(scheduler) as client:
        yield client
