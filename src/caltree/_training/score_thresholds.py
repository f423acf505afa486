"""Thresholds on scores: probabilities of single precision take the same way as all others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from .._fitted.model import ONLY_MISSING, FittedModel
from .._inputs.arrays import Floats
from .._inputs.scores import ScoreKind

Singles = npt.NDArray[np.float32]


def round_score_thresholds(model: FittedModel, scores: Floats, kind: ScoreKind) -> FittedModel:
    """Move thresholds on probabilities to where single precision rounds up instead of down.

    `scores` are those of the training rows as node models see them; every row goes where it went.
    The core does the same for attributes and for scores that it sees untransformed.
    """
    if kind.score_type != "probability":
        return model
    thresholds = model.threshold.copy()
    n_attributes = len(model.attributes.columns)
    for column in range(scores.shape[1]):
        on_it = (model.attribute == n_attributes + column) & (model.threshold != ONLY_MISSING)
        if on_it.any():
            seen = np.unique(scores[:, column])
            thresholds[on_it] = _round(thresholds[on_it], seen, kind)
    return replace(model, threshold=thresholds)


def _round(thresholds: Floats, seen: Floats, kind: ScoreKind) -> Floats:
    """The nearest such thresholds between the same training scores, where there are any."""
    above = np.searchsorted(seen, thresholds, side="right")
    lowest = np.append(-np.inf, seen)[above]
    highest = np.append(seen, np.inf)[above]
    probability = expit(thresholds) if kind.n_classes == 2 else np.exp(thresholds)
    nearest = probability.astype(np.float32)
    found, distance = thresholds, np.full(len(thresholds), np.inf)
    for single in (
        nearest,
        np.nextafter(nearest, np.float32(-np.inf)),
        np.nextafter(nearest, np.float32(np.inf)),
    ):
        edge = np.clip(_last_rounded_to(single), 0.0, 1.0)
        trial = _as_seen(edge, kind)
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
