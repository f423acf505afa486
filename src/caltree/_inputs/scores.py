"""Any scores to one float64 matrix of log-odds."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from .arrays import Floats, Mask
from .parameters import check_choice

ScoreType: TypeAlias = Literal["probability", "logit", "margin"]

SCORE_TYPES: tuple[str, ...] = ("auto", *get_args(ScoreType))
_SUM_TOLERANCE = 1e-3
EXTREMES = ("clip", "published")
# Beyond this only the sign of a score means anything; its square is still a finite number.
LARGEST_SCORE = 1e100
# What lies closest to 1 is this far from it.
SMALLEST_PROBABILITY = 2.0**-53
LARGEST_LOG_ODDS = math.log((1.0 - SMALLEST_PROBABILITY) / SMALLEST_PROBABILITY)
# Probabilities whose sum is as close to 1 as this are left as they are.
SUM_ROUNDING = 1e-12


def as_score_matrix(
    scores: Any,
    n_rows: int | None,
    n_classes: int,
    keep: Mask | None = None,
    of: str = "X",
) -> Floats:
    """Check scores and make a matrix of them.

    Parameters
    ----------
    scores : array, list, or pandas, polars or pyarrow series or table
        One column for the second of two classes, or one column a class for each of k classifiers
        side by side.
    n_rows : int or None
        The number of rows there must be; None for any.
    n_classes : int
        The number of classes.
    keep : ndarray of bool, optional
        The rows to use; the others are left out as if absent.
    of : str
        What has that many rows; used in messages.

    Returns
    -------
    ndarray of shape (n, 1) or (n, k * n_classes)
        The scores as they are, without a copy where they are float64 already and all are kept.
    """
    array = _as_array(scores)
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise ValueError(
            f"scores must have rows and at most one more dimension, got shape {array.shape}; "
            "put one column a class side by side"
        )
    if n_rows is not None and len(array) != n_rows:
        raise ValueError(f"scores has {len(array)} rows, but {of} has {n_rows}")
    n_columns = array.shape[1]
    if not (n_columns == 1 and n_classes == 2) and (n_columns == 0 or n_columns % n_classes):
        one = "one column for the second class or " if n_classes == 2 else ""
        raise ValueError(
            f"scores has {n_columns} columns, but y has {n_classes} classes; "
            f"give {one}one column a class (or a multiple for several classifiers)"
        )
    matrix = _as_numbers(array)
    _check_finite(matrix, keep)
    return matrix if keep is None else matrix[keep]


def resolve_score_type(matrix: Floats, n_classes: int, score_type: str) -> ScoreType:
    """Say what kind of scores a matrix holds.

    Parameters
    ----------
    matrix : ndarray
        What :func:`as_score_matrix` returned.
    n_classes : int
        The number of classes.
    score_type : {"auto", "probability", "logit", "margin"}
        "auto" means probability if every score is in [0, 1] and the columns of each classifier
        sum to 1 in every row (one column alone need not), and margin otherwise.

    Returns
    -------
    {"probability", "logit", "margin"}
        The kind of the scores.
    """
    known = check_choice("score_type", score_type, SCORE_TYPES)
    if known != "auto":
        return cast(ScoreType, known)
    if matrix.min(initial=0.0) < 0.0 or matrix.max(initial=1.0) > 1.0:
        return "margin"
    if matrix.shape[1] == 1:
        return "probability"
    ones = np.ones(n_classes)
    for start in range(0, matrix.shape[1], n_classes):
        sums = matrix[:, start : start + n_classes] @ ones
        if np.abs(sums - 1.0).max(initial=0.0) > _SUM_TOLERANCE:
            return "margin"
    return "probability"


def log_odds(matrix: Floats, score_type: ScoreType, extremes: str = "published") -> Floats:
    """Turn scores into log-odds.

    Parameters
    ----------
    matrix : ndarray
        What :func:`as_score_matrix` returned.
    score_type : {"probability", "logit", "margin"}
        What :func:`resolve_score_type` returned.
    extremes : {"published", "clip"}
        "published" counts a probability of 0 as 0.00001 and one of 1 as 0.99999, and leaves those
        between as they are, be they even smaller. "clip" cuts all of them off at 2**-53 and
        1 - 2**-53, that is log-odds at about -36.7 and 36.7, so that their order stays.

    Returns
    -------
    ndarray of the shape of `matrix`
        A new Fortran-ordered matrix: ``log(p / (1 - p))`` for probabilities; other scores as they
        are, cut off at -1e100 and 1e100.
    """
    if score_type != "probability":
        clipped = np.empty(matrix.shape, order="F")
        return np.clip(matrix, -LARGEST_SCORE, LARGEST_SCORE, out=clipped)
    check_probabilities(matrix)
    odds = np.array(matrix, order="F")
    if extremes == "clip":
        np.clip(odds, SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY, out=odds)
    else:
        np.copyto(odds, 0.00001, where=odds == 0.0)
        np.copyto(odds, 0.99999, where=odds == 1.0)
    np.divide(odds, 1.0 - odds, out=odds)
    return np.log(odds, out=odds)


def regressors(matrix: Floats, n_classes: int, score_type: ScoreType, extremes: str) -> Floats:
    """The scores as the node models of a tree see them.

    Parameters
    ----------
    matrix, n_classes, score_type
        As for :func:`averaged`.
    extremes : {"published", "clip"}
        As for :func:`log_odds`. With "clip" one column will do for the probabilities of two
        classes, and those of more classes enter as logarithms, cut off likewise.

    Returns
    -------
    ndarray
        A new Fortran-ordered matrix.
    """
    if extremes == "published" or score_type == "margin":
        return log_odds(matrix, score_type, extremes)
    if score_type == "logit":
        if matrix.shape[1] == 1:
            return np.asfortranarray(np.clip(matrix, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))
        # What counts is the softmax: a constant in all logits of a row says nothing.
        blocks = matrix.reshape(len(matrix), -1, n_classes)
        matrix = softmax(blocks, axis=2).reshape(matrix.shape)
    check_probabilities(matrix)
    if n_classes > 2:
        # With these any sharpness of all classes together is within reach, as it is not with
        # log-odds, and the classes of a sure row stay in their order.
        return np.asfortranarray(np.log(np.maximum(matrix, SMALLEST_PROBABILITY)))
    return log_odds(matrix[:, 1:] if matrix.shape[1] == 2 else matrix, "probability", extremes)


def uncalibrated(matrix: Floats, n_classes: int, score_type: ScoreType) -> Floats:
    """The scores as probabilities, one column a class, with nothing put right.

    Parameters
    ----------
    matrix, n_classes, score_type
        As for :func:`averaged`.

    Returns
    -------
    ndarray of shape (n, n_classes)
        Probabilities are divided by their sum; logits and margins go through the softmax, or with
        two classes and one column through the logistic function.
    """
    scores = averaged(matrix, n_classes, score_type)
    if score_type == "probability":
        if scores.shape[1] == 1:
            return np.hstack([1.0 - scores, scores])
        return normalised(scores)
    if scores.shape[1] == 1:
        return np.hstack([expit(-scores), expit(scores)])
    return np.asarray(softmax(scores, axis=1))


def normalised(values: Floats) -> Floats:
    """Each row divided by its sum, if that is not 1 already; 0 everywhere is as good as equal."""
    sums = values.sum(axis=1, keepdims=True)
    divisors = np.where(np.abs(sums - 1.0) > SUM_ROUNDING, sums, 1.0)
    probabilities = np.full(values.shape, 1.0 / values.shape[1])
    np.divide(values, divisors, out=probabilities, where=sums > 0)
    return probabilities


def offset(matrix: Floats, n_classes: int, score_type: ScoreType, odds: Floats) -> Floats | None:
    """What the scores say before any correction, in the log-odds of the node models.

    Parameters
    ----------
    matrix, n_classes, score_type
        As for :func:`averaged`.
    odds : ndarray
        What :func:`regressors` returned for them.

    Returns
    -------
    ndarray of shape (n, 1) or (n, n_classes), or None
        Fortran-ordered: with two classes the log-odds of the second, otherwise the logarithms of
        the probabilities, cut off as in :func:`log_odds`. None for margins, which are not
        probabilities.
    """
    if score_type == "margin":
        return None
    if is_offset(n_classes, odds.shape[1]):
        return odds
    probabilities = uncalibrated(matrix, n_classes, score_type)
    if n_classes == 2:
        return log_odds(probabilities[:, 1:], "probability", "clip")
    return np.asfortranarray(np.log(np.maximum(probabilities, SMALLEST_PROBABILITY)))


def is_offset(n_classes: int, n_scores: int) -> bool:
    """Whether the one score of two classes says what the node models correct."""
    return n_classes == 2 and n_scores == 1


def averaged(matrix: Floats, n_classes: int, score_type: ScoreType) -> Floats:
    """The mean over several classifiers side by side.

    Parameters
    ----------
    matrix : ndarray
        What :func:`as_score_matrix` returned.
    n_classes : int
        The number of classes.
    score_type : {"probability", "logit", "margin"}
        What :func:`resolve_score_type` returned.

    Returns
    -------
    ndarray of shape (n, 1) or (n, n_classes)
        Scores other than probabilities are cut off at -1e100 and 1e100 first.
    """
    if score_type == "probability":
        check_probabilities(matrix)
    else:
        matrix = np.clip(matrix, -LARGEST_SCORE, LARGEST_SCORE)
    if matrix.shape[1] <= n_classes:
        return matrix
    n_classifiers = matrix.shape[1] // n_classes
    return np.asarray(matrix.reshape(len(matrix), n_classifiers, n_classes).mean(axis=1))


def one_score_a_class(matrix: Floats, n_classes: int, score_type: ScoreType) -> Floats:
    """What a calibrator sees that maps the score of each class on its own.

    Parameters
    ----------
    matrix, n_classes, score_type
        As for :func:`averaged`.

    Returns
    -------
    ndarray of shape (n, 1) or (n, n_classes)
        The averaged scores. Of two classes one column is left, that of the second, from which
        the first is subtracted unless they are probabilities.
    """
    scores = averaged(matrix, n_classes, score_type)
    if n_classes > 2 or scores.shape[1] == 1:
        return scores
    second = scores[:, 1:]
    return second if score_type == "probability" else second - scores[:, :1]


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


def check_probabilities(matrix: Floats) -> None:
    """Refuse what is not a probability."""
    if matrix.min(initial=0.0) >= 0.0 and matrix.max(initial=1.0) <= 1.0:
        return
    row, column = np.argwhere((matrix < 0.0) | (matrix > 1.0))[0]
    raise ValueError(
        f"scores contains {matrix[row, column]} in row {row}, column {column}, which is not a "
        "probability; use score_type='logit' or 'margin' if the scores are not probabilities"
    )
