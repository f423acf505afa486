"""A rising function of the votes of several classifiers, smoothed by the likeness of their scores.

Of groups g of rows with neighbouring votes, with weights n, shares of the class y and values p,

    sum over g of n_g (p_g - y_g)² + strength * sum over neighbours g, h of c_gh (p_g - p_h)²

is minimal among all p that rise with the votes and lie in [0, 1].
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._inputs.arrays import Floats, Indices, Mask
from .scaling import drop_tiny

MOST_GROUPS = 200
N_NEIGHBOURS = 5
_AS_FAR = 1.0 + 1e-9  # distances that differ by less are equal
# The alternating direction method of multipliers: its end, by what the last step changed.
_MOST_STEPS = 20_000
_SMALLEST_CHANGE = 1e-11


def fit_regularized_isotonic(
    votes: Floats, scores: Floats, positive: Mask, weights: Floats | None, strength: float
) -> tuple[Floats, Floats]:
    """Fit to the votes of rows, and the score of each classifier; return corners of the function.

    A corner is the mean vote of a group, and its value.
    """
    weight = np.broadcast_to(1.0, len(votes)) if weights is None else weights
    counted = weight > 0.0
    votes, scores, weight = drop_tiny(votes[counted]), scores[counted], weight[counted]
    group = _group_rows(votes, weight)
    size = _sum_by_group(group, weight)
    share = weight / size[group]
    frequency = _sum_by_group(group, share * positive[counted])
    places = np.column_stack([_sum_by_group(group, share * column) for column in scores.T])
    values = rising_values(frequency, size, strength * laplacian(places, size))
    lowest, highest = np.full(len(size), np.inf), np.full(len(size), -np.inf)
    np.minimum.at(lowest, group, votes)
    np.maximum.at(highest, group, votes)
    # Rounding shall not move a mean out of its group.
    return np.clip(_sum_by_group(group, share * votes), lowest, highest), values


def _sum_by_group(group: Indices, values: Floats) -> Floats:
    return np.bincount(group, values).astype(np.float64, copy=False)


def _group_rows(votes: Floats, weight: Floats) -> Indices:
    """Number the rows by their votes: equal votes, or parts of about the same weight."""
    distinct, group = np.unique(votes, return_inverse=True)
    if len(distinct) <= MOST_GROUPS:
        return np.asarray(group)
    sums = np.bincount(group, weight)
    # Counted from the middle, so that the other class, whose votes are the reverse, has the same.
    place = (2.0 * np.cumsum(sums) - sums - sums.sum()) * (MOST_GROUPS / 2 / sums.sum())
    # Rounded, since a common factor of the weights shall not move a vote across a bound.
    part = np.copysign(np.ceil(np.round(np.abs(place), 9)), place)
    return np.asarray(np.unique(part, return_inverse=True)[1][group])


def laplacian(places: Floats, size: Floats) -> Floats:
    """The matrix of the sum over neighbours g, h of c_gh (p_g - p_h)².

    Neighbours are groups with successive votes, so that all are connected, and groups one of which
    is among the five nearest of the other by the mean scores of the classifiers, each in units of
    its deviation, or as near as the fifth. c is the mean of their weights, divided by five, or by
    the number of other groups if that is less.
    """
    n_groups = len(places)
    n_nearest = min(N_NEIGHBOURS, n_groups - 1)
    if n_nearest == 0:
        return np.zeros((1, 1))
    largest = np.abs(places).max(axis=0)
    places = places / np.where(largest > 0.0, largest, 1.0)  # squares shall not overflow
    spread = np.sqrt(np.average((places - np.average(places, 0, size)) ** 2, 0, size))
    places = places / np.where(spread > 0.0, spread, 1.0)
    distance = np.square(places[:, np.newaxis] - places).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    farthest = np.partition(distance, n_nearest - 1, axis=1)[:, n_nearest - 1 : n_nearest]
    near = (distance <= farthest * _AS_FAR) | np.eye(n_groups, k=1, dtype=bool)
    link = np.where(near | near.T, (size[:, np.newaxis] + size) / (2.0 * n_nearest), 0.0)
    return np.asarray(np.diag(link.sum(axis=1)) - link)


def rising_values(frequency: Floats, size: Floats, penalty: Floats) -> Floats:
    """The rising values in [0, 1] that minimise size @ (p - frequency)² + p @ penalty @ p.

    The alternating direction method of multipliers: a linear system, and isotonic regression of
    its solution, are brought together.
    """
    # Imported here: it would slow down the import of caltree.
    from sklearn.isotonic import isotonic_regression

    unit = size / size.sum()
    system = cho_factor(np.diag(2.0 * unit) + penalty / size.sum())
    rising, pull = np.zeros(len(unit)), np.zeros(len(unit))
    for _ in range(_MOST_STEPS):
        free = cho_solve(system, unit * (frequency + rising - pull))
        before = rising
        rising = isotonic_regression(free + pull, sample_weight=unit, y_min=0.0, y_max=1.0)
        pull += free - rising
        if max(np.abs(rising - before).max(), np.abs(free - rising).max()) < _SMALLEST_CHANGE:
            break
    return np.asarray(rising)
