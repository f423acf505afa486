"""The rows of an audit, checked: attributes, labels, probabilities, weights and groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from .._fitted.conditions import short
from .._inputs.arrays import Floats, Labels
from .._inputs.attributes import Attributes, Identifiers, learn
from .._inputs.groups import GroupNumbers, number_groups, refuse_few_groups
from .._inputs.label_copies import LabelCopies
from .._inputs.labels import warn_of_label_column
from .._inputs.score_limits import SMALLEST_PROBABILITY
from .._inputs.scores import ScoreKind
from .._inputs.training_rows import check_training_rows

# Fewer rows show nothing: neither half could test what the other has found.
FEWEST_ROWS = 50
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked rows; those of weight 0 are left out."""

    attributes: Attributes
    matrix: Floats
    labels: Labels
    classes: list[str]
    kind: ScoreKind
    scores: Floats
    """As calibrators take them, in the order of the classes."""
    probabilities: Floats
    """The uncalibrated probabilities, one column per class."""
    event: int | None
    """Of two classes, the one whose probability is told; None of more."""
    weights: Floats | None
    groups: GroupNumbers | None
    score_name: str = "score"
    """What conditions on the probabilities call these."""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def channels(self) -> list[int]:
        """The classes whose probabilities are looked at: of two, the event alone."""
        return list(range(len(self.classes))) if self.event is None else [self.event]

    @cached_property
    def row_weights(self) -> Floats:
        """The weight of every row, 1 where none was given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def observed(self, channel: int) -> Floats:
        """Return 1 in the rows of a class, and 0 in others."""
        return np.asarray(self.labels == channel, dtype=np.float64)

    def predicted(self, channel: int) -> Floats:
        """The probability of a class, away from 0 and 1, where no residual has a variance."""
        found = self.probabilities[:, channel]
        return np.clip(found, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)

    def log_odds(self, channel: int) -> Floats:
        """The log-odds of a class."""
        return np.asarray(logit(self.predicted(channel)))

    def take(self, rows: npt.NDArray[np.intp]) -> Rows:
        """Some of the rows."""
        return Rows(
            attributes=self.attributes,
            matrix=self.matrix[rows],
            labels=self.labels[rows],
            classes=self.classes,
            kind=self.kind,
            scores=self.scores[rows],
            probabilities=self.probabilities[rows],
            event=self.event,
            weights=None if self.weights is None else self.weights[rows],
            groups=None if self.groups is None else self.groups[rows],
            score_name=self.score_name,
        )

    def without_matrix(self) -> Rows:
        """The rows without the values of their attributes, which may be in a file."""
        return replace(self, matrix=np.empty((len(self), 0)))


def check_rows(
    X: Any,
    y: Any,
    scores: Any,
    *,
    sample_weight: Any,
    groups: Any,
    score_type: str,
    pos_label: Any,
    categorical_features: Any,
    drop_identifiers: bool,
) -> Rows:
    """Check the arguments of an audit."""
    warn_of_label_column(X, y)
    rows = check_training_rows(
        X,
        y,
        scores,
        sample_weight,
        score_type,
        pos_label,
        weights_count_rows=False,
        groups=groups,
    )
    if rows.score_type == "margin":
        raise ValueError(
            "scores are margins, not probabilities, so there is nothing to audit; give "
            "probabilities, or set score_type='logit' if the scores are log-odds"
        )
    _check_one_classifier(rows.scores.shape[1], len(rows.classes))
    if len(rows.labels) < FEWEST_ROWS:
        raise ValueError(
            f"X has {len(rows.labels)} rows of positive weight, but an audit needs at least "
            f"{FEWEST_ROWS}; give more rows"
        )
    identifiers: Identifiers = "drop" if drop_identifiers else "keep"
    known, matrix = learn(
        X,
        categorical_features=categorical_features,
        keep=rows.keep,
        sample_weight=rows.weights,
        identifiers=identifiers,
    )
    LabelCopies.of(matrix, rows.labels).warn(known)
    numbers = None
    if rows.kept_groups is not None:
        n_groups, numbers = number_groups(rows.kept_groups)
        refuse_few_groups(n_groups, FOLDS, "an audit")
    positive = rows.columns.positive
    event = None if len(rows.classes) > 2 else 1 if positive is None else positive
    return Rows(
        attributes=known,
        matrix=matrix,
        labels=rows.labels,
        classes=[short(label) for label in rows.classes.tolist()],
        kind=rows.kind,
        scores=rows.scores,
        probabilities=rows.kind.uncalibrated(rows.scores),
        event=event,
        weights=rows.weights,
        groups=numbers,
    )


def _check_one_classifier(n_columns: int, n_classes: int) -> None:
    if n_columns > n_classes:
        raise ValueError(
            f"scores has {n_columns} columns, those of {n_columns // n_classes} classifiers; "
            "audit one classifier at a time"
        )
