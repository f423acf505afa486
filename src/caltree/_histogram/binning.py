"""Attributes in bins of one or two bytes: which bins there are, and the code of every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.trees import ONLY_MISSING
from .._inputs.arrays import Floats, Indices
from .._inputs.parameters import MOST_BINS

Codes: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

# Quantiles are those of so many rows, or of all if there are not twice as many.
SAMPLE_ROWS = 2**16


@dataclass(frozen=True)
class Bins:
    """The bins of all attributes."""

    n_bins: Indices
    """Of each attribute, or its categories; 0 for one that is not looked at.

    A missing value has this code.
    """
    numeric: npt.NDArray[np.uint8]
    """Whether each attribute is numeric."""
    cuts: tuple[Floats, ...]
    """Of numeric attributes: where a bin ends. Values up to the first cut have code 0."""
    fills: Indices
    """The code of what stands in for missing values, where these do not go their own way."""

    @classmethod
    def of(cls, cuts: Sequence[Floats | None], n_categories: Indices, fills: Floats) -> Bins:
        """Bins between cuts, or of categories where there are none.

        With more categories than two bytes can tell apart an attribute is not looked at.
        """
        numeric = np.array([known is not None for known in cuts], dtype=np.uint8)
        counts = [
            (int(count) if count <= MOST_BINS else 0) if known is None else 1 + len(known)
            for known, count in zip(cuts, n_categories, strict=True)
        ]
        found = tuple(np.empty(0) if known is None else known for known in cuts)
        codes = [
            int(fill) if known is None else int(np.searchsorted(known, fill))
            for known, fill in zip(cuts, fills, strict=True)
        ]
        n_bins = np.array(counts, dtype=np.int32)
        # An attribute that is not looked at has no bin but that of missing values.
        codes_there = np.where(n_bins > 0, codes, 0).astype(np.int32)
        return cls(n_bins, numeric, found, codes_there)

    def empty_codes(self, n_rows: int) -> Codes:
        """Room for the codes of some rows, a row each."""
        shape = (n_rows, len(self.n_bins))
        if int(self.n_bins.max()) < 256:
            return np.empty(shape, dtype=np.uint8)
        return np.empty(shape, dtype=np.uint16)

    def encode_column(self, attribute: int, values: npt.NDArray[Any], codes: Codes) -> None:
        """Write the codes of an attribute's values: numbers, or codes of categories, or NaN."""
        n_bins = int(self.n_bins[attribute])
        if self.numeric[attribute]:
            _core.put_into_bins(
                as_floats(values), self.cuts[attribute], n_bins, codes[:, attribute]
            )
        elif n_bins == 0:
            codes[:, attribute] = 0
        else:
            codes[:, attribute] = np.where(np.isnan(values), n_bins, values)

    def encode(self, matrix: Floats) -> Codes:
        """The codes of an encoded table."""
        codes = self.empty_codes(len(matrix))
        for attribute in range(matrix.shape[1]):
            self.encode_column(attribute, matrix[:, attribute], codes)
        return codes

    def threshold(self, attribute: int, cut: int) -> float:
        """The largest value in the bins up to `cut`; beyond the last are only missing values."""
        cuts = self.cuts[attribute]
        return float(cuts[cut]) if cut < len(cuts) else ONLY_MISSING


def as_floats(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers of four or eight bytes, without a copy where they are already."""
    if values.dtype in (np.float32, np.float64) and values.dtype.isnative:
        return values
    return values.astype(np.float64)


def few_values(values: npt.NDArray[Any], max_bins: int) -> Floats | None:
    """The different numbers, if each of them can have a bin."""
    return _core.distinct_values(as_floats(values), max_bins)


def quantile_cuts(sample: Floats, weights: Floats | None, max_bins: int) -> Floats:
    """Cuts between bins of about as many rows each."""
    present = ~np.isnan(sample)
    known = None if weights is None else weights[present]
    return _core.cuts(np.ascontiguousarray(sample[present]), known, max_bins)


def cuts_between(values: Floats) -> Floats:
    """Cuts between all of some different numbers."""
    return _core.cuts(values, None, max(2, len(values)))


def sample_step(n_rows: int) -> int:
    """Every row of a number that this divides is in the sample."""
    return max(1, n_rows // SAMPLE_ROWS)
