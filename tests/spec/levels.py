"""Levels of a tree: the root alone, then the best pruned trees of up to 2, 4, 8, ... leaves."""

from collections.abc import Sequence

HAIR = 0.002
# What a split gains in mean deviance, at least, if it changes probabilities by a hair.
LEAST_GAIN = 2 * HAIR**2


def limits_of_levels(n_leaves: int, max_leaf_nodes: int | None) -> list[int]:
    """How many leaves each level may have; the last has all of them, or as many as may be."""
    most = n_leaves if max_leaf_nodes is None else min(n_leaves, max_leaf_nodes)
    limits = [1]
    while 2 * limits[-1] < most:
        limits.append(2 * limits[-1])
    return limits if most == 1 else [*limits, most]


def end_of_way(way: Sequence[int], leaves_needed: Sequence[float], limit: float) -> int:
    """The node that decides at a level, of those on a way from the root to a leaf.

    ``leaves_needed`` is the number of leaves of the smallest pruned tree in which each node is
    split.
    """
    return next((node for node in way if leaves_needed[node] > limit), way[-1])
