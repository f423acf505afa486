"""Do no harm: the choice between leaving the scores alone and calibrating them, by their losses."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Labels, Rows

Floats: TypeAlias = npt.NDArray[np.float64]
Selection: TypeAlias = list[dict[str, Any]]

OBJECTIVES = ("rmse", "log_loss")
LEAVE_ALONE, GLOBAL, LOCAL = "leave alone", "global", "local"
# By how many standard errors calibrated scores must be better before the scores are touched: by
# either loss, and by more of log loss, of which a few rows may have most.
DEMANDED = {"rmse": 2.0, "log_loss": 3.0}
# Up to how many standard errors count for nothing: then the simpler is taken. Where one model for
# all rows would do, a tree must show more.
TIE, TIE_WITH_GLOBAL = 0.5, 1.0
_STEPS_OF_LEANING = 7
SMALLEST_PROBABILITY = 1e-15
_LARGEST_LOSS = 1e300
ROUNDING = 1e-12


def row_losses(probabilities: Floats, labels: Rows, objective: str) -> Floats:
    """The loss of every row: squared error, mean over classes, or minus log-likelihood."""
    if objective == "log_loss":
        likely = probabilities[np.arange(len(labels)), labels]
        return np.asarray(-np.log(np.maximum(likely, SMALLEST_PROBABILITY)))
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
    if len(worse) < 2 or abs(mean) <= ROUNDING * float(np.average(worse, weights=weights)):
        return 0.0
    # A row of weight 2 counts as two rows.
    count = np.ones(len(worse)) if weights is None else weights
    return in_standard_errors(mean, float(count @ (difference - mean) ** 2), float(count.sum()))


def in_standard_errors(mean: float, squares: float, total: float) -> float:
    """A mean of rows, given their squared deviations from it and their total weight."""
    error = math.sqrt(max(0.0, squares)) / total
    return mean / error if error > 0.0 else math.copysign(math.inf, mean)


class Chooser(ABC):
    """Compares predictions of the same rows, which none of them was fitted to.

    A prediction is whatever the chooser can judge, and adds up as its probabilities do.
    """

    objective: str

    @abstractmethod
    def loss(self, predictions: Floats) -> float:
        """RMSE, or log loss."""

    @abstractmethod
    def excess(self, worse: Floats, better: Floats, objective: str) -> float:
        """By how many standard errors the mean of one row loss exceeds that of the other."""

    def is_tie(self, simpler: Floats, other: Floats, margin: float = TIE) -> bool:
        """Whether the simpler prediction is as good as another, but for chance."""
        return self.excess(simpler, other, self.objective) <= margin

    def helps(self, raw: Floats, calibrated: Floats) -> bool:
        """Whether calibrated scores are better than raw ones without a doubt.

        By both losses: few mistakes of an almost perfect classifier may sway one of them, but not
        so easily both.
        """
        return all(
            self.excess(raw, calibrated, objective) > demanded
            for objective, demanded in DEMANDED.items()
        )

    def lean(self, raw: Floats, calibrated: Floats) -> float:
        """The largest share of raw scores that leaves calibrated ones as good, but for chance."""
        low, high = 0.0, 1.0
        for _ in range(_STEPS_OF_LEANING):
            share = (low + high) / 2
            if self.is_tie(share * raw + (1.0 - share) * calibrated, calibrated):
                low = share
            else:
                high = share
        return low


@dataclass(frozen=True)
class Judge(Chooser):
    """Knows the rows: a prediction is an array of their probabilities."""

    labels: Labels
    weights: Floats | None
    objective: str

    def losses(self, predictions: Floats) -> Floats:
        """The loss of every row."""
        return row_losses(predictions, self.labels, self.objective)

    def loss(self, predictions: Floats) -> float:
        """RMSE, or log loss."""
        return mean_loss(self.losses(predictions), self.weights, self.objective)

    def excess(self, worse: Floats, better: Floats, objective: str) -> float:
        """By how many standard errors the mean of one row loss exceeds that of the other."""
        higher, lower = (row_losses(p, self.labels, objective) for p in (worse, better))
        return standard_errors(higher, lower, self.weights)


def checked_selection(stored: Any) -> Selection:
    """A stored selection, or a ValueError."""
    rows: list[Any] = stored if isinstance(stored, list) else [None]
    for row in rows:
        if (
            not isinstance(row, dict)
            or set(row) - {"share"} != {"candidate", "loss", "chosen"}
            or not isinstance(row["candidate"], str)
            or not isinstance(row["chosen"], bool)
            or not is_number(row["loss"])
            or not (is_number(row.get("share", 0.0)) and 0.0 <= row.get("share", 0.0) <= 1.0)
        ):
            raise ValueError(
                "selection of a stored calibrator must list candidates and losses, with shares "
                "from 0 to 1 if it has any"
            )
    if rows and not any(row["chosen"] for row in rows):
        raise ValueError("selection of a stored calibrator must say what was chosen")
    return rows


def is_number(value: Any) -> bool:
    """Whether a stored value can be a loss or a share."""
    return type(value) in (int, float) and -_LARGEST_LOSS <= value <= _LARGEST_LOSS
