"""Trees that grow level by level on sums over rows, once more in plain NumPy, written to be read.

This is the executable specification of the sums over a chunk of rows with ``tree_method="hist"``.
The node models and splits are those of ``shrunken.py``; what is new is that several trees grow
together, the first on all rows and each of the others on those that one fold does not hold out,
and that scores are cut off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import shrunken
from .shrunken import derivatives, losses

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

IN_NO_FOLD = 255
FARTHEST_SCORE = 100.0  # deviations from the mean
LARGEST_LOSS = 1e3


def see(
    scores: Floats, offset: Floats | None, n_classes: int, centre: Floats, scale: Floats, width: int
) -> shrunken.Regressors:
    """The scores as node models see them, given the scale of all rows, log-odds by log-odds."""
    all_scores = width - 1 == scores.shape[1]
    seen, is_own = shrunken.seen_by_states(scores, n_classes, all_scores=all_scores)
    n_states = len(is_own)
    if all_scores:
        centre, scale = (np.tile(values, (n_states, 1)) for values in (centre, scale))
    centre, scale = centre.reshape(is_own.shape), scale.reshape(is_own.shape)
    deviations = np.where(scale > 0, (seen - centre) / np.where(scale > 0, scale, 1.0), 0.0)
    deviations = np.clip(deviations, -FARTHEST_SCORE, FARTHEST_SCORE)
    return shrunken.Regressors(
        x=np.concatenate([np.ones((*seen.shape[:2], 1)), deviations], axis=2),
        offset=np.zeros(seen.shape[:2]) if offset is None else offset,
        centre=centre,
        scale=scale,
        is_own=is_own,
        corrects_probabilities=offset is not None,
    )


@dataclass(frozen=True)
class Sums:
    """The sums over the rows of a node that its model is fitted by."""

    weight: float
    loss: float
    deviance: float
    held_out: float
    gradient: Floats  # (states, width)
    hessian: Floats  # (states, width, width)


def rows_of_node(nodes: Rows, fold: Rows, tree: int, node: int) -> tuple[Rows, Rows]:
    """The rows in a node of a tree that it is grown on, and those held out from it."""
    inside = nodes[tree] == node
    held_out = (fold == tree - 1) if tree > 0 else np.zeros(len(fold), dtype=bool)
    return np.flatnonzero(inside & ~held_out), np.flatnonzero(inside & held_out)


def deviance(sample: shrunken.Sample, rows: Rows, parameters: Floats) -> Floats:
    """Minus the log-likelihood of each row, as far as it may count."""
    return np.minimum(losses(sample, rows, parameters), -np.log(shrunken.SMALLEST_LIKELIHOOD))


def sums_of_node(
    sample: shrunken.Sample, rows: Rows, held_out: Rows, parameters: Floats, *, log_loss: bool
) -> Sums:
    loss = losses(sample, rows, parameters)
    weights = sample.weights[rows]
    gradient, hessian = derivatives(sample, rows, parameters)
    error = deviance if log_loss else shrunken.squared_error
    return Sums(
        weight=float(weights.sum()),
        loss=float(weights @ np.minimum(loss, LARGEST_LOSS)),
        deviance=float(weights @ deviance(sample, rows, parameters)),
        held_out=float(sample.weights[held_out] @ error(sample, held_out, parameters)),
        gradient=gradient,
        hessian=hessian,
    )


def histogram_of_node(
    sample: shrunken.Sample, rows: Rows, parameters: Floats, attribute: int
) -> Floats:
    """(bins + 1, 1 + 2 states) weight, then residuals and variances in turn; missing last."""
    evidence = shrunken.make_evidence(sample, rows, parameters)
    column = sample.columns[attribute]
    result = np.zeros((column.n_bins + 1, 1 + 2 * sample.n_states))
    codes = column.codes[rows]
    np.add.at(result[:, 0], codes, evidence.weights)
    for state in range(sample.n_states):
        np.add.at(result[:, 1 + 2 * state], codes, evidence.residuals[:, state])
        np.add.at(result[:, 2 + 2 * state], codes, evidence.variances[:, state])
    return result


def held_out_predictions(
    sample: shrunken.Sample,
    nodes: Rows,
    fold: Rows,
    first: Rows,
    ancestor: Rows,
    parameters: Floats,
) -> Floats:
    """(sizes, n, states) predictions of each row by the tree that did not see it."""
    result = np.zeros((ancestor.shape[1], len(fold), sample.n_states))
    for row in np.flatnonzero(fold != IN_NO_FOLD):
        tree = fold[row] + 1
        for size, node in enumerate(ancestor[first[tree] + nodes[tree, row]]):
            result[size, row] = sample.probabilities(np.array([row]), parameters[node])[0]
    return result


def penalised_deviance(
    sample: shrunken.Sample,
    rows: Rows,
    held_at: Floats,
    penalty: float,
    parameters: Floats,
    *,
    of_root: bool,
) -> tuple[float, Floats]:
    """The penalised loss of a node model, and its gradient."""
    penalties = sample.regressors.penalties(penalty, of_root=of_root)
    distance = parameters - held_at
    loss = sample.weights[rows] @ losses(sample, rows, parameters)
    slope = penalties * distance - derivatives(sample, rows, parameters)[0]
    return float(loss + 0.5 * (penalties * distance**2).sum()), slope
