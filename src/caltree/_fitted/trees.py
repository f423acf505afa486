"""The structure of fitted trees as plain arrays: where rows go, without the node models."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .json_values import is_number
from .tree_storage import (
    STRUCTURE_KEYS,
    find_parents,
    read_structure,
    store_structure,
    sum_over_children,
)

# The threshold of a split that divides missing values from all others.
ONLY_MISSING = _core.only_missing
# Weights that differ by less than this are equal.
WEIGHT_ROUNDING = 1e-9
# Larger parameters cannot come from fitting; with scores of at most 1e100 these stay finite.
LARGEST_PARAMETER = 1e200

ArrayTypes: TypeAlias = dict[str, tuple[type, int]]
"""The types and dimensions of arrays, by name."""

# Of the structure, one entry per node.
STRUCTURE: ArrayTypes = {
    "attribute": (np.int32, 1),
    "threshold": (np.float64, 1),
    "first_child": (np.int32, 1),
    "n_children": (np.int32, 1),
    "missing": (np.int32, 1),
    "missing_rows": (np.float64, 1),
    "table": (np.int32, 1),
    "n_rows": (np.float64, 1),
    "gain": (np.float64, 1),
}


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays in a dataclass; what the native core makes of them is neither pickled nor copied."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: caches are made again."""
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}


@dataclass(frozen=True, eq=False)
class Trees(Arrays):
    """The structure of one or many trees, structure of arrays: one entry per node.

    The nodes of a tree stand one after the other, depth first: the root, its children, all nodes
    below the first child, then those below the next one.

    Parameters
    ----------
    attributes : Attributes
        The attributes the trees split on.
    attribute : ndarray of int32
        The attribute that splits the node; -1 in a leaf. Numbers beyond those of the attributes
        are those of scores.
    threshold : ndarray of float64
        Rows not above it go to the first child, the others to the second (numeric attributes).
    first_child : ndarray of int32
        The first of the children, which stand side by side; -1 in a leaf.
    n_children : ndarray of int32
        The number of children: two for a numeric attribute.
    missing : ndarray of int32
        The child, counted from the first, to which a missing value goes.
    missing_rows : ndarray of float64
        Total weight of the training rows from which that was learned.
    table : ndarray of int32
        Where the categories of a nominal attribute begin in `branches`; -1 otherwise.
    branches : ndarray of int32
        By category: the child, counted from the first.
    n_rows : ndarray of float64
        Total weight of the training rows that reached the node.
    gain : ndarray of float64
        The gain of the split; 0 where it was not measured.
    roots : ndarray of int32
        The first node of every tree.
    parameters : ndarray of shape (..., n_states, width)
        Logistic models, one per node or one for all rows: intercept and slopes of each log-odds.
        Two classes have one log-odds, of the second class; more classes have one each. The slopes
        are over all scores or, where these are many, over the scores of the log-odds' own class:
        see `seen_scores`.
    n_scores : int
        The number of scores, as node models see them.
    offset : bool
        Whether the models correct the log-odds of the uncalibrated probabilities, which are to be
        added to theirs.
    """

    attributes: Attributes
    attribute: Indices
    threshold: Floats
    first_child: Indices
    n_children: Indices
    missing: Indices
    missing_rows: Floats
    table: Indices
    branches: Indices
    n_rows: Floats
    gain: Floats
    roots: Indices
    parameters: Floats
    n_scores: int
    offset: bool

    PER_NODE: ClassVar[ArrayTypes]
    """The arrays that have one entry per node."""
    NODE_KEYS: ClassVar[frozenset[str]]
    """What is stored of what nodes say."""
    NUMBERS: ClassVar[tuple[str, ...]] = ()
    """Further numbers."""

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all trees."""
        return len(self.attribute)

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return int(np.count_nonzero(self.attribute < 0))

    @property
    def n_states(self) -> int:
        """Number of log-odds of a row: one for two classes, otherwise one per class."""
        return int(self.parameters.shape[-2])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return max(2, self.n_states)

    @property
    def depth(self) -> int:
        """Number of splits on the longest path from a root to a leaf."""
        return int(self.level.max())

    @property
    def seen_scores(self) -> npt.NDArray[np.intp]:
        """The scores that the slopes of each log-odds belong to: n_states x (width - 1)."""
        n_seen = int(self.parameters.shape[-1]) - 1
        if n_seen == self.n_scores:
            return np.tile(np.arange(self.n_scores), (self.n_states, 1))
        return np.arange(self.n_scores).reshape(n_seen, self.n_states).T

    def dense_parameters(self, parameters: Floats) -> Floats:
        """Return one logistic model with a slope for every score: n_states x (1 + n_scores)."""
        dense = np.zeros((self.n_states, 1 + self.n_scores))
        dense[:, 0] = parameters[:, 0]
        states = np.arange(self.n_states)[:, np.newaxis]
        dense[states, 1 + self.seen_scores] = parameters[:, 1:]
        return dense

    def children(self, node: int) -> range:
        """Return the children of a node; none of a leaf."""
        first, is_split = int(self.first_child[node]), self.attribute[node] >= 0
        return range(first, first + int(self.n_children[node])) if is_split else range(0)

    def branches_of(self, node: int) -> Indices:
        """Return the child of each category of a nominal split, counted from the first."""
        begin, column = int(self.table[node]), self.attributes.columns[self.attribute[node]]
        return self.branches[begin : begin + len(column.categories or ())]

    def sum_over_leaves(self, in_leaf: npt.ArrayLike) -> Floats:
        """Return, for every node, the sum over the leaves below it, or of the leaf itself."""
        return sum_over_children(in_leaf, self.parent)

    @abstractmethod
    def probabilities(self, matrix: Floats, scores: Floats, offset: Floats | None = None) -> Floats:
        """Return probabilities, less the share of the uncalibrated ones.

        Parameters
        ----------
        matrix : ndarray
            The encoded attributes.
        scores : ndarray
            The scores as node models see them, Fortran-ordered.
        offset : ndarray, optional
            The uncalibrated log-odds, Fortran-ordered; used if the models correct them.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, less the share of the uncalibrated ones.
        """

    def effective_rows(self, matrix: Floats, scores: Floats) -> Floats:
        """Return the number of training rows that each row's probabilities are based on: all."""
        del scores
        return np.full(len(matrix), max(float(self.n_rows[0]), 1.0))

    @property
    @abstractmethod
    def uncalibrated_weight(self) -> float:
        """The weight of the uncalibrated probabilities."""

    @property
    @abstractmethod
    def weight_below(self) -> Floats:
        """The weight of what is below every node, on any path from it to a leaf."""

    @property
    def splits_attributes(self) -> bool:
        """Whether any tree splits on an attribute."""
        return bool(self._on_attribute.any())

    @property
    def _on_attribute(self) -> npt.NDArray[np.bool_]:
        """Whether each node is split on an attribute."""
        return (self.attribute >= 0) & (self.attribute < len(self.attributes.columns))

    @property
    def importances(self) -> Floats:
        """The share of every attribute in the gain of the splits; 0 where nothing is split.

        A split counts for as much as the nodes below it. Splits on scores are left out. All are
        NaN where the gain was not measured, as in a published tree that is not pruned by
        cross-validation.
        """
        n_attributes = len(self.attributes.columns)
        on_attribute = self._on_attribute
        if on_attribute.any() and not self.gain[on_attribute].any():
            return np.full(n_attributes, np.nan)
        gain = (self.gain * self.weight_below)[on_attribute]
        sums = np.bincount(self.attribute[on_attribute], gain, minlength=n_attributes)
        sums = np.maximum(sums, 0.0)
        total = float(sums.sum())
        return np.asarray(sums / total if total > 0 else sums, dtype=np.float64)

    @cached_property
    def parent(self) -> npt.NDArray[np.intp]:
        """The parent of every node; -1 of a root."""
        return find_parents(self.attribute, self.first_child, self.n_children)

    @property
    def level(self) -> npt.NDArray[np.intp]:
        """The number of splits above every node."""
        level = np.zeros(self.n_nodes, dtype=np.intp)
        for node in np.flatnonzero(self.attribute >= 0):
            first = self.first_child[node]
            level[first : first + self.n_children[node]] = level[node] + 1
        return level

    @property
    def tree_of_nodes(self) -> npt.NDArray[np.intp]:
        """The number of the tree of every node."""
        return np.searchsorted(self.roots, np.arange(self.n_nodes), side="right") - 1

    def to_dict(self) -> dict[str, Any]:
        """Return the model as lists and numbers that JSON keeps exactly."""
        return {
            "attributes": self.attributes.to_dict(),
            **store_structure(self),
            **self._store_nodes(),
            **{name: getattr(self, name) for name in self.NUMBERS},
            "n_scores": self.n_scores,
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Rebuild a model from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"attributes", *STRUCTURE_KEYS, *cls.NODE_KEYS, *cls.NUMBERS, "n_scores", "offset"}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(f"a stored model must have exactly the keys {sorted(keys)}")
        if not isinstance(stored["offset"], bool):
            raise ValueError("offset of a stored model must be true or false")
        if type(stored["n_scores"]) is not int or stored["n_scores"] < 1:
            raise ValueError("n_scores of a stored model must be a positive whole number")
        for name in cls.NUMBERS:
            if not is_number(stored[name]):
                raise ValueError(f"{name} of a stored model must be a number")
        attributes = Attributes.from_dict(stored["attributes"])
        structure = read_structure(stored, attributes, stored["n_scores"])
        numbers: dict[str, Any] = {name: float(stored[name]) for name in cls.NUMBERS}
        numbers |= {name: stored[name] for name in ("n_scores", "offset")}
        model = cls(attributes, **structure, **cls._read_nodes(stored, structure), **numbers)
        model._check_shapes()
        model._check_weights()
        return model

    @abstractmethod
    def _store_nodes(self) -> dict[str, Any]:
        """Return what the nodes say as lists and numbers, by `NODE_KEYS`."""

    @classmethod
    @abstractmethod
    def _read_nodes(cls, stored: dict[str, Any], structure: dict[str, Any]) -> dict[str, Any]:
        """Return the arrays of what the nodes say."""

    def _check_shapes(self) -> None:
        """Refuse models of scores that are not there, and beyond what can be computed."""
        n_seen = int(self.parameters.shape[-1]) - 1
        if self.n_states == 2 or self.n_scores not in (n_seen, n_seen * self.n_states):
            raise ValueError("a stored model has node models of no known shape")
        if np.abs(self.parameters).max() > LARGEST_PARAMETER:
            raise ValueError("a stored model has parameters beyond any that fitting can give")

    @abstractmethod
    def _check_weights(self) -> None:
        """Refuse weights that no fit can give."""


def join_trees(trees: Sequence[dict[str, Any]], types: ArrayTypes) -> dict[str, Any]:
    """Put the arrays of trees one after the other; children and tables move along."""
    columns: dict[str, list[Any]] = {name: [] for name in types}
    n_nodes = n_branches = 0
    for tree in trees:
        first_child, table = tree["first_child"], tree["table"]
        moved = {
            **tree,
            "first_child": np.where(first_child < 0, -1, first_child + np.int32(n_nodes)),
            "table": np.where(table < 0, -1, table + np.int32(n_branches)),
        }
        for name, parts in columns.items():
            parts.append(moved[name])
        n_nodes += len(first_child)
        n_branches += len(tree["branches"])
    return {
        name: np.concatenate(parts).astype(types[name][0], copy=False)
        for name, parts in columns.items()
    }
