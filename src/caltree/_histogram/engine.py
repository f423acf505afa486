"""The histogram engine: trees grow on sums over chunks of rows, wherever these are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._fitted.model import FittedModel
from .._fitted.selection import UNCALIBRATED
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .._running import progress
from .._training.engine import trees_grown
from .._training.levels import Levels, Tree
from .._training.settings import GROWING, Growth
from .chunk import Plan
from .grower import GrowingTree, first_nodes, grow_trees
from .held_out import HeldOutSums, PredictHeldOut
from .pool import Pool
from .queries import FoldWeights, Limits, Nodes, StartAtRoots

# A node of fewer than one in so many rows is not split: with millions of rows, regions of
# thousands are small enough, and the work and the sums stay the same however many there are. Of a
# tree that is cut back, so many for each leaf that it may keep will do.
MOST_REGIONS, _REGIONS_A_LEAF = 4096, 16
# A branch has at least this part of the rows that a node needs to be split.
_SMALLEST_BRANCH = 1 / 8


class HistogramEngine:
    """Grows trees of shrunken node models level by level, on histograms."""

    def __init__(
        self, pool: Pool[None], plan: Plan, attributes: Attributes, growth: Growth
    ) -> None:
        self._pool = pool.advance(StartAtRoots())
        self._plan = plan
        self._attributes = attributes
        self._growth = growth

    @cached_property
    def _weights(self) -> Floats:
        """The weight of the rows that each fold holds out, and of all rows."""
        weights = self._pool.total(FoldWeights())
        if len(weights) > 1 and not weights[:-1].any():
            raise ValueError(
                "cv holds out only rows whose sample_weight is negligible beside the other "
                "rows; choose other folds or weights"
            )
        return weights

    def model(self, tree: dict[str, Any]) -> FittedModel:
        """Make a fitted model of a tree that the core has finished."""
        return FittedModel.of_trees(
            self._attributes,
            [tree],
            n_classes=self._plan.n_classes,
            n_scores=len(self._plan.scale.centre),
            corrects_scores=self._plan.has_offset,
        )

    def grow(self) -> TreesOnHistograms:
        """Grow a tree on all rows, and one for each fold."""
        plan = self._plan
        with progress.stage(GROWING) as growing:
            trees, pool = grow_trees(self._pool, plan, self._limits(), growing.reach)
            growing.say(trees_grown(trees))
        held_out = [0.0, *self._weights[:-1]]
        in_core = [tree.in_core(plan, w) for tree, w in zip(trees, held_out, strict=True)]
        return TreesOnHistograms(in_core, trees, pool, plan)

    def _limits(self) -> Limits:
        growth, most = self._growth, MOST_REGIONS
        if growth.max_leaf_nodes is not None:
            most = min(most, _REGIONS_A_LEAF * growth.max_leaf_nodes)
        region = float(self._weights[-1]) / most
        return Limits(
            penalty=growth.l2_regularization,
            monotone=growth.monotone,
            min_samples_split=max(growth.min_samples_split, region),
            min_samples_leaf=max(growth.min_samples_leaf, region * _SMALLEST_BRANCH),
            max_depth=growth.depth,
        )


@dataclass(frozen=True)
class TreesOnHistograms:
    """A tree on all rows, and one for each fold."""

    in_core: Sequence[Tree]
    trees: list[GrowingTree]
    pool: Pool[Nodes]
    plan: Plan

    @property
    def whole(self) -> Tree:
        """The tree on all rows."""
        return self.in_core[0]

    @property
    def of_folds(self) -> Sequence[Tree]:
        """The trees on the rows that each fold does not hold out."""
        return self.in_core[1:]

    def held_out(self, levels: Levels, *, uncalibrated: bool) -> HeldOutSums:
        """Return predictions of the held-out rows by the trees of the folds, at some levels."""
        first = first_nodes(self.trees)
        has_uncalibrated = uncalibrated and self.plan.has_offset
        pool = self.pool.advance(
            PredictHeldOut(
                first=first,
                ancestor=self._ancestors(first, levels),
                parameters=np.array([row for tree in self.trees for row in tree.parameters]),
                uncalibrated=has_uncalibrated,
            )
        )
        names = (UNCALIBRATED, *levels.names) if has_uncalibrated else levels.names
        return HeldOutSums(pool, self.plan, names, has_uncalibrated=has_uncalibrated)

    def _ancestors(self, first: Indices, levels: Levels) -> Indices:
        """Return the node that predicts for each node, at each level."""
        found = []
        for tree, begin, in_core in zip(self.trees, first[:-1], self.in_core, strict=True):
            is_split = levels.rank(in_core)[:, np.newaxis] >= levels.lowest
            is_split &= np.array(tree.attribute)[:, np.newaxis] >= 0
            ancestor = np.zeros(is_split.shape, dtype=np.int32)
            depth, parents = np.array(tree.depth), np.array(tree.parent)
            for level in range(1, int(depth.max()) + 1):
                nodes = np.flatnonzero(depth == level)[:, np.newaxis]
                parent = parents[nodes]
                above = ancestor[parent[:, 0]]
                # Rows that are stopped on the way stay there.
                goes_on = (above == parent) & is_split[parent[:, 0]]
                ancestor[nodes[:, 0]] = np.where(goes_on, nodes, above)
            found.append(ancestor + begin)
        return np.concatenate(found).astype(np.int32)
