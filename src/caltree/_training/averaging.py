"""Averages of several predictions of the same rows: the weights of the lowest loss.

A tree is used at several levels, cut back to more or fewer leaves. The average over these levels is
an average over all nodes on the path of a row: large nodes with many rows and small, specific ones.
Held-out rows decide their weights. A forest is averaged in the same way.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

import numpy as np

from .._inputs.arrays import Floats
from .held_out import HeldOut

# Weights are whole millionths.
WEIGHT_UNITS = 1_000_000
# Added to the diagonal of a least-squares problem, of whose largest number it is this share; the
# cost of a sum of weights other than 1.
_RIDGE = 1e-10
_COST_OF_THE_SUM = 1e4
# Smaller weights are rounding.
_SMALLEST_WEIGHT = 1e-6
_MOST_NEWTON_STEPS = 30
_SHORTEST_STEP = 1e-3
_SMALLEST_IMPROVEMENT = 1e-9


Search: TypeAlias = Generator[Floats, None, Floats]
"""Yields the mixtures that it is about to ask about, and returns the best weights."""


def best_weights(held_out: HeldOut, used: Sequence[int] | None = None) -> Floats:
    """Return the weights of candidates, not negative and of sum 1, with the lowest loss.

    Only those that are `used` may have a weight; all by default. Of candidates that predict the
    same, the first one gets all the weight.
    """
    return best_of_each(held_out, [range(len(held_out)) if used is None else used])[0]


def best_of_each(held_out: HeldOut, uses: Sequence[Sequence[int]]) -> list[Floats]:
    """Return the best weights of several choices of candidates, which are searched side by side."""
    distinct = [_distinct(held_out, used) for used in uses]
    if held_out.scoring == "log_loss":
        found = _side_by_side(held_out, [_likeliest(held_out, used) for used in distinct])
    else:
        found = [_least_squares(held_out, used) for used in distinct]
    weights = np.zeros((len(uses), len(held_out)))
    for row, used, shares in zip(weights, distinct, found, strict=True):
        row[used] = shares
    return list(weights)


def _side_by_side(held_out: HeldOut, searches: Sequence[Search]) -> list[Floats]:
    """Return what several searches find; whatever they ask next is foreseen together."""
    found: dict[int, Floats] = {}
    while len(found) < len(searches):
        asked = []
        for i, search in enumerate(searches):
            if i not in found:
                try:
                    asked.append(next(search))
                except StopIteration as end:
                    found[i] = end.value
        held_out.foresee(losses=asked, ratios=asked)
    return [found[i] for i in range(len(searches))]


def _distinct(held_out: HeldOut, used: Sequence[int]) -> list[int]:
    distinct: list[int] = []
    for candidate in used:
        if not any(held_out.are_equal(candidate, other) for other in distinct):
            distinct.append(candidate)
    return distinct


def round_weights(weights: Floats, n_units: float = WEIGHT_UNITS) -> Floats:
    """Return weights in whole units, `n_units` of which are 1, and of the same sum, rounded.

    Shorter numbers say the same.
    """
    exact = weights * n_units
    units = np.floor(exact)
    n_missing = round(float(exact.sum() - units.sum()))
    # Those that lose most are rounded up.
    units[np.argsort(units - exact, kind="stable")[:n_missing]] += 1.0
    return np.asarray(units / n_units)


def _least_squares(held_out: HeldOut, used: Sequence[int]) -> Floats:
    products, aims = held_out.products()
    return _simplex_least_squares(products[np.ix_(used, used)], aims[used])


def _likeliest(held_out: HeldOut, used: Sequence[int]) -> Search:
    """Maximise the likelihood by Newton's method; each step is a least-squares problem."""
    weights = np.zeros(len(held_out))
    weights[used] = 1.0 / len(used)
    yield weights
    loss = held_out.loss(weights)
    for _ in range(_MOST_NEWTON_STEPS):
        first, second = held_out.likelihood_ratios(weights)
        step = -weights
        step[used] += _simplex_least_squares(second[np.ix_(used, used)], 2.0 * first[used])
        length, found = 1.0, loss
        while length > _SHORTEST_STEP:
            yield weights + length * step
            found = held_out.loss(weights + length * step)
            if found <= loss:
                break
            length /= 2.0
        if loss - found <= _SMALLEST_IMPROVEMENT:
            break
        weights, loss = weights + length * step, found
    return _without_rounding(weights[used])


def _simplex_least_squares(products: Floats, aims: Floats) -> Floats:
    """Return weights w, not negative and of sum 1, for which w'Pw - 2a'w is smallest."""
    # Imported here: importing caltree shall not take its time.
    from scipy.optimize import nnls

    n_candidates = len(products)
    ridge = _RIDGE * max(1.0, float(products.max()))
    factor = np.linalg.cholesky(products + ridge * np.eye(n_candidates))
    aim = np.linalg.solve(factor, aims)
    ones = np.full((1, n_candidates), _COST_OF_THE_SUM)
    weights, _ = nnls(np.vstack([factor.T, ones]), np.append(aim, _COST_OF_THE_SUM))
    return _without_rounding(weights)


def _without_rounding(weights: Floats) -> Floats:
    """Return weights of sum 1, without those that are rounding."""
    weights = np.where(weights < _SMALLEST_WEIGHT * weights.sum(), 0.0, weights)
    return np.asarray(weights / weights.sum())
