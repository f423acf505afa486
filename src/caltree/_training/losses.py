"""Losses of rows, their means, and by how many standard errors two means differ."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.arrays import Floats
from .._inputs.groups import GroupNumbers

# A row's log loss counts no smaller probability than this.
SMALLEST_PROBABILITY = _core.smallest_probability
# Relative differences of means that are due to rounding.
ROUNDING = 1e-12


def row_losses(probabilities: Floats, labels: npt.NDArray[Any], scoring: str) -> Floats:
    """Return the loss of every row: squared error, mean over classes, or minus log-likelihood."""
    if scoring == "log_loss":
        return log_losses(probabilities[np.arange(len(labels)), labels])
    residuals = probabilities.copy()
    residuals[np.arange(len(labels)), labels] -= 1.0
    return np.asarray(np.mean(residuals**2, axis=1))


def log_losses(likely: Floats) -> Floats:
    """Return the log loss of every row, given the probability of the class that it has."""
    return np.asarray(-np.log(np.maximum(likely, SMALLEST_PROBABILITY)))


def mean_loss(losses: Floats, weights: Floats | None, scoring: str) -> float:
    """Return the RMSE, or the log loss, of row losses."""
    return as_score(float(np.average(losses, weights=weights)), scoring)


def as_score(mean: float, scoring: str) -> float:
    """Return the RMSE of a mean squared error, or a mean log loss as it is."""
    return mean if scoring == "log_loss" else math.sqrt(mean)


def standard_errors(
    worse: Floats, better: Floats, weights: Floats | None, groups: GroupNumbers | None = None
) -> float:
    """By how many standard errors one mean loss exceeds another of the same rows.

    Errors of rows of one group may depend on each other, so each group is one observation.
    """
    difference = worse - better
    mean = float(np.average(difference, weights=weights))
    if len(worse) < 2 or abs(mean) <= ROUNDING * float(np.average(worse, weights=weights)):
        return 0.0
    # A row of weight 2 counts as two rows.
    count = np.ones(len(worse)) if weights is None else weights
    if groups is not None:
        deviations = np.bincount(groups, count * (difference - mean))
        return in_standard_errors(mean, float(deviations @ deviations), float(count.sum()))
    return in_standard_errors(mean, float(count @ (difference - mean) ** 2), float(count.sum()))


def in_standard_errors(mean: float, squares: float, total: float) -> float:
    """Divide a mean by its standard error, given squared deviations from it and total weight."""
    error = math.sqrt(max(0.0, squares)) / total
    return mean / error if error > 0.0 else math.copysign(math.inf, mean)
