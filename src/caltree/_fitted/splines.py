"""Smooth rising functions: cubic pieces between corners, none of which overshoots."""

from __future__ import annotations

import numpy as np

from .._inputs.arrays import Floats

_SMALLEST = float(np.finfo(np.float64).tiny)


def cubic_pieces(corners: Floats, heights: Floats) -> Floats:
    """Return the pieces of the spline of Fritsch and Butland through rising corners.

    A piece is where it begins, how long it is, its height there, and the coefficients of t, t² and
    t³, where t is the share of its length. The function is constant up to its first corner and from
    its last one on: the first piece, which has no beginning, is given that of the second.
    """
    lengths, rises = np.diff(corners), np.diff(heights)
    starts, ends = _tangents(lengths, rises)
    pieces = np.zeros((len(corners) + 1, 6))
    pieces[:, 0] = np.append(corners[0], corners)
    pieces[:, 1] = 1.0
    pieces[:, 2] = np.append(heights[0], heights)
    pieces[1:-1, 1], pieces[1:-1, 3] = lengths, starts
    pieces[1:-1, 4] = 3.0 * rises - 2.0 * starts - ends
    pieces[1:-1, 5] = starts + ends - 2.0 * rises
    return pieces


def evaluate_pieces(pieces: Floats, x: Floats) -> Floats:
    """Return the values of a function that `cubic_pieces` returned, all from 0 to 1."""
    begin, length, height, first, second, third = pieces[
        np.searchsorted(pieces[1:, 0], x, side="right")
    ].T
    share = (x - begin) / length
    values = height + share * (first + share * (second + share * third))
    return np.asarray(np.clip(values, 0.0, 1.0))


def _tangents(lengths: Floats, rises: Floats) -> tuple[Floats, Floats]:
    """The slopes at the beginning and at the end of each piece, times its length.

    Within, a slope is a weighted harmonic mean of those of the lines on both sides, and at the ends
    that of a parabola through three corners, but never falling. Lengths enter by their ratios,
    whatever the unit of the scores.
    """
    if len(lengths) < 2:
        return rises, rises
    rises = np.maximum(rises, _SMALLEST)
    before = lengths[:-1] / (lengths[:-1] + lengths[1:])
    after = lengths[1:] / (lengths[:-1] + lengths[1:])
    inverse = (1.0 + after) * before / rises[:-1] + (1.0 + before) * after / rises[1:]
    starts = np.append(_at_the_end(*lengths[:2], *rises[:2]), 3.0 * after / inverse)
    ends = np.append(3.0 * before / inverse, _at_the_end(*lengths[:-3:-1], *rises[:-3:-1]))
    return starts, ends


def _at_the_end(length: float, next_length: float, rise: float, next_rise: float) -> float:
    share = length / (length + next_length)
    with np.errstate(over="ignore"):
        return float(max(0.0, (1.0 + share) * rise - share * (length / next_length) * next_rise))
