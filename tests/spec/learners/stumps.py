"""Regression stumps: one split, and a branch of their own for missing values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from caltree._inputs.arrays import Floats, Mask

from .splits import Gains, Indices, Presorted, first_best, split_gains, sums


@dataclass(frozen=True)
class Stump:
    """One split of the rows, with a value for each side."""

    attribute: int
    """-1 for a stump without a split, whose value is `missing`."""
    nominal: bool
    split: float
    """The rows at or below this number are inside, or those of this category."""
    inside: float
    outside: float
    missing: float

    def predict(self, matrix: Floats) -> Floats:
        """The value of each row of an encoded table."""
        if self.attribute < 0:
            return np.full(len(matrix), self.missing)
        branches = _branches(matrix[:, self.attribute], self.nominal, self.split)
        return np.array([self.inside, self.outside, self.missing])[branches]


def fit_stump(table: Presorted, response: Floats, weight: Floats) -> Stump:
    """Return the stump of the smallest weighted squared error; the weights have the mean 1.

    Its values are weighted means; a branch without weight has the mean of all rows.
    """
    total = weight.sum()
    mean = float(np.dot(weight, response) / total) if total > 0 else 0.0
    weighted = weight * (response - mean)
    part = table.everything
    found = split_gains(table, part, weight, weighted, all_categories=False)
    gains = found.gain + _gains_of_missing(found, total)
    attribute = first_best(gains)
    if gains[attribute] == -np.inf:
        return Stump(-1, False, 0.0, mean, mean, mean)
    nominal = bool(table.n_categories[attribute] > 0)
    split = float(found.choice[attribute])
    if not nominal:
        low, middle, high = table.halfway(part, attribute, int(found.choice[attribute]))
        split = middle if middle < high else low  # there may be no number between the two
    branches = _branches(table.matrix[:, attribute], nominal, split)
    within, above_mean = sums(branches, weight, 3), sums(branches, weighted, 3)
    values = mean + np.divide(above_mean, within, out=np.zeros(3), where=within > 0)
    return Stump(attribute, nominal, split, *values.tolist())


def _gains_of_missing(found: Gains, total: float) -> Floats:
    """The gain of keeping the rows without a value apart; the mean of the response is 0."""
    product = found.weight * (total - found.weight)
    gains = np.zeros(len(product))
    return np.divide(found.weighted**2 * total, product, out=gains, where=product > 0)


def _branches(values: Floats, nominal: bool, split: float) -> Indices:
    """0 for inside, 1 for outside, 2 for missing."""
    inside: Mask = values == split if nominal else values <= split
    return np.where(np.isnan(values), 2, np.where(inside, 0, 1))
