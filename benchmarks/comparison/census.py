"""Calibrators side by side on large census data: the rows, the figures, the table."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import caltree
from caltree.metrics import log_loss, rmse
from caltree.paper.render import Table, markdown

from . import peers
from .command import names_of

TARGETS = {"ACSMobility": "MIG", "ACSPublicCoverage": "PUBCOV"}
# All other columns are codes of categories.
NUMBERS = ("AGEP", "WKHP", "PINCP", "SCHL", "JWMNP")
SHARE_OF_THE_LEARNER = 0.3
# Of the rows of both files together, for the test, and of the others for the learner.
POOLED_TEST_SHARE = 0.15
POOLED_SHARE_OF_THE_LEARNER = 0.2
ROWS = "2000,8000,30000,100000,all"
UNIT = "lightgbm"
"""The calibrator whose time is the unit."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Attributes, labels of 0 and 1, and the scores of a base learner."""

    X: pd.DataFrame
    y: npt.NDArray[np.int64]
    scores: Floats

    def take(self, n_rows: int | None, seed: int) -> Rows:
        """So many of the rows, by chance; all of them if there are no more, or for None."""
        if n_rows is None or n_rows >= len(self.y):
            return self
        rows = np.random.default_rng(seed).permutation(len(self.y))[:n_rows]
        return Rows(self.X.iloc[rows].reset_index(drop=True), self.y[rows], self.scores[rows])


@dataclass(frozen=True)
class Figures:
    """Losses and times of one calibrator; times are seconds of the processor."""

    log_loss: float
    rmse: float
    mce: float | None
    fit: float
    predict: float


def _logistic(nominal: Sequence[str], numbers: Sequence[str]) -> Any:
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), list(nominal)), (StandardScaler(), list(numbers))
    )
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def _lightgbm(nominal: Sequence[str], numbers: Sequence[str]) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_jobs=1, random_state=0, verbose=-1)


BASES: Mapping[str, Callable[[Sequence[str], Sequence[str]], Any]] = {
    "logistic": _logistic,
    "lightgbm": _lightgbm,
}
"""The base learners; codes reach them as categories."""

CALIBRATORS: Mapping[str, Callable[[int], Any]] = {
    "none": lambda seed: caltree.IdentityCalibrator(),
    "isotonic": lambda seed: caltree.IsotonicScaling(),
    "tree": lambda seed: caltree.CalibrationTree(n_jobs=1),
    "forest": lambda seed: caltree.CalibrationForest(random_state=seed, n_jobs=1),
    "boosting": lambda seed: caltree.CalibrationBoosting(random_state=seed, n_jobs=1),
    "ensemble": lambda seed: caltree.CalibrationEnsemble(random_state=seed, n_jobs=1),
    "mcgrad": lambda seed: peers.MCGrad(random_state=seed),
    "lightgbm": lambda seed: peers.LightGBM(package_defaults=True, random_state=seed),
}


def main(given: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; returns the exit status."""
    options = _parser().parse_args(given)
    try:
        check_installed(options.calibrators)
        for base in options.base:
            training, test = score_rows(options.data_dir, options.task, base, pool=options.pool)
            for n_rows in _sizes(options.rows, len(training.y)):
                chosen = training.take(n_rows, options.seed)
                title = f"{options.task}, scores of {base}, {n_rows:,} rows"
                found = compare(chosen, test, options.calibrators, options.seed, options.repeats)
                print(markdown(table(title, found)), flush=True)
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare calibrators on large census data.")
    parser.add_argument("--data-dir", required=True, help="a folder of Parquet files")
    parser.add_argument("--task", choices=tuple(TARGETS), default="ACSMobility")
    parser.add_argument(
        "--pool", action="store_true", help="more rows to calibrate on, fewer to test"
    )
    parser.add_argument("--base", type=names_of(BASES), default=tuple(BASES))
    parser.add_argument("--rows", type=_rows, default=_rows(ROWS), help="numbers, or all")
    parser.add_argument("--calibrators", type=names_of(CALIBRATORS), default=tuple(CALIBRATORS))
    parser.add_argument("--seed", type=int, default=0, help="of rows and calibrators")
    parser.add_argument("--repeats", type=int, default=1, help="the best time of so many counts")
    return parser


def _rows(given: str) -> tuple[int | None, ...]:
    """Numbers of rows between commas; None for all."""
    names = [name.strip() for name in given.split(",")]
    if not all(name == "all" or (name.isdecimal() and int(name) > 0) for name in names):
        raise argparse.ArgumentTypeError(f"{given} are not numbers of rows, or all, between commas")
    return tuple(None if name == "all" else int(name) for name in names)


def _sizes(asked: Iterable[int | None], n_rows: int) -> list[int]:
    """The numbers of rows that are asked for, none more than there are, each once."""
    return list(dict.fromkeys(n_rows if size is None else min(size, n_rows) for size in asked))


def check_installed(calibrators: Iterable[str]) -> None:
    """Raise ImportError, which says how to get it, if something is not there."""
    absent = [name for name in ("lightgbm", "mcgrad") if find_spec(name) is None]
    needed = {"lightgbm": {"lightgbm", "boosting", "ensemble", "mcgrad"}, "mcgrad": {"mcgrad"}}
    for name in absent:
        if needed[name].intersection(calibrators):
            raise ImportError(
                f"not installed: {name}; run: pip install --group benchmark, or leave out what "
                "needs it with --calibrators"
            )


def score_rows(folder: str, task: str, base: str, *, pool: bool = False) -> tuple[Rows, Rows]:
    """The rows for the calibrators and the test rows, with the scores of a base learner.

    The learner is trained on other rows than these. `pool` deals the rows of both files anew.
    """
    tables = [_read(folder, task, part) for part in ("validation", "test")]
    if pool:
        tables = _deal_anew(tables)
    share = POOLED_SHARE_OF_THE_LEARNER if pool else SHARE_OF_THE_LEARNER
    target = TARGETS[task]
    y, y_test = (table.pop(target).to_numpy() for table in tables)
    X, X_test = _with_categories(tables)
    numbers = [name for name in X if name in NUMBERS]
    nominal = [name for name in X if name not in NUMBERS]
    rows = np.random.default_rng(0).permutation(len(y))
    n_seen = round(share * len(y))
    seen, others = rows[:n_seen], rows[n_seen:]
    with threadpool_limits(1):
        learner = BASES[base](nominal, numbers).fit(X.iloc[seen], y[seen])
        X = X.iloc[others].reset_index(drop=True)
        training = Rows(X, y[others], learner.predict_proba(X))
        return training, Rows(X_test, y_test, learner.predict_proba(X_test))


def _read(folder: str, task: str, part: str) -> pd.DataFrame:
    path = Path(folder) / f"{task}.{part}.parquet"
    table = pd.read_parquet(path)
    if TARGETS[task] not in table:
        raise ValueError(f"{path} has no column {TARGETS[task]}, which {task} is to predict")
    return table


def _deal_anew(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The same rows: most of them for learner and calibrators, the others for the test."""
    rows = pd.concat(tables, ignore_index=True).sample(frac=1.0, random_state=0, ignore_index=True)
    n_test = round(POOLED_TEST_SHARE * len(rows))
    return [rows[n_test:].reset_index(drop=True), rows[:n_test]]


def _with_categories(tables: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The tables with codes as categories, the same ones in all tables."""
    together = pd.concat(tables)
    codes = {
        name: pd.CategoricalDtype(np.sort(together[name].dropna().unique()))
        for name in together
        if name not in NUMBERS
    }
    return [table.astype(codes) for table in tables]


def compare(
    training: Rows, test: Rows, names: Sequence[str], seed: int, repeats: int
) -> dict[str, Figures]:
    """The figures of some calibrators, which take turns as often as `repeats` says."""
    found: dict[str, Figures] = {}
    for _ in range(repeats):
        for name in names:
            now = _measure(CALIBRATORS[name](seed), training, test, before=found.get(name))
            found[name] = now
    return found


def _measure(calibrator: Any, training: Rows, test: Rows, before: Figures | None) -> Figures:
    """The figures of one calibrator; those of an earlier fit, but for shorter times."""
    with threadpool_limits(1):
        start = time.process_time()
        calibrator.fit(training.X, training.y, training.scores)
        fitted = time.process_time()
        probabilities = calibrator.predict_proba(test.X, test.scores)
        predicted = time.process_time()
    fit, predict = fitted - start, predicted - fitted
    if before is not None:
        return replace(before, fit=min(fit, before.fit), predict=min(predict, before.predict))
    second = probabilities[:, 1]
    return Figures(
        log_loss(test.y, probabilities),
        rmse(test.y, probabilities),
        mce(test, second),
        fit,
        predict,
    )


def mce(test: Rows, probabilities: Floats) -> float | None:
    """The multicalibration error, by mcgrad, in standard deviations; None without mcgrad."""
    if find_spec("mcgrad") is None:
        return None
    from mcgrad.metrics import MulticalibrationError

    nominal = [name for name in test.X if name not in NUMBERS]
    rows = test.X.astype(dict.fromkeys(nominal, object))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does what pandas advises against
        error = MulticalibrationError(
            rows.assign(label=test.y, probability=probabilities),
            label_column="label",
            score_column="probability",
            categorical_segment_columns=nominal,
            numerical_segment_columns=[name for name in test.X if name in NUMBERS],
        )
        return float(error.mce_sigma)


def table(title: str, found: Mapping[str, Figures]) -> Table:
    """The figures as a table; ratios of times only if there is something to compare with."""
    unit = found.get(UNIT)
    rows = []
    for name, one in found.items():
        ratios = [None, None] if unit is None else [one.fit / unit.fit, one.predict / unit.predict]
        shown = [None if ratio is None else f"{ratio:.2f}" for ratio in ratios]
        losses = [f"{one.log_loss:.5f}", f"{one.rmse:.5f}"]
        error = None if one.mce is None else f"{one.mce:.2f}"
        times = [f"{one.fit:.2f}", shown[0], f"{one.predict:.2f}", shown[1]]
        rows.append([name, *losses, error, *times])
    header = ["calibrator", "log loss", "RMSE", "MCE", "fit, s", "ratio", "predict, s", "ratio"]
    return Table(title, header, rows)
