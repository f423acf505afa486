"""Predicted probability and observed frequency of some rows, with intervals and a p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit, ndtr, ndtri, stdtr

from .._inputs.arrays import Floats, Mask
from ..reliability import wilson_interval
from .null import residuals, variances
from .rows import Rows

CONFIDENCE = 0.95
Direction: TypeAlias = Literal[-1, 0, 1]
"""Predictions are too high (-1) or too low (1); 0 is either."""
# Fewer rows, or a smaller variance of the number of events, are not tested: too few events, or
# too few rows without one, could show anything.
FEWEST_ROWS = 50
LEAST_VARIANCE = 3.0
# Twice the largest log-odds of a score, and some: no row is left on its side of one half.
_LARGEST_SHIFT = 80.0
_LARGEST_TILT = 150.0
_NEWTON_STEPS = 50


@dataclass(frozen=True)
class Frequency:
    """The mean predicted probability of some rows, and the observed frequency."""

    n_rows: int
    share: float
    """Of the weight of all rows."""
    predicted: float
    observed: float
    low: float
    """The interval of what happens, by Wilson."""
    high: float


@dataclass(frozen=True)
class Effect(Frequency):
    """The mean predicted probability of some rows, the observed frequency, and a test of both."""

    shift: float
    """In log-odds, what has to be added to the scores; infinite where all or no rows have it."""
    shift_low: float
    shift_high: float
    p_value: float | None
    """Not adjusted; None if there are too few rows to test."""


def frequency_of(rows: Rows, channel: int, inside: Mask, share: float = 1.0) -> Frequency:
    """The predicted probability of a class and its observed frequency, in some of the rows.

    Of rows that were chosen by their labels among alternatives, `share` is the share of the error
    that an interval may have: the intervals of all alternatives hold together.
    """
    weights = rows.row_weights[inside]
    predicted, observed = rows.predicted(channel)[inside], rows.observed(channel)[inside]
    total = float(weights.sum())
    frequency = float(np.clip(weights @ observed / total, 0.0, 1.0))
    # Rows of unequal weights tell as much as so many of equal ones.
    worth = total**2 / float(weights @ weights)
    inflation = _inflation(rows, channel, inside)
    low, high = wilson_interval(frequency, worth / max(inflation, 1.0), _confidence(share))
    return Frequency(
        n_rows=int(np.count_nonzero(inside)),
        share=total / float(rows.row_weights.sum()),
        predicted=float(weights @ predicted / total),
        observed=frequency,
        low=float(low),
        high=float(high),
    )


def effect_of(
    rows: Rows, channel: int, inside: Mask, share: float = 1.0, direction: Direction = 0
) -> Effect:
    """Compare the predicted probability of a class with its observed frequency, in some rows."""
    inflation = _inflation(rows, channel, inside)
    shift, low, high = _shift(rows, channel, inside, inflation, _confidence(share))
    p_value = p_value_of(rows, channel, inside, share, direction)
    return Effect(
        **vars(frequency_of(rows, channel, inside, share)),
        shift=shift,
        shift_low=low,
        shift_high=high,
        p_value=p_value,
    )


def farthest_off(effects: Sequence[Effect]) -> int:
    """The place of the effect with the smallest p-value, of equals that with the largest shift.

    Effects that were not tested come last.
    """

    def rank(place: int) -> tuple[float, float]:
        p_value = effects[place].p_value
        return 2.0 if p_value is None else p_value, -abs(effects[place].shift)

    return min(range(len(effects)), key=rank)


def _confidence(share: float) -> float:
    return 1.0 - share * (1.0 - CONFIDENCE)


def _inflation(rows: Rows, channel: int, inside: Mask) -> float:
    """By how much the rows of a group err together: the variance of their sum over that of rows."""
    if rows.groups is None:
        return 1.0
    sums = np.bincount(rows.groups[inside], residuals(rows, channel)[inside])
    return float(sums @ sums) / float(variances(rows, channel)[inside].sum())


def p_value_of(
    rows: Rows, channel: int, inside: Mask, share: float = 1.0, direction: Direction = 0
) -> float | None:
    """P-value of the claim that the predictions are right; None if there are too few rows.

    Of rows that have only a share of a test, it is divided by that. If other rows have shown a
    direction, only errors in this direction count.
    """
    weights, predicted = rows.row_weights[inside], rows.predicted(channel)[inside]
    if len(predicted) < FEWEST_ROWS or predicted @ (1.0 - predicted) < LEAST_VARIANCE:
        return None
    own = residuals(rows, channel)[inside]
    if rows.groups is not None:
        sums = np.bincount(rows.groups[inside], own)
        n_groups = len(np.unique(rows.groups[inside]))
        error = math.sqrt(float(sums @ sums))
        if n_groups < 10 or error == 0.0:
            return None
        tail = 2.0 * float(stdtr(n_groups - 1, -abs(float(own.sum())) / error))
    else:
        tail = tail_probability(predicted, weights, float(own.sum()))
    if direction != 0:
        tail = tail / 2.0 if direction_of(rows, channel, inside) == direction else 1.0 - tail / 2.0
    return min(1.0, tail / share)


def direction_of(rows: Rows, channel: int, inside: Mask) -> Direction:
    """The direction in which the predictions of some rows are off: 1 if they are too low."""
    return 1 if float(residuals(rows, channel)[inside].sum()) >= 0.0 else -1


def tail_probability(predicted: Floats, weights: Floats, excess: float) -> float:
    """Two-sided p-value of a weighted sum of labels that exceeds its mean by so much.

    It is that of Lugannani and Rice's saddlepoint approximation, which is good far out in the
    tails, of rare events, too; where sums are whole numbers it is about the mid-p-value.
    """
    variance = float(weights**2 @ (predicted * (1.0 - predicted)))
    if abs(excess) < 0.05 * math.sqrt(variance):
        return 2.0 * float(ndtr(-abs(excess) / math.sqrt(variance)))
    farthest = float(weights @ (predicted if excess < 0.0 else 1.0 - predicted))
    if abs(excess) >= farthest * (1.0 - 1e-9):
        # All labels are the same: their probability is a product.
        other = np.log1p(-predicted) if excess < 0.0 else np.log(predicted)
        return min(1.0, float(np.exp(other.sum())))
    tilt = _tilt(predicted, weights, excess)
    tilted = expit(np.log(predicted) - np.log1p(-predicted) + tilt * weights)
    cumulant = float(np.sum(np.logaddexp(np.log1p(-predicted), np.log(predicted) + tilt * weights)))
    mean = float(weights @ predicted)
    signed_root = math.copysign(
        math.sqrt(max(2.0 * (tilt * (mean + excess) - cumulant), 0.0)), tilt
    )
    spread = tilt * math.sqrt(float(weights**2 @ (tilted * (1.0 - tilted))))
    if signed_root == 0.0 or spread == 0.0:
        return 1.0
    root, spread = abs(signed_root), abs(spread)
    density = math.exp(-0.5 * root**2) / math.sqrt(2.0 * math.pi)
    tail = float(ndtr(-root)) + density * (1.0 / spread - 1.0 / root)
    return float(np.clip(2.0 * tail, 0.0, 1.0))


def _tilt(predicted: Floats, weights: Floats, excess: float) -> float:
    """The shift of log-odds, times the weights, at which the mean is as far off as the sum."""
    odds = np.log(predicted) - np.log1p(-predicted)
    target = float(weights @ predicted) + excess
    tilt, low, high = 0.0, -_LARGEST_TILT, _LARGEST_TILT
    for _ in range(_NEWTON_STEPS):
        now = expit(odds + tilt * weights)
        miss = target - float(weights @ now)
        if abs(miss) <= 1e-10 * abs(excess):
            break
        low, high = (tilt, high) if miss > 0.0 else (low, tilt)
        slope = float(weights**2 @ (now * (1.0 - now)))
        step = tilt + miss / slope if slope > 0.0 else math.inf
        tilt = step if low < step < high else (low + high) / 2.0
    return tilt


def _shift(
    rows: Rows, channel: int, inside: Mask, inflation: float, confidence: float
) -> tuple[float, float, float]:
    """The shift of log-odds that turns predicted into observed, and its interval.

    The interval has the shifts that a score test does not reject.
    """
    weights, odds = rows.row_weights[inside], rows.log_odds(channel)[inside]
    target = float(weights @ rows.observed(channel)[inside])
    none, all_rows = target <= 0.0, target >= float(weights.sum())
    reach = float(ndtri(0.5 + confidence / 2.0)) * math.sqrt(max(inflation, 1.0))

    def solve(side: float) -> float:
        if (none and side <= 0.0) or (all_rows and side >= 0.0):
            return -math.inf if none else math.inf
        shift, low, high = 0.0, -_LARGEST_SHIFT, _LARGEST_SHIFT
        for _ in range(_NEWTON_STEPS):
            now = expit(odds + shift)
            spread = now * (1.0 - now)
            deviation = math.sqrt(float(weights**2 @ spread))
            miss = target - float(weights @ now) + side * reach * deviation
            if high - low < 1e-6:
                break
            low, high = (shift, high) if miss > 0.0 else (low, shift)
            slope = float(weights @ spread)
            step = shift + miss / slope if slope > 0.0 else math.inf
            if abs(step - shift) < 1e-7:
                break
            shift = step if low < step < high else (low + high) / 2.0
        return shift if abs(shift) < _LARGEST_SHIFT - 1e-3 else math.copysign(math.inf, shift)

    return solve(0.0), solve(-1.0), solve(1.0)
