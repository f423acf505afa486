"""Data sets of a bearable size, the learners, and their scores, which are kept in files."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from caltree._fitted.files import write_atomically
from caltree.paper import protocol
from caltree.paper.data import DataSet
from caltree.paper.datasets import NAMES, load
from caltree.paper.protocol import Scored, outer_folds, score, seed_of
from caltree.paper.store import Cell, Shape

MOST_ROWS = 4000
MOST_ROWS_OF_SVM = 2000
_SEED_OF_ROWS = 1


def _gradient_boosting(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)


def _random_forest(seed: int) -> Any:
    """A random forest, whose probabilities are shares of votes, and often 0 or 1."""
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1
    )
    nominal = make_column_selector(dtype_exclude="number")
    encode = make_column_transformer((codes, nominal), remainder="passthrough")
    return make_pipeline(encode, RandomForestClassifier(random_state=seed, n_jobs=1))


LEARNERS: Mapping[str, Callable[[int], Any]] = {
    **protocol.LEARNERS,
    "gradient_boosting": _gradient_boosting,
    "random_forest": _random_forest,
}
"""The base classifiers, by name: those of the paper, LightGBM, and scikit-learn's random forest."""


@dataclass(frozen=True)
class Cached:
    """The scores of a learner in one fold, and what they cost."""

    scored: Scored
    classes: tuple[str, ...]
    seconds: float


def names_in(folder: str) -> tuple[str, ...]:
    """The data sets that a folder has: those of the paper, in its order, and then the others."""
    files = [*Path(folder).glob("*.arff"), *Path(folder).glob("*.arff.gz")]
    found = {path.name.removesuffix(".gz").removesuffix(".arff") for path in files}
    if not found:
        raise FileNotFoundError(f"{folder} has no data set, such as {NAMES[0]}.arff.gz")
    return (*(name for name in NAMES if name in found), *sorted(found.difference(NAMES)))


@cache
def prepared(name: str, data_dir: str) -> DataSet:
    """A data set with some of its rows, if it has too many, and plain names of columns."""
    return with_plain_names(capped(load(name, data_dir), MOST_ROWS))


def with_plain_names(data: DataSet) -> DataSet:
    """LightGBM refuses some of the names that ARFF files have."""
    X = data.X.copy()
    X.columns = [f"x{i}" for i in range(X.shape[1])]
    return replace(data, X=X)


def capped(data: DataSet, most: int) -> DataSet:
    """Of more rows than `most` that many, drawn by chance but always the same."""
    n_rows = len(data.y)
    if n_rows <= most:
        return data
    rows = np.sort(np.random.RandomState(_SEED_OF_ROWS).permutation(n_rows)[:most])
    return replace(data, X=data.X.iloc[rows].reset_index(drop=True), y=data.y[rows])


def most_rows(learner: str) -> int:
    """How many rows a learner gets; the time of an SVM grows with their square."""
    return MOST_ROWS_OF_SVM if learner == "svm" else MOST_ROWS


def scores_file(folder: str, cell: Cell) -> Path:
    """Where the scores of a fold are kept."""
    return Path(folder) / f"{cell.dataset}.{cell.learner}.{cell.run}.{cell.fold}.pkl"


def scores_of(
    cell: Cell, shape: Shape, folder: str, data_dir: str, *, n_folds: int, seed: int
) -> Cached:
    """The scores of a fold: from its file, or from the learner, and then the file is written.

    Parameters
    ----------
    cell : Cell
        The fold.
    shape : Shape
        What the data set looks like; a file that does not fit is refused.
    folder, data_dir : str
        The folder of scores, and that of data sets.
    n_folds, seed : int
        As for `caltree.paper.protocol.run_fold`.

    Returns
    -------
    Cached
        The scores.
    """
    path = scores_file(folder, cell)
    if path.exists():
        with path.open("rb") as file:
            found = Cached(*pickle.load(file))
        _check(found, cell, shape, path)
        return found
    made = _made(cell, prepared(cell.dataset, data_dir), n_folds, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, pickle.dumps((made.scored, made.classes, made.seconds)))
    return made


def _made(cell: Cell, data: DataSet, n_folds: int, seed: int) -> Cached:
    data = capped(data, most_rows(cell.learner))
    fold = outer_folds(data.y, cell.run, n_folds, seed)[cell.fold]
    fold_seed = seed_of(cell.dataset, cell.run, cell.fold, seed)
    start = time.perf_counter()
    scored = score(data, LEARNERS[cell.learner](fold_seed), fold, fold_seed)
    return Cached(scored, data.classes, time.perf_counter() - start)


def _check(found: Cached, cell: Cell, shape: Shape, path: Path) -> None:
    """Refuse scores of another copy of the data set."""
    n_rows = len(found.scored.y) + len(found.scored.y_test)
    seen = (n_rows, found.scored.X.shape[1], len(found.classes))
    expected = (min(shape.rows, most_rows(cell.learner)), shape.attributes, shape.classes)
    if seen != expected:
        raise ValueError(
            f"{path} has the scores of {seen[0]} rows, {seen[1]} attributes and {seen[2]} classes, "
            f"not {expected[0]}, {expected[1]} and {expected[2]}; remove it or use another folder"
        )
