"""Checks of labels, weights and parameters, with errors that say what to do."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint16]
Mask = npt.NDArray[np.bool_]

_MOST_CLASSES = 2**16 - 1
_FEWEST_ROWS_FOR_A_MODEL = 5


def check_labels(y: Any, keep: Mask | None = None) -> tuple[npt.NDArray[Any], Labels]:
    """The classes, sorted, and the class index of every kept row."""
    labels = np.asarray(y)
    if labels.ndim not in (1, 2) or (labels.ndim == 2 and labels.shape[1] != 1):
        raise ValueError(f"y must have one label a row, got shape {labels.shape}")
    labels = column_or_1d(labels, warn=True)
    if len(labels) == 0:
        raise ValueError("y is empty; give at least two rows of different classes")
    missing = _missing(labels)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(f"y contains a missing label in row {row}; drop the rows without a label")
    if labels.dtype.kind in "fO":
        check_classification_targets(labels)
    if keep is not None:
        labels = labels[keep]
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError:
        raise TypeError("y mixes labels of different types; make all of them strings") from None
    if len(classes) < 2:
        only = classes[0].item() if isinstance(classes[0], np.generic) else classes[0]
        raise ValueError(
            f"y contains one class only, {only!r}; a calibrator needs rows of at least two classes"
        )
    if len(classes) > _MOST_CLASSES:
        raise ValueError(f"y has {len(classes)} classes; at most {_MOST_CLASSES} are possible")
    return classes, codes.astype(np.uint16)


def _missing(labels: npt.NDArray[Any]) -> Mask:
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels), dtype=bool)
    if labels.dtype.kind == "O":
        return np.array([label is None or _unequal_to_itself(label) for label in labels])
    return np.zeros(len(labels), dtype=bool)


def _unequal_to_itself(label: Any) -> bool:
    # NaN is; pandas.NA answers neither yes nor no.
    try:
        return bool(label != label)
    except TypeError:
        return True


def check_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    """One weight a row, none negative, some positive; None where all rows count once."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one a row") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_rows} rows of X, "
            f"got shape {weights.shape}"
        )
    if not np.isfinite(weights).all():
        row = int(np.flatnonzero(~np.isfinite(weights))[0])
        raise ValueError(f"sample_weight contains {weights[row]} in row {row}; use finite weights")
    if weights.min() < 0:
        row = int(np.flatnonzero(weights < 0)[0])
        raise ValueError(
            f"sample_weight contains the negative weight {weights[row]:g} in row {row}; "
            "use 0 to leave a row out"
        )
    if not weights.max() > 0:
        raise ValueError("sample_weight is 0 in every row; give some row a positive weight")
    if weights.sum() < _FEWEST_ROWS_FOR_A_MODEL:
        warnings.warn(
            f"sample_weight sums to {weights.sum():g}. A weight says how many rows a row counts "
            "for, and so few rows give no model; rescale, e.g. to a mean of 1.",
            UserWarning,
            stacklevel=3,
        )
    return weights


def check_count(name: str, value: Any, least: int) -> int:
    """A whole number that is at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def check_size(name: str, value: Any, least: float) -> float:
    """A finite number that is at least `least`."""
    valid = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not valid or not math.isfinite(value) or value < least:
        raise ValueError(f"{name} must be a number of at least {least}, got {value!r}")
    return float(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
