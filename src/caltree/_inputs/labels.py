"""Checks of labels and weights, with errors that say what to do."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import column_or_1d

from .arrays import Classes, Floats, Labels, Mask
from .warning import warn_user

_MOST_CLASSES = 2**16 - 1
_FEWEST_ROWS_FOR_A_MODEL = 5
# Beyond as many rows, one more or less is lost in rounding.
_MOST_ROWS = 2.0**53
# What all other rows weigh together, at least, of the heaviest row.
_SMALLEST_REST = 2.0**-32


def check_labels(y: Any, n_rows: int, keep: Mask | None = None) -> tuple[Classes, Labels]:
    """Check labels; return the sorted classes and the class index of every kept row."""
    if n_rows == 0 and y is not None and len(_as_labels(y)) == 0:
        raise ValueError("y is empty; give at least two rows of different classes")
    labels = labels_of_part(y, n_rows, keep)
    classes, codes = np.unique(labels, return_inverse=True)
    check_classes(classes)
    return classes, codes.astype(np.uint16)


def check_labels_of_all_rows(y: Any, n_rows: int, keep: Mask) -> tuple[Classes, Classes]:
    """The classes, and the label of each row; rows that are not kept have any of them."""
    classes, codes = check_labels(y, n_rows, keep)
    all_codes = np.zeros(n_rows, dtype=np.intp)
    all_codes[keep] = codes
    return classes, classes[all_codes]


def check_classes(classes: Classes) -> None:
    """Refuse too few classes, or too many."""
    if len(classes) < 2:
        only = classes[0].item() if isinstance(classes[0], np.generic) else classes[0]
        raise ValueError(f"y contains one class only, {only!r}; give rows of at least two classes")
    if len(classes) > _MOST_CLASSES:
        raise ValueError(f"y has {len(classes)} classes; at most {_MOST_CLASSES} are possible")


def labels_of_part(y: Any, n_rows: int, keep: Mask | None) -> Classes:
    """Check the labels of some of the rows, which may be of one class, and return the kept ones."""
    if y is None:
        raise ValueError("calibration requires y to be passed, but the target y is None")
    labels = _one_label_a_row(y, n_rows)
    missing = missing_values(labels)
    if keep is not None:
        missing &= keep
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(f"y contains a missing label in row {row}; drop the rows without a label")
    if keep is not None:
        labels = labels[keep]
    if labels.dtype.kind == "O" and len(labels) > 0:
        labels = _of_one_type(labels)
    if labels.dtype.kind == "f":
        _check_whole(labels)
    return labels


def known_labels(y: Any, classes: Classes, n_rows: int) -> Floats:
    """Labels as ones and zeros, one column per class; all must be among `classes`."""
    labels = _one_label_a_row(y, n_rows)
    # As objects, labels of another type are just not equal.
    truth = labels.astype(object)[:, np.newaxis] == classes.astype(object)
    unknown = ~truth.any(axis=1)
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        label = labels.tolist()[row]
        raise ValueError(
            f"y contains {label!r} in row {row}, which the calibrator does not know; its "
            f"classes are {reprlib.repr(classes.tolist())}"
        )
    return np.asarray(truth, dtype=np.float64)


def _one_label_a_row(y: Any, n_rows: int) -> Classes:
    labels = _as_labels(y)
    if len(labels) != n_rows:
        raise ValueError(f"y has {len(labels)} labels, but X has {n_rows} rows")
    return labels


def _as_labels(y: Any) -> Classes:
    _refuse_mask("y", y)
    try:
        labels = np.asarray(y)
        # numpy turns numbers beside strings into strings; as objects they stay numbers.
        if isinstance(y, list | tuple) and labels.dtype.kind in "US":
            objects = np.asarray(y, dtype=object)
            labels = labels if all(isinstance(label, str) for label in objects.flat) else objects
    except ValueError:
        raise ValueError("y must have one label per row, got rows of several lengths") from None
    if labels.ndim not in (1, 2) or (labels.ndim == 2 and labels.shape[1] != 1):
        got = f"shape {labels.shape}" if labels.ndim else f"a {type(y).__name__}"
        raise ValueError(f"y must have one label per row, got {got}")
    if labels.dtype.kind == "c":
        raise ValueError("Complex data not supported: y has labels of type complex; use others")
    if labels.dtype.kind not in "biufUTO":
        raise TypeError(
            f"y has labels of type {labels.dtype}; turn them into strings, numbers or booleans"
        )
    if labels.dtype.kind == "T":
        labels = labels.astype(object)
    return np.asarray(column_or_1d(labels, warn=True))


def _refuse_mask(name: str, values: Any) -> None:
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; drop the masked rows and use {name}.data")


def missing_values(labels: Classes) -> Mask:
    """Which labels, or groups, are missing: None, NaN, NaT or pandas.NA."""
    if labels.dtype.kind in "fmM":
        return np.asarray(np.isnan(labels), dtype=bool)
    if labels.dtype.kind == "O":
        found = [label is None or _unequal_to_itself(label) for label in labels]
        return np.array(found, dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def _unequal_to_itself(label: Any) -> bool:
    # NaN is; comparing pandas.NA gives neither True nor False.
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        return type(label).__name__ == "NAType"


def _of_one_type(labels: npt.NDArray[np.object_]) -> Classes:
    """Check that all labels are strings, all booleans or all numbers, and give them that type."""
    kinds = (str,), (bool, np.bool_), (int, float, np.integer, np.floating)
    first = next((kind for kind in kinds if isinstance(labels[0], kind)), ())
    for row, label in enumerate(labels):
        if not isinstance(label, first):
            raise TypeError(
                f"y has a {type(label).__name__} in row {row}; labels must be all strings, all "
                "booleans or all numbers"
            )
    return labels if first == (str,) else np.array(labels.tolist())


def _check_whole(labels: npt.NDArray[np.floating[Any]]) -> None:
    broken = ~(np.isfinite(labels) & (np.trunc(labels) == labels))
    if broken.any():
        row = int(np.flatnonzero(broken)[0])
        swapped = (
            "; are y and scores swapped?" if 0.0 <= labels.min() <= labels.max() <= 1.0 else ""
        )
        # The words in brackets are those of scikit-learn.
        raise ValueError(
            f"y contains {labels[row]} in row {row}, which is not a class (Unknown label type: "
            f"continuous); turn measurements into classes first{swapped}"
        )


def check_weights(sample_weight: Any, n_rows: int, of: str = "X") -> Floats | None:
    """Check weights: one per row of `of`, none negative, some positive; None stays None."""
    if sample_weight is None:
        return None
    _refuse_mask("sample_weight", sample_weight)
    try:
        weights = np.asarray(sample_weight)
        if weights.dtype.kind not in "biufO":
            raise TypeError
        weights = weights.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one per row") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_rows} rows of {of}, "
            f"got shape {weights.shape}"
        )
    if n_rows == 0:
        return weights  # the check of the labels says what is wrong
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
        raise ValueError("sample_weight is zero in every row; give some row a positive weight")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not np.isfinite(total):
        raise ValueError("sample_weight sums to infinity; rescale it, e.g. to a mean of 1")
    return weights


def check_training_weights(weights: Floats) -> None:
    """Refuse checked weights of training rows that no sum can hold."""
    heaviest = int(weights.argmax())
    check_scale(float(weights.sum()), float(weights[heaviest]), f" in row {heaviest}")


def check_scale(total: float, largest: float, where: str = "") -> None:
    """Refuse weights of too many rows, or of one row beside which all others vanish.

    `where` is the place of the largest weight, if it is known, for messages.
    """
    if not total <= _MOST_ROWS:
        raise ValueError(
            f"sample_weight sums to {total:g}, and the largest weight is {largest:g}{where}. A "
            f"weight is a number of rows, and their sum must be at most {_MOST_ROWS:g}; rescale, "
            "e.g. to a mean of 1."
        )
    if total - largest < _SMALLEST_REST * largest:
        raise ValueError(
            f"sample_weight contains {largest:g}{where}, so large that all other rows together "
            f"({total - largest:g}) are lost in rounding; correct that weight, or leave the row out"
        )


def warn_of_few_rows(total: float) -> None:
    """Warn if the weights sum to so little that they may be shares."""
    if total < _FEWEST_ROWS_FOR_A_MODEL:
        warn_user(
            f"sample_weight sums to {total:g}. A weight is a number of rows, and so few rows are "
            "not enough for a model; rescale, e.g. to a mean of 1."
        )


def warn_of_label_column(X: Any, y: Any) -> None:
    """Warn if a column of the table has the name of the labels: most likely it holds them."""
    name = getattr(y, "name", None)
    names = getattr(X, "column_names", getattr(X, "columns", ()))  # pyarrow; pandas and polars
    if isinstance(name, str) and name in list(names):
        warn_user(
            f"X has a column {name!r}, which is also the name of y. If it holds the labels, leave "
            "it out of X: new rows have no label yet"
        )
