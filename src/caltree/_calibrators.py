"""All calibrators of the package by name: shortcuts for parameters, and the reader of files."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import Any

from ._base import Calibrator
from ._fitted import storage
from ._inputs.parameters import check_choice
from ._stored_base import StoredEstimator
from .boosting import CalibrationBoosting
from .curves import BetaScaling, TemperatureScaling
from .ensemble import CalibrationEnsemble
from .forest import CalibrationForest
from .logistic_model_tree import LogisticModelTree
from .published import PublishedCalibrationTree
from .regularized_isotonic import RegularizedIsotonicScaling
from .robust_platt import RobustPlattScaling
from .scaling import IdentityCalibrator, IsotonicScaling, PlattScaling, SmoothIsotonicScaling
from .tree import CalibrationTree

SHORTCUTS: dict[str, type[Calibrator]] = {
    "tree": CalibrationTree,
    "published": PublishedCalibrationTree,
    "forest": CalibrationForest,
    "boosting": CalibrationBoosting,
    "ensemble": CalibrationEnsemble,
    "isotonic": IsotonicScaling,
    "smooth_isotonic": SmoothIsotonicScaling,
    "regularized_isotonic": RegularizedIsotonicScaling,
    "platt": PlattScaling,
    "robust_platt": RobustPlattScaling,
    "temperature": TemperatureScaling,
    "beta": BetaScaling,
    "none": IdentityCalibrator,
}
_STORED: tuple[type[StoredEstimator], ...] = (*SHORTCUTS.values(), LogisticModelTree)
_BY_FORMAT = {storage.format_name(kind.__name__): kind for kind in _STORED}


def make_calibrator(name: str) -> Calibrator:
    """Make the calibrator that a shortcut stands for, with its default parameters."""
    try:
        return SHORTCUTS[check_choice("calibrator", name, tuple(SHORTCUTS))]()
    except ValueError as error:
        if name != "sigmoid":
            raise
        raise ValueError(f"{error}; scikit-learn's 'sigmoid' is 'platt' here") from None


def load(path: Any) -> StoredEstimator:
    """Read a calibrator of any class from a file that `save` or ``caltree fit`` wrote.

    Nothing in the file is executed.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    calibrator or classifier
        A `CalibrationTree`, `PublishedCalibrationTree`, `CalibrationForest`,
        `CalibrationBoosting`, `CalibrationEnsemble`, `PlattScaling`, `RobustPlattScaling`,
        `TemperatureScaling`, `BetaScaling`, `IsotonicScaling`, `SmoothIsotonicScaling`,
        `RegularizedIsotonicScaling`, `IdentityCalibrator` or `LogisticModelTree`, as the file says.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import caltree
    >>> platt = caltree.PlattScaling().fit(None, [0, 1] * 10, scores=[0.2, 0.6] * 10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.json"
    ...     platt.save(path)
    ...     again = caltree.load(path)
    >>> again
    PlattScaling()
    >>> again.made_.n_rows
    20
    """
    try:
        return _read(Path(path).read_bytes())[0]
    except ValueError as error:
        raise ValueError(f"{path} is not a stored calibrator: {error}") from None


def read_calibrator(content: bytes) -> tuple[Calibrator, dict[str, Any]]:
    """Read a calibrator of any class from JSON, which is returned, too; ValueError if malformed."""
    found, stored = _read(content)
    if not isinstance(found, Calibrator):
        raise ValueError(
            f"it is a {type(found).__name__}, which is a classifier and not a calibrator"
        )
    return found, stored


def _read(content: bytes) -> tuple[StoredEstimator, dict[str, Any]]:
    if not content.strip():
        raise ValueError("it is empty")
    try:
        stored = storage.parse_json(content)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from None
    found = stored.get("format") if isinstance(stored, dict) else None
    if found is None:
        raise ValueError("it has no format")
    if not isinstance(found, str) or not found.startswith(storage.format_name("")):
        raise ValueError(f"its format is {reprlib.repr(found)}")
    if found not in _BY_FORMAT:
        raise ValueError(f"this version of caltree does not know {found}")
    return _BY_FORMAT[found].from_dict(stored), stored
