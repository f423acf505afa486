"""The making of a tree on chunks of rows, wherever these are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.attributes import Attributes
from .._training.averaging import SMALLEST_SIZE, Levels, level_sizes
from .._training.fit_tree import Judged, Made, Pruned, Runner, pruned_by_folds, selected
from .._training.settings import Recipe, shrunken_tree
from .chunk import Speakers
from .grower import GrowingTree, Limits, beginnings, grow
from .held_out import HeldOutSums
from .plan import Plan
from .pool import Pool

Floats: TypeAlias = npt.NDArray[np.float64]

# A node of fewer than one in so many rows is not split: with millions of rows, regions of
# thousands are small enough, and the work and the sums stay the same however many there are.
MOST_REGIONS = 4096
# A branch has at least this part of the rows that a node needs to be split.
_SMALLEST_BRANCH = 1 / 8


def make_tree(pool: Pool, plan: Plan, known: Attributes, recipe: Recipe) -> Made:
    """Grow, fit and prune a tree on all rows, as the folds advise."""
    tried = ("residual", "gain_ratio") if recipe.splits == "cv" else (recipe.splits,)
    judged = [_judged(pool.fresh(), plan, splits, recipe) for splits in tried]
    best = min(judged, key=lambda one: one.loss)
    selection, table, shares = selected(best, recipe)
    arrays = _core.finished_tree(*best.tree, best.pruned.alpha, best.sizes, shares)
    n_scores = len(plan.scale.centre)
    return Made(
        tree=shrunken_tree(known, arrays, plan.n_classes, n_scores, plan.has_offset),
        selection=selection,
        levels=table,
        splits=best.splits,
        boosting_iterations=None,
        alpha=best.pruned.alpha,
        iteration_rmse=None,
        pruning_path=best.pruned.path,
    )


def _judged(pool: Pool, plan: Plan, splits: str, recipe: Recipe) -> Judged:
    """A tree on all rows, and what those of the folds tell of it."""
    trees, limits, held_out = grow(pool, plan, partial(_limits, recipe, splits == "gain_ratio"))
    grown = [tree.in_core(plan, rows) for tree, rows in zip(trees, [0.0, *held_out], strict=True)]
    pruned = pruned_by_folds(grown, recipe, Runner(1))
    smallest = max(SMALLEST_SIZE, math.ceil(limits.min_samples_split))
    n_rows = trees[0].n_rows[0]
    sizes = level_sizes(n_rows, smallest) if recipe.path_averaging else np.array([math.inf])
    if not (recipe.do_no_harm or recipe.path_averaging):
        return Judged(grown[0], splits, pruned, sizes, None, pruned.loss)
    speakers = _speakers(trees, grown, pruned, sizes)
    has_raw = recipe.do_no_harm and plan.has_offset
    sums = HeldOutSums(pool, plan, speakers, has_raw=has_raw, n_levels=len(sizes) + 1)
    levels = Levels(sizes, sums, has_raw)
    loss = levels.loss(levels.whole_average()) if recipe.path_averaging else pruned.loss
    return Judged(grown[0], splits, pruned, sizes, levels, loss)


def _limits(recipe: Recipe, by_class: bool, n_rows: float) -> Limits:
    """How far to grow on so many rows."""
    least = max(recipe.min_samples_split, n_rows / MOST_REGIONS)
    leaf = max(recipe.min_samples_leaf, n_rows / MOST_REGIONS * _SMALLEST_BRANCH)
    return Limits(by_class, recipe.penalty, least, leaf, recipe.depth)


def _speakers(
    trees: list[GrowingTree],
    grown: Sequence[tuple[_core.Structure, _core.NodeModels]],
    pruned: Pruned,
    sizes: Floats,
) -> Speakers:
    """Who speaks for the rows of each node at each size, and in the pruned tree."""
    first = beginnings(trees)
    ancestors = []
    for tree, begin, (structure, models) in zip(trees, first[:-1], grown, strict=True):
        n_rows, attribute = np.array(tree.n_rows), np.array(tree.attribute)
        goes_on = np.empty((len(tree), len(sizes) + 1), dtype=bool)
        goes_on[:, :-1] = n_rows[:, np.newaxis] >= sizes
        goes_on[:, -1] = _core.inner_nodes(structure, models, pruned.alpha)
        goes_on &= attribute[:, np.newaxis] >= 0
        speaker = np.zeros(goes_on.shape, dtype=np.int32)
        for node, parent in enumerate(tree.parent):
            if parent >= 0:
                of_parent = speaker[parent]
                # Whoever is stopped on the way stays there.
                speaker[node] = np.where((of_parent == parent) & goes_on[parent], node, of_parent)
        ancestors.append(speaker + begin)
    parameters = np.array([row for tree in trees for row in tree.parameters])
    return Speakers(first, np.concatenate(ancestors).astype(np.int32), parameters)
