"""The tree of a report: its nodes, with predicted and observed."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from .._audit.effects import FEWEST_ROWS
from .._fitted import conditions as words
from .._fitted.formulas import Formulas
from .._fitted.outline import Outline
from .._inputs.arrays import Floats
from .._model_base import TreeCalibrator
from .sums import RowSums

# A tree of more leaves is cut back.
MOST_LEAVES = 200
# Of nodes with a smaller share of the rows, nothing is said but their number.
_SMALLEST_SHARE = 0.01
# Of the coefficients of node models.
_DECIMALS = 2
_NUMBERS = ("predicted", "observed", "low", "high", "calibrated")
_UNKNOWN: dict[str, Any] = dict.fromkeys(("class", *_NUMBERS))


def outline_tree(
    calibrator: TreeCalibrator, matrix: Floats, sums: RowSums, most_leaves: int = MOST_LEAVES
) -> dict[str, Any]:
    """The nodes of a tree, depth first, what their formulas mean, and how many leaves there are.

    A tree of more leaves than `most_leaves` is cut back to its largest nodes.
    """
    formulas = calibrator.formulas(_DECIMALS, words.short)
    tree = formulas.tree
    of_leaves = sums.over(tree.apply(matrix)[:, 0], tree.n_nodes)
    of_nodes = np.column_stack([tree.sum_over_leaves(column) for column in of_leaves.T])
    # A column at a time: the matrix may be in a file.
    has_missing = np.array([np.isnan(column).any() for column in matrix.T])
    outline = Outline.of(tree, has_missing)
    divided = _nodes_to_divide(outline, of_nodes[:, 0], most_leaves)
    n_leaves = tree.sum_over_leaves(tree.attribute < 0)
    nodes: list[dict[str, Any]] = []
    pending: list[tuple[int, str | None, int, str]] = [(0, None, 1, words.join_conditions([]))]
    while pending:
        node, parent, level, branch = pending.pop()
        below = outline.children(node) if node in divided else []
        nodes.append(
            {
                "id": f"node-{node}",
                "parent": parent,
                "level": level,
                "branch": branch,
                "conditions": outline.conditions(node),
                "children": len(below),
                "leaves": int(n_leaves[node]),
                "weight": float(tree.weight[node]),
                "training_rows": float(tree.n_rows[node]),
                **_in_formulas(formulas, node),
                **_describe(sums, of_nodes[node]),
            }
        )
        pending += [
            (child, f"node-{node}", level + 1, outline.condition(child)) for child in below[::-1]
        ]
    return {"nodes": nodes, "legend": formulas.legend(), "leaves": int(tree.n_leaves)}


def _describe(sums: RowSums, of_node: Floats) -> dict[str, Any]:
    """The rows of a node, predicted and observed; of few rows, only their number."""
    line = sums.describe(of_node)
    if line is None:
        return {"rows": 0, "share": 0.0, **_UNKNOWN}
    found = {"rows": line.rows, "share": line.share}
    if line.rows < FEWEST_ROWS or line.share < _SMALLEST_SHARE:
        return {**found, **_UNKNOWN}
    return {**found, "class": line.label, **{name: getattr(line, name) for name in _NUMBERS}}


def _in_formulas(formulas: Formulas, node: int) -> dict[str, Any]:
    """The model of a node, if it has a share in the probabilities, and the outcome of a leaf."""
    tree = formulas.tree
    told = formulas.has_outcomes and bool(tree.attribute[node] < 0)
    has_model = tree.weight[node] > 0.0
    return {
        "formulas": [str(each) for each in formulas.of_node(node)] if has_model else [],
        "outcome": formulas.outcome(node) if told else None,
    }


def _nodes_to_divide(outline: Outline, n_rows: Floats, most_leaves: int) -> set[int]:
    """The nodes to show divided, the largest first, so that there are not too many leaves."""
    n_trained = outline.tree.n_rows
    divided: set[int] = set()
    n_regions, pending = 1, [(-n_rows[0], -n_trained[0], 0)]
    while pending:
        *_, node = heapq.heappop(pending)
        children = outline.children(node)
        if not children or n_regions + len(children) - 1 > most_leaves:
            continue
        divided.add(node)
        n_regions += len(children) - 1
        for child in children:
            heapq.heappush(pending, (-n_rows[child], -n_trained[child], child))
    return divided
