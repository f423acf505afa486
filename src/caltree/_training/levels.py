"""Levels of a tree: the same tree, cut back to fewer and fewer leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from .. import _core
from .._fitted.selection import GLOBAL
from .._inputs.arrays import Floats

Tree: TypeAlias = tuple[_core.Structure, _core.FittedNodes]

# From level to level, the number of leaves grows by this factor.
_RATIO = 2
# A split that changes probabilities by less than this is none: it gains at least twice the square
# of that in mean deviance (Pinsker's inequality).
_HAIR = 0.002


@dataclass(frozen=True)
class Levels:
    """How a tree is read: at each level, the nodes of a high enough rank are split.

    The first level has the fewest leaves.
    """

    names: tuple[str, ...]
    rank: Callable[[Tree], Floats]
    """Gives the rank of every node of a tree."""
    lowest: Floats
    """The lowest rank of nodes that are split, one per level."""

    def __len__(self) -> int:
        return len(self.lowest)

    def collapse(self, tree: Tree, shares: Floats) -> dict[str, Any]:
        """Return the nodes that the levels with a share need."""
        return _core.collapse_tree(*tree, self.rank(tree), self.lowest, shares)

    def held_out_gains(self, tree: Tree, shares: Floats, n_attributes: int) -> Floats:
        """Return what the splits on each attribute gain on the rows that a tree holds out."""
        ranked = (self.rank(tree), self.lowest, shares)
        return _core.held_out_gains(*tree, *ranked, n_attributes)


def leaf_levels(whole: Tree, max_leaf_nodes: int | None, *, between: bool) -> Levels:
    """Return levels of rising numbers of leaves: the root, and the best pruned trees of so many.

    The last has all leaves, or as many as are allowed; those `between` have 2, 4, 8, ...
    """
    leaves_needed = cache(_leaves_needed)  # a tree is read several times
    leaves = leaves_needed(whole)
    most = float(leaves[np.isfinite(leaves)].max(initial=1.0))
    if max_leaf_nodes is not None:
        most = min(most, max_leaf_nodes)
    n_levels = math.ceil(math.log(most, _RATIO)) if between else min(1, int(most) - 1)
    limits = np.append(float(_RATIO) ** np.arange(n_levels), most)
    return Levels(
        names=(GLOBAL, *(f"{limit:g} regions" for limit in limits[1:])),
        rank=lambda tree: -leaves_needed(tree),
        lowest=-limits,
    )


def pruned_level(ccp_alpha: float | None) -> Levels:
    """Return the one level of a tree that is pruned at some strength, or not at all."""
    lowest = -math.inf if ccp_alpha is None else np.nextafter(ccp_alpha, math.inf)
    return Levels(
        names=("pruned tree",),
        rank=lambda tree: _core.pruning_order(*tree)[0],
        lowest=np.array([lowest]),
    )


def _leaves_needed(tree: Tree) -> Floats:
    """Return the leaves of the smallest pruned tree in which each node is split."""
    return _core.pruning_order(*tree, 2.0 * _HAIR**2)[1]
