"""Warnings that point to the user's line, and words that messages share."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])
_LONGEST = 60


def warn_user(message: str | Warning) -> None:
    """Give a `UserWarning`, or that of another kind, at the first line outside of the package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


@contextmanager
def rows_checked_before() -> Iterator[None]:
    """Fit to rows that were checked before, without warnings that repeat those of the check."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def did_you_mean(unknown: str, known: Sequence[object]) -> str:
    """A question about the name that is most like an unknown one, whatever its case; or nothing."""
    names = {name.lower(): name for name in reversed(known) if isinstance(name, str)}
    close = get_close_matches(unknown.lower(), names, n=1, cutoff=0.75)
    return f" (did you mean {names[close[0]]}?)" if close else ""


def describe(value: object) -> str:
    """A value that should have been another: plain ones as Python writes them, else the type."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    plain = value is None or isinstance(value, bool | int | float | str | bytes)
    return quote(value) if plain else f"a {type(value).__name__}"


def quote(value: object) -> str:
    """A value as Python writes it, cut off where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
