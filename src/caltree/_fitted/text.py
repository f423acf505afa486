"""A fitted tree in words: its conditions and, in the leaves, the formulas of the node models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._training.do_no_harm import Selection
from .model import TreeModel

_MOST_CATEGORIES = 8


def tree_text(tree: TreeModel, classes: Sequence[Any], max_depth: int | None, decimals: int) -> str:
    """The tree as text, one line a condition; see `CalibrationTree.to_text`."""
    lines: list[str] = []
    is_average = bool(((tree.weight > 0) & (tree.weight < 1)).any())
    pending: list[tuple[int, int, str | None]] = [(0, 0, None)]
    while pending:
        node, depth, condition = pending.pop()
        indent = "|   " * max(depth - 1, 0)
        of_node = f"(n={tree.n_rows[node]:g}{_share(tree, node) if is_average else ''})"
        split, cut_off = tree.attribute[node] >= 0, depth == max_depth
        speaks = tree.weight[node] > 0 or (split and cut_off)
        if condition is not None:
            lines.append(f"{indent}|--- {condition}  {of_node}")
            indent += "|   "
        elif speaks or not split:
            lines.append(of_node)
        if split and cut_off:
            lines.append(f"{indent}...")
        if speaks:
            lines += [indent + formula for formula in formulas(tree, node, classes, decimals)]
        elif not split:
            lines.append(f"{indent}the scores as they are")
        if split and not cut_off:
            branches = list(conditions(tree, node))
            first = int(tree.first_child[node])
            pending += [
                (first + branch, depth + 1, branches[branch])
                for branch in reversed(range(len(branches)))
            ]
    return "\n".join(lines)


def _share(tree: TreeModel, node: int) -> str:
    return f", share {tree.weight[node]:.2f}" if tree.weight[node] > 0 else ""


def formulas(tree: TreeModel, node: int, classes: Sequence[Any], decimals: int) -> list[str]:
    """The node model, F_j = intercept + slope S_j + ...; a constant in all F says nothing."""
    coefficients = tree.coefficients[node].copy()
    # What the scores say before any correction stands at the end: log p[class]. One classifier's
    # scores are just that, and then it is part of their slopes.
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
    raws = [f" + log p[{printable(label)}]" if apart else "" for label in classes]
    return [
        f"{label:<{width}} = {_sum(row, names, decimals)}{raw}"
        for label, row, raw in zip(labels, coefficients, raws, strict=True)
    ]


def score_names(classes: Sequence[Any], n_scores: int) -> list[str]:
    """What the scores are called: S[class], numbered where there are several classifiers."""
    labels = [printable(label) for label in classes]
    if n_scores == 1:
        return [f"S[{labels[1]}]"]
    if n_scores == len(classes):
        return [f"S[{label}]" for label in labels]
    n_classifiers = n_scores // len(classes)
    return [f"S{k + 1}[{label}]" for k in range(n_classifiers) for label in labels]


def format_count(n_rows: float) -> str:
    """A number of rows, which weights may make a fraction."""
    return f"{n_rows:,.0f}" if n_rows == round(n_rows) else f"{n_rows:,.1f}"


def printable(value: Any) -> str:
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
    name = printable(column.name)
    missing = int(tree.missing[node]) if tree.missing_rows[node] > 0 else None
    if column.categories:
        begin = int(tree.table[node])
        branches = tree.branches[begin : begin + len(column.categories)]
        for child in range(int(tree.n_children[node])):
            values = [
                printable(category)
                for category, branch in zip(column.categories, branches, strict=True)
                if branch == child
            ]
            yield _category_condition(name, values, child == missing)
        return
    threshold = tree.threshold[node]
    if threshold == np.finfo(np.float64).max:
        yield f"{name} is known"
        yield f"{name} is missing"
        return
    for child, sign in enumerate(("<=", ">")):
        yield f"{name} {sign} {threshold:.6g}" + (" or missing" if child == missing else "")


def _category_condition(name: str, values: Sequence[str], with_missing: bool) -> str:
    if not values:
        return f"{name} is missing"
    if len(values) > _MOST_CATEGORIES:
        more = len(values) - _MOST_CATEGORIES
        values = [*values[:_MOST_CATEGORIES], f"{more} more"]
    condition = f"{name} = {values[0]}" if len(values) == 1 else f"{name} in {', '.join(values)}"
    return condition + (" or missing" if with_missing else "")


def selection_text(selection: Selection, objective: str) -> list[str]:
    """What could have been done, what each would have cost, and what was done."""
    if not selection:
        return []
    measure = "RMSE" if objective == "rmse" else "log loss"
    width = max(len(row["candidate"]) for row in selection)
    lines = [f"Cross-validated {measure}:"]
    for row in selection:
        mark = "  (chosen)" if row["chosen"] else ""
        lines.append(f"    {row['candidate']:<{width}}  {row['loss']:.4f}{mark}")
    return lines


def levels_text(levels: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the probabilities are averaged over, if it is more than one thing."""
    counting = [row for row in levels if row["share"] > 0]
    if len(counting) < 2:
        return []
    width = max(len(row["level"]) for row in counting)
    lines = [f"    {row['level']:<{width}}  {row['share']:.2f}" for row in counting]
    return ["Averaged, with the shares:", *lines]
