"""Sums of residuals over all regions of one or two conditions, from tables of bins."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array

from .._inputs.arrays import Floats, Mask
from .axes import Axis

# A region is worth a sentence if it has this share of the rows, and so many of them; and it is
# worth a test if the labels can vary: the variance of their sum is at least this.
SMALLEST_SHARE = 0.02
FEWEST_ROWS = 50
_LEAST_VARIANCE = 5.0
# What is nearly everything is no region.
_LARGEST_SHARE = 0.9
# The shifts of log-odds that are looked for, up and down, and the weight of each.
_SHIFTS = {0.05: 0.02, 0.1: 0.08, 0.2: 0.3, 0.4: 0.4, 0.8: 0.2}
# The weights of all regions of coarse conditions, and of all of fine ones.
FAMILIES = (0.8, 0.2)
# The weights of all regions of one condition, and of all of two.
DEPTHS = {1: 1.0 / 3.0, 2: 2.0 / 3.0}
# The largest exponent of a likelihood ratio, by the bytes of a number.
_LARGEST_EXPONENT = {4: 80.0, 8: 600.0}


@dataclass(frozen=True, eq=False)
class Region:
    """One or two conditions, by their places among the axes."""

    conditions: tuple[tuple[int, int], ...]
    """Axis and condition."""

    def contains(self, axes: Sequence[Axis]) -> Mask:
        """Whether each row meets the conditions."""
        inside = np.ones(len(axes[0].codes), dtype=bool)
        for axis, place in self.conditions:
            inside &= axes[axis].conditions[place].bins[axes[axis].codes]
        return inside

    def words(self, axes: Sequence[Axis]) -> list[str]:
        """The conditions in words."""
        return [axes[axis].conditions[place].words for axis, place in self.conditions]


@dataclass(frozen=True, eq=False)
class Table:
    """The rows by the bins of one axis or two, and the regions that conditions make of them."""

    axes: tuple[int, ...]
    places: tuple[list[int], ...]
    """The conditions of each axis that count here."""
    inside: tuple[Floats, ...]
    """The same as ones and zeros, one column per bin."""
    families: tuple[Mask, ...]
    """Which regions are of coarse conditions alone, and which of fine ones."""
    codes: npt.NDArray[np.uint16]
    """The cell of every row."""
    shape: tuple[int, ...]

    def cells(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum a value of every row over the cells, or several, one per column."""
        size, n_rows = math.prod(self.shape), len(self.codes)
        sums: npt.NDArray[Any]
        if values.size == n_rows:
            sums = np.bincount(self.codes, values.ravel(), size)
        else:
            # Cells x rows, with a one where a row is.
            ones, begins = np.ones(n_rows, dtype=values.dtype), np.arange(n_rows + 1)
            sums = csc_array((ones, self.codes.astype(np.int32), begins), (size, n_rows)) @ values
        return np.asarray(sums.reshape(*self.shape, *values.shape[1:]))

    def regions(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Sum cells over the regions; further dimensions of the cells stay as they are."""
        inside = [each.astype(cells.dtype, copy=False) for each in self.inside]
        first = np.tensordot(inside[0], cells, 1)
        if len(inside) == 1:
            return np.asarray(first)
        return np.asarray(np.moveaxis(np.tensordot(inside[1], first, (1, 1)), 0, 1))

    def region(self, flat: int) -> Region:
        """The region of a place among all of this table."""
        places = np.unravel_index(flat, tuple(map(len, self.places)))
        chosen = [self.places[k][int(place)] for k, place in enumerate(places)]
        return Region(tuple(zip(self.axes, chosen, strict=True)))


def tables(axes: Sequence[Axis], depth: int, *, with_last: bool = False) -> Iterator[Table]:
    """Yield the tables of single axes (depth 1) or of all pairs of axes (depth 2).

    If asked for, these are only the tables in which the last axis is.
    """
    places, inside, coarse, fine = [], [], [], []
    for axis in axes:
        used = [
            place
            for place, each in enumerate(axis.conditions)
            if depth == 1 or each.is_coarse or each.in_pairs
        ]
        chosen = [axis.conditions[place] for place in used]
        places.append(used)
        inside.append(axis.single[used])
        coarse.append(np.array([each.is_coarse for each in chosen], dtype=bool))
        fine.append(np.array([depth == 1 or each.in_pairs for each in chosen], dtype=bool))
    for pair in combinations(range(len(axes)), depth):
        if with_last and pair[-1] < len(axes) - 1:
            continue
        codes = axes[pair[0]].codes.astype(np.uint16)
        for axis_number in pair[1:]:
            axis = axes[axis_number]
            codes = codes * np.uint16(axis.n_bins) + axis.codes
        kinds = (reduce(np.multiply.outer, [kind[k] for k in pair]) for kind in (coarse, fine))
        yield Table(
            pair,
            tuple(places[k] for k in pair),
            tuple(inside[k] for k in pair),
            tuple(kinds),
            codes,
            tuple(axes[k].n_bins for k in pair),
        )


def tables_and_classes(
    axes: Sequence[Axis], of_scores: Sequence[Axis], depth: int
) -> Iterator[tuple[Table, list[int]]]:
    """Yield tables, each with the places of the classes that it is looked at for.

    Those of attributes are the same for all classes. Each class has a score of its own.
    """
    for table in tables(axes, depth):
        yield table, list(range(len(of_scores)))
    for place, score in enumerate(of_scores):
        for table in tables([*axes, score], depth, with_last=True):
            yield table, [place]


@dataclass(frozen=True, eq=False)
class Sizes:
    """What is known of the regions of a table without the labels."""

    variance: Floats
    """Of the sum of the residuals of each region, if the scores are right."""
    is_tested: Mask
    """Whether a region is large enough, and not nearly everything."""


def find_large(table: Table, weights: Floats) -> Mask:
    """Whether each region has rows enough, and is not nearly everything."""
    counts = table.regions(table.cells(np.ones(len(weights))))
    weight = table.regions(table.cells(weights)) / weights.sum()
    large = (counts >= FEWEST_ROWS) & (weight >= SMALLEST_SHARE) & (weight <= _LARGEST_SHARE)
    return np.asarray(large)


def measure(table: Table, weights: Floats, variances: Floats, large: Mask) -> Sizes:
    """Measure the regions of a table, of which some are large enough.

    There may be variances of several classes, one per column.
    """
    variance = table.regions(table.cells(variances))
    # In rows of weight 1: a variance in other units says nothing about how many labels there are.
    unit = float(np.mean(weights**2))
    large = large.reshape(large.shape + (1,) * (variances.ndim - 1))
    return Sizes(variance, large & (variance >= _LEAST_VARIANCE * unit))


def ratios(sums: npt.NDArray[Any], variance: Floats) -> npt.NDArray[Any]:
    """Likelihood ratios of regions whose log-odds are shifted, to regions as the scores say.

    They are averaged over shifts of several sizes, up and down. If the scores are right, their
    mean is 1. Sums may have a further dimension.
    """
    spread = variance.reshape(variance.shape + (1,) * (sums.ndim - variance.ndim))
    spread, sizes = spread.astype(sums.dtype), np.abs(sums)
    limit = _LARGEST_EXPONENT[sums.dtype.itemsize]
    total = np.zeros_like(sums)
    for shift, weight in _SHIFTS.items():
        up = np.exp(np.minimum(shift * sizes - 0.5 * shift**2 * spread, limit))
        down = np.exp(-shift * sizes - 0.5 * shift**2 * spread)
        total += 0.5 * weight * (up + down)
    return total
