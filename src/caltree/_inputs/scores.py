"""Scores of any kind as one float64 matrix, and the forms in which calibrators use them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from .arrays import Floats, Mask
from .score_limits import SMALLEST_PROBABILITY, USUAL_LIMITS, ScoreLimits
from .warning import describe

ScoreType: TypeAlias = Literal["probability", "logit", "margin"]

ON_BAD_ROWS = ("error", "nan")
SCORE_TYPES: tuple[Literal["auto"] | ScoreType, ...] = ("auto", "probability", "logit", "margin")
# Beyond this only the sign of a score means anything; its square is still a finite number.
LARGEST_SCORE = 1e100
LARGEST_LOG_ODDS = math.log((1.0 - SMALLEST_PROBABILITY) / SMALLEST_PROBABILITY)
# The published method counts certainties as these.
PUBLISHED_ZERO, PUBLISHED_ONE = 0.00001, 0.99999
# Probabilities whose sum is as close to 1 as this are not divided by it.
SUM_ROUNDING = 1e-12


def as_score_matrix(
    scores: Any,
    n_rows: int | None,
    n_classes: int,
    keep: Mask | None = None,
    of: str = "X",
    *,
    finite: bool = True,
) -> Floats:
    """Check scores and make a matrix of them, without a copy if they are float64 already.

    They have one column for the second of two classes, or one column per class for each of several
    classifiers side by side. None allows any number of rows; `of` is the argument with that
    number, for messages. Rows outside of `keep` are dropped. Without `finite` any number will do.
    """
    refuse_missing_scores(scores)
    array = _as_array(scores)
    if array.ndim == 0:
        raise TypeError(
            f"scores must be a list or an array with one score or row of scores per row of {of}, "
            f"got {describe(scores)}"
        )
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ValueError(
            f"scores must have rows and at most one more dimension, got shape {array.shape}; "
            "put one column per class side by side"
        )
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"scores has {len(array)} rows, but {of} has {n_rows}")
    n_columns = array.shape[1]
    if not (n_columns == 1 and n_classes == 2) and (n_columns == 0 or n_columns % n_classes):
        one = "one column for the second class or " if n_classes == 2 else ""
        raise ValueError(
            f"scores has {n_columns} columns, but y has {n_classes} classes; "
            f"give {one}one column per class (or a multiple for several classifiers)"
            f"{_without_rows(n_columns, n_classes)}"
        )
    matrix = _as_numbers(array)
    if finite:
        _check_finite(matrix, keep)
    return matrix if keep is None else matrix[keep]


def _without_rows(n_columns: int, n_classes: int) -> str:
    """What to do with the columns of classes that the labels lack, if there may be some."""
    if n_columns < n_classes or n_classes == 2:
        return ""
    return (
        "; if the classifier knows classes that y lacks, leave out their columns and divide each "
        "row by its sum"
    )


def refuse_missing_scores(scores: Any, *, in_fit: bool = False) -> None:
    """Refuse None, which stands for an argument that was left out; tell where scores come from."""
    if scores is not None:
        return
    if in_fit:
        raise TypeError(
            "scores is missing: a calibrator is fitted to the scores of a classifier, "
            "fit(X, y, scores), on rows that the classifier was not trained on; or give "
            "the classifier itself to CalibratedClassifier, which makes such scores"
        )
    raise TypeError(
        "scores is missing: give the scores of the classifier for these rows; "
        "a CalibratedClassifier needs none, since it makes them from X"
    )


@dataclass(frozen=True)
class ScoreKind:
    """How a matrix of scores is read: for how many classes, and as which type."""

    n_classes: int
    score_type: ScoreType
    published: bool = False
    """Whether they become regressors as in the published method."""
    limits: ScoreLimits = USUAL_LIMITS
    """What probabilities of 0 and 1 count as in other methods."""

    def regressors(self, matrix: Floats) -> Floats:
        """The regressors of the node models, as a new Fortran-ordered matrix.

        Of two classes the log-odds or margins (one column, if there is one classifier), and then
        for each of these a column that lets node models bend, see `bend`. Of more classes the
        logarithms of probabilities, or margins. With `published`, log-odds of every column.
        """
        if self.published:
            return log_odds(matrix, self.score_type, published=True)
        plain = self._plain_regressors(matrix)
        if self.n_classes > 2:
            return plain
        return np.asfortranarray(np.hstack([plain, bend(plain)]))

    def _plain_regressors(self, matrix: Floats) -> Floats:
        if self.score_type == "margin":
            return log_odds(matrix, "margin")
        if self.score_type == "logit":
            if matrix.shape[1] == 1:
                return np.asfortranarray(np.clip(matrix, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))
            # A constant added to all logits of a row says nothing; the softmax removes it.
            matrix = softmax(self._by_classifier(matrix), axis=2).reshape(matrix.shape)
        check_probabilities(matrix)
        if self.n_classes > 2:
            # Unlike log-odds, these can be sharpened for all classes together, and the classes of
            # a sure row keep their order.
            return np.asfortranarray(np.log(np.maximum(matrix, self.limits.lowest)))
        second = matrix[:, 1:] if matrix.shape[1] == 2 else matrix
        return log_odds(second, "probability", self.limits)

    def log_odds(self, matrix: Floats) -> Floats:
        """The log-odds of each column; see the function of this name."""
        return log_odds(matrix, self.score_type, self.limits)

    def offset(self, matrix: Floats, regressors: Floats) -> Floats | None:
        """The uncalibrated probabilities in the log-odds of the node models, Fortran-ordered.

        With two classes the log-odds of the second, otherwise the logarithms of the probabilities,
        clipped; None for margins, which are not probabilities.
        """
        if self.score_type == "margin":
            return None
        if is_offset(self.n_classes, regressors.shape[1]):
            return regressors[:, :1]
        probabilities = self.uncalibrated(matrix)
        if self.n_classes == 2:
            return log_odds(probabilities[:, 1:], "probability", self.limits)
        return np.asfortranarray(np.log(np.maximum(probabilities, self.limits.lowest)))

    def uncalibrated(self, matrix: Floats) -> Floats:
        """The scores as probabilities, one column per class.

        Probabilities are divided by their sum; logits and margins go through the softmax, or with
        two classes and one column through the logistic function.
        """
        scores = self.average(matrix)
        if self.score_type == "probability":
            if scores.shape[1] == 1:
                return np.hstack([1.0 - scores, scores])
            return normalize_rows(scores)
        if scores.shape[1] == 1:
            return np.hstack([expit(-scores), expit(scores)])
        return np.asarray(softmax(scores, axis=1))

    def average(self, matrix: Floats) -> Floats:
        """The mean over several classifiers side by side, of shape (n, 1) or (n, n_classes).

        Scores other than probabilities are clipped to -1e100 and 1e100 first.
        """
        if self.score_type == "probability":
            check_probabilities(matrix)
        else:
            matrix = np.clip(matrix, -LARGEST_SCORE, LARGEST_SCORE)
        if matrix.shape[1] <= self.n_classes:
            return matrix
        return np.asarray(self._by_classifier(matrix).mean(axis=1))

    def one_score_a_class(self, matrix: Floats) -> Floats:
        """One column per class, for calibrators that map the score of each class on its own.

        The scores are averaged. Of two classes only the column of the second is left, from which
        the first is subtracted unless they are probabilities.
        """
        scores = self.average(matrix)
        if self.n_classes > 2 or scores.shape[1] == 1:
            return scores
        second = scores[:, 1:]
        return second if self.score_type == "probability" else second - scores[:, :1]

    def one_score_a_classifier(self, matrix: Floats) -> Floats:
        """The scores of `one_score_a_class` before they are averaged.

        Of shape (n, classifiers, columns).
        """
        if matrix.shape[1] <= self.n_classes:
            return self.one_score_a_class(matrix)[:, np.newaxis]
        each = self._by_classifier(matrix)
        columns = [self.one_score_a_class(each[:, i]) for i in range(each.shape[1])]
        return np.stack(columns, axis=1)

    def _by_classifier(self, matrix: Floats) -> Floats:
        """The scores as an array of shape (n, classifiers, classes)."""
        return matrix.reshape(len(matrix), matrix.shape[1] // self.n_classes, self.n_classes)


def bend(log_odds: Floats) -> Floats:
    """Return ln s(1 - s) of the probability s of given log-odds.

    A logistic model of log-odds and this is beta calibration's: one slope for ln s, another for
    ln (1 - s).
    """
    size = np.abs(log_odds)
    return np.asarray(-size - 2.0 * np.log1p(np.exp(-size)))


def is_offset(n_classes: int, n_scores: int) -> bool:
    """Whether the first regressor is the offset: two classes, one classifier."""
    return n_classes == 2 and n_scores == 2


def resolve_monotone(monotone: bool | Literal["auto"], kind: ScoreKind, n_columns: int) -> bool:
    """Whether a higher score must not give a lower probability; "auto" if that can be said."""
    is_one = n_columns == 1 or (n_columns == 2 and kind.score_type != "margin")
    is_possible = kind.n_classes == 2 and is_one
    if isinstance(monotone, str):
        return is_possible
    if monotone and not is_possible:
        raise ValueError(
            "monotone=True needs two classes and one score, but there are "
            f"{kind.n_classes} classes and {n_columns} columns of scores; use monotone='auto', or "
            "give the score of one class alone"
        )
    return bool(monotone)


def log_odds(
    matrix: Floats,
    score_type: ScoreType,
    limits: ScoreLimits = USUAL_LIMITS,
    *,
    published: bool = False,
) -> Floats:
    """Turn scores into log-odds, as a new Fortran-ordered matrix.

    Scores other than probabilities are unchanged, but clipped to -1e100 and 1e100. Probabilities
    are clipped to the limits: by default 2**-53 and 1 - 2**-53, that is log-odds to about -36.7 and
    36.7. With `published` a probability of 0 counts as 0.00001 and one of 1 as 0.99999, and
    no other is changed, however small.
    """
    if score_type != "probability":
        clipped = np.empty(matrix.shape, order="F")
        return np.clip(matrix, -LARGEST_SCORE, LARGEST_SCORE, out=clipped)
    check_probabilities(matrix)
    odds = np.array(matrix, order="F")
    if published:
        np.copyto(odds, PUBLISHED_ZERO, where=odds == 0.0)
        np.copyto(odds, PUBLISHED_ONE, where=odds == 1.0)
    else:
        np.clip(odds, limits.lowest, limits.highest, out=odds)
    np.divide(odds, 1.0 - odds, out=odds)
    return np.log(odds, out=odds)


def normalize_rows(values: Floats) -> Floats:
    """Divide each row by its sum, unless that is 1 already; a row of zeros becomes uniform."""
    sums = values.sum(axis=1, keepdims=True)
    divisors = np.where(np.abs(sums - 1.0) > SUM_ROUNDING, sums, 1.0)
    probabilities = np.full(values.shape, 1.0 / values.shape[1])
    np.divide(values, divisors, out=probabilities, where=sums > 0)
    return probabilities


def check_probabilities(matrix: Floats, keep: Mask | None = None) -> None:
    """Refuse numbers that are not probabilities; the rows are those in `keep`, if not all."""
    if matrix.min(initial=0.0) >= 0.0 and matrix.max(initial=1.0) <= 1.0:
        return
    row, column = np.argwhere((matrix < 0.0) | (matrix > 1.0))[0]
    number = row if keep is None else np.flatnonzero(keep)[row]
    raise ValueError(
        f"scores contains {matrix[row, column]} in row {number}, column {column}, which is not a "
        "probability; use score_type='logit' or 'margin' if the scores are not probabilities"
    )


def replace_bad_rows(matrix: Floats, score_type: ScoreType) -> tuple[Floats, Mask | None]:
    """Zeros for rows with a score that is missing, infinite or not a probability; and which.

    None says that there are no such rows.
    """
    wrong = ~np.isfinite(matrix)
    if score_type == "probability":
        wrong |= (matrix < 0.0) | (matrix > 1.0)
    bad: Mask = np.asarray(wrong.any(axis=1))
    if not bad.any():
        return matrix, None
    return np.where(bad[:, np.newaxis], 0.0, matrix), bad


def _as_array(scores: Any) -> npt.NDArray[Any]:
    if isinstance(scores, np.ma.MaskedArray):
        raise TypeError("scores is a masked array; drop the masked rows and use scores.data")
    try:
        return np.asarray(scores)
    except ValueError:
        raise ValueError("scores must be a list of rows of one length") from None


def _as_numbers(array: npt.NDArray[Any]) -> Floats:
    if array.dtype.kind in "biuf":
        return array.astype(np.float64, copy=False)
    if array.dtype.kind == "O":
        # numpy would read a string as the number it spells, and knows no pandas.NA.
        plain = [None if type(value).__name__ == "NAType" else value for value in array.flat]
        if not any(isinstance(value, str | bytes) for value in plain):
            try:
                return np.array(plain, dtype=np.float64).reshape(array.shape)
            except (TypeError, ValueError):
                pass
    raise TypeError(
        f"scores must be numbers, got values of type {array.dtype}; convert them, "
        "e.g. to the classifier's probabilities"
    )


def _check_finite(matrix: Floats, keep: Mask | None) -> None:
    if np.isfinite(matrix).all():
        return
    wrong = ~np.isfinite(matrix)
    if keep is not None:
        wrong[~keep] = False
    missing = wrong & np.isnan(matrix)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise ValueError(
            f"scores contains NaN in row {row}, column {column}; drop those rows or fill them"
        )
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"scores contains infinity in row {row}, column {column}; "
            "replace it by a large finite number"
        )
