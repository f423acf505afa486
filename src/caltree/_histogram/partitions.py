"""Partitions of rows, each looked at on its own, wherever it is: on a cluster, or in a file.

They are read three times: to see what there is, to draw a sample, and to put them into bins. What
is learned of a partition is small, and merges.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Classes, Floats, Mask
from .._inputs.attributes import Attributes, Identifiers
from .._inputs.folds import FoldOf
from .._inputs.hashing import SmallestHashes
from .._inputs.indexing import count_rows
from .._inputs.labels import (
    check_classes,
    check_scale,
    check_weights,
    labels_of_part,
    warn_of_few_rows,
)
from .._inputs.parameters import check_choice
from .._inputs.ranking import Backwards, find_backwards, warn_of_backwards
from .._inputs.score_columns import ScoreColumns, find_columns, turn
from .._inputs.score_types import ScoreSurvey
from .._inputs.scores import SCORE_TYPES, ScoreKind, as_score_matrix, check_probabilities
from .._training.dataset import Dataset
from .chunk import Chunk, Plan
from .prepare import MatrixSeen, Part, Sample, bin_rows, make_plan, sample_rows
from .summaries import TableSummary

Given: TypeAlias = tuple[Any, Any, Any, Any]
"""Attributes, labels, scores and weights, or None, of a partition."""


@dataclass(frozen=True)
class RowsSeen:
    """Facts about the rows of some partitions."""

    counts: tuple[int, ...]
    """The rows of positive weight of each partition."""
    classes: npt.NDArray[Any]
    largest_weight: float
    total_weight: float | None
    """None without weights."""
    summary: TableSummary | None
    """None of no rows."""

    def merge(self, other: RowsSeen) -> RowsSeen:
        """Return the facts about the rows of both."""
        counts = self.counts + other.counts
        if self.summary is None or other.summary is None:
            some = other if self.summary is None else self
            return replace(some, counts=counts)
        texts = {values.dtype.kind in "OU" for values in (self.classes, other.classes)}
        if len(texts) > 1:
            raise TypeError(
                "y has strings in some partitions and numbers in others; make them all of one type"
            )
        return RowsSeen(
            counts,
            np.union1d(self.classes, other.classes),
            max(self.largest_weight, other.largest_weight),
            None if self.total_weight is None else self.total_weight + (other.total_weight or 0.0),
            self.summary.merge(other.summary),
        )


@dataclass(frozen=True)
class Known:
    """Facts about all rows that are needed before they are put into bins."""

    counts: tuple[int, ...]
    classes: npt.NDArray[Any]
    largest_weight: float
    summary: TableSummary
    attributes: Attributes
    score_type: str
    pos_label: Any

    @classmethod
    def of(cls, seen: RowsSeen, score_type: str, pos_label: Any, identifiers: Identifiers) -> Known:
        """Conclude from the rows of all partitions."""
        if seen.summary is None:
            raise ValueError("X has no row of positive weight; give at least two rows")
        check_classes(seen.classes)
        if seen.total_weight is not None:
            check_scale(seen.total_weight, seen.largest_weight)
            warn_of_few_rows(seen.total_weight)
        attributes = seen.summary.attributes(identifiers)
        return cls(
            seen.counts,
            seen.classes,
            seen.largest_weight,
            seen.summary,
            attributes,
            score_type,
            pos_label,
        )

    @property
    def n_rows(self) -> int:
        """How many rows count."""
        return sum(self.counts)

    def first(self, partition: int) -> int:
        """The number of the first row of a partition."""
        return sum(self.counts[:partition])


def look(
    partition: int, X: Any, y: Any, weights: Any, categorical_features: Any, max_bins: int
) -> RowsSeen:
    """Look at the rows of a partition."""
    with _Naming(partition):
        _, keep, labels, kept = _check_part(X, y, weights)
        if len(labels) == 0:
            return RowsSeen((0,), labels, 0.0, None, None)
        return RowsSeen(
            (len(labels),),
            np.unique(labels),
            1.0 if kept is None else float(kept.max()),
            None if kept is None else float(kept.sum()),
            TableSummary.of(X, keep, kept, categorical_features, max_bins),
        )


def merge_seen(*seen: RowsSeen) -> RowsSeen:
    """Merge the facts about several partitions, in their order."""
    return reduce(RowsSeen.merge, seen)


@dataclass(frozen=True)
class ScoresSeen:
    """Facts about the scores of some partitions, and a sample of the rows."""

    sample: Sample
    columns: ScoreColumns
    survey: ScoreSurvey

    def merge(self, other: ScoresSeen) -> ScoresSeen:
        """Return the facts about the rows of both."""
        widths = {self.columns.n_columns, other.columns.n_columns}
        if len(widths) > 1:
            raise ValueError(f"scores has {sorted(widths)} columns in different partitions")
        return ScoresSeen(
            self.sample.merge(other.sample), self.columns, self.survey.merge(other.survey)
        )


@dataclass(frozen=True)
class ScoresRead:
    """How the scores of all partitions are read, and the warning about it, if any."""

    kind: ScoreKind
    columns: ScoreColumns
    type_warning: str | None
    backwards: list[Backwards]
    """Classes that a sample of the rows ranks backwards."""

    def in_order(self, scores: Floats) -> Floats:
        """Scores as they were given, of the second class if there is one column for two."""
        return turn(scores, self.kind.score_type) if self.columns.is_turned else scores

    def warn(self, classes: Classes) -> None:
        """Say what is doubtful."""
        if self.type_warning is not None:
            warnings.warn(self.type_warning, UserWarning, stacklevel=3)
        warn_of_backwards(self.backwards, classes.tolist(), self.columns.positive, stacklevel=3)


Planned: TypeAlias = tuple[Plan, Attributes, ScoresRead]


def part_of(partition: int, given: Given, known: Known) -> tuple[Part, ScoreColumns]:
    """The rows of a partition, checked; a single column of scores is as it was given."""
    X, y, scores, weights = given
    with _Naming(partition):
        n_rows, keep, labels, kept = _check_part(X, y, weights)
        codes = np.searchsorted(known.classes, labels).astype(np.uint16)
        matrix = as_score_matrix(scores, n_rows, len(known.classes), keep)
        columns, matrix = find_columns(scores, matrix, known.classes, known.pos_label)
        return Part(X, keep, codes, matrix, kept), columns


def sample_part(partition: int, given: Given, known: Known) -> ScoresSeen:
    """The rows of a partition that are in the sample, and the facts about its scores."""
    part, columns = part_of(partition, given, known)
    with _Naming(partition):
        if known.score_type == "probability":
            check_probabilities(part.scores, part.keep)
        sample = sample_rows(part, known.first(partition), known.n_rows, known.attributes)
        where = f" of partition {partition}"
        survey = ScoreSurvey.of(part.scores, len(known.classes), part.keep, where)
        return ScoresSeen(sample, columns, survey)


def merge_samples(*samples: ScoresSeen) -> ScoresSeen:
    """Those of several partitions, in their order."""
    return reduce(ScoresSeen.merge, samples)


def plan_of(seen: ScoresSeen, known: Known, n_judged: int, scoring: str) -> Planned:
    """How the scores of all rows are read, and all rows put into bins."""
    sample, n_classes = seen.sample, len(known.classes)
    option, warning = check_choice("score_type", known.score_type, SCORE_TYPES), None
    if option == "auto":
        verdict = seen.survey.score_type()
        option, warning = verdict.score_type, verdict.warning
    limits = seen.survey.edges.limits(option, is_turned=seen.columns.is_turned)
    kind = ScoreKind(n_classes, option, limits=limits)
    if seen.columns.is_turned:
        sample = replace(sample, scores=turn(sample.scores, option))
    plan, attributes = make_plan(
        sample,
        known.summary,
        known.attributes,
        kind,
        n_rows=known.n_rows,
        n_folds=n_judged,
        largest_weight=known.largest_weight,
        scoring=scoring,
    )
    backwards = find_backwards(sample.scores, kind, sample.labels, sample.weights)
    return plan, attributes, ScoresRead(kind, seen.columns, warning, backwards)


def bin_part(
    partition: int, given: Given, known: Known, planned: Planned, fold_of: FoldOf
) -> tuple[Chunk, MatrixSeen]:
    """The rows of a partition in bins, and the facts about them."""
    plan, attributes, read = planned
    part, _ = part_of(partition, given, known)
    part = replace(part, scores=read.in_order(part.scores))
    fold = fold_of(known.first(partition), len(part))
    return bin_rows(part, attributes, plan.bins, read.kind, fold)


def encode_part(
    partition: int, given: Given, known: Known, planned: Planned
) -> tuple[Dataset, MatrixSeen]:
    """The rows of a partition as plain arrays, and the facts about them."""
    _, attributes, read = planned
    part, _ = part_of(partition, given, known)
    matrix, scores = part.encode(attributes), read.in_order(part.scores)
    seen = MatrixSeen.of(matrix, part.labels, scores, read.kind)
    rows = Dataset.of(attributes, matrix, part.labels, read.kind, scores, part.weights)
    return rows, seen


def merge_encoded(*seen: MatrixSeen) -> MatrixSeen:
    """Merge the facts about the encoded rows of several partitions."""
    return reduce(MatrixSeen.merge, seen)


def merge_smallest(*some: SmallestHashes | None) -> SmallestHashes | None:
    """The smallest hashes of several partitions; None if some rows have none."""
    known = [few for few in some if few is not None]
    return reduce(SmallestHashes.merge, known) if len(known) == len(some) else None


def _check_part(X: Any, y: Any, weights: Any) -> tuple[int, Mask | None, Classes, Floats | None]:
    """The number of rows, which of them count (None for all), and their labels and weights."""
    n_rows = count_rows(X, "X")
    weight = _weights(weights, n_rows)
    keep = None if weight is None or weight.all() else weight > 0
    labels = labels_of_part(y, n_rows, keep)
    return n_rows, keep, labels, weight if keep is None or weight is None else weight[keep]


def _weights(weights: Any, n_rows: int) -> Floats | None:
    """The weights of a partition, all of which may be 0."""
    if weights is None:
        return None
    values = np.asarray(weights)
    if values.dtype.kind in "biuf" and values.shape == (n_rows,) and not values.any():
        return np.zeros(n_rows)
    return check_weights(weights, n_rows)


class _Naming:
    """Says in which partition an error occurred."""

    def __init__(self, partition: int) -> None:
        self._partition = partition

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, TypeError | ValueError):
            raise type(error)(f"{error} (in partition {self._partition})") from error
