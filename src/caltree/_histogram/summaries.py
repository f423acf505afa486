"""Summaries of a table's columns, which are needed before any row can be put into bins.

Each part of a table is summarised on its own; the summaries merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import (
    Attribute,
    Attributes,
    Identifiers,
    refuse_infinite_categories,
)
from .._inputs.identifiers import WholeNumbers, are_names, warn_of_identifiers
from .._inputs.indexing import column_positions
from .._inputs.parameters import MOST_BINS
from .._inputs.tables import Categories, Category, Column, read_table
from .._inputs.warning import warn_user
from .binning import Bins, cuts_between, few_values, quantile_cuts


@dataclass(frozen=True)
class NumericSummary:
    """Of a column of numbers: the different ones, or None if they are many."""

    values: Floats | None
    has_missing: bool = False
    whole: WholeNumbers | None = None
    """None if they certainly are not keys."""

    def merge(self, other: NumericSummary, max_bins: int) -> NumericSummary:
        """Those of both."""
        values = None
        if self.values is not None and other.values is not None:
            values = np.union1d(self.values, other.values)
        whole = None
        if self.whole is not None and other.whole is not None:
            whole = self.whole.merge(other.whole)
        return NumericSummary(
            values if values is not None and len(values) <= max_bins else None,
            self.has_missing or other.has_missing,
            whole,
        )

    def is_identifier(self, name: str) -> bool:
        """Whether the numbers look like keys of the rows."""
        return self.whole is not None and self.whole.are_keys(name)

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing."""
        return self.values is not None and len(self.values) == 0


@dataclass(frozen=True)
class NominalSummary:
    """Of a column of categories: how much weight each has, or None if they are too many."""

    totals: dict[Category, float] | None
    declared: Categories | None
    """The categories of the column's type, if it has them: they count even without a row."""
    has_missing: bool = False
    n_present: int = 0
    """The rows that have a value."""

    def merge(self, other: NominalSummary, max_bins: int) -> NominalSummary:
        """Those of both."""
        totals = None
        if self.totals is not None and other.totals is not None:
            totals = dict(self.totals)
            for category, total in other.totals.items():
                totals[category] = totals.get(category, 0.0) + total
        same = self.declared is not None and self.declared == other.declared
        return NominalSummary(
            _unless_too_many(totals),
            self.declared if same else None,
            self.has_missing or other.has_missing,
            self.n_present + other.n_present,
        )

    def is_identifier(self, name: str) -> bool:
        """Whether the categories name the rows."""
        return self.totals is not None and are_names(self.n_present, len(self.totals))

    def categories(self, name: str) -> Categories:
        """In the order of their codes; none if they are too many."""
        if self.totals is None or len(self.declared or ()) > MOST_BINS:
            return ()
        if self.declared is not None:
            return self.declared
        if len({isinstance(category, str) for category in self.totals}) > 1:
            raise TypeError(
                f"attribute {name!r} of X holds numbers in some rows and strings in others; "
                "make them all of one type"
            )
        return tuple(sorted(self.totals))

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing."""
        return self.n_present == 0


ColumnSummary: TypeAlias = NumericSummary | NominalSummary


@dataclass(frozen=True)
class TableSummary:
    """A summary of the columns of a table, or of a part of it."""

    labels: tuple[str, ...]
    names: tuple[str, ...] | None
    columns: tuple[ColumnSummary, ...]
    max_bins: int
    chosen: tuple[bool, ...]
    """Whether each column was named among the `categorical_features`."""

    @classmethod
    def of(
        cls,
        X: Any,
        keep: Mask | None,
        weights: Floats | None,
        categorical_features: Any,
        max_bins: int,
    ) -> TableSummary:
        """Look at some rows; `weights` are those of the kept ones."""
        table = read_table(X, "X")
        if table.shape[1] == 0:
            raise ValueError(
                f"X has 0 feature(s) (shape={table.shape}) while a minimum of 1 is required."
            )
        nominal = np.zeros(table.shape[1], dtype=bool)
        if categorical_features is not None:
            nominal[column_positions(categorical_features, table, "categorical_features")] = True
        labels = tuple(table.label(j) for j in range(table.shape[1]))
        columns: list[ColumnSummary] = []
        for j, label in enumerate(labels):
            column = table.column(j, nominal=bool(nominal[j]))
            values = column.values if keep is None else column.values[keep]
            if column.categories is None:
                columns.append(_summarise_numbers(values, label, max_bins))
            else:
                columns.append(_summarise_categories(column, values, weights, label))
        return cls(labels, table.names, tuple(columns), max_bins, tuple(nominal.tolist()))

    def merge(self, other: TableSummary) -> TableSummary:
        """Return the summary of both parts."""
        if (self.labels, self.names) != (other.labels, other.names):
            raise ValueError(
                f"X has the attributes {list(self.labels)} in some of its parts and "
                f"{list(other.labels)} in others; give all parts the same columns"
            )
        pairs = zip(self.columns, other.columns, strict=True)
        merged = tuple(
            _merge_columns(a, b, label, self.max_bins)
            for (a, b), label in zip(pairs, self.labels, strict=True)
        )
        return replace(self, columns=merged)

    def attributes(self, identifiers: Identifiers = "keep") -> Attributes:
        """The attributes, still without means to stand in for missing numbers.

        Those of more categories than two bytes can tell apart are not used, nor are identifiers
        that are to be dropped.
        """
        columns = map(_attribute, self.labels, self.columns)
        known = Attributes(tuple(columns), self.names)
        return known if identifiers == "keep" else known.without_values_of(set(self._identifiers()))

    def warn(self, identifiers: Identifiers) -> None:
        """Warn of columns that are not used."""
        if identifiers == "drop":
            warn_of_identifiers(self._identifiers(), dropped=True)
        seen = zip(self.labels, self.columns, strict=True)
        too_many = [label for label, column in seen if _has_too_many(column)]
        if too_many:
            warn_user(
                f"attributes {too_many} have more than {MOST_BINS:,} categories, too many for "
                "histograms, and are left out; group their categories, or use tree_method='exact'"
            )

    def _identifiers(self) -> list[str]:
        every = zip(self.labels, self.columns, self.chosen, strict=True)
        return [name for name, seen, chosen in every if not chosen and seen.is_identifier(name)]


def merge_summaries(summaries: Sequence[TableSummary]) -> TableSummary:
    """Return the summary of all parts."""
    return reduce(TableSummary.merge, summaries)


def learn_bins(
    summary: TableSummary, known: Attributes, sample: Floats, weights: Floats | None
) -> tuple[Attributes, Bins]:
    """The attributes and their bins, by a sample of encoded rows."""
    columns: list[Attribute] = []
    cuts: list[Floats | None] = []
    for j, (attribute, seen) in enumerate(zip(known.columns, summary.columns, strict=True)):
        if not isinstance(seen, NumericSummary) or not attribute.is_used:
            columns.append(attribute)
            cuts.append(None)
            continue
        columns.append(replace(attribute, fill=_mean(sample[:, j], weights)))
        if seen.values is not None:
            cuts.append(cuts_between(seen.values))
        else:
            cuts.append(quantile_cuts(sample[:, j], weights, summary.max_bins))
    complete = Attributes(tuple(columns), known.names)
    return complete, Bins.of(cuts, complete.n_categories, complete.fills)


def _summarise_numbers(values: npt.NDArray[Any], label: str, max_bins: int) -> NumericSummary:
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(
            f"X contains infinity in attribute {label!r}; replace it or mark it missing (NaN)"
        )
    has_missing = values.dtype.kind == "f" and bool(np.isnan(values).any())
    few = few_values(values, max_bins)
    return NumericSummary(few, has_missing, WholeNumbers.of(values, label))


def _summarise_categories(
    column: Column, values: npt.NDArray[Any], weights: Floats | None, label: str
) -> NominalSummary:
    categories = column.categories or ()
    refuse_infinite_categories(categories, label)
    present = values >= 0
    weight = None if weights is None else weights[present]
    totals = np.bincount(values[present], weight, minlength=len(categories))
    seen = {c: float(t) for c, t in zip(categories, totals, strict=True) if t > 0}
    n_present = int(np.count_nonzero(present))
    return NominalSummary(
        _unless_too_many(seen),
        categories if column.declared else None,
        n_present < len(values),
        n_present,
    )


def _unless_too_many(totals: dict[Category, float] | None) -> dict[Category, float] | None:
    """None instead of more categories than can be told apart: they shall take no memory."""
    return None if totals is None or len(totals) > MOST_BINS else totals


def _has_too_many(seen: ColumnSummary) -> bool:
    return not isinstance(seen, NumericSummary) and (
        seen.totals is None or len(seen.declared or ()) > MOST_BINS
    )


def _attribute(label: str, seen: ColumnSummary) -> Attribute:
    if isinstance(seen, NumericSummary):
        return Attribute(label, None, has_missing=seen.has_missing)
    known, totals = seen.categories(label), seen.totals or {}
    fill = float(np.argmax([totals.get(category, 0.0) for category in known])) if known else 0.0
    return Attribute(label, known, fill, seen.has_missing)


def _merge_columns(
    first: ColumnSummary, second: ColumnSummary, label: str, max_bins: int
) -> ColumnSummary:
    if isinstance(first, NumericSummary) and isinstance(second, NumericSummary):
        return first.merge(second, max_bins)
    if isinstance(first, NominalSummary) and isinstance(second, NominalSummary):
        return first.merge(second, max_bins)
    # A part without a single value may look like either.
    if first.is_empty or second.is_empty:
        return replace(second if first.is_empty else first, has_missing=True)
    raise TypeError(
        f"attribute {label!r} of X holds numbers in some rows and categories in others; "
        "make them all of one type"
    )


def _mean(values: Floats, weights: Floats | None) -> float:
    present = ~np.isnan(values)
    if not present.any():
        return 0.0
    share = np.ones(len(values)) if weights is None else weights
    # Halves, since rounding may make the mean of the largest numbers larger than any number.
    half = share[present] / share[present].sum() / 2.0
    largest = np.finfo(np.float64).max / 2.0
    return float(2.0 * np.clip(np.sum(values[present] * half), -largest, largest))
