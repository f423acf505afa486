"""Groups and regions of an audit, before and after calibration, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._audit.adjust import adjust
from .._audit.axes import Axis
from .._audit.effects import (
    Direction,
    Frequency,
    effect_of,
    farthest_off,
    frequency_of,
    p_value_of,
)
from .._audit.groups import make_groups
from .._audit.regions import deal_halves, first_of_alike, suggest_regions
from .._audit.rows import FEWEST_ROWS
from .._audit.rows import Rows as Audited
from .._fitted.names import SPACE, percent
from .._inputs.arrays import Floats, Mask
from .._inputs.warning import rows_checked_before
from .diagrams import diagram_of
from .measures import ALPHA

QUESTIONS = ("scores", "calibrated", "change")
"""Are the scores off, are the calibrated probabilities off, and are these nearer to the truth?"""


# Of as many rows, a tenth of a percent can be told from another.
_MANY_ROWS = 3_000


def share_of_rows(share: float, n_rows: int) -> str:
    """A share of some rows in percent, to as many digits as they are worth."""
    if n_rows < _MANY_ROWS or not 0.0995 <= share <= 0.99:
        return percent(share)
    return f"{100.0 * share:.1f}{SPACE}%"


@dataclass(frozen=True, eq=False)
class Sides:
    """The same rows with the scores, with calibrated probabilities, and half-way between them.

    What happens is nearer to the calibrated probabilities than to the scores if it is on their
    side of the middle: so a test of the middle says whether calibration made it better or worse.
    """

    before: Audited
    after: Audited
    between: Audited

    @classmethod
    def of(cls, before: Audited, after: Audited) -> Sides:
        """Compare two probabilities of the same rows."""
        middle = (before.probabilities + after.probabilities) / 2.0
        bare = before.without_matrix()
        between = replace(bare, probabilities=middle)
        return cls(bare, after.without_matrix(), between)

    def take(self, rows: Any) -> Sides:
        """Some of the rows."""
        return Sides(self.before.take(rows), self.after.take(rows), self.between.take(rows))


@dataclass(frozen=True)
class Place:
    """Predicted and observed in a group or a region."""

    conditions: list[str]
    label: str
    before: Frequency
    after: Frequency
    p_values: dict[str, float | None]
    """By question; None if there are too few rows to test, or nothing to ask."""
    diagram: dict[str, list[list[float]]]
    adjusted: dict[str, float | None]

    @property
    def least(self) -> float:
        """The smallest p-value of all questions; more than 1 if none was tested."""
        return min((p for p in self.p_values.values() if p is not None), default=2.0)

    @property
    def is_changed(self) -> bool:
        """Whether the change is large enough to be read."""
        predicted, calibrated = self.before.predicted, self.after.predicted
        n_rows = self.before.n_rows
        return share_of_rows(predicted, n_rows) != share_of_rows(calibrated, n_rows)

    def verdict(self, question: str) -> str:
        """The answer to a question, in words."""
        p_value = self.adjusted[question]
        if question == "change" and not self.is_changed:
            return "hardly changed"
        if p_value is None:
            return "too few rows"
        if p_value > ALPHA:
            return "may be chance"
        effect = self.before if question == "scores" else self.after
        if question != "change":
            return "too low" if effect.observed > effect.predicted else "too high"
        distances = [abs(each.predicted - each.observed) for each in (self.before, self.after)]
        return "better" if distances[1] < distances[0] else "worse"

    def to_dict(self, key: str) -> dict[str, Any]:
        """Plain values, with a key of its own."""
        return {
            "id": key,
            "conditions": self.conditions,
            "class": self.label,
            "rows": self.before.n_rows,
            "share": self.before.share,
            "predicted": self.before.predicted,
            "observed": self.before.observed,
            "low": self.before.low,
            "high": self.before.high,
            "calibrated": self.after.predicted,
            "tests": {
                question: {
                    "p_value": self.p_values[question],
                    "adjusted_p_value": self.adjusted[question],
                    "verdict": self.verdict(question),
                }
                for question in QUESTIONS
            },
            "before": self.diagram["before"],
            "after": self.diagram["after"],
        }


@dataclass(frozen=True)
class Places:
    """Groups and regions, and how many tests their p-values are adjusted for."""

    groups: list[Place]
    regions: list[Place]
    n_tests: int


def find_places(
    before: Audited,
    after: Audited,
    axes: Sequence[Axis],
    by: Sequence[int],
    random: np.random.Generator,
) -> Places:
    """All rows, the groups of some columns, and regions.

    Regions are found where the scores are off and where the calibrated probabilities are, on one
    half of the rows, and tested on the other.
    """
    sides = Sides.of(before, after)
    groups = [
        _examine(sides, conditions, inside, None) for conditions, inside in make_groups(before, by)
    ]
    found: list[tuple[Place, Mask]] = []
    if len(before) >= FEWEST_ROWS:
        with rows_checked_before():
            found = list(_regions(sides, axes, random))
    adjusted, n_tests = _adjust([*groups, *(place for place, _ in found)])
    n_groups = len(groups)
    regions = _without_alike(adjusted[n_groups:], [everywhere for _, everywhere in found])
    return Places(adjusted[:n_groups], regions, n_tests)


def _regions(
    sides: Sides, axes: Sequence[Axis], random: np.random.Generator
) -> Iterator[tuple[Place, Mask]]:
    """Yield regions with their rows among all."""
    halves = deal_halves(sides.before, random)
    both = {"scores": sides.before, "calibrated": sides.after}
    if np.array_equal(sides.before.probabilities, sides.after.probabilities):
        del both["calibrated"]
    for learned, tested in (halves, halves[::-1]):
        here = sides.take(tested)
        for question, rows in both.items():
            for each in suggest_regions(rows, axes, learned, tested, random):
                if each.inside.any():
                    directions = {question: each.direction}
                    given = each.inside, each.channel, each.share, directions
                    yield _examine(here, each.conditions, *given), each.everywhere


def _examine(
    sides: Sides,
    conditions: list[str],
    inside: Mask,
    channel: int | None,
    share: float = 1.0,
    directions: Mapping[str, Direction] | None = None,
) -> Place:
    """Look at some rows; of several classes, at the one with the smallest p-value.

    So a class that calibration made worse is not passed over. Of equal p-values, which may be too
    small for a number, the one with the largest shift counts, as in an audit.

    The share is less than 1 for one of several alternatives: see `effects.frequency_of`. A
    direction is that which other rows have shown, by question.
    """
    before, after = sides.before, sides.after
    channels = before.channels if channel is None else [channel]
    found = [_p_values(sides, each, inside, share, directions or {}) for each in channels]
    chosen = 0
    if len(channels) > 1:
        least = (min((p for p in each.values() if p is not None), default=None) for each in found)
        effects = (effect_of(before, each, inside) for each in channels)
        chosen = farthest_off([replace(e, p_value=p) for e, p in zip(effects, least, strict=True)])
    channel = channels[chosen]
    # The class was chosen by its p-values.
    p_values = {
        question: None if p is None else min(1.0, p * len(channels))
        for question, p in found[chosen].items()
    }
    return Place(
        conditions=conditions,
        label=before.classes[channel],
        before=frequency_of(before, channel, inside, share),
        after=frequency_of(after, channel, inside, share),
        p_values=p_values,
        diagram=diagram_of(before, after, channel, inside),
        adjusted={},
    )


def _p_values(
    sides: Sides, channel: int, inside: Mask, share: float, directions: Mapping[str, Direction]
) -> dict[str, float | None]:
    both = (sides.before, sides.after, sides.between)
    found = {
        question: p_value_of(rows, channel, inside, share, directions.get(question, 0))
        for question, rows in zip(QUESTIONS, both, strict=True)
    }
    n_rows = int(np.count_nonzero(inside))
    means = [share_of_rows(_mean(rows, channel, inside), n_rows) for rows in both[:2]]
    if means[0] == means[1]:
        found["change"] = None  # nothing to ask: neither is nearer, as far as can be read
    return found


def _mean(rows: Audited, channel: int, inside: Mask) -> float:
    weights: Floats = rows.row_weights[inside]
    return float(weights @ rows.predicted(channel)[inside] / weights.sum())


def _without_alike(regions: Sequence[Place], rows: Sequence[Mask]) -> list[Place]:
    """The regions, those that are off for certain first; of nearly the same ones, the first."""
    order = sorted(range(len(regions)), key=lambda place: regions[place].least)
    kept = first_of_alike([(regions[k].label, rows[k]) for k in order])
    return [regions[order[place]] for place in kept]


def _adjust(places: Sequence[Place]) -> tuple[list[Place], int]:
    """Adjust the p-values of all places and questions together; return also their number."""
    tested = [
        (number, question)
        for number, place in enumerate(places)
        for question in QUESTIONS
        if place.p_values[question] is not None
    ]
    p_values = [places[number].p_values[question] or 0.0 for number, question in tested]
    adjusted = dict(zip(tested, adjust(p_values, "holm"), strict=True))
    found = [
        replace(place, adjusted={each: adjusted.get((number, each)) for each in QUESTIONS})
        for number, place in enumerate(places)
    ]
    return found, len(tested)
