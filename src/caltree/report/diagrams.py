"""Reliability diagrams as data: bins of rows with their intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._audit.effects import CONFIDENCE
from .._audit.rows import Rows as Audited
from .._inputs.arrays import Mask
from ..reliability import (
    ROWS_A_BIN,
    bins_for,
    calibration_error,
    reliability_curve,
    wilson_interval,
)

_DECIMALS = 5


def class_diagrams(before: Audited, after: Audited) -> list[dict[str, Any]]:
    """The diagram of each class; the worst first, of two the event."""
    bins = bins_for(len(before))
    found = []
    for channel in before.channels:
        curves = [_curve(rows, channel, None, bins) for rows in (before, after)]
        observed = before.observed(channel)
        found.append(
            {
                "class": before.classes[channel],
                "frequency": float(np.average(observed, weights=before.row_weights)),
                "error_before": curves[0]["error"],
                "error_after": curves[1]["error"],
                "before": curves[0]["bins"],
                "after": curves[1]["bins"],
            }
        )
    return sorted(found, key=lambda each: -each["error_before"])


def diagram_of(
    before: Audited, after: Audited, channel: int, inside: Mask
) -> dict[str, list[list[float]]]:
    """The diagram of a class in some rows; none is drawn of few rows."""
    n_rows = int(np.count_nonzero(inside))
    if n_rows < ROWS_A_BIN:
        return {"before": [], "after": []}
    bins = bins_for(n_rows, most=10)
    named = {"before": before, "after": after}
    return {name: _curve(rows, channel, inside, bins)["bins"] for name, rows in named.items()}


def _curve(rows: Audited, channel: int, inside: Mask | None, bins: int) -> dict[str, Any]:
    """The bins of a class (predicted, observed, low, high, rows), and the calibration error."""
    probability = np.clip(rows.probabilities[:, channel], 0.0, 1.0)
    truth, weights = rows.labels == channel, rows.weights
    if inside is not None:
        probability, truth = probability[inside], truth[inside]
        weights = None if weights is None else weights[inside]
    found = reliability_curve(truth, probability, n_bins=bins, sample_weight=weights)
    observed = np.clip(found.observed, 0.0, 1.0)  # a sum of weights may be rounded
    # Rows of unequal weights tell as much as so many of equal ones.
    worth = 1.0 if weights is None else float(weights.sum() / (weights @ weights))
    low, high = wilson_interval(observed, worth * found.weight, CONFIDENCE)
    columns = (found.predicted, observed, low, high, found.weight)
    points = np.column_stack(columns).round(_DECIMALS)
    return {"error": calibration_error(found), "bins": points.tolist()}
