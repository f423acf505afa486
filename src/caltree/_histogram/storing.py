"""Values in files of a temporary folder, which are mapped into memory while they are worked on."""

from __future__ import annotations

import itertools
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import joblib

Value = TypeVar("Value")


class Stored(Generic[Value]):
    """A value in a file, which is removed as soon as nobody wants it any more."""

    def __init__(self, path: Path) -> None:
        self._path = path
        weakref.finalize(self, path.unlink, missing_ok=True)

    def load(self) -> Value:
        """Return the value; its arrays take memory only where and while they are read."""
        value: Value = joblib.load(self._path, mmap_mode="r")
        return value


class Folder:
    """A folder of stored values."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = itertools.count()

    @classmethod
    @contextmanager
    def temporary(cls) -> Iterator[Folder]:
        """Make a folder where temporary files belong, and remove it in the end."""
        with tempfile.TemporaryDirectory(prefix="caltree-", ignore_cleanup_errors=True) as path:
            yield cls(Path(path))

    def store(self, value: Value) -> Stored[Value]:
        """Write a value to a file of its own."""
        path = self._path / f"{next(self._numbers)}.joblib"
        joblib.dump(value, path)
        return Stored(path)


def load(held: Value | Stored[Value]) -> Value:
    """Return a value, be it stored or at hand."""
    return held.load() if isinstance(held, Stored) else held
