"""Global calibrators in SQL."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..._inputs.arrays import Floats
from .dialects import Dialect, Lines, indented
from .scores import Scores, normalised
from .sums import LARGEST_EXPONENT, linear, sigmoid_of, softmax

# More corners than this are divided in two first, which is quicker than to look at each.
_MOST_IN_A_ROW = 8


def identity(scores: Scores) -> list[Lines]:
    """The scores as probabilities."""
    return [[value] for value in scores.uncalibrated()]


def platt(scores: Scores, calibrator: Any) -> list[Lines]:
    """Sigmoids of the log-odds."""
    dialect = scores.dialect
    sigmoids = list(zip(calibrator.intercepts_.tolist(), calibrator.slopes_.tolist(), strict=True))
    values = scores.one_a_class()
    if scores.score_type == "probability":
        odds = [scores.clipped_log_odds(value) for value in values]
    else:
        odds = [scores.for_products(scores.cut_off(value)) for value in values]
    names = scores.named("score", odds)
    if len(names) == 1:
        intercept, slope = sigmoids[0]
        negated = [
            linear(dialect, sign * intercept, [(sign * slope, names[0])]) for sign in (1, -1)
        ]
        return [[f"1 / {sigmoid_of(dialect, text, math.inf)}"] for text in negated]
    lines = (
        linear(dialect, intercept, [(slope, name)])
        for (intercept, slope), name in zip(sigmoids, names, strict=True)
    )
    logs = scores.named("log", [_log_sigmoid(dialect, text) for text in lines], layer=1)
    return [[share] for share in softmax(dialect, logs)]


def isotonic(scores: Scores, calibrator: Any) -> list[Lines]:
    """Functions that rise with the score."""
    names = scores.named("score", [scores.without_tiny(x) for x in scores.one_a_class()])
    parts = zip(names, calibrator.thresholds_, calibrator.values_, strict=True)
    curves = [_curve(scores.dialect, name, _pieces(*corners)) for name, *corners in parts]
    if len(curves) == 1:
        (curve,) = curves
        return [[f"1 - {curve[0]}", *curve[1:]], curve]
    on_one_line = [" ".join(line.strip() for line in curve) for curve in curves]
    heights = scores.named("height", on_one_line, layer=1)
    return [[share] for share in normalised(scores.dialect, heights)]


def _log_sigmoid(dialect: Dialect, value: str) -> str:
    """The logarithm of the logistic function."""
    size = dialect.at_least(f"-abs({value})", -LARGEST_EXPONENT)
    return f"{dialect.least}({value}, {dialect.double(0.0)}) - ln(1 + exp({size}))"


@dataclass(frozen=True)
class _Piece:
    """A straight piece of a curve, up to the next one."""

    begin: float
    height: float
    slope: float

    def text(self, dialect: Dialect, score: str) -> str:
        height = dialect.double(self.height)
        if self.slope == 0.0:
            return height
        begin = f"({score} - {dialect.double(self.begin)})".replace("- -", "+ ")
        return f"{height} + {dialect.double(self.slope)} * {begin}"


def _pieces(corners: Floats, heights: Floats) -> list[_Piece]:
    slopes = [0.0, *(np.diff(heights) / np.diff(corners)).tolist(), 0.0]
    begins = [-math.inf, *corners.tolist()]
    return list(map(_Piece, begins, [float(heights[0]), *heights.tolist()], slopes))


def _curve(dialect: Dialect, score: str, pieces: Sequence[_Piece]) -> Lines:
    """A function made of straight pieces."""
    if len(pieces) <= _MOST_IN_A_ROW:
        whens = [
            f"WHEN {score} < {dialect.double(after.begin)} THEN {piece.text(dialect, score)}"
            for piece, after in pairwise(pieces)
        ]
        last = f"ELSE {pieces[-1].text(dialect, score)}"
        return ["CASE", *indented([*whens, last]), "END"]
    middle = len(pieces) // 2
    return [
        f"CASE WHEN {score} < {dialect.double(pieces[middle].begin)} THEN",
        *indented(_curve(dialect, score, pieces[:middle])),
        "ELSE",
        *indented(_curve(dialect, score, pieces[middle:])),
        "END",
    ]
