"""A fitted tree as plain arrays; everything else (text, JSON, prediction) reads those."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.attributes import Attributes
from .storage import checked_numbers

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]

# Shares that differ by less than this are equal.
_ROUNDING = 1e-9
# Larger coefficients cannot come from fitting; with scores of at most 1e100 these stay finite.
_LARGEST_COEFFICIENT = 1e200

_DTYPES: dict[str, tuple[type, int]] = {
    "attribute": (np.int32, 1),
    "threshold": (np.float64, 1),
    "first_child": (np.int32, 1),
    "n_children": (np.int32, 1),
    "missing": (np.int32, 1),
    "missing_rows": (np.float64, 1),
    "table": (np.int32, 1),
    "branches": (np.int32, 1),
    "n_rows": (np.float64, 1),
    "gain": (np.float64, 1),
    "weight": (np.float64, 1),
    "coefficients": (np.float64, 3),
}


@dataclass(frozen=True, eq=False)
class Arrays:
    """Fitted arrays; what the native core makes of them is neither pickled nor copied."""

    def __getstate__(self) -> dict[str, Any]:
        """The arrays alone: what the native core makes of them is made again."""
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}


@dataclass(frozen=True, eq=False)
class TreeModel(Arrays):
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
        The children stand side by side. -1 in a leaf.
    n_children : ndarray of int32
        How many there are: two for a numeric attribute.
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
        What the split gained in deviance; 0 where splits look at something else.
    weight : ndarray of float64
        What the node model counts for in the probabilities of the rows that pass. On every way
        from the root to a leaf the sum is the same; what it lacks of 1 is left to the scores.
    coefficients : ndarray of shape (n_nodes, n_classes, 1 + n_scores)
        The node models: intercept and slopes over the scores, one row a class.
    offset : bool
        Whether the node models correct what the scores say, which is to be added to them.
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
    weight: Floats
    coefficients: Floats
    offset: bool = False

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

    @property
    def depth(self) -> int:
        """Number of splits on the longest way from the root to a leaf."""
        depth = np.zeros(self.n_nodes, dtype=np.intp)
        for node in np.flatnonzero(self.attribute >= 0):
            first = self.first_child[node]
            depth[first : first + self.n_children[node]] = depth[node] + 1
        return int(depth.max())

    def children(self, node: int) -> range:
        """The children of a node; none of a leaf."""
        first, is_split = int(self.first_child[node]), self.attribute[node] >= 0
        return range(first, first + int(self.n_children[node])) if is_split else range(0)

    def apply(self, matrix: Floats) -> Indices:
        """The leaf of every row of an encoded table."""
        return self._predictor.apply(matrix)

    def probabilities(
        self, matrix: Floats, log_odds: Floats, offset: Floats | None = None
    ) -> Floats:
        """What the nodes on the way of each row say, one column a class."""
        used = offset if self.offset else None
        return self._predictor.probabilities(matrix, log_odds, used)

    @property
    def share_of_scores(self) -> float:
        """What the scores as they are count for."""
        return remainder(float(self._weight_so_far[self.attribute < 0][0]))

    @property
    def importances(self) -> Floats:
        """The share of every attribute in what the splits gained; 0 where nothing is split.

        A split counts for as much as the nodes below it.
        """
        below = 1.0 - self.share_of_scores - self._weight_so_far
        return shares_of_gain(self.attribute, self.gain * below, len(self.attributes.columns))

    @cached_property
    def _weight_so_far(self) -> Floats:
        return weight_so_far(self)

    @cached_property
    def _predictor(self) -> _core.Predictor:
        return _core.Predictor(
            self.attribute,
            self.threshold,
            self.first_child,
            self.n_children,
            self.missing,
            self.table,
            self.branches,
            self.attributes.n_categories,
            self.weight,
            self.coefficients,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the tree as lists and numbers that JSON keeps exactly."""
        arrays = {name: getattr(self, name).tolist() for name in _DTYPES}
        return {"attributes": self.attributes.to_dict(), **arrays, "offset": self.offset}

    @classmethod
    def from_dict(cls, stored: Any) -> TreeModel:
        """Rebuild a tree from :meth:`to_dict`; ValueError on anything malformed."""
        keys = {"attributes", *_DTYPES, "offset"}
        if not isinstance(stored, dict) or set(stored) != keys:
            raise ValueError(f"a stored tree must have exactly the keys {sorted(keys)}")
        if not isinstance(stored["offset"], bool):
            raise ValueError("offset of a stored tree must be true or false")
        arrays = {
            name: checked_numbers(stored, name, dtype, ndim, may_be_empty=name == "branches")
            for name, (dtype, ndim) in _DTYPES.items()
        }
        tree = cls(Attributes.from_dict(stored["attributes"]), **arrays, offset=stored["offset"])
        tree._check()
        return tree

    def _check(self) -> None:
        """Every inner node must have its children, each child one parent, and nothing more."""
        check_lengths({name: getattr(self, name) for name in _DTYPES if name != "branches"})
        if self.attribute.min() < -1 or self.attribute.max() >= len(self.attributes.columns):
            raise ValueError("a stored tree splits on an attribute it lacks")
        if self.n_classes < 2 or self.n_scores < 1:
            raise ValueError("a stored tree needs at least two classes and one score")
        if np.abs(self.coefficients).max() > _LARGEST_COEFFICIENT:
            raise ValueError("a stored tree has coefficients beyond any that fitting can give")
        children: list[int] = []
        for node in np.flatnonzero(self.attribute >= 0):
            first = int(self.first_child[node])
            if first <= node or first + int(self.n_children[node]) > self.n_nodes:
                raise ValueError(f"node {node} of a stored tree has children it cannot have")
            children += range(first, first + int(self.n_children[node]))
            check_split(self, int(node), len(self.attributes.columns))
        if sorted(children) != list(range(1, self.n_nodes)):
            raise ValueError("a stored tree has nodes that are not the child of exactly one node")
        check_weights(self, [0])


def check_lengths(arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays that do not have one entry a node."""
    n_nodes = len(next(iter(arrays.values())))
    for name, array in arrays.items():
        if len(array) != n_nodes:
            raise ValueError(
                f"a stored tree has {n_nodes} nodes, but {len(array)} entries in {name}"
            )


def check_split(model: Any, node: int, n_attributes: int) -> None:
    """Refuse a split that sends some value to no child."""
    attribute, count = int(model.attribute[node]), int(model.n_children[node])
    columns = model.attributes.columns
    categories = columns[attribute].categories if attribute < n_attributes else None
    targets = [int(model.missing[node])]
    if categories:
        begin = int(model.table[node])
        if begin < 0 or begin + len(categories) > len(model.branches):
            raise ValueError(f"node {node} of a stored tree has no table of its categories")
        targets += model.branches[begin : begin + len(categories)].tolist()
    elif count != 2:
        raise ValueError(f"node {node} of a stored tree splits numbers into {count} parts")
    if min(targets) < 0 or max(targets) >= count:
        raise ValueError(f"node {node} of a stored tree sends rows to a child it lacks")


def weight_so_far(model: Any) -> Floats:
    """The weight of every node, together with that of all nodes above it."""
    inner = np.flatnonzero(model.attribute >= 0)
    count = model.n_children[inner]
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    above = np.full(len(model.attribute), -1)
    above[np.repeat(model.first_child[inner], count) + within] = np.repeat(inner, count)
    total = model.weight.copy()
    # Each round adds what twice as many nodes above have gathered.
    while (reached := above >= 0).any():
        total[reached] += total[above[reached]]
        above[reached] = above[above[reached]]
    return np.asarray(total)


def check_weights(model: Any, roots: Sequence[int]) -> None:
    """Refuse trees that do not count for the same on all ways from the root to a leaf."""
    if model.weight.min() < 0:
        raise ValueError("weight of a stored tree must not be negative")
    leaves = model.attribute < 0
    totals = weight_so_far(model)[leaves]
    tree = np.searchsorted(roots, np.flatnonzero(leaves), side="right") - 1
    first = totals[np.searchsorted(tree, np.arange(len(roots)))]
    if np.abs(totals - first[tree]).max() > _ROUNDING or first.sum() > 1.0 + _ROUNDING:
        raise ValueError(
            "weight of a stored tree must have the same sum on every way from the root to a leaf, "
            "and all trees together no more than 1"
        )


def remainder(total: float) -> float:
    """What a sum of shares lacks of 1, but for rounding."""
    rest = 1.0 - total
    return rest if rest > _ROUNDING else 0.0


def shares_of_gain(attribute: Indices, gain: Floats, n_attributes: int) -> Floats:
    """The share of every attribute in the gains of the splits on attributes, losses apart."""
    on_attribute = (attribute >= 0) & (attribute < n_attributes)
    sums = np.bincount(attribute[on_attribute], gain[on_attribute], minlength=n_attributes)
    sums = np.maximum(sums, 0.0)
    total = float(sums.sum())
    return np.asarray(sums / total if total > 0 else sums, dtype=np.float64)
