"""When pruning reaches nodes, and what is left of a tree at some levels: the core and its twin."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree import _core

from ..spec import pruning
from ..spec.levels import end_of_way
from ..support.histogram_cases import examples

# -- Trees ----------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node as the specification of pruning wants it."""

    n_rows: float
    error: float
    children: list[Node] = field(default_factory=list)
    iterations_run: int = 1

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def make_leaf(self) -> None:
        self.children = []

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True)
class Tree:
    """A tree, in arrays: children come after their parents, and side by side."""

    attribute: np.ndarray
    parent: np.ndarray
    n_rows: np.ndarray
    error: np.ndarray
    held_out: np.ndarray

    def __len__(self) -> int:
        return len(self.attribute)

    def children(self, node: int) -> np.ndarray:
        return np.flatnonzero(self.parent == node)

    def way(self, node: int) -> list[int]:
        """The nodes from the root to a node."""
        return [node] if node == 0 else [*self.way(int(self.parent[node])), node]

    @property
    def leaves(self) -> np.ndarray:
        return np.flatnonzero(self.attribute < 0)

    def in_core(self) -> tuple[_core.Structure, _core.FittedNodes]:
        n, none = len(self), np.full(len(self), -1, dtype=np.int32)
        first = [min(self.children(v), default=-1) for v in range(n)]
        return _core.assemble_tree(
            attribute=self.attribute,
            threshold=np.arange(n, dtype=float),
            parent=self.parent,
            first_child=np.array(first, dtype=np.int32),
            n_children=np.array([len(self.children(v)) for v in range(n)], dtype=np.int32),
            n_rows=self.n_rows,
            gain=np.zeros(n),
            missing=np.zeros(n, dtype=np.int32),
            missing_rows=np.zeros(n),
            table=none,
            table_size=np.zeros(n, dtype=np.int32),
            branches=np.empty(0, dtype=np.int32),
            error=self.error,
            held_out_error=self.held_out,
            parameters=np.eye(n),  # so that every node can be told from the others
            held_out=float(n),
        )

    def in_spec(self) -> tuple[Node, list[int]]:
        """The root, and the number of each node in pre-order."""
        nodes = [Node(*each) for each in zip(self.n_rows, self.error, strict=True)]
        for node, parent in zip(nodes[1:], self.parent[1:], strict=True):
            nodes[parent].children.append(node)
        numbers = {id(node): number for number, node in enumerate(nodes)}
        return nodes[0], [numbers[id(node)] for node in nodes[0].walk()]


@st.composite
def trees(draw: Callable[..., Any]) -> Tree:
    """Trees of any shape. Errors are binary fractions, so that no order of sums matters."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Grown depth first, as by the exact engine, or level by level.
    next_one = draw(st.sampled_from([0, -1]))
    parent, pending, attribute = [-1], [0], [-1]
    for _ in range(draw(st.integers(0, 12))):
        node = pending.pop(next_one)
        attribute[node] = int(rng.integers(0, 3))
        pending += [len(parent), len(parent) + 1]
        parent, attribute = [*parent, node, node], [*attribute, -1, -1]
    n_rows, error = np.zeros(len(parent)), np.zeros(len(parent))
    n_rows[0], error[0] = 4096.0, 900.0
    # Some splits gain much, some next to nothing, some nothing, and some lose on the whole.
    largest = draw(st.sampled_from([0.1, 4.0, 40.0]))
    for node in range(len(parent)):
        below = [v for v in range(len(parent)) if parent[v] == node]
        if not below:
            continue
        share = rng.integers(1, 16) / 16
        gain = rng.choice([1.0, 1.0, 1.0, 0.0, -0.25]) * np.round(rng.random() * largest, 3)
        gain = np.floor(gain * 1024) / 1024
        n_rows[below] = share * n_rows[node], (1 - share) * n_rows[node]
        error[below] = np.floor(error[node] * share), 0.0
        error[below[1]] = error[node] - error[below[0]] - gain
    return Tree(
        np.array(attribute, dtype=np.int32),
        np.array(parent, dtype=np.int32),
        n_rows,
        error,
        np.floor(rng.random(len(parent)) * 1024) / 64,
    )


# -- The order ------------------------------------------------------------------------------------


LEAST = [0.0, 1e-4, 1e-3]


def test_the_pruning_order_is_that_of_the_specification():
    seen = Counter()

    @examples(300)
    @given(trees(), st.sampled_from(LEAST))
    def check(tree, least_gain):
        strength, leaves = _core.pruning_order(*tree.in_core(), least_gain)
        root, numbers = tree.in_spec()
        order = pruning.pruning_order(root, root.n_rows, least_gain)
        for number, expected in zip(numbers, order, strict=True):
            assert (strength[number], leaves[number]) == expected
        seen["split"] += int(np.isfinite(leaves).sum())
        seen["not split"] += int(np.isinf(leaves[tree.attribute >= 0]).sum())
        # A parent is split wherever a child is, so that levels are trees.
        for node in range(1, len(tree)):
            assert leaves[tree.parent[node]] <= leaves[node]
            assert strength[tree.parent[node]] >= strength[node]

    check()
    assert seen["split"] > 300 and seen["not split"] > 300


def gain_below(tree: Tree, node: int, is_split: np.ndarray) -> float:
    """By how much the leaves below a node have less error than it has."""
    if not is_split[node]:
        return 0.0
    children = tree.children(node)
    gain = tree.error[node] - tree.error[children].sum()
    return float(gain + sum(gain_below(tree, child, is_split) for child in children))


@examples(200)
@given(trees(), st.sampled_from(LEAST[1:]))
def test_at_every_level_each_split_gains_enough(tree, least_gain):
    """Not only with what is below it in the whole tree."""
    _, leaves = _core.pruning_order(*tree.in_core(), least_gain)
    for limit in {*leaves[np.isfinite(leaves)], np.finfo(float).max}:
        is_split = leaves <= limit
        for node in np.flatnonzero(is_split):
            assert gain_below(tree, node, is_split) >= least_gain * tree.n_rows[node]


@examples(200)
@given(trees(), st.sampled_from(LEAST), st.integers(1, 14))
def test_a_level_has_no_more_leaves_than_its_limit(tree, least_gain, limit):
    rank = -_core.pruning_order(*tree.in_core(), least_gain)[1]
    left = _core.collapse_tree(*tree.in_core(), rank, np.array([-float(limit)]), np.ones(1))
    assert (left["attribute"] < 0).sum() <= limit


def test_a_split_below_which_nothing_is_left_is_looked_at_again():
    """What a child seemed to gain was all that spoke for its parent."""
    tree = Tree(
        attribute=np.array([0, -1, 1, -1, -1], dtype=np.int32),
        parent=np.array([-1, 0, 0, 2, 2], dtype=np.int32),
        n_rows=np.array([100.0, 20.0, 80.0, 40.0, 40.0]),
        # The first split gains 0.5, the other 0.75, and 1 in 100 rows is asked for.
        error=np.array([50.0, 10.0, 39.5, 19.5, 19.25]),
        held_out=np.zeros(5),
    )
    strength, leaves = _core.pruning_order(*tree.in_core(), 0.01)
    assert np.isinf(leaves).all()
    assert not strength.any()
    # Both are worth it where less is asked for.
    leaves = _core.pruning_order(*tree.in_core(), 0.005)[1]
    assert leaves.tolist() == [3.0, math.inf, 3.0, math.inf, math.inf]


@examples(60)
@given(trees())
def test_the_strength_of_the_published_method_is_that_of_its_sequence(tree):
    """Pruned at a strength, a tree is as it is after the last step up to that."""
    structure, models = tree.in_core()
    strength, _ = _core.pruning_order(structure, models)
    alphas, losses = _core.pruning_sequence(structure, models)
    for alpha in {0.0, *alphas.tolist(), *(alphas[:-1] / 2 + alphas[1:] / 2).tolist()}:
        step = np.searchsorted(np.maximum.accumulate(alphas), alpha, side="right") - 1
        left = _core.collapse_tree(
            structure, models, strength, np.array([np.nextafter(alpha, np.inf)]), np.ones(1)
        )
        ends = left["parameters"][left["attribute"] < 0].argmax(axis=1)
        assert losses[step] == pytest.approx(tree.held_out[ends].sum() / len(tree), rel=1e-12)


# -- What is left ---------------------------------------------------------------------------------

# Shares are sums of powers of two: exact in any order.
SHARES = st.lists(st.sampled_from([0.0, 0.125, 0.25, 0.5]), min_size=1, max_size=4)


@examples(200)
@given(trees(), SHARES, st.randoms(use_true_random=False))
def test_a_collapsed_tree_says_what_its_levels_say_together(tree, shares, random):
    leaves_needed = _core.pruning_order(*tree.in_core())[1]
    limits = sorted(random.choices([1.0, 2.0, 3.0, 4.0, 8.0, math.inf], k=len(shares)))
    left = _core.collapse_tree(*tree.in_core(), -leaves_needed, -np.array(limits), np.array(shares))
    of_node = left["parameters"].argmax(axis=1)  # the node of the whole tree
    assert np.array_equal(left["n_rows"], tree.n_rows[of_node])
    assert np.array_equal(
        left["threshold"][left["attribute"] >= 0], of_node[left["attribute"] >= 0]
    )
    kept = set(of_node.tolist())
    for leaf in tree.leaves:
        way = tree.way(leaf)
        said = {}
        for share, limit in zip(shares, limits, strict=True):
            end = end_of_way(way, np.where(tree.attribute < 0, np.inf, leaves_needed), limit)
            said[end] = said.get(end, 0.0) + share
        found = {
            int(node): weight
            for node, weight in zip(of_node, left["weight"], strict=True)
            if node in way and weight > 0.0
        }
        assert found == {node: share for node, share in said.items() if share > 0.0}
        # Nothing is left below the last node that says something, and nothing above it is gone.
        last = max((way.index(node) for node in found), default=0)
        assert set(way) & kept == set(way[: last + 1])


@examples(100)
@given(trees())
def test_children_of_a_collapsed_tree_are_those_of_the_tree(tree):
    leaves_needed = _core.pruning_order(*tree.in_core())[1]
    left = _core.collapse_tree(*tree.in_core(), -leaves_needed, -np.array([3.0]), np.ones(1))
    of_node = left["parameters"].argmax(axis=1)
    for node in np.flatnonzero(left["attribute"] >= 0):
        first, n_children = left["first_child"][node], left["n_children"][node]
        children = of_node[first : first + n_children]
        assert np.array_equal(children, tree.children(of_node[node]))
        assert left["attribute"][node] == tree.attribute[of_node[node]]


def test_a_tree_of_which_nothing_counts_is_its_root():
    tree = Tree(
        attribute=np.array([0, -1, -1], dtype=np.int32),
        parent=np.array([-1, 0, 0], dtype=np.int32),
        n_rows=np.array([10.0, 4.0, 6.0]),
        error=np.array([5.0, 1.0, 1.0]),
        held_out=np.zeros(3),
    )
    left = _core.collapse_tree(*tree.in_core(), np.ones(3), np.zeros(2), np.zeros(2))
    assert left["attribute"].tolist() == [-1] and left["weight"].tolist() == [0.0]


# -- Gains and rows -------------------------------------------------------------------------------


@examples(150)
@given(trees(), SHARES, st.integers(1, 3), st.randoms(use_true_random=False))
def test_held_out_gains_are_those_of_the_splits_that_count(tree, shares, n_attributes, random):
    leaves_needed = _core.pruning_order(*tree.in_core())[1]
    limits = random.choices([1.0, 2.0, 3.0, 4.0, 8.0, math.inf], k=len(shares))
    expected = np.zeros(n_attributes)
    for node in np.flatnonzero((tree.attribute >= 0) & (tree.attribute < n_attributes)):
        gain = tree.held_out[node] - tree.held_out[tree.children(node)].sum()
        counts = [
            share
            for share, limit in zip(shares, limits, strict=True)
            if leaves_needed[node] <= limit
        ]
        expected[tree.attribute[node]] += sum(counts) * gain
    found = _core.held_out_gains(
        *tree.in_core(), -leaves_needed, -np.array(limits), np.array(shares), n_attributes
    )
    assert np.array_equal(found, expected)


@examples(20)
@given(trees())
def test_rows_are_counted_by_node(tree):
    assert np.array_equal(_core.row_counts(tree.in_core()[0]), tree.n_rows)


# -- What does not fit ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rank": np.ones(2)}, "one rank per node"),
        ({"rank": np.ones(4)}, "one rank per node"),
        ({"lowest": np.ones(1)}, "one share per level"),
        ({"shares": np.ones(3)}, "one share per level"),
    ],
)
def test_levels_that_do_not_fit_the_tree(changes, message):
    tree = Tree(
        attribute=np.array([0, -1, -1], dtype=np.int32),
        parent=np.array([-1, 0, 0], dtype=np.int32),
        n_rows=np.array([10.0, 4.0, 6.0]),
        error=np.array([5.0, 1.0, 1.0]),
        held_out=np.zeros(3),
    )
    levels = {"rank": np.ones(3), "lowest": np.ones(2), "shares": np.ones(2), **changes}
    with pytest.raises(ValueError, match=message):
        _core.collapse_tree(*tree.in_core(), **levels)
    with pytest.raises(ValueError, match=message):
        _core.held_out_gains(*tree.in_core(), **levels, n_attributes=1)


def test_orders_and_gains_of_another_tree():
    small, large = (
        Tree(
            attribute=np.array(attribute, dtype=np.int32),
            parent=np.array([-1, 0, 0][: len(attribute)], dtype=np.int32),
            n_rows=np.ones(len(attribute)),
            error=np.ones(len(attribute)),
            held_out=np.ones(len(attribute)),
        )
        for attribute in ([-1], [0, -1, -1])
    )
    mixed = (large.in_core()[0], small.in_core()[1])
    levels = (np.ones(3), np.ones(1), np.ones(1))
    for call in (
        lambda: _core.pruning_order(*mixed),
        lambda: _core.collapse_tree(*mixed, *levels),
        lambda: _core.held_out_gains(*mixed, *levels, 1),
    ):
        with pytest.raises(ValueError, match="another tree"):
            call()
