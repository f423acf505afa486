"""Fitted trees as versioned JSON: floats exact, nothing executed on reading."""

from __future__ import annotations

import json
import math
import os
import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .files import write_whole
from .model import TreeModel

if TYPE_CHECKING:
    from .tree import CalibrationTree

_FORMAT = "caltree.CalibrationTree"
_VERSION = 1
_KEYS = {"format", "version", "params", "classes", "score_type", "chosen", "tree"}
_PLAIN = (bool, int, float, str, type(None))

Tree = TypeVar("Tree", bound="CalibrationTree")


def to_dict(calibrator: CalibrationTree) -> dict[str, Any]:
    """A fitted tree as dicts, lists, strings and numbers."""
    params = calibrator.get_params()
    return {
        "format": _FORMAT,
        "version": _VERSION,
        # A splitter or a random generator cannot be written down; the fitted tree needs neither.
        "params": {name: _plain(value) for name, value in params.items() if _is_plain(value)},
        "classes": _plain_classes(calibrator.classes_),
        "score_type": calibrator.score_type_,
        "chosen": {
            "boosting_iterations": calibrator.boosting_iterations_,
            "pruning_alpha": calibrator.pruning_alpha_,
        },
        "tree": calibrator.tree_.to_dict(),
    }


def from_dict(cls: type[Tree], stored: Any) -> Tree:
    """Rebuild a fitted tree; ValueError on anything malformed."""
    if not isinstance(stored, dict) or stored.get("format") != _FORMAT:
        raise ValueError(f"this is not a stored calibration tree: its format is not {_FORMAT!r}")
    if stored.get("version") != _VERSION:
        version = reprlib.repr(stored.get("version"))
        raise ValueError(
            f"this calibration tree was stored in version {version} of the format "
            f"and only version {_VERSION} is known here; use the caltree that stored it or a "
            "newer one"
        )
    if set(stored) != _KEYS:
        raise ValueError(f"a stored calibration tree must have exactly the keys {sorted(_KEYS)}")
    calibrator = cls(**_checked_params(cls, stored["params"]))
    tree = TreeModel.from_dict(stored["tree"])
    calibrator.tree_ = tree
    calibrator.classes_ = _checked_classes(stored["classes"], tree.n_classes)
    if stored["score_type"] not in ("probability", "logit", "margin"):
        found = reprlib.repr(stored["score_type"])
        raise ValueError(f"a stored calibration tree cannot have score_type {found}")
    if tree.n_scores % tree.n_classes and not (tree.n_scores == 1 and tree.n_classes == 2):
        raise ValueError(
            f"a stored calibration tree has {tree.n_scores} scores for {tree.n_classes} classes"
        )
    calibrator.score_type_ = stored["score_type"]
    iterations, alpha = _checked_chosen(stored["chosen"])
    calibrator.boosting_iterations_ = iterations
    calibrator.pruning_alpha_ = alpha
    calibrator.boosting_rmse_ = None
    calibrator.pruning_path_ = None
    calibrator._set_features()
    return calibrator


def write_json(stored: dict[str, Any], path: Any) -> None:
    """Write JSON strictly; the file appears whole or not at all."""
    text = json.dumps(stored, allow_nan=False)
    write_whole(Path(path), f"{text}\n".encode())


def read_json(path: Any) -> Any:
    """Read JSON strictly: NaN and infinity are no JSON."""
    content = Path(path).read_bytes()
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is no stored calibration tree: {error}") from None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return all(isinstance(item, (*_PLAIN, np.generic)) for item in value)
    return isinstance(value, (*_PLAIN, np.generic))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that it may hold")


def _plain_classes(classes: npt.NDArray[Any]) -> list[Any]:
    plain = classes.tolist()
    if not all(isinstance(label, _PLAIN) for label in plain):
        raise TypeError(
            f"classes of type {type(plain[0]).__name__} cannot be stored as JSON; "
            "fit with labels that are strings, numbers or booleans"
        )
    return list(plain)


def _checked_classes(stored: Any, n_classes: int) -> npt.NDArray[Any]:
    valid = isinstance(stored, list) and len(stored) == n_classes
    kinds = {type(label) for label in stored} if valid else set()
    if not valid or len(kinds) != 1 or not kinds <= {bool, int, float, str}:
        raise ValueError(f"a stored calibration tree needs {n_classes} classes of one type")
    classes = np.array(stored)
    if classes.dtype.kind == "O" or not (classes[:-1] < classes[1:]).all():
        raise ValueError("the classes of a stored calibration tree must be distinct and sorted")
    return classes


def _checked_params(cls: type[Tree], stored: Any) -> dict[str, Any]:
    known = set(cls._get_param_names())
    if not isinstance(stored, dict) or not set(stored) <= known:
        raise ValueError("a stored calibration tree has parameters that are not known here")
    if not all(_is_plain(value) for value in stored.values()):
        raise ValueError("the parameters of a stored calibration tree must be plain values")
    return stored


def _checked_chosen(stored: Any) -> tuple[int, float | None]:
    if not isinstance(stored, dict) or set(stored) != {"boosting_iterations", "pruning_alpha"}:
        raise ValueError("a stored calibration tree must say what was chosen")
    iterations, alpha = stored["boosting_iterations"], stored["pruning_alpha"]
    finite = type(alpha) in (int, float) and math.isfinite(alpha)
    if type(iterations) is not int or not (alpha is None or finite):
        raise ValueError("what a stored calibration tree says was chosen must be numbers")
    return iterations, alpha
