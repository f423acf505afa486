"""Random problems: a calibrator with random parameters, and random rows of any kind and size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from scipy import sparse
from scipy.special import logit
from sklearn.model_selection import KFold

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)

Random: TypeAlias = np.random.Generator
Draw: TypeAlias = Callable[[Random], Any]

LARGEST = float(np.finfo(np.float64).max)
TINY = 5e-324


def one_of(*values: Any) -> Draw:
    """Draw one of some values, each as likely."""
    return lambda random: values[random.integers(len(values))]


# The parameters of each calibrator that are drawn, and from what. Others stay at their defaults.
SHARED: dict[str, Draw] = {
    "score_type": one_of("auto", "auto", "auto", "probability", "logit", "margin"),
    "pos_label": one_of(*[None] * 25, 0, 1, True, "class 0"),
}
OF_TABLES: dict[str, Draw] = {
    **SHARED,
    "categorical_features": one_of(None, None, None, [0], [True, False]),
    "random_state": one_of(0, 1, 2),
}
OF_ATTRIBUTES: dict[str, Draw] = {
    **OF_TABLES,
    "min_samples_leaf": one_of(1, 2, 5),
    "max_depth": one_of(None, 0, 1, 3),
}
OF_TREES: dict[str, Draw] = {
    "min_samples_split": one_of(2, 4, 16),
    "cv": one_of(2, 2, 3, 5, KFold(2), KFold(3, shuffle=True, random_state=0)),
}
OF_SHRUNKEN: dict[str, Draw] = {
    "l2_regularization": one_of(0.05, 0.05, 1e-9, 1e9),
    "scoring": one_of("rmse", "log_loss"),
    "do_no_harm": one_of(True, False),
    "drop_identifiers": one_of(True, False),
    "max_bins": one_of(255, 2, 5, 65_534),
}
PARAMETERS: dict[type, dict[str, Draw]] = {
    CalibrationTree: {
        **OF_ATTRIBUTES,
        **OF_TREES,
        **OF_SHRUNKEN,
        "max_leaf_nodes": one_of(64, None, 2, 3),
        "kept_gain": one_of(0.95, None, 1.0, 1e-300),
        "path_averaging": one_of(True, False),
        "monotone": one_of("auto", "auto", False),
        "tree_method": one_of("exact", "hist", "hist"),
    },
    PublishedCalibrationTree: {
        **OF_ATTRIBUTES,
        **OF_TREES,
        "ccp_alpha": one_of("cv", "cv", None, 0.0, 0.01, 1e300),
        "boosting_iterations": one_of("cv", 1, 3),
        "max_boosting_iterations": one_of(2, 10),
        "constant_scores": one_of("ignore", "frequencies"),
    },
    CalibrationForest: {
        **OF_ATTRIBUTES,
        **OF_SHRUNKEN,
        "n_estimators": one_of(2, 3, 6),
        "max_features": one_of(1.0, 0.5, 1),
    },
    CalibrationBoosting: {
        **OF_TABLES,
        "scoring": OF_SHRUNKEN["scoring"],
        "do_no_harm": OF_SHRUNKEN["do_no_harm"],
        "drop_identifiers": OF_SHRUNKEN["drop_identifiers"],
        "monotone": one_of("auto", "auto", False),
    },
    CalibrationEnsemble: {
        **OF_TABLES,
        "scoring": OF_SHRUNKEN["scoring"],
        "do_no_harm": OF_SHRUNKEN["do_no_harm"],
        "drop_identifiers": OF_SHRUNKEN["drop_identifiers"],
        "n_estimators": one_of(2, 3, 6),
    },
    PlattScaling: SHARED,
    TemperatureScaling: SHARED,
    BetaScaling: {**SHARED, "l2_regularization": OF_SHRUNKEN["l2_regularization"]},
    IsotonicScaling: SHARED,
    SmoothIsotonicScaling: SHARED,
    RegularizedIsotonicScaling: {
        **SHARED,
        "l2_regularization": OF_SHRUNKEN["l2_regularization"],
    },
    IdentityCalibrator: SHARED,
}
# These look at the scores alone.
GLOBAL = (
    PlattScaling,
    TemperatureScaling,
    BetaScaling,
    IsotonicScaling,
    SmoothIsotonicScaling,
    RegularizedIsotonicScaling,
    IdentityCalibrator,
)
# Never left at their defaults, for speed and since a fit must be repeatable.
ALWAYS = {"cv", "random_state", "n_estimators"}
# How often each is drawn: those with more to go wrong more often.
SHARES = {
    CalibrationTree: 0.30,
    CalibrationForest: 0.15,
    CalibrationBoosting: 0.08,
    CalibrationEnsemble: 0.04,
    PublishedCalibrationTree: 0.13,
    PlattScaling: 0.08,
    TemperatureScaling: 0.04,
    BetaScaling: 0.06,
    IsotonicScaling: 0.05,
    SmoothIsotonicScaling: 0.015,
    RegularizedIsotonicScaling: 0.015,
    IdentityCalibrator: 0.04,
}


@dataclass(frozen=True)
class Problem:
    """A calibrator, rows to fit it to, and rows to predict."""

    calibrator: Any
    X: Any
    y: Any
    scores: Any
    sample_weight: Any
    groups: Any
    """None for calibrators without folds, which do not take them."""
    X_new: Any
    scores_new: Any

    def describe(self) -> str:
        """Return the problem in a few lines."""
        weights = "none" if self.sample_weight is None else repr(np.asarray(self.sample_weight))
        return "\n".join(
            [
                f"calibrator: {self.calibrator!r}",
                f"X: {type(self.X).__name__}\n{self.X!r}",
                f"y: {np.asarray(self.y)!r}",
                f"scores: {np.asarray(self.scores)!r}",
                f"sample_weight: {weights}",
            ]
        )


def make_problem(random: Random) -> Problem:
    """Make a problem; now and then something is wrong with it."""
    kinds = list(SHARES)
    kind = kinds[random.choice(len(kinds), p=list(SHARES.values()))]
    drawn = {name: draw(random) for name, draw in PARAMETERS[kind].items()}
    kept = {name for name in drawn if name in ALWAYS or random.random() < 0.6}
    calibrator = kind(**{name: value for name, value in drawn.items() if name in kept})
    n_rows, n_new, n_classes = _size(random), int(random.integers(1, 9)), _n_classes(random)
    hint = random.normal(size=n_rows + n_new)
    columns = [
        _column(random, hint) for _ in range(random.choice(6, p=[0.02, 0.3, 0.3, 0.2, 0.1, 0.08]))
    ]
    table = one_of(*TABLES)(random)
    scores = _scores(random, hint, n_classes)
    old, new = slice(0, n_rows), slice(n_rows, None)
    return Problem(
        calibrator=calibrator,
        X=_table(table, columns, old),
        y=_labels(random, hint[old], n_classes),
        scores=_container(random, _break(random, scores[old])),
        sample_weight=_weights(random, n_rows),
        groups=None if kind in GLOBAL else _groups(random, n_rows),
        X_new=_table(table, columns, new),
        scores_new=scores[new],
    )


def _groups(random: Random, n_rows: int) -> Any:
    """No groups, or groups of any type, one large and one missing among them now and then."""
    if random.random() < 0.85:
        return None
    numbers = random.integers(0, one_of(3, max(3, n_rows // 3))(random), n_rows)
    if random.random() < 0.3:
        numbers[: n_rows // 2] = 0
    as_text = np.array([f"g{number}" for number in numbers], dtype=object)
    if n_rows > 0 and random.random() < 0.05:
        as_text[0] = None
    return one_of(numbers, numbers.astype(float), as_text, as_text.tolist())(random)


def _size(random: Random) -> int:
    return int(random.choice([0, 1, 2, 5, 12, 30, 60], p=[0.01, 0.01, 0.05, 0.13, 0.3, 0.3, 0.2]))


def _n_classes(random: Random) -> int:
    return int(random.choice([2, 3, 4, 5], p=[0.6, 0.2, 0.1, 0.1]))


def _labels(random: Random, hint: Any, n_classes: int) -> Any:
    noisy = np.argsort(np.argsort(hint + random.normal(size=len(hint)))) * n_classes
    codes = (noisy // max(1, len(hint))).astype(int)
    names: Any = one_of(
        np.arange(n_classes),
        np.arange(n_classes) - 1.0,
        np.array([f"class {k}" for k in range(n_classes)]),
        np.array([f"é{k}" for k in range(n_classes)], dtype=object),
    )(random)
    if n_classes == 2 and random.random() < 0.2:
        names = np.array([False, True])
    return one_of(np.asarray, list, pd.Series)(random)(names[codes])


def _column(random: Random, hint: Any) -> Any:
    """A column of any kind, as an array; texts and missing values as objects."""
    n = len(hint)
    make = one_of(
        lambda: hint + random.normal(size=n),
        lambda: np.round(hint + random.normal(size=n)),
        lambda: random.integers(-3, 4, n),
        lambda: np.full(n, one_of(0.0, 1.0, LARGEST, TINY)(random)),
        lambda: random.choice([-LARGEST, 0.0, LARGEST / 2, LARGEST], n),
        lambda: random.choice([0.0, TINY, 1e-310, -1e-310], n),
        lambda: 1.0 + random.integers(0, 4, n) * 2.0**-52,
        lambda: np.sign(hint) * 10.0 ** random.uniform(-300, 300, n),
        lambda: random.random(n) < 0.5,
        lambda: random.choice(np.array(["a", "b", "ü", ""], dtype=object), n),
        lambda: np.where(hint > 0, "yes", "no").astype(object),
        lambda: np.array([f"id{k}" for k in range(n)], dtype=object),
    )(random)
    values = make()
    if random.random() < 0.3:
        rate = one_of(0.1, 0.5, 1.0)(random)
        missing = random.random(n) < rate
        values = np.where(missing, None if values.dtype.kind in "Ob" else np.nan, values)
    if values.dtype.kind == "f" and random.random() < 0.02:
        values[random.integers(n)] = one_of(np.inf, -np.inf)(random)
    return values


# Arrays more often than the others, since these take more time.
TABLES = (
    *["array"] * 4,
    "float32",
    "fortran",
    "rows",
    "pandas",
    "category",
    "polars",
    "arrow",
    "sparse",
)


def _table(kind: str, columns: list[Any], rows: slice) -> Any:
    parts = [column[rows] for column in columns]
    numeric = all(part.dtype.kind in "iuf" for part in parts)
    if not parts:
        return np.empty((rows.stop or 0, 0))
    if numeric and kind in ("array", "float32", "fortran", "sparse"):
        with np.errstate(over="ignore"):
            dtype = np.float32 if kind == "float32" else np.float64
            matrix = np.column_stack(parts).astype(dtype)
        if kind == "sparse":
            return sparse.csr_matrix(matrix)
        return np.asfortranarray(matrix) if kind == "fortran" else matrix
    names = ["x", "b b", 'c"', "é", "_"][: len(parts)]
    frame = pd.DataFrame(dict(zip(names, parts, strict=True)))
    if kind == "category":
        texts = [name for name in names if frame[name].dtype == object]
        return frame.astype(dict.fromkeys(texts, "category"))
    if kind == "polars":
        return pl.DataFrame(
            {name: pl.Series(part.tolist()) for name, part in zip(names, parts, strict=True)}
        )
    if kind == "arrow":
        return pa.table([pa.array(part.tolist()) for part in parts], names=names)
    if kind == "rows":
        return frame.astype(object).to_numpy().tolist()
    return frame


def _scores(random: Random, hint: Any, n_classes: int) -> Any:
    """Scores of any type: one column, one per class, or of two classifiers side by side."""
    n = len(hint)
    width = n_classes * int(random.choice([1, 2], p=[0.85, 0.15]))
    odds = hint[:, np.newaxis] * np.linspace(-1, 1, width) + random.normal(size=(n, width))
    scale = float(random.choice([1.0, 0.0, 1e-9, 30.0, 1e3], p=[0.7, 0.1, 0.05, 0.1, 0.05]))
    p = np.exp(np.clip(odds * scale, -700, 700)).reshape(n, -1, n_classes)
    p = (p / p.sum(axis=2, keepdims=True)).reshape(n, width)
    if random.random() < 0.1:
        p = np.round(p) if width == 2 else p
    kind = one_of("probability", "probability", "logit", "margin")(random)
    scores = p
    if kind == "logit":
        with np.errstate(divide="ignore"):
            scores = np.clip(logit(p), -700, 700)
    elif kind == "margin":
        scores = odds * float(random.choice([1.0, 1e-300, 1e300, 1e100]))
    if n_classes == 2 and random.random() < 0.5:
        scores = scores[:, 1:2]
    if random.random() < 0.1:
        extreme = one_of(0.0, 1.0, 1e-300, 1.0 - 2.0**-53, TINY)(random)
        scores = np.where(random.random(scores.shape) < 0.2, extreme, scores)
    return scores


def _break(random: Random, scores: Any) -> Any:
    """Put something wrong into scores, seldom."""
    if random.random() > 0.03 or len(scores) == 0:
        return scores
    scores = scores.copy()
    scores[random.integers(len(scores)), 0] = one_of(np.nan, np.inf, -0.5, 1.5, 1e308)(random)
    return scores if random.random() < 0.7 else scores[1:]


def _container(random: Random, scores: Any) -> Any:
    as_single = random.random() < 0.1 and np.abs(scores).max(initial=0.0) < 1e30
    scores = scores.astype(np.float32) if as_single else scores
    if scores.shape[1] == 1 and random.random() < 0.5:
        return one_of(np.asarray, pd.Series, list)(random)(scores[:, 0])
    return one_of(np.asarray, np.asfortranarray, pd.DataFrame, list)(random)(scores)


def _weights(random: Random, n_rows: int) -> Any:
    """No weights, or weights from 1e-300 to 1e300."""
    if random.random() < 0.5:
        return None
    make = one_of(
        lambda: random.integers(0, 4, n_rows),
        lambda: random.uniform(0.1, 10.0, n_rows),
        lambda: 10.0 ** random.uniform(-300, 300, n_rows),
        lambda: 10.0 ** random.uniform(-12, 12, n_rows),
        lambda: 10.0 ** random.uniform(-300, 3, n_rows),
        lambda: np.full(n_rows, 10.0 ** random.uniform(-300, 300)),
        lambda: np.full(n_rows, 10.0 ** random.uniform(-3, 14)),
        lambda: np.where(np.arange(n_rows) == n_rows // 2, 10.0 ** random.uniform(-300, 17), 1.0),
        lambda: np.where(random.random(n_rows) < 0.5, 10.0 ** random.uniform(-20, 10), 1.0),
        lambda: random.normal(size=n_rows),
    )(random)
    return make()
