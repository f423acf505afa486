"""Trees on chunks of rows, level by level: one on all rows and one for each fold, together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .chunk import (
    Question,
    Splits,
    Wholes,
    at_the_roots,
    histograms,
    routed,
    sums,
    weights_of_folds,
)
from .node_models import Slots, fit_nodes
from .plan import Floats, Plan
from .pool import Pool

Place: TypeAlias = tuple[int, int]  # a tree, and a node of it

# Histograms are asked for in portions of so many bytes.
_MOST_BYTES = 2**25
_MOST_NODES = 2**16 - 2


@dataclass(frozen=True)
class Limits:
    """How trees are grown, and how far."""

    by_class: bool
    """Whether splits look for classes, not for what node models get wrong."""
    penalty: float
    min_samples_split: float
    min_samples_leaf: float
    max_depth: int


@dataclass
class GrowingTree:
    """A tree as lists, one entry a node."""

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

    def split(self, node: int, found: _Found, plan: Plan) -> list[int]:
        """Divide a node; the numbers of the children."""
        attribute = found.attribute
        self.attribute[node] = attribute
        self.gain[node] = found.gain
        self.missing[node] = found.missing
        self.missing_rows[node] = found.missing_rows
        if plan.bins.numeric[attribute]:
            self.cut[node] = found.cut
            self.threshold[node] = plan.bins.threshold(attribute, found.cut)
        else:
            self.table[node] = len(self.branches)
            self.table_size[node] = len(found.branches)
            self.branches.extend(found.branches)
        children = [self.add_leaf(node) for _ in range(found.n_children)]
        self.first_child[node] = children[0]
        self.n_children[node] = len(children)
        return children

    def in_core(self, plan: Plan, held_out: float) -> tuple[_core.Structure, _core.NodeModels]:
        """The tree as the core wants it."""
        return _core.assembled(
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
            plan.scale.unscaled(np.array(self.parameters)),
            held_out,
        )


@dataclass(frozen=True)
class _Found:
    """A split."""

    attribute: int
    gain: float
    cut: int
    n_children: int
    missing: int
    missing_rows: float
    branches: list[int]


def grow(
    pool: Pool, plan: Plan, limits_of: Callable[[float], Limits]
) -> tuple[list[GrowingTree], Limits, Floats]:
    """Trees on all rows and on those of each fold.

    Parameters
    ----------
    pool : Pool
        The rows.
    plan : Plan
        What they are.
    limits_of : callable
        How far to grow, given the weight of all rows.

    Returns
    -------
    trees : list of GrowingTree
        The first is that on all rows.
    limits : Limits
        How far they were grown.
    held_out : ndarray
        The weight of the rows that each fold holds out.
    """
    pool.update(at_the_roots)
    weights = pool.total(weights_of_folds) / plan.unit(1.0)
    limits = limits_of(float(weights[-1]))
    trees = [GrowingTree(plan.scale.n_parameters) for _ in range(plan.n_trees)]
    level = [(t, tree.add_leaf(-1)) for t, tree in enumerate(trees)]
    while level:
        _fit(pool, plan, limits, trees, level)
        level = _split(pool, plan, limits, trees, level)
        if level:
            pool.update(routed, _splits(trees))
    return trees, limits, weights[:-1]


def _fit(
    pool: Pool, plan: Plan, limits: Limits, trees: list[GrowingTree], level: list[Place]
) -> None:
    def ask(slots: Slots, parameters: Floats) -> Wholes:
        asked = _question(trees, [level[s] for s in slots], parameters)
        total: Wholes = pool.total(sums, asked)
        return total

    parents = np.array([trees[t].parameters[node] for t, node in level])
    fits = fit_nodes(parents, level[0][1] == 0, plan, limits.penalty, ask)
    for s, (t, node) in enumerate(level):
        tree = trees[t]
        tree.parameters[node] = fits.parameters[s]
        tree.n_rows[node] = float(fits.sums.weight[s])
        tree.error[node] = float(fits.sums.deviance[s])
        tree.held_out_error[node] = float(fits.sums.held_out[s])


def _split(
    pool: Pool, plan: Plan, limits: Limits, trees: list[GrowingTree], level: list[Place]
) -> list[Place]:
    """Split whatever gains by it; the next level."""
    places = [
        (t, node)
        for t, node in level
        if trees[t].n_rows[node] >= limits.min_samples_split
        and trees[t].depth[node] < limits.max_depth
    ]
    portion = max(1, _MOST_BYTES // (8 * plan.histogram_size(by_class=limits.by_class)))
    following: list[Place] = []
    for begin in range(0, len(places), portion):
        some = places[begin : begin + portion]
        parameters = np.array([trees[t].parameters[node] for t, node in some])
        asked = replace(_question(trees, some, parameters), by_class=limits.by_class)
        found_here = _each(pool.total(histograms, asked, _Search(limits, trees[0].n_rows[0])))
        for (t, node), found in zip(some, found_here, strict=True):
            if found is not None and len(trees[t]) + found.n_children <= _MOST_NODES:
                following += [(t, child) for child in trees[t].split(node, found, plan)]
    return following


@dataclass(frozen=True)
class _Search:
    """Looks for the best splits in the histograms of all rows."""

    limits: Limits
    all_rows: float

    def __call__(self, plan: Plan, total: Wholes, message: Any) -> dict[str, Any]:
        bins, limits = plan.bins, self.limits
        if limits.by_class:
            return _core.best_class_splits(
                total,
                bins.n_bins,
                bins.numeric,
                bins.fills,
                plan.n_classes,
                plan.unit(1.0),
                self.all_rows,
                limits.min_samples_leaf,
            )
        return _core.best_splits(
            total,
            bins.n_bins,
            bins.numeric,
            plan.scale.n_states,
            plan.unit(1.0),
            limits.penalty,
            limits.min_samples_leaf,
        )


def _each(found: dict[str, Any]) -> list[_Found | None]:
    """Split by split, None where there is none."""
    splits: list[_Found | None] = []
    for i, attribute in enumerate(found["attribute"].tolist()):
        begin = int(found["table"][i])
        branches = found["branches"][begin : begin + int(found["table_size"][i])]
        split = _Found(
            attribute,
            float(found["gain"][i]),
            int(found["cut"][i]),
            int(found["n_children"][i]),
            int(found["missing"][i]),
            float(found["missing_rows"][i]),
            branches.tolist() if begin >= 0 else [],
        )
        splits.append(split if attribute >= 0 else None)
    return splits


def _question(trees: list[GrowingTree], places: list[Place], parameters: Floats) -> Question:
    first = beginnings(trees)
    slot = np.full(first[-1], -1, dtype=np.int32)
    for s, (t, node) in enumerate(places):
        slot[first[t] + node] = s
    return Question(first, slot, parameters)


def _splits(trees: list[GrowingTree]) -> Splits:
    """The splits of all nodes; the rows of those that were split before are further down."""
    first = beginnings(trees)
    table: list[int] = []
    branches: list[int] = []
    for tree in trees:
        table += [begin if begin < 0 else begin + len(branches) for begin in tree.table]
        branches += tree.branches
    every = {
        name: _indices([value for tree in trees for value in getattr(tree, name)])
        for name in ("attribute", "cut", "missing", "first_child", "n_children")
    }
    return Splits(first, **every, table=_indices(table), branches=_indices(branches))


def beginnings(trees: list[GrowingTree]) -> npt.NDArray[np.int32]:
    """Where the nodes of each tree begin if they all stand side by side, and where they end."""
    return np.cumsum([0, *map(len, trees)]).astype(np.int32)


def _indices(values: list[int]) -> npt.NDArray[np.int32]:
    return np.array(values, dtype=np.int32)
