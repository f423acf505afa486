"""Short numbers: what a forest says to a few digits, so that it takes little room when stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from .._fitted.model import FittedModel
from .._inputs.arrays import Floats
from .averaging import WEIGHT_UNITS

# A parameter may move the log-odds of a usual row by half of this.
_LOG_ODDS_STEP = 1e-4
_DIGITS_OF_A_GAIN = 4


def shorten_numbers(model: FittedModel, scores: Floats) -> FittedModel:
    """Round node models and gains, and leave out node models that count for nothing.

    `scores` are those of the training rows as node models see them: the larger they are, the finer
    are the steps of their slopes.
    """
    usual = np.sqrt(np.mean(np.square(scores), axis=0))
    decimals = np.zeros(model.parameters.shape[1:], dtype=np.int64)
    decimals[:, 0] = _count_decimals(np.ones(model.n_states))
    decimals[:, 1:] = _count_decimals(usual[model.seen_scores])
    counts = (model.weight > 0.0)[:, np.newaxis, np.newaxis]
    return replace(
        model,
        parameters=np.where(counts, _round(model.parameters, decimals), 0.0),
        gain=round_digits(model.gain, _DIGITS_OF_A_GAIN),
        weight=np.rint(model.weight * WEIGHT_UNITS) / WEIGHT_UNITS,
    )


def round_digits(values: Floats, n_digits: int) -> Floats:
    """Round numbers to so many significant digits."""
    sizes = np.log10(np.abs(values), where=values != 0.0, out=np.zeros_like(values))
    return _round(values, n_digits - 1 - np.floor(sizes).astype(np.int64))


def _count_decimals(usual: Floats) -> npt.NDArray[np.int64]:
    """Return the decimals of slopes of numbers of some usual size; those of zeros do not matter."""
    steps = _LOG_ODDS_STEP / np.where(usual > 0.0, usual, 1.0)
    return np.asarray(-np.floor(np.log10(steps)), dtype=np.int64)


def _round(values: Floats, decimals: npt.NDArray[np.int64]) -> Floats:
    """Round to so many decimals, which may be negative; numbers beyond doubles stay as they are."""
    # Whole numbers divided by powers of ten are the nearest doubles, which have short decimals.
    up = 10.0 ** np.maximum(decimals, 0)
    down = 10.0 ** np.maximum(-decimals, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.rint(values * up / down) * down / up
    return np.where(np.isfinite(rounded), rounded, values)
