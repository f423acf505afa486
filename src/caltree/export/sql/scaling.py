"""Global calibrators in SQL."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._fitted.splines import cubic_pieces
from ..._inputs.arrays import Floats
from ...curves import CurveScaling
from ...scaling import IsotonicScaling, PlattScaling, SmoothIsotonicScaling
from ..shared import linear_pieces
from .dialects import Dialect
from .logistic import LARGEST_EXPONENT, linear, sigmoid_denominator, softmax
from .scores import Scores, normalize
from .text import Lines, indent, join_lines

# More pieces than this are divided in two first, which is quicker than to compare with each.
_MOST_IN_A_ROW = 8


def identity(scores: Scores) -> list[Lines]:
    """Return the scores as probabilities."""
    return [[value] for value in scores.uncalibrated()]


def platt(scores: Scores, calibrator: PlattScaling) -> list[Lines]:
    """Return sigmoids of the log-odds."""
    dialect = scores.dialect
    sigmoids = list(zip(calibrator.intercepts_.tolist(), calibrator.slopes_.tolist(), strict=True))
    values = scores.one_score_a_class()
    if scores.score_type == "probability":
        odds = [scores.clipped_log_odds(value) for value in values]
    else:
        odds = [scores.for_products(scores.clip_score(value)) for value in values]
    names = scores.name_each("score", odds)
    if len(names) == 1:
        intercept, slope = sigmoids[0]
        return _both(dialect, intercept, [(slope, names[0])])
    lines = (
        linear(dialect, intercept, [(slope, name)])
        for (intercept, slope), name in zip(sigmoids, names, strict=True)
    )
    logs = scores.name_each("log", [_log_sigmoid(dialect, text) for text in lines], layer=1)
    return [[share] for share in softmax(dialect, logs)]


def curve(scores: Scores, calibrator: CurveScaling) -> list[Lines]:
    """Return one logistic model of the scores."""
    dialect, parameters = scores.dialect, calibrator.parameters_.tolist()
    values, _ = scores.regressors(scores.one_score_a_class())
    names = scores.name_each("score", [scores.for_products(value) for value in values])
    if scores.n_classes == 2:
        ((intercept, *slopes),) = parameters
        names += scores.name_each("bend", [scores.bend(name) for name in names], layer=1)
        return _both(dialect, intercept, list(zip(slopes, names, strict=True)))
    sees_all = len(parameters[0]) == 1 + len(names)
    lines = [
        linear(dialect, intercept, zip(slopes, names if sees_all else [own], strict=True))
        for (intercept, *slopes), own in zip(parameters, names, strict=True)
    ]
    return [[share] for share in softmax(dialect, scores.name_each("line", lines, layer=1))]


def isotonic(scores: Scores, calibrator: IsotonicScaling) -> list[Lines]:
    """Return functions that rise with the score."""
    names = scores.name_each("score", [scores.drop_tiny(x) for x in scores.one_score_a_class()])
    parts = zip(names, calibrator.thresholds_, calibrator.values_, strict=True)
    smooth = isinstance(calibrator, SmoothIsotonicScaling)
    write = _smooth_pieces if smooth else _straight_pieces
    curves = [_curve(name, write(scores.dialect, name, *corners)) for name, *corners in parts]
    if len(curves) == 1:
        (curve,) = curves
        return [[f"1 - {curve[0]}", *curve[1:]], curve]
    heights = scores.name_each("height", [join_lines(curve) for curve in curves], layer=1)
    return [[share] for share in normalize(scores.dialect, heights)]


def _both(dialect: Dialect, intercept: float, slopes: Sequence[tuple[float, str]]) -> list[Lines]:
    """Return the probabilities of two classes from the log-odds of the second."""
    signed = [
        linear(dialect, sign * intercept, [(sign * slope, score) for slope, score in slopes])
        for sign in (1, -1)
    ]
    return [[f"1 / {sigmoid_denominator(dialect, text, math.inf)}"] for text in signed]


def _log_sigmoid(dialect: Dialect, value: str) -> str:
    """Return the logarithm of the logistic function."""
    size = dialect.clip_below(f"-abs({value})", -LARGEST_EXPONENT)
    return f"{dialect.least}({value}, {dialect.double(0.0)}) - ln(1 + exp({size}))"


def _curve(score: str, pieces: Sequence[tuple[str, str]]) -> Lines:
    """Return a function made of pieces: where each begins, and its value."""
    if len(pieces) <= _MOST_IN_A_ROW:
        ends = zip(pieces[1:], pieces, strict=False)
        whens = [f"WHEN {score} < {end} THEN {text}" for (end, _), (_, text) in ends]
        return ["CASE", *indent([*whens, f"ELSE {pieces[-1][1]}"]), "END"]
    middle = len(pieces) // 2
    return [
        f"CASE WHEN {score} < {pieces[middle][0]} THEN",
        *indent(_curve(score, pieces[:middle])),
        "ELSE",
        *indent(_curve(score, pieces[middle:])),
        "END",
    ]


def _straight_pieces(
    dialect: Dialect, score: str, corners: Floats, heights: Floats
) -> list[tuple[str, str]]:
    written = []
    for begin, height, slope in linear_pieces(corners, heights).tolist():
        text = dialect.double(height)
        if slope != 0.0:
            text += f" + {dialect.double(slope)} * {_distance(dialect, score, begin)}"
        written.append((dialect.double(begin), text))
    return written


def _smooth_pieces(
    dialect: Dialect, score: str, corners: Floats, heights: Floats
) -> list[tuple[str, str]]:
    written = []
    for begin, length, height, *terms in cubic_pieces(corners, heights).tolist():
        text = dialect.double(height)
        if any(terms):
            share = f"{_distance(dialect, score, begin)} / {dialect.double(length)}"
            first, second, third = (dialect.double(term) for term in terms)
            value = f"{text} + {share} * ({first} + {share} * ({second} + {share} * {third}))"
            # Rounding shall not lead beyond the heights at both ends.
            text = dialect.clip(value, 0.0, 1.0)
        written.append((dialect.double(begin), text))
    return written


def _distance(dialect: Dialect, score: str, begin: float) -> str:
    return f"({score} - {dialect.double(begin)})".replace("- -", "+ ")
