"""A fitted tree or forest as plain arrays; prediction, text, JSON, SQL and ONNX read those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._inputs.attributes import Attributes
from .._inputs.scores import is_offset
from .json_values import plain_numbers, read_numbers
from .tree_storage import find_parents, read_entries
from .trees import STRUCTURE, WEIGHT_ROUNDING, ArrayTypes, Trees, join_trees

# Rows times trees whose leaves are looked up at a time.
_VISITS = 4_000_000
_MODELS: ArrayTypes = {"weight": (np.float64, 1), "parameters": (np.float64, 3)}
# Weights have so many decimals at most: sums and differences of them, rounded, are exact.
DECIMALS_OF_A_WEIGHT = 12


@dataclass(frozen=True, eq=False)
class FittedModel(Trees):
    """Trees and their node models, structure of arrays: one entry per node.

    A calibration tree has one root, a forest many. The gain of a split is measured on rows that the
    tree had not seen or, if no rows were held out, in the deviance of its training rows. Every node
    has `parameters`: n_nodes x n_states x width. The other arrays are those of `Trees`.

    Parameters
    ----------
    weight : ndarray of float64
        The weight of the node model in the probabilities of the rows that pass. On every path from
        a root to a leaf the sum is the same. If the sum over all trees is less than 1, the rest is
        the weight of the uncalibrated probabilities.
    step : ndarray of float64
        For the intercept and each slope: the number that the parameters are whole multiples of in a
        file; 1 if they are stored unchanged.
    """

    weight: Floats
    step: Floats

    PER_NODE: ClassVar[ArrayTypes] = {**STRUCTURE, **_MODELS}
    NODE_KEYS: ClassVar[frozenset[str]] = frozenset({"weight", "tree_weight", "step", "parameters"})
    _JOINED: ClassVar[ArrayTypes] = {**PER_NODE, "branches": (np.int32, 1)}

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
            "weight": np.round(arrays["weight"], DECIMALS_OF_A_WEIGHT),
            "step": np.ones(parameters.shape[2]),
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
        """Return the weighted sum of the probabilities of the nodes on the paths of each row."""
        return self._predictor.probabilities(matrix, scores, offset if self.offset else None)

    def effective_rows(self, matrix: Floats, scores: Floats) -> Floats:
        """Return the weighted harmonic mean of the rows in the nodes on the paths of each row.

        The uncalibrated probabilities count as a node of all rows.
        """
        rest = self.uncalibrated_weight * float(self._inverse_rows[0])
        found, size = np.empty(len(matrix)), -(-_VISITS // self.n_trees)
        for begin in range(0, len(matrix), size):
            rows = slice(begin, begin + size)
            leaves = self._predictor.apply(matrix[rows], np.asfortranarray(scores[rows]))
            found[rows] = self._inverse_down_to[leaves].sum(axis=1)
        return 1.0 / (found + rest)

    @cached_property
    def uncalibrated_weight(self) -> float:
        """The weight of the uncalibrated probabilities."""
        rest = 1.0 - float(self._weight_of_trees.sum())
        return rest if rest > WEIGHT_ROUNDING else 0.0

    @property
    def weight_below(self) -> Floats:
        """The weight of the nodes below every node, on any path from it to a leaf."""
        return np.asarray(self._weight_of_trees[self.tree_of_nodes] - self._weight_down_to)

    @cached_property
    def _weight_down_to(self) -> Floats:
        """The weight of every node, together with that of all nodes above it."""
        return _sum_down_to(self.weight, self.parent)

    @cached_property
    def _inverse_down_to(self) -> Floats:
        """The same of the weight, divided by the rows of the node."""
        return _sum_down_to(self.weight * self._inverse_rows, self.parent)

    @property
    def _inverse_rows(self) -> Floats:
        """One divided by the rows of each node, which are one at least."""
        return np.asarray(1.0 / np.maximum(self.n_rows, 1.0))

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

    def _store_nodes(self) -> dict[str, Any]:
        # Divided and multiplied again, whole multiples are the same to the last bit.
        in_steps = np.rint(self.parameters / self.step)
        is_multiple = in_steps * self.step == self.parameters
        in_steps = np.where(is_multiple, in_steps, self.parameters / self.step)
        counts = self.weight > 0.0
        if counts.any() and not in_steps[~counts].any():
            in_steps = in_steps[counts]
        return {
            "weight": plain_numbers(self.weight[self.attribute >= 0]),
            "tree_weight": plain_numbers(np.round(self._weight_of_trees, DECIMALS_OF_A_WEIGHT)),
            "step": plain_numbers(self.step),
            "parameters": plain_numbers(np.moveaxis(in_steps, 0, 2)),
        }

    @classmethod
    def _read_nodes(cls, stored: dict[str, Any], structure: dict[str, Any]) -> dict[str, Any]:
        weight = _read_weights(stored, structure)
        step = read_numbers(stored, "step", np.float64, 1)
        if step.min() <= 0.0:
            raise ValueError("step of a stored model must be above 0")
        in_steps = np.moveaxis(read_numbers(stored, "parameters", np.float64, 3), 2, 0)
        n_models, n_states, width = in_steps.shape
        if width != len(step):
            raise ValueError(
                f"a stored model has {len(step)} entries in step, but {width} lists for each "
                "log-odds in parameters"
            )
        has_model = np.ones(len(weight), dtype=bool) if n_models == len(weight) else weight > 0.0
        if n_models != np.count_nonzero(has_model):
            raise ValueError(
                f"a stored model has {len(weight)} nodes, {np.count_nonzero(weight)} of them with "
                f"a weight, but {n_models} entries in parameters"
            )
        parameters = np.zeros((len(weight), n_states, width))
        with np.errstate(over="ignore"):
            parameters[has_model] = in_steps * step
        return {"weight": weight, "step": step, "parameters": parameters}

    def _check_weights(self) -> None:
        """Refuse weights that are more than 1 together."""
        if self._weight_of_trees.sum() > 1.0 + WEIGHT_ROUNDING:
            raise ValueError("tree_weight of a stored model must be no more than 1 in all")


def _read_weights(stored: dict[str, Any], structure: dict[str, Any]) -> Floats:
    """Return the weight of every node: a leaf has what the weights above it leave of the tree's."""
    attribute, roots = structure["attribute"], structure["roots"]
    is_split = attribute >= 0
    n_splits = int(np.count_nonzero(is_split))
    weight = np.zeros(len(attribute))
    weight[is_split] = read_entries(stored, "weight", np.float64, n_splits, "splits")
    of_trees = read_entries(stored, "tree_weight", np.float64, len(roots), "trees")
    for name, found in (("weight", weight), ("tree_weight", of_trees)):
        if found.min() < 0.0 or found.max() > 1.0 + WEIGHT_ROUNDING:
            raise ValueError(f"{name} of a stored model must be from 0 to 1")
    parent = find_parents(attribute, structure["first_child"], structure["n_children"])
    n_nodes = np.diff(np.append(roots, len(attribute)))
    left = np.repeat(of_trees, n_nodes) - _sum_down_to(weight, parent)
    if left.min() < -WEIGHT_ROUNDING:
        node = int(left.argmin())
        raise ValueError(
            f"weight of a stored model sums to more on the path to node {node} than tree_weight "
            "of its tree"
        )
    rest = np.round(np.maximum(left, 0.0), DECIMALS_OF_A_WEIGHT)
    return np.where(is_split, weight, rest)


def _sum_down_to(weight: Floats, parent: npt.NDArray[np.intp]) -> Floats:
    """Return the weight of every node, together with that of all nodes above it."""
    above, total = parent.copy(), weight.copy()
    # Each round adds what twice as many nodes above have gathered.
    while (reached := above >= 0).any():
        total[reached] += total[above[reached]]
        above[reached] = above[above[reached]]
    return np.asarray(total)
