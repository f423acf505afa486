"""Values that stand in for missing ones: means of numbers, and most frequent categories."""

from __future__ import annotations

import math

import numpy as np

from .arrays import Floats

_BLOCK = 2**15  # numbers worked on at a time: few enough to stay in the processor's cache


def column_means(matrix: Floats, sample_weight: Floats | None) -> Floats:
    """The mean of each column's numbers: 0 where there are none, NaN where one is infinite."""
    n_rows, n_columns = matrix.shape
    weight = np.broadcast_to(1.0, n_rows) if sample_weight is None else sample_weight
    # A power of two changes no digit and keeps the sums below the largest number they add.
    scale = 2.0 ** min(-math.ceil(math.log2(weight.sum()) + 1), 1000)
    sums, totals = np.zeros(n_columns), np.zeros(n_columns)
    incomplete = np.zeros(n_columns, dtype=bool)
    step = max(64, _BLOCK // n_columns)
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, n_rows, step):
            block = matrix[start : start + step]
            share = scale * weight[start : start + step, np.newaxis]
            # The order is given so that the sums do not depend on the order of the matrix.
            part = np.multiply(block, share, order="C")
            part_sums = part.sum(axis=0)
            if np.isnan(part_sums).any():
                present = ~np.isnan(block)
                part[~present] = 0.0
                incomplete |= ~present.all(axis=0)
                part_sums = part.sum(axis=0)
                totals += np.multiply(present, share, order="C").sum(axis=0)
            else:
                totals += share.sum()
            sums += part_sums
        means = np.divide(sums, totals, out=np.zeros(n_columns), where=totals > 0)
        for j in np.flatnonzero(incomplete & (totals > 0)):
            present = ~np.isnan(matrix[:, j])
            means[j] = _mean_in_order(matrix[present, j], scale * weight[present])
    largest = np.finfo(np.float64).max  # which rounding may exceed
    return np.where(np.isfinite(sums), np.clip(means, -largest, largest), np.nan)


def _mean_in_order(values: Floats, weight: Floats) -> float:
    """The mean, with its sums added up row by row as in the published method.

    It replaces missing values, where the last digit can decide on which side of a cut they fall.
    """
    return float(np.cumsum(values * weight)[-1] / np.cumsum(weight)[-1])


def most_frequent(codes: Floats, n_categories: int, sample_weight: Floats | None) -> float:
    """The code of the category with the most weight."""
    known = ~np.isnan(codes)
    weight = None if sample_weight is None else sample_weight[known]
    totals = np.bincount(codes[known].astype(np.intp), weight, minlength=max(1, n_categories))
    return float(totals.argmax())
