"""The interface of engines: where rows are, and how trees are grown on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any, Protocol, TypeAlias

from .. import _core
from .._fitted.model import FittedModel
from .._inputs.arrays import Floats
from .held_out import HeldOut

Tree: TypeAlias = tuple[_core.Structure, _core.FittedNodes]


def trees_grown(trees: Sequence[Sized]) -> str:
    """Say how many trees were grown, and how large they are together."""
    return f"grew {len(trees)} trees of {sum(map(len, trees)):,} nodes"


class GrownTrees(Protocol):
    """Trees grown by one criterion: one on all rows, and one for each fold."""

    @property
    def criterion(self) -> str:
        """The criterion of their splits."""

    @property
    def whole(self) -> Tree:
        """The tree on all rows."""

    @property
    def of_folds(self) -> Sequence[Tree]:
        """The trees on the rows that each fold does not hold out; empty without folds."""

    @property
    def smallest_region(self) -> float:
        """The fewest rows of a region that averaging tells apart."""

    def held_out(self, ccp_alpha: float | None, sizes: Floats, *, uncalibrated: bool) -> HeldOut:
        """Return predictions of the held-out rows by the trees of the folds.

        The candidates are trees in which nodes of fewer rows are left whole, one a size, and the
        tree pruned at the strength `ccp_alpha`. With `uncalibrated`, the uncalibrated
        probabilities, where there are any, come first.
        """


class Engine(Protocol):
    """Grows trees on rows, in this process or elsewhere."""

    @property
    def n_rows(self) -> float:
        """The number of rows, each as often as its weight says."""

    @property
    def strength_of_root(self) -> float | None:
        """The pruning strength that stands for the root alone; None for any beyond all others."""

    def grow(self, criteria: Sequence[str]) -> Iterable[GrownTrees]:
        """Grow trees by each of some criteria."""

    def model(self, tree: dict[str, Any]) -> FittedModel:
        """Make a fitted model of a tree that the core has finished."""
