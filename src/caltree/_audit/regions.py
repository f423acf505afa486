"""Regions that carry the miscalibration: found on one half of the rows, tested on the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from .._inputs.arrays import Floats, Mask
from .._inputs.groups import deal_groups
from ..curves import BetaScaling
from .axes import Axis, score_axis
from .effects import Direction, Effect, direction_of, effect_of, p_value_of
from .null import residuals, variances
from .rows import Rows
from .scan import DEPTHS, FAMILIES, Region, Table, find_large, measure, ratios, tables_and_classes

Half = npt.NDArray[np.intp]

# A dozen regions are as many as anybody reads: half of them from each half of the rows.
_MOST_REGIONS_A_HALF = 6
# The evidence for a region, a share of the likelihood ratios of all, below which it is not tested,
# unless it is the first: each test makes all others harder to pass.
_LEAST_EVIDENCE = 0.1
# A half cannot tell one region from others that are nearly the same, or from some that chance made
# as likely: so many share a test, down to this part of the evidence for the first.
_MOST_ALTERNATIVES = 30
_LEAST_OF_FIRST = 0.01
# So many rows show where to look.
_MOST_ROWS = 25_000
_LARGEST_STEP = 4.0
# Two regions are nearly the same if both have this share of the rows that one of them has.
_ALIKE = 0.9


@dataclass(frozen=True, eq=False)
class Found:
    """A region that one half suggested, and the effect in the other."""

    conditions: list[str]
    channel: int
    everywhere: Mask
    """Whether each of all rows is in it."""
    tested_on: int
    """The half, 0 or 1."""
    direction: Direction
    """The direction of the error in the other half."""
    effect: Effect
    parts: tuple[Effect, Effect] | None
    """The effect in two halves of the rows that it was tested on."""


def deal_halves(rows: Rows, random: np.random.Generator) -> tuple[Half, Half]:
    """Deal the rows into two halves; whole groups if there are any."""
    if rows.groups is not None:
        fold = deal_groups(rows.groups, rows.labels, 2, np.random.RandomState(0))
    else:
        fold = random.permutation(len(rows)) % 2
    return np.flatnonzero(fold == 0), np.flatnonzero(fold == 1)


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A region that some rows suggest, to be tested on others."""

    conditions: list[str]
    channel: int
    everywhere: Mask
    """Whether each of all rows is in it."""
    inside: Mask
    """The same of the rows to test it on."""
    share: float
    """Of a test: the rest is that of alternatives."""
    direction: Direction
    """The direction in which the rows that suggest it are off."""


def find_regions(
    rows: Rows, axes: Sequence[Axis], halves: tuple[Half, Half], random: np.random.Generator
) -> list[Found]:
    """Find regions on either half, and test them on the other."""
    found = []
    bare = rows.without_matrix()
    for finding, half in ((0, 1), (1, 0)):
        tested_rows = bare.take(halves[half])
        quarters = deal_halves(tested_rows, random)
        for each in suggest_regions(rows, axes, halves[finding], halves[half], random):
            effect = effect_of(tested_rows, each.channel, each.inside, each.share, each.direction)
            parts = effects_in_halves(tested_rows, each.channel, each.inside, quarters)
            what = each.conditions, each.channel, each.everywhere
            found.append(Found(*what, half, each.direction, effect, parts))
    return found


def suggest_regions(
    rows: Rows, axes: Sequence[Axis], learned: Half, tested: Half, random: np.random.Generator
) -> Iterator[Suggestion]:
    """Yield the regions that one half suggests, and their rows in the other half.

    Alternatives share a test in proportion to the evidence for them in the first half (a weighted
    Bonferroni adjustment). The one with the smallest p-value in the other half is yielded, or the
    first if none is below 1. Only errors in the direction that the first half shows count.
    """
    rows = rows.without_matrix()
    if len(learned) > _MOST_ROWS:
        learned = np.sort(random.choice(learned, _MOST_ROWS, replace=False))
    learned_rows, tested_rows = rows.take(learned), rows.take(tested)
    of_scores = [score_axis(rows, channel) for channel in rows.channels]
    for alternatives in _search(rows, axes, of_scores, learned):
        total = sum(each.evidence for each in alternatives)
        suggested = []
        for each in alternatives:
            score = of_scores[each.place]
            everywhere = each.region.contains([*axes, score])
            channel = rows.channels[each.place]
            suggested.append(
                Suggestion(
                    each.region.words([*axes, score]),
                    channel,
                    everywhere,
                    everywhere[tested],
                    each.evidence / total,
                    direction_of(learned_rows, channel, everywhere[learned]),
                )
            )
        yield min(suggested, key=partial(_rank, tested_rows))


def _rank(rows: Rows, each: Suggestion) -> float:
    p_value = p_value_of(rows, each.channel, each.inside, each.share, each.direction)
    return math.inf if p_value is None else p_value


def effects_in_halves(
    rows: Rows, channel: int, inside: Mask, halves: tuple[Half, Half]
) -> tuple[Effect, Effect] | None:
    """The effect in either half; None if one of them has too few of these rows."""
    found = []
    for half in halves:
        chosen = inside[half]
        if np.count_nonzero(chosen) < 2:
            return None
        found.append(effect_of(rows.take(half), channel, chosen))
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A region, and the evidence for it."""

    evidence: float
    """The likelihood ratio, times the share of the region in all that are looked at."""
    place: int
    """Of its class among the channels."""
    region: Region


def _search(
    rows: Rows, axes: Sequence[Axis], of_scores: Sequence[Axis], learned: Half
) -> Iterator[list[_Candidate]]:
    """Yield the regions for which there is most evidence, each with alternatives to it.

    Each is looked for beside those before it. What a curve would put right for all rows is put
    right first.
    """
    here = _with_curve(rows.take(learned))
    known = [axis.take(learned) for axis in axes]
    of_scores = [axis.take(learned) for axis in of_scores]
    priors = _priors(known, of_scores, here.row_weights)
    for number in range(_MOST_REGIONS_A_HALF):
        found = _strongest(here, known, of_scores, priors)
        if not found or (number > 0 and found[0].evidence < _LEAST_EVIDENCE / len(rows.channels)):
            return
        yield found
        first = found[0]
        inside = first.region.contains([*known, of_scores[first.place]])
        here = _put_right(here, rows.channels[first.place], inside)


def _priors(
    axes: Sequence[Axis], of_scores: Sequence[Axis], weights: Floats
) -> dict[int, list[Floats]]:
    """By depth and table, the share of each region in all of its class: 0 if it is too small."""
    found = {}
    for depth, share in DEPTHS.items():
        counts = np.zeros((len(of_scores), len(FAMILIES)))
        large = []
        for table, places in tables_and_classes(axes, of_scores, depth):
            members = (
                np.stack(table.families, axis=-1) & find_large(table, weights)[..., np.newaxis]
            )
            counts[places] += members.reshape(-1, len(FAMILIES)).sum(axis=0)
            large.append((members, places))
        each = share * np.array(FAMILIES) / np.maximum(counts, 1.0)
        found[depth] = [members @ each[places].T for members, places in large]
    return found


def _strongest(
    rows: Rows,
    axes: Sequence[Axis],
    of_scores: Sequence[Axis],
    priors: dict[int, list[Floats]],
) -> list[_Candidate]:
    """The regions for which there is most evidence, the first of them first."""
    own = np.column_stack([residuals(rows, channel) for channel in rows.channels])
    variance = np.column_stack([variances(rows, channel) for channel in rows.channels])
    best: list[tuple[float, int, Table, int]] = []
    most = 0.0
    for depth, of_depth in priors.items():
        for (table, places), prior in zip(
            tables_and_classes(axes, of_scores, depth), of_depth, strict=True
        ):
            large = prior[..., 0] > 0.0
            if not large.any():
                continue
            sizes = measure(table, rows.row_weights, variance[:, places], large)
            found = ratios(table.regions(table.cells(own[:, places])), sizes.variance)
            evidence = np.where(sizes.is_tested, prior * found, 0.0).reshape(-1, len(places))
            most = max(most, float(evidence.max()))
            for flat, k in np.argwhere(evidence > _LEAST_OF_FIRST * most).tolist():
                best.append((float(evidence[flat, k]), places[k], table, flat))
    best = sorted(best, key=lambda each: -each[0])[:_MOST_ALTERNATIVES]
    return [
        _Candidate(evidence, place, table.region(flat))
        for evidence, place, table, flat in best
        if evidence > _LEAST_OF_FIRST * most
    ]


def _with_curve(rows: Rows) -> Rows:
    """The rows with probabilities that one curve for all of them has put right."""
    if len(np.unique(rows.labels)) < len(rows.classes):
        return rows
    beta = BetaScaling(score_type=rows.kind.score_type)
    beta.fit(None, rows.labels, rows.scores, sample_weight=rows.weights)
    return replace(rows, probabilities=beta.predict_proba(None, rows.scores))


def _put_right(rows: Rows, channel: int, inside: Mask) -> Rows:
    """The rows with the log-odds of a class shifted in a region, as its labels ask for."""
    shift = float(np.clip(effect_of(rows, channel, inside).shift, -_LARGEST_STEP, _LARGEST_STEP))
    probabilities: Floats = rows.probabilities.copy()
    before = rows.predicted(channel)[inside]
    after = expit(logit(before) + shift)
    others = np.arange(probabilities.shape[1]) != channel
    scale = (1.0 - after) / (1.0 - before)
    probabilities[np.ix_(inside, others)] *= scale[:, np.newaxis]
    probabilities[inside, channel] = after
    return replace(rows, probabilities=probabilities)


def first_of_alike(regions: Sequence[tuple[str, Mask]]) -> list[int]:
    """The places of regions that are not nearly the same as one before.

    Both halves may suggest a region, or almost the same one. Given are classes and rows.
    """
    kept: list[int] = []
    for place, (label, inside) in enumerate(regions):
        others = [regions[k][1] for k in kept if regions[k][0] == label]
        if not any(
            np.count_nonzero(inside & other) >= _ALIKE * np.count_nonzero(inside | other)
            for other in others
        ):
            kept.append(place)
    return kept


def are_same(parts: tuple[Effect, Effect] | None) -> bool | None:
    """Whether the shifts of two halves differ by no more than chance; None if that is not known."""
    if parts is None or not all(math.isfinite(each.shift) for each in parts):
        return None
    first, second = parts
    errors = [(each.shift_high - each.shift_low) / 2.0 for each in parts]
    return abs(first.shift - second.shift) <= math.hypot(*errors)
