"""The evidence of a report: the content of the page as plain dicts, lists and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import __version__
from .._fitted.blended import Model
from .._fitted.conditions import short
from .._model_base import AttributeCalibrator
from .._training.losses import row_losses
from ..metrics import brier_split, expected_calibration_error
from .inputs import Rows
from .intervals import CONFIDENCE, FEW_ROWS, n_bins, paired_gain
from .regions import find_regions

_MOST_BINS = 15


def gather(rows: Rows, title: str, max_regions: int) -> dict[str, Any]:
    """The whole content of the page."""
    gains = _gains(rows)
    return {
        "title": title,
        "version": __version__,
        "calibrator": rows.calibrator.title,
        "is_model": rows.is_model,
        "score_type": rows.score_type,
        "pos_label": None if rows.positive is None else rows.classes[rows.positive],
        "event": None if rows.event is None else rows.classes[rows.event],
        "backwards": rows.backwards,
        "rows": float(rows.weights.sum()),
        "weighted": bool((rows.weights != 1.0).any()),
        "classes": rows.classes,
        "confidence": CONFIDENCE,
        "few_rows": FEW_ROWS,
        "training_rows": _training_rows(rows),
        "unseen": {"attributes": rows.unseen.to_list(), "message": rows.unseen.message()},
        "verdict": _verdict(gains),
        "gains": gains,
        "metrics": list(_metrics(rows, gains)),
        "choice": _choice(rows.calibrator),
        "reliability": _reliability(rows),
        "attributes": _attributes(rows),
        **find_regions(rows, max_regions),
    }


def _training_rows(rows: Rows) -> dict[str, Any]:
    """Whether the calibrator has seen these rows; the share is None where that is not known."""
    if rows.overlap is None:
        nothing = {"checked": 0, "found": 0, "by_chance": None, "share": None}
        return {"status": "cannot tell", **nothing}
    return rows.overlap.to_dict()


def _gains(rows: Rows) -> dict[str, dict[str, Any]]:
    """Mean losses before and after calibration, and the interval of their difference."""
    gains = {}
    for name, loss in (("squared_error", "rmse"), ("log_loss", "log_loss")):
        before, after = (row_losses(p, rows.labels, loss) for p in (rows.before, rows.after))
        gains[name] = {
            "before": float(np.average(before, weights=rows.weights)),
            "after": float(np.average(after, weights=rows.weights)),
            **paired_gain(before, after, rows.weights),
        }
    return {"rmse": _gain_of_roots(gains["squared_error"]), **gains}


def _gain_of_roots(squared: dict[str, Any]) -> dict[str, Any]:
    """The gain in RMSE: the difference of the squares divided by the sum of the roots."""
    before, after = math.sqrt(squared["before"]), math.sqrt(squared["after"])
    per_square = 1.0 / (before + after) if before + after > 0 else 0.0
    scaled = {
        name: None if squared[name] is None else squared[name] * per_square
        for name in ("gain", "low", "high")
    }
    return {"before": before, "after": after, **scaled}


def _verdict(gains: dict[str, dict[str, Any]]) -> str:
    """The verdict of the intervals of both losses."""
    both = [gains["squared_error"], gains["log_loss"]]
    if all(gain["low"] == gain["high"] == 0.0 for gain in both):
        return "unchanged"
    better = any(gain["low"] is not None and gain["low"] > 0.0 for gain in both)
    worse = any(gain["high"] is not None and gain["high"] < 0.0 for gain in both)
    if better and worse:
        return "mixed"
    return "helped" if better else "harmed" if worse else "unclear"


def _metrics(rows: Rows, gains: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The metrics before and after; less is better, but for accuracy."""
    labels, both = rows.labels, (rows.before, rows.after)
    given: dict[str, Any] = {"sample_weight": rows.weights, "labels": np.arange(len(rows.classes))}
    errors = {**given, "n_bins": n_bins(float(rows.weights.sum()), _MOST_BINS)}

    def metric(name: str, words: str, pair: Sequence[float], less: bool = True) -> dict[str, Any]:
        return {"name": name, "words": words, "before": pair[0], "after": pair[1], "less": less}

    words = "root of the mean squared error of the probabilities"
    yield metric("RMSE", words, [gains["rmse"][when] for when in ("before", "after")])
    words = "how surprised the probabilities are by what happens"
    yield metric("Log loss", words, [gains["log_loss"][when] for when in ("before", "after")])
    splits = [brier_split(labels, p, **given) for p in both]
    words = "mean squared error, summed over the classes"
    yield metric("Brier score", words, [split.score for split in splits])
    words = "what putting the probabilities right would gain"
    yield metric("– of it calibration", words, [split.calibration for split in splits])
    words = "what would be left: how well they tell rows apart"
    yield metric("– of it refinement", words, [split.refinement for split in splits])
    words = "mean distance between probability and observed frequency"
    found = [expected_calibration_error(labels, p, **errors) for p in both]
    yield metric("Calibration error", words, found)
    if len(rows.classes) > 2:
        words = "the same, of the most probable class alone"
        found = [expected_calibration_error(labels, p, kind="top_label", **errors) for p in both]
        yield metric("Calibration error of the answer", words, found)
    words = "how often the most probable class is the right one; more is better"
    found = [float(np.average(p.argmax(axis=1) == labels, weights=rows.weights)) for p in both]
    yield metric("Accuracy", words, found, less=False)


def _choice(calibrator: Any) -> dict[str, Any]:
    """The candidates that were compared when the calibrator was fitted, and the choice."""
    has_model = isinstance(calibrator, AttributeCalibrator)
    selection = calibrator.selection_ if has_model else None
    if selection is None:
        return {"has_model": has_model, "selection": None}
    return {"has_model": True, "selection": {**selection.to_dict(), "chosen": selection.chosen}}


def _reliability(rows: Rows) -> list[dict[str, Any]]:
    """The reliability of each class, before and after; the worst first, of two the event."""
    bins, predictions = n_bins(float(rows.weights.sum()), _MOST_BINS), rows.predictions
    found = []
    for column, name in enumerate(predictions.classes):
        before, after = (predictions.curve(when, column, bins) for when in ("before", "after"))
        found.append(
            {
                "class": name,
                "rows": float(rows.weights @ predictions.truth[:, column]),
                "error_before": before["error"],
                "error_after": after["error"],
                "before": before["bins"],
                "after": after["bins"],
            }
        )
    return sorted(found, key=lambda each: -each["error_before"])


def _attributes(rows: Rows) -> dict[str, Any]:
    """The importances of the attributes, the largest first, or why there are none."""
    if rows.attributes is None or not isinstance(rows.calibrator, AttributeCalibrator):
        return {"importances": [], "reason": "The calibrator looks at the scores alone."}
    importances = rows.calibrator.feature_importances_
    if not (importances > 0.0).any():
        return {"importances": [], "reason": _why_unimportant(rows.calibrator.model_)}
    pairs = zip(rows.attributes.columns, importances.tolist(), strict=True)
    named = [{"name": short(column.name), "importance": share} for column, share in pairs]
    return {
        "importances": sorted(named, key=lambda each: -each["importance"]),
        "reason": None,
    }


def _why_unimportant(model: Model) -> str:
    """Say why no attribute is known to contribute anything."""
    if model.uncalibrated_weight == 1.0:
        return "The scores are left uncalibrated, so no attribute contributes anything."
    if not model.splits_attributes:
        return "The scores are calibrated by the same model everywhere: nothing is split."
    if np.isnan(model.importances).any():
        return "No rows were held out, so what an attribute contributes is not measured."
    return "On rows that were held out, the splits gained nothing."
