"""Fitted calibrators as versioned JSON: floats exact, nothing executed on reading."""

from __future__ import annotations

import json
import math
import os
import reprlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .files import write_atomically
from .fingerprint import Fingerprint
from .made import Made
from .spread import Spread

_PACKAGE = "caltree."
_VERSION = 2
_KEYS = {"format", "version", "made", "params", "classes", "fingerprint", "spread"}
# What the command adds, for itself: which columns of the training file were what.
_COLUMNS = "columns"
# Classes whose lengths differ so much that an array of strings would need more are objects.
_MOST_ROOM = 4
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class StoredCalibrator:
    """Everything of a fitted calibrator that is stored."""

    name: str
    """The name of its class."""
    made: Made
    params: dict[str, Any]
    classes: npt.NDArray[Any]
    fingerprint: Fingerprint
    spread: Spread | None
    """None unless intervals were asked for."""
    state: dict[str, Any]
    """Everything that was fitted, as plain values."""

    def to_dict(self) -> dict[str, Any]:
        """Return the calibrator as dicts, lists, strings and numbers."""
        params = self.params.items()
        return {
            "format": format_name(self.name),
            "version": _VERSION,
            "made": self.made.to_dict(),
            # A splitter or a random generator cannot be written down; nor does a fit need it.
            "params": {name: _plain(value) for name, value in params if _is_plain(value)},
            "classes": _plain_classes(self.classes),
            "fingerprint": self.fingerprint.to_dict(),
            "spread": None if self.spread is None else self.spread.to_dict(),
            **self.state,
        }

    @classmethod
    def from_dict(cls, name: str, param_names: Sequence[str], stored: Any) -> StoredCalibrator:
        """Read a calibrator of some class and parameters; ValueError on anything malformed."""
        _check_format(name, stored)
        if stored.get("version") != _VERSION:
            version = reprlib.repr(stored.get("version"))
            raise ValueError(
                f"this calibrator was stored in version {version} of the format and only version "
                f"{_VERSION} is known here; use the caltree that stored it or a newer one"
            )
        if not set(stored) >= _KEYS:
            raise ValueError(f"a stored calibrator must have the keys {sorted(_KEYS)}")
        return cls(
            name=name,
            made=Made.from_dict(stored["made"]),
            params=_read_params(param_names, stored["params"]),
            classes=_read_classes(stored["classes"]),
            fingerprint=Fingerprint.from_dict(stored["fingerprint"]),
            spread=None if stored["spread"] is None else Spread.from_dict(stored["spread"]),
            state={key: v for key, v in stored.items() if key not in {*_KEYS, _COLUMNS}},
        )


def format_name(name: str) -> str:
    """The format of the calibrators of a class."""
    return _PACKAGE + name


def check_state(state: dict[str, Any], keys: set[str]) -> None:
    """Refuse a state that lacks something or has something else."""
    if set(state) != keys:
        raise ValueError(f"a stored calibrator must have exactly the keys {sorted(_KEYS | keys)}")


def write_json(stored: dict[str, Any], path: Any) -> None:
    """Write a stored calibrator strictly; the file appears whole or not at all."""
    write_atomically(Path(path), json_bytes(stored))


def json_bytes(stored: dict[str, Any]) -> bytes:
    """A stored calibrator as the content of a file, in strict JSON."""
    return f"{json.dumps(stored, allow_nan=False, separators=(',', ':'))}\n".encode()


def read_json(path: Any) -> Any:
    """Read JSON strictly; see `parse_json`."""
    content = Path(path).read_bytes()
    try:
        return parse_json(content)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)} is not a stored calibrator: {error}") from None


def parse_json(content: bytes) -> Any:
    """Parse JSON strictly: NaN, infinity and keys that occur twice are a ValueError."""
    try:
        return json.loads(
            content.decode("utf-8"),
            parse_constant=_refuse_constant,
            object_pairs_hook=_refuse_repeated_keys,
        )
    except RecursionError as error:
        raise ValueError(str(error)) from None


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple | np.ndarray):
        return all(isinstance(item, (*_PLAIN, np.generic)) for item in value)
    return isinstance(value, (*_PLAIN, np.generic))


def _is_finite(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number that it may hold")


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {reprlib.repr(repeated)} occurs twice")
    return found


def _plain_classes(classes: npt.NDArray[Any]) -> list[Any]:
    plain = classes.tolist()
    if not all(isinstance(label, _PLAIN) for label in plain):
        raise TypeError(
            f"classes of type {type(plain[0]).__name__} cannot be stored as JSON; "
            "fit with labels that are strings, numbers or booleans"
        )
    return list(plain)


def _check_format(name: str, stored: Any) -> None:
    found = stored.get("format") if isinstance(stored, dict) else None
    expected = format_name(name)
    if found == expected:
        return
    if isinstance(found, str) and found.startswith(_PACKAGE):
        other = found.removeprefix(_PACKAGE)
        raise ValueError(f"this is a stored {other}; read it with caltree.{other}")
    raise ValueError(f"this is not a stored calibrator: its format is not {expected!r}")


def _read_classes(stored: Any) -> npt.NDArray[Any]:
    valid = isinstance(stored, list) and len(stored) >= 2
    kinds = {type(label) for label in stored} if valid else set()
    if not valid or len(kinds) != 1 or not kinds <= {bool, int, float, str}:
        raise ValueError("a stored calibrator needs two or more classes of one type")
    if any(not before < after for before, after in pairwise(stored)):
        raise ValueError("the classes of a stored calibrator must be distinct and sorted")
    kind = kinds.pop()
    if kind is str:
        return _text_classes(stored)
    classes = np.array(stored)
    if classes.dtype.kind not in {bool: "b", int: "iu", float: "f"}[kind]:
        raise ValueError("the classes of a stored calibrator are beyond the range of numbers")
    if kind is float and not np.isfinite(classes).all():
        raise ValueError("the classes of a stored calibrator must be finite")
    return classes


def _text_classes(texts: list[str]) -> npt.NDArray[Any]:
    # An array of strings gives each of them as much room as the longest needs.
    room, needed = len(texts) * max(map(len, texts)), sum(map(len, texts))
    return np.array(texts, dtype=object if room > _MOST_ROOM * needed + 2**10 else None)


def _read_params(param_names: Sequence[str], stored: Any) -> dict[str, Any]:
    if not isinstance(stored, dict) or not set(stored) <= set(param_names):
        raise ValueError("a stored calibrator has parameters that are not known here")
    if not all(_is_plain(value) and _is_finite(value) for value in stored.values()):
        raise ValueError("the parameters of a stored calibrator must be plain values")
    return stored
