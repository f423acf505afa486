"""Trees of LightGBM as plain arrays, read from the text in which it stores a model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._fitted.boosted import BoostedModel
from .._fitted.trees import ONLY_MISSING, ArrayTypes, join_trees
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes

# What `decision_type` of a split holds: a bit, a bit, and a number of two bits.
_IS_NOMINAL, _MISSING_IS_FIRST, _MISSING_TYPE, _KNOWS_MISSING = 1, 2, 12, 8
# LightGBM writes this for a threshold without end, below which all numbers are.
_ENDLESS = 1e300
_WORD = 32
Places: TypeAlias = npt.NDArray[np.intp]
_JOINED: ArrayTypes = {**BoostedModel.PER_NODE, "branches": (np.int32, 1)}


@dataclass(frozen=True)
class TreeArrays:
    """Trees one after the other: the arrays of `BoostedModel`, and the log-odds of each tree."""

    trees: list[dict[str, Any]]
    states: list[int]

    def scaled(self, factor: float) -> TreeArrays:
        """Return trees that add so much more."""
        trees = [{**tree, "value": tree["value"] * factor} for tree in self.trees]
        return TreeArrays(trees, self.states)

    def with_rows(self, n_rows: int) -> TreeArrays:
        """Return trees that say they were grown on so many rows, of which they knew some."""
        trees = [
            {**tree, "n_rows": tree["n_rows"] * (n_rows / tree["n_rows"][0])} for tree in self.trees
        ]
        return TreeArrays(trees, self.states)

    def of_columns(self, columns: npt.NDArray[np.intp]) -> TreeArrays:
        """Return trees that were grown on some columns, by the numbers of these."""
        numbers = np.append(columns, -1)  # a leaf has none
        trees = [
            {**tree, "attribute": numbers[tree["attribute"]].astype(np.int32)}
            for tree in self.trees
        ]
        return TreeArrays(trees, self.states)

    def behind(self, column: int, floor: float, n_rows: int) -> TreeArrays:
        """Return trees that add nothing to rows with a value of a column up to a floor."""
        return TreeArrays(
            [_behind(tree, column, floor, n_rows) for tree in self.trees], self.states
        )

    def __add__(self, others: TreeArrays) -> TreeArrays:
        return TreeArrays(self.trees + others.trees, self.states + others.states)

    def joined(self) -> dict[str, Any]:
        """Return the arrays of all trees together."""
        sizes = [len(tree["attribute"]) for tree in self.trees]
        return {
            **join_trees(self.trees, _JOINED),
            "roots": np.cumsum([0, *sizes[:-1]], dtype=np.int32),
            "state": np.array(self.states, dtype=np.int32),
        }


def read_trees(text: str, attributes: Attributes, n_states: int) -> TreeArrays:
    """Read the trees of `Booster.model_to_string`; those without a split are left out.

    Such a tree adds nothing, or, where a class has no rows, an arbitrary number. The columns of the
    booster are the attributes, and then scores.
    """
    n_categories = attributes.n_categories
    trees, states = [], []
    for number, fields in enumerate(_fields_of_trees(text)):
        if fields["num_leaves"] != "1":
            trees.append(_read_tree(fields, n_categories))
            states.append(number % n_states)
    return TreeArrays(trees, states)


def _fields_of_trees(text: str) -> Iterator[dict[str, str]]:
    for block in text.partition("end of trees")[0].split("\nTree=")[1:]:
        yield dict(line.split("=", 1) for line in block.splitlines() if "=" in line)


def _read_tree(fields: dict[str, str], n_categories: Indices) -> dict[str, Any]:
    """Return the arrays of a tree."""
    left, right = (_wholes(fields[f"{side}_child"]).tolist() for side in ("left", "right"))
    n_splits = len(left)
    split_at, leaf_at, first = _place_nodes(left, right)
    arrays: dict[str, Any] = {
        name: np.zeros(1 + 2 * n_splits, dtype) for name, (dtype, _) in _JOINED.items()
    }
    for name in ("attribute", "first_child", "table"):
        arrays[name][:] = -1
    arrays["attribute"][split_at] = _wholes(fields["split_feature"])
    arrays["first_child"][split_at] = first
    arrays["n_children"][split_at] = 2
    arrays["gain"][split_at] = _numbers(fields["split_gain"])
    arrays["n_rows"][split_at] = _numbers(fields["internal_count"])
    arrays["n_rows"][leaf_at] = _numbers(fields["leaf_count"])
    arrays["value"][leaf_at] = _numbers(fields["leaf_value"])

    decision = _wholes(fields["decision_type"])
    is_nominal = (decision & _IS_NOMINAL) > 0
    threshold = _numbers(fields["threshold"])
    endless = np.where(threshold >= _ENDLESS, ONLY_MISSING, threshold)
    arrays["threshold"][split_at] = np.where(is_nominal, 0.0, endless)
    arrays["missing"][split_at] = _missing(
        decision, arrays["n_rows"][first], arrays["n_rows"][first + 1]
    )
    tables = _tables(fields, arrays["attribute"][split_at], is_nominal, threshold, n_categories)
    arrays["branches"] = np.concatenate([np.empty(0, dtype=np.int32), *tables])
    begins = np.cumsum([0, *map(len, tables)])[:-1]
    arrays["table"][split_at[is_nominal]] = begins
    return arrays


def _place_nodes(left: list[int], right: list[int]) -> tuple[Places, Places, Places]:
    """Return the places of splits and leaves, depth first, and of the first child of each split.

    LightGBM numbers splits, and leaves apart, by their complements.
    """
    split_at, leaf_at = [0] * len(left), [0] * (len(left) + 1)
    first, end, pending = [0] * len(left), 1, [0]
    while pending:
        split = pending.pop()
        first[split] = end
        # The first child is looked at first.
        for child, place in ((right[split], end + 1), (left[split], end)):
            if child < 0:
                leaf_at[~child] = place
            else:
                split_at[child] = place
                pending.append(child)
        end += 2
    return np.array(split_at), np.array(leaf_at), np.array(first)


def _behind(tree: dict[str, Any], column: int, floor: float, n_rows: int) -> dict[str, Any]:
    """Put two nodes before a tree: a split, and the leaf to which it sends low values."""
    found = {
        name: values if name == "branches" else np.concatenate([np.zeros(2, values.dtype), values])
        for name, values in tree.items()
    }
    is_split = tree["first_child"] >= 0
    found["first_child"][2:][is_split] += 2
    for name, values in {
        "attribute": (column, -1),
        "first_child": (1, -1),
        "n_children": (2, 0),
        "table": (-1, -1),
        "threshold": (floor, 0.0),
        "n_rows": (n_rows, n_rows - tree["n_rows"][0]),
    }.items():
        found[name][:2] = values
    return found


def _missing(
    decision: npt.NDArray[np.int64], first: Floats, second: Floats
) -> npt.NDArray[np.int64]:
    """Return the child of missing values: as was learned, or else the one with more rows.

    `first` and `second` are the rows of the children.
    """
    is_first = (decision & _MISSING_IS_FIRST) > 0
    is_known = (decision & _MISSING_TYPE) == _KNOWS_MISSING
    learned = np.where(is_known, ~is_first, second > first)
    # Categories: all that are not listed go to the second child, missing ones with them.
    return np.where((decision & _IS_NOMINAL) > 0, 1, learned).astype(np.int64)


def _tables(
    fields: dict[str, str],
    attribute: npt.NDArray[np.int32],
    is_nominal: npt.NDArray[np.bool_],
    threshold: Floats,
    n_categories: Indices,
) -> list[npt.NDArray[np.int32]]:
    """Return the children of the categories of every nominal split: the listed go to the first."""
    if not is_nominal.any():
        return []
    bounds, words = _wholes(fields["cat_boundaries"]), _wholes(fields["cat_threshold"])
    tables = []
    for split in np.flatnonzero(is_nominal):
        number = int(threshold[split])
        listed = words[bounds[number] : bounds[number + 1]]
        bits = (listed[:, np.newaxis] >> np.arange(_WORD)) & 1
        count = int(n_categories[attribute[split]])
        table = np.ones(count, dtype=np.int32)
        found = np.flatnonzero(bits.ravel())
        table[found[found < count]] = 0
        tables.append(table)
    return tables


def _wholes(text: str) -> npt.NDArray[np.int64]:
    return np.array(text.split(), dtype=np.int64)


def _numbers(text: str) -> Floats:
    return np.array(text.split(), dtype=np.float64)
