"""One logistic model of the scores for all rows, as the root of a tree has it."""

from __future__ import annotations

import numpy as np

from .. import _core
from .._inputs.arrays import Floats, Labels
from .dataset import scores_per_state

# The core puts scores into bins, by which no root is fitted.
_FEWEST_BINS = 2


def fit_temperature(
    regressors: Floats, labels: Labels, n_classes: int, weights: Floats | None
) -> float:
    """Return the most likely slope: one for the log-odds or logarithms of all classes.

    `regressors` are those of one classifier, as node models see them; also of margins.
    """
    n_states = 1 if n_classes == 2 else n_classes
    # In units of their size: margins may be of any.
    own = regressors[:, :n_states]
    unit = float(np.sqrt(np.average(np.mean(own**2, axis=1), weights=weights)))
    if unit == 0.0:
        return 1.0
    scaled = np.asfortranarray(regressors / unit)
    training = _training(scaled, labels, n_classes, weights)
    start = np.asfortranarray(scaled[:, :n_states])
    root = _core.ShrunkenTraining(training, start, _FEWEST_BINS, n_states == 1)
    found = root.fit_root(penalty=1.0, temperature_only=True)
    # The change at the farthest score; where that is constant, the intercept has it.
    row, state = np.unravel_index(np.abs(start).argmax(), start.shape)
    farthest = start[row, state]
    change = (found[state, 0] + found[state, 1] * farthest) / farthest
    return float(1.0 + change) / unit


def fit_root(
    regressors: Floats,
    labels: Labels,
    n_classes: int,
    weights: Floats | None,
    penalty: float,
    *,
    corrects_scores: bool,
) -> Floats:
    """Return intercept and slopes of each log-odds, as those of a node.

    `corrects_scores` says that the regressors are those of probabilities, at whose temperature the
    model is held, and not margins.
    """
    n_states, n_scores = 1 if n_classes == 2 else n_classes, regressors.shape[1]
    offset = np.asfortranarray(regressors[:, :n_states]) if corrects_scores else None
    parameters = fit_correction(regressors, offset, labels, n_classes, weights, penalty)
    if corrects_scores:
        # The scores are the log-odds that are corrected: a slope of 1 adds them.
        states = np.arange(n_states)
        sees_all = scores_per_state(n_classes, n_scores) == n_scores
        parameters[states, 1 + (states if sees_all else 0)] += 1.0
    return parameters


def fit_correction(
    regressors: Floats,
    offset: Floats | None,
    labels: Labels,
    n_classes: int,
    weights: Floats | None,
    penalty: float,
    *,
    rising: bool = False,
) -> Floats:
    """Return intercept and slopes of each log-odds, to which the offset is to be added.

    Of one score of two classes, the log-odds can be made to rise with it everywhere.
    """
    n_scores = regressors.shape[1]
    sees_all = scores_per_state(n_classes, n_scores) == n_scores
    training = _training(regressors, labels, n_classes, weights)
    root = _core.ShrunkenTraining(training, offset, _FEWEST_BINS, sees_all)
    return root.fit_root(penalty, rising=rising)


def _training(
    regressors: Floats, labels: Labels, n_classes: int, weights: Floats | None
) -> _core.Training:
    """Return rows without attributes, of which the core wants one."""
    constant, no_categories = np.zeros((len(labels), 1)), np.zeros(1, dtype=np.int32)
    return _core.Training(
        constant, no_categories, np.zeros(1), labels, n_classes, regressors, weights
    )
