"""Questions of growing trees to chunks of rows: where rows go, sums of nodes, best splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.arrays import Floats, Indices
from .chunk import Chunk, Plan
from .node_models import n_sums
from .pool import Wholes

Nodes: TypeAlias = npt.NDArray[np.uint16]
"""The state of a chunk of a growing tree: the node of every row, in every tree."""
_CoreArguments: TypeAlias = tuple[
    _core.Chunk, Nodes, Indices, Indices, Floats, Floats, Floats, int, Floats
]


@dataclass(frozen=True)
class Limits:
    """How trees are grown, and how far."""

    penalty: float
    min_samples_split: float
    min_samples_leaf: float
    max_depth: int
    monotone: bool = False


@dataclass(frozen=True)
class Split:
    """A split of one node."""

    attribute: int
    gain: float
    cut: int
    n_children: int
    missing: int
    missing_rows: float
    branches: list[int]


@dataclass(frozen=True)
class StartAtRoots:
    """Puts every row into the root of every tree."""

    def advance(self, plan: Plan, chunk: Chunk, state: None) -> Nodes:
        return np.zeros((plan.n_trees, len(chunk)), dtype=np.uint16)


@dataclass(frozen=True)
class RouteRows:
    """Sends the rows of nodes that are split to their children, in all trees."""

    first: Indices
    attribute: Indices
    cut: Indices
    missing: Indices
    first_child: Indices
    n_children: Indices
    table: Indices
    branches: Indices

    def advance(self, plan: Plan, chunk: Chunk, state: Nodes) -> Nodes:
        return _core.route(
            chunk.in_core(plan),
            state,
            self.first,
            self.attribute,
            self.cut,
            self.missing,
            self.first_child,
            self.n_children,
            self.table,
            self.branches,
        )


@dataclass(frozen=True)
class AskedNodes:
    """Some nodes of the trees, each of which has a slot, with parameters of node models."""

    first: Indices
    """Where the nodes of each tree begin, and where the last end."""
    slot: Indices
    """The slot of every node of all trees; -1 if it is not asked about."""
    parameters: Floats
    """Slots x parameters."""

    def in_chunk(self, plan: Plan, chunk: Chunk, state: Nodes) -> _CoreArguments:
        """Return the arguments of the core for these nodes and the rows of a chunk."""
        scale = plan.scale
        return (
            chunk.in_core(plan),
            state,
            self.first,
            self.slot,
            self.parameters,
            scale.centre,
            scale.scale,
            scale.per_state,
            plan.units,
        )


@dataclass(frozen=True)
class FoldWeights:
    """The weight of the rows that each fold holds out, and of all."""

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros(plan.n_folds + 1, dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Nodes, total: Wholes) -> None:
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        wholes = np.rint(weights * plan.unit(1.0)).astype(np.int64)
        for fold in range(plan.n_folds):
            total[fold] += wholes[chunk.fold == fold].sum()
        total[-1] += wholes.sum()

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        return np.asarray(total / plan.unit(1.0))


@dataclass(frozen=True)
class NodeSums:
    """The sums that node models are fitted by, a row a slot."""

    asked: AskedNodes
    derivatives: bool
    """Whether gradients and Hessians are wanted, which take most of the time."""

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros((len(self.asked.parameters), n_sums(plan)), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Nodes, total: Wholes) -> None:
        asked = self.asked.in_chunk(plan, chunk, state)
        total += _core.sums(*asked, plan.scoring == "log_loss", self.derivatives)

    def finish(self, plan: Plan, total: Wholes) -> Wholes:
        return total


@dataclass(frozen=True)
class BestSplits:
    """The best split of each slot, found in histograms of all rows."""

    asked: AskedNodes
    limits: Limits
    shares: Floats
    """The rows of each slot's tree, as a share of those of the tree on all rows."""

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros((len(self.asked.parameters), histogram_size(plan)), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Nodes, total: Wholes) -> None:
        _core.histograms(*self.asked.in_chunk(plan, chunk, state), total)

    def finish(self, plan: Plan, total: Wholes) -> list[Split | None]:
        bins, limits = plan.bins, self.limits
        found = _core.best_splits(
            total,
            bins.n_bins,
            bins.numeric,
            plan.scale.n_states,
            plan.unit(1.0),
            limits.penalty,
            limits.min_samples_leaf,
            self.shares,
        )
        return [_split_of(found, i) for i in range(len(total))]

    def answer(self, plan: Plan, chunk: Chunk, state: Nodes) -> list[Split | None]:
        """Return the same if all rows are in one chunk, without histograms of all attributes."""
        asked, limits = self.asked.in_chunk(plan, chunk, state), self.limits
        found = _core.splits_in_chunk(
            *asked, plan.bins.numeric, limits.penalty, limits.min_samples_leaf, self.shares
        )
        return [_split_of(found, i) for i in range(len(self.shares))]


def histogram_size(plan: Plan) -> int:
    """Return how many numbers the histograms of a node have."""
    return int((plan.bins.n_bins + 1).sum()) * (1 + 2 * plan.scale.n_states)


def _split_of(found: dict[str, Any], i: int) -> Split | None:
    attribute, begin = int(found["attribute"][i]), int(found["table"][i])
    if attribute < 0:
        return None
    branches = found["branches"][begin : begin + int(found["table_size"][i])]
    return Split(
        attribute=attribute,
        gain=float(found["gain"][i]),
        cut=int(found["cut"][i]),
        n_children=int(found["n_children"][i]),
        missing=int(found["missing"][i]),
        missing_rows=float(found["missing_rows"][i]),
        branches=branches.tolist() if begin >= 0 else [],
    )
