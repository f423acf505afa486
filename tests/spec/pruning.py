"""Cost-complexity pruning, of nodes that carry ``n_rows``, ``error`` and ``iterations_run``."""

import math
from collections.abc import Iterator

from .nodes import Node

NO_DIFFERENCE = 1e-12  # a smaller difference of errors is taken for 0


def leaf_error(node: Node) -> float:
    """Sum of the errors of the leaves of a subtree."""
    return node.error if node.is_leaf else sum(leaf_error(child) for child in node.children)


def count_leaves(node: Node) -> int:
    """Number of leaves of a subtree, siblings with one and the same model counting as one.

    Those are the leaves that ran no boosting iteration: they repeat their parent's model.
    """
    if node.is_leaf:
        return 1
    repeating = [child.is_leaf and child.iterations_run == 0 for child in node.children]
    others = [child for child, repeats in zip(node.children, repeating, strict=True) if not repeats]
    return any(repeating) + sum(count_leaves(child) for child in others)


def error_saved(node: Node, least_gain: float = 0.0) -> float:
    """By how much the leaves of a subtree have less error than its root would have as a leaf.

    Less than ``least_gain`` a row is nothing.
    """
    saved = node.error - leaf_error(node)
    return 0.0 if saved < max(NO_DIFFERENCE, least_gain * node.n_rows) else saved


def weakest_link(node: Node, n_rows: float, least_gain: float = 0.0) -> tuple[float, Node]:
    """Walk through a subtree once, top-down: the smallest alpha and its node, inf if all is leaves.

    A node whose subtree is of no use becomes a leaf; any other gets its alpha. Of equals the first
    in pre-order counts. An alpha is that of the moment of the visit: what becomes a leaf further
    down in the same walk changes the alphas above it only in the next walk.
    """
    if node.is_leaf:
        return math.inf, node
    saved, leaves = error_saved(node, least_gain), count_leaves(node)
    if saved == 0.0 or leaves == 1:
        node.make_leaf()
        return math.inf, node
    candidates = [(saved / n_rows / (leaves - 1), node)]
    candidates += [weakest_link(child, n_rows, least_gain) for child in node.children]
    return min(candidates, key=lambda candidate: candidate[0])


def pruning_sequence(root: Node, n_rows: float, strength: float = math.inf) -> Iterator[float]:
    """Prune a tree in place, one step at a time, while the smallest alpha is at most ``strength``.

    Yields the alpha of each step after taking it, so that the caller can look at the tree then.
    The first step, of alpha 0, only removes what is of no use; every other ends with that.

    Parameters
    ----------
    root : the tree; it is changed
    n_rows : number of rows the tree was grown on
    strength : the largest alpha to prune at; by default only the root is left in the end
    """
    alpha, node = weakest_link(root, n_rows)
    yield 0.0
    while not root.is_leaf and alpha <= strength:
        step = alpha
        node.make_leaf()
        alpha, node = weakest_link(root, n_rows)
        yield step


def pruning_order(root: Node, n_rows: float, least_gain: float = 0.0) -> list[tuple[float, float]]:
    """Prune a whole tree in place, and say when this reaches each node, in pre-order.

    The strength up to which a node is split, and the number of leaves of the smallest tree in which
    it is; 0 and inf of one that is of no use from the beginning. Strengths of steps need not rise:
    a step is passed once any of them is.
    """
    order = {id(node): (0.0, math.inf) for node in root.walk()}
    alpha, node = weakest_settled_link(root, n_rows, least_gain)
    strength = 0.0
    while not root.is_leaf:
        before, leaves, strength = inner_nodes(root), count_leaves(root), max(strength, alpha)
        node.make_leaf()
        alpha, node = weakest_settled_link(root, n_rows, least_gain)
        order.update(dict.fromkeys(before - inner_nodes(root), (strength, leaves)))
    return list(order.values())


def weakest_settled_link(root: Node, n_rows: float, least_gain: float) -> tuple[float, Node]:
    """The weakest link of a tree in which every split gains enough.

    Of what becomes a leaf, something above it may have had all its gain.
    """
    before, link = inner_nodes(root), weakest_link(root, n_rows, least_gain)
    while least_gain > 0.0 and inner_nodes(root) != before:
        before, link = inner_nodes(root), weakest_link(root, n_rows, least_gain)
    return link


def inner_nodes(root: Node) -> set[int]:
    return {id(node) for node in root.walk() if not node.is_leaf}
