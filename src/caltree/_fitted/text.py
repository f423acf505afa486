"""A fitted tree in words: its conditions and, in the leaves, the formulas of the node models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .conditions import branches
from .model import FittedModel
from .names import printable, score_names


def tree_text(
    tree: FittedModel, classes: Sequence[Any], max_depth: int | None, decimals: int
) -> str:
    """Return the tree as text, one line a condition; see `CalibrationTree.to_text`."""
    lines: list[str] = []
    is_average = bool(((tree.weight > 0) & (tree.weight < 1)).any())
    pending: list[tuple[int, int, str | None]] = [(0, 0, None)]
    while pending:
        node, depth, condition = pending.pop()
        indent = "|   " * max(depth - 1, 0)
        of_node = f"(n={tree.n_rows[node]:g}{_weight(tree, node) if is_average else ''})"
        split, cut_off = tree.attribute[node] >= 0, depth == max_depth
        has_formula = tree.weight[node] > 0 or (split and cut_off)
        if condition is not None:
            lines.append(f"{indent}|--- {condition}  {of_node}")
            indent += "|   "
        elif has_formula or not split:
            lines.append(of_node)
        if split and cut_off:
            lines.append(f"{indent}...")
        if has_formula:
            lines += [indent + formula for formula in formulas(tree, node, classes, decimals)]
        elif not split:
            lines.append(f"{indent}uncalibrated")
        if split and not cut_off:
            below = list(enumerate(conditions(tree, node), start=int(tree.first_child[node])))
            pending += [(child, depth + 1, text) for child, text in reversed(below)]
    return "\n".join(lines)


def _weight(tree: FittedModel, node: int) -> str:
    return f", weight {tree.weight[node]:.2f}" if tree.weight[node] > 0 else ""


def formulas(tree: FittedModel, node: int, classes: Sequence[Any], decimals: int) -> list[str]:
    """Return the node model, F_j = intercept + slope S_j + ...; a constant in all F is dropped."""
    coefficients = tree.coefficients(node)
    # The uncalibrated log-probabilities stand at the end: log p[class]. The scores of one
    # classifier are just these, which then are part of the slopes.
    joins = tree.offset and tree.n_scores == len(classes)
    if joins:
        own = np.arange(len(classes))
        coefficients[own, 1 + own] += 1.0
    # Where a class has its own score to go by, the slopes are easier to read as they are.
    centred = 1 if joins else None
    coefficients[:, :centred] -= coefficients[:, :centred].mean(axis=0)
    names = score_names(classes, tree.n_scores)
    labels = [f"F[{printable(label)}]" for label in classes]
    width = max(map(len, labels))
    apart = tree.offset and not joins
    offsets = [f" + log p[{printable(label)}]" if apart else "" for label in classes]
    return [
        f"{label:<{width}} = {_sum(row, names, decimals)}{offset}"
        for label, row, offset in zip(labels, coefficients, offsets, strict=True)
    ]


def _sum(row: npt.NDArray[np.float64], names: Sequence[str], decimals: int) -> str:
    text = f"{row[0]: .{decimals}f}"
    for slope, name in zip(row[1:], names, strict=True):
        if slope != 0.0:
            text += f" {'-' if slope < 0 else '+'} {abs(slope):.{decimals}f} {name}"
    return text


def conditions(tree: FittedModel, node: int) -> list[str]:
    """Return the condition of each child of a node."""
    return branches(tree, node, spell=printable)
