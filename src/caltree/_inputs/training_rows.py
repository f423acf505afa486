"""Training rows, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from .arrays import Floats, Labels, Mask
from .groups import check_groups
from .indexing import count_rows
from .labels import check_labels, check_training_weights, check_weights, warn_of_few_rows
from .ranking import find_backwards, warn_of_backwards
from .score_columns import ScoreColumns, find_columns, turn
from .score_limits import ScoreEdges, ScoreLimits
from .score_types import resolve_score_type
from .scores import ScoreKind, ScoreType, as_score_matrix


@dataclass(frozen=True)
class LabelledRows:
    """Checked labels and weights; rows of weight 0 are left out."""

    classes: npt.NDArray[Any]
    labels: Labels
    weights: Floats | None
    keep: Mask | None
    """The rows of the table that are used; None for all."""


@dataclass(frozen=True)
class TrainingRows:
    """Checked labels, scores and weights; rows of weight 0 are left out."""

    classes: npt.NDArray[Any]
    labels: Labels
    scores: Floats
    """In the order of the classes; a single column is that of the second."""
    columns: ScoreColumns
    """The columns as they were given."""
    score_type: ScoreType
    score_limits: ScoreLimits
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
        return ScoreKind(len(self.classes), self.score_type, limits=self.score_limits)


def check_labelled_rows(
    y: Any, sample_weight: Any, n_rows: int, of: str = "X", *, weights_count_rows: bool = True
) -> LabelledRows:
    """Check the labels and weights of rows, whose number is that of `of`.

    `weights_count_rows` says whether the scale of the weights matters: then a warning tells of
    weights that were meant as shares.
    """
    weights = check_weights(sample_weight, n_rows, of)
    keep = None if weights is None or weights.all() else weights > 0
    classes, labels = check_labels(y, n_rows, keep)
    if weights is not None:
        check_training_weights(weights)
        if weights_count_rows:
            warn_of_few_rows(float(weights.sum()))
        weights = weights if keep is None else weights[keep]
    return LabelledRows(classes, labels, weights, keep)


def check_training_rows(
    X: Any,
    y: Any,
    scores: Any,
    sample_weight: Any,
    score_type: str,
    pos_label: Any,
    *,
    weights_count_rows: bool,
    groups: Any = None,
) -> TrainingRows:
    """Check training rows; without `X` the labels say how many there are.

    For `weights_count_rows` see `check_labelled_rows`.
    """
    of, n_rows = ("y", _count_labels(y)) if X is None else ("X", count_rows(X, "X"))
    labelled = check_labelled_rows(
        y, sample_weight, n_rows, of, weights_count_rows=weights_count_rows
    )
    classes, keep = labelled.classes, labelled.keep
    known_groups = check_groups(groups, n_rows, keep, of)
    matrix = as_score_matrix(scores, n_rows, len(classes), keep, of)
    columns, matrix = find_columns(scores, matrix, classes, pos_label)
    kind = resolve_score_type(matrix, len(classes), score_type, keep)
    limits = ScoreEdges.of(matrix).limits(kind, is_turned=columns.is_turned)
    if columns.is_turned:
        matrix = turn(matrix, kind)
    rows = TrainingRows(
        classes,
        labelled.labels,
        matrix,
        columns,
        kind,
        limits,
        labelled.weights,
        keep,
        known_groups,
    )
    backwards = find_backwards(rows.scores, rows.kind, rows.labels, rows.weights)
    warn_of_backwards(backwards, classes.tolist(), columns.positive, stacklevel=4)
    return rows


def _count_labels(y: Any) -> int:
    try:
        return count_rows(y, "y")
    except (TypeError, ValueError):
        # Whatever cannot be counted is not a list of labels, and their check says why.
        return len(check_labels(y, 0)[1])
