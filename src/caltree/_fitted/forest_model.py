"""A fitted forest as plain arrays: the nodes of all its trees in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.attributes import Attributes
from .model import (
    Arrays,
    Floats,
    Indices,
    check_lengths,
    check_split,
    check_weights,
    remainder,
    shares_of_gain,
    weight_so_far,
)
from .storage import checked_numbers

_LARGEST_PARAMETER = 1e200
_PER_NODE: dict[str, tuple[type, int]] = {
    "attribute": (np.int32, 1),
    "threshold": (np.float64, 1),
    "first_child": (np.int32, 1),
    "n_children": (np.int32, 1),
    "missing": (np.int32, 1),
    "missing_rows": (np.float64, 1),
    "table": (np.int32, 1),
    "n_rows": (np.float64, 1),
    "gain": (np.float64, 1),
    "weight": (np.float64, 1),
    "parameters": (np.float64, 3),
}
_OTHERS: dict[str, tuple[type, int]] = {
    "branches": (np.int32, 1),
    "roots": (np.int32, 1),
}


@dataclass(frozen=True, eq=False)
class ForestModel(Arrays):
    """Trees and their node models, structure of arrays.

    The arrays of the nodes are those of `TreeModel`; only what is different
    is explained here.

    Parameters
    ----------
    attribute : ndarray of int32
        Numbers beyond those of the attributes are those of scores.
    gain : ndarray of float64
        What the split gained in squared error on the rows that the tree had not seen.
    parameters : ndarray of shape (n_nodes, n_states, 1 + k)
        The node models: intercept and slopes of each log-odds over its own scores. Two classes
        have one log-odds, of the second, and it has all scores; others have one a class, and its
        scores are those of the class.
    roots : ndarray of int32
        The first node of every tree.
    """

    attributes: Attributes
    attribute: Indices
    threshold: Floats
    first_child: Indices
    n_children: Indices
    missing: Indices
    missing_rows: Floats
    table: Indices
    n_rows: Floats
    gain: Floats
    weight: Floats
    parameters: Floats
    branches: Indices
    roots: Indices

    @classmethod
    def of_trees(
        cls,
        attributes: Attributes,
        trees: Sequence[dict[str, Any]],
        n_states: int,
    ) -> ForestModel:
        """Put finished trees in a row."""
        n_nodes = np.cumsum([0, *(len(tree["attribute"]) for tree in trees)])
        n_branches = np.cumsum([0, *(len(tree["branches"]) for tree in trees)])
        joined: dict[str, list[Any]] = {name: [] for name in (*_PER_NODE, "branches")}
        for tree, node, branch in zip(trees, n_nodes, n_branches, strict=False):
            moved = {
                **tree,
                "first_child": np.where(tree["first_child"] < 0, -1, tree["first_child"] + node),
                "table": np.where(tree["table"] < 0, -1, tree["table"] + branch),
                "parameters": tree["coefficients"],
            }
            for name, parts in joined.items():
                parts.append(moved[name])
        arrays = {name: np.concatenate(parts) for name, parts in joined.items()}
        n_all = int(n_nodes[-1])
        arrays["parameters"] = arrays["parameters"].reshape(n_all, n_states, -1)
        for name in ("first_child", "table"):
            arrays[name] = arrays[name].astype(np.int32)
        return cls(attributes, **arrays, roots=n_nodes[:-1].astype(np.int32))

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def n_states(self) -> int:
        """Number of log-odds of a row: one for two classes, otherwise one a class."""
        return int(self.parameters.shape[1])

    @property
    def n_scores(self) -> int:
        """Number of score columns."""
        return self.n_states * (int(self.parameters.shape[2]) - 1)

    @property
    def share_of_scores(self) -> float:
        """What the scores as they are count for."""
        return remainder(float(self._weight_of_trees.sum()))

    @property
    def importances(self) -> Floats:
        """The share of every attribute in what the splits gained on out-of-bag rows.

        A split counts for as much as the nodes below it.
        """
        below = self._weight_of_trees[self._tree_of_nodes] - self._weight_so_far
        return shares_of_gain(self.attribute, self.gain * below, len(self.attributes.columns))

    def probabilities(self, matrix: Floats, log_odds: Floats, offset: Floats | None) -> Floats:
        """What the nodes on the ways of each row say, one column a class."""
        found = self._predictor.add(matrix, log_odds, offset)
        if self.n_states > 1:
            return found
        return np.hstack([self._weight_of_trees.sum() - found, found])

    @property
    def _tree_of_nodes(self) -> npt.NDArray[np.intp]:
        return np.searchsorted(self.roots, np.arange(len(self.attribute)), side="right") - 1

    @cached_property
    def _weight_so_far(self) -> Floats:
        return weight_so_far(self)

    @cached_property
    def _weight_of_trees(self) -> Floats:
        # The last node of a tree has no children.
        last = np.append(self.roots[1:], len(self.attribute)) - 1
        return np.asarray(self._weight_so_far[last])

    @cached_property
    def _predictor(self) -> _core.ForestPredictor:
        return _core.ForestPredictor(
            self.attribute,
            self.threshold,
            self.first_child,
            self.n_children,
            self.missing,
            self.table,
            self.branches,
            self.attributes.n_categories,
            self.weight,
            self.parameters,
            self.roots,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the forest as lists and numbers that JSON keeps exactly."""
        arrays = {name: getattr(self, name).tolist() for name in (*_PER_NODE, *_OTHERS)}
        return {"attributes": self.attributes.to_dict(), **arrays}

    @classmethod
    def from_dict(cls, stored: Any) -> ForestModel:
        """Rebuild a forest from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"attributes", *_PER_NODE, *_OTHERS}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(f"a stored forest must have exactly the keys {sorted(keys)}")
        arrays = {
            name: checked_numbers(stored, name, dtype, ndim, may_be_empty=name == "branches")
            for name, (dtype, ndim) in {**_PER_NODE, **_OTHERS}.items()
        }
        forest = cls(Attributes.from_dict(stored["attributes"]), **arrays)
        forest._check()
        return forest

    def _check(self) -> None:
        """Every tree must be whole, and the trees must fill the arrays."""
        check_lengths({name: getattr(self, name) for name in _PER_NODE})
        n_attributes = len(self.attributes.columns)
        highest = int(self.attribute.max())
        if self.attribute.min() < -1 or highest >= n_attributes + self.n_scores:
            raise ValueError("a stored forest splits on an attribute or score it lacks")
        if np.abs(self.parameters).max() > _LARGEST_PARAMETER:
            raise ValueError("a stored forest has parameters beyond any that fitting can give")
        if self.parameters.shape[2] < 2 or self.n_states == 2:
            raise ValueError("a stored forest has node models of no known shape")
        children = [int(root) for root in self.roots]
        if children[0] != 0 or (np.diff(self.roots) <= 0).any():
            raise ValueError("roots of a stored forest must rise from 0")
        ends = np.append(self.roots[1:], len(self.attribute))[self._tree_of_nodes]
        for node in np.flatnonzero(self.attribute >= 0):
            first = int(self.first_child[node])
            if first <= node or first + int(self.n_children[node]) > ends[node]:
                raise ValueError(f"node {node} of a stored forest has children it cannot have")
            children += range(first, first + int(self.n_children[node]))
            check_split(self, int(node), n_attributes)
        if sorted(children) != list(range(len(self.attribute))):
            raise ValueError("a stored forest has nodes that do not belong to exactly one tree")
        check_weights(self, self.roots.tolist())
