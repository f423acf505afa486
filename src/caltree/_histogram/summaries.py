"""Summaries of a table's columns, which are needed before any row can be put into bins.

Each part of a table is summarised on its own; the summaries merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import Attribute, Attributes, refuse_infinite_categories
from .._inputs.indexing import column_positions
from .._inputs.tables import Categories, Category, Column, read_table
from .binning import Bins, cuts_between, few_values, quantile_cuts


@dataclass(frozen=True)
class NumericSummary:
    """Of a column of numbers: the different ones, or None if they are many."""

    values: Floats | None

    def merge(self, other: NumericSummary, max_bins: int) -> NumericSummary:
        """Those of both."""
        if self.values is None or other.values is None:
            return NumericSummary(None)
        values = np.union1d(self.values, other.values)
        return NumericSummary(values if len(values) <= max_bins else None)

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing."""
        return self.values is not None and len(self.values) == 0


@dataclass(frozen=True)
class NominalSummary:
    """Of a column of categories: how much weight each has."""

    totals: dict[Category, float]
    declared: Categories | None
    """The categories of the column's type, if it has them: they count even without a row."""

    def merge(self, other: NominalSummary, max_bins: int) -> NominalSummary:
        """Those of both."""
        totals = dict(self.totals)
        for category, total in other.totals.items():
            totals[category] = totals.get(category, 0.0) + total
        same = self.declared is not None and self.declared == other.declared
        return NominalSummary(totals, self.declared if same else None)

    def categories(self, name: str) -> Categories:
        """In the order of their codes."""
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
        return not self.totals


ColumnSummary: TypeAlias = NumericSummary | NominalSummary


@dataclass(frozen=True)
class TableSummary:
    """A summary of the columns of a table, or of a part of it."""

    labels: tuple[str, ...]
    names: tuple[str, ...] | None
    columns: tuple[ColumnSummary, ...]
    max_bins: int

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
        return cls(labels, table.names, tuple(columns), max_bins)

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
        return TableSummary(self.labels, self.names, merged, self.max_bins)

    def attributes(self) -> Attributes:
        """The attributes, still without means to stand in for missing numbers."""
        columns = []
        for label, seen in zip(self.labels, self.columns, strict=True):
            if isinstance(seen, NumericSummary):
                columns.append(Attribute(label, None))
                continue
            known = seen.categories(label)
            totals = [seen.totals.get(category, 0.0) for category in known]
            columns.append(Attribute(label, known, float(np.argmax(totals)) if known else 0.0))
        return Attributes(tuple(columns), self.names)


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
        if not isinstance(seen, NumericSummary):
            columns.append(attribute)
            cuts.append(None)
            continue
        columns.append(Attribute(attribute.name, None, _mean(sample[:, j], weights)))
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
    return NumericSummary(few_values(values, max_bins))


def _summarise_categories(
    column: Column, values: npt.NDArray[Any], weights: Floats | None, label: str
) -> NominalSummary:
    categories = column.categories or ()
    refuse_infinite_categories(categories, label)
    present = values >= 0
    weight = None if weights is None else weights[present]
    totals = np.bincount(values[present], weight, minlength=len(categories))
    seen = {c: float(t) for c, t in zip(categories, totals, strict=True) if t > 0}
    return NominalSummary(seen, categories if column.declared else None)


def _merge_columns(
    first: ColumnSummary, second: ColumnSummary, label: str, max_bins: int
) -> ColumnSummary:
    if isinstance(first, NumericSummary) and isinstance(second, NumericSummary):
        return first.merge(second, max_bins)
    if isinstance(first, NominalSummary) and isinstance(second, NominalSummary):
        return first.merge(second, max_bins)
    # A part without a single value may look like either.
    if first.is_empty or second.is_empty:
        return second if first.is_empty else first
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
