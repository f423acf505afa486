"""Response methods: where the scores of a classifier come from, and the scores as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from .._inputs.arrays import Classes, Floats
from .._inputs.scores import LARGEST_SCORE, ScoreType, log_odds

Method: TypeAlias = Literal["predict_proba", "decision_function"]

# Probabilities of single precision may leave [0, 1] by as much.
_OVERSHOOT = 1e-6


def choose_method(estimator: Any, wanted: str) -> Method:
    """Choose the method that gives the scores of a classifier."""
    methods: tuple[Method, ...] = ("predict_proba", "decision_function")
    for method in methods:
        if wanted in ("auto", method) and hasattr(estimator, method):
            return method
    lacks = "neither predict_proba nor decision_function" if wanted == "auto" else f"no {wanted}"
    raise TypeError(
        f"estimator {type(estimator).__name__} has {lacks}; use a classifier that gives scores"
        + ("" if wanted == "auto" else ", or response_method='auto'")
    )


def class_scores(estimator: Any, X: Any, classes: Classes, method: Method) -> Floats:
    """The scores of a fitted classifier, as `check_scores` returns them."""
    known = np.asarray(getattr(estimator, "classes_", classes))
    return check_scores(
        getattr(estimator, method)(X), known, classes, method, type(estimator).__name__
    )


def check_scores(
    values: Any, known: Classes, classes: Classes, method: Method, name: str
) -> Floats:
    """Check what a classifier returned, and give it one column for each of `classes`.

    Margins of two classes stay one column, that of the second. A class that is not among the
    `known` ones of the classifier has the probability 0, or the lowest of all margins.
    """
    matrix = _as_matrix(values, method, f"{name}.{method}")
    if matrix.shape[1] not in (len(known), 1 if len(known) == 2 else 0):
        raise ValueError(
            f"{name}.{method} gave {matrix.shape[1]} columns for {len(known)} classes; "
            "calibration needs one column per class"
        )
    if np.array_equal(known, classes):
        return matrix
    if matrix.shape[1] == 1:
        matrix = _two_columns(matrix, method)
    least = 0.0 if method == "predict_proba" else matrix.min(initial=0.0)
    aligned = np.full((len(matrix), len(classes)), least)
    aligned[:, np.searchsorted(classes, known)] = matrix
    return aligned


def _as_matrix(values: Any, method: Method, source: str) -> Floats:
    if isinstance(values, list) and values and np.ndim(values[0]) == 2:
        raise ValueError(f"{source} gave several outputs; calibrate one label at a time")
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix.reshape(-1, 1) if matrix.ndim == 1 else matrix
    if np.isnan(matrix).any():
        row = int(np.argwhere(np.isnan(matrix))[0, 0])
        raise ValueError(f"{source} gave NaN for row {row}; the classifier cannot be calibrated")
    if method == "decision_function":
        return np.clip(matrix, -LARGEST_SCORE, LARGEST_SCORE)
    if matrix.min(initial=0.0) < -_OVERSHOOT or matrix.max(initial=1.0) > 1.0 + _OVERSHOOT:
        raise ValueError(
            f"{source} gave numbers outside [0, 1], which are not probabilities; "
            "use response_method='decision_function'"
        )
    return np.clip(matrix, 0.0, 1.0)


def _two_columns(values: Floats, method: Method) -> Floats:
    """Scores of both classes, given the score of the second."""
    return np.hstack([1.0 - values if method == "predict_proba" else -values, values])


def combined_score_type(methods: Sequence[Method], combine: str = "side_by_side") -> ScoreType:
    """The type of the scores of several classifiers together."""
    if "decision_function" not in methods:
        return "probability"
    if "predict_proba" in methods and combine == "average":
        raise ValueError(
            "combine='average' needs scores of one kind, but some of the classifiers give "
            "probabilities and others margins; use combine='side_by_side' or response_method"
        )
    return "margin"


def combine_scores(parts: Sequence[Floats], methods: Sequence[Method], combine: str) -> Floats:
    """The scores of several classifiers, averaged or side by side.

    Beside margins, probabilities become log-odds.
    """
    if len(parts) == 1:
        return parts[0]
    if len(set(methods)) > 1:
        parts = [
            _as_margins(part) if method == "predict_proba" else part
            for part, method in zip(parts, methods, strict=True)
        ]
    if combine == "side_by_side" or len({part.shape[1] for part in parts}) > 1:
        score_type = combined_score_type(methods, combine)
        parts = [_one_column_a_class(part, score_type) for part in parts]
    return np.hstack(parts) if combine == "side_by_side" else np.asarray(np.mean(parts, axis=0))


def _as_margins(probabilities: Floats) -> Floats:
    odds = log_odds(probabilities, "probability")
    return odds[:, 1:] if odds.shape[1] == 2 else odds


def _one_column_a_class(scores: Floats, score_type: ScoreType) -> Floats:
    if scores.shape[1] > 1:
        return scores
    if score_type == "probability":
        return _two_columns(scores, "predict_proba")
    # Half of a margin for each of two classes: their difference is the margin.
    return scores * [-0.5, 0.5]
