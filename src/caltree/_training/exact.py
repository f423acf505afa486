"""The exact engine: every row is looked at one by one, in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _core
from .._fitted.model import FittedModel
from .._fitted.selection import UNCALIBRATED
from .._inputs.arrays import Floats
from .._inputs.folds import Fold, Rows
from .._running import progress
from .._running.threads import count_threads, run_in_threads
from .dataset import Dataset
from .engine import trees_grown
from .held_out import HeldOutRows
from .levels import Levels, Tree
from .settings import GROWING, Growth

_NO_ROWS: Rows = np.empty(0, dtype=np.uint32)


class ExactEngine:
    """Grows trees of shrunken node models; `folds` are empty if nothing is chosen."""

    def __init__(
        self,
        dataset: Dataset,
        folds: Sequence[Fold],
        growth: Growth,
        scoring: str,
        n_jobs: int | None,
    ) -> None:
        self.dataset = dataset
        self.folds = folds
        self._growth = growth
        self._scoring = scoring
        self._n_jobs = n_jobs

    def model(self, tree: dict[str, Any]) -> FittedModel:
        """Make a fitted model of a tree that the core has finished."""
        return self.dataset.model([tree])

    def grow(self) -> TreesOnRows:
        """Grow a tree on all rows, and one for each fold."""
        dataset, growth = self.dataset, self._growth
        training = _core.ShrunkenTraining(
            dataset.core, dataset.offset, growth.max_bins, dataset.sees_all_scores
        )

        parts = all_and_folds(len(dataset.labels), self.folds)
        total = dataset.weight_of(parts[0][0])

        def grow(part: Fold) -> Tree:
            return training.grow(
                *part,
                growth.l2_regularization,
                growth.min_samples_split,
                growth.min_samples_leaf,
                growth.depth,
                self._scoring == "log_loss",
                growth.monotone,
                dataset.weight_of(part[0]) / total,
            )

        with progress.stage(GROWING) as growing:
            trees = run_in_threads(grow, parts, count_threads(self._n_jobs), growing.reach)
            growing.say(trees_grown([structure for structure, _ in trees]))
        whole, *of_folds = trees
        return TreesOnRows(whole, of_folds, dataset, self.folds, self._scoring)


def all_and_folds(n_rows: int, folds: Sequence[Fold]) -> list[Fold]:
    """Return the rows to train on and to hold out: first all and none, then those of the folds."""
    return [(np.arange(n_rows, dtype=np.uint32), _NO_ROWS), *folds]


@dataclass(frozen=True)
class TreesOnRows:
    """A tree on all rows, and one for each fold."""

    whole: Tree
    of_folds: Sequence[Tree]
    dataset: Dataset
    folds: Sequence[Fold]
    scoring: str

    def held_out(self, levels: Levels, *, uncalibrated: bool) -> HeldOutRows:
        """Return predictions of the held-out rows by the trees of the folds, at some levels."""
        data = self.dataset
        rows = np.concatenate([test for _, test in self.folds])
        known = data.uncalibrated if uncalibrated else None
        has_uncalibrated = known is not None
        names = (UNCALIBRATED, *levels.names) if has_uncalibrated else levels.names
        of_levels = [np.empty((len(rows), data.n_classes)) for _ in levels.names]
        begin = 0
        for tree, (_, test) in zip(self.of_folds, self.folds, strict=True):
            predict = _predictor_of(data, test)
            for only, probabilities in zip(np.eye(len(levels)), of_levels, strict=True):
                finished = levels.collapse(tree, only)
                probabilities[begin : begin + len(test)] = predict(data.model([finished]))
            begin += len(test)
        return HeldOutRows(
            names=names,
            probabilities=of_levels if known is None else [known[rows], *of_levels],
            labels=data.labels[rows],
            weights=None if data.weights is None else data.weights[rows],
            scoring=self.scoring,
            has_uncalibrated=has_uncalibrated,
            groups=None if data.groups is None else data.groups[rows],
        )


def _predictor_of(data: Dataset, rows: Rows) -> Callable[[FittedModel], Floats]:
    matrix = data.matrix[rows]
    scores = np.asfortranarray(data.scores[rows])
    offset = None if data.offset is None else np.asfortranarray(data.offset[rows])
    return lambda model: model.probabilities(matrix, scores, offset)
