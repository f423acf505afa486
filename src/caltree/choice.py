"""Do no harm: the choice between leaving the scores alone and calibrating them, by their losses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .validation import Labels

Floats: TypeAlias = npt.NDArray[np.float64]
Selection: TypeAlias = list[dict[str, Any]]

OBJECTIVES = ("rmse", "log_loss")
LEAVE_ALONE, GLOBAL, LOCAL = "leave alone", "global", "local"
# By how many standard errors calibrated scores must be better before the scores are touched.
DEMANDED = 2.0
_SMALLEST_PROBABILITY = 1e-15
_LARGEST_LOSS = 1e300
_ROUNDING = 1e-12


def row_losses(probabilities: Floats, labels: Labels, objective: str) -> Floats:
    """The loss of every row: squared error, mean over classes, or minus log-likelihood."""
    if objective == "log_loss":
        likely = probabilities[np.arange(len(labels)), labels]
        return np.asarray(-np.log(np.maximum(likely, _SMALLEST_PROBABILITY)))
    residuals = probabilities.copy()
    residuals[np.arange(len(labels)), labels] -= 1.0
    return np.asarray(np.mean(residuals**2, axis=1))


def mean_loss(losses: Floats, weights: Floats | None, objective: str) -> float:
    """RMSE, or log loss."""
    mean = float(np.average(losses, weights=weights))
    return mean if objective == "log_loss" else math.sqrt(mean)


def standard_errors(worse: Floats, better: Floats, weights: Floats | None) -> float:
    """By how many standard errors one mean loss exceeds another of the same rows."""
    difference = worse - better
    mean = float(np.average(difference, weights=weights))
    if len(worse) < 2 or abs(mean) <= _ROUNDING * float(np.average(worse, weights=weights)):
        return 0.0
    # A row of weight 2 counts as two rows.
    count = np.ones(len(worse)) if weights is None else weights
    error = math.sqrt(float(count @ (difference - mean) ** 2)) / float(count.sum())
    return mean / error if error > 0.0 else math.copysign(math.inf, mean)


def choose(losses: Mapping[str, Floats], weights: Floats | None, objective: str) -> Selection:
    """Choose among candidates, the simplest first, each by the losses of the same rows.

    A candidate takes the place of a simpler one if it is better by two standard errors than
    leaving the scores alone, or by one than what calibrates them more simply.

    Returns
    -------
    list of dict
        Candidate, estimated loss, and whether it was chosen.
    """
    names = list(losses)
    best = names[0]
    for name in names[1:]:
        demanded = DEMANDED if best == LEAVE_ALONE else DEMANDED / 2
        if standard_errors(losses[best], losses[name], weights) > demanded:
            best = name
    return [
        {
            "candidate": name,
            "loss": mean_loss(losses[name], weights, objective),
            "chosen": name == best,
        }
        for name in names
    ]


def chosen(selection: Selection) -> str:
    """The name of the chosen candidate."""
    return next(str(row["candidate"]) for row in selection if row["chosen"])


def checked_selection(stored: Any) -> Selection:
    """A stored selection, or a ValueError."""
    rows: list[Any] = stored if isinstance(stored, list) else [None]
    for row in rows:
        if (
            not isinstance(row, dict)
            or set(row) - {"share"} != {"candidate", "loss", "chosen"}
            or not isinstance(row["candidate"], str)
            or not isinstance(row["chosen"], bool)
            or not _is_finite(row["loss"])
            or not (_is_finite(row.get("share", 0.0)) and 0.0 <= row.get("share", 0.0) <= 1.0)
        ):
            raise ValueError(
                "selection of a stored calibrator must list candidates and losses, with shares "
                "from 0 to 1 if it has any"
            )
    if rows and not any(row["chosen"] for row in rows):
        raise ValueError("selection of a stored calibrator must say what was chosen")
    return rows


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and -_LARGEST_LOSS <= value <= _LARGEST_LOSS
