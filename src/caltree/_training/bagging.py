"""Forests: bagged trees, read at several sizes, averaged as their out-of-bag rows advise."""

from __future__ import annotations

from collections.abc import Callable
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
from .averaging import WEIGHT_UNITS, best_weights
from .candidates import Candidates
from .dataset import Dataset
from .do_no_harm import choose_weights
from .levels import Tree
from .rounding import shorten_numbers
from .settings import AVERAGING, GROWING, JUDGING, depth_limit

# The numbers of rows below which a node may be left whole; the first leaves the root.
SIZES = np.array([np.inf, 960.0, 240.0, 60.0, 16.0, 4.0])
# A node with fewer rows for each class says little about most of them, and has parameters for all.
_FEWEST_ROWS_A_CLASS = 1 / 8
# Every other tree may split on the scores, too.
_KINDS = ("", ", splits on scores too")
# Small regions take most of the time and of the nodes. A size of at least this weight is read in
# all trees of its kind, one of a smaller weight in fewer: what the choice of trees adds to the
# error falls with the square of the weight.
_FULL_WEIGHT = 0.2
# The first trees are grown in full. What they say about their out-of-bag rows tells how many of the
# others need to be; averaged over few trees, small regions look worse than they are, hence the
# factor.
_FEWEST_FULL = 20
_FACTOR_OF_FEW = 2.0
# A size is read in so many trees of a kind at least. Trees of so many rows, all together, are
# small enough to be grown in full, and read at all sizes.
_FEWEST_READ = 3
_SMALL_FOREST = 200_000

# A tree, the rows it did not see, and its predictions of them at each of the sizes it is grown for.
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
    """Trees, and their predictions for the rows they did not see, at each size."""

    dataset: Dataset
    trees: list[Tree]
    n_grown: npt.NDArray[np.int64]
    """How many trees of each kind are grown for each size: the first ones."""
    candidates: Candidates | None
    """The sizes of either kind; None if every row was seen by all trees of a kind."""

    @property
    def n_candidates(self) -> int:
        """Number of sizes of both kinds."""
        return self.n_grown.size

    def model(self, weights: Floats) -> FittedModel:
        """Average the trees by weights of the candidates; without any weight, roots are left.

        The weights are in whole units, which are dealt out to the trees.
        """
        by_kind = weights.reshape(self.n_grown.shape)
        n_of_kind, fewest = self.n_grown[:, :1], _count_small(self.dataset, _FEWEST_READ)
        n_read = np.minimum(count_trees(by_kind, n_of_kind, fewest), self.n_grown)
        units, further = np.divmod(np.rint(by_kind * WEIGHT_UNITS), n_read)
        sizes, finished = sizes_for(self.dataset), []
        for number, tree in enumerate(self.trees):
            kind, place = number % len(_KINDS), number // len(_KINDS)
            of_tree = np.where(place < n_read[kind], units[kind] + (place < further[kind]), 0.0)
            rows = _core.row_counts(tree[0])
            finished.append(_core.collapse_tree(*tree, rows, sizes, of_tree / WEIGHT_UNITS))
        return shorten_numbers(self.dataset.model(finished), self.dataset.scores)


def count_trees(
    weights: Floats, n_of_kind: npt.NDArray[np.int64], fewest: int
) -> npt.NDArray[np.int64]:
    """Return in how many trees of a kind a size of each weight is read."""
    wanted = np.ceil(n_of_kind * weights / _FULL_WEIGHT).astype(np.int64)
    return np.minimum(np.maximum(wanted, fewest), n_of_kind)


def _count_small(dataset: Dataset, fewest: int) -> int:
    """Return how many trees of a kind may be large, whatever that is good for."""
    return max(fewest, _SMALL_FOREST // (len(_KINDS) * len(dataset.labels)))


def grow_forest(
    dataset: Dataset, settings: ForestSettings, n_jobs: int | None, growing: progress.Stage
) -> GrownForest:
    """Grow trees on bootstrap samples, and collect their predictions for the other rows."""
    n_trees = len(settings.seeds)
    n_of_kind = np.array([(n_trees + 1) // 2, n_trees // 2])[:, np.newaxis]
    sums = _OutOfBagSums(dataset)
    trees: list[Tree] = []
    grow = _grower(dataset, settings)
    n_grown = np.repeat(n_of_kind, len(sizes_for(dataset)), axis=1)
    n_full = min(n_trees, len(_KINDS) * _count_small(dataset, _FEWEST_FULL // len(_KINDS)))
    for numbers in (range(n_full), range(n_full, n_trees)):
        if numbers and numbers[0] > 0:
            n_grown = _count_grown(sums.candidates(), dataset, settings, n_of_kind)
        n_sizes = [_count_sizes(n_grown, number) for number in numbers]
        items = list(zip(numbers, n_sizes, strict=True))
        # In their order, whichever is done first, so that sums do not depend on the threads.
        with closing(in_order(grow, items, count_threads(n_jobs))) as grown:
            for number, (structure, models, rows, predictions) in zip(numbers, grown, strict=True):
                sums.add(number % 2, rows, predictions)
                trees.append((structure, models))
                _tell(growing, len(trees), n_trees)
    return GrownForest(dataset, trees, n_grown, sums.candidates())


def _count_grown(
    candidates: Candidates | None,
    dataset: Dataset,
    settings: ForestSettings,
    n_of_kind: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Return how many trees of each kind to grow for each size, after the first ones."""
    if candidates is None:
        return np.repeat(n_of_kind, len(sizes_for(dataset)), axis=1)
    held_out = candidates.held_out(dataset, settings.scoring, settings.do_no_harm)
    weights = best_weights(held_out)[-len(candidates) :].reshape(len(_KINDS), -1)
    # What a tree is grown for it can also be read at with more rows.
    needed = weights.mean(axis=0)[::-1].cumsum()[::-1]
    fewest = _count_small(dataset, _FEWEST_FULL // len(_KINDS))
    n_grown = count_trees(_FACTOR_OF_FEW * needed, n_of_kind, fewest)
    # Every tree has a root, even where nothing is to be calibrated.
    n_grown[:, :1] = n_of_kind
    return n_grown


def _count_sizes(n_grown: npt.NDArray[np.int64], number: int) -> int:
    """Return for how many sizes a tree is grown."""
    return int((n_grown[number % len(_KINDS)] > number // len(_KINDS)).sum())


def _tell(growing: progress.Stage, n_grown: int, n_trees: int) -> None:
    """Tell of every tree, in words of every tenth of them."""
    growing.reach(n_grown / n_trees)
    if n_grown * 10 // n_trees > (n_grown - 1) * 10 // n_trees:
        growing.say(f"grew {n_grown} of {n_trees} trees")


def _grower(dataset: Dataset, settings: ForestSettings) -> Callable[[tuple[int, int]], _Bagged]:
    """Return what grows a tree by its number, for so many sizes."""
    training = _core.ShrunkenTraining(dataset.core, dataset.offset, settings.max_bins, False)
    sizes = sizes_for(dataset)

    def grow(numbered: tuple[int, int]) -> _Bagged:
        number, n_sizes = numbered
        return training.bagged(
            int(settings.seeds[number]),
            dataset.n_split_scores if number % 2 == 1 else 0,
            settings.l2_regularization,
            sizes[:n_sizes],
            settings.min_samples_leaf,
            depth_limit(settings.max_depth),
            settings.max_features[number % 2],
            dataset.groups,
        )

    return grow


class _OutOfBagSums:
    """Adds up what trees predict for the rows they did not see."""

    def __init__(self, dataset: Dataset) -> None:
        n_rows = len(dataset.labels)
        self._sizes = sizes_for(dataset)
        self._sums = np.zeros((len(_KINDS), len(self._sizes), n_rows, dataset.n_states))
        self._counts = np.zeros((len(_KINDS), len(self._sizes), n_rows))

    def add(self, kind: int, rows: npt.NDArray[np.uint32], predictions: Floats) -> None:
        """Add what a tree predicts for its out-of-bag rows, at each size it is grown for."""
        for size, of_size in enumerate(predictions):
            self._sums[kind, size, rows] += of_size
            self._counts[kind, size, rows] += 1

    def candidates(self) -> Candidates | None:
        """Average the predictions of rows that trees of each kind and size did not see, if any."""
        seen = np.flatnonzero((self._counts > 0).all(axis=(0, 1)))
        if len(seen) == 0:
            return None
        names, found = [], []
        for kind, suffix in enumerate(_KINDS):
            for size, rows in enumerate(self._sizes):
                mean = self._sums[kind, size][seen] / self._counts[kind, size][seen, np.newaxis]
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
