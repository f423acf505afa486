"""The numbers of a forest, rounded to a few digits, so that its file is small."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._fitted.model import FittedModel
from .._inputs.arrays import Floats

# Rounding may move the log-odds of a usual row by half of this, by each parameter of the only tree.
# Errors of many trees average out: steps grow with the root of their number.
_LOG_ODDS_STEP = 0.005
# The largest gain of a forest is so many units.
_LARGEST_GAIN = 500.0
# The usual sizes of scores are taken to be within these limits, so that steps are finite numbers.
_SMALLEST_SCORE, _LARGEST_SCORE = 1e-100, 1e100


def shorten_numbers(model: FittedModel, scores: Floats) -> FittedModel:
    """Round node models and gains, and leave out node models that count for nothing.

    `scores` are those of the training rows as node models see them: the larger they are, the finer
    are the steps of their slopes. Gains become whole units, since only their shares are used.
    """
    usual = np.sqrt(np.mean(np.square(scores), axis=0))
    # Slopes over the scores of their own class have a step in common.
    sizes = np.append(1.0, usual[model.seen_scores].max(axis=0))
    step = _round_steps(_LOG_ODDS_STEP * np.sqrt(model.n_trees) / _within_limits(sizes))
    counts = (model.weight > 0.0)[:, np.newaxis, np.newaxis]
    largest = float(np.abs(model.gain).max())
    return replace(
        model,
        parameters=np.where(counts, np.rint(model.parameters / step) * step, 0.0),
        step=step,
        gain=np.rint(model.gain / largest * _LARGEST_GAIN) if largest > 0.0 else model.gain,
    )


def _within_limits(sizes: Floats) -> Floats:
    """Return sizes of scores that one can divide by; that of zeros does not matter."""
    return np.clip(np.where(sizes > 0.0, sizes, 1.0), _SMALLEST_SCORE, _LARGEST_SCORE)


def _round_steps(steps: Floats) -> Floats:
    """Return the next smaller numbers of one digit: 1, 2 or 5 times a power of ten."""
    powers = np.floor(np.log10(steps))
    leading = np.array([1, 2, 5])[np.searchsorted([2.0, 5.0], steps / 10.0**powers, side="right")]
    texts = (f"{digit}e{power:.0f}" for digit, power in zip(leading, powers, strict=True))
    return np.array([float(text) for text in texts])
