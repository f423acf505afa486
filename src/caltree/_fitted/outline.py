"""The nodes of a tree that are shown: splits on the same attribute in a row are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._inputs.arrays import Mask
from .._inputs.attributes import Attribute
from .conditions import Limits, Spelling, bare_condition, condition, conditions, regions, short
from .model import FittedModel


@dataclass(frozen=True)
class Outline:
    """The nodes of a tree that are shown, and the conditions that lead to them.

    A node that has no weight and is split by the same attribute as its parent is not shown. Its
    children take its place, with conditions such as ``3 < x <= 5``.
    """

    tree: FittedModel
    limits: dict[int, dict[int, Limits]]
    """By node and attribute, the values that lead there."""

    @classmethod
    def of(cls, tree: FittedModel, gaps: Mask | None = None) -> Outline:
        """Outline a tree; for `gaps` see `regions`."""
        return cls(tree, regions(tree, gaps))

    def children(self, node: int) -> list[int]:
        """Return the nodes that are shown below a node, in their order."""
        shown, pending = [], [*self.tree.children(node)][::-1]
        while pending:
            child = pending.pop()
            if self._is_passed_over(child):
                pending += [*self.tree.children(child)][::-1]
            else:
                shown.append(child)
        return shown

    def _is_passed_over(self, node: int) -> bool:
        attribute = self.tree.attribute
        splits_again = attribute[node] == attribute[self.tree.parent[node]]
        return bool(splits_again and self.tree.weight[node] == 0.0)

    def attribute_name(self, node: int, spell: Spelling = short) -> str:
        """Return the name of the attribute that splits a node."""
        return spell(self.tree.attributes.columns[self.tree.attribute[node]].name)

    def condition(self, node: int, spell: Spelling = short) -> str:
        """Return all that is known of the attribute that divides a node from its siblings."""
        return condition(*self._last(node), spell)

    def bare_condition(self, node: int, spell: Spelling = short) -> str:
        """Return the same in words that can stand behind the name of the attribute."""
        return bare_condition(*self._last(node), spell)

    def conditions(self, node: int) -> Sequence[str]:
        """Return the conditions of a node's region, one per attribute."""
        return conditions(self.limits[node], self.tree.attributes.columns)

    def _last(self, node: int) -> tuple[Attribute, Limits]:
        attribute = int(self.tree.attribute[self.tree.parent[node]])
        return self.tree.attributes.columns[attribute], self.limits[node][attribute]
