"""P-values adjusted for all tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

Adjustment: TypeAlias = Literal["holm", "benjamini-hochberg"]


def adjust(p_values: Sequence[float], method: Adjustment) -> list[float]:
    """Adjust p-values, by Holm (any false claim at all) or Benjamini-Hochberg (their share)."""
    found = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    n_tests = len(found)
    ranks = np.arange(1, n_tests + 1)
    if method == "holm":
        adjusted = np.maximum.accumulate(found[order] * (n_tests + 1 - ranks))
    else:
        scaled = found[order] * n_tests / ranks
        adjusted = np.minimum.accumulate(scaled[::-1])[::-1]
    result = np.empty(n_tests)
    result[order] = np.minimum(adjusted, 1.0)
    return result.tolist()
