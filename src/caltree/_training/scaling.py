"""Maps from one score to a probability: a sigmoid, or a rising function."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, log_expit

from .._inputs.arrays import Floats, Mask

# Scores that differ by less, relative to their size, differ by rounding.
_SMALLEST_SPREAD = 1e-14
# Scores that differ by less, and deviate by less of that, would ask for a slope beyond any number.
_SMALLEST_DISTANCE = 1e-150
_SMALLEST_DEVIATION = 1e-30
LARGEST_COEFFICIENT = 1e200
# The standard deviation of normal numbers, in medians of their distance from the median.
_DEVIATION_OF_MEDIAN = 1.4826
# What is closer to 0 counts as 0 in isotonic regression, for the same reason.
_SMALLEST_SCORE = 1e-290
SMALLEST_STEP = _SMALLEST_SCORE * 2.0**-54
# Newton's method: the end, by number of steps or by what the last one gained of the loss; what
# rounding does to the loss; and what keeps the curvature from being singular.
_MOST_STEPS = 200
_SMALLEST_GAIN = 1e-22
_ROUNDING = 1.0 + 1e-14
_SMALLEST_CURVATURE = 1e-300
_NOT_SINGULAR = 1.0 + 1e-12


def fit_sigmoid(
    score: Floats, positive: Mask, weights: Floats | None, epsilon: float | None = None
) -> tuple[float, float]:
    """Fit the most likely sigmoid for Platt's targets; return its slope and intercept.

    Given `epsilon`, scores farther from the median than so many robust standard deviations count
    less.
    """
    weight = np.broadcast_to(1.0, len(score)) if weights is None else weights
    n_positive, n_negative = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))
    against = np.where(positive, 1.0 / (n_positive + 2.0), (n_negative + 1.0) / (n_negative + 2.0))
    share = weight / (n_positive + n_negative)
    if epsilon is not None:
        share = share * count_outliers_less(score, weight, epsilon)
        share /= share.sum()
    flat = float(np.log(share @ target) - np.log(share @ against))
    # Scores are centred and scaled, whatever the classifier's unit.
    centre = float(share @ score)
    farthest = float(np.abs(score - centre).max())
    if farthest <= max(_SMALLEST_SPREAD * abs(centre), _SMALLEST_DISTANCE):
        return 0.0, flat
    unit = (score - centre) / farthest
    spread = max(float(np.sqrt(share @ unit**2)), _SMALLEST_DEVIATION)
    slope, intercept = _most_likely(unit / spread, target, against, share, flat)
    slope = slope / spread / farthest
    return slope, intercept - slope * centre


def count_outliers_less(score: Floats, weight: Floats, epsilon: float) -> Floats:
    """Return Huber's weights of scores: 1 up to `epsilon` robust standard deviations."""
    distance = np.abs(score - _median(score, weight))
    limit = epsilon * _DEVIATION_OF_MEDIAN * _median(distance, weight)
    if limit <= 0.0:
        return np.ones(len(score))
    return np.asarray(limit / np.maximum(distance, limit))


def _median(values: Floats, weight: Floats) -> float:
    """Return the median, in which a row of weight 2 counts as two."""
    order = np.argsort(values)
    below = np.cumsum(weight[order])
    middle = np.searchsorted(below, below[-1] / 2, side="left")
    next_one = min(np.searchsorted(below, below[-1] / 2, side="right"), len(order) - 1)
    return float(values[order[middle]] / 2 + values[order[next_one]] / 2)


def _most_likely(
    score: Floats, target: Floats, against: Floats, share: Floats, flat: float
) -> tuple[float, float]:
    """Slope and intercept by Newton's method with shortened steps.

    The minimisers of scipy that were tried stop early where one score dwarfs all others.
    """

    def loss(sigmoid: Floats) -> float:
        linear = sigmoid[0] * score + sigmoid[1]
        return -float(share @ (target * log_expit(linear) + against * log_expit(-linear)))

    sigmoid = np.array([0.0, flat])
    lowest = loss(sigmoid)
    for _ in range(_MOST_STEPS):
        linear = sigmoid[0] * score + sigmoid[1]
        likely, unlikely = expit(linear), expit(-linear)
        residual = share * (against * likely - target * unlikely)
        gradient = np.array([residual @ score, residual.sum()])
        variance = share * likely * unlikely
        unit = np.sqrt(np.maximum([variance @ score**2, variance.sum()], _SMALLEST_CURVATURE))
        mixed = (variance @ score) / unit[0] / unit[1]
        curvature = np.array([[_NOT_SINGULAR, mixed], [mixed, _NOT_SINGULAR]])
        step = -np.linalg.solve(curvature, gradient / unit) / unit
        gain = -float(gradient @ step)
        last = gain <= _SMALLEST_GAIN * lowest
        while (reached := loss(sigmoid + step)) > lowest * _ROUNDING - 1e-4 * gain:
            step, gain = step / 4, gain / 4
        sigmoid, lowest = sigmoid + step, reached
        if last:
            break
    return float(sigmoid[0]), float(sigmoid[1])


def fit_smooth_isotonic(
    score: Floats, positive: Mask, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Fit a rising function; return a point of each of its flat regions: mean score, and height."""
    score = drop_tiny(score)
    steps = np.interp(score, *fit_isotonic(score, positive, weights))
    heights, region = np.unique(steps, return_inverse=True)
    weight = np.broadcast_to(1.0, len(score)) if weights is None else weights
    share = weight / np.bincount(region, weight)[region]
    lowest, highest = np.full(len(heights), np.inf), np.full(len(heights), -np.inf)
    np.minimum.at(lowest, region, score)
    np.maximum.at(highest, region, score)
    # Rounding shall not move a mean out of its region.
    return np.clip(np.bincount(region, share * score), lowest, highest), heights


def fit_isotonic(score: Floats, positive: Mask, weights: Floats | None) -> tuple[Floats, Floats]:
    """Fit the rising function with the lowest squared error; return its corners."""
    # Imported here: it would slow down the import of caltree.
    from sklearn.isotonic import IsotonicRegression

    # Ranks, since scikit-learn takes scores that differ by less than 1e-15 for equal.
    score = drop_tiny(score)
    distinct, ranks = np.unique(score, return_inverse=True)
    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(ranks, positive.astype(np.float64), weights)
    return distinct[model.X_thresholds_.astype(np.intp)], model.y_thresholds_


def drop_tiny(score: Floats) -> Floats:
    """Scores, with 0 for those so close to it that steps between them would underflow."""
    return np.where(np.abs(score) < _SMALLEST_SCORE, 0.0, score)
