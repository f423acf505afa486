"""Training rows, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from .arrays import Floats, Labels, Mask
from .groups import check_groups
from .indexing import count_rows
from .labels import check_labels, check_training_weights, check_weights, warn_of_few_rows
from .scores import ScoreKind, ScoreType, as_score_matrix, resolve_score_type


@dataclass(frozen=True)
class TrainingRows:
    """Checked labels, scores and weights; rows of weight 0 are left out."""

    classes: npt.NDArray[Any]
    labels: Labels
    scores: Floats
    score_type: ScoreType
    weights: Floats | None
    keep: Mask | None
    """The rows of the table that are used; None for all."""
    groups: npt.NDArray[Any] | None
    """The group of each row of the table, used or not, if there are any."""

    @property
    def kept_groups(self) -> npt.NDArray[Any] | None:
        """The group of each row that is used, if there are any."""
        return self.groups if self.groups is None or self.keep is None else self.groups[self.keep]

    @property
    def kind(self) -> ScoreKind:
        """The kind of the scores."""
        return ScoreKind(len(self.classes), self.score_type)


def check_training_rows(
    X: Any,
    y: Any,
    scores: Any,
    sample_weight: Any,
    score_type: str,
    *,
    weights_count_rows: bool,
    groups: Any = None,
) -> TrainingRows:
    """Check training rows; without `X` the labels say how many there are.

    `weights_count_rows` says whether the scale of the weights matters: then a warning tells of
    weights that were meant as shares.
    """
    of, n_rows = ("y", _count_labels(y)) if X is None else ("X", count_rows(X, "X"))
    weights = check_weights(sample_weight, n_rows, of)
    keep = None if weights is None or weights.all() else weights > 0
    classes, labels = check_labels(y, n_rows, keep)
    known_groups = check_groups(groups, n_rows, keep, of)
    matrix = as_score_matrix(scores, n_rows, len(classes), keep, of)
    kind = resolve_score_type(matrix, len(classes), score_type)
    if weights is not None:
        check_training_weights(weights)
        if weights_count_rows:
            warn_of_few_rows(float(weights.sum()))
        weights = weights if keep is None else weights[keep]
    return TrainingRows(classes, labels, matrix, kind, weights, keep, known_groups)


def _count_labels(y: Any) -> int:
    try:
        return count_rows(y, "y")
    except (TypeError, ValueError):
        # What cannot be counted is no list of labels, and their check says why.
        return len(check_labels(y, 0)[1])
