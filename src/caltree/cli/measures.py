"""What probabilities are worth, before and after calibration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..metrics import brier_score, expected_calibration_error, log_loss, rmse

if TYPE_CHECKING:
    from rich.table import Table

_MEASURES = {
    "rmse": ("RMSE", rmse),
    "brier_score": ("Brier score", brier_score),
    "log_loss": ("log loss", log_loss),
    "expected_calibration_error": ("calibration error", expected_calibration_error),
}

Figures = dict[str, dict[str, float]]


def measured(y: Any, before: Any, after: Any, classes: Any, weights: Any) -> Figures:
    """Every measure of the uncalibrated and of the calibrated probabilities."""
    return {
        name: {
            "uncalibrated": measure(y, before, labels=classes, sample_weight=weights),
            "calibrated": measure(y, after, labels=classes, sample_weight=weights),
        }
        for name, (_, measure) in _MEASURES.items()
    }


def as_table(figures: Figures) -> Table:
    """The measures for a terminal."""
    from rich.table import Table

    table = Table("lower is better")
    table.add_column("uncalibrated", justify="right")
    table.add_column("calibrated", justify="right")
    for name, (title, _) in _MEASURES.items():
        row = figures[name]
        table.add_row(title, f"{row['uncalibrated']:.4f}", f"{row['calibrated']:.4f}")
    return table
