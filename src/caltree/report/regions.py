"""The regions of a report: the leaves of a tree, or segments by one attribute each."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import numpy.typing as npt

from .._fitted import conditions as words
from .._fitted.formulas import Formulas
from .._fitted.outline import Outline
from .._fitted.segments import segments
from .._inputs.arrays import Floats
from .._model_base import TreeCalibrator
from .inputs import Rows

# By an attribute of more categories, rows are divided too finely to read.
_MOST_CATEGORIES = 200
_MOST_SEGMENTS = 10
# Of the coefficients of node models.
_DECIMALS = 2


def find_regions(rows: Rows, max_regions: int) -> dict[str, Any]:
    """Return the regions, the most harmful first, and the tree they come from, if any.

    The kind is "leaves", "segments" or "none"; the note is a remark for the reader, and the tree
    None, or its nodes in depth-first order. The legend says what the formulas of nodes mean.
    """
    legend: list[str] = []
    nodes: list[dict[str, Any]] | None = None
    if isinstance(rows.calibrator, TreeCalibrator):
        formulas = rows.calibrator.formulas(_DECIMALS, words.short)
        nodes, legend = _nodes(formulas, rows, max_regions), formulas.legend()
    if nodes is not None and len(nodes) > 1:
        found, note = [node for node in nodes if not node["children"]], None
        tree = rows.calibrator.model_
        hidden = tree.n_leaves - len(found)
        if hidden > 0:
            note = (
                f"The tree has {tree.n_leaves:,} leaves. It is cut back to the {len(found):,} "
                "largest regions by number of rows; a region that was divided further says so."
            )
        kind = "leaves"
    else:
        kind, found, note = _segments(rows, max_regions)
    found = sorted(found, key=_rank)
    return {"regions": found, "kind": kind, "note": note, "tree": nodes, "legend": legend}


def _rank(region: dict[str, Any]) -> tuple[bool, bool, float]:
    """First come regions whose scores are off by more than chance, last those of few rows."""
    return region["few"], not region["off"], -region["harm"]


def _nodes(formulas: Formulas, rows: Rows, max_regions: int) -> list[dict[str, Any]]:
    """The nodes that are shown, depth first, each with its evidence."""
    assert rows.matrix is not None
    tree = formulas.tree
    leaf = tree.apply(rows.matrix)[:, 0]
    counts = tree.sum_over_leaves(np.bincount(leaf, rows.weights, tree.n_nodes))
    # A column at a time: the matrix may be in a file.
    has_missing = np.array([np.isnan(column).any() for column in rows.matrix.T])
    outline = Outline.of(tree, has_missing)
    divided = _nodes_to_divide(outline, counts, max_regions)
    n_leaves = tree.sum_over_leaves(tree.attribute < 0)
    order, spans = _sort_by_region(outline, leaf, divided)
    predictions = rows.predictions.take(order)
    nodes: list[dict[str, Any]] = []
    pending: list[tuple[int, str | None, int, str]] = [(0, None, 1, words.join_conditions([]))]
    while pending:
        node, parent, level, branch = pending.pop()
        below = outline.children(node) if node in divided else []
        parts = outline.conditions(node)
        nodes.append(
            {
                "id": f"node-{node}",
                "parent": parent,
                "level": level,
                "branch": branch,
                "conditions": parts,
                "words": words.join_conditions(parts),
                "children": len(below),
                "leaves": int(n_leaves[node]),
                "share": float(tree.weight[node]),
                "training_rows": float(tree.n_rows[node]),
                **_in_formulas(formulas, node),
                **predictions.take(spans[node]).summary(),
            }
        )
        pending += [
            (child, f"node-{node}", level + 1, outline.condition(child)) for child in below[::-1]
        ]
    return nodes


def _in_formulas(formulas: Formulas, node: int) -> dict[str, Any]:
    """The model of a node, if it has a share in the probabilities, and the outcome of a leaf."""
    tree = formulas.tree
    told = formulas.has_outcomes and bool(tree.attribute[node] < 0)
    has_model = tree.weight[node] > 0.0
    return {
        "formulas": [str(each) for each in formulas.of_node(node)] if has_model else [],
        "outcome": formulas.outcome(node) if told else None,
    }


def _nodes_to_divide(outline: Outline, counts: Floats, max_regions: int) -> set[int]:
    """The nodes to show divided, the largest first, so that there are not too many regions."""
    n_trained = outline.tree.n_rows
    divided: set[int] = set()
    n_regions, pending = 1, [(-counts[0], -n_trained[0], 0)]
    while pending:
        *_, node = heapq.heappop(pending)
        children = outline.children(node)
        if not children or n_regions + len(children) - 1 > max_regions:
            continue
        divided.add(node)
        n_regions += len(children) - 1
        for child in children:
            heapq.heappush(pending, (-counts[child], -n_trained[child], child))
    return divided


def _sort_by_region(
    outline: Outline, leaf: npt.NDArray[np.int32], divided: set[int]
) -> tuple[npt.NDArray[np.intp], dict[int, slice]]:
    """An order of the rows in which those of each node that is shown stand side by side."""
    tree = outline.tree
    # Where a region stands, from one end of the tree to the other.
    place = np.full(tree.n_nodes, -1, dtype=np.intp)
    reach: dict[int, tuple[int, int]] = {}
    n_regions, pending = 0, [(0, False)]
    while pending:
        node, is_done = pending.pop()
        if is_done:
            reach[node] = (reach[outline.children(node)[0]][0], n_regions)
        elif node in divided:
            pending += [(node, True), *((child, False) for child in outline.children(node)[::-1])]
        else:
            place[node], n_regions = n_regions, n_regions + 1
            reach[node] = (n_regions - 1, n_regions)
    # A child stands behind its parent, and what is below a region stands where that does.
    for node in np.flatnonzero(tree.attribute >= 0).tolist():
        if place[node] >= 0:
            place[tree.children(node)] = place[node]
    region = place[leaf]
    starts = np.concatenate([[0], np.cumsum(np.bincount(region, minlength=n_regions))])
    spans = {node: slice(starts[first], starts[last]) for node, (first, last) in reach.items()}
    return np.argsort(region, kind="stable"), spans


def _segments(rows: Rows, max_regions: int) -> tuple[str, list[dict[str, Any]], str | None]:
    """The rows divided by each attribute on its own."""
    if rows.attributes is None or rows.matrix is None:
        return "none", [], f"The rows are not divided into regions: {rows.unreadable}."
    found: list[dict[str, Any]] = []
    left_out = []
    for column, attribute in enumerate(rows.attributes.columns):
        if len(attribute.categories or ()) > _MOST_CATEGORIES:
            left_out.append(attribute.name)
            continue
        named = words.with_short_names(attribute)
        for text, inside in segments(named, rows.matrix[:, column], _MOST_SEGMENTS):
            region = {"id": f"segment-{len(found)}", "conditions": [text], "words": text}
            found.append({**region, **rows.predictions.take(inside).summary()})
    notes = []
    if left_out:
        names = ", ".join(words.short(name) for name in left_out)
        notes.append(f"Not divided by {names}: more than {_MOST_CATEGORIES} categories.")
    if len(found) > max_regions:
        notes.append(f"The {max_regions} most harmful of {len(found):,} segments are shown.")
        found = sorted(found, key=_rank)[:max_regions]
    return "segments", found, " ".join(notes) or None
