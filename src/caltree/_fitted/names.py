"""Names of attributes, categories and classes, counts of rows and shares, as they are printed."""

from __future__ import annotations

import math
from typing import Any

# Digits of larger numbers than these mean nothing.
_LARGEST_WHOLE = 1e15
# Between a number and what it counts no line may break.
SPACE = "\N{NO-BREAK SPACE}"


def printable(value: Any) -> str:
    """Return a name in which nothing moves the cursor or starts a new line; 1.0 is written 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST_WHOLE:
        value = int(value)
    characters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return "".join(characters)


def format_count(n_rows: float) -> str:
    """Write a number of rows, which weights may make a fraction."""
    return f"{n_rows:,.0f}" if n_rows == round(n_rows) else f"{n_rows:,.1f}"


def format_number(value: float, digits: int = 6) -> str:
    """Write a number with so many digits, or a large one without its fraction: never 1.3e+06.

    A fraction is cut off, so that whole numbers lie on the same side of what is written.
    """
    text = f"{value:.{digits}g}"
    return text if "e+" not in text or abs(value) >= _LARGEST_WHOLE else f"{math.floor(value)}"


def percent(share: float) -> str:
    """A share in words: two digits that matter."""
    size = 100.0 * abs(share)
    decimals = 1 if 0.0 < size < 9.95 or 99.0 < size < 100.0 else 0
    text = f"{size:.{decimals}f}"
    if 0.0 < size < 0.1:
        text = f"under{SPACE}0.1" if share > 0.0 else "0.0"
    elif text == "100.0":
        text = f"over{SPACE}99.9"
    minus = "−" if share < 0.0 and text != "0.0" else ""
    return f"{minus}{text}{SPACE}%"
