"""SplitMix64 (Steele, Lea and Flood, 2014), and samples of rows by their smallest hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

INCREMENT = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_STEPS = ((np.uint64(30), MULTIPLIER), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)
SIZE = 256
"""The most hashes that are kept as a sample."""


def mix64(values: Hashes) -> Hashes:
    """Mix the bits of each number, so that every one of them depends on all."""
    for shift, multiplier in _STEPS:
        values = (values ^ values >> shift) * multiplier
    return values ^ values >> _LAST_SHIFT


@dataclass(frozen=True, eq=False)
class SmallestHashes:
    """The smallest hashes of some rows, with the number of rows of each; mergeable."""

    hashes: Hashes
    counts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes) -> SmallestHashes:
        """The smallest of the hashes of all rows."""
        enough = 4 * SIZE
        few = np.partition(hashes, enough)[:enough] if len(hashes) > enough else hashes
        if len(np.unique(few)) <= SIZE < len(hashes):
            few = hashes  # many rows have the same contents
        distinct, counts = np.unique(few, return_counts=True)
        return cls(distinct[:SIZE], counts[:SIZE].astype(np.int64))

    def merge(self, other: SmallestHashes) -> SmallestHashes:
        """The smallest of both."""
        hashes = np.concatenate([self.hashes, other.hashes])
        distinct, where = np.unique(hashes, return_inverse=True)
        counts = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(counts, where, np.concatenate([self.counts, other.counts]))
        return SmallestHashes(distinct[:SIZE], counts[:SIZE])

    @property
    def n_rows(self) -> int:
        """The number of rows with these hashes."""
        return int(self.counts.sum())

    @property
    def n_single(self) -> int:
        """The number of hashes that only one row has."""
        return int(np.count_nonzero(self.counts == 1))
