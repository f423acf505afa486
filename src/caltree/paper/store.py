"""The results of the experiments, in one SQLite file that survives being killed at any moment."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_APPLICATION_ID = 0x63616C74  # "calt": says what kind of SQLite file it is
_VERSION = 1
_SECONDS_TO_WAIT = 60.0
# Another machine's process cannot be asked whether it lives; after a day it is taken for dead.
_SECONDS_OF_A_CLAIM = 86_400.0
# The beginning of a process moves a little when the clock is set.
_SECONDS_OF_CLOCK = 2.0

_SCHEMA = """
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE dataset (
    name TEXT PRIMARY KEY, rows INTEGER NOT NULL, attributes INTEGER NOT NULL,
    classes INTEGER NOT NULL, fingerprint TEXT NOT NULL, notes TEXT NOT NULL
);
CREATE TABLE result (
    dataset TEXT NOT NULL, learner TEXT NOT NULL, run INTEGER NOT NULL, fold INTEGER NOT NULL,
    calibrator TEXT NOT NULL, measure TEXT NOT NULL, value REAL NOT NULL,
    PRIMARY KEY (dataset, learner, run, fold, calibrator, measure)
) WITHOUT ROWID;
CREATE TABLE cost (
    dataset TEXT NOT NULL, learner TEXT NOT NULL, run INTEGER NOT NULL, fold INTEGER NOT NULL,
    step TEXT NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (dataset, learner, run, fold, step)
) WITHOUT ROWID;
CREATE TABLE claim (
    dataset TEXT NOT NULL, learner TEXT NOT NULL, run INTEGER NOT NULL, fold INTEGER NOT NULL,
    host TEXT NOT NULL, process INTEGER NOT NULL, born REAL NOT NULL, since REAL NOT NULL,
    PRIMARY KEY (dataset, learner, run, fold)
) WITHOUT ROWID;
"""
Measures: TypeAlias = Mapping[str, Mapping[str, float]]
"""By calibrator and name."""

_IS_CELL = "dataset = ? AND learner = ? AND run = ? AND fold = ?"


@dataclass(frozen=True, order=True)
class Cell:
    """One fold of one run of one learner on one data set."""

    dataset: str
    learner: str
    run: int
    fold: int


@dataclass(frozen=True)
class Shape:
    """The size of a data set and a fingerprint of its values, when it was used."""

    rows: int
    attributes: int
    classes: int
    fingerprint: str
    notes: str


class Store:
    """A file of results.

    Every change is one transaction, so that a fold is there with all of its results or not at
    all. Processes that share the file share the work: a fold that one of them has claimed is left
    alone by the others, until its process is gone.

    All results have the same settings, e.g. the number of folds: a file with others is refused
    (ValueError), and one that does not exist is made. Without settings a file is only read, unless
    something is added. An OSError says that it cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, str] | None = None):
        self.path = Path(path)
        if settings is not None:
            with self._transaction() as db:
                self._prepare(db, settings)
        elif not self.path.exists():
            raise FileNotFoundError(f"{self.path} does not exist; run the experiments first")
        else:
            with self._connection() as db:
                if not self._is_ours(db):
                    raise ValueError(f"{self.path} is not a file of results; use another name")

    def settings(self) -> dict[str, str]:
        """The settings that all results have in common."""
        return dict(self._all("SELECT name, value FROM setting"))

    def add_dataset(self, name: str, shape: Shape) -> None:
        """Store the shape of a data set; results on another copy of it are refused."""
        found = self.datasets().get(name)
        if found is None:
            with self._transaction() as db:
                row = (name, *astuple(shape))
                insert = "INSERT INTO dataset VALUES (?, ?, ?, ?, ?, ?)"
                db.execute(f"{insert} ON CONFLICT DO NOTHING", row)
            found = self.datasets()[name]
        if found.fingerprint != shape.fingerprint:
            raise ValueError(
                f"{self.path} has results on another copy of {name} ({found.rows} rows, "
                f"{found.attributes} attributes, not {shape.rows} and {shape.attributes}, or other "
                "values); use another file"
            )

    def datasets(self) -> dict[str, Shape]:
        """The data sets that have been used."""
        rows = self._all("SELECT * FROM dataset ORDER BY name")
        return {name: Shape(*rest) for name, *rest in rows}

    def done(self) -> dict[Cell, set[str]]:
        """The folds that have results, and of which calibrators."""
        found: dict[Cell, set[str]] = {}
        columns = "dataset, learner, run, fold, calibrator"
        for *key, calibrator in self._all(f"SELECT DISTINCT {columns} FROM result"):
            found.setdefault(Cell(*key), set()).add(calibrator)
        return found

    def calibrators_of(self, cell: Cell) -> set[str]:
        """The calibrators that have results on a fold."""
        query = f"SELECT DISTINCT calibrator FROM result WHERE {_IS_CELL}"
        return {calibrator for (calibrator,) in self._all(query, astuple(cell))}

    def claim(self, cell: Cell) -> bool:
        """Take a fold, unless a living process has it."""
        mine = _this_process()
        with self._transaction() as db:
            held = db.execute(
                f"SELECT host, process, born, since FROM claim WHERE {_IS_CELL}", astuple(cell)
            ).fetchone()
            if held is not None and held[:3] != mine and _is_alive(*held):
                return False
            row = (*astuple(cell), *mine, time.time())
            db.execute("INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        return True

    def release(self, cell: Cell) -> None:
        """Give a fold back."""
        with self._transaction() as db:
            _release(db, cell)

    def add(self, cell: Cell, measures: Measures, seconds: Mapping[str, float]) -> None:
        """Add the results of a fold, by calibrator and measure, and give it back.

        A result that is there already stays. NaN, which no measure should be, is refused.
        """
        self.add_all({cell: (measures, seconds)})

    def add_all(self, folds: Mapping[Cell, tuple[Measures, Mapping[str, float]]]) -> None:
        """Add the results of many folds: all of them or none."""
        with self._transaction() as db:
            for cell, (measures, seconds) in folds.items():
                key = astuple(cell)
                db.executemany(
                    "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    [
                        (*key, calibrator, measure, value)
                        for calibrator, values in measures.items()
                        for measure, value in values.items()
                    ],
                )
                db.executemany(
                    "INSERT INTO cost VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    [(*key, step, value) for step, value in seconds.items()],
                )
                _release(db, cell)

    def results(
        self, dataset: str, learner: str, calibrator: str, measure: str = "rmse"
    ) -> dict[tuple[int, int], float]:
        """A measure by run and fold."""
        rows = self._all(
            "SELECT run, fold, value FROM result WHERE dataset = ? AND learner = ? "
            "AND calibrator = ? AND measure = ? ORDER BY run, fold",
            (dataset, learner, calibrator, measure),
        )
        return {(run, fold): value for run, fold, value in rows}

    def all_results(self) -> list[tuple[Cell, str, str, float]]:
        """Every result: its fold, its calibrator, its measure and the value."""
        columns = "dataset, learner, run, fold, calibrator, measure, value"
        rows = self._all(f"SELECT {columns} FROM result ORDER BY {columns}")
        return [(Cell(*row[:4]), *row[4:]) for row in rows]

    def all_costs(self) -> list[tuple[Cell, str, float]]:
        """The seconds of every step of every fold."""
        columns = "dataset, learner, run, fold, step, seconds"
        rows = self._all(f"SELECT {columns} FROM cost ORDER BY {columns}")
        return [(Cell(*row[:4]), *row[4:]) for row in rows]

    def costs(self) -> list[tuple[str, str, str, float, int]]:
        """Data set, learner, step, mean seconds a fold, and the number of folds behind it."""
        return self._all(
            "SELECT dataset, learner, step, AVG(seconds), COUNT(*) FROM cost "
            "GROUP BY dataset, learner, step ORDER BY dataset, learner, step"
        )

    def _all(self, query: str, given: Iterable[Any] = ()) -> list[Any]:
        with self._connection() as db:
            return db.execute(query, tuple(given)).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connection() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db  # an error closes the connection, which undoes everything
            db.execute("COMMIT")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # A connection for each use: joblib asks for work from threads of its own.
        try:
            where = self.path.absolute()
            db = sqlite3.connect(where, timeout=_SECONDS_TO_WAIT, isolation_level=None)
            with closing(db):
                yield db
        except sqlite3.Error as error:
            raise OSError(f"cannot use {self.path} as a file of results: {error}") from None

    def _prepare(self, db: sqlite3.Connection, settings: Mapping[str, str]) -> None:
        if not self._is_ours(db):
            for statement in _SCHEMA.split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {_VERSION}")
        for name, value in settings.items():
            db.execute("INSERT INTO setting VALUES (?, ?) ON CONFLICT DO NOTHING", (name, value))
        for name, found in db.execute("SELECT name, value FROM setting"):
            if found != settings.get(name, found):
                raise ValueError(
                    f"{self.path} was made with {name} = {found}, not {settings[name]}; use "
                    "another file or the same settings"
                )

    def _is_ours(self, db: sqlite3.Connection) -> bool:
        """Whether it is a file of results; False if it is empty."""
        (kind,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (n_tables,) = db.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        if kind == _APPLICATION_ID and version != _VERSION:
            raise ValueError(
                f"{self.path} has version {version} of the format and only version {_VERSION} is "
                "known here; use another file"
            )
        if kind != _APPLICATION_ID and n_tables:
            raise ValueError(f"{self.path} is not a file of results; use another name")
        return bool(kind == _APPLICATION_ID)


def pair_folds(
    one: Mapping[tuple[int, int], float], other: Mapping[tuple[int, int], float], n_folds: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Two measures of the same folds, of those runs in which every fold has both."""
    both = one.keys() & other.keys()
    n_done = Counter(run for run, _ in both)
    complete = sorted(key for key in both if n_done[key[0]] == n_folds)
    return np.array([one[key] for key in complete]), np.array([other[key] for key in complete])


def _release(db: sqlite3.Connection, cell: Cell) -> None:
    db.execute(f"DELETE FROM claim WHERE {_IS_CELL}", astuple(cell))


def _this_process() -> tuple[str, int, float]:
    return socket.gethostname(), os.getpid(), _start_time(os.getpid())


def _is_alive(host: str, process: int, born: float, since: float) -> bool:
    if host != socket.gethostname():
        return time.time() - since < _SECONDS_OF_A_CLAIM
    return abs(_start_time(process) - born) < _SECONDS_OF_CLOCK


def _start_time(process: int) -> float:
    """The start time of a process by the operating system; -1 for one that is not there.

    A number alone may belong to another process by now.
    """
    import psutil

    try:
        found = psutil.Process(process)
        return -1.0 if found.status() == psutil.STATUS_ZOMBIE else float(found.create_time())
    except psutil.NoSuchProcess:
        return -1.0
