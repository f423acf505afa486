"""The histogram engine: trees grow on sums over chunks of rows, wherever these are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._fitted.model import FittedModel
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .._running import progress
from .._training.averaging import SMALLEST_REGION, candidate_names
from .._training.engine import Tree, trees_grown
from .._training.settings import GROWING, Growth
from .chunk import Plan
from .grower import GrowingTree, first_nodes, grow_trees
from .held_out import HeldOutSums, PredictHeldOut
from .pool import Pool
from .queries import FoldWeights, Limits, Nodes, StartAtRoots

# A node of fewer than one in so many rows is not split: with millions of rows, regions of
# thousands are small enough, and the work and the sums stay the same however many there are.
MOST_REGIONS = 4096
# A branch has at least this part of the rows that a node needs to be split.
_SMALLEST_BRANCH = 1 / 8


class HistogramEngine:
    """Grows trees of shrunken node models level by level, on histograms."""

    strength_of_root = None

    def __init__(
        self, pool: Pool[None], plan: Plan, attributes: Attributes, growth: Growth
    ) -> None:
        self._pool = pool.advance(StartAtRoots())
        self._plan = plan
        self._attributes = attributes
        self._growth = growth

    @property
    def n_rows(self) -> float:
        """The number of rows, each as often as its weight says."""
        return float(self._weights[-1])

    @cached_property
    def _weights(self) -> Floats:
        """The weight of the rows that each fold holds out, and of all rows."""
        weights = self._pool.total(FoldWeights())
        if len(weights) > 1 and not weights[:-1].any():
            raise ValueError(
                "cv holds out only rows whose sample_weight counts for nothing beside the other "
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

    def grow(self, criteria: Sequence[str]) -> Iterable[TreesOnHistograms]:
        """Grow trees by each of some criteria."""
        plan = self._plan
        for criterion in criteria:
            limits = self._limits(criterion)
            with progress.stage(GROWING / len(criteria)) as growing:
                trees, pool = grow_trees(self._pool, plan, limits, growing.reach)
                growing.say(trees_grown(trees))
            held_out = [0.0, *self._weights[:-1]]
            in_core = [tree.in_core(plan, w) for tree, w in zip(trees, held_out, strict=True)]
            smallest = max(SMALLEST_REGION, math.ceil(limits.min_samples_split))
            yield TreesOnHistograms(criterion, in_core, trees, pool, plan, smallest)

    def _limits(self, criterion: str) -> Limits:
        growth, region = self._growth, self.n_rows / MOST_REGIONS
        return Limits(
            by_class=criterion == "gain_ratio",
            penalty=growth.l2_regularization,
            min_samples_split=max(growth.min_samples_split, region),
            min_samples_leaf=max(growth.min_samples_leaf, region * _SMALLEST_BRANCH),
            max_depth=growth.depth,
        )


@dataclass(frozen=True)
class TreesOnHistograms:
    """Trees grown by one criterion: one on all rows, and one for each fold."""

    criterion: str
    in_core: Sequence[Tree]
    trees: list[GrowingTree]
    pool: Pool[Nodes]
    plan: Plan
    smallest_region: float

    @property
    def whole(self) -> Tree:
        """The tree on all rows."""
        return self.in_core[0]

    @property
    def of_folds(self) -> Sequence[Tree]:
        """The trees on the rows that each fold does not hold out."""
        return self.in_core[1:]

    def held_out(
        self, ccp_alpha: float | None, sizes: Floats, *, uncalibrated: bool
    ) -> HeldOutSums:
        """Return predictions of the held-out rows by the trees of the folds."""
        first = first_nodes(self.trees)
        has_uncalibrated = uncalibrated and self.plan.has_offset
        pool = self.pool.advance(
            PredictHeldOut(
                first=first,
                ancestor=self._ancestors(first, ccp_alpha, sizes),
                parameters=np.array([row for tree in self.trees for row in tree.parameters]),
                uncalibrated=has_uncalibrated,
            )
        )
        names = candidate_names(sizes, has_uncalibrated=has_uncalibrated)
        return HeldOutSums(pool, self.plan, names, has_uncalibrated=has_uncalibrated)

    def _ancestors(self, first: Indices, ccp_alpha: float | None, sizes: Floats) -> Indices:
        """Return the node that predicts for each node, at each size and in the pruned tree."""
        found = []
        for tree, begin, in_core in zip(self.trees, first[:-1], self.in_core, strict=True):
            n_rows, attribute = np.array(tree.n_rows), np.array(tree.attribute)
            is_split = np.empty((len(tree), len(sizes) + 1), dtype=bool)
            is_split[:, :-1] = n_rows[:, np.newaxis] >= sizes
            is_split[:, -1] = _core.inner_nodes(*in_core, ccp_alpha)
            is_split &= attribute[:, np.newaxis] >= 0
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
