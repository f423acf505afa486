"""What reliability diagrams compare: events, their probabilities, and what chance allows."""

from __future__ import annotations

import reprlib
from typing import Any, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from .._inputs.parameters import check_choice
from .._inputs.probabilities import Kind, check_classes, check_rows, columns_of, events
from ..reliability import check_probabilities

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_MOST_PANELS = 60


def cases_of(
    y_true: Any, y_prob: Any, labels: Any, kind: Kind, pos_label: Any, sample_weight: Any
) -> tuple[dict[Any, tuple[Mask, Floats]], Floats | None]:
    """By class, where it happened and its probability; and the weights."""
    truth = np.asarray(y_true)
    if truth.ndim != 1 or len(truth) == 0:
        raise ValueError(
            f"y_true must have one label a row, got shape {truth.shape}; give at least one row"
        )
    classes = check_classes(truth, labels)
    check_kind(kind, pos_label, classes)
    one_column = _is_one_column(y_prob)
    if one_column:
        check_probabilities("y_prob", np.ravel(y_prob))
    if one_column and pos_label is not None:
        # The column is that of this class, however many others there are.
        happened = classes[columns_of(truth, classes)] == pos_label
        rows = check_rows(happened, y_prob, sample_weight, [False, True])
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


def _is_one_column(y_prob: Any) -> bool:
    try:
        shape = np.shape(y_prob)
    except ValueError:  # rows of several lengths, which are refused elsewhere
        return False
    return len(shape) == 1 or shape[1:] == (1,)


def check_kind(kind: Any, pos_label: Any, classes: npt.NDArray[Any]) -> None:
    check_choice("kind", kind, get_args(Kind))
    if kind == "top_label":
        if pos_label is not None:
            raise ValueError(
                f"kind='top_label' looks at the likeliest class of each row, but pos_label is "
                f"{pos_label!r}; leave one of the two out"
            )
    elif pos_label is not None:
        if pos_label not in classes.tolist():
            raise ValueError(
                f"pos_label is {pos_label!r}, which is not among the classes "
                f"{reprlib.repr(classes.tolist())}; choose one of them"
            )
    elif len(classes) > _MOST_PANELS:
        raise ValueError(
            f"kind='classwise' draws a panel for each of the {len(classes)} classes, at most "
            f"{_MOST_PANELS}; choose a class with pos_label, or use kind='top_label'"
        )


def wilson_interval(
    frequency: Floats, n_rows: Floats, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Where a probability is that was observed as a frequency, by Wilson's score test.

    Parameters
    ----------
    frequency : ndarray
        The share of the rows in which the event happened.
    n_rows : ndarray
        The number of rows, which need not be whole.
    confidence : float, default=0.95
        How often such an interval holds the true probability.

    Returns
    -------
    lower, upper : ndarray
        The ends of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree.plot.reliability_data import wilson_interval
    >>> lower, upper = wilson_interval(np.array([0.0, 0.5]), np.array([10, 10]))
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    z = float(ndtri(0.5 + confidence / 2.0))
    share = z**2 / n_rows
    centre = (frequency + share / 2.0) / (1.0 + share)
    spread = np.sqrt(frequency * (1.0 - frequency) / n_rows + (share / (2.0 * z)) ** 2)
    half = z * spread / (1.0 + share)
    # At 0 and 1 rounding must not take the frequency itself out of its interval.
    return (
        np.clip(centre - half, 0.0, frequency),
        np.clip(centre + half, frequency, 1.0),
    )
