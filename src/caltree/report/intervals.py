"""The numbers of a report, each with how sure it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .._inputs.arrays import Floats
from ..reliability import calibration_error, reliability_curve

CONFIDENCE = 0.95
# Fewer rows than this say little about a frequency.
FEW_ROWS = 30
# Deviations on either side of the middle that hold 95 % of a normal distribution.
_DEVIATIONS = 1.959963984540054
# What a smaller probability counts as in `caltree.metrics.log_loss`.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)
_DECIMALS = 5
_MOST_BINS_OF_A_PLACE = 10
# What is known of a place without rows.
_UNKNOWN = ("class", "says", "observed", "low", "high", "calibrated")
_NOWHERE: dict[str, Any] = {
    "rows": 0.0,
    "few": True,
    **dict.fromkeys(_UNKNOWN),
    "harm": 0.0,
    "off": False,
    "before": [],
    "after": [],
}
_AXES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0)


def squared_errors(probabilities: Floats, truth: Floats) -> Floats:
    """The squared error of every row, mean over the classes."""
    return np.asarray(np.mean((probabilities - truth) ** 2, axis=1))


def log_losses(probabilities: Floats, truth: Floats) -> Floats:
    """Minus the logarithm of the probability of the true class of every row."""
    likely = np.sum(probabilities * truth, axis=1) / probabilities.sum(axis=1)
    return np.asarray(-np.log(np.maximum(likely, _SMALLEST_PROBABILITY)))


def paired_gain(before: Floats, after: Floats, weights: Floats) -> dict[str, float | None]:
    """By how much a mean loss falls, with an interval (Student's) over the rows' differences."""
    gain = before - after
    mean, n_rows = float(np.average(gain, weights=weights)), float(weights.sum())
    low = high = None
    if n_rows > 1.0 and len(gain) > 1:
        error = math.sqrt(float(weights @ (gain - mean) ** 2) / (n_rows - 1.0) / n_rows)
        reach = error * float(stdtrit(len(gain) - 1, (1.0 + CONFIDENCE) / 2.0))
        low, high = mean - reach, mean + reach
    return {"gain": mean, "low": low, "high": high}


def wilson(frequency: float, n_rows: float) -> tuple[float, float]:
    """Wilson's interval of a frequency: honest for few rows, too."""
    z = _DEVIATIONS**2
    centre = (frequency + z / (2.0 * n_rows)) / (1.0 + z / n_rows)
    variance = frequency * (1.0 - frequency) / n_rows + z / (4.0 * n_rows**2)
    reach = _DEVIATIONS / (1.0 + z / n_rows) * math.sqrt(variance)
    return max(0.0, min(centre - reach, frequency)), min(1.0, max(centre + reach, frequency))


def n_bins(n_rows: float, most: int) -> int:
    """How many bins so many rows can fill, each with enough to mean something."""
    return int(min(max(n_rows // (2 * FEW_ROWS), 1), most))


@dataclass(frozen=True, eq=False)
class Judged:
    """What was said of some rows and what happened, one column a class; of two, the second."""

    classes: list[str]
    truth: Floats
    before: Floats
    after: Floats
    weights: Floats | None
    """None if each row counts once."""

    @classmethod
    def of(
        cls, classes: list[str], truth: Floats, before: Floats, after: Floats, weights: Floats
    ) -> Judged:
        """All rows, by columns."""
        first = 1 if len(classes) == 2 else 0
        truth, before, after = (
            np.asfortranarray(part[:, first:]) for part in (truth, before, after)
        )
        given = None if (weights == 1.0).all() else weights
        return cls(classes[first:], truth, before, after, given)

    def some(self, rows: Any) -> Judged:
        """Some of the rows: indices, a mask or a slice."""
        truth, before, after = (part[rows] for part in (self.truth, self.before, self.after))
        weights = None if self.weights is None else self.weights[rows]
        return Judged(self.classes, truth, before, after, weights)

    def place(self) -> dict[str, Any]:
        """What was said and what happened, of the class that is farthest off."""
        n_rows = float(len(self.truth) if self.weights is None else self.weights.sum())
        if n_rows == 0.0:
            return dict(_NOWHERE)
        observed, says, calibrated = (
            np.average(part, axis=0, weights=self.weights)
            for part in (self.truth, self.before, self.after)
        )
        worst = int(np.abs(says - observed).argmax())
        frequency = min(max(float(observed[worst]), 0.0), 1.0)
        low, high = wilson(frequency, n_rows)
        bins = n_bins(n_rows, _MOST_BINS_OF_A_PLACE)
        return {
            "rows": n_rows,
            "few": n_rows < FEW_ROWS,
            "class": self.classes[worst],
            "says": float(says[worst]),
            "observed": frequency,
            "low": low,
            "high": high,
            "calibrated": float(calibrated[worst]),
            "harm": n_rows * (float(says[worst]) - frequency) ** 2,
            "off": not low <= float(says[worst]) <= high,
            "before": self.curve("before", worst, bins)["bins"],
            "after": self.curve("after", worst, bins)["bins"],
        }

    def curve(self, when: str, column: int, n_bins: int) -> dict[str, Any]:
        """The reliability curve of a class as a list of bins, and its calibration error."""
        probability = np.clip(getattr(self, when)[:, column], 0.0, 1.0)
        found = reliability_curve(
            self.truth[:, column], probability, n_bins=n_bins, sample_weight=self.weights
        )
        observed = np.clip(found.observed, 0.0, 1.0)  # a sum of weights may be rounded
        bins = []
        for predicted, share, rows in zip(found.predicted, observed, found.weight, strict=True):
            low, high = wilson(float(share), float(rows))
            bins.append(
                {
                    "predicted": round(float(predicted), _DECIMALS),
                    "observed": round(float(share), _DECIMALS),
                    "low": round(low, _DECIMALS),
                    "high": round(high, _DECIMALS),
                    "rows": round(float(rows), 3),
                }
            )
        return {"error": calibration_error(found), "bins": bins}


def axis_end(largest: float) -> float:
    """Where an axis ends that must show this probability."""
    return next((end for end in _AXES if largest <= end), 1.0)
