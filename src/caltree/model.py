"""A fitted tree as plain arrays; everything else (text, JSON, prediction) reads those."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .attributes import Attributes
from .storage import checked_numbers

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]

# Larger coefficients cannot come from fitting; with scores of at most 1e100 these stay finite.
_LARGEST_COEFFICIENT = 1e200


@dataclass(frozen=True, eq=False)
class TreeModel:
    """A tree and its node models, structure of arrays: one entry a node, the root first.

    Parameters
    ----------
    attributes : Attributes
        The attributes the tree splits on.
    attribute : ndarray of int32
        Which attribute splits the node; -1 in a leaf.
    threshold : ndarray of float64
        Rows not above it go to the first child, the others to the second (numeric attributes).
    first_child : ndarray of int32
        The children stand side by side: two for a numeric attribute, one a category for a
        nominal one. -1 in a leaf.
    n_rows : ndarray of float64
        Total weight of the training rows that reached the node.
    coefficients : ndarray of shape (n_nodes, n_classes, 1 + n_scores)
        The node models: intercept and slopes over the scores, one row a class.
    """

    attributes: Attributes
    attribute: Indices
    threshold: Floats
    first_child: Indices
    n_rows: Floats
    coefficients: Floats

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.attribute)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.attribute < 0))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.coefficients.shape[1])

    @property
    def n_scores(self) -> int:
        """Number of score columns."""
        return int(self.coefficients.shape[2]) - 1

    @cached_property
    def n_children(self) -> Indices:
        """Number of children of each node."""
        n_categories = self.attributes.n_categories
        branches = np.where(n_categories > 0, n_categories, 2)
        return np.where(self.attribute < 0, 0, branches[self.attribute]).astype(np.int32)

    @property
    def depth(self) -> int:
        """Number of splits on the longest way from the root to a leaf."""
        depth = np.zeros(self.n_nodes, dtype=np.intp)
        for node in np.flatnonzero(self.attribute >= 0):
            first = self.first_child[node]
            depth[first : first + self.n_children[node]] = depth[node] + 1
        return int(depth.max())

    def apply(self, matrix: Floats) -> Indices:
        """The leaf of every row of an encoded table."""
        return self._predictor.apply(matrix)

    def probabilities(self, matrix: Floats, log_odds: Floats) -> Floats:
        """Calibrated probabilities, one column a class."""
        return self._predictor.probabilities(matrix, log_odds)

    @cached_property
    def _predictor(self) -> _core.Predictor:
        return _core.Predictor(
            self.attribute,
            self.threshold,
            self.first_child,
            self.coefficients,
            self.attributes.n_categories,
            self.attributes.fills,
        )

    def __getstate__(self) -> dict[str, Any]:
        """The arrays alone: what the native core makes of them is made again."""
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as lists and numbers that JSON keeps exactly."""
        return {
            "attributes": self.attributes.to_dict(),
            "attribute": self.attribute.tolist(),
            "threshold": self.threshold.tolist(),
            "first_child": self.first_child.tolist(),
            "n_rows": self.n_rows.tolist(),
            "coefficients": self.coefficients.tolist(),
        }

    @classmethod
    def from_dict(cls, stored: Any) -> TreeModel:
        """Rebuild a tree from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"attributes", "attribute", "threshold", "first_child", "n_rows", "coefficients"}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(f"a stored tree must have exactly the keys {sorted(keys)}")
        tree = cls(
            Attributes.from_dict(stored["attributes"]),
            checked_numbers(stored, "attribute", np.int32, 1),
            checked_numbers(stored, "threshold", np.float64, 1),
            checked_numbers(stored, "first_child", np.int32, 1),
            checked_numbers(stored, "n_rows", np.float64, 1),
            checked_numbers(stored, "coefficients", np.float64, 3),
        )
        tree._check()
        return tree

    def _check(self) -> None:
        """Every inner node must have its children, each child one parent, and nothing more."""
        lengths = {name: len(getattr(self, name)) for name in ("threshold", "first_child")}
        lengths |= {"n_rows": len(self.n_rows), "coefficients": len(self.coefficients)}
        for name, length in lengths.items():
            if length != self.n_nodes:
                raise ValueError(
                    f"a stored tree has {self.n_nodes} nodes, but {length} entries in {name}"
                )
        if self.attribute.min() < -1 or self.attribute.max() >= len(self.attributes.columns):
            raise ValueError("a stored tree splits on an attribute it lacks")
        if self.n_classes < 2 or self.n_scores < 1:
            raise ValueError("a stored tree needs at least two classes and one score")
        if np.abs(self.coefficients).max() > _LARGEST_COEFFICIENT:
            raise ValueError("a stored tree has coefficients beyond any that fitting can give")
        children: list[int] = []
        for node in np.flatnonzero(self.attribute >= 0):
            first = int(self.first_child[node])
            if first <= node:
                raise ValueError(f"node {node} of a stored tree has children before itself")
            children += range(first, first + int(self.n_children[node]))
        if sorted(children) != list(range(1, self.n_nodes)):
            raise ValueError("a stored tree has nodes that are not the child of exactly one node")
