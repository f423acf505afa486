"""Cost-complexity pruning, of nodes that carry ``error`` and ``iterations_run``."""

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


def error_saved(node: Node) -> float:
    """By how much the leaves of a subtree have less error than its root would have as a leaf."""
    saved = node.error - leaf_error(node)
    return 0.0 if saved < NO_DIFFERENCE else saved


def collapse(node: Node) -> None:
    """Make leaves, top-down, of the inner nodes whose subtrees are of no use."""
    if not node.is_leaf and (error_saved(node) == 0.0 or count_leaves(node) == 1):
        node.make_leaf()
    for child in node.children:
        collapse(child)


def weakest_link(root: Node, n_rows: int) -> tuple[float, Node]:
    """The smallest alpha of any inner node and that node, of equals the first in pre-order."""
    smallest, weakest = math.inf, root
    for node in root.walk():
        if not node.is_leaf:
            alpha = error_saved(node) / n_rows / (count_leaves(node) - 1)
            if alpha < smallest:
                smallest, weakest = alpha, node
    return smallest, weakest


def pruning_sequence(root: Node, n_rows: int, strength: float = math.inf) -> Iterator[float]:
    """Prune a tree in place, one step at a time, while the smallest alpha is at most ``strength``.

    Yields the alpha of each step after taking it, so that the caller can look at the tree then.
    The first step, of alpha 0, only collapses; every other ends with a collapse.

    Parameters
    ----------
    root : the tree; it is changed
    n_rows : number of rows the tree was grown on
    strength : the largest alpha to prune at; by default only the root is left in the end
    """
    collapse(root)
    yield 0.0
    while not root.is_leaf:
        alpha, node = weakest_link(root, n_rows)
        if alpha > strength:
            return
        node.make_leaf()
        collapse(root)
        yield alpha
