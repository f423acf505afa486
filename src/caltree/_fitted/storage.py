"""Fitted calibrators as versioned JSON: floats exact, nothing executed on reading."""

from __future__ import annotations

import json
import os
import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._inputs.scores import ScoreType
from .files import write_atomically
from .fingerprint import Fingerprint

if TYPE_CHECKING:
    from .._base import Calibrator

_PACKAGE = "caltree."
_VERSION = 1
_KEYS = {"format", "version", "params", "classes", "fingerprint"}
# What the command adds, for itself: which columns of the training file were what.
_COLUMNS = "columns"
_PLAIN = (bool, int, float, str, type(None))

AnyCalibrator = TypeVar("AnyCalibrator", bound="Calibrator")


def to_dict(calibrator: Calibrator) -> dict[str, Any]:
    """A fitted calibrator as dicts, lists, strings and numbers."""
    params = calibrator.get_params()
    return {
        "format": _PACKAGE + type(calibrator).__name__,
        "version": _VERSION,
        # A splitter or a random generator cannot be written down; what is fitted needs neither.
        "params": {name: _plain(value) for name, value in params.items() if _is_plain(value)},
        "classes": _plain_classes(calibrator.classes_),
        "fingerprint": calibrator.fingerprint_.to_dict(),
        **calibrator._state(),
    }


def from_dict(cls: type[AnyCalibrator], stored: Any) -> AnyCalibrator:
    """Rebuild a fitted calibrator; ValueError on anything malformed."""
    _check_format(cls, stored)
    if stored.get("version") != _VERSION:
        version = reprlib.repr(stored.get("version"))
        raise ValueError(
            f"this calibrator was stored in version {version} of the format and only version "
            f"{_VERSION} is known here; use the caltree that stored it or a newer one"
        )
    if not set(stored) >= _KEYS:
        raise ValueError(f"a stored calibrator must have the keys {sorted(_KEYS)}")
    calibrator = cls(**_checked_params(cls, stored["params"]))
    calibrator.classes_ = _checked_classes(stored["classes"])
    calibrator.fingerprint_ = Fingerprint.from_dict(stored["fingerprint"])
    known = {*_KEYS, _COLUMNS}
    calibrator._restore({key: value for key, value in stored.items() if key not in known})
    return calibrator


def check_state(state: dict[str, Any], keys: set[str]) -> None:
    """Refuse a state that lacks something or has something else."""
    if set(state) != keys:
        raise ValueError(f"a stored calibrator must have exactly the keys {sorted(_KEYS | keys)}")


def checked_numbers(
    state: dict[str, Any], name: str, dtype: type, ndim: int, *, may_be_empty: bool = False
) -> npt.NDArray[Any]:
    """A list of finite numbers as an array, if that is what it is."""
    if may_be_empty and state[name] == []:
        return np.empty(0, dtype=dtype)
    try:
        array = np.array(state[name])
    except ValueError:
        array = np.array(None)
    kinds = "i" if dtype is np.int32 else "if"
    if array.ndim != ndim or array.dtype.kind not in kinds or array.size == 0:
        raise ValueError(
            f"{name} of a stored calibrator must be a {ndim}-dimensional list of numbers"
        )
    limits = np.iinfo(np.int32)
    if dtype is np.int32 and (array.min() < limits.min or array.max() > limits.max):
        raise ValueError(f"{name} of a stored calibrator holds a number that is out of range")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} of a stored calibrator holds a number that is not finite")
    return np.ascontiguousarray(array, dtype=dtype)


def checked_score_type(state: dict[str, Any]) -> ScoreType:
    """What the scores were taken for."""
    found = state["score_type"]
    if found not in ("probability", "logit", "margin"):
        raise ValueError(f"a stored calibrator cannot have score_type {reprlib.repr(found)}")
    score_type: ScoreType = found
    return score_type


def check_width(n_scores: Any, n_classes: int) -> None:
    """Refuse a number of scores that does not go with the classes."""
    whole = type(n_scores) is int and n_scores > 0
    if not whole or (n_scores % n_classes and (n_scores, n_classes) != (1, 2)):
        raise ValueError(
            f"a stored calibrator has {reprlib.repr(n_scores)} scores for {n_classes} classes"
        )


def write_json(stored: dict[str, Any], path: Any) -> None:
    """Write JSON strictly; the file appears whole or not at all."""
    text = json.dumps(stored, allow_nan=False)
    write_atomically(Path(path), f"{text}\n".encode())


def read_json(path: Any) -> Any:
    """Read JSON strictly: NaN and infinity are no JSON."""
    content = Path(path).read_bytes()
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} is no stored calibrator: {error}") from None


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


def _check_format(cls: type[AnyCalibrator], stored: Any) -> None:
    found = stored.get("format") if isinstance(stored, dict) else None
    if found == _PACKAGE + cls.__name__:
        return
    if isinstance(found, str) and found.startswith(_PACKAGE):
        other = found.removeprefix(_PACKAGE)
        raise ValueError(f"this is a stored {other}; read it with caltree.{other}")
    expected = _PACKAGE + cls.__name__
    raise ValueError(f"this is not a stored calibrator: its format is not {expected!r}")


def _checked_classes(stored: Any) -> npt.NDArray[Any]:
    valid = isinstance(stored, list) and len(stored) >= 2
    kinds = {type(label) for label in stored} if valid else set()
    if not valid or len(kinds) != 1 or not kinds <= {bool, int, float, str}:
        raise ValueError("a stored calibrator needs two or more classes of one type")
    classes = np.array(stored)
    if classes.dtype.kind == "O" or not (classes[:-1] < classes[1:]).all():
        raise ValueError("the classes of a stored calibrator must be distinct and sorted")
    return classes


def _checked_params(cls: type[AnyCalibrator], stored: Any) -> dict[str, Any]:
    known = set(cls._get_param_names())
    if not isinstance(stored, dict) or not set(stored) <= known:
        raise ValueError("a stored calibrator has parameters that are not known here")
    if not all(_is_plain(value) for value in stored.values()):
        raise ValueError("the parameters of a stored calibrator must be plain values")
    return stored
