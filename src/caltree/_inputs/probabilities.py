"""Checks of probabilities against the labels they are judged by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import Classes, Floats, Mask
from .labels import check_weights
from .score_columns import check_pos_label, find_columns

Kind: TypeAlias = Literal["classwise", "top_label"]

_SUM_TOLERANCE = 1e-3


class LabeledProbabilities(NamedTuple):
    """Checked rows: the column of the true class, the probabilities and the weights."""

    columns: npt.NDArray[np.intp]
    probabilities: Floats
    weights: Floats | None


def check_rows(
    y_true: Any, y_prob: Any, sample_weight: Any, labels: Any, pos_label: Any = None
) -> LabeledProbabilities:
    """Check labels, probabilities and weights against each other.

    `pos_label` is the class that a single column of probabilities is of.
    """
    truth = np.asarray(y_true)
    if truth.ndim != 1 or len(truth) == 0:
        raise ValueError(f"y_true must have one label per row, got shape {truth.shape}")
    classes = check_classes(truth, labels)
    probabilities = _check_probabilities(y_prob, len(truth), classes, pos_label)
    weights = check_weights(sample_weight, len(truth), "y_true")
    return LabeledProbabilities(columns_of(truth, classes), probabilities, weights)


def check_classes(truth: Classes, labels: Any) -> Classes:
    """Check the labels; return the class of each column."""
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
        if classes.ndim != 1 or len(set(classes.tolist())) != len(classes):
            raise ValueError(f"labels must name each class once, got {classes.tolist()}")
    if len(classes) < 2:
        raise ValueError(
            f"y_true contains one class only, {classes.tolist()[0]!r}; give all classes as labels"
            if labels is None
            else f"labels must name at least two classes, got {classes.tolist()}"
        )
    return classes


def _check_probabilities(y_prob: Any, n_rows: int, classes: Classes, pos_label: Any) -> Floats:
    n_classes = len(classes)
    try:
        matrix = np.asarray(y_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("y_prob must be numbers, one row of one length for each label") from None
    is_single = matrix.ndim == 1 or matrix.shape[1:] == (1,)
    check_pos_label(pos_label, classes, 1 if is_single else n_classes, "y_prob")
    if is_single and n_classes == 2:
        matrix = matrix.reshape(-1, 1)
        columns, _ = find_columns(y_prob, matrix, classes, pos_label, "y_prob")
        pair = [1.0 - matrix, matrix]
        matrix = np.hstack(pair[::-1] if columns.is_turned else pair)
    elif matrix.ndim == 2 and matrix.shape[1] == n_classes:
        _, matrix = find_columns(y_prob, matrix, classes, None, "y_prob")
    if matrix.ndim != 2 or matrix.shape[1] != n_classes:
        raise ValueError(
            f"y_prob has shape {matrix.shape}, but there are {n_classes} classes; give one column "
            "per class, and labels if y_true lacks one of them"
        )
    if len(matrix) != n_rows:
        raise ValueError(f"y_prob has {len(matrix)} rows, but y_true has {n_rows}")
    valid = (matrix >= 0.0) & (matrix <= 1.0)
    if not valid.all():
        row = int(np.flatnonzero(~valid.all(axis=1))[0])
        # Of a single column the other follows: name the number that was given.
        given = np.asarray(y_prob, dtype=np.float64).reshape(n_rows, -1)[row]
        wrong = given[~((given >= 0.0) & (given <= 1.0))][-1]
        raise ValueError(f"y_prob contains {wrong} in row {row}, which is not a probability")
    sums = matrix.sum(axis=1)
    if np.abs(sums - 1.0).max() > _SUM_TOLERANCE:
        row = int(np.abs(sums - 1.0).argmax())
        raise ValueError(f"y_prob sums to {sums[row]:g} in row {row}; divide each row by its sum")
    return matrix


def columns_of(truth: Classes, classes: Classes) -> npt.NDArray[np.intp]:
    """The column of the true class of every row."""
    try:
        order = np.argsort(classes)
        place = np.searchsorted(classes, truth, sorter=order)
    except TypeError:
        raise TypeError(
            f"labels {classes.tolist()} and y_true differ in type; make all of them strings"
        ) from None
    columns = order[np.minimum(place, len(classes) - 1)]
    unknown = classes[columns] != truth
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"y_true contains {truth[row : row + 1].tolist()[0]!r} in row {row}, "
            f"which is not among the labels {classes.tolist()}"
        )
    return columns


def events(rows: LabeledProbabilities, kind: Kind) -> Iterator[tuple[Mask, Floats]]:
    """Yield whether an event happened in each row, and its probability."""
    if kind == "top_label":
        top = rows.probabilities.argmax(axis=1)
        yield rows.columns == top, rows.probabilities.max(axis=1)
        return
    n_classes = rows.probabilities.shape[1]
    for column in range(1 if n_classes == 2 else 0, n_classes):
        yield rows.columns == column, rows.probabilities[:, column]
