"""A fitted tree or forest as plain arrays; prediction, text, JSON, SQL and ONNX read those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .._inputs.scores import is_offset
from .json_values import read_numbers

# The threshold of a split that divides missing values from all others.
ONLY_MISSING = _core.only_missing
# Weights that differ by less than this are equal.
WEIGHT_ROUNDING = 1e-9
# Larger parameters cannot come from fitting; with scores of at most 1e100 these stay finite.
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
_ARRAYS = {**_PER_NODE, "branches": (np.int32, 1), "roots": (np.int32, 1)}
_KEYS = {"attributes", *_ARRAYS, "n_scores", "offset"}


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays in a dataclass; what the native core makes of them is neither pickled nor copied."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields alone: caches are made again."""
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}


@dataclass(frozen=True, eq=False)
class FittedModel(Arrays):
    """Trees and their node models, structure of arrays: one entry a node.

    A calibration tree has one root, a forest many. The nodes of a tree stand one after the other,
    the root first, children after their parents.

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
        The gain of the split on rows that the tree had not seen, or, of a tree that was grown
        without holding any out, in the deviance of its training rows; 0 where it was not measured.
    weight : ndarray of float64
        The weight of the node model in the probabilities of the rows that pass. On every way from
        a root to a leaf the sum is the same. What the sum over all trees lacks of 1 is the weight
        of the uncalibrated probabilities.
    parameters : ndarray of shape (n_nodes, n_states, width)
        The node models: intercept and slopes of each log-odds. Two classes have one log-odds, of
        the second class; more classes have one each. The slopes are over all scores or, where
        these are many, over the scores of the log-odds' own class: see `seen_scores`.
    roots : ndarray of int32
        The first node of every tree.
    n_scores : int
        The number of scores, as node models see them.
    offset : bool
        Whether the node models correct the log-odds of the uncalibrated probabilities, which are
        to be added to theirs.
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
    parameters: Floats
    roots: Indices
    n_scores: int
    offset: bool

    @classmethod
    def of_trees(
        cls,
        attributes: Attributes,
        trees: Sequence[dict[str, Any]],
        *,
        n_classes: int,
        n_scores: int,
        corrects_scores: bool,
    ) -> FittedModel:
        """Put trees that the core has grown one after the other.

        Their node models have the parameters of each log-odds, or, as the published ones of two
        classes, those of each class. `n_scores` are the scores as node models see them.
        """
        arrays = trees[0] if len(trees) == 1 else _join(trees)
        n_states = 1 if n_classes == 2 else n_classes
        parameters = arrays["parameters"]
        if n_states == 1 and parameters.shape[1] == 2 * (1 + n_scores):
            # Of two classes the difference is all that counts.
            parameters = parameters[:, 1 + n_scores :] - parameters[:, : 1 + n_scores]
        parameters = parameters.reshape(len(parameters), n_states, -1)
        is_score = corrects_scores and is_offset(n_classes, n_scores)
        if is_score:
            # The first score is the log-odds that is corrected: a slope of 1 adds it.
            parameters[:, :, 1] += 1.0
        sizes = [len(tree["attribute"]) for tree in trees]
        others = {
            "parameters": parameters,
            "roots": np.cumsum([0, *sizes[:-1]], dtype=np.int32),
            "n_scores": n_scores,
            "offset": corrects_scores and not is_score,
        }
        return cls(attributes, **{**arrays, **others})

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
        """Number of log-odds of a row: one for two classes, otherwise one a class."""
        return int(self.parameters.shape[1])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return max(2, self.n_states)

    @property
    def depth(self) -> int:
        """Number of splits on the longest way from a root to a leaf."""
        return int(self.level.max())

    @property
    def seen_scores(self) -> npt.NDArray[np.intp]:
        """The scores that the slopes of each log-odds belong to: n_states x (width - 1)."""
        n_seen = int(self.parameters.shape[2]) - 1
        if n_seen == self.n_scores:
            return np.tile(np.arange(self.n_scores), (self.n_states, 1))
        return np.arange(self.n_scores).reshape(n_seen, self.n_states).T

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
        total = np.array(in_leaf, dtype=np.float64)
        # A child stands behind its parent.
        for node in np.flatnonzero(self.attribute >= 0)[::-1].tolist():
            total[node] = total[self.children(node)].sum()
        return total

    def coefficients(self, node: int) -> Floats:
        """Return a node model by class: n_classes x (1 + n_scores).

        The softmax of the classes gives the probabilities. The log-odds of two classes are shared
        between them in halves.
        """
        dense = np.zeros((self.n_states, 1 + self.n_scores))
        dense[:, 0] = self.parameters[node, :, 0]
        states = np.arange(self.n_states)[:, np.newaxis]
        dense[states, 1 + self.seen_scores] = self.parameters[node, :, 1:]
        return dense if self.n_states > 1 else np.vstack([0.0 - dense / 2, dense / 2])

    def apply(self, matrix: Floats) -> Indices:
        """Return the leaf of every row of an encoded table, a column a tree."""
        return self._predictor.apply(matrix)

    def probabilities(self, matrix: Floats, scores: Floats, offset: Floats | None = None) -> Floats:
        """Return the weighted sum of what the nodes on the ways of each row say.

        Parameters
        ----------
        matrix : ndarray
            The encoded attributes.
        scores : ndarray
            The scores as node models see them, Fortran-ordered.
        offset : ndarray, optional
            The uncalibrated log-odds, Fortran-ordered; used if the node models correct them.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, less the share of the uncalibrated ones.
        """
        return self._predictor.probabilities(matrix, scores, offset if self.offset else None)

    @cached_property
    def uncalibrated_weight(self) -> float:
        """The weight of the uncalibrated probabilities."""
        rest = 1.0 - float(self._weight_of_trees.sum())
        return rest if rest > WEIGHT_ROUNDING else 0.0

    @property
    def weight_below(self) -> Floats:
        """The weight of the nodes below every node, on any way from it to a leaf."""
        return np.asarray(self._weight_of_trees[self.tree_of_nodes] - self._weight_down_to)

    @property
    def importances(self) -> Floats:
        """The share of every attribute in the gain of the splits; 0 where nothing is split.

        A split counts for as much as the nodes below it. Splits on scores are left out. All are
        NaN where the gain was not measured, as in a published tree that is not pruned by
        cross-validation.
        """
        n_attributes = len(self.attributes.columns)
        on_attribute = (self.attribute >= 0) & (self.attribute < n_attributes)
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
        inner = np.flatnonzero(self.attribute >= 0)
        count = self.n_children[inner]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        parent = np.full(self.n_nodes, -1)
        parent[np.repeat(self.first_child[inner], count) + within] = np.repeat(inner, count)
        return parent

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

    @cached_property
    def _weight_down_to(self) -> Floats:
        """The weight of every node, together with that of all nodes above it."""
        above, total = self.parent.copy(), self.weight.copy()
        # Each round adds what twice as many nodes above have gathered.
        while (reached := above >= 0).any():
            total[reached] += total[above[reached]]
            above[reached] = above[above[reached]]
        return np.asarray(total)

    @cached_property
    def _weight_of_trees(self) -> Floats:
        # The last node of a tree has no children.
        last = np.append(self.roots[1:], self.n_nodes) - 1
        return np.asarray(self._weight_down_to[last])

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
            self.parameters,
            self.roots,
            self.n_scores,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the model as lists and numbers that JSON keeps exactly."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return {
            "attributes": self.attributes.to_dict(),
            **arrays,
            "n_scores": self.n_scores,
            "offset": self.offset,
        }

    @classmethod
    def from_dict(cls, stored: Any) -> FittedModel:
        """Rebuild a model from :meth:`to_dict`; ValueError on anything malformed."""
        if not isinstance(stored, dict) or set(stored) != _KEYS:
            raise ValueError(f"a stored model must have exactly the keys {sorted(_KEYS)}")
        if not isinstance(stored["offset"], bool):
            raise ValueError("offset of a stored model must be true or false")
        if type(stored["n_scores"]) is not int or stored["n_scores"] < 1:
            raise ValueError("n_scores of a stored model must be a positive whole number")
        arrays: dict[str, Any] = {
            name: read_numbers(stored, name, dtype, ndim, may_be_empty=name == "branches")
            for name, (dtype, ndim) in _ARRAYS.items()
        }
        others = {name: stored[name] for name in ("n_scores", "offset")}
        model = cls(Attributes.from_dict(stored["attributes"]), **arrays, **others)
        _check_shapes(model)
        _check_trees(model)
        model._check_weights()
        return model

    def _check_weights(self) -> None:
        """Refuse trees that do not count for the same on all ways from the root to a leaf."""
        if self.weight.min() < 0:
            raise ValueError("weight of a stored model must not be negative")
        leaves = self.attribute < 0
        of_tree = self._weight_of_trees[self.tree_of_nodes]
        unequal = np.abs(self._weight_down_to - of_tree)[leaves].max() > WEIGHT_ROUNDING
        if unequal or self._weight_of_trees.sum() > 1.0 + WEIGHT_ROUNDING:
            raise ValueError(
                "weight of a stored model must have the same sum on every way from the root of a "
                "tree to a leaf, and all trees together no more than 1"
            )


def _join(trees: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Put the arrays of trees one after the other; children and tables move along."""
    columns: dict[str, list[Any]] = {name: [] for name in (*_PER_NODE, "branches")}
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
        name: np.concatenate(parts).astype(_ARRAYS[name][0], copy=False)
        for name, parts in columns.items()
    }


def _check_shapes(model: FittedModel) -> None:
    """Refuse arrays that do not fit together."""
    for name in _PER_NODE:
        array = getattr(model, name)
        if len(array) != model.n_nodes:
            raise ValueError(
                f"a stored model has {model.n_nodes} nodes, but {len(array)} entries in {name}"
            )
    n_seen = int(model.parameters.shape[2]) - 1
    if model.n_states == 2 or model.n_scores not in (n_seen, n_seen * model.n_states):
        raise ValueError("a stored model has node models of no known shape")
    if np.abs(model.parameters).max() > _LARGEST_PARAMETER:
        raise ValueError("a stored model has parameters beyond any that fitting can give")
    n_columns = len(model.attributes.columns) + model.n_scores
    if model.attribute.min() < -1 or model.attribute.max() >= n_columns:
        raise ValueError("a stored model splits on an attribute or score it lacks")


def _check_trees(model: FittedModel) -> None:
    """Refuse nodes without their children, and children without exactly one parent."""
    children = [int(root) for root in model.roots]
    if children[0] != 0 or (np.diff(model.roots) <= 0).any() or children[-1] >= model.n_nodes:
        raise ValueError("roots of a stored model must rise from 0")
    ends = np.append(model.roots[1:], model.n_nodes)[model.tree_of_nodes]
    for node in np.flatnonzero(model.attribute >= 0):
        first, count = int(model.first_child[node]), int(model.n_children[node])
        if first <= node or first + count > ends[node]:
            raise ValueError(f"node {node} of a stored model has children it cannot have")
        children += range(first, first + count)
        _check_split(model, int(node))
        if len(children) > model.n_nodes:
            break
    if sorted(children) != list(range(model.n_nodes)):
        raise ValueError("a stored model has nodes that do not belong to exactly one tree")


def _check_split(model: FittedModel, node: int) -> None:
    """Refuse a split that sends some value to no child."""
    attribute, count = int(model.attribute[node]), int(model.n_children[node])
    columns = model.attributes.columns
    categories = columns[attribute].categories if attribute < len(columns) else None
    if categories == ():
        raise ValueError(f"node {node} of a stored model splits on an attribute it does not use")
    targets = model.missing[node : node + 1]
    if categories:
        begin = int(model.table[node])
        if begin < 0 or begin + len(categories) > len(model.branches):
            raise ValueError(f"node {node} of a stored model has no table of its categories")
        targets = np.append(targets, model.branches[begin : begin + len(categories)])
    elif count != 2:
        raise ValueError(f"node {node} of a stored model splits numbers into {count} parts")
    if targets.min() < 0 or targets.max() >= count:
        raise ValueError(f"node {node} of a stored model sends rows to a child it lacks")
