"""Databases to run SQL in: those of this process, and a PostgreSQL server of our own."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


class Sqlite:
    """SQLite in memory."""

    dialect = "sqlite"

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")
        try:
            self.connection.execute("SELECT exp(1.0), ln(1.0)")
        except sqlite3.OperationalError:
            # Built without mathematical functions; the guide says what to do.
            self.connection.create_function("exp", 1, _or_null(np.exp), deterministic=True)
            self.connection.create_function("ln", 1, _or_null(np.log), deterministic=True)

    def store(self, name, table, types=None):
        """Make a table of a data frame."""
        names = ", ".join(map(_quoted, table.columns))
        self.connection.execute(f"CREATE TABLE {_quoted(name)} ({names})")
        marks = ", ".join("?" * table.shape[1])
        self.connection.executemany(
            f"INSERT INTO {_quoted(name)} VALUES ({marks})", _rows_of(table)
        )

    def run(self, query):
        """The rows of a query."""
        return self.connection.execute(query).fetchall()


class DuckDB:
    """DuckDB in memory."""

    dialect = "duckdb"

    def __init__(self):
        import duckdb

        self.connection = duckdb.connect(config={"threads": 1})

    def store(self, name, table, types=None):
        """Make a table of a data frame."""
        self.connection.register("frame", table)
        self.connection.execute(f"CREATE TABLE {_quoted(name)} AS SELECT * FROM frame")
        self.connection.unregister("frame")

    def run(self, query):
        """The rows of a query."""
        return self.connection.execute(query).fetchall()


class PostgreSQL:
    """A server of our own."""

    dialect = "postgresql"

    def __init__(self, folder):
        import psycopg

        self.connection = psycopg.connect(host=folder, user="caltree", dbname="postgres")
        self.connection.autocommit = True
        # To compile a long expression takes much longer than to run it, as the guide says.
        self.connection.execute("SET jit = off")

    def store(self, name, table, types=None):
        """Make a temporary table of a data frame."""
        columns = ", ".join(
            f"{_quoted(column)} {(types or {}).get(column, _postgres_type(table[column]))}"
            for column in table.columns
        )
        cursor = self.connection.cursor()
        cursor.execute(f"CREATE TEMPORARY TABLE {_quoted(name)} ({columns})")
        with cursor.copy(f"COPY {_quoted(name)} FROM STDIN") as copy:
            for row in _rows_of(table):
                copy.write_row(row)

    def run(self, query):
        """The rows of a query."""
        return self.connection.execute(query).fetchall()


@contextmanager
def postgresql_server():
    """A PostgreSQL server behind a socket in a folder of its own, run by an ordinary user."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        missing = "PostgreSQL is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    binaries = programs[-1].parent
    user = _ordinary_user()
    # Short, for the name of a socket has a limit.
    folder = Path(tempfile.mkdtemp(prefix="caltree-", dir="/tmp"))
    data = folder / "data"
    try:
        if user is not None:
            import pwd  # there are users, so that this is not Windows

            shutil.chown(folder, user, pwd.getpwnam(user).pw_gid)
        initialise = [binaries / "initdb", "-D", data, "-U", "caltree", "-A", "trust"]
        _run([*initialise, "-E", "UTF8", "--locale=C", "--no-sync"], user)
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        start = [binaries / "pg_ctl", "-D", data, "-w", "-o", options, "-l", folder / "log"]
        _run([*start, "start"], user)
        try:
            yield str(folder)
        finally:
            _run([binaries / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop"], user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(command, user):
    subprocess.run(
        [str(part) for part in command],
        user=user,
        extra_groups=None if user is None else [],
        cwd="/",
        check=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )


def _ordinary_user():
    """Whom PostgreSQL can run as, or None for whoever we are: it refuses to be root."""
    if os.name != "posix" or os.geteuid() != 0:
        return None
    import pwd

    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _or_null(function):
    return lambda value: None if value is None else float(function(value))


def _quoted(name):
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _rows_of(table):
    plain = [column.astype(object).where(column.notna(), None) for _, column in table.items()]
    return zip(*plain, strict=True)


def _postgres_type(column):
    if pd.api.types.is_bool_dtype(column.dtype):
        return "boolean"
    if pd.api.types.is_integer_dtype(column.dtype):
        return "integer"
    return "double precision" if pd.api.types.is_float_dtype(column.dtype) else "text"
