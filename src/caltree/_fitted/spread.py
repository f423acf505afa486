"""How far the true probabilities may be from those that a calibrator predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from .._inputs.arrays import Floats
from .json_values import plain_numbers, read_numbers

KNOTS = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
"""The predicted probabilities at which deviations are stored; between them these are linear."""
SURE = 1e-4
"""A smaller probability counts as this one where it is asked how much larger the truth may be."""
_LARGEST_DEVIATION = 1e6


@dataclass(frozen=True, eq=False)
class Spread:
    """Standard deviations of the true log-odds around the predicted ones.

    Parameters
    ----------
    deviations : ndarray
        One for each of `KNOTS`.
    """

    deviations: Floats

    def interval(self, probabilities: Floats, confidence: float) -> Floats:
        """Return the lower and the upper end for each probability, along a new last axis.

        NaN gives NaN.
        """
        width = ndtri((1.0 + confidence) / 2) * np.interp(probabilities, KNOTS, self.deviations)
        lower = expit(logit(np.minimum(probabilities, 1.0 - SURE)) - width)
        upper = expit(logit(np.maximum(probabilities, SURE)) + width)
        # A logit and its inverse may be rounded to the wrong side.
        return np.stack(
            [np.minimum(lower, probabilities), np.maximum(upper, probabilities)], axis=-1
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the spread as plain values."""
        return {"deviations": plain_numbers(self.deviations)}

    @classmethod
    def from_dict(cls, stored: Any) -> Spread:
        """Rebuild a spread from :meth:`to_dict`; ValueError on anything malformed."""
        if not isinstance(stored, dict) or set(stored) != {"deviations"}:
            raise ValueError("spread of a stored calibrator must be null or have deviations alone")
        deviations = read_numbers(stored, "deviations", np.float64, 1)
        fits = len(deviations) == len(KNOTS)
        if not fits or deviations.min() < 0.0 or deviations.max() > _LARGEST_DEVIATION:
            raise ValueError(
                f"deviations of a stored calibrator must be {len(KNOTS)} numbers from 0 to "
                f"{_LARGEST_DEVIATION:g}"
            )
        return cls(deviations)
