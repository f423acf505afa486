"""The loss in three parts: what a curve corrects, what regions correct, and the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from .._inputs.arrays import Floats
from .._inputs.folds import make_folds
from .._inputs.scores import resolve_monotone
from .._training.averaging import best_weights
from .._training.dataset import Dataset
from .._training.exact import ExactEngine
from .._training.held_out import HeldOutRows, mix
from .._training.levels import leaf_levels
from .._training.losses import row_losses
from .._training.settings import Growth
from ..tree import CalibrationTree
from .effects import CONFIDENCE
from .rows import FOLDS, Rows

LOSSES = {"log_loss": "log_loss", "squared_error": "rmse"}
"""The losses that are split, and their names as scorings."""
# The ends of an interval, in standard errors.
REACH = float(ndtri(0.5 + CONFIDENCE / 2.0))
# More rows than this tell no more about the parts.
MOST_ROWS = 200_000
# Of more rows than this, two thirds show as much as four fifths do, in half the time.
_MANY_ROWS, _FEW_FOLDS = 50_000, 3


@dataclass(frozen=True)
class Part:
    """A part of a mean loss, with its interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class LossParts:
    """A mean loss of the scores, which is the sum of three parts.

    Attributes
    ----------
    total : Part
        The loss of the scores.
    calibration : Part
        What a curve for all rows corrects.
    grouping : Part
        What regions correct beyond it.
    refinement : Part
        The rest.
    """

    total: Part
    calibration: Part
    grouping: Part
    refinement: Part

    @classmethod
    def of(cls, rows: Rows, scores: Floats, curve: Floats, regions: Floats) -> LossParts:
        """Split the loss of every row, by its losses with a curve and with regions."""
        return cls(
            total=_mean_part(rows, scores),
            calibration=_mean_part(rows, scores - curve),
            grouping=_mean_part(rows, curve - regions),
            refinement=_mean_part(rows, regions),
        )


@dataclass(frozen=True, eq=False)
class Predicted:
    """Probabilities of all rows, by models that were fitted to others."""

    curves: dict[str, Floats]
    """Of a curve for all rows, the best by each of the losses."""
    regions: Floats


def split_losses(
    rows: Rows, random: np.random.Generator, n_jobs: int | None
) -> dict[str, LossParts]:
    """Split log loss and squared error, by predictions of rows that were held out."""
    rows = rows.take(sample_rows(rows, random))
    return split_held_out(rows, predict_held_out(rows, n_jobs))


def split_held_out(rows: Rows, predicted: Predicted) -> dict[str, LossParts]:
    """Split log loss and squared error, by what curves and regions predict."""
    found = {}
    for name, scoring in LOSSES.items():
        predictions = rows.probabilities, predicted.curves[name], predicted.regions
        losses = (row_losses(p, rows.labels, scoring) for p in predictions)
        found[name] = LossParts.of(rows, *losses)
    return found


def sample_rows(rows: Rows, random: np.random.Generator) -> npt.NDArray[np.intp]:
    """The rows whose losses are split: all, or as many as there are to be."""
    if len(rows) <= MOST_ROWS:
        return np.arange(len(rows))
    return np.sort(random.choice(len(rows), MOST_ROWS, replace=False))


def _mean_part(rows: Rows, losses: Floats) -> Part:
    """The mean of some losses, with the interval of rows, or of groups, that were drawn anew."""
    weights = rows.row_weights
    mean = float(np.average(losses, weights=weights))
    reach = REACH * error_of_sum(rows, weights * (losses - mean) / float(weights.sum()))
    return Part(mean, mean - reach, mean + reach)


def error_of_sum(rows: Rows, deviations: Floats) -> float:
    """The standard error of a sum over rows, or groups, by the deviations of the rows."""
    if rows.groups is not None:
        deviations = np.asarray(np.bincount(rows.groups, deviations), dtype=np.float64)
    return math.sqrt(float(deviations @ deviations))


def predict_held_out(rows: Rows, n_jobs: int | None, *, max_depth: int | None = None) -> Predicted:
    """Predict each row by a curve and by regions, those of the tree of the other folds.

    Trees are grown as `CalibrationTree` grows them by default. The scores themselves are averaged
    with their root to be the curve, and with all of their levels to be the regions. The weights are
    learned from other folds, too, so that neither is worse than the scores but for chance.
    """
    dataset = Dataset.of(
        rows.attributes,
        rows.matrix,
        rows.labels,
        rows.kind,
        rows.scores,
        rows.weights,
        rows.groups,
    )
    n_folds = FOLDS if len(rows) <= _MANY_ROWS else _FEW_FOLDS
    folds = make_folds(n_folds, rows.labels, None, 0, rows.groups)
    usual = CalibrationTree()
    growth = Growth(
        l2_regularization=usual.l2_regularization,
        min_samples_split=usual.min_samples_split,
        min_samples_leaf=usual.min_samples_leaf,
        max_depth=usual.max_depth if max_depth is None else max_depth,
        max_bins=usual.max_bins,
        monotone=resolve_monotone(usual.monotone, rows.kind, rows.scores.shape[1]),
        max_leaf_nodes=usual.max_leaf_nodes,
    )
    grown = ExactEngine(dataset, folds, growth, usual.scoring, n_jobs).grow()
    levels = leaf_levels(grown.whole, usual.max_leaf_nodes, between=True)
    held_out = grown.held_out(levels, uncalibrated=True)
    fold_of = np.repeat(np.arange(len(folds)), [len(test) for _, test in folds])
    # Held-out rows come fold by fold.
    rank = np.argsort(np.concatenate([test for _, test in folds]))
    root = replace(held_out, names=held_out.names[:2], probabilities=held_out.probabilities[:2])
    curves = {
        name: _average(replace(root, scoring=scoring), fold_of)[rank]
        for name, scoring in LOSSES.items()
    }
    return Predicted(curves, _average(held_out, fold_of)[rank])


def _average(held_out: HeldOutRows, fold_of: npt.NDArray[np.intp]) -> Floats:
    """Average the candidates of each row by the weights that are best for the other folds."""
    mixed = np.empty(held_out.probabilities[0].shape)
    for fold in range(int(fold_of.max()) + 1):
        own = fold_of == fold
        weights = best_weights(_take(held_out, ~own))
        mixed[own] = mix(weights, [p[own] for p in held_out.probabilities])
    return mixed


def _take(held_out: HeldOutRows, rows: np.ndarray) -> HeldOutRows:
    return replace(
        held_out,
        probabilities=[p[rows] for p in held_out.probabilities],
        labels=held_out.labels[rows],
        weights=None if held_out.weights is None else held_out.weights[rows],
        groups=None if held_out.groups is None else held_out.groups[rows],
    )
