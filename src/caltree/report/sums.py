"""Predicted and observed in many parts of the rows at once, from sums."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from .._audit.effects import CONFIDENCE
from .._audit.rows import Rows as Audited
from .._inputs.arrays import Floats
from ..reliability import wilson_interval

_N_COUNTS = 3


class Line(NamedTuple):
    """Some rows; of more than two classes, the one that is farthest off before calibration."""

    rows: int
    share: float
    """Of the weight of all rows."""
    label: str
    predicted: float
    observed: float
    low: float
    high: float
    calibrated: float


class RowSums:
    """Values of every row whose sums describe parts of the rows."""

    def __init__(self, before: Audited, after: Audited) -> None:
        channels, weights = before.channels, before.row_weights
        self._classes = [before.classes[channel] for channel in channels]
        self._total = float(weights.sum())
        parts = [np.ones(len(before)), weights, weights**2]
        parts += [weights * before.observed(channel) for channel in channels]
        for rows in (before, after):
            parts += [weights * rows.probabilities[:, channel] for channel in channels]
        self._values = np.column_stack(parts)

    def over(self, part: npt.NDArray[np.integer], n_parts: int) -> Floats:
        """Sum over parts, given that of every row; one row a part."""
        n_rows = len(part)
        inside = csr_array((np.ones(n_rows), (part, np.arange(n_rows))), (n_parts, n_rows))
        return np.asarray(inside @ self._values, dtype=np.float64)

    def describe(self, sums: Floats) -> Line | None:
        """Describe one part by its sums; None if it has no rows."""
        count, weight, squares = sums[:_N_COUNTS].tolist()
        if count == 0.0:
            return None
        means = np.clip(sums[_N_COUNTS:].reshape(3, -1) / weight, 0.0, 1.0)
        worst = int(np.abs(means[1] - means[0]).argmax())
        observed, predicted, calibrated = means[:, worst].tolist()
        # Rows of unequal weights tell as much as so many of equal ones.
        low, high = wilson_interval(observed, weight**2 / squares, CONFIDENCE)
        label, share = self._classes[worst], weight / self._total
        return Line(
            int(count), share, label, predicted, observed, float(low), float(high), calibrated
        )
