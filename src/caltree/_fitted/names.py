"""Names of attributes, categories, classes and scores, as they are printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def printable(value: Any) -> str:
    """Return a name in which nothing moves the cursor or starts a new line."""
    characters = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value))
    return "".join(characters)


def score_names(classes: Sequence[Any], n_scores: int) -> list[str]:
    """Return the names of scores: S[class], numbered if there are several classifiers."""
    labels = [printable(label) for label in classes]
    if n_scores == 1:
        return [f"S[{labels[1]}]"]
    if n_scores == len(classes):
        return [f"S[{label}]" for label in labels]
    n_classifiers = n_scores // len(classes)
    return [f"S{k + 1}[{label}]" for k in range(n_classifiers) for label in labels]


def format_count(n_rows: float) -> str:
    """Write a number of rows, which weights may make a fraction."""
    return f"{n_rows:,.0f}" if n_rows == round(n_rows) else f"{n_rows:,.1f}"
