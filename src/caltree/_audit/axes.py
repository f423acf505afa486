"""Attributes in a few bins, and the conditions on them that an audit looks at.

Neither depends on the labels, so that what is looked at is fixed before the labels are.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .._fitted.conditions import Limits, condition
from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import Attribute
from .rows import Rows

Codes: TypeAlias = npt.NDArray[np.uint8]

# Numbers of more distinct values are cut into this many parts of about as many rows; of more
# categories than this, the rarest share a bin.
_MOST_BINS, _FEW_BINS = 12, 6
# Coarse conditions are those on thirds, or on one of so many categories.
_COARSE = 3


@dataclass(frozen=True, eq=False)
class Condition:
    """A condition on one attribute, in words, and the bins that meet it."""

    words: str
    bins: Mask
    is_coarse: bool
    """Whether it is one of the few that are looked at first."""
    in_pairs: bool
    """Whether it is also looked at together with fine conditions on another attribute."""


@dataclass(frozen=True, eq=False)
class Axis:
    """An attribute in bins, and the conditions on it."""

    codes: Codes
    """The bin of every row."""
    n_bins: int
    conditions: list[Condition]

    @property
    def single(self) -> Floats:
        """The conditions as ones and zeros: one row per condition, one column per bin."""
        found = [each.bins for each in self.conditions]
        return np.array(found, dtype=np.float64).reshape(-1, self.n_bins)

    def take(self, rows: npt.NDArray[np.intp]) -> Axis:
        """The same conditions on some of the rows."""
        return Axis(self.codes[rows], self.n_bins, self.conditions)


def attribute_axes(rows: Rows, columns: Collection[int] | None = None) -> list[Axis]:
    """The axes of all attributes that tell rows apart, or of those of some columns."""
    found = []
    for column, attribute in enumerate(rows.attributes.columns):
        if not attribute.is_used or (columns is not None and column not in columns):
            continue
        values = rows.matrix[:, column]
        axis = _of_categories(attribute, values) if attribute.categories else None
        axis = axis or _of_numbers(attribute, values)
        if len(axis.conditions) > 0:
            found.append(axis)
    return found


def score_axis(rows: Rows, channel: int) -> Axis:
    """The axis of the score of a class."""
    own = rows.score_name
    name = own if rows.event is not None else f"{own} of {rows.classes[channel]}"
    return _of_numbers(Attribute(name, None), rows.predicted(channel))


def _of_numbers(attribute: Attribute, values: Floats) -> Axis:
    missing = np.isnan(values)
    cuts = _cuts(values[~missing])
    codes = np.searchsorted(cuts, values, side="left").astype(np.uint8)
    n_known = len(cuts) + 1
    codes[missing] = n_known
    n_bins = n_known + int(missing.any())
    ends = np.array([-np.inf, *cuts, np.inf])
    step = -(-n_known // _COARSE)
    conditions = []
    for first, last in combinations_with_replacement(range(n_known), 2):
        from_start, to_end = first == 0, last == n_known - 1
        if from_start and to_end:
            continue
        bins = np.zeros(n_bins, dtype=bool)
        bins[first : last + 1] = True
        limits = Limits(low=float(ends[first]), high=float(ends[last + 1]))
        # Two conditions are many regions: there, every other cut will do.
        is_even = n_known <= _FEW_BINS or (first % 2 == 0 and (to_end or last % 2 == 1))
        conditions.append(
            Condition(
                words=condition(attribute, limits),
                bins=bins,
                is_coarse=first % step == 0 and last == min(first + step, n_known) - 1,
                in_pairs=(from_start or to_end) and is_even,
            )
        )
    return Axis(codes, n_bins, [*conditions, *_about_missing(attribute, n_bins, missing)])


def _cuts(known: Floats) -> Floats:
    """The largest value of every bin but the last."""
    if len(known) == 0:
        return np.empty(0)
    distinct = np.unique(known)
    if len(distinct) <= _MOST_BINS:
        # Between two values, as the splits of a tree are.
        return np.asarray((distinct[:-1] + distinct[1:]) / 2.0)
    shares = np.arange(1, _MOST_BINS) / _MOST_BINS
    cuts = np.unique(np.quantile(known, shares, method="lower"))
    return np.asarray(cuts[cuts < distinct[-1]])


def _of_categories(attribute: Attribute, values: Floats) -> Axis:
    assert attribute.categories is not None
    missing = np.isnan(values)
    n_categories = len(attribute.categories)
    counts = np.bincount(values[~missing].astype(np.intp), minlength=n_categories)
    order = np.argsort(-counts, kind="stable")
    n_own = n_categories if n_categories <= _MOST_BINS else _MOST_BINS - 1
    bin_of = np.full(n_categories, n_own, dtype=np.uint8)
    bin_of[order[:n_own]] = np.arange(n_own)
    n_known = n_own + int(n_own < n_categories)
    n_bins = n_known + int(missing.any())
    codes = np.full(len(values), n_known, dtype=np.uint8)
    codes[~missing] = bin_of[values[~missing].astype(np.intp)]
    everything = frozenset(range(n_categories))
    conditions: list[Condition] = []
    for place, code in enumerate(order[:n_own].tolist()):
        for inside in (frozenset([code]), everything - {code}):
            if not inside or (n_categories == 2 and len(conditions) == 2):
                continue  # of two, one being the case is the other not being it
            bins = np.zeros(n_bins, dtype=bool)
            bins[bin_of[list(inside)]] = True
            words = condition(attribute, Limits(categories=inside))
            is_coarse = place < _COARSE and len(inside) == 1
            conditions.append(Condition(words, bins, is_coarse, in_pairs=True))
    return Axis(codes, n_bins, [*conditions, *_about_missing(attribute, n_bins, missing)])


def _about_missing(attribute: Attribute, n_bins: int, missing: Mask) -> list[Condition]:
    if not missing.any() or missing.all():
        return []
    bins = np.arange(n_bins) == n_bins - 1
    words = condition(attribute, Limits(is_missing=True, is_known=False))
    return [Condition(words, bins, is_coarse=True, in_pairs=True)]
