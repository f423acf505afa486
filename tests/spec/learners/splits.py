"""The gains of splits of some rows, from columns sorted once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from caltree._inputs.arrays import Floats, Mask

Indices = npt.NDArray[np.intp]

# Less weight than this, of a mean of 1 a row, is rounding error: a branch needs more.
_LEAST_WEIGHT = 1e-6
_BLOCK = 2**16  # numbers worked on at a time: few enough to stay in the processor's cache
_TIE = 1e-12  # gains this close are equal
_MISSING = np.iinfo(np.int32).max


@dataclass(frozen=True)
class Part:
    """Some rows, and each numeric attribute's order of them."""

    rows: Indices
    """Ascending."""
    order: Indices
    """The rows in ascending order of each numeric attribute, those without a value last."""
    ranks: npt.NDArray[np.int32]
    """The ranks of the values in that order, equal for equal values."""

    def inside(self, chosen: Mask) -> Part:
        """The rows of this part that a mask over all rows of the table chooses."""
        rows = self.rows[chosen[self.rows]]
        kept = np.flatnonzero(chosen.take(self.order))
        shape = len(self.order), len(rows)
        order = self.order.ravel().take(kept).reshape(shape)
        return Part(rows, order, self.ranks.ravel().take(kept).reshape(shape))


@dataclass(frozen=True)
class Presorted:
    """An encoded table, made ready for many regressions on it."""

    matrix: Floats
    """Numbers, codes of categories, and NaN for missing values."""
    n_categories: npt.NDArray[np.int32]
    """Of each attribute; 0 for a numeric one."""

    @cached_property
    def numeric(self) -> Indices:
        """The numeric attributes, without those that have no value."""
        return np.flatnonzero((self.n_categories == 0) & ~np.isnan(self.matrix).all(axis=0))

    @cached_property
    def nominal(self) -> Indices:
        """The nominal attributes."""
        return np.flatnonzero(self.n_categories > 0)

    @cached_property
    def everything(self) -> Part:
        """All rows."""
        n_rows = len(self.matrix)
        order = np.empty((len(self.numeric), n_rows), dtype=np.intp)
        ranks = np.full((len(self.numeric), n_rows), _MISSING, dtype=np.int32)
        for place, attribute in enumerate(self.numeric):
            order[place] = self.matrix[:, attribute].argsort(kind="stable")  # NaN comes last
            values = self.matrix[order[place], attribute]
            values = values[~np.isnan(values)]
            ranks[place, 0] = 0
            ranks[place, 1 : len(values)] = np.cumsum(values[1:] > values[:-1])
        return Part(np.arange(n_rows), order, ranks)

    @cached_property
    def first_cell(self) -> Indices:
        """Where each nominal attribute's cells begin: one a category, then one for missing."""
        ends = np.cumsum(self.n_categories[self.nominal] + 1)
        return np.concatenate([[0], ends]).astype(np.intp)

    @cached_property
    def cells(self) -> Indices:
        """The cell of each row, one column a nominal attribute."""
        codes = self.matrix[:, self.nominal]
        codes = np.where(np.isnan(codes), self.n_categories[self.nominal], codes)
        return codes.astype(np.intp) + self.first_cell[:-1]

    def halfway(self, part: Part, attribute: int, place: int) -> tuple[float, float, float]:
        """The values before and behind a place of an attribute's order, and the number between."""
        column = np.searchsorted(self.numeric, attribute)
        low, high = self.matrix[part.order[column, place : place + 2], attribute].tolist()
        return low, 0.5 * low + 0.5 * high, high


@dataclass(frozen=True)
class Gains:
    """The best split of each attribute, of the rows that have a value of it."""

    gain: Floats
    """By how much the split lowers the squared error; minus infinity where there is none."""
    choice: Indices
    """A numeric attribute is cut behind this place of its order, a nominal one is split into
    this category and the rest, unless it is split into all categories."""
    weight: Floats
    """The sum over the rows with a value."""
    weighted: Floats
    """The sum of the weighted response over the rows with a value."""


def split_gains(
    table: Presorted, part: Part, weight: Floats, weighted: Floats, *, all_categories: bool
) -> Gains:
    """Find the best split of each attribute, for some rows of a table.

    `weighted` is the product of weight and response. Nominal attributes are split into all
    categories, or into one and the rest.
    """
    n_attributes = len(table.n_categories)
    found = Gains(
        np.full(n_attributes, -np.inf),
        np.zeros(n_attributes, dtype=np.intp),
        np.zeros(n_attributes),
        np.zeros(n_attributes),
    )
    if len(part.rows) > 1:
        step = max(1, _BLOCK // len(part.rows))
        for start in range(0, len(table.numeric), step):
            _cut(found, table, part, slice(start, start + step), weight, weighted)
        if len(table.nominal):
            _sort_into_categories(found, table, part.rows, weight, weighted, all_categories)
    return found


def first_best(gains: Floats) -> int:
    """The first of the best, up to rounding."""
    return int(np.flatnonzero(gains >= gains.max() - _TIE)[0])


def _cut(
    found: Gains, table: Presorted, part: Part, block: slice, weight: Floats, weighted: Floats
) -> None:
    """Fill in the best cuts of a block of numeric attributes."""
    order, ranks = part.order[block], part.ranks[block]
    below = weight.take(order).cumsum(axis=1)
    response_below = weighted.take(order).cumsum(axis=1)
    last = np.count_nonzero(ranks < _MISSING, axis=1) - 1  # -1 where nothing is known: no cut
    columns = np.arange(len(order))
    known, known_response = below[columns, last], response_below[columns, last]
    # Around the mean, the gain is one fraction for both branches.
    response_below -= below * _ratio(known_response, known)[:, np.newaxis]
    product = (below * (known[:, np.newaxis] - below))[:, :-1]
    least = np.where(known > 0, _LEAST_WEIGHT * known, 1.0)[:, np.newaxis]
    # Behind the last known value the product is 0: missing values are not told from it here.
    differ = (ranks[:, 1:] > ranks[:, :-1]) & (product > least)
    gains = np.square(response_below, out=response_below)[:, :-1]
    gains /= np.maximum(product, least, out=product)
    gains[~differ] = -np.inf
    places = gains.argmax(axis=1)
    attributes = table.numeric[block]
    possible = differ[columns, places]
    best = np.where(possible, gains[columns, places], 0.0)
    found.gain[attributes] = np.where(possible, best * known, -np.inf)
    found.choice[attributes] = places
    found.weight[attributes] = known
    found.weighted[attributes] = known_response


def _sort_into_categories(
    found: Gains,
    table: Presorted,
    rows: Indices,
    weight: Floats,
    weighted: Floats,
    all_categories: bool,
) -> None:
    """Fill in the splits of the nominal attributes."""
    cells, n_cells = table.cells[rows].ravel(), int(table.first_cell[-1])
    first, missing = table.first_cell[:-1], table.first_cell[1:] - 1
    inside, response_inside = (
        sums(cells, np.repeat(each[rows], len(first)), n_cells) for each in (weight, weighted)
    )
    inside[missing] = response_inside[missing] = 0.0
    known = np.add.reduceat(inside, first)
    known_response = np.add.reduceat(response_inside, first)
    found.weight[table.nominal], found.weighted[table.nominal] = known, known_response
    sizes = table.n_categories[table.nominal] + 1
    response_inside -= inside * np.repeat(_ratio(known_response, known), sizes)
    if all_categories:
        gains = np.add.reduceat(_ratio(response_inside**2, inside), first)
        branches = np.add.reduceat((inside > _LEAST_WEIGHT).astype(np.intp), first)
        found.gain[table.nominal] = np.where(branches > 1, gains, -np.inf)
        return
    whole = np.repeat(known, sizes)
    product = inside * (whole - inside)
    gains = _ratio(response_inside**2 * whole, product)
    gains[product <= _LEAST_WEIGHT * whole] = -np.inf
    for attribute, start, end in zip(table.nominal, first, missing, strict=True):
        found.choice[attribute] = best = first_best(gains[start:end])
        found.gain[attribute] = gains[start + best]


def _ratio(above: Floats, below: Floats) -> Floats:
    """A fraction; 0 where there is nothing to divide by."""
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)


def sums(codes: Indices, weights: Floats, n_codes: int) -> Floats:
    """The sum of the weights of each code."""
    return np.bincount(codes, weights, minlength=n_codes).astype(np.float64, copy=False)
