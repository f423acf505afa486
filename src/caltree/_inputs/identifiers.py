"""Identifiers among the columns of a table: they tell rows apart, and nothing about new rows."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .hashing import SmallestHashes, mix64
from .warning import quote, warn_user

# Categories, or numbers of a column that is called an identifier, are nearly all different.
_NEARLY_ALL = 0.9
_FEWEST_VALUES = 20
# Other whole numbers are issued, not measured, if all are different though they lie this close:
# of 100 measured ones within 1000, or more, some would be equal.
_FEWEST_NUMBERS = 100
_ROOM = 10
_WORDS = {"id", "identifier", "key", "uuid", "guid", "rowid", "userid", "customerid"}
# As pandas names its index where it writes it among the columns, or reads it back.
_INDEX_NAMES = {"index", "level_0", "__index_level_0__", "unnamed: 0"}
_MOST_NAMES = 10


class IdentifierWarning(UserWarning):
    """Some columns look like identifiers, and are left out or, in the published method, kept."""

    def __init__(self, columns: tuple[str, ...], dropped: bool) -> None:
        super().__init__(columns, dropped)
        self.columns, self.dropped = columns, dropped

    def __str__(self) -> str:
        remedy = (
            "keep such attributes with drop_identifiers=False, or name them in categorical_features"
            if self.dropped
            else "the published method keeps them; leave them out of X"
        )
        return f"{self.finding}; {remedy}"

    @property
    def finding(self) -> str:
        """Which columns look so, and whether they are left out, without a remedy."""
        names = ", ".join(map(quote, self.columns[:_MOST_NAMES]))
        if len(self.columns) > _MOST_NAMES:
            names += f" and {len(self.columns) - _MOST_NAMES} more"
        one = len(self.columns) == 1
        what = (
            "attribute {} looks like an identifier"
            if one
            else "attributes {} look like identifiers"
        )
        fate = f" and {'is' if one else 'are'} left out" if self.dropped else ""
        return f"{what.format(names)} (nearly every row has a value of its own){fate}"


def warn_of_identifiers(columns: Sequence[str], *, dropped: bool) -> None:
    """Warn once of all columns that look like identifiers."""
    if columns:
        warn_user(IdentifierWarning(tuple(columns), dropped))


def are_names(n_present: int, n_different: int) -> bool:
    """Whether so many different categories of so many rows name the rows."""
    return n_present >= _FEWEST_VALUES and n_different >= _NEARLY_ALL * n_present


def is_called_identifier(name: str) -> bool:
    """Whether a column's name says so: id, user_id, userId, SK_ID_CURR, index."""
    if name.lower() in _INDEX_NAMES:
        return True
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return not _WORDS.isdisjoint(word.lower() for word in words)


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """What tells keys from measured numbers, of a column of whole numbers; mergeable."""

    n_present: int
    has_missing: bool
    low: float
    high: float
    smallest: SmallestHashes
    """A sample of the numbers, with the rows of each."""

    @classmethod
    def of(cls, values: npt.NDArray[Any], name: str) -> WholeNumbers | None:
        """Look at numbers; None if they certainly are not keys."""
        if not _are_whole(values[:1000]):
            return None
        numbers = values.astype(np.float64)
        named = is_called_identifier(name)
        has_missing = len(numbers) > 0 and bool(np.isnan(numbers.min()))
        if has_missing and not named:
            return None
        numbers = numbers[~np.isnan(numbers)] if has_missing else numbers
        low, high = math.inf, -math.inf
        if len(numbers):
            low, high = float(numbers.min()), float(numbers.max())
        # So few different numbers are possible that many must be equal.
        if not named and 2 * (high - low + 1) < len(numbers):
            return None
        if not _are_whole(numbers):
            return None
        hashes = mix64((numbers + 0.0).view(np.uint64))
        return cls(len(numbers), has_missing, low, high, SmallestHashes.of(hashes))

    def merge(self, other: WholeNumbers) -> WholeNumbers:
        """Those of both."""
        return WholeNumbers(
            self.n_present + other.n_present,
            self.has_missing or other.has_missing,
            min(self.low, other.low),
            max(self.high, other.high),
            self.smallest.merge(other.smallest),
        )

    def are_keys(self, name: str) -> bool:
        """Whether they look like keys of the rows: numbers of customers, or of the rows."""
        sample = self.smallest
        if is_called_identifier(name):
            return self.n_present >= _FEWEST_VALUES and (
                len(sample.hashes) >= _NEARLY_ALL * sample.n_rows
            )
        all_different = sample.n_single == len(sample.hashes)
        close = self.high - self.low < _ROOM * self.n_present
        return self.n_present >= _FEWEST_NUMBERS and all_different and close


def _are_whole(values: npt.NDArray[Any]) -> bool:
    if values.dtype.kind in "iu":
        return True
    return bool(((np.rint(values) == values) | np.isnan(values)).all())
