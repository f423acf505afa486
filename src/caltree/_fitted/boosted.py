"""Boosted trees and the curve they start from as plain arrays; prediction and JSON."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .json_values import plain_numbers, read_numbers
from .tree_storage import read_entries
from .trees import LARGEST_PARAMETER, STRUCTURE, WEIGHT_ROUNDING, ArrayTypes, Trees


@dataclass(frozen=True, eq=False)
class BoostedModel(Trees):
    """A curve for all rows, and trees whose leaves add to its log-odds.

    The probabilities are `curve_weight` times those of the curve, plus `boosted_weight` times those
    of `start` times the curve's log-odds, with what the leaves of all trees add. Every split has
    two children, and its gain is that of the training rows, of which `n_rows` is the number. The
    `parameters` are those of the curve: n_states x width. The other arrays are those of `Trees`. A
    model without boosted trees has one tree, a leaf of value 0.

    Parameters
    ----------
    value : ndarray of float64
        One per node: what a leaf adds to a log-odds; 0 where a node is split.
    state : ndarray of int32
        One per tree: the log-odds that its leaves add to.
    start : float
        The share of the curve's log-odds that the trees add to: 1, or less if the trees may only
        rise with a score, because then they could not make a steep curve flatter.
    curve_weight : float
        The weight of the curve alone.
    boosted_weight : float
        The weight of the curve and the trees. If both weights sum to less than 1, the rest is the
        weight of the uncalibrated probabilities.
    """

    value: Floats
    state: Indices
    start: float
    curve_weight: float
    boosted_weight: float

    PER_NODE: ClassVar[ArrayTypes] = {**STRUCTURE, "value": (np.float64, 1)}
    NODE_KEYS: ClassVar[frozenset[str]] = frozenset({"value", "state", "parameters"})
    NUMBERS: ClassVar[tuple[str, ...]] = ("start", "curve_weight", "boosted_weight")

    def probabilities(self, matrix: Floats, scores: Floats, offset: Floats | None = None) -> Floats:
        """Return the weighted sum of the curve's probabilities, with and without the trees."""
        return self._predictor.probabilities(matrix, scores, offset if self.offset else None)

    @property
    def uncalibrated_weight(self) -> float:
        """The weight of the uncalibrated probabilities."""
        rest = 1.0 - self.curve_weight - self.boosted_weight
        return rest if rest > WEIGHT_ROUNDING else 0.0

    @property
    def weight_below(self) -> Floats:
        """The weight of what is below every node: of all trees the same."""
        return np.full(self.n_nodes, self.boosted_weight)

    @cached_property
    def _predictor(self) -> _core.BoostedPredictor:
        return _core.BoostedPredictor(
            self.attribute,
            self.threshold,
            self.first_child,
            self.n_children,
            self.missing,
            self.table,
            self.branches,
            self.attributes.n_categories,
            self.value,
            self.roots,
            self.state,
            self.parameters,
            self.n_scores,
            self.start,
            self.curve_weight,
            self.boosted_weight,
        )

    def _store_nodes(self) -> dict[str, Any]:
        return {
            "value": plain_numbers(self.value[self.attribute < 0]),
            "state": plain_numbers(self.state),
            "parameters": plain_numbers(self.parameters),
        }

    @classmethod
    def _read_nodes(cls, stored: dict[str, Any], structure: dict[str, Any]) -> dict[str, Any]:
        is_leaf = structure["attribute"] < 0
        n_leaves = int(np.count_nonzero(is_leaf))
        value = np.zeros(len(is_leaf))
        value[is_leaf] = read_entries(stored, "value", np.float64, n_leaves, "leaves")
        return {
            "value": value,
            "state": read_entries(stored, "state", np.int32, len(structure["roots"]), "trees"),
            "parameters": read_numbers(stored, "parameters", np.float64, 2),
        }

    def _check_shapes(self) -> None:
        super()._check_shapes()
        if np.abs(self.value).max() > LARGEST_PARAMETER:
            raise ValueError("a stored model has values beyond any that fitting can give")
        if self.state.min() < 0 or self.state.max() >= self.n_states:
            raise ValueError("a stored model has trees for a log-odds that does not exist")
        if (self.n_children[self.attribute >= 0] != 2).any():
            raise ValueError("a split of boosted trees of a stored model must have two children")

    def _check_weights(self) -> None:
        if not 0.0 <= self.start <= 1.0:
            raise ValueError("start of a stored model must be from 0 to 1")
        weights = (self.curve_weight, self.boosted_weight)
        if min(weights) < 0.0 or sum(weights) > 1.0 + WEIGHT_ROUNDING:
            raise ValueError(
                "curve_weight and boosted_weight of a stored model must not be negative, nor sum "
                "to more than 1"
            )


def one_leaf(attributes: Attributes) -> dict[str, Any]:
    """Return the arrays of a tree that adds nothing."""
    arrays: dict[str, Any] = {
        name: np.zeros(1, dtype=dtype) for name, (dtype, _) in BoostedModel.PER_NODE.items()
    }
    for name in ("attribute", "first_child", "table"):
        arrays[name][0] = -1
    return {**arrays, "attributes": attributes, "branches": np.empty(0, dtype=np.int32)}
