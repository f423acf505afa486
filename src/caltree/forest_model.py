"""A fitted forest as plain arrays: the nodes of all its trees in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _core
from .attributes import Attributes
from .model import Floats, Indices, check_lengths, check_split, shares_of_gain
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
    "parameters": (np.float64, 3),
}
_OTHERS: dict[str, tuple[type, int]] = {
    "branches": (np.int32, 1),
    "roots": (np.int32, 1),
    "kind": (np.int32, 1),
    "sizes": (np.float64, 1),
    "shares": (np.float64, 2),
}


@dataclass(frozen=True, eq=False)
class ForestModel:
    """Trees and their node models, structure of arrays.

    The arrays of the nodes are those of :class:`~caltree.model.TreeModel`; only what is different
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
    kind : ndarray of int32
        0 for a tree that splits on attributes alone, 1 for one that splits on scores, too.
    sizes : ndarray of float64
        A tree says several things: what it would if nodes of fewer rows than this were leaves.
    shares : ndarray of shape (2, n_sizes)
        What each of these counts for in the forest, for a tree of each kind.
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
    parameters: Floats
    branches: Indices
    roots: Indices
    kind: Indices
    sizes: Floats
    shares: Floats

    @classmethod
    def of_trees(
        cls,
        attributes: Attributes,
        trees: Sequence[dict[str, Any]],
        kind: Sequence[int],
        sizes: Floats,
        shares: Floats,
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
        return cls(
            attributes,
            **arrays,
            roots=n_nodes[:-1].astype(np.int32),
            kind=np.asarray(kind, dtype=np.int32),
            sizes=sizes,
            shares=shares,
        )

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
    def importances(self) -> Floats:
        """The share of every attribute in what the splits gained on out-of-bag rows.

        A split counts for as much as the sizes at which a tree is read below it.
        """
        tree = np.searchsorted(self.roots, np.arange(len(self.attribute)), side="right") - 1
        deeper = self.sizes[:, np.newaxis] <= self.n_rows
        counts = (self.shares[self.kind[tree]] * deeper.T).sum(axis=1)
        return shares_of_gain(self.attribute, self.gain * counts, len(self.attributes.columns))

    def probabilities(self, matrix: Floats, log_odds: Floats, offset: Floats | None) -> Floats:
        """What the trees say, each by its share, one column a class."""
        found = self._predictor.add(matrix, log_odds, offset)
        if self.n_states > 1:
            return found
        total = self.shares[self.kind].sum()
        return np.hstack([total - found, found])

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
            self.n_rows,
            self.parameters,
            self.roots,
            self.kind,
            self.sizes,
            self.shares,
        )

    def __getstate__(self) -> dict[str, Any]:
        """The arrays alone: what the native core makes of them is made again."""
        names = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in names}

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
        self._check_shares()
        children = [int(root) for root in self.roots]
        for node in np.flatnonzero(self.attribute >= 0):
            first = int(self.first_child[node])
            if first <= node or first + int(self.n_children[node]) > len(self.attribute):
                raise ValueError(f"node {node} of a stored forest has children it cannot have")
            children += range(first, first + int(self.n_children[node]))
            check_split(self, int(node), n_attributes)
        if sorted(children) != list(range(len(self.attribute))):
            raise ValueError("a stored forest has nodes that do not belong to exactly one tree")

    def _check_shares(self) -> None:
        n_kinds, n_sizes = self.shares.shape
        kinds: npt.NDArray[np.bool_] = (self.kind >= 0) & (self.kind < n_kinds)
        if len(self.kind) != self.n_trees or not kinds.all():
            raise ValueError("a stored forest has trees of no known kind")
        if n_sizes != len(self.sizes) or (np.diff(self.sizes) >= 0).any():
            raise ValueError("sizes of a stored forest must fall, and have a share each")
        total = float(self.shares[self.kind].sum())
        if self.shares.min() < 0 or not total <= 1 + 1e-9:
            raise ValueError("shares of a stored forest must not exceed 1 in sum")
