"""Trustworthy probabilities from any classifier's scores, with probability calibration trees."""

from .tree import CalibrationTree

__version__ = "0.1.0"

__all__ = ["CalibrationTree", "__version__"]
