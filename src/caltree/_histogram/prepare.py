"""From tables, labels and scores to chunks of rows in bins: one part of the rows at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._fitted.fingerprint import Fingerprint, calibration_hashes
from .._inputs.arrays import Floats, Labels, Mask
from .._inputs.attributes import Attributes
from .._inputs.groups import GroupNumbers
from .._inputs.hashing import SmallestHashes
from .._inputs.indexing import take_rows
from .._inputs.label_copies import LabelCopies
from .._inputs.scores import ScoreKind
from .._training.dataset import scores_per_state
from .binning import Bins, sample_step
from .chunk import Chunk, Plan, Scale
from .summaries import TableSummary, learn_bins


@dataclass(frozen=True)
class Part:
    """Some of the training rows, checked."""

    X: Any
    """All rows of the part, as the table that they came in."""
    keep: Mask | None
    """Those of positive weight, if not all."""
    labels: Labels
    """From here on, of the kept rows alone."""
    scores: Floats
    weights: Floats | None
    groups: GroupNumbers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def summarise(self, categorical_features: Any, max_bins: int) -> TableSummary:
        """Summarise the columns of these rows."""
        return TableSummary.of(self.X, self.keep, self.weights, categorical_features, max_bins)

    def encode(self, known: Attributes) -> Floats:
        """Encode the attributes of the kept rows."""
        matrix = known.encode(self.X)
        return matrix if self.keep is None else matrix[self.keep]


@dataclass(frozen=True)
class Sample:
    """A sample of all rows: encoded attributes, scores, labels and weights."""

    matrix: Floats
    scores: Floats
    labels: Labels
    weights: Floats | None

    def merge(self, other: Sample) -> Sample:
        """Return the rows of both, in this order."""
        weights = None
        if self.weights is not None and other.weights is not None:
            weights = np.concatenate([self.weights, other.weights])
        return Sample(
            np.concatenate([self.matrix, other.matrix]),
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.labels, other.labels]),
            weights,
        )


@dataclass(frozen=True)
class MatrixSeen:
    """Facts about encoded rows, every one of which was looked at; mergeable."""

    smallest: SmallestHashes
    copies: LabelCopies

    @classmethod
    def of(cls, matrix: Floats, labels: Labels, scores: Floats, kind: ScoreKind) -> MatrixSeen:
        """Look at encoded rows, their labels and their scores."""
        hashes = calibration_hashes(matrix, labels, scores, kind)
        return cls(SmallestHashes.of(hashes), LabelCopies.of(matrix, labels))

    def merge(self, other: MatrixSeen) -> MatrixSeen:
        """Return the facts about the rows of both."""
        return MatrixSeen(self.smallest.merge(other.smallest), self.copies.merge(other.copies))

    @property
    def fingerprint(self) -> Fingerprint:
        """The fingerprint of the rows."""
        return Fingerprint.of_smallest(self.smallest)


def sample_rows(part: Part, first: int, n_rows: int, known: Attributes) -> Sample:
    """Take the rows of a part that are in the sample.

    `first` is the number of its first row among all `n_rows`.
    """
    step = sample_step(n_rows)
    chosen = np.arange(-first % step, len(part), step)
    places = chosen if part.keep is None else np.flatnonzero(part.keep)[chosen]
    return Sample(
        known.encode(take_rows(part.X, places)),
        part.scores[chosen],
        part.labels[chosen],
        None if part.weights is None else part.weights[chosen],
    )


def make_plan(
    sample: Sample,
    summary: TableSummary,
    known: Attributes,
    kind: ScoreKind,
    *,
    n_rows: int,
    n_folds: int,
    largest_weight: float,
    scoring: str,
    n_groups: int = 0,
) -> tuple[Plan, Attributes]:
    """Measure bins of attributes and scales of scores on a sample of the rows."""
    complete, bins = learn_bins(summary, known, sample.matrix, sample.weights)
    scores = kind.regressors(sample.scores)
    n_states = 1 if kind.n_classes == 2 else kind.n_classes
    per_state = scores_per_state(kind.n_classes, scores.shape[1])
    plan = Plan(
        bins=bins,
        scale=Scale.of(scores, sample.weights, n_states, per_state),
        n_classes=kind.n_classes,
        n_folds=n_folds,
        n_rows=n_rows,
        largest_weight=largest_weight,
        scoring=scoring,
        has_offset=kind.score_type != "margin",
        n_groups=n_groups,
    )
    return plan, complete


def bin_rows(
    part: Part, known: Attributes, bins: Bins, kind: ScoreKind, fold: npt.NDArray[np.uint8]
) -> tuple[Chunk, MatrixSeen]:
    """Return the rows of a part as a chunk, and the facts about them."""
    matrix = part.encode(known)
    odds = kind.regressors(part.scores)
    log_odds = kind.offset(part.scores, odds)
    chunk = Chunk(
        codes=bins.encode(matrix),
        labels=part.labels,
        scores=np.ascontiguousarray(odds),
        offset=None if log_odds is None else np.ascontiguousarray(log_odds),
        weights=part.weights,
        fold=fold,
        groups=part.groups,
    )
    return chunk, MatrixSeen.of(matrix, part.labels, part.scores, kind)
