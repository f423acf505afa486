"""The test of the whole: are the scores calibrated everywhere.

Given the rows, that claim says how the labels are distributed. So any statistic of them has a known
distribution, that of labels drawn from the scores, and nothing is left to adjust for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats
from .._inputs.scores import bend
from .axes import Axis, score_axis
from .null import make_null, residuals, variances
from .rows import Rows
from .scan import DEPTHS, FAMILIES, Table, find_large, measure, ratios, tables_and_classes

# So many labels are drawn for every row; fewer where that would take too long.
_SIMULATIONS, _FEW_SIMULATIONS = 499, 199
_MOST_WORK = 2e9
# Of more rows, so many stand for all: they show how the regions overlap.
_MOST_ROWS = 10_000
# So many drawn residuals are held at a time, of one class at least.
_MOST_DRAWN = 2e7
_FURTHEST_LOG_ODDS = 10.0
# Beside that of all regions together.
_WEIGHT_OF_CURVE = 0.05


@dataclass(frozen=True)
class Whole:
    """The test of the whole, and of its two parts."""

    p_value: float
    curve_p_value: float
    """Of what one curve for all rows would put right."""
    regions_p_value: float
    """Of regions of one condition or two."""
    n_regions: int
    """How many of these were looked at."""
    n_simulations: int


def examine_whole(rows: Rows, axes: Sequence[Axis], random: np.random.Generator) -> Whole:
    """Test whether scores are calibrated everywhere.

    The statistic is a mean of likelihood ratios: of a curve for all rows, of all regions of one
    condition, and of all regions of two, which count for twice as much; of both, coarse ones count
    for more than fine ones. It is compared with that of labels that are drawn from the scores.
    """
    few = len(rows) <= _MOST_ROWS
    sample = np.arange(len(rows)) if few else _sample(rows, random)
    n_pairs = len(axes) * (len(axes) + 1) // 2
    work = float(len(sample)) * n_pairs * len(rows.channels)
    n_simulations = _SIMULATIONS if work * _SIMULATIONS <= _MOST_WORK else _FEW_SIMULATIONS
    sampled = rows if few else rows.take(sample)
    null = make_null(sampled, n_simulations, random, few=few)
    curve = np.zeros(1 + n_simulations)
    regions = np.zeros(1 + n_simulations)
    n_regions = 0
    # Tables of attributes are the same for all classes: they are made once for some of them.
    at_a_time = max(1, int(_MOST_DRAWN / (len(sample) * n_simulations)))
    for begin in range(0, len(rows.channels), at_a_time):
        channels = rows.channels[begin : begin + at_a_time]
        drawn = np.stack([null.residuals(channel) for channel in channels], axis=1)
        for place, channel in enumerate(channels):
            curve[0] += _curve(rows, channel, residuals(rows, channel)[:, np.newaxis])[0]
            curve[1:] += _curve(sampled, channel, drawn[:, place])
        of_scores = [score_axis(rows, channel) for channel in channels]
        whole = _Labels.of(rows, channels, axes, of_scores)
        part = whole
        if not few:
            taken = [[axis.take(sample) for axis in each] for each in (axes, of_scores)]
            part = _Labels.of(sampled, channels, *taken)
        for depth, weight in DEPTHS.items():
            found, count = _regions(whole, part, drawn, depth)
            regions += weight * found
            n_regions += count
    curve /= len(rows.channels)
    regions /= len(rows.channels)
    is_ratio = rows.groups is None
    mean = _WEIGHT_OF_CURVE * curve + (1.0 - _WEIGHT_OF_CURVE) * regions
    return Whole(
        p_value=_p_value(mean, is_ratio=is_ratio),
        curve_p_value=_p_value(curve, is_ratio=is_ratio),
        regions_p_value=_p_value(regions, is_ratio=is_ratio),
        n_regions=n_regions,
        n_simulations=n_simulations,
    )


def _sample(rows: Rows, random: np.random.Generator) -> npt.NDArray[np.intp]:
    """Some of the rows; whole groups if there are any, so that their signs flip together."""
    if rows.groups is None:
        return np.sort(random.choice(len(rows), _MOST_ROWS, replace=False))
    order = random.permutation(int(rows.groups.max()) + 1)
    n_rows = np.cumsum(np.bincount(rows.groups)[order])
    n_groups = max(int(np.searchsorted(n_rows, _MOST_ROWS, side="right")), 2)
    return np.flatnonzero(np.isin(rows.groups, order[:n_groups]))


def _curve(rows: Rows, channel: int, of_rows: npt.NDArray[Any]) -> Floats:
    """The likelihood ratio of another intercept, slope or bend of a curve for all rows."""
    log_odds = np.clip(rows.log_odds(channel), -_FURTHEST_LOG_ODDS, _FURTHEST_LOG_ODDS)
    variance = variances(rows, channel)
    centre = np.average(log_odds, weights=variance)
    directions = np.column_stack(
        [np.ones(len(rows)), log_odds - centre, bend(log_odds) - bend(np.array([centre]))]
    )
    spread = np.asarray(variance @ directions**2)
    sums = directions.T.astype(of_rows.dtype) @ of_rows
    return np.asarray(ratios(sums, spread).mean(axis=0))


@dataclass(frozen=True, eq=False)
class _Labels:
    """Rows in bins, and the residuals of some classes, one per column."""

    weights: Floats
    axes: Sequence[Axis]
    of_scores: Sequence[Axis]
    residuals: Floats
    variances: Floats

    @classmethod
    def of(
        cls, rows: Rows, channels: list[int], axes: Sequence[Axis], of_scores: Sequence[Axis]
    ) -> _Labels:
        """Take the residuals of some classes."""
        return cls(
            rows.row_weights,
            axes,
            of_scores,
            np.column_stack([residuals(rows, channel) for channel in channels]),
            np.column_stack([variances(rows, channel) for channel in channels]),
        )

    def tables(self, depth: int) -> Iterator[tuple[Table, list[int]]]:
        """Yield the tables, each with the places of the classes it is looked at for."""
        return tables_and_classes(self.axes, self.of_scores, depth)


def _regions(
    whole: _Labels, part: _Labels, drawn: npt.NDArray[Any], depth: int
) -> tuple[Floats, int]:
    """The mean likelihood ratio of all regions, of the labels and of those drawn; their number.

    Those of several classes are added up. `drawn` are rows of the part x classes x simulations.
    """
    _, n_classes, n_simulations = drawn.shape
    # Rows that stand for others count for all of them.
    scales = whole.variances.sum(axis=0) / part.variances.sum(axis=0)
    totals = np.zeros((n_classes, len(FAMILIES), 1 + n_simulations))
    counts, n_regions = np.zeros((n_classes, len(FAMILIES))), 0
    for (table, places), (of_part, _) in zip(whole.tables(depth), part.tables(depth), strict=True):
        large = find_large(table, whole.weights)
        sizes = measure(table, whole.weights, whole.variances[:, places], large)
        if not sizes.is_tested.any():
            continue
        n_regions += int(sizes.is_tested.sum())
        own = table.regions(table.cells(whole.residuals[:, places]))
        of_classes = drawn if len(places) == n_classes else drawn[:, places]
        cells = of_part.cells(of_classes.reshape(len(drawn), -1))
        sums = of_part.regions(cells).reshape(*own.shape, n_simulations)
        spread = of_part.regions(of_part.cells(part.variances[:, places]))
        for k, place in enumerate(places):
            tested, scale = sizes.is_tested[..., k], float(scales[place])
            first = ratios(own[..., k][tested], sizes.variance[..., k][tested])
            others = sums[..., k, :][tested] * np.float32(math.sqrt(scale))
            found = np.column_stack([first, ratios(others, spread[..., k][tested] * scale)])
            for family, members in enumerate(table.families):
                totals[place, family] += members[tested] @ found
                counts[place, family] += np.count_nonzero(members[tested])
    means = totals / np.maximum(counts, 1.0)[..., np.newaxis]
    return np.asarray(np.tensordot(FAMILIES, means.sum(axis=0), 1)), n_regions


def _p_value(statistic: Floats, *, is_ratio: bool) -> float:
    """The share of all statistics that are as large as the first.

    A mean likelihood ratio bounds it: it is 1 on average, and so rarely above any large number.
    Only below what simulations can show is the bound of use.
    """
    # Equal but for rounding is equal.
    share = float(np.mean(statistic >= statistic[0] * (1.0 - 1e-9)))
    if is_ratio and share <= 1.0 / len(statistic):
        share = min(share, 1.0 / float(statistic[0]))
    return share
