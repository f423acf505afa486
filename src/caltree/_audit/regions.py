"""Regions that carry the miscalibration: found on one half of the rows, tested on the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from .._inputs.arrays import Floats, Mask
from .._inputs.groups import deal_groups
from ..curves import BetaScaling
from .axes import Axis, score_axis
from .effects import Effect, effect_of
from .null import residuals, variances
from .rows import Rows
from .scan import FAMILIES, Region, Table, find_large, measure, ratios, tables_and_classes

Half = npt.NDArray[np.intp]

# A dozen regions are as many as anybody reads: half of them from each half of the rows.
_MOST_REGIONS_A_HALF = 6
# The evidence for a region, a share of the likelihood ratios of all, below which it is not tested,
# unless it is the first: each test makes all others harder to pass.
_LEAST_EVIDENCE = 0.1
# There are more regions of two conditions than of one: together, they count for as much.
_DEPTHS = {1: 0.5, 2: 0.5}
# So many rows show where to look.
_MOST_ROWS = 25_000
_LARGEST_STEP = 4.0


@dataclass(frozen=True, eq=False)
class Found:
    """A region that one half suggested, and the effect in the other."""

    conditions: list[str]
    channel: int
    tested_on: int
    """The half, 0 or 1."""
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
    inside: Mask
    """Whether each of the rows to test it on is in it."""


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
            effect = effect_of(tested_rows, each.channel, each.inside)
            parts = effects_in_halves(tested_rows, each.channel, each.inside, quarters)
            found.append(Found(each.conditions, each.channel, half, effect, parts))
    return found


def suggest_regions(
    rows: Rows, axes: Sequence[Axis], learned: Half, tested: Half, random: np.random.Generator
) -> Iterator[Suggestion]:
    """Yield the regions that one half suggests, and their rows in the other half."""
    rows = rows.without_matrix()
    if len(learned) > _MOST_ROWS:
        learned = np.sort(random.choice(learned, _MOST_ROWS, replace=False))
    for channel, region in _search(rows, axes, learned):
        scored = [*axes, score_axis(rows, channel)]
        inside = region.contains([axis.take(tested) for axis in scored])
        yield Suggestion(region.words(scored), channel, inside)


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


def _search(rows: Rows, axes: Sequence[Axis], learned: Half) -> Iterator[tuple[int, Region]]:
    """Yield the regions for which there is most evidence, each beside those before it.

    What a curve would put right for all rows is put right first.
    """
    here = _with_curve(rows.take(learned))
    known = [axis.take(learned) for axis in axes]
    of_scores = [score_axis(rows, channel).take(learned) for channel in rows.channels]
    large = {
        depth: [
            find_large(table, here.row_weights)
            for table, _ in tables_and_classes(known, of_scores, depth)
        ]
        for depth in _DEPTHS
    }
    for number in range(_MOST_REGIONS_A_HALF):
        evidence, place, region = _strongest(here, known, of_scores, large)
        is_weak = evidence < _LEAST_EVIDENCE / len(rows.channels)
        if region is None or (is_weak and number > 0):
            return
        channel = rows.channels[place]
        yield channel, region
        here = _put_right(here, channel, region.contains([*known, of_scores[place]]))


@dataclass(frozen=True)
class _Best:
    """The largest likelihood ratio of some regions, and the number of them."""

    ratio: float = 0.0
    region: Region | None = None
    count: int = 0

    def beside(self, table: Table, tested: Mask, found: Floats) -> _Best:
        """The best of these and of those of a table that are tested."""
        top = int(np.where(tested, found, 0.0).argmax())
        ratio = float(found.flat[top]) if tested.flat[top] else 0.0
        count = self.count + int(np.count_nonzero(tested))
        if ratio > self.ratio:
            return _Best(ratio, table.region(top), count)
        return replace(self, count=count)


def _strongest(
    rows: Rows,
    axes: Sequence[Axis],
    of_scores: Sequence[Axis],
    large: dict[int, list[Mask]],
) -> tuple[float, int, Region | None]:
    """The region with the largest likelihood ratio, as a share of the number of its kind.

    The second is the place of its class among the channels.
    """
    own = np.column_stack([residuals(rows, channel) for channel in rows.channels])
    variance = np.column_stack([variances(rows, channel) for channel in rows.channels])
    strongest: tuple[float, int, Region | None] = (0.0, 0, None)
    for depth, share in _DEPTHS.items():
        best = [[_Best() for _ in FAMILIES] for _ in rows.channels]
        for (table, places), of_table in zip(
            tables_and_classes(axes, of_scores, depth), large[depth], strict=True
        ):
            if not of_table.any():
                continue
            sizes = measure(table, rows.row_weights, variance[:, places], of_table)
            if not sizes.is_tested.any():
                continue
            found = ratios(table.regions(table.cells(own[:, places])), sizes.variance)
            for k, place in enumerate(places):
                best[place] = [
                    each.beside(table, sizes.is_tested[..., k] & members, found[..., k])
                    for each, members in zip(best[place], table.families, strict=True)
                ]
        for place, families in enumerate(best):
            for each, weight in zip(families, FAMILIES, strict=True):
                evidence = share * weight * each.ratio / max(each.count, 1)
                if evidence > strongest[0]:
                    strongest = (evidence, place, each.region)
    return strongest


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


def are_same(parts: tuple[Effect, Effect] | None) -> bool | None:
    """Whether the shifts of two halves differ by no more than chance; None if that is not known."""
    if parts is None or not all(math.isfinite(each.shift) for each in parts):
        return None
    first, second = parts
    errors = [(each.shift_high - each.shift_low) / 2.0 for each in parts]
    return abs(first.shift - second.shift) <= math.hypot(*errors)
