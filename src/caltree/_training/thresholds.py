"""Thresholds placed so that rounding to single precision does not move numbers across them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from .._fitted.trees import ONLY_MISSING, Trees
from .._inputs.arrays import Floats
from .._inputs.scores import ScoreKind

Singles = npt.NDArray[np.float32]
Model = TypeVar("Model", bound=Trees)


def round_thresholds(model: Model, matrix: Floats, scores: Floats, kind: ScoreKind) -> Model:
    """Move all thresholds of trees that were grown elsewhere; see `round_score_thresholds`.

    `matrix` are the encoded attributes of the training rows. Categories have no thresholds.
    """
    thresholds = model.threshold.copy()
    for column, attribute in enumerate(model.attributes.columns):
        if attribute.categories is None:
            _round_on(model, column, matrix[:, column], thresholds, lambda trials: trials)
    if kind.score_type == "probability":
        return round_score_thresholds(replace(model, threshold=thresholds), scores, kind)
    n_attributes = len(model.attributes.columns)
    for column, values in enumerate(scores.T):
        _round_on(model, n_attributes + column, values, thresholds, lambda trials: trials)
    return replace(model, threshold=thresholds)


def round_score_thresholds(model: Model, scores: Floats, kind: ScoreKind) -> Model:
    """Move thresholds on probabilities to where single precision rounds up instead of down.

    `scores` are those of the training rows as node models see them; every row goes where it went.
    The core does the same for attributes and for scores that it sees untransformed.
    """
    if kind.score_type != "probability":
        return model
    thresholds = model.threshold.copy()
    n_attributes = len(model.attributes.columns)

    def as_given(seen: Floats) -> Floats:
        return np.asarray(expit(seen) if kind.n_classes == 2 else np.exp(seen))

    def as_seen(given: Floats) -> Floats:
        return _as_seen(np.clip(given, 0.0, 1.0), kind)

    for column, values in enumerate(scores.T):
        _round_on(model, n_attributes + column, values, thresholds, as_seen, as_given)
    return replace(model, threshold=thresholds)


def _round_on(
    model: Trees,
    column: int,
    values: Floats,
    thresholds: Floats,
    as_seen: Callable[[Floats], Floats],
    as_given: Callable[[Floats], Floats] = lambda seen: seen,
) -> None:
    """Move the thresholds on one column, of which training rows have some values."""
    on_it = (model.attribute == column) & (model.threshold != ONLY_MISSING)
    if on_it.any():
        seen = np.unique(values)
        seen = seen[~np.isnan(seen)]
        # Beyond single precision there is nothing to be found.
        with np.errstate(over="ignore", invalid="ignore"):
            thresholds[on_it] = _round(thresholds[on_it], seen, as_seen, as_given)


def _round(
    thresholds: Floats,
    seen: Floats,
    as_seen: Callable[[Floats], Floats],
    as_given: Callable[[Floats], Floats],
) -> Floats:
    """The nearest such thresholds between the same training values, where there are any.

    Single precision rounds the numbers that are given, which trees see as something else.
    """
    above = np.searchsorted(seen, thresholds, side="right")
    lowest = np.append(-np.inf, seen)[above]
    highest = np.append(seen, np.inf)[above]
    nearest = as_given(thresholds).astype(np.float32)
    found, distance = thresholds, np.full(len(thresholds), np.inf)
    for single in (
        nearest,
        np.nextafter(nearest, np.float32(-np.inf)),
        np.nextafter(nearest, np.float32(np.inf)),
    ):
        trial = as_seen(_last_rounded_to(single))
        better = (trial >= lowest) & (trial < highest) & (np.abs(trial - thresholds) < distance)
        found = np.where(better, trial, found)
        distance = np.where(better, np.abs(trial - thresholds), distance)
    return found


def _as_seen(probabilities: Floats, kind: ScoreKind) -> Floats:
    """Probabilities of one column as node models see them."""
    if kind.n_classes == 2:
        return kind.regressors(probabilities[:, np.newaxis])[:, 0]
    wide = np.repeat(probabilities[:, np.newaxis], kind.n_classes, axis=1)
    return kind.regressors(wide)[:, 0]


def _last_rounded_to(single: Singles) -> Floats:
    """The last numbers that are rounded to these in single precision."""
    above = np.nextafter(single, np.float32(np.inf)).astype(np.float64)
    edge = (single.astype(np.float64) + above) / 2.0
    return np.where(edge.astype(np.float32) == single, edge, np.nextafter(edge, -np.inf))
