"""Fingerprints of training rows: small enough to store, and they recognize the rows.

A fingerprint holds the smallest hashes of the rows' contents. Of any other rows, those with hashes
as small are a fair sample, and each of them is in the fingerprint if and only if it was a training
row (or has the contents of one).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import bdtrc, betaincinv

from .._inputs.arrays import Floats
from .._inputs.hashing import INCREMENT, MULTIPLIER, SIZE, Hashes, SmallestHashes, mix64
from .._inputs.scores import ScoreKind
from .._inputs.tables import Categories, Column, Table, read_table

_LARGEST = np.uint64(2**64 - 1)
_LARGEST_COUNT = 2**53
_DIGITS = 16
_MISSING = np.uint64(0x7FF8000000000000)
_HALF = np.uint64(32)
# Rows count as seen if as many matches have a smaller probability by chance than this, with the
# chance of a match at its upper confidence bound, and are more than this share of the rows.
_UNLIKELY = 1e-3
_CONFIDENCE = 0.99
_RELEVANT = 0.05
# Where fresh rows match this often by chance, their contents tell little about them.
_OFTEN = 0.5
# If none of as many rows matches, at most a tenth of all of them can (with 95 % confidence).
_ENOUGH = 30


@dataclass(frozen=True)
class Overlap:
    """How many of some rows are training rows, by a fingerprint of these."""

    status: str
    """Whether a relevant share of them are training rows: "seen", "not seen" or "cannot tell".

    One cannot tell if they are too few or their contents say too little.
    """
    checked: int
    """Rows with hashes small enough to look up."""
    found: int
    """Those of them that have the contents of a training row."""
    by_chance: float | None
    """The share of fresh rows that would have the contents of a training row by chance.

    None if there is nothing to compare with.
    """
    share: float
    """The estimated share of training rows."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; the share is None where one cannot tell."""
        found = asdict(self)
        return found if self.status != "cannot tell" else {**found, "share": None}


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """The smallest hashes of the contents of rows."""

    hashes: Hashes
    """The 256 smallest, or all there are; distinct and sorted."""
    rows: int
    """The number of rows with these hashes."""
    single: int
    """The number of hashes that only one row has."""

    @classmethod
    def of(cls, hashes: Hashes) -> Fingerprint:
        """The fingerprint of rows, given the hash of each."""
        return cls.of_smallest(SmallestHashes.of(hashes))

    @classmethod
    def empty(cls) -> Fingerprint:
        """The fingerprint of no rows, for those who do not want to store any."""
        return cls(np.empty(0, dtype=np.uint64), 0, 0)

    @classmethod
    def of_smallest(cls, smallest: SmallestHashes) -> Fingerprint:
        """The fingerprint of rows, given their smallest hashes."""
        return cls(smallest.hashes, smallest.n_rows, smallest.n_single)

    @property
    def largest(self) -> np.uint64:
        """The bound up to which all hashes of the rows are in the fingerprint."""
        return _LARGEST if len(self.hashes) < SIZE else np.uint64(self.hashes[-1])

    def overlap(self, hashes: Hashes) -> Overlap:
        """Look other rows up, given the hash of each."""
        if not len(self.hashes):
            return Overlap("cannot tell", 0, 0, None, 0.0)
        sample, counts = np.unique(hashes[hashes <= self.largest], return_counts=True)
        known = np.isin(sample, self.hashes)
        checked, found = int(counts.sum()), int(counts[known].sum())
        # The chance that a fresh row has the contents of a training row is one less the share of
        # training rows whose contents no other has (Good and Turing).
        repeated = self.rows - self.single
        by_chance = (repeated + 1) / (self.rows + 2)
        at_most = betaincinv(repeated + 1, max(self.single, 0.5), _CONFIDENCE)
        share = max(0.0, (found / max(checked, 1) - by_chance) / (1.0 - by_chance))
        # Rows with the same contents are one piece of evidence.
        pieces, of_them = len(sample), round(len(sample) * found / max(checked, 1))
        unlikely = of_them > 0 and bdtrc(of_them - 1, pieces, at_most) < _UNLIKELY
        if unlikely and share > _RELEVANT:
            status = "seen"
        elif pieces < _ENOUGH or by_chance > _OFTEN:
            status = "cannot tell"
        else:
            status = "not seen"
        return Overlap(status, checked, found, by_chance, share)

    def to_dict(self) -> dict[str, Any] | None:
        """Return the fingerprint as a string and numbers; 16 digits per hash; None if empty."""
        if not len(self.hashes):
            return None
        digits = "".join(f"{value:0{_DIGITS}x}" for value in self.hashes.tolist())
        return {"hashes": digits, "rows": self.rows, "single": self.single}

    @classmethod
    def from_dict(cls, stored: Any) -> Fingerprint:
        """Rebuild a fingerprint from `to_dict`; ValueError on anything malformed."""
        if stored is None:
            return cls.empty()
        if not isinstance(stored, dict) or set(stored) != {"hashes", "rows", "single"}:
            raise ValueError("fingerprint of a stored calibrator must have hashes, rows and single")
        digits, rows, single = stored["hashes"], stored["rows"], stored["single"]
        if not isinstance(digits, str) or not set(digits) <= set("0123456789abcdef"):
            raise ValueError("hashes of a stored fingerprint must be hexadecimal")
        if len(digits) % _DIGITS or not 0 < len(digits) <= SIZE * _DIGITS:
            raise ValueError(
                f"a stored fingerprint must have 1 to {SIZE} hashes, {_DIGITS} digits each"
            )
        parts = [digits[i : i + _DIGITS] for i in range(0, len(digits), _DIGITS)]
        hashes = np.array([int(part, 16) for part in parts], dtype=np.uint64)
        if not (hashes[:-1] < hashes[1:]).all():
            raise ValueError("hashes of a stored fingerprint must be distinct and sorted")
        if type(rows) is not int or not len(hashes) <= rows <= _LARGEST_COUNT:
            raise ValueError("rows of a stored fingerprint must be at least as many as its hashes")
        # Whatever is not single has two rows at least.
        if type(single) is not int or not 0 <= 2 * len(hashes) - single <= rows or single < 0:
            raise ValueError("single of a stored fingerprint does not match its rows")
        if single > len(hashes) or (single == len(hashes)) != (rows == len(hashes)):
            raise ValueError("single of a stored fingerprint does not match its rows")
        return cls(hashes, rows, single)


def calibration_hashes(
    matrix: Floats | None, labels: npt.NDArray[Any], scores: Floats, kind: ScoreKind
) -> Hashes:
    """Hash the rows that a calibrator is fitted to; without `matrix`, it ignores attributes."""
    if scores.shape[1] == kind.n_classes == 2 and kind.score_type == "probability":
        scores = scores[:, 1:]  # so that one column or both give the same hash
    with np.errstate(over="ignore"):
        # Another batch or machine may compute other last digits.
        rounded = scores.astype(np.float32).astype(np.float64)
    attributes = () if matrix is None else (_bits(column) for column in matrix.T)
    # One column at a time, so that no more of them are in memory.
    return _row_hashes(chain([labels.astype(np.uint64)], map(_bits, rounded.T), attributes))


def table_hashes(X: Any, labels: npt.NDArray[Any]) -> Hashes | None:
    """Hash the rows of any table, or texts, and their class indices; None if it cannot be read."""
    try:
        columns = list(_contents(X))
    except (TypeError, ValueError):
        return None
    if not columns or len(columns[0]) != len(labels):
        return None
    return _row_hashes([labels.astype(np.uint64), *columns])


def _row_hashes(columns: Iterable[Hashes]) -> Hashes:
    """Mix the columns of each row into one number, the same on every machine."""
    state: Hashes = np.array(INCREMENT)
    for column in columns:
        # Every step can be undone, and carries the high bits, in which floats differ, down.
        state = (column ^ state) * MULTIPLIER
        state ^= state >> _HALF
    return mix64(state)


def _bits(column: npt.NDArray[Any]) -> Hashes:
    """The bits of numbers; equal numbers have equal bits, and so have missing ones."""
    numbers = column.astype(np.float64) + 0.0  # one zero of 0.0 and -0.0
    bits = numbers.view(np.uint64)
    bits[np.isnan(numbers)] = _MISSING
    return bits


def _contents(X: Any) -> Iterator[Hashes]:
    """The columns of a table as numbers that depend on the values alone."""
    if isinstance(X, list | tuple) and all(isinstance(value, str) for value in X):
        X = np.array(X, dtype=object)
    elif not isinstance(X, np.ndarray) and len(getattr(X, "shape", ())) == 1:
        X = np.asarray(X, dtype=object)  # a series of texts
    if isinstance(X, np.ndarray) and X.ndim == 1:
        X = X[:, np.newaxis]
    if hasattr(X, "tocsr"):
        yield _sparse_contents(X.tocsr())
        return
    table: Table = read_table(X, "X")
    for j in range(table.shape[1]):
        column: Column = table.column(j, nominal=False)
        if column.categories is None:
            yield _bits(column.values)
        else:
            yield np.append(_category_bits(column.categories), _MISSING)[column.values]


def _sparse_contents(X: Any) -> Hashes:
    """The rows of a sparse matrix as numbers, from its nonzero entries alone."""
    where = np.flatnonzero(X.data)
    parts = _row_hashes([X.indices[where].astype(np.uint64), _bits(X.data[where])])
    so_far = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(parts)])
    borders = so_far[np.searchsorted(where, X.indptr)]
    return np.asarray(borders[1:] - borders[:-1])


def _category_bits(categories: Categories) -> Hashes:
    texts = [category for category in categories if isinstance(category, str)]
    if len(texts) < len(categories):
        return _bits(np.array([float(category) for category in categories]))
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8) for text in texts
    )
    return np.array([int.from_bytes(each.digest(), "little") for each in digests], dtype=np.uint64)
