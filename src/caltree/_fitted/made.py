"""Where a fitted calibrator comes from: the time, the version of caltree, how many rows."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from typing import Any

_TIME = "%Y-%m-%dT%H:%M:%SZ"
_TIME_PATTERN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_MOST_ROWS = 2**53
_LONGEST_VERSION = 100


@dataclass(frozen=True)
class Made:
    """How a fitted calibrator was made."""

    caltree: str
    """The version of the package that fitted it."""
    n_rows: int
    """How many rows it was fitted to; those of weight 0 do not count."""
    at: str | None = None
    """When it was first stored, in UTC; None if it was not."""

    @classmethod
    def of(cls, n_rows: int) -> Made:
        """A calibrator that was fitted here and now, to some rows."""
        # Imported here: the package is not complete when this module is imported.
        from .. import __version__

        return cls(__version__, n_rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that the fit alone decides on: the time is not among them."""
        return {"caltree": self.caltree, "n_rows": self.n_rows}

    def with_time(self) -> dict[str, Any]:
        """Plain values for a file: with the time it was first stored, or with the time now."""
        return {**self.to_dict(), "at": self.at or now()}

    @classmethod
    def from_dict(cls, stored: Any) -> Made:
        """Rebuild from plain values; ValueError on anything malformed."""
        keys = set(stored) if isinstance(stored, dict) else set()
        if keys - {"at"} != {"caltree", "n_rows"}:
            raise ValueError("made of a stored calibrator must have the keys caltree and n_rows")
        version, n_rows, at = stored["caltree"], stored["n_rows"], stored.get("at")
        if not isinstance(version, str) or len(version) > _LONGEST_VERSION:
            raise ValueError("made of a stored calibrator must name a version of caltree")
        if type(n_rows) is not int or not 1 <= n_rows <= _MOST_ROWS:
            raise ValueError("n_rows of a stored calibrator must be a number of rows")
        if "at" in keys and not (isinstance(at, str) and _TIME_PATTERN.fullmatch(at)):
            raise ValueError("the time of a stored calibrator must be like 2025-12-31T23:59:59Z")
        return cls(version, n_rows, at)


def now() -> str:
    """The time in UTC, or that of SOURCE_DATE_EPOCH, so that builds can be reproduced."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    try:
        seconds = time.time() if given is None else int(given)
        return time.strftime(_TIME, time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"SOURCE_DATE_EPOCH must be a number of seconds since 1970, got {given!r}; unset it"
        ) from None
