"""SplitMix64 (Steele, Lea and Flood, 2014), the package's one hash of whole numbers."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

INCREMENT = np.uint64(0x9E3779B97F4A7C15)
MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_STEPS = ((np.uint64(30), MULTIPLIER), (np.uint64(27), np.uint64(0x94D049BB133111EB)))
_LAST_SHIFT = np.uint64(31)


def mix64(values: Hashes) -> Hashes:
    """Mix the bits of each number, so that every one of them depends on all."""
    for shift, multiplier in _STEPS:
        values = (values ^ values >> shift) * multiplier
    return values ^ values >> _LAST_SHIFT
