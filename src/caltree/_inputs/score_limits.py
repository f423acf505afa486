"""What probabilities of exactly 0 and 1 count as, where their logarithms are needed.

Probabilities that are averages of votes, as those of a random forest, or that were rounded, are
often 0 or 1. They are not as certain as that: a 0 only means less than the next probability. So 0
counts as half of the smallest other probability. It is the same at 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from .arrays import Floats

# The distance between 1 and the largest number below it.
SMALLEST_PROBABILITY = 2.0**-53
# A classifier that gives probabilities nearer to 0 or 1 does not round them.
LEAST_STEP = 1e-9
# Averages of votes may miss 1 by their last bits.
_NEARLY_ONE = 1.0 - 1e-14


@dataclass(frozen=True)
class ScoreLimits:
    """The lowest and the highest probability; others are clipped to them for logarithms."""

    lowest: float = SMALLEST_PROBABILITY
    highest: float = 1.0 - SMALLEST_PROBABILITY


USUAL_LIMITS = ScoreLimits()


@dataclass(frozen=True)
class ScoreEdges:
    """The probabilities of some rows next to 0 and 1; those of several parts can be merged."""

    has_zeros: bool = False
    has_ones: bool = False
    """Whether there is a 1, up to rounding."""
    above_zero: float = 1.0
    """The smallest distance from 0 of those that are neither 0 nor 1."""
    below_one: float = 1.0
    """The smallest distance from 1 of these."""

    @classmethod
    def of(cls, matrix: Floats) -> ScoreEdges:
        """Look at all scores; of scores that are no probabilities nothing is learned."""
        lowest, highest = float(matrix.min(initial=1.0)), float(matrix.max(initial=0.0))
        if lowest < 0.0 or highest > 1.0:
            return cls()
        if 0.0 < lowest <= highest < _NEARLY_ONE:
            return cls(above_zero=lowest, below_one=1.0 - highest)
        zeros, ones = matrix == 0.0, matrix >= _NEARLY_ONE
        others = ~(zeros | ones)
        above = float(matrix.min(initial=1.0, where=others))
        below = 1.0 - float(matrix.max(initial=0.0, where=others))
        return cls(bool(zeros.any()), bool(ones.any()), above, below)

    def merge(self, other: ScoreEdges) -> ScoreEdges:
        """The edges of the rows of both."""
        return ScoreEdges(
            self.has_zeros or other.has_zeros,
            self.has_ones or other.has_ones,
            min(self.above_zero, other.above_zero),
            min(self.below_one, other.below_one),
        )

    def limits(self, score_type: str, *, is_turned: bool) -> ScoreLimits:
        """Return the limits of the scores, or those of one minus the scores."""
        if score_type != "probability" or min(self.above_zero, self.below_one) < LEAST_STEP:
            return USUAL_LIMITS
        zero = _half(self.above_zero) if self.has_zeros else SMALLEST_PROBABILITY
        one = _half(self.below_one) if self.has_ones else SMALLEST_PROBABILITY
        return ScoreLimits(one, 1.0 - zero) if is_turned else ScoreLimits(zero, 1.0 - one)


def _half(step: float) -> float:
    """Half of a step; without a probability between 0 and 1 there is none."""
    return step / 2 if step < 1.0 else SMALLEST_PROBABILITY
