"""Smooth calibration error: residuals smoothed along the probabilities, without bins."""

from __future__ import annotations

import math
from typing import Any, get_args

import numpy as np
from scipy.fft import dct, idct

from .._inputs.arrays import Floats, Mask
from .._inputs.parameters import check_choice
from .._inputs.probabilities import Kind, check_rows, events

# Residuals are put on so many equally wide cells from 0 to 1.
_CELLS = 2**14
_BISECTIONS = 30


def smooth_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    kind: Kind = "classwise",
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Smooth calibration error (smECE), which needs no bins and no bandwidth.

    The residuals (1 or 0, minus the probability) are smoothed along the probabilities by a Gaussian
    kernel that is reflected at 0 and 1, and the absolute values are averaged. The width of the
    kernel is the error itself: the one width at which both are the same [1]_.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As for `rmse`.
    kind : {"classwise", "top_label"}, default "classwise"
        As for `expected_calibration_error`.

    Returns
    -------
    float
        From 0 to 1; 0 is perfect. For perfect probabilities it falls with the number of rows.

    References
    ----------
    .. [1] J. Blasiok and P. Nakkiran, "Smooth ECE: principled reliability diagrams via kernel
       smoothing", ICLR 2024.

    Examples
    --------
    >>> from caltree.metrics import smooth_calibration_error
    >>> smooth_calibration_error([0, 0, 0, 1], [0.5, 0.5, 0.5, 0.5])
    0.25
    >>> round(smooth_calibration_error([0, 1] * 50, [0.4, 0.6] * 50), 2)
    0.17
    """
    check_choice("kind", kind, get_args(Kind))
    rows = check_rows(y_true, y_prob, sample_weight, labels, pos_label)
    return float(np.mean([_smooth_error(*event, rows.weights) for event in events(rows, kind)]))


def _smooth_error(truth: Mask, probability: Floats, weights: Floats | None) -> float:
    """The width of the kernel at which the smoothed error is as large."""
    spectrum = dct(_on_cells(truth, probability, weights), type=2)
    squares = (math.pi * np.arange(_CELLS)) ** 2 / 2.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        width = (low + high) / 2.0
        smoothed = idct(spectrum * np.exp(-squares * width**2), type=2)
        # The error falls as the width grows.
        if float(np.abs(smoothed).sum()) > width:
            low = width
        else:
            high = width
    return round((low + high) / 2.0, 8)


def _on_cells(truth: Mask, probability: Floats, weights: Floats | None) -> Floats:
    """The residuals, each shared out to the two cells whose centres are nearest."""
    share = np.full(len(truth), 1.0 / len(truth)) if weights is None else weights / weights.sum()
    residuals = share * (truth - probability)
    place = np.clip(probability * _CELLS - 0.5, 0.0, _CELLS - 1.0)
    first = np.minimum(place.astype(np.intp), _CELLS - 2)
    part = place - first
    cells = np.bincount(first, residuals * (1.0 - part), _CELLS)
    return np.asarray(cells + np.bincount(first + 1, residuals * part, _CELLS))
