"""The training rows as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.model import FittedModel
from .._inputs.arrays import Floats, Labels
from .._inputs.attributes import Attributes
from .._inputs.groups import GroupNumbers
from .._inputs.scores import ScoreKind

# The work of a node model grows with the square of the scores each log-odds sees.
_MOST_SEEN_SCORES = 30
# The work of a split grows with the classes times the columns that it looks at: of more scores than
# this, a tree draws a few.
_MOST_SPLIT_SCORES, _DRAWN_SCORES = 30, 10


@dataclass(frozen=True)
class Dataset:
    """The training rows: encoded attributes, labels, weights, groups, the scores in three forms."""

    attributes: Attributes
    matrix: Floats
    labels: Labels
    n_classes: int
    scores: Floats
    """The scores as node models see them."""
    offset: Floats | None
    """The uncalibrated log-odds, which node models correct; None of margins."""
    uncalibrated: Floats | None
    """The uncalibrated probabilities; None of margins."""
    weights: Floats | None
    groups: GroupNumbers | None = None

    @classmethod
    def of(
        cls,
        attributes: Attributes,
        matrix: Floats,
        labels: Labels,
        kind: ScoreKind,
        scores: Floats,
        weights: Floats | None,
        groups: GroupNumbers | None = None,
    ) -> Dataset:
        """Put together encoded attributes, labels, and scores as they were given."""
        seen = kind.regressors(scores)
        return cls(
            attributes=attributes,
            matrix=matrix,
            labels=labels,
            n_classes=kind.n_classes,
            scores=seen,
            offset=kind.offset(scores, seen),
            uncalibrated=None if kind.score_type == "margin" else kind.uncalibrated(scores),
            weights=weights,
            groups=groups,
        )

    @cached_property
    def core(self) -> _core.Training:
        """The rows in the core."""
        return _core.Training(
            self.matrix,
            self.attributes.n_categories,
            self.attributes.fills,
            self.labels,
            self.n_classes,
            self.scores,
            self.weights,
        )

    @property
    def n_states(self) -> int:
        """Number of log-odds of a row: one for two classes, otherwise one per class."""
        return 1 if self.n_classes == 2 else self.n_classes

    @property
    def n_plain_scores(self) -> int:
        """Number of scores without those that bend them, which trees do not split on."""
        n_scores = int(self.scores.shape[1])
        return n_scores // 2 if self.n_classes == 2 else n_scores

    @property
    def n_split_scores(self) -> int:
        """Number of scores that a tree looks at if it may split on scores: a few, if many."""
        n_scores = self.n_plain_scores
        return n_scores if n_scores <= _MOST_SPLIT_SCORES else _DRAWN_SCORES

    @property
    def sees_all_scores(self) -> bool:
        """Whether the log-odds of a class see the scores of the others: not if these are many."""
        n_scores = self.scores.shape[1]
        return bool(scores_per_state(self.n_classes, n_scores) == n_scores)

    def weight_of(self, rows: npt.NDArray[np.uint32]) -> float:
        """Return how much some rows weigh together."""
        return float(len(rows) if self.weights is None else self.weights[rows].sum())

    def model(self, trees: list[dict[str, Any]], *, corrects_scores: bool = True) -> FittedModel:
        """Make a fitted model of trees that the core has grown on these rows."""
        return FittedModel.of_trees(
            self.attributes,
            trees,
            n_classes=self.n_classes,
            n_scores=self.scores.shape[1],
            corrects_scores=corrects_scores and self.offset is not None,
        )


def scores_per_state(n_classes: int, n_scores: int) -> int:
    """Return how many scores each log-odds sees: its own class's alone if there are many."""
    sees_all = n_classes == 2 or n_scores <= _MOST_SEEN_SCORES
    return n_scores if sees_all else n_scores // n_classes
