"""What a tree is to be made of, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.model import TreeModel
from .._inputs.arrays import Labels
from .._inputs.attributes import Attributes
from .._inputs.scores import is_offset

Floats: TypeAlias = npt.NDArray[np.float64]

# The work of a node model grows with the square of the scores each log-odds sees.
_MOST_SCORES = 30
# Up to here a tree is grown node by node, looking at every row and trying both kinds of splits.
_MOST_ROWS_ONE_BY_ONE = 200_000


@dataclass(frozen=True)
class Recipe:
    """How a tree is to be made."""

    splits: str
    node_models: str
    min_samples_split: float
    min_samples_leaf: float
    max_depth: int | None
    penalty: float
    max_bins: int
    histograms: bool | Literal["auto"]
    boosting_iterations: int | None
    """None: chosen by cross-validation."""
    max_boosting_iterations: int
    pruning: float | Literal["cv"] | None
    constant_scores_give_frequencies: bool
    objective: str
    do_no_harm: bool
    path_averaging: bool

    @property
    def boosts(self) -> bool:
        """Whether the node models are those of LogitBoost."""
        return self.node_models == "logitboost"

    def uses_histograms(self, n_rows: int) -> bool:
        """Whether so many rows are put into bins and the tree grows on sums over these."""
        if isinstance(self.histograms, bool):
            return self.histograms
        return bool(n_rows > _MOST_ROWS_ONE_BY_ONE)

    @property
    def needs_folds(self) -> bool:
        """Whether anything is left to choose."""
        chooses_iterations = self.boosts and self.boosting_iterations is None
        return chooses_iterations or self.needs_trees_of_folds

    @property
    def needs_trees_of_folds(self) -> bool:
        """Whether anything is chosen by what trees say about rows that they did not see."""
        return "cv" in (self.pruning, self.splits) or self.do_no_harm or self.path_averaging

    @property
    def depth(self) -> int:
        """The greatest depth, as the core wants it."""
        return 2**31 if self.max_depth is None else self.max_depth


@dataclass(frozen=True)
class Problem:
    """The training rows: encoded attributes, labels, and the scores in three forms."""

    known: Attributes
    matrix: Floats
    labels: Labels
    n_classes: int
    odds: Floats
    """What the node models see."""
    offset: Floats | None
    """What the scores say before any correction; None where they are no probabilities."""
    raw: Floats | None
    """The uncalibrated probabilities, likewise."""
    weights: Floats | None

    @cached_property
    def training(self) -> _core.Training:
        """The rows in the core."""
        return _core.Training(
            self.matrix,
            self.known.n_categories,
            self.known.fills,
            self.labels,
            self.n_classes,
            self.odds,
            self.weights,
        )

    @property
    def sees_all_scores(self) -> bool:
        """Whether the log-odds of a class see the scores of the others: not if these are many."""
        return bool(self.per_state == self.odds.shape[1])

    @property
    def per_state(self) -> int:
        """How many scores each log-odds sees."""
        return scores_a_state_sees(self.n_classes, int(self.odds.shape[1]))

    def tree(self, arrays: dict[str, Any], *, boosted: bool) -> TreeModel:
        """A tree model of what the core finished."""
        if boosted:
            coefficients = arrays.pop("coefficients")
            shape = (len(coefficients), self.n_classes, -1)
            return TreeModel(self.known, **arrays, coefficients=coefficients.reshape(shape))
        has_offset = self.offset is not None
        return shrunken_tree(self.known, arrays, self.n_classes, self.odds.shape[1], has_offset)


def shrunken_tree(
    known: Attributes, arrays: dict[str, Any], n_classes: int, n_scores: int, has_offset: bool
) -> TreeModel:
    """A tree model of shrunken node models that the core finished."""
    dense = dense_coefficients(arrays.pop("coefficients"), n_classes, n_scores)
    is_score = has_offset and is_offset(n_classes, n_scores)
    if is_score:
        dense[:, :, 1] += [-0.5, 0.5]
    return TreeModel(known, **arrays, coefficients=dense, offset=has_offset and not is_score)


def scores_a_state_sees(n_classes: int, n_scores: int) -> int:
    """How many scores each log-odds sees: its own class's alone if there are many."""
    sees_all = n_classes == 2 or n_scores <= _MOST_SCORES
    return n_scores if sees_all else n_scores // n_classes


def dense_coefficients(parameters: Floats, n_classes: int, n_scores: int) -> Floats:
    """Coefficients of every class over every score, from those of each log-odds over its own."""
    n_states = 1 if n_classes == 2 else n_classes
    compact = parameters.reshape(len(parameters), n_states, -1)
    if n_states > 1 and compact.shape[2] == 1 + n_scores:
        return compact
    dense = np.zeros((len(parameters), n_classes, 1 + n_scores))
    if n_states == 1:
        dense[:, 1] = compact[:, 0] / 2
        dense[:, 0] = 0.0 - dense[:, 1]
        return dense
    dense[:, :, 0] = compact[:, :, 0]
    classes = np.arange(n_classes)
    for k in range(n_scores // n_classes):
        dense[:, classes, 1 + k * n_classes + classes] = compact[:, :, 1 + k]
    return dense
