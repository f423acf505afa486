"""The events of a reliability diagram, and their probabilities."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from .._fitted.segments import segments
from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import learn
from .._inputs.parameters import check_choice
from .._inputs.probabilities import Kind, check_classes, check_rows, columns_of, events
from ..reliability import check_probabilities

_MOST_PANELS = 60
# Of more different numbers, groups are parts of about as many rows.
_PARTS_OF_NUMBERS = 4


def cases_of(
    y_true: Any, y_prob: Any, labels: Any, kind: Kind, pos_label: Any, sample_weight: Any
) -> tuple[dict[Any, tuple[Mask, Floats]], Floats | None]:
    """By class, whether it happened in each row and its probability; and the weights."""
    truth = np.asarray(y_true)
    if truth.ndim != 1 or len(truth) == 0:
        raise ValueError(
            f"y_true must have one label per row, got shape {truth.shape}; give at least one row"
        )
    classes = check_classes(truth, labels)
    check_kind(kind, pos_label, classes)
    one_column = _is_one_column(y_prob)
    if one_column:
        check_probabilities("y_prob", np.ravel(y_prob))
    if one_column and pos_label is not None:
        # The column is that of this class, however many others there are.
        happened = classes[columns_of(truth, classes)] == pos_label
        rows = check_rows(happened, np.ravel(y_prob), sample_weight, [False, True])
        return {pos_label: (happened, rows.probabilities[:, 1])}, rows.weights
    rows = check_rows(truth, y_prob, sample_weight, classes)
    if kind == "top_label":
        return {"top label": next(events(rows, kind))}, rows.weights
    first = 1 if len(classes) == 2 and pos_label is None else 0
    cases = {
        label: (rows.columns == column, rows.probabilities[:, column])
        for column, label in enumerate(classes.tolist())
        if (column >= first if pos_label is None else label == pos_label)
    }
    return cases, rows.weights


def divide_cases(
    cases: dict[Any, tuple[Mask, Floats]], weights: Floats | None, by: Any
) -> dict[Any, tuple[Mask, Floats, Floats | None]]:
    """The cases with their weights; with `by`, the one case divided into groups of rows."""
    if by is None:
        return {label: (*case, weights) for label, case in cases.items()}
    if len(cases) > 1:
        raise ValueError(
            f"by draws a panel per group, but there are {len(cases)} classes; choose one with "
            "pos_label, or use kind='top_label'"
        )
    [(happened, probability)] = cases.values()
    found = {}
    for words, inside in _groups_of(by, len(happened)):
        chosen = None if weights is None else weights[inside]
        if chosen is None or chosen.any():
            found[words] = (happened[inside], probability[inside], chosen)
    if len(found) > _MOST_PANELS:
        raise ValueError(
            f"by has {len(found)} groups, at most {_MOST_PANELS} can be drawn; put some together"
        )
    return found


def _groups_of(by: Any, n_rows: int) -> list[tuple[str, Mask]]:
    """The groups of rows, in words."""
    is_series = hasattr(by, "to_frame")
    values = by.to_frame() if is_series else by if hasattr(by, "columns") else np.asarray(by)
    known, matrix = learn(values.reshape(-1, 1) if isinstance(values, np.ndarray) else values)
    if matrix.shape != (n_rows, 1):
        raise ValueError(
            f"by has {matrix.shape[1]} column(s) of {len(matrix)} values; give one group for each "
            f"of the {n_rows} rows of y_true"
        )
    has_name = known.names is not None and (not is_series or by.name is not None)
    named = known.columns[0] if has_name else replace(known.columns[0], name="group")
    return list(segments(named, matrix[:, 0], _PARTS_OF_NUMBERS))


def _is_one_column(y_prob: Any) -> bool:
    try:
        shape = np.shape(y_prob)
    except ValueError:  # rows of several lengths, which are refused elsewhere
        return False
    return len(shape) == 1 or shape[1:] == (1,)


def check_kind(kind: Any, pos_label: Any, classes: npt.NDArray[Any]) -> None:
    """Refuse an unknown kind or class, and too many panels."""
    check_choice("kind", kind, get_args(Kind))
    if kind == "top_label":
        if pos_label is not None:
            raise ValueError(
                f"kind='top_label' looks at the likeliest class of each row, but pos_label is "
                f"{pos_label!r}; leave one of the two out"
            )
    elif pos_label is not None:
        check_label(pos_label, classes.tolist())
    elif len(classes) > _MOST_PANELS:
        raise ValueError(
            f"kind='classwise' draws a panel for each of the {len(classes)} classes, at most "
            f"{_MOST_PANELS}; choose a class with pos_label, or use kind='top_label'"
        )


def check_label(pos_label: Any, classes: Sequence[Any]) -> None:
    """Refuse an unknown class."""
    if pos_label not in classes:
        raise ValueError(
            f"pos_label is {pos_label!r}, which is not among the classes {reprlib.repr(classes)}; "
            "choose one of them"
        )
