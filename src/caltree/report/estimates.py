"""Differences of two probabilities of the same rows, with their errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.special import ndtr

from .._audit.parts import REACH, error_of_sum
from .._audit.rows import Rows as Audited
from .._inputs.arrays import Floats
from .._inputs.ranking import auc_deviations
from ..reliability import bins


@dataclass(frozen=True)
class Estimate:
    """A value before and after calibration, and how sure their difference is."""

    before: float
    after: float
    low: float | None = None
    """The interval of the change, after less before; None if it is not known."""
    high: float | None = None
    p_value: float | None = None
    """Of no change; None if there is none, or if it is not known."""

    @property
    def change(self) -> float:
        """The change, after less before."""
        return self.after - self.before


def estimate(before: float, after: float, error: float | None) -> Estimate:
    """Put an estimate together; the error is that of the change."""
    if error is None:
        return Estimate(before, after)
    change, reach = after - before, REACH * error
    p_value = 2.0 * float(ndtr(-abs(change) / error)) if error > 0.0 else None
    return Estimate(before, after, change - reach, change + reach, p_value)


def compare_means(rows: Audited, before: Floats, after: Floats) -> Estimate:
    """The means of two losses of every row."""
    weights = rows.row_weights
    means = [float(np.average(losses, weights=weights)) for losses in (before, after)]
    difference = after - before
    deviations = weights * (difference - (means[1] - means[0])) / float(weights.sum())
    return estimate(means[0], means[1], error_of_sum(rows, deviations))


def compare_aucs(before: Audited, after: Audited) -> tuple[Estimate, list[list[float]]] | None:
    """The areas under the ROC curves, and the interval of each; None if no class has any.

    Of more than two classes it is the mean over those that some rows have, each against the rest.
    """
    found = []
    for rows in (before, after):
        truths = {channel: rows.labels == channel for channel in rows.channels}
        parts = [
            auc_deviations(rows.probabilities[:, channel], truth, rows.weights)
            for channel, truth in truths.items()
            if truth.any() and not truth.all()
        ]
        if not parts:
            return None
        aucs, of_classes = zip(*parts, strict=True)
        found.append((float(np.mean(aucs)), np.mean(of_classes, axis=0)))
    (first, of_first), (second, of_second) = found
    intervals = []
    for auc, deviations in found:
        reach = REACH * error_of_sum(before, deviations)
        intervals.append([max(auc - reach, 0.0), min(auc + reach, 1.0)])
    return estimate(first, second, error_of_sum(before, of_second - of_first)), intervals


def compare_calibration_errors(before: Audited, after: Audited, n_bins: int) -> float | None:
    """P-value of equal mean squared distances of probability and frequency, bin by bin.

    Of each squared distance, what chance adds is taken off. Sums of residuals over bins are taken
    as normal, with the covariance that the residuals of the rows have; the difference is a
    quadratic form of them.
    """
    sums, covariance, signs = _sums_of_bins(before, after, n_bins)
    difference = float(signs @ (sums**2 - np.diag(covariance)))
    scaled = signs[:, np.newaxis] * covariance
    by_chance = 2.0 * float(np.sum(scaled * scaled.T))
    slope = signs * sums
    # The squares of the sums are too large by chance, and so is what they add to the variance.
    variance = max(4.0 * float(slope @ covariance @ slope) - by_chance, by_chance)
    if variance <= 0.0:
        return None
    return 2.0 * float(ndtr(-abs(difference) / math.sqrt(variance)))


def _sums_of_bins(before: Audited, after: Audited, n_bins: int) -> tuple[Floats, Floats, Floats]:
    """The residuals summed over bins, their covariance, and the weights of their squares.

    The weights are those of a mean over bins and classes, negative before calibration.
    """
    weights, total = before.row_weights, float(before.row_weights.sum())
    columns, residuals, signs, n_cells = [], [], [], 0
    for sign, rows in ((-1.0, before), (1.0, after)):
        for channel in rows.channels:
            probability = np.clip(rows.probabilities[:, channel], 0.0, 1.0)
            place = bins(probability, n_bins)
            size = np.bincount(place, weights)
            columns.append(place + n_cells)
            residuals.append(weights * (rows.observed(channel) - probability))
            signs.append(sign / (size * total * len(rows.channels)))
            n_cells += len(size)
    # Entries of the same place are added up: those of a group.
    together = np.arange(len(before)) if before.groups is None else before.groups.astype(np.intp)
    numbers = np.tile(together, len(columns))
    cells = csr_array(
        (np.concatenate(residuals), (numbers, np.concatenate(columns))),
        (int(together.max()) + 1, n_cells),
    )
    covariance = np.asarray((cells.T @ cells).toarray(), dtype=np.float64)
    return np.asarray(cells.sum(axis=0)), covariance, np.concatenate(signs)
