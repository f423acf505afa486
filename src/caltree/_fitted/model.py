"""A fitted tree or forest as plain arrays; prediction, text, JSON, SQL and ONNX read those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .._inputs.scores import is_offset
from .trees import OTHERS, STRUCTURE, WEIGHT_ROUNDING, ArrayTypes, Trees, join_trees

_MODELS: ArrayTypes = {"weight": (np.float64, 1), "parameters": (np.float64, 3)}


@dataclass(frozen=True, eq=False)
class FittedModel(Trees):
    """Trees and their node models, structure of arrays: one entry a node.

    A calibration tree has one root, a forest many. The gain of a split is that on rows that the
    tree had not seen, or, of a tree that was grown without holding any out, in the deviance of its
    training rows. There are `parameters` of every node: n_nodes x n_states x width. The other
    arrays are those of `Trees`.

    Parameters
    ----------
    weight : ndarray of float64
        The weight of the node model in the probabilities of the rows that pass. On every way from
        a root to a leaf the sum is the same. What the sum over all trees lacks of 1 is the weight
        of the uncalibrated probabilities.
    """

    weight: Floats

    PER_NODE: ClassVar[ArrayTypes] = {**STRUCTURE, **_MODELS}
    ARRAYS: ClassVar[ArrayTypes] = {**PER_NODE, **OTHERS}
    _JOINED: ClassVar[ArrayTypes] = {**PER_NODE, "branches": OTHERS["branches"]}

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
        arrays = trees[0] if len(trees) == 1 else join_trees(trees, cls._JOINED)
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

    def coefficients(self, node: int) -> Floats:
        """Return a node model by class: n_classes x (1 + n_scores).

        The softmax of the classes gives the probabilities. The log-odds of two classes are shared
        between them in halves.
        """
        dense = self.dense_parameters(self.parameters[node])
        return dense if self.n_states > 1 else np.vstack([0.0 - dense / 2, dense / 2])

    def apply(self, matrix: Floats) -> Indices:
        """Return the leaf of every row of an encoded table, a column per tree."""
        return self._predictor.apply(matrix)

    def probabilities(self, matrix: Floats, scores: Floats, offset: Floats | None = None) -> Floats:
        """Return the weighted sum of what the nodes on the ways of each row say."""
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
