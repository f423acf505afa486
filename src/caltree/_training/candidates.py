"""Candidates of a grown model: its predictions for rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .._fitted.selection import UNCALIBRATED
from .._inputs.arrays import Floats
from .._inputs.folds import Rows
from .dataset import Dataset
from .held_out import HeldOutRows


@dataclass(frozen=True)
class Candidates:
    """Several predictions of the same rows, by their names."""

    names: tuple[str, ...]
    probabilities: Sequence[Floats]
    """Of every candidate, rows x classes."""
    rows: Rows
    """The numbers of the rows."""

    def __len__(self) -> int:
        return len(self.names)

    def beside(self, others: Candidates) -> Candidates:
        """Append further candidates, for the rows that both predict."""
        rows, of_own, of_others = np.intersect1d(self.rows, others.rows, return_indices=True)
        own = [p[of_own] for p in self.probabilities]
        further = [p[of_others] for p in others.probabilities]
        return Candidates(self.names + others.names, own + further, rows)

    def held_out(self, dataset: Dataset, scoring: str, do_no_harm: bool) -> HeldOutRows:
        """Judge them by the labels; uncalibrated probabilities come first, if they may be left."""
        rows, known = self.rows, dataset.uncalibrated if do_no_harm else None
        found = HeldOutRows(
            names=self.names,
            probabilities=self.probabilities,
            labels=dataset.labels[rows],
            weights=None if dataset.weights is None else dataset.weights[rows],
            scoring=scoring,
            has_uncalibrated=False,
            groups=None if dataset.groups is None else dataset.groups[rows],
        )
        if known is None:
            return found
        return replace(
            found,
            names=(UNCALIBRATED, *self.names),
            probabilities=[known[rows], *self.probabilities],
            has_uncalibrated=True,
        )
