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
from .._fitted.selection import GLOBAL, Selection
from .._inputs.arrays import Floats
from .._running import progress
from .._running.threads import count_threads, in_order
from .candidates import Candidates
from .dataset import Dataset
from .do_no_harm import choose_weights
from .levels import Tree
from .settings import AVERAGING, GROWING, JUDGING, depth_limit

# The numbers of rows below which a node may be left whole; the first leaves the root.
SIZES = np.array([np.inf, 960.0, 240.0, 60.0, 16.0, 4.0])
# A node with fewer rows for each class says little about most of them, and has parameters for all.
_FEWEST_ROWS_A_CLASS = 1 / 8
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


def sizes_for(dataset: Dataset) -> Floats:
    """Return the sizes at which trees are read: none that is small for so many classes.

    The parameters of all nodes of a tree are then in proportion to its rows, not to these times the
    classes.
    """
    smallest = _FEWEST_ROWS_A_CLASS * dataset.n_classes
    return SIZES[smallest <= SIZES]


def fit_forest(dataset: Dataset, settings: ForestSettings, n_jobs: int | None) -> FittedForest:
    """Grow trees on bootstrap samples, and weight their sizes by their out-of-bag rows.

    The samples are of rows, or of whole groups if there are any.
    """
    with progress.stage(GROWING) as growing:
        grown = grow_forest(dataset, settings, n_jobs, growing)
    with progress.stage(JUDGING + AVERAGING) as averaging:
        weights, selection = _choose_weights(grown.candidates, dataset, settings)
        if selection is not None:
            averaging.say(f"averaged {weights.size} sizes of trees (chosen: {selection.chosen})")
    return FittedForest(grown.model(weights), selection)


@dataclass(frozen=True)
class GrownForest:
    """Trees, and what they say about the rows they did not see, at each size."""

    dataset: Dataset
    trees: list[Tree]
    candidates: Candidates | None
    """The sizes of either kind; None if every row was seen by all trees of a kind."""

    @property
    def n_candidates(self) -> int:
        """Number of sizes of both kinds."""
        return len(_KINDS) * len(sizes_for(self.dataset))

    def model(self, weights: Floats) -> FittedModel:
        """Average the trees by weights of the candidates; without any weight, roots are left."""
        n_trees = np.array([(len(self.trees) + 1) // 2, len(self.trees) // 2])
        sizes = sizes_for(self.dataset)
        per_tree = weights.reshape(len(_KINDS), len(sizes)) / np.maximum(n_trees, 1)[:, np.newaxis]
        finished = [
            _core.collapse_tree(*tree, _core.row_counts(tree[0]), sizes, per_tree[number % 2])
            for number, tree in enumerate(self.trees)
        ]
        return self.dataset.model(finished)


def grow_forest(
    dataset: Dataset, settings: ForestSettings, n_jobs: int | None, growing: progress.Stage
) -> GrownForest:
    """Grow trees on bootstrap samples, and gather what they say about the other rows."""
    sums = _OutOfBagSums(dataset)
    trees: list[Tree] = []
    # In their order, whichever is done first, so that sums do not depend on the threads.
    with closing(_grow_trees(dataset, settings, n_jobs)) as grown:
        for number, (structure, models, rows, predictions) in enumerate(grown):
            sums.add(number % 2, rows, predictions)
            trees.append((structure, models))
            _tell(growing, len(trees), len(settings.seeds))
    return GrownForest(dataset, trees, sums.candidates())


def _tell(growing: progress.Stage, n_grown: int, n_trees: int) -> None:
    """Tell of every tree, in words of every tenth of them."""
    growing.reach(n_grown / n_trees)
    if n_grown * 10 // n_trees > (n_grown - 1) * 10 // n_trees:
        growing.say(f"grew {n_grown} of {n_trees} trees")


def _grow_trees(
    dataset: Dataset, settings: ForestSettings, n_jobs: int | None
) -> Generator[_Bagged]:
    training = _core.ShrunkenTraining(dataset.core, dataset.offset, settings.max_bins, False)
    sizes = sizes_for(dataset)

    def grow(numbered: tuple[int, int]) -> _Bagged:
        number, seed = numbered
        return training.bagged(
            int(seed),
            dataset.n_split_scores if number % 2 == 1 else 0,
            settings.l2_regularization,
            sizes,
            settings.min_samples_leaf,
            depth_limit(settings.max_depth),
            settings.max_features[number % 2],
            dataset.groups,
        )

    return in_order(grow, enumerate(settings.seeds), count_threads(n_jobs))


class _OutOfBagSums:
    """Adds up what trees predict for the rows they did not see."""

    def __init__(self, dataset: Dataset) -> None:
        n_rows = len(dataset.labels)
        self._sizes = sizes_for(dataset)
        self._sums = np.zeros((len(_KINDS), len(self._sizes), n_rows, dataset.n_states))
        self._counts = np.zeros((len(_KINDS), n_rows))

    def add(self, kind: int, rows: npt.NDArray[np.uint32], predictions: Floats) -> None:
        """Add what a tree predicts for its out-of-bag rows, at each size."""
        self._sums[kind][:, rows] += predictions
        self._counts[kind, rows] += 1

    def candidates(self) -> Candidates | None:
        """Average the predictions of rows that some tree of each kind did not see, if any."""
        seen = np.flatnonzero((self._counts > 0).all(axis=0))
        if len(seen) == 0:
            return None
        names, found = [], []
        for kind, suffix in enumerate(_KINDS):
            for size, rows in enumerate(self._sizes):
                mean = self._sums[kind, size][seen] / self._counts[kind][seen][:, np.newaxis]
                names.append(_size_name(rows) + suffix)
                found.append(np.hstack([1.0 - mean, mean]) if mean.shape[1] == 1 else mean)
        return Candidates(tuple(names), found, seen.astype(np.uint32))


def _choose_weights(
    candidates: Candidates | None, dataset: Dataset, settings: ForestSettings
) -> tuple[Floats, Selection | None]:
    """Return the weights of the sizes, and why."""
    if candidates is None:
        # Too few rows to judge by: uncalibrated if that is allowed, otherwise the roots.
        roots = np.zeros((len(_KINDS), len(sizes_for(dataset))))
        if not settings.do_no_harm or dataset.uncalibrated is None:
            roots[:, 0] = 1.0 / len(_KINDS)
        return roots.ravel(), None
    held_out = candidates.held_out(dataset, settings.scoring, settings.do_no_harm)
    chosen, selection = choose_weights(held_out)
    return chosen[-len(candidates) :], selection


def _size_name(size: float) -> str:
    """Return the name of trees that are read with nodes of fewer rows left whole."""
    return GLOBAL if size == np.inf else f"regions of {size:g} rows"
