"""Predicted probabilities beside observed frequencies: bins and the reliability curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import erf, ndtri

from ._inputs.arrays import Floats
from ._inputs.labels import check_weights
from ._inputs.parameters import check_choice, check_count

Norm: TypeAlias = Literal["l1", "l2"]
Strategy: TypeAlias = Literal["quantile", "uniform"]
Indices: TypeAlias = npt.NDArray[np.intp]

# Values on the border of two bins must not change sides with the order of the rows, which changes
# the last digits of a sum of weights.
_ROUNDING = 1e-9
ROWS_A_BIN = 60
"""Each bin has at least so many rows where the number of bins is chosen by that of the rows."""
_MOST_BINS = 15
# One row says nothing about the spread of the truth within a bin.
_FEWEST_ROWS_FOR_A_SPREAD = 2


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """Predicted probabilities and observed frequencies, bin by bin, in ascending order.

    Attributes
    ----------
    predicted : ndarray of shape (b,)
        The mean probability of the rows of each bin.
    observed : ndarray of shape (b,)
        The share of these rows in which the event happened.
    weight : ndarray of shape (b,)
        The number of these rows: the sum of their weights.
    lowest, highest : ndarray of shape (b,)
        The smallest and the largest probability of these rows.
    """

    predicted: Floats
    observed: Floats
    weight: Floats
    lowest: Floats
    highest: Floats


def bins_for(n_rows: int, most: int = _MOST_BINS) -> int:
    """Return the number of bins for so many rows, each with enough rows to judge by."""
    return min(max(n_rows // ROWS_A_BIN, 1), most)


def reliability_curve(
    truth: Any,
    probability: Any,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    sample_weight: Any = None,
) -> ReliabilityCurve:
    """Compare the probabilities of an event with how often it happened, bin by bin.

    Parameters
    ----------
    truth : array-like of shape (n,)
        1 (or True) where the event happened and 0 (or False) elsewhere, e.g. ``y == "yes"``.
    probability : array-like of shape (n,)
        The probability of the event.
    n_bins : int, default 15
        The maximum number of bins.
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equal weight or of equal width; see `bins`.
    sample_weight : array-like of shape (n,), optional
        How many rows each row counts for.

    Returns
    -------
    ReliabilityCurve
        One value for each bin; empty bins are left out.

    Examples
    --------
    >>> from caltree.reliability import reliability_curve
    >>> curve = reliability_curve([0, 0, 1, 1], [0.125, 0.375, 0.5, 1.0], n_bins=2)
    >>> curve.predicted.tolist(), curve.observed.tolist()
    ([0.25, 0.75], [0.0, 1.0])
    >>> curve.lowest.tolist(), curve.highest.tolist(), curve.weight.tolist()
    ([0.125, 0.5], [0.375, 1.0], [2.0, 2.0])
    """
    _check_binning(n_bins, strategy)
    values = check_probabilities("probability", probability)
    event = _check_truth(truth, len(values))
    weights = check_weights(sample_weight, len(values), "probability")
    order = _ascending(values, weights)
    values, event = values[order], event[order]
    weights = np.ones(len(values)) if weights is None else weights[order]
    index = _bins_in_order(values, weights, n_bins, strategy)

    starts = _starts(index)
    weight = np.add.reduceat(weights, starts)
    lowest, highest = values[starts], values[np.append(starts[1:], len(values)) - 1]
    predicted = np.add.reduceat(weights * values, starts) / weight
    observed = np.add.reduceat(weights * event, starts) / weight
    return ReliabilityCurve(
        predicted=np.clip(predicted, lowest, highest),
        observed=observed,
        weight=weight,
        lowest=lowest,
        highest=highest,
    )


def bins(
    values: Any, n_bins: int = 15, strategy: Strategy = "quantile", sample_weight: Any = None
) -> Indices:
    """The bin of every row, counted from 0 in ascending order of the values.

    Rows with equal values are always in the same bin, and no bin is empty, so there may be fewer
    than `n_bins`.

    Parameters
    ----------
    values : array-like of shape (n,)
        Probabilities.
    n_bins : int, default 15
        The maximum number of bins.
    strategy : {"quantile", "uniform"}, default "quantile"
        ``"quantile"`` makes bins of equal weight, as far as whole values allow: a value with
        more than an equal share of the rows fills a bin, and the other values share the
        remaining bins equally. Up to `n_bins` different values have a bin each. ``"uniform"``
        cuts the interval from 0 to 1 into `n_bins` of equal width, each with its upper end and
        without its lower one (0 is in the first), and leaves out the empty ones.
    sample_weight : array-like of shape (n,), optional
        How many rows each row counts for. A row of weight 0 is ignored, and its index is -1.

    Returns
    -------
    ndarray of shape (n,)
        Whole numbers from 0 up, and -1 for rows of weight 0.

    Examples
    --------
    >>> from caltree.reliability import bins
    >>> bins([0.1, 0.9, 0.2, 0.3], 2).tolist()
    [0, 1, 0, 1]
    >>> bins([0.1, 0.9, 0.2, 0.3], 2, "uniform").tolist()
    [0, 1, 0, 0]
    >>> bins([0.0, 0.0, 0.0, 0.0, 0.7, 0.8, 0.9, 1.0], 3).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2]
    """
    _check_binning(n_bins, strategy)
    probabilities = check_probabilities("values", values)
    weights = check_weights(sample_weight, len(probabilities), "values")
    order = _ascending(probabilities, weights)
    index = np.full(len(probabilities), -1, dtype=np.intp)
    index[order] = _bins_in_order(
        probabilities[order],
        np.ones(len(order)) if weights is None else weights[order],
        n_bins,
        strategy,
    )
    return index


def calibration_error(curve: ReliabilityCurve, norm: Norm = "l1", debiased: bool = False) -> float:
    """Mean difference between predicted probability and observed frequency.

    This is the error of one event; `caltree.metrics.expected_calibration_error` averages over the
    events of several classes.

    Parameters
    ----------
    curve : ReliabilityCurve
        The bins, each of which counts with its weight.
    norm : {"l1", "l2"}, default "l1"
        The mean of the differences, or the root of the mean of their squares.
    debiased : bool, default False
        Subtract what chance adds, as far as it can be estimated.

    Returns
    -------
    float
        From 0 to 1; 0 is perfect.

    Examples
    --------
    >>> from caltree.reliability import calibration_error, reliability_curve
    >>> calibration_error(reliability_curve([0, 0, 0, 1], [0.125, 0.125, 0.75, 0.75]))
    0.1875
    """
    check_choice("norm", norm, get_args(Norm))
    difference = np.abs(curve.observed - curve.predicted)
    if debiased:
        error = _debias(curve, difference, norm)
    else:
        error = difference if norm == "l1" else np.square(difference)
    mean = max(float(np.average(error, weights=curve.weight)), 0.0)
    return mean if norm == "l1" else math.sqrt(mean)


def wilson_interval(
    frequency: Floats | float, n_rows: Floats | float, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Confidence interval of an observed frequency, by Wilson's score test.

    Parameters
    ----------
    frequency : float or ndarray
        The share of the rows in which the event happened.
    n_rows : float or ndarray
        The number of rows, which need not be whole.
    confidence : float, default=0.95
        The share of such intervals that contain the true probability.

    Returns
    -------
    lower, upper : ndarray
        The ends of the intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree.reliability import wilson_interval
    >>> lower, upper = wilson_interval(np.array([0.0, 0.5]), np.array([10, 10]))
    >>> lower.round(3).tolist(), upper.round(3).tolist()
    ([0.0, 0.237], [0.278, 0.763])
    """
    z = float(ndtri(0.5 + confidence / 2.0))
    share = z**2 / n_rows
    centre = (frequency + share / 2.0) / (1.0 + share)
    spread = np.sqrt(frequency * (1.0 - frequency) / n_rows + (share / (2.0 * z)) ** 2)
    half = z * spread / (1.0 + share)
    # At 0 and 1 rounding must not take the frequency itself out of its interval.
    return (
        np.clip(centre - half, 0.0, frequency),
        np.clip(centre + half, frequency, 1.0),
    )


def _check_binning(n_bins: Any, strategy: Any) -> None:
    check_count("n_bins", n_bins, 1)
    check_choice("strategy", strategy, get_args(Strategy))


def check_probabilities(name: str, values: Any) -> Floats:
    """Probabilities as an array, each between 0 and 1."""
    try:
        probabilities = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, one per row") from None
    if probabilities.ndim != 1 or len(probabilities) == 0:
        raise ValueError(
            f"{name} must have one probability per row, got shape {probabilities.shape}; "
            "give one column with at least one row"
        )
    valid = (probabilities >= 0.0) & (probabilities <= 1.0)
    if not valid.all():
        row = int(np.flatnonzero(~valid)[0])
        raise ValueError(
            f"{name} contains {probabilities[row]} in row {row}, which is not a probability; "
            "give numbers from 0 to 1"
        )
    return probabilities


def _check_truth(truth: Any, n_rows: int) -> Floats:
    try:
        events = np.asarray(truth)
        if events.dtype.kind not in "biufO":
            raise TypeError
        events = events.astype(np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            "truth must be 0 or 1 in each row; compare the labels with a class, e.g. y == 'yes'"
        ) from None
    if events.shape != (n_rows,):
        raise ValueError(
            f"truth must have one value for each of the {n_rows} rows of probability, "
            f"got shape {events.shape}"
        )
    valid = (events == 0.0) | (events == 1.0)
    if not valid.all():
        row = int(np.flatnonzero(~valid)[0])
        raise ValueError(
            f"truth contains {events[row]:g} in row {row}; give 1 where the event happened and 0 "
            "elsewhere"
        )
    return events


def _ascending(values: Floats, weights: Floats | None) -> Indices:
    """The rows that count, by value."""
    # In a stable order the sums of weights are the same on every machine.
    order = np.argsort(values, kind="stable")
    return order if weights is None else order[weights[order] > 0.0]


def _bins_in_order(values: Floats, weights: Floats, n_bins: int, strategy: Strategy) -> Indices:
    """The bins of rows in ascending order, all of positive weight."""
    if strategy == "uniform":
        upper_ends = np.arange(1, n_bins) / n_bins
        return _without_gaps(np.searchsorted(upper_ends, values, side="left"))
    group = _without_gaps(values)
    return _equal_weights(np.add.reduceat(weights, _starts(group)), n_bins)[group]


def _equal_weights(weights: Floats, n_bins: int) -> Indices:
    """Bins for values of these weights, in ascending order."""
    if len(weights) <= n_bins:
        return np.arange(len(weights))
    share = _equal_share(weights, n_bins)
    heavy = weights > share * (1.0 + _ROUNDING)
    # A scale on which each bin has length 1: heavy values fill one, the others share the rest.
    length = np.where(heavy, 1.0, weights / share)
    end = np.cumsum(length)
    middle = end - length / 2.0
    # Heavy values are moved to whole numbers, so that they are one bin and not parts of two; the
    # runs of other values between them shrink or stretch.
    knots = np.column_stack([end - length, end])[heavy].ravel()
    knots = np.concatenate([[0.0], knots, [float(n_bins)]])
    moved = np.interp(middle, knots, np.floor(knots + 0.5 + _ROUNDING))
    return _without_gaps(np.minimum(np.floor(moved + _ROUNDING), n_bins - 1))


def _equal_share(weights: Floats, n_bins: int) -> float:
    """The weight of a bin once the values that exceed it have each taken a bin of their own."""
    largest = np.sort(weights)[::-1]
    rest = np.cumsum(largest[::-1])[::-1][:n_bins]
    share = rest / np.arange(n_bins, 0, -1)
    return float(share[np.argmax(largest[:n_bins] <= share)])


def _without_gaps(ascending: npt.NDArray[Any]) -> Indices:
    """Number the different values 0, 1, 2, ..."""
    return np.cumsum(np.diff(ascending, prepend=ascending[0]) > 0)


def _starts(index: Indices) -> Indices:
    """Where each of the bins 0, 1, 2, ... begins."""
    return np.flatnonzero(np.diff(index, prepend=-1))


def _debias(curve: ReliabilityCurve, difference: Floats, norm: Norm) -> Floats:
    """The differences (l1) or their squares (l2) without what chance adds to them."""
    enough = curve.weight >= _FEWEST_ROWS_FOR_A_SPREAD
    if not enough.any():
        raise ValueError(
            "debiased=True needs bins of at least two rows, but the largest holds "
            f"{curve.weight.max():g}; use fewer bins, and weights that are numbers of rows"
        )
    rows = np.where(enough, curve.weight, _FEWEST_ROWS_FOR_A_SPREAD)
    variance = curve.observed * (1.0 - curve.observed) / (rows - 1.0)
    if norm == "l2":
        error = np.square(difference) - variance
    else:
        error = 2.0 * difference - _mean_of_folded_normal(difference, np.sqrt(variance))
    return np.where(enough, error, 0.0)


def _mean_of_folded_normal(mean: Floats, deviation: Floats) -> Floats:
    """E|N(mean, deviation**2)| for means that are not negative."""
    ratio = np.full_like(mean, np.inf)
    np.divide(mean, deviation, out=ratio, where=deviation > 0.0)
    density = math.sqrt(2.0 / math.pi) * np.exp(-0.5 * np.square(ratio))
    return deviation * density + mean * erf(ratio / math.sqrt(2.0))
