"""Shared by all pictures: the import of matplotlib, colours and short names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._fitted.names import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which the colour-blind tell apart; markers and lines do without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES = ("-", "--", "-.", ":")
GREY = "#999999"


def require_matplotlib() -> None:
    """Refuse to draw without matplotlib, and say how to install it."""
    try:
        import matplotlib  # noqa: F401  # only to see whether it is there
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ModuleNotFoundError(
            'pictures need matplotlib, which is not installed; run: pip install "caltree[plot]"',
            name="matplotlib",
        ) from None


def check_axes(ax: Any, count: int, instead: str) -> list[Axes] | None:
    """The axes to draw on, of which there must be so many; None if they are to be made."""
    from matplotlib.axes import Axes

    if ax is None:
        return None
    given = [ax] if isinstance(ax, Axes) else ax
    is_list = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
    axes = list(np.ravel(np.asarray(given, dtype=object))) if is_list else []
    if not axes or not all(isinstance(each, Axes) for each in axes):
        kind = "matplotlib axes" if count == 1 else f"{count} matplotlib axes"
        raise TypeError(f"ax must be {kind} or None, got {ax!r}")
    if len(axes) != count:
        raise ValueError(f"ax has {len(axes)} axes, but {count} are needed; {instead}")
    return axes


def shorten(value: Any, most: int) -> str:
    """A name of at most so many characters, cut in the middle, where names differ least."""
    name = printable(value)
    if len(name) <= most:
        return name
    end = (most - 1) // 3
    return f"{name[: most - 1 - end]}…{name[len(name) - end :]}"


def plain(text: str) -> str:
    """Text without formulas: matplotlib reads one between dollars."""
    return text.replace("$", r"\$")


def legend_name(value: Any, most: int) -> str:
    """A name for a legend, in quotes if it begins as those that matplotlib leaves out."""
    name = plain(shorten(value, most))
    return f"'{name}'" if name.startswith("_") else name
