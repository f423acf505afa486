"""Multicalibration error, as MCGrad defines it: the worst cumulative error of many segments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from .._fitted.conditions import Limits, condition, join_conditions
from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import Attribute, Attributes, learn
from .._inputs.parameters import check_count
from .._inputs.probabilities import check_rows, events

# So many standard deviations are taken for detectable.
_DETECTABLE = 5.0
_MOST_SMALL = 2**16
_LARGEST_SIGMA = 8.26732673  # beyond it, no probability is left in a float


@dataclass(frozen=True)
class MulticalibrationError:
    """The multicalibration error of probabilities.

    Attributes
    ----------
    error : float
        The largest error of a segment in standard deviations, times the standard deviation of all
        rows: in the unit of a probability. It can be larger than 1, if a segment has scores very
        close to 0 or 1 that are wrong.
    standard_deviation : float
        The standard deviation of the error of all rows, if the probabilities are right.
    sigmas : float
        The largest error of a segment, in standard deviations.
    p_value : float
        The p-value of that segment alone. It is not adjusted for the number of segments: the worst
        of many segments has a small one even if the probabilities are right.
    adjusted_p_value : float
        The same times the number of segments, at most 1 (Bonferroni): on the safe side.
    detectable : float
        The smallest error that can be detected with some certainty: five standard deviations.
    segment : str
        The worst segment, in words.
    n_segments : int
        How many segments there are.
    """

    error: float
    standard_deviation: float
    sigmas: float
    p_value: float
    adjusted_p_value: float
    detectable: float
    segment: str
    n_segments: int


def multicalibration_error(
    X: Any,
    y_true: Any,
    y_prob: Any,
    *,
    max_depth: int = 3,
    max_values: int = 3,
    min_rows: int = 10,
    max_segments: int = 1000,
    categorical_features: Any = None,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> MulticalibrationError:
    """Multicalibration error: the largest cumulative calibration error of many segments.

    The rows of a segment are sorted by their probabilities, and the differences between outcome and
    probability are added up. The error is the range of these sums, from the lowest to the highest
    [1]_, in standard deviations. The result is the error of the worst segment [2]_.

    Parameters
    ----------
    X : table of shape (n, d)
        The attributes that make segments.
    y_true, y_prob, sample_weight, labels, pos_label
        As for `rmse`. With more than two classes, the class with the largest error against the rest
        counts.
    max_depth : int, default 3
        The maximum number of attributes of a segment. All rows together are a segment as well.
    max_values : int, default 3
        The maximum number of values of an attribute. Beyond that, numbers are cut at quantiles and
        rare categories are merged. Missing values are one further value.
    min_rows : int, default 10
        The minimum number of rows in a segment.
    max_segments : int, default 1000
        The maximum number of segments. Segments of few attributes come first, and nominal
        attributes before numbers.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as categorical.

    Returns
    -------
    MulticalibrationError
        ``error``, with its standard deviation, its p-value and the smallest detectable error.

    References
    ----------
    .. [1] I. Arrieta-Ibarra, P. Gujral, J. Tannen, M. Tygert and C. Xu, "Metrics of calibration
       for probabilistic predictions", JMLR 23(351), 2022.
    .. [2] I. Guy, D. Haimovich, F. Linder, N. Okati, L. Perini, N. Tax and M. Tygert, "Measuring
       multi-calibration", arXiv 2506.11251, 2025.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree.metrics import multicalibration_error
    >>> random = np.random.default_rng(0)
    >>> X = random.integers(0, 3, (3000, 1))
    >>> said = random.random(3000)
    >>> y = random.random(3000) < np.where(X[:, 0] == 2, said / 2, said)
    >>> found = multicalibration_error(X, y, said)
    >>> found.segment, round(found.error, 2), found.p_value < 1e-9
    ('x0 > 1.5', 0.15, True)
    """
    for name, value in (("max_depth", max_depth), ("max_values", max_values)):
        check_count(name, value, 1)
    for name, value in (("min_rows", min_rows), ("max_segments", max_segments)):
        check_count(name, value, 1)
    rows = check_rows(y_true, y_prob, sample_weight, labels, pos_label)
    known, matrix = learn(X, categorical_features=categorical_features)
    if len(matrix) != len(rows.columns):
        raise ValueError(f"X has {len(matrix)} rows, but y_true has {len(rows.columns)}")
    limits = SegmentLimits(max_depth, max_values, min_rows, max_segments)
    weights = np.ones(len(matrix)) if rows.weights is None else rows.weights
    cases = list(events(rows, "classwise"))
    return worst_segment(known, matrix, cases, weights, limits)


@dataclass(frozen=True)
class SegmentLimits:
    """Which segments there are; see `multicalibration_error`."""

    max_depth: int = 3
    max_values: int = 3
    min_rows: int = 10
    max_segments: int = 1000


def worst_segment(
    known: Attributes,
    matrix: Floats,
    cases: Sequence[tuple[Mask, Floats]],
    weights: Floats,
    limits: SegmentLimits,
) -> MulticalibrationError:
    """The multicalibration error of checked rows; of several cases, that of the farthest off."""
    columns = _columns(known, matrix, limits.max_values)
    found = [_worst_of_case(columns, *case, weights, limits) for case in cases]
    worst = max(found, key=lambda each: each.sigmas)
    if len(found) == 1:
        return worst
    n_segments = sum(each.n_segments for each in found)
    adjusted = min(1.0, worst.p_value * n_segments)
    return MulticalibrationError(
        **{**vars(worst), "n_segments": n_segments, "adjusted_p_value": adjusted}
    )


def range_tail(sigmas: float) -> float:
    """The probability that the range of a Brownian motion on [0, 1] is larger."""
    if sigmas <= 0.0:
        return 1.0
    if sigmas >= _LARGEST_SIGMA:
        return float(np.finfo(np.float64).eps)
    # Feller's series, of which a few terms count.
    place = np.arange(200) + 0.5
    angle = (math.pi * place) ** 2
    terms = (8.0 / sigmas**2 + 2.0 / angle) * np.exp(-2.0 * angle / sigmas**2)
    return float(np.clip(1.0 - terms.sum(), np.finfo(np.float64).eps, 1.0))


def _worst_of_case(
    columns: Sequence[_Column],
    truth: Mask,
    probability: Floats,
    weights: Floats,
    limits: SegmentLimits,
) -> MulticalibrationError:
    order = np.argsort(probability, kind="stable")
    residual = (weights * (truth - probability))[order]
    variance = (weights**2 * probability * (1.0 - probability))[order]
    deviation = math.sqrt(float(variance.sum())) / float(weights.sum())
    sigmas, segment, n_segments = -1.0, "", 0
    for chosen, codes, n_cells in _partitions(columns, order, limits.max_depth):
        ranges, spread, counts = _ranges(codes, n_cells, residual, variance)
        used = np.flatnonzero(counts >= limits.min_rows)[: limits.max_segments - n_segments]
        n_segments += len(used)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(ranges > 0.0, ranges / np.sqrt(spread), 0.0)[used]
        if len(used) and found.max() > sigmas:
            sigmas = float(found.max())
            segment = _words(columns, chosen, int(used[found.argmax()]))
        if n_segments >= limits.max_segments:
            break
    p_value = range_tail(sigmas)
    return MulticalibrationError(
        error=sigmas * deviation,
        standard_deviation=deviation,
        sigmas=sigmas,
        p_value=p_value,
        adjusted_p_value=min(1.0, p_value * n_segments),
        detectable=_DETECTABLE * deviation,
        segment=segment,
        n_segments=n_segments,
    )


def _ranges(
    codes: npt.NDArray[np.intp], n_cells: int, residual: Floats, variance: Floats
) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
    """Of each cell the range of the running sums, the variance of the last, and the rows."""
    # Small numbers are sorted by their digits, which is much faster.
    small = codes.astype(np.uint16) if n_cells <= _MOST_SMALL else codes
    by_cell = np.argsort(small, kind="stable")
    counts = np.bincount(codes, minlength=n_cells)
    ends = np.cumsum(counts)
    sums = np.concatenate([[0.0], np.cumsum(residual[by_cell])])
    ranges = np.zeros(n_cells)
    present = np.flatnonzero(counts)
    starts = ends[present] - counts[present]
    # A range is that of the sums before the first row and after each: they overlap by one.
    for cell, start, end in zip(present, starts, ends[present], strict=True):
        part = sums[start : end + 1]
        ranges[cell] = part.max() - part.min()
    spread = np.asarray(np.bincount(codes, variance, n_cells), dtype=np.float64)
    return ranges, spread, counts


@dataclass(frozen=True, eq=False)
class _Column:
    """An attribute of few values, and each of them in words."""

    codes: npt.NDArray[np.uint8]
    words: list[str]


def _columns(known: Attributes, matrix: Floats, max_values: int) -> list[_Column]:
    """The columns of few values: nominal ones first, as segments of both are counted."""
    nominal, numeric = [], []
    for column, attribute in enumerate(known.columns):
        values = matrix[:, column]
        if not attribute.is_used:
            continue
        if attribute.categories:
            nominal.append(_few_categories(attribute, values, max_values))
        else:
            numeric.append(_few_numbers(attribute, values, max_values))
    return nominal + numeric


def _few_categories(attribute: Attribute, values: Floats, max_values: int) -> _Column:
    missing = np.isnan(values)
    codes = values[~missing].astype(np.intp)
    counts = np.bincount(codes, minlength=len(attribute.categories or ()))
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] > 0]
    n_own = len(order) if len(order) <= max_values else max_values - 1
    value_of = np.full(len(counts), n_own, dtype=np.uint8)
    value_of[order[:n_own]] = np.arange(n_own)
    parts = [frozenset([int(code)]) for code in order[:n_own]]
    if n_own < len(order):
        parts.append(frozenset(order[n_own:].tolist()))
    words = [condition(attribute, Limits(categories=part)) for part in parts]
    return _with_missing(attribute, missing, value_of[codes], words)


def _few_numbers(attribute: Attribute, values: Floats, max_values: int) -> _Column:
    missing = np.isnan(values)
    known = values[~missing]
    distinct = np.unique(known)
    if len(distinct) <= max_values:
        cuts = (distinct[:-1] + distinct[1:]) / 2.0
    else:
        edges = np.unique(np.quantile(known, np.linspace(0.0, 1.0, max_values + 1)))
        cuts = edges[1:-1]
    codes = np.searchsorted(cuts, known, side="left").astype(np.uint8)
    ends = [-math.inf, *cuts.tolist(), math.inf]
    limits = [Limits(low, high) for low, high in pairwise(ends)]
    return _with_missing(attribute, missing, codes, [condition(attribute, li) for li in limits])


def _with_missing(
    attribute: Attribute, missing: Mask, known: npt.NDArray[np.uint8], words: list[str]
) -> _Column:
    codes = np.full(len(missing), len(words), dtype=np.uint8)
    codes[~missing] = known
    if missing.any():
        words = [*words, condition(attribute, Limits(is_missing=True, is_known=False))]
    return _Column(codes, words)


def _partitions(
    columns: Sequence[_Column], order: npt.NDArray[np.intp], max_depth: int
) -> Iterator[tuple[tuple[int, ...], npt.NDArray[np.intp], int]]:
    """Yield the columns, the cell of each row and the number of cells, fewest columns first."""
    sorted_codes = [column.codes[order].astype(np.intp) for column in columns]
    for depth in range(min(max_depth, len(columns)) + 1):
        for chosen in combinations(range(len(columns)), depth):
            codes, n_cells = np.zeros(len(order), dtype=np.intp), 1
            for column in chosen:
                codes = codes * len(columns[column].words) + sorted_codes[column]
                n_cells *= len(columns[column].words)
            yield chosen, codes, n_cells


def _words(columns: Sequence[_Column], chosen: tuple[int, ...], cell: int) -> str:
    parts: list[str] = []
    for column in reversed(chosen):
        cell, value = divmod(cell, len(columns[column].words))
        parts.insert(0, columns[column].words[value])
    return join_conditions(parts)
