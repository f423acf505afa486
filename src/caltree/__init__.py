"""Trustworthy probabilities from any classifier's scores, with probability calibration trees."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._audit import Audit, audit
    from ._calibrators import load
    from .boosting import CalibrationBoosting
    from .classifier import CalibratedClassifier
    from .curves import BetaScaling, TemperatureScaling
    from .ensemble import CalibrationEnsemble
    from .forest import CalibrationForest
    from .logistic_model_tree import LogisticModelTree
    from .published import PublishedCalibrationTree
    from .regularized_isotonic import RegularizedIsotonicScaling
    from .robust_platt import RobustPlattScaling
    from .scaling import (
        IdentityCalibrator,
        IsotonicScaling,
        PlattScaling,
        SmoothIsotonicScaling,
    )
    from .tree import CalibrationTree

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "BetaScaling",
    "CalibratedClassifier",
    "CalibrationBoosting",
    "CalibrationEnsemble",
    "CalibrationForest",
    "CalibrationTree",
    "IdentityCalibrator",
    "IsotonicScaling",
    "LogisticModelTree",
    "PlattScaling",
    "PublishedCalibrationTree",
    "RegularizedIsotonicScaling",
    "RobustPlattScaling",
    "SmoothIsotonicScaling",
    "TemperatureScaling",
    "__version__",
    "audit",
    "load",
]

# Imported when first asked for: the command answers to Ctrl-C before it has imported anything.
_HOMES = {
    "Audit": "_audit",
    "BetaScaling": "curves",
    "CalibratedClassifier": "classifier",
    "CalibrationBoosting": "boosting",
    "CalibrationEnsemble": "ensemble",
    "CalibrationForest": "forest",
    "CalibrationTree": "tree",
    "IdentityCalibrator": "scaling",
    "IsotonicScaling": "scaling",
    "LogisticModelTree": "logistic_model_tree",
    "PlattScaling": "scaling",
    "PublishedCalibrationTree": "published",
    "RegularizedIsotonicScaling": "regularized_isotonic",
    "RobustPlattScaling": "robust_platt",
    "SmoothIsotonicScaling": "scaling",
    "TemperatureScaling": "curves",
    "audit": "_audit",
    "load": "_calibrators",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
