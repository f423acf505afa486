"""A fitted tree in words: its conditions, its node models and what they make of a score."""

from __future__ import annotations

from collections.abc import Iterator

from .formulas import Formulas
from .names import format_count, printable
from .outline import Outline


def tree_text(formulas: Formulas, max_depth: int | None) -> str:
    """Return the tree as text, one line per condition; see `CalibrationTree.to_text`."""
    return "\n".join(_Text(formulas, max_depth).lines())


class _Text:
    """The lines of a tree."""

    def __init__(self, formulas: Formulas, max_depth: int | None) -> None:
        self.tree, self.formulas, self.max_depth = formulas.tree, formulas, max_depth
        self.outline = Outline.of(self.tree)
        self.n_leaves = self.tree.sum_over_leaves(self.tree.attribute < 0)

    def lines(self) -> Iterator[str]:
        """Yield the legend, and then every node that is shown."""
        yield from self.formulas.legend()
        pending = [(0, 0)]
        while pending:
            node, depth = pending.pop()
            yield from self._of_node(node, depth)
            if depth != self.max_depth:
                pending += [(child, depth + 1) for child in self.outline.children(node)][::-1]

    def _of_node(self, node: int, depth: int) -> Iterator[str]:
        is_split = bool(self.tree.attribute[node] >= 0)
        is_cut = is_split and depth == self.max_depth
        has_model = self.tree.weight[node] > 0 or is_cut
        indent, result = "|   " * depth, "" if is_split else self._result(node)
        if depth > 0:
            condition = self.outline.condition(node, printable)
            yield f"{indent[4:]}|--- {condition}  {self._facts(node)}{result}"
        elif has_model or not is_split:
            yield f"all rows  {self._facts(node)}{result}"
        if has_model:
            yield from (f"{indent}{formula}" for formula in self.formulas.of_node(node))
        if is_cut:
            yield f"{indent}... {self.n_leaves[node]:.0f} leaves below"

    def _facts(self, node: int) -> str:
        facts = f"n={format_count(float(self.tree.n_rows[node]))}"
        if self.formulas.is_average and self.tree.weight[node] > 0:
            facts += f", weight {self.tree.weight[node]:.2f}"
        return f"({facts})"

    def _result(self, leaf: int) -> str:
        if self.tree.uncalibrated_weight == 1.0:
            return ": uncalibrated"
        return f": {self.formulas.outcome(leaf)}" if self.formulas.has_outcomes else ""
