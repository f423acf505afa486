"""Trees that grow level by level on sums: one on all rows and one for each fold, together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._training.levels import Tree
from .chunk import Plan
from .node_models import Slots, fit_node_models
from .pool import Pool, Program
from .queries import (
    AskedNodes,
    BestSplits,
    Limits,
    Nodes,
    NodeSums,
    RouteRows,
    Split,
    histogram_size,
)

Place: TypeAlias = tuple[int, int]  # a tree, and a node of it

# Histograms are asked for in portions of so many bytes.
_MOST_BYTES = 2**25
_MOST_NODES = 2**16 - 2


@dataclass
class GrowingTree:
    """A tree as lists, one entry per node."""

    n_parameters: int
    attribute: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    first_child: list[int] = field(default_factory=list)
    n_children: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    missing_rows: list[float] = field(default_factory=list)
    table: list[int] = field(default_factory=list)
    table_size: list[int] = field(default_factory=list)
    branches: list[int] = field(default_factory=list)
    n_rows: list[float] = field(default_factory=list)
    gain: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    held_out_error: list[float] = field(default_factory=list)
    parameters: list[Floats] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.attribute)

    def add_leaf(self, parent: int) -> int:
        """Add a leaf, with its parent's parameters."""
        at = len(self)
        root = parent < 0
        self.parent.append(parent)
        self.depth.append(0 if root else self.depth[parent] + 1)
        self.parameters.append(np.zeros(self.n_parameters) if root else self.parameters[parent])
        for nothing in (self.cut, self.n_children, self.missing, self.table_size):
            nothing.append(0)
        for none in (self.attribute, self.first_child, self.table):
            none.append(-1)
        for zero in (self.threshold, self.missing_rows, self.n_rows, self.gain):
            zero.append(0.0)
        for zero in (self.error, self.held_out_error):
            zero.append(0.0)
        return at

    def split_node(self, node: int, split: Split, plan: Plan) -> list[int]:
        """Split a leaf; return the numbers of its children."""
        attribute = split.attribute
        self.attribute[node] = attribute
        self.gain[node] = split.gain
        self.missing[node] = split.missing
        self.missing_rows[node] = split.missing_rows
        if plan.bins.numeric[attribute]:
            self.cut[node] = split.cut
            self.threshold[node] = plan.bins.threshold(attribute, split.cut)
        else:
            self.table[node] = len(self.branches)
            self.table_size[node] = len(split.branches)
            self.branches.extend(split.branches)
        children = [self.add_leaf(node) for _ in range(split.n_children)]
        self.first_child[node] = children[0]
        self.n_children[node] = len(children)
        return children

    def in_core(self, plan: Plan, held_out: float) -> Tree:
        """Return the tree in the core, given the weight of its held-out rows."""
        return _core.assemble_tree(
            _indices(self.attribute),
            np.array(self.threshold),
            _indices(self.parent),
            _indices(self.first_child),
            _indices(self.n_children),
            np.array(self.n_rows),
            np.array(self.gain),
            _indices(self.missing),
            np.array(self.missing_rows),
            _indices(self.table),
            _indices(self.table_size),
            _indices(self.branches),
            np.array(self.error),
            np.array(self.held_out_error),
            plan.scale.unscale(np.array(self.parameters)),
            held_out,
        )


def grow_trees(
    pool: Pool[Nodes], plan: Plan, limits: Limits, tell: Callable[[float], None]
) -> tuple[list[GrowingTree], Pool[Nodes]]:
    """Grow trees on all rows, the first one, and on those of each fold.

    `tell` is told about how much of the work is done, level by level.

    The pool, whose rows must be in the roots, is returned with the rows in the leaves.
    """
    return pool.run(partial(_grow, limits), tell)


def _grow(limits: Limits, plan: Plan) -> Program[Nodes, list[GrowingTree]]:
    trees = [GrowingTree(plan.scale.n_parameters) for _ in range(plan.n_trees)]
    roots = level = [(t, tree.add_leaf(-1)) for t, tree in enumerate(trees)]
    while level:
        yield from _fit_level(plan, limits, trees, level)
        level = yield from _split_level(plan, limits, trees, level)
        yield 1.0 - _levels_left(trees, level, limits) / _levels_left(trees, roots, limits)
        if level:
            yield _route_of(trees)
    return trees


def _levels_left(trees: list[GrowingTree], level: list[Place], limits: Limits) -> float:
    """About how many levels the rows of some nodes have to go through yet, added up over rows.

    A node is as large as its part of the parent, and each level halves it.
    """
    left = 0.0
    for t, node in level:
        tree = trees[t]
        parent = tree.parent[node]
        n_rows = tree.n_rows[0] if parent < 0 else tree.n_rows[parent] / tree.n_children[parent]
        left += n_rows * math.log2(max(2.0, 2.0 * n_rows / limits.min_samples_split))
    return left


def _fit_level(
    plan: Plan, limits: Limits, trees: list[GrowingTree], level: list[Place]
) -> Program[Nodes, None]:
    def ask(slots: Slots, parameters: Floats, derivatives: bool) -> NodeSums:
        asked = _ask_about(trees, [level[s] for s in slots], parameters)
        return NodeSums(asked, derivatives)

    parents = np.array([trees[t].parameters[node] for t, node in level])
    is_root = level[0][1] == 0
    parameters, sums = yield from fit_node_models(
        parents, plan, limits.penalty, ask, is_root=is_root, monotone=limits.monotone
    )
    for s, (t, node) in enumerate(level):
        tree = trees[t]
        tree.parameters[node] = parameters[s]
        tree.n_rows[node] = float(sums.weight[s])
        tree.error[node] = float(sums.deviance[s])
        tree.held_out_error[node] = float(sums.held_out[s])


def _split_level(
    plan: Plan, limits: Limits, trees: list[GrowingTree], level: list[Place]
) -> Program[Nodes, list[Place]]:
    """Split whatever gains by it; return the next level."""
    places = [
        (t, node)
        for t, node in level
        if trees[t].n_rows[node] >= limits.min_samples_split
        and trees[t].depth[node] < limits.max_depth
    ]
    portion = max(1, _MOST_BYTES // (8 * histogram_size(plan)))
    following: list[Place] = []
    for begin in range(0, len(places), portion):
        some = places[begin : begin + portion]
        parameters = np.array([trees[t].parameters[node] for t, node in some])
        asked = _ask_about(trees, some, parameters)
        shares = np.array([trees[t].n_rows[0] / trees[0].n_rows[0] for t, _ in some])
        splits = yield BestSplits(asked, limits, shares)
        for (t, node), split in zip(some, splits, strict=True):
            if split is not None and len(trees[t]) + split.n_children <= _MOST_NODES:
                following += [(t, child) for child in trees[t].split_node(node, split, plan)]
    return following


def _ask_about(trees: list[GrowingTree], places: list[Place], parameters: Floats) -> AskedNodes:
    first = first_nodes(trees)
    slot = np.full(first[-1], -1, dtype=np.int32)
    for s, (t, node) in enumerate(places):
        slot[first[t] + node] = s
    return AskedNodes(first, slot, parameters)


def _route_of(trees: list[GrowingTree]) -> RouteRows:
    """Return the splits of all nodes; rows of those that were split before are further down."""
    table: list[int] = []
    branches: list[int] = []
    for tree in trees:
        table += [begin if begin < 0 else begin + len(branches) for begin in tree.table]
        branches += tree.branches
    every = {
        name: _indices([value for tree in trees for value in getattr(tree, name)])
        for name in ("attribute", "cut", "missing", "first_child", "n_children")
    }
    others = {"table": _indices(table), "branches": _indices(branches)}
    return RouteRows(first_nodes(trees), **every, **others)


def first_nodes(trees: list[GrowingTree]) -> Indices:
    """Return where the nodes of each tree begin if all stand side by side, and where they end."""
    return np.cumsum([0, *map(len, trees)]).astype(np.int32)


def _indices(values: list[int]) -> Indices:
    return np.array(values, dtype=np.int32)
