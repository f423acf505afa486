"""The structure of trees in a file: only what cannot be derived is written."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .json_values import plain_numbers, read_numbers

STRUCTURE_KEYS = {"attribute", "cuts", "cut", "missing", "missing_rows", "n_rows", "gain"}


def sum_over_children(in_leaf: npt.ArrayLike, parent: npt.NDArray[np.intp]) -> Floats:
    """Return, for every node, the sum over the leaves below it, or the number of the leaf itself.

    A child comes after its parent.
    """
    total: list[float] = np.asarray(in_leaf, dtype=np.float64).tolist()
    above: list[int] = parent.tolist()
    for node in range(len(total) - 1, -1, -1):
        if above[node] >= 0:
            total[above[node]] += total[node]
    return np.array(total)


def store_structure(trees: Any) -> dict[str, Any]:
    """Return the structure of `Trees` as lists and numbers."""
    is_split = trees.attribute >= 0
    cuts, cut = _number_cuts(trees)
    missing_rows = trees.missing_rows[is_split]
    return {
        "attribute": plain_numbers(trees.attribute),
        "cuts": cuts,
        "cut": plain_numbers(cut),
        "missing": plain_numbers(trees.missing[is_split]),
        "missing_rows": plain_numbers(missing_rows) if missing_rows.any() else [],
        "n_rows": plain_numbers(trees.n_rows[~is_split]),
        "gain": plain_numbers(trees.gain[is_split]),
    }


def _number_cuts(trees: Any) -> tuple[list[list[Any]], npt.NDArray[np.intp]]:
    """Return the different cuts of every attribute and score, and which of them each split has."""
    categories = _categories(trees.attributes, trees.n_scores)
    cut = np.zeros(trees.n_nodes, dtype=np.intp)
    cuts: list[list[Any]] = [[] for _ in categories]
    for column in np.unique(trees.attribute[trees.attribute >= 0]).tolist():
        nodes = np.flatnonzero(trees.attribute == column)
        if categories[column] is None:
            values, cut[nodes] = np.unique(trees.threshold[nodes], return_inverse=True)
            cuts[column] = plain_numbers(values)
        else:
            tables = np.stack([trees.branches_of(node) for node in nodes.tolist()])
            values, numbers = np.unique(tables, axis=0, return_inverse=True)
            cuts[column], cut[nodes] = plain_numbers(values), numbers.ravel()
    return cuts, cut[trees.attribute >= 0]


def _categories(attributes: Attributes, n_scores: int) -> list[int | None]:
    """The number of categories of each attribute and score that trees may split on."""
    counts = [None if c.categories is None else len(c.categories) for c in attributes.columns]
    return [*counts, *[None] * n_scores]


def read_structure(stored: dict[str, Any], attributes: Attributes, n_scores: int) -> dict[str, Any]:
    """Return the arrays of `Trees` from :func:`store_structure`; ValueError on anything malformed.

    The numbers of nodes are bounded by the length of the lists before there is an array of them.
    """
    attribute = read_numbers(stored, "attribute", np.int32, 1)
    n_columns = len(attributes.columns) + n_scores
    if attribute.min() < -1 or attribute.max() >= n_columns:
        raise ValueError("a stored model splits on an attribute or score that does not exist")
    splits = np.flatnonzero(attribute >= 0)
    n_leaves = len(attribute) - len(splits)
    missing = read_entries(stored, "missing", np.int32, len(splits), "splits")
    missing_rows = np.zeros(len(splits))
    if stored["missing_rows"] != []:
        missing_rows = read_entries(stored, "missing_rows", np.float64, len(splits), "splits")
    # Before there is a list of as many: the number of scores may be anything.
    if not isinstance(stored["cuts"], list) or len(stored["cuts"]) != n_columns:
        raise ValueError(
            f"cuts of a stored model must be {n_columns} lists, one for each attribute and "
            "regressor"
        )
    found = _read_splits(stored, attribute, missing, _categories(attributes, n_scores))
    first_child, roots = place_children(found["n_children"].tolist())
    parent = find_parents(attribute, first_child, found["n_children"])
    rows = np.zeros(len(attribute))
    rows[attribute < 0] = read_entries(stored, "n_rows", np.float64, n_leaves, "leaves")
    return {
        **found,
        "attribute": attribute,
        "first_child": first_child,
        "missing": _at(splits, missing, len(attribute)),
        "missing_rows": _at(splits, missing_rows, len(attribute)),
        "n_rows": sum_over_children(rows, parent),
        "gain": _at(
            splits, read_entries(stored, "gain", np.float64, len(splits), "splits"), len(attribute)
        ),
        "roots": roots,
    }


def _at(places: npt.NDArray[np.intp], values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Put values into their places among zeros."""
    whole = np.zeros(size, dtype=values.dtype)
    whole[places] = values
    return whole


def read_entries(
    stored: dict[str, Any], name: str, dtype: type, count: int, of: str
) -> npt.NDArray[Any]:
    """Return a list of so many numbers, one for each of the nodes that are named in `of`."""
    found = read_numbers(stored, name, dtype, 1, may_be_empty=count == 0)
    if len(found) != count:
        raise ValueError(
            f"a stored model has {count} {of}, but {len(found)} entries in {name}: one for each "
            "is needed"
        )
    return found


def _read_splits(
    stored: dict[str, Any], attribute: Indices, missing: Indices, categories: list[int | None]
) -> dict[str, Any]:
    """Return the thresholds, tables and numbers of children."""
    splits = np.flatnonzero(attribute >= 0)
    cuts = _read_cuts(stored["cuts"], categories)
    cut = read_entries(stored, "cut", np.int32, len(splits), "splits").tolist()
    threshold = np.zeros(len(attribute))
    table = np.full(len(attribute), -1, dtype=np.int32)
    n_children = np.zeros(len(attribute), dtype=np.int32)
    n_children[splits] = 2
    branches: list[Sequence[int]] = []
    n_branches = 0
    columns, to_missing = attribute[splits].tolist(), missing.tolist()
    for node, column, number, other in zip(splits.tolist(), columns, cut, to_missing, strict=True):
        known = cuts[column]
        if not 0 <= number < len(known):
            raise ValueError(
                f"node {node} of a stored model has cut {number}, but cuts has {len(known)} of "
                f"attribute {column}"
            )
        if categories[column] is None:
            threshold[node] = known[number]
        else:
            branches.append(known[number])
            table[node], n_branches = n_branches, n_branches + len(known[number])
            n_children[node] = _check_count(1 + max(other, *known[number]), node, len(attribute))
        if not 0 <= other < n_children[node] or n_children[node] < 2:
            raise ValueError(
                f"node {node} of a stored model sends rows to a child that does not exist"
            )
    return {
        "threshold": threshold,
        "table": table,
        "branches": np.fromiter(chain.from_iterable(branches), np.int32, n_branches),
        "n_children": n_children,
    }


def _check_count(n_children: int, node: int, n_nodes: int) -> int:
    """Refuse more children than there are nodes."""
    if n_children > n_nodes:
        raise ValueError(
            f"node {node} of a stored model has {n_children} children, but there are {n_nodes} "
            "nodes"
        )
    return n_children


def _read_cuts(stored: list[Any], categories: list[int | None]) -> list[list[Any]]:
    """Return the cuts of every attribute and score: numbers, or the children of all categories."""
    found: list[list[Any]] = []
    for column, (cuts, n_categories) in enumerate(zip(stored, categories, strict=True)):
        name = f"cuts of attribute {column}"
        if cuts == []:
            found.append([])
            continue
        if n_categories is None:
            found.append(read_numbers({name: cuts}, name, np.float64, 1).tolist())
            continue
        tables = read_numbers({name: cuts}, name, np.int32, 2)
        if tables.shape[1] != n_categories or tables.min() < 0:
            raise ValueError(
                f"{name} of a stored model must be lists of children, one for each of the "
                f"{n_categories} categories"
            )
        found.append(tables.tolist())
    return found


def place_children(n_children: list[int]) -> tuple[Indices, Indices]:
    """Return the first child of every node, -1 of a leaf, and the roots.

    Nodes stand depth first: behind the children of a node stand all nodes below the first child,
    then those below the next one. Where a tree ends, the next one begins.
    """
    n_nodes = len(n_children)
    first_child, roots = [-1] * n_nodes, []
    end = 0
    while end < n_nodes:
        roots.append(end)
        pending = [end]
        end += 1
        while pending:
            node = pending.pop()
            count = n_children[node]
            if count == 0:
                continue
            if end + count > n_nodes:
                raise ValueError(
                    f"attribute of a stored model ends in the middle of tree {len(roots) - 1}: "
                    f"node {node} lacks children"
                )
            first_child[node] = end
            pending.extend(range(end + count - 1, end - 1, -1))
            end += count
    return np.array(first_child, dtype=np.int32), np.array(roots, dtype=np.int32)


def find_parents(
    attribute: Indices, first_child: Indices, n_children: Indices
) -> npt.NDArray[np.intp]:
    """Return the parent of every node; -1 of a root."""
    inner = np.flatnonzero(attribute >= 0)
    count = n_children[inner]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    parent = np.full(len(attribute), -1)
    parent[np.repeat(first_child[inner], count) + within] = np.repeat(inner, count)
    return parent
