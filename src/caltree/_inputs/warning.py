"""Warnings that point to the user's line, however deep inside the package they arise."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])
_LONGEST = 60


def warn_user(message: str | Warning) -> None:
    """Give a `UserWarning`, or that of another kind, at the first line outside of the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def quote(value: object) -> str:
    """A value as Python writes it, cut off where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
