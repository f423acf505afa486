"""Metrics of probabilities: errors and calibration, weighted, for any number of classes."""

from .errors import (
    BrierSplit,
    brier_score,
    brier_split,
    expected_calibration_error,
    log_loss,
    rmse,
)
from .multicalibration import MulticalibrationError, multicalibration_error
from .smooth import smooth_calibration_error

__all__ = [
    "BrierSplit",
    "MulticalibrationError",
    "brier_score",
    "brier_split",
    "expected_calibration_error",
    "log_loss",
    "multicalibration_error",
    "rmse",
    "smooth_calibration_error",
]
