"""Checks of parameters, with errors that say what to do."""

from __future__ import annotations

import math
import numbers
import reprlib
from typing import Any, Literal, TypeGuard, TypeVar

import numpy as np

Choice = TypeVar("Choice", bound=str)

_LARGEST_COUNT = 1_000_000
# Two bytes tell so many bins apart, and missing values.
MOST_BINS = 65_534
_SMALLEST_PENALTY = 1e-9
_LARGEST_PENALTY = 1e9


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, which True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_count(name: str, value: Any, least: int, also: str = "") -> int:
    """Check a whole number of at least `least`; `also` names other valid values."""
    if not is_whole(value) or not least <= value <= _LARGEST_COUNT:
        raise ValueError(
            f"{name} must be {also}a whole number from {least} to {_LARGEST_COUNT}, "
            f"got {reprlib.repr(value)}"
        )
    return int(value)


def check_size(name: str, value: Any, least: float, also: str = "") -> float:
    """Check a finite number of at least `least`; `also` names other valid values."""
    number = _as_float(value)
    if not least <= number < math.inf:
        raise ValueError(
            f"{name} must be {also}a finite number of at least {least}, got {reprlib.repr(value)}"
        )
    return number


def _as_float(value: Any) -> float:
    """The value as a float; NaN for anything that is not a number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_choice(name: str, value: Any, choices: tuple[Choice, ...]) -> Choice:
    """Check that a value is one of a few words."""
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, choices))}, got {reprlib.repr(value)}"
    )


def check_jobs(n_jobs: Any) -> None:
    """Check a number of threads as joblib counts them, or None."""
    if n_jobs is None:
        return
    if not is_whole(n_jobs) or n_jobs == 0 or abs(n_jobs) > _LARGEST_COUNT:
        raise ValueError(
            "n_jobs must be None, a number of threads, or -1 for all processors, "
            f"got {reprlib.repr(n_jobs)}"
        )


def check_verbose(verbose: Any) -> None:
    """Check how much a fit tells: 0 or False for nothing, more for one line per stage."""
    if not isinstance(verbose, bool):
        check_count("verbose", verbose, 0, "True, False or ")


def check_flag(name: str, value: Any, also: str = "") -> bool:
    """Check that a value is True or False; `also` names other valid values."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be {also}True or False, got {reprlib.repr(value)}")
    return bool(value)


def check_monotone(value: Any) -> None:
    """Refuse anything but "auto", True and False."""
    if not (isinstance(value, str) and value == "auto"):
        check_flag("monotone", value, "'auto', ")


def check_penalty(value: Any, name: str = "l2_regularization") -> float:
    """Check a penalty or a limit, large enough to keep models finite and finite itself."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or not (_SMALLEST_PENALTY <= value <= _LARGEST_PENALTY):
        raise ValueError(
            f"{name} must be a number from {_SMALLEST_PENALTY:g} to {_LARGEST_PENALTY:g}, "
            f"got {reprlib.repr(value)}"
        )
    return float(value)


def check_bins(value: Any) -> int:
    """Check a number of bins."""
    count = check_count("max_bins", value, 2)
    if count > MOST_BINS:
        raise ValueError(f"max_bins must be at most {MOST_BINS}, got {count}")
    return count


def check_depth(value: Any) -> None:
    """Refuse anything but None and a number of splits."""
    if value is not None:
        check_count("max_depth", value, 0, "None or ")


def check_share(name: str, value: Any) -> None:
    """Refuse anything but None or a number above 0 and up to 1."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if value is not None and not (is_number and 0 < value <= 1):
        raise ValueError(
            f"{name} must be None or a number above 0 and up to 1, got {reprlib.repr(value)}"
        )


def check_confidence(value: Any) -> None:
    """Refuse anything but a share between 0 and 1."""
    if not 0.0 < _as_float(value) < 1.0:
        raise ValueError(
            f"confidence must be a number between 0 and 1, such as 0.95, got {reprlib.repr(value)}"
        )


def is_cv(value: Any) -> TypeGuard[Literal["cv"]]:
    """Whether a parameter is left to cross-validation."""
    return isinstance(value, str) and value == "cv"


def check_alpha(value: Any) -> None:
    """Refuse anything but "cv", None and a pruning strength."""
    if value is not None and not is_cv(value):
        check_size("ccp_alpha", value, 0, "'cv', None or ")


def check_cv(value: Any) -> None:
    """Refuse a number that is not a number of folds; splitters are checked when they split."""
    if is_whole(value):
        check_count("cv", value, 2)
