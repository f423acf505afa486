"""The rows of a report, checked, with their probabilities before and after calibration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from .._audit.rows import FOLDS
from .._audit.rows import Rows as Audited
from .._base import Calibrator
from .._classifier_base import CalibratedClassifierBase, before_and_after
from .._fitted.conditions import short
from .._fitted.fingerprint import Overlap, calibration_hashes, table_hashes
from .._fitted.names import printable
from .._inputs.arrays import Floats, Labels, Mask
from .._inputs.attributes import Attribute, Attributes, learn
from .._inputs.groups import GroupNumbers, number_groups, refuse_few_groups
from .._inputs.groups import check_groups as check_rows_together
from .._inputs.hashing import Hashes
from .._inputs.indexing import count_rows, take_columns, take_rows
from .._inputs.labels import check_weights, known_labels
from .._inputs.ranking import describe_backwards, find_backwards
from .._inputs.scores import ScoreKind
from .._inputs.unseen import Unseen
from .._inputs.warning import describe
from .._model_base import AttributeCalibrator, fitted_attributes
from .columns import add_columns, check_groups, find_columns

Given: TypeAlias = tuple[Any, Any, Any, Any]
"""Attributes, or None, labels, scores and weights, or None, of some rows."""

SCORE, CALIBRATED = "score", "calibrated probability"
NO_ATTRIBUTES = Attributes((Attribute("x0", None),), None)
"""One number, the same in all rows, for rows without attributes."""


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
    labels: Labels
    """The index of the true class of each row."""
    weights: Floats
    by: list[int]
    """The attributes whose groups are asked for."""
    n_own: int
    """How many of the attributes the calibrator takes; those behind them are of the user."""
    groups: GroupNumbers | None
    """Which rows belong together."""

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
    def audited(self) -> tuple[Audited, Audited]:
        """The rows as an audit takes them: with the scores, and with calibrated probabilities."""
        attributes, matrix = self.attributes, self.matrix
        if attributes is None or matrix is None:
            attributes, matrix = NO_ATTRIBUTES, np.zeros((len(self.labels), 1))
        first, second = (
            Audited(
                attributes=attributes,
                matrix=matrix,
                labels=self.labels,
                classes=self.classes,
                kind=ScoreKind(len(self.classes), "probability"),
                scores=probabilities,
                probabilities=probabilities,
                event=self.event,
                weights=None if (self.weights == 1.0).all() else self.weights,
                groups=self.groups,
                score_name=name,
            )
            for name, probabilities in ((SCORE, self.before), (CALIBRATED, self.after))
        )
        return first, second


def check_rows(
    calibrator: Any,
    X: Any,
    y: Any,
    scores: Any,
    sample_weight: Any,
    by: Any,
    groups: Any = None,
) -> Rows:
    """Check the arguments of a report, and ask the calibrator for probabilities."""
    is_model = isinstance(calibrator, CalibratedClassifierBase)
    _check_arguments(calibrator, is_model, scores)
    kept = _Kept.of(calibrator, X, y, scores, sample_weight)
    n_rows = count_rows(y, "y")
    weights = check_weights(sample_weight, n_rows, "y")
    keep = np.ones(n_rows, dtype=bool) if weights is None else weights > 0
    together = _number_groups(groups, keep)
    _check_classes(kept.labels, calibrator.classes_)
    if is_model:
        read = _read_model(calibrator, kept.X, kept.labels)
    else:
        read, hashes = _read_scores(calibrator, kept)
        read = replace(read, overlap=calibrator.fingerprint_.overlap(hashes))
        read.unseen.warn()
    own, further = find_columns(by, calibrator, kept.X, read.attributes)
    table = take_columns(kept.X, further) if further else None
    rows = _make_rows(calibrator, read, kept.labels, kept.weights, own, table, None)
    return replace(rows, groups=together)


def _number_groups(groups: Any, keep: Mask) -> GroupNumbers | None:
    """Number the groups of the rows that are kept, of which there are enough for folds."""
    given = check_rows_together(groups, len(keep), keep, "y")
    if given is None:
        return None
    n_groups, numbers = number_groups(given[keep])
    refuse_few_groups(n_groups, FOLDS, "a report")
    return numbers


def check_parts(
    calibrator: Any,
    parts: Iterable[Given],
    by: Sequence[int],
    further: Callable[[], Any] | None,
    groups: Callable[[], Any],
    folder: Path,
) -> Rows:
    """Check rows that come in parts, and ask a calibrator (not a model) for probabilities.

    Their encoded attributes are written to a file, and mapped into memory. `by` are attributes of
    the calibrator. Once all parts are read, `further` is asked for a table of further columns, and
    `groups` for the groups of rows that belong together.
    """
    check_is_fitted(calibrator)
    found: list[tuple[_Read, npt.NDArray[np.intp], Floats]] = []
    hashes, unseen, keep = [], Unseen(), []
    path = folder / "attributes"
    with path.open("wb") as file:
        for X, y, scores, weights in parts:
            keep.append(np.ones(len(y), dtype=bool) if weights is None else weights > 0)
            if not keep[-1].any():
                continue  # rows that count for nothing
            kept = _Kept.of(calibrator, X, y, scores, weights)
            read, some = _read_scores(calibrator, kept)
            hashes.append(some)
            unseen.update(read.unseen)
            if read.matrix is not None:
                file.write(np.ascontiguousarray(read.matrix).tobytes())
            found.append((replace(read, matrix=None), kept.labels, kept.weights))
    if not found:
        raise ValueError("all rows have weight 0; a report needs rows of positive weight")
    reads, labels, weight = zip(*found, strict=True)
    _check_classes(np.concatenate(labels), calibrator.classes_)
    unseen.warn()
    whole = replace(
        reads[0],
        before=np.concatenate([read.before for read in reads]),
        after=np.concatenate([read.after for read in reads]),
        matrix=_map_matrix(path, reads[0].attributes),
        unseen=unseen,
        overlap=calibrator.fingerprint_.overlap(np.concatenate(hashes)),
    )
    table, kept_rows = None, np.concatenate(keep)
    if further is not None and (table := further()) is not None:
        table = take_rows(table, np.flatnonzero(kept_rows))
    together = _number_groups(groups(), kept_rows)
    label, weights = np.concatenate(labels), np.concatenate(weight)
    rows = _make_rows(calibrator, whole, label, weights, by, table, folder)
    return replace(rows, groups=together)


def _map_matrix(path: Path, attributes: Attributes | None) -> Floats | None:
    if attributes is None:
        return None
    return np.memmap(path, np.float64, mode="r").reshape(-1, len(attributes.columns))


@dataclass(frozen=True, eq=False)
class _Kept:
    """The rows of positive weight."""

    X: Any
    labels: npt.NDArray[np.intp]
    """The index of the true class of each row."""
    weights: Floats
    scores: Any
    """Read, unless they are those of a model."""

    @classmethod
    def of(cls, calibrator: Any, X: Any, y: Any, scores: Any, sample_weight: Any) -> _Kept:
        """Check some rows."""
        of, n_rows = ("y", count_rows(y, "y")) if X is None else ("X", count_rows(X, "X"))
        if n_rows == 0:
            raise ValueError(f"{of} has 0 rows; a report needs rows of at least two classes")
        if count_rows(y, "y") != n_rows:
            raise ValueError(f"y has {count_rows(y, 'y')} labels, but X has {n_rows} rows")
        weights = check_weights(sample_weight, n_rows, of)
        keep = None if weights is None or weights.all() else weights > 0
        if not isinstance(calibrator, CalibratedClassifierBase):
            scores = calibrator.read_scores(scores, n_rows, keep, of)
        if keep is not None and weights is not None:
            kept = np.flatnonzero(keep)
            X = None if X is None else take_rows(X, kept)
            y, weights = take_rows(y, kept), weights[kept]
        labels = known_labels(y, calibrator.classes_, count_rows(y, "y")).argmax(axis=1)
        return cls(X, labels, np.ones(len(labels)) if weights is None else weights, scores)


def _make_rows(
    calibrator: Any,
    read: _Read,
    labels: npt.NDArray[np.intp],
    weights: Floats,
    by: Sequence[int],
    further: Any,
    folder: Path | None,
) -> Rows:
    is_model = isinstance(calibrator, CalibratedClassifierBase)
    n_own = 0 if read.attributes is None else len(read.attributes.columns)
    columns = list(by)
    if further is not None:
        attributes, matrix = add_columns(read.attributes, read.matrix, further, folder)
        read = replace(read, attributes=attributes, matrix=matrix)
        columns += range(n_own, len(attributes.columns))
    check_groups(read.attributes, columns)
    return Rows(
        calibrator=calibrator.calibrator_ if is_model else calibrator,
        is_model=is_model,
        classes=[short(label) for label in calibrator.classes_.tolist()],
        labels=labels.astype(np.uint16),
        weights=weights,
        by=columns,
        n_own=n_own,
        groups=None,
        **vars(read),
    )


def _check_classes(labels: npt.NDArray[np.intp], classes: npt.NDArray[Any]) -> None:
    present = np.unique(labels)
    if len(present) == 1:
        only = classes.tolist()[int(present[0])]
        raise ValueError(
            f"y contains one class only, {only!r}; a report needs rows of at least two classes"
        )


def _check_arguments(calibrator: Any, is_model: bool, scores: Any) -> None:
    if not is_model and not isinstance(calibrator, Calibrator):
        raise TypeError(
            "calibrator_or_model must be a fitted calibrator of caltree or a "
            f"CalibratedClassifier, got {describe(calibrator)}"
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


def _read_scores(calibrator: Any, kept: _Kept) -> tuple[_Read, Hashes]:
    """Ask a calibrator for probabilities; return also the hashes of the rows."""
    after = calibrator.calibrate_scores(kept.X, kept.scores)
    kind = ScoreKind(len(calibrator.classes_), calibrator.score_type_)
    known, matrix, unreadable, unseen = _read_attributes(calibrator, kept.X)
    used = matrix if isinstance(calibrator, AttributeCalibrator) else None
    hashes = calibration_hashes(used, kept.labels, kept.scores, kind)
    before = kind.uncalibrated(kept.scores)
    read = _Read(before, after, kind.score_type, known, matrix, unreadable, unseen, None)
    return read, hashes


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
        return *learn(X, identifiers="drop"), None, unseen
    except (TypeError, ValueError) as error:
        return None, None, printable(error), unseen
