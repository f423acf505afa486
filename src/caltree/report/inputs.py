"""The rows of a report, checked, with their probabilities before and after calibration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._base import Calibrator
from .._classifier_base import CalibratedClassifierBase, before_and_after
from .._fitted.conditions import short
from .._fitted.fingerprint import Overlap, calibration_hashes, table_hashes
from .._fitted.names import printable
from .._inputs.arrays import Floats, Labels
from .._inputs.attributes import Attributes, learn
from .._inputs.indexing import count_rows, take_rows
from .._inputs.labels import check_weights, known_labels
from .._inputs.ranking import describe_backwards, find_backwards
from .._inputs.scores import ScoreKind
from .._inputs.unseen import Unseen
from .._model_base import AttributeCalibrator, fitted_attributes
from .intervals import Predictions


@dataclass(frozen=True, eq=False)
class _Read:
    """The part of `Rows` that the calibrator and the table give."""

    before: Floats
    after: Floats
    score_type: str
    attributes: Attributes | None
    matrix: Floats | None
    """The encoded attributes, if there are any."""
    unreadable: str | None
    """Why there are no attributes; None if there are."""
    unseen: Unseen
    """How many rows have values that training did not have."""
    overlap: Overlap | None
    """How many of these rows the calibrator was fitted to; None if that is not known."""


@dataclass(frozen=True, eq=False)
class Rows(_Read):
    """The checked rows of a report, with their probabilities."""

    calibrator: Any
    is_model: bool
    """Whether the scores are those of the classifier of a `CalibratedClassifier`."""
    classes: list[str]
    truth: Floats
    """The labels as ones and zeros, one column a class."""
    weights: Floats

    @cached_property
    def labels(self) -> Labels:
        """The index of the true class of each row."""
        return np.asarray(self.truth.argmax(axis=1), dtype=np.uint16)

    @cached_property
    def positive(self) -> int | None:
        """The class that a single column of scores is the score of; None of several columns."""
        return None if self.is_model else self.calibrator.score_columns_.positive

    @property
    def event(self) -> int | None:
        """Of two classes, the one whose probability is told: that of a single column of scores."""
        if len(self.classes) > 2:
            return None
        return 1 if self.positive is None else self.positive

    @cached_property
    def backwards(self) -> str | None:
        """Which class the scores rank backwards, and why; None if they do not."""
        kind = ScoreKind(len(self.classes), "probability")
        found = find_backwards(self.before, kind, self.labels, self.weights, self.after)
        return describe_backwards(found, self.classes, self.positive) if found else None

    @cached_property
    def predictions(self) -> Predictions:
        """The truth and the probabilities, by class."""
        parts = (self.truth, self.before, self.after, self.weights)
        return Predictions.of(self.classes, *parts, self.event)


def check_rows(calibrator: Any, X: Any, y: Any, scores: Any, sample_weight: Any) -> Rows:
    """Check the arguments of a report, and ask the calibrator for probabilities."""
    is_model = isinstance(calibrator, CalibratedClassifierBase)
    _check_arguments(calibrator, is_model, scores)
    of, n_rows = ("y", count_rows(y, "y")) if X is None else ("X", count_rows(X, "X"))
    if n_rows == 0:
        raise ValueError(f"{of} has 0 rows; a report needs rows of at least two classes")
    if count_rows(y, "y") != n_rows:
        raise ValueError(f"y has {count_rows(y, 'y')} labels, but X has {n_rows} rows")
    weights = check_weights(sample_weight, n_rows, of)
    keep = None if weights is None or weights.all() else weights > 0
    if not is_model:
        scores = calibrator.read_scores(scores, n_rows, keep, of)
    if keep is not None and weights is not None:
        kept = np.flatnonzero(keep)
        X, y, weights = None if X is None else take_rows(X, kept), take_rows(y, kept), weights[kept]
    truth = known_labels(y, calibrator.classes_, count_rows(y, "y"))
    labels = truth.argmax(axis=1)
    if (labels == labels[0]).all():
        only = calibrator.classes_.tolist()[labels[0]]
        raise ValueError(
            f"y contains one class only, {only!r}; a report needs rows of at least two classes"
        )
    if is_model:
        read = _read_model(calibrator, X, labels)
    else:
        read = _read_scores(calibrator, X, labels, scores)
    return Rows(
        calibrator=calibrator.calibrator_ if is_model else calibrator,
        is_model=is_model,
        classes=[short(label) for label in calibrator.classes_.tolist()],
        truth=truth,
        weights=np.ones(len(truth)) if weights is None else weights,
        **vars(read),
    )


def _check_arguments(calibrator: Any, is_model: bool, scores: Any) -> None:
    if not is_model and not isinstance(calibrator, Calibrator):
        raise TypeError(
            "calibrator_or_model must be a fitted calibrator of caltree or a "
            f"CalibratedClassifier, got {calibrator!r:.200}"
        )
    check_is_fitted(calibrator)
    name = type(calibrator).__name__
    if is_model and scores is not None:
        raise ValueError(
            f"scores must be None: a {name} asks its own classifier; to report on stored scores, "
            "give its calibrator_"
        )
    if not is_model and scores is None:
        raise ValueError(
            f"scores is None, but {name} calibrates scores; give those of the classifier, "
            "as for fit"
        )


def _read_model(model: CalibratedClassifierBase, X: Any, labels: npt.NDArray[np.intp]) -> _Read:
    hashes = None if model.fingerprint_ is None else table_hashes(X, labels)
    known, matrix, unreadable, unseen = _read_attributes(
        model.calibrator_, model.attribute_columns_.of(X)
    )
    overlap = None
    if model.fingerprint_ is not None and hashes is not None:
        overlap = model.fingerprint_.overlap(hashes)
    return _Read(*before_and_after(model, X), known, matrix, unreadable, unseen, overlap)


def _read_scores(calibrator: Any, X: Any, labels: npt.NDArray[np.intp], scores: Floats) -> _Read:
    after = calibrator.calibrate_scores(X, scores)
    kind = ScoreKind(len(calibrator.classes_), calibrator.score_type_)
    known, matrix, unreadable, unseen = _read_attributes(calibrator, X)
    unseen.warn()
    used = matrix if isinstance(calibrator, AttributeCalibrator) else None
    overlap = calibrator.fingerprint_.overlap(calibration_hashes(used, labels, scores, kind))
    before = kind.uncalibrated(scores)
    return _Read(before, after, kind.score_type, known, matrix, unreadable, unseen, overlap)


def _read_attributes(
    calibrator: Any, X: Any
) -> tuple[Attributes | None, Floats | None, str | None, Unseen]:
    """The attributes, their values in each row, or why there are none, and new values."""
    known, unseen = fitted_attributes(calibrator), Unseen()
    if known is not None:
        return known, known.encode(X, unseen), None, unseen
    if X is None:
        return None, None, "no attributes were given", unseen
    try:
        # The calibrator ignores them, but the report can still divide the rows by them.
        return *learn(X), None, unseen
    except (TypeError, ValueError) as error:
        return None, None, printable(error), unseen
