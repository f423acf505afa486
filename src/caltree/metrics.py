"""How good probabilities are: the RMSE of the paper, weighted, for any number of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_SUM_TOLERANCE = 1e-3


def rmse(y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Root mean squared error of probabilities.

    The squared differences between the probabilities and the truth (1 for a row's class, 0 for
    the others) are summed over the n rows and m classes and divided by n * m; then comes the
    square root. With two classes this is the square root of the Brier score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The labels.
    y_prob : array-like of shape (n, m) or (n,)
        The probabilities, one column a class; with two classes one column, that of the second
        class, will do.
    sample_weight : array-like of shape (n,), optional
        How many rows each row counts for.
    labels : array-like of shape (m,), optional
        The class of each column, e.g. ``tree.classes_``; by default the sorted labels of
        `y_true`.

    Returns
    -------
    float
        0 for certain and right, 1 for certain and wrong with two classes.

    Examples
    --------
    >>> from caltree.metrics import rmse
    >>> round(rmse(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]]), 4)
    0.2236
    >>> round(rmse(["no", "yes"], [0.1, 0.7]), 4)
    0.2236
    """
    truth = np.asarray(y_true)
    if truth.ndim != 1 or len(truth) == 0:
        raise ValueError(f"y_true must have one label a row, got shape {truth.shape}")
    classes = _check_classes(truth, labels)
    probabilities = _check_probabilities(y_prob, len(truth), len(classes))
    weights = _check_weights(sample_weight, len(truth))
    column = _columns_of(truth, classes)
    difference = probabilities.copy()
    difference[np.arange(len(truth)), column] -= 1.0
    squared = np.square(difference).sum(axis=1)
    return float(np.sqrt(np.average(squared, weights=weights) / len(classes)))


def _check_classes(truth: npt.NDArray[Any], labels: Any) -> npt.NDArray[Any]:
    try:
        classes = np.unique(truth)
    except TypeError:
        raise TypeError(
            "y_true mixes labels of different types or holds missing ones; make all of them strings"
        ) from None
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise ValueError("y_true contains NaN; drop the rows without a label")
    if labels is not None:
        classes = np.asarray(labels)
        if classes.ndim != 1 or len(np.unique(classes)) != len(classes):
            raise ValueError(f"labels must name each class once, got {classes.tolist()}")
    if len(classes) < 2:
        raise ValueError(
            f"y_true contains one class only, {classes.tolist()[0]!r}; give all classes as labels"
            if labels is None
            else f"labels must name at least two classes, got {classes.tolist()}"
        )
    return classes


def _check_probabilities(y_prob: Any, n_rows: int, n_classes: int) -> Floats:
    try:
        matrix = np.asarray(y_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("y_prob must be numbers, one row of one length for each label") from None
    if n_classes == 2 and (matrix.ndim == 1 or matrix.shape[1:] == (1,)):
        second = matrix.reshape(-1)
        matrix = np.column_stack([1.0 - second, second])
    if matrix.ndim != 2 or matrix.shape[1] != n_classes:
        raise ValueError(
            f"y_prob has shape {matrix.shape}, but there are {n_classes} classes; give one column "
            "a class, and labels if y_true lacks one of them"
        )
    if len(matrix) != n_rows:
        raise ValueError(f"y_prob has {len(matrix)} rows, but y_true has {n_rows}")
    valid = (matrix >= 0.0) & (matrix <= 1.0)
    if not valid.all():
        row, column = np.argwhere(~valid)[0]
        raise ValueError(
            f"y_prob contains {matrix[row, column]} in row {row}, which is not a probability"
        )
    sums = matrix.sum(axis=1)
    if np.abs(sums - 1.0).max() > _SUM_TOLERANCE:
        row = int(np.abs(sums - 1.0).argmax())
        raise ValueError(f"y_prob sums to {sums[row]:g} in row {row}; divide each row by its sum")
    return matrix


def _check_weights(sample_weight: Any, n_rows: int) -> Floats | None:
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one a row") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight must have one weight for each of the {n_rows} labels, "
            f"got shape {weights.shape}"
        )
    if not np.isfinite(weights).all() or weights.min() < 0.0 or not weights.max() > 0.0:
        raise ValueError("sample_weight must be finite, never negative, and positive somewhere")
    return weights


def _columns_of(truth: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    order = np.argsort(classes)
    place = np.searchsorted(classes, truth, sorter=order)
    columns = order[np.minimum(place, len(classes) - 1)]
    unknown = classes[columns] != truth
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"y_true contains {truth[row : row + 1].tolist()[0]!r} in row {row}, "
            f"which is not among the labels {classes.tolist()}"
        )
    return columns
