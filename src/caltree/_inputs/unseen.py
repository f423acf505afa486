"""Values that no training row had: new categories, and missing values where none was missing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import Floats, Mask
from .tables import Category
from .warning import quote, warn_user

_MOST_NAMES = 10


@dataclass
class Unseen:
    """Counts of rows, by attribute; those of several batches add up."""

    n_rows: int = 0
    """All rows that were looked at."""
    new_category: Counter[str] = field(default_factory=Counter)
    """The rows with a category that no training row had."""
    newly_missing: Counter[str] = field(default_factory=Counter)
    """The rows without a value, of attributes that had one in every training row."""
    examples: dict[str, Category] = field(default_factory=dict)
    """A new category of each attribute that has some."""

    def add_category(self, name: str, n_rows: int, example: Category) -> None:
        """Count rows with new categories."""
        self.new_category[name] += n_rows
        self.examples.setdefault(name, example)

    def add_missing(self, name: str, n_rows: int) -> None:
        """Count rows without a value."""
        self.newly_missing[name] += n_rows

    def update(self, other: Unseen) -> None:
        """Add the counts of other rows, which come after these."""
        self.n_rows += other.n_rows
        self.new_category.update(other.new_category)
        self.newly_missing.update(other.newly_missing)
        self.examples = other.examples | self.examples

    def to_list(self) -> list[dict[str, Any]]:
        """The attributes with such values, as plain values; those with the most rows first."""
        total = self.new_category + self.newly_missing
        return [
            {
                "attribute": name,
                "new_category": self.new_category[name],
                "example": self.examples.get(name),
                "newly_missing": self.newly_missing[name],
            }
            for name, _ in total.most_common()
        ]

    def message(self) -> str | None:
        """Say how many rows have such values, and in which attributes; None if there are none."""
        found = self.to_list()
        if not found:
            return None
        parts = [_describe(each) for each in found[:_MOST_NAMES]]
        if len(found) > _MOST_NAMES:
            parts.append(f"{len(found) - _MOST_NAMES} more attributes")
        counted = ". A new category counts as the most frequent one" if self.new_category else ""
        return (
            f"some of {_rows(self.n_rows)} have values that no training row had: "
            f"{'; '.join(parts)}{counted}. Check whether the data have changed, or fit again"
        )

    def warn(self) -> None:
        """Give one warning of all such values."""
        message = self.message()
        if message is not None:
            warn_user(message)


def count_missing(matrix: Floats, wanted: Mask) -> list[tuple[int, int]]:
    """The wanted columns of a matrix that have missing values, and how many."""
    if not wanted.any():
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        # One fast pass over all numbers: if none is missing, their sum is not.
        if not np.isnan(matrix.sum()):
            return []
    n_rows, n_columns = matrix.shape
    # Faster than sums of a column of truth values, as long as few values are missing.
    places = np.flatnonzero(np.isnan(matrix.ravel("K")))
    columns = places % n_columns if matrix.flags.c_contiguous else places // n_rows
    counts = np.bincount(columns, minlength=n_columns)
    return [(int(j), int(counts[j])) for j in np.flatnonzero(wanted & (counts > 0))]


def _describe(found: dict[str, Any]) -> str:
    parts = []
    if found["new_category"]:
        rows = _rows(found["new_category"])
        parts.append(f"a new category such as {quote(found['example'])} in {rows}")
    if found["newly_missing"]:
        parts.append(f"missing in {_rows(found['newly_missing'])}, though never in training")
    return f"{quote(found['attribute'])}: {' and '.join(parts)}"


def _rows(number: int) -> str:
    return f"{number:,} {'row' if number == 1 else 'rows'}"
