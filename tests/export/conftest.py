"""The databases that SQL is run in."""

import pytest

from ..support.databases import DuckDB, PostgreSQL, Sqlite, postgresql_server


@pytest.fixture(scope="session")
def postgresql_folder():
    with postgresql_server() as folder:
        yield folder


@pytest.fixture(params=["duckdb", "postgresql", "sqlite"])
def database(request):
    """An empty database of each kind."""
    if request.param == "duckdb":
        pytest.importorskip("duckdb")
        opened = DuckDB()
    elif request.param == "sqlite":
        opened = Sqlite()
    else:
        opened = PostgreSQL(request.getfixturevalue("postgresql_folder"))
    yield opened
    opened.connection.close()
