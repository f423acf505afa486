"""Names of attributes, categories and classes, and counts of rows, as they are printed."""

from __future__ import annotations

from typing import Any


def printable(value: Any) -> str:
    """Return a name in which nothing moves the cursor or starts a new line."""
    characters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return "".join(characters)


def format_count(n_rows: float) -> str:
    """Write a number of rows, which weights may make a fraction."""
    return f"{n_rows:,.0f}" if n_rows == round(n_rows) else f"{n_rows:,.1f}"
