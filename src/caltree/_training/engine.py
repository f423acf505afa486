"""The interface of engines: where rows are, and how trees are grown on them."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, Protocol

from .._fitted.model import FittedModel
from .held_out import HeldOut
from .levels import Levels, Tree


def trees_grown(trees: Sequence[Sized]) -> str:
    """Say how many trees were grown, and how large they are together."""
    return f"grew {len(trees)} trees of {sum(map(len, trees)):,} nodes"


class GrownTrees(Protocol):
    """A tree on all rows, and one for each fold."""

    @property
    def whole(self) -> Tree:
        """The tree on all rows."""

    @property
    def of_folds(self) -> Sequence[Tree]:
        """The trees on the rows that each fold does not hold out; empty without folds."""

    def held_out(self, levels: Levels, *, uncalibrated: bool) -> HeldOut:
        """Return predictions of the held-out rows by the trees of the folds, at some levels.

        With `uncalibrated`, the uncalibrated probabilities, where there are any, come first.
        """


class Engine(Protocol):
    """Grows trees on rows, in this process or elsewhere."""

    def grow(self) -> GrownTrees:
        """Grow a tree on all rows, and one for each fold."""

    def model(self, tree: dict[str, Any]) -> FittedModel:
        """Make a fitted model of a tree that the core has finished."""
