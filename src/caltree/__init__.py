"""Trustworthy probabilities from any classifier's scores, with probability calibration trees."""

from ._calibrators import load
from .classifier import CalibratedClassifier
from .forest import CalibrationForest
from .published import PublishedCalibrationTree
from .scaling import IdentityCalibrator, IsotonicScaling, PlattScaling
from .tree import CalibrationTree

__version__ = "0.1.0"

__all__ = [
    "CalibratedClassifier",
    "CalibrationForest",
    "CalibrationTree",
    "IdentityCalibrator",
    "IsotonicScaling",
    "PlattScaling",
    "PublishedCalibrationTree",
    "__version__",
    "load",
]
