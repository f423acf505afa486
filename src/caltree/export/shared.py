"""Helpers that SQL and ONNX share."""

from __future__ import annotations

import numpy as np

from .._inputs.arrays import Floats


def is_unicode(text: str) -> bool:
    """Whether a text can be encoded: lone surrogates cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def linear_pieces(corners: Floats, heights: Floats) -> Floats:
    """Return the straight pieces of a function: where each begins, its height there, its slope.

    The function is constant up to its first corner and from its last one on: the first piece,
    which has no beginning, is given that of the second.
    """
    slopes = [0.0, *np.diff(heights) / np.diff(corners), 0.0]
    begins = np.append(corners[0], corners)
    return np.column_stack([begins, np.append(heights[0], heights), slopes])
