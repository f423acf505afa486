"""A fitted tree in words: its conditions and, in the leaves, the formulas of the node models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .model import TreeModel


def tree_text(tree: TreeModel, classes: Sequence[Any], max_depth: int | None, decimals: int) -> str:
    """The tree as text, one line a condition; see `CalibrationTree.to_text`."""
    lines: list[str] = []
    pending: list[tuple[int, int, str | None]] = [(0, 0, None)]
    while pending:
        node, depth, condition = pending.pop()
        indent = "|   " * max(depth - 1, 0)
        n_rows = f"n={tree.n_rows[node]:g}"
        if condition is not None:
            lines.append(f"{indent}|--- {condition}  ({n_rows})")
            indent += "|   "
        if tree.attribute[node] >= 0 and depth != max_depth:
            branches = list(conditions(tree, node))
            first = int(tree.first_child[node])
            pending += [
                (first + branch, depth + 1, branches[branch])
                for branch in reversed(range(len(branches)))
            ]
            continue
        if condition is None:
            lines.append(f"({n_rows})")
        if tree.attribute[node] >= 0:
            lines.append(f"{indent}...")
        lines += [indent + formula for formula in formulas(tree, node, classes, decimals)]
    return "\n".join(lines)


def formulas(tree: TreeModel, node: int, classes: Sequence[Any], decimals: int) -> list[str]:
    """The node model, F_j = intercept + slope S_j + ..., centred so that the F sum to 0."""
    centred = tree.coefficients[node] - tree.coefficients[node].mean(axis=0)
    names = score_names(classes, tree.n_scores)
    labels = [f"F[{_printable(label)}]" for label in classes]
    width = max(map(len, labels))
    return [
        f"{label:<{width}} = {_sum(row, names, decimals)}"
        for label, row in zip(labels, centred, strict=True)
    ]


def score_names(classes: Sequence[Any], n_scores: int) -> list[str]:
    """What the scores are called: S[class], numbered where there are several classifiers."""
    labels = [_printable(label) for label in classes]
    if n_scores == 1:
        return [f"S[{labels[1]}]"]
    if n_scores == len(classes):
        return [f"S[{label}]" for label in labels]
    n_classifiers = n_scores // len(classes)
    return [f"S{k + 1}[{label}]" for k in range(n_classifiers) for label in labels]


def _printable(value: Any) -> str:
    """A name as it is, but for what would move the cursor or start a new line."""
    characters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return "".join(characters)


def _sum(row: npt.NDArray[np.float64], names: Sequence[str], decimals: int) -> str:
    text = f"{row[0]: .{decimals}f}"
    for slope, name in zip(row[1:], names, strict=True):
        if slope != 0.0:
            text += f" {'-' if slope < 0 else '+'} {abs(slope):.{decimals}f} {name}"
    return text


def conditions(tree: TreeModel, node: int) -> Iterator[str]:
    """What sends a row to each child of a node."""
    column = tree.attributes.columns[tree.attribute[node]]
    name = _printable(column.name)
    if column.categories:
        for category in column.categories:
            yield f"{name} = {_printable(category)}"
    else:
        yield f"{name} <= {tree.threshold[node]:.6g}"
        yield f"{name} > {tree.threshold[node]:.6g}"
