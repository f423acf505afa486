"""The numbers of a report, with their confidence intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from .._inputs.arrays import Floats
from ..reliability import calibration_error, reliability_curve, wilson_interval

CONFIDENCE = 0.95
# Fewer rows than this say little about a frequency.
FEW_ROWS = 30
_DECIMALS = 5
_MOST_BINS_OF_A_REGION = 10
_UNKNOWN = ("class", "says", "observed", "low", "high", "calibrated")
_EMPTY_REGION: dict[str, Any] = {
    "rows": 0.0,
    "few": True,
    **dict.fromkeys(_UNKNOWN),
    "harm": 0.0,
    "off": False,
    "before": [],
    "after": [],
}
_AXES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0)


def paired_gain(before: Floats, after: Floats, weights: Floats) -> dict[str, float | None]:
    """The fall of a mean loss, with Student's interval over the differences of the rows."""
    gain = before - after
    mean, n_rows = float(np.average(gain, weights=weights)), float(weights.sum())
    low = high = None
    if n_rows > 1.0 and len(gain) > 1:
        error = math.sqrt(float(weights @ (gain - mean) ** 2) / (n_rows - 1.0) / n_rows)
        reach = error * float(stdtrit(len(gain) - 1, (1.0 + CONFIDENCE) / 2.0))
        low, high = mean - reach, mean + reach
    return {"gain": mean, "low": low, "high": high}


def n_bins(n_rows: float, most: int) -> int:
    """The number of bins for so many rows, each with enough rows to judge by."""
    return int(min(max(n_rows // (2 * FEW_ROWS), 1), most))


@dataclass(frozen=True, eq=False)
class Predictions:
    """Truth and probabilities of some rows, one column a class; of two classes, the event."""

    classes: list[str]
    truth: Floats
    before: Floats
    after: Floats
    weights: Floats | None
    """None if each row counts once."""

    @classmethod
    def of(
        cls,
        classes: list[str],
        truth: Floats,
        before: Floats,
        after: Floats,
        weights: Floats,
        event: int | None,
    ) -> Predictions:
        """All rows, by columns; the event is the one class to look at, if not all."""
        shown = slice(None) if event is None else slice(event, event + 1)
        truth, before, after = (
            np.asfortranarray(part[:, shown]) for part in (truth, before, after)
        )
        given = None if (weights == 1.0).all() else weights
        return cls(classes[shown], truth, before, after, given)

    def take(self, rows: Any) -> Predictions:
        """Some of the rows: indices, a mask or a slice."""
        truth, before, after = (part[rows] for part in (self.truth, self.before, self.after))
        weights = None if self.weights is None else self.weights[rows]
        return Predictions(self.classes, truth, before, after, weights)

    def summary(self) -> dict[str, Any]:
        """The mean probabilities and the frequency of the class that is farthest off."""
        n_rows = float(len(self.truth) if self.weights is None else self.weights.sum())
        if n_rows == 0.0:
            return dict(_EMPTY_REGION)
        observed, says, calibrated = (
            np.average(part, axis=0, weights=self.weights)
            for part in (self.truth, self.before, self.after)
        )
        worst = int(np.abs(says - observed).argmax())
        frequency = min(max(float(observed[worst]), 0.0), 1.0)
        low, high = map(float, wilson_interval(frequency, n_rows, CONFIDENCE))
        bins = n_bins(n_rows, _MOST_BINS_OF_A_REGION)
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
        low, high = wilson_interval(observed, found.weight, CONFIDENCE)
        columns = {"predicted": found.predicted, "observed": observed, "low": low, "high": high}
        bins = [
            {
                **{name: round(float(column[b]), _DECIMALS) for name, column in columns.items()},
                "rows": round(float(rows), 3),
            }
            for b, rows in enumerate(found.weight)
        ]
        return {"error": calibration_error(found), "bins": bins}


def axis_end(largest: float) -> float:
    """The end of an axis that has room for this probability."""
    return next((end for end in _AXES if largest <= end), 1.0)
