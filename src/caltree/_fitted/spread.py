"""How far the true probabilities may be from those that a calibrator predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtri

from .._inputs.arrays import Floats
from .json_values import is_number, plain_numbers, read_numbers

KNOTS = np.array([0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
"""The predicted probabilities of the stored deviations, which are linear in log-odds between."""
SURE = 1e-4
"""A smaller probability counts as this one where it is asked how much larger the truth may be."""
LARGEST_EXPONENT = 0.5
"""A mean of rows is off by the inverse of the root of their number."""
_LARGEST_DEVIATION, _MOST_ROWS = 1e6, 1e18
_MOST_WIDENING = 5.0


@dataclass(frozen=True, eq=False)
class Spread:
    """Standard deviations of the true log-odds around the predicted ones.

    Parameters
    ----------
    deviations : ndarray
        One for each of `KNOTS`, for probabilities that are based on a typical number of rows. With
        two classes, the knots are probabilities of the second class. The first class has the same
        deviations.
    exponent : float
        How fast deviations fall with that number: 0 if they do not.
    typical_rows : float
        The typical number of training rows that a probability is based on.
    """

    deviations: Floats
    exponent: float = 0.0
    typical_rows: float = 1.0

    def widening(self, rows: Floats | float) -> Floats:
        """Return the factors of deviations, by the rows that probabilities are based on."""
        factors = (self.typical_rows / np.asarray(rows)) ** self.exponent
        return np.asarray(np.clip(factors, 1.0 / _MOST_WIDENING, _MOST_WIDENING))

    def interval(
        self, probabilities: Floats, confidence: float, rows: Floats | float = 1.0
    ) -> Floats:
        """Return the lower and the upper end for each probability, along a new last axis.

        `probabilities` has a row per row and a column per class, of which there are two or more.
        `rows` are the training rows that each row's probabilities are based on. NaN gives NaN.
        """
        known = probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities
        widening = np.broadcast_to(self.widening(rows), len(probabilities))
        deviations = np.interp(sure_log_odds(known), sure_log_odds(KNOTS), self.deviations)
        width = ndtri((1.0 + confidence) / 2) * deviations * widening[:, np.newaxis]
        lower = expit(logit(np.minimum(probabilities, 1.0 - SURE)) - width)
        upper = expit(logit(np.maximum(probabilities, SURE)) + width)
        # A logit and its inverse may be rounded to the wrong side.
        return np.stack(
            [np.minimum(lower, probabilities), np.maximum(upper, probabilities)], axis=-1
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the spread as plain values."""
        return {
            "deviations": plain_numbers(self.deviations),
            "exponent": self.exponent,
            "typical_rows": self.typical_rows,
        }

    @classmethod
    def from_dict(cls, stored: Any) -> Spread:
        """Rebuild a spread from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"deviations", "exponent", "typical_rows"}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(
                f"spread of a stored calibrator must be null or have the keys {sorted(keys)}"
            )
        deviations = read_numbers(stored, "deviations", np.float64, 1)
        fits = len(deviations) == len(KNOTS)
        if not fits or deviations.min() < 0.0 or deviations.max() > _LARGEST_DEVIATION:
            raise ValueError(
                f"deviations of a stored calibrator must be {len(KNOTS)} numbers from 0 to "
                f"{_LARGEST_DEVIATION:g}"
            )
        exponent, typical = stored["exponent"], stored["typical_rows"]
        if not is_number(exponent) or not 0.0 <= exponent <= LARGEST_EXPONENT:
            raise ValueError(
                f"exponent of a stored calibrator must be from 0 to {LARGEST_EXPONENT}"
            )
        if not is_number(typical) or not 0.0 < typical <= _MOST_ROWS:
            raise ValueError("typical_rows of a stored calibrator must be a number of rows")
        return cls(deviations, float(exponent), float(typical))


def sure_log_odds(probabilities: Floats) -> Floats:
    """Return log-odds, where probabilities count as at least `SURE` and at most 1 less this."""
    return np.asarray(logit(np.clip(probabilities, SURE, 1.0 - SURE)))
