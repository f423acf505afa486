"""Forests: bagged trees, read at several sizes, averaged as their out-of-bag rows advise."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.model import FittedModel
from .._fitted.selection import GLOBAL, UNCALIBRATED, Selection
from .._inputs.arrays import Floats
from .._running import progress
from .._running.threads import count_threads, in_order
from .averaging import best_weights
from .dataset import Dataset
from .do_no_harm import leave_uncalibrated_if_in_doubt, make_selection
from .held_out import HeldOutRows
from .levels import Tree
from .settings import AVERAGING, GROWING, JUDGING, depth_limit

# The numbers of rows below which a node may be left whole; the first leaves the root.
SIZES = np.array([np.inf, 960.0, 240.0, 60.0, 16.0, 4.0])
# Every other tree may split on the scores, too.
_KINDS = ("", ", splits on scores too")

# A tree, the rows it did not see, and its predictions of them at each size.
_Bagged: TypeAlias = tuple[_core.Structure, _core.FittedNodes, npt.NDArray[np.uint32], Floats]


@dataclass(frozen=True)
class ForestSettings:
    """How a forest is grown and averaged; see `CalibrationForest`."""

    seeds: npt.NDArray[np.int64]
    """The seed of every tree."""
    max_features: tuple[int, int]
    """How many columns a split may choose from: of attributes, and of attributes and scores."""
    l2_regularization: float
    min_samples_leaf: float
    max_depth: int | None
    max_bins: int
    scoring: str
    do_no_harm: bool


@dataclass(frozen=True)
class FittedForest:
    """A fitted forest, and what was chosen on the way."""

    model: FittedModel
    selection: Selection | None
    """None if every row was seen by all trees of a kind, so that nothing could be chosen."""


def fit_forest(dataset: Dataset, settings: ForestSettings, n_jobs: int | None) -> FittedForest:
    """Grow trees on bootstrap samples, and weight their sizes by their out-of-bag rows.

    The samples are of rows, or of whole groups if there are any.
    """
    sums = _OutOfBagSums(dataset)
    trees: list[Tree] = []
    # In their order, whichever is done first, so that sums do not depend on the threads.
    with (
        progress.stage(GROWING) as growing,
        closing(_grow_trees(dataset, settings, n_jobs)) as grown,
    ):
        for number, (structure, models, rows, predictions) in enumerate(grown):
            sums.add(number % 2, rows, predictions)
            trees.append((structure, models))
            _tell(growing, len(trees), len(settings.seeds))
    with progress.stage(JUDGING + AVERAGING) as averaging:
        held_out = sums.held_out(settings)
        weights, selection = _choose_weights(held_out, dataset, settings)
        if selection is not None:
            averaging.say(f"averaged {weights.size} sizes of trees (chosen: {selection.chosen})")
    n_trees = np.array([(len(trees) + 1) // 2, len(trees) // 2])
    per_tree = weights / np.maximum(n_trees, 1)[:, np.newaxis]
    finished = [
        _core.collapse_tree(*tree, _core.row_counts(tree[0]), SIZES, per_tree[number % 2])
        for number, tree in enumerate(trees)
    ]
    return FittedForest(dataset.model(finished), selection)


def _tell(growing: progress.Stage, n_grown: int, n_trees: int) -> None:
    """Tell of every tree, in words of every tenth of them."""
    growing.reach(n_grown / n_trees)
    if n_grown * 10 // n_trees > (n_grown - 1) * 10 // n_trees:
        growing.say(f"grew {n_grown} of {n_trees} trees")


def _grow_trees(
    dataset: Dataset, settings: ForestSettings, n_jobs: int | None
) -> Generator[_Bagged]:
    training = _core.ShrunkenTraining(dataset.core, dataset.offset, settings.max_bins, False)

    def grow(numbered: tuple[int, int]) -> _Bagged:
        number, seed = numbered
        return training.bagged(
            int(seed),
            number % 2 == 1,
            settings.l2_regularization,
            SIZES,
            settings.min_samples_leaf,
            depth_limit(settings.max_depth),
            settings.max_features[number % 2],
            dataset.groups,
        )

    return in_order(grow, enumerate(settings.seeds), count_threads(n_jobs))


class _OutOfBagSums:
    """Adds up what trees predict for the rows they did not see."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        n_rows = len(dataset.labels)
        self._sums = np.zeros((len(_KINDS), len(SIZES), n_rows, dataset.n_states))
        self._counts = np.zeros((len(_KINDS), n_rows))

    def add(self, kind: int, rows: npt.NDArray[np.uint32], predictions: Floats) -> None:
        """Add what a tree predicts for its out-of-bag rows, at each size."""
        self._sums[kind][:, rows] += predictions
        self._counts[kind, rows] += 1

    def held_out(self, settings: ForestSettings) -> HeldOutRows | None:
        """Average the predictions of rows that some tree of each kind did not see, if any."""
        seen = np.asarray((self._counts > 0).all(axis=0))
        if not seen.any():
            return None
        data = self._dataset
        names, found = [], []
        known = data.uncalibrated if settings.do_no_harm else None
        if known is not None:
            names.append(UNCALIBRATED)
            found.append(known[seen])
        for kind, suffix in enumerate(_KINDS):
            for size, rows in enumerate(SIZES):
                mean = self._sums[kind, size][seen] / self._counts[kind][seen][:, np.newaxis]
                names.append(_size_name(rows) + suffix)
                found.append(np.hstack([1.0 - mean, mean]) if mean.shape[1] == 1 else mean)
        return HeldOutRows(
            names=tuple(names),
            probabilities=np.array(found),
            labels=data.labels[seen],
            weights=None if data.weights is None else data.weights[seen],
            scoring=settings.scoring,
            has_uncalibrated=known is not None,
            groups=None if data.groups is None else data.groups[seen],
        )


def _choose_weights(
    held_out: HeldOutRows | None, dataset: Dataset, settings: ForestSettings
) -> tuple[Floats, Selection | None]:
    """Return the weights of the sizes, kinds x sizes, and why."""
    if held_out is None:
        # Too few rows to judge by: uncalibrated if that is allowed, otherwise the roots.
        weights = np.zeros((len(_KINDS), len(SIZES)))
        if not settings.do_no_harm or dataset.uncalibrated is None:
            weights[:, 0] = 1.0 / len(_KINDS)
        return weights, None
    best = best_weights(held_out)
    chosen = best
    if held_out.has_uncalibrated:
        chosen = leave_uncalibrated_if_in_doubt(held_out, [best])
    of_trees = chosen[int(held_out.has_uncalibrated) :]
    selection = make_selection(held_out, best, chosen)
    return of_trees.reshape(len(_KINDS), len(SIZES)), selection


def _size_name(size: float) -> str:
    """Return the name of trees that are read with nodes of fewer rows left whole."""
    return GLOBAL if size == np.inf else f"regions of {size:g} rows"
