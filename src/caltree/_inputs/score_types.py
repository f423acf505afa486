"""The type of scores: as the user says, or as the scores themselves show without doubt."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .arrays import Floats, Mask
from .parameters import check_choice
from .score_limits import ScoreEdges
from .scores import SCORE_TYPES, ScoreType, check_probabilities

# If so few rows of many are not probabilities, these rows are wrong.
_FEW = 0.05
_SUM_TOLERANCE = 1e-3
_PERCENT = 100.0
# Fewer rows may all be certain by chance.
_FEWEST_CERTAIN = 20

Odd: TypeAlias = tuple[str, float]
"""Where something odd is, and its value."""


def resolve_score_type(
    matrix: Floats,
    n_classes: int,
    score_type: str,
    keep: Mask | None = None,
    first_row: int = 0,
) -> ScoreType:
    """Find the type of training scores; see `ScoreSurvey.score_type` for "auto".

    The rows of the matrix are those in `keep`, if not all; messages count from `first_row`.
    """
    known = check_choice("score_type", score_type, SCORE_TYPES)
    if known == "auto":
        found = ScoreSurvey.of(matrix, n_classes, keep, first_row=first_row).score_type()
        if found.warning is not None:
            warnings.warn(found.warning, UserWarning, stacklevel=5)
        return found.score_type
    if known == "probability":
        check_probabilities(matrix, keep)
    return known


@dataclass(frozen=True)
class Verdict:
    """The type of scores, and the warning about it, if any."""

    score_type: ScoreType
    warning: str | None = None


@dataclass(frozen=True)
class ScoreSurvey:
    """Facts about scores that show their type; those of several parts can be merged."""

    n_rows: int
    lowest: float
    highest: float
    n_outside: int
    """Rows with a score outside of 0 to 1."""
    outside: Odd | None
    """The first of these."""
    n_unequal: int
    """Other rows in which the scores of a classifier do not sum to 1; 0 of a single column."""
    unequal: Odd | None
    all_certain: bool
    """Whether every score is 0 or 1."""
    edges: ScoreEdges

    @classmethod
    def of(
        cls,
        matrix: Floats,
        n_classes: int,
        keep: Mask | None = None,
        where: str = "",
        first_row: int = 0,
    ) -> ScoreSurvey:
        """Look at all scores; `where` is added to the place of odd ones, counted from a number."""
        lowest, highest = matrix.min(initial=np.inf), matrix.max(initial=-np.inf)
        outside: Mask = np.zeros(len(matrix), dtype=bool)
        if lowest < 0.0 or highest > 1.0:
            outside |= ((matrix < 0.0) | (matrix > 1.0)).any(axis=1)
        sums = _farthest_sums(matrix, n_classes)
        unequal = (np.abs(sums - 1.0) > _SUM_TOLERANCE) & ~outside

        def first(odd: Mask) -> tuple[int, str] | None:
            if not odd.any():
                return None
            row = int(odd.argmax())
            number = row if keep is None else int(np.flatnonzero(keep)[row])
            return row, f"row {first_row + number}{where}"

        at, off = first(outside), first(unequal)
        return cls(
            len(matrix),
            float(lowest),
            float(highest),
            int(outside.sum()),
            None if at is None else (at[1], _first_outside(matrix[at[0]])),
            int(unequal.sum()),
            None if off is None else (off[1], float(sums[off[0]])),
            _are_certain(matrix[:_FEWEST_CERTAIN]) and _are_certain(matrix),
            ScoreEdges.of(matrix),
        )

    def merge(self, other: ScoreSurvey) -> ScoreSurvey:
        """The facts about the rows of both."""
        return ScoreSurvey(
            self.n_rows + other.n_rows,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.n_outside + other.n_outside,
            self.outside or other.outside,
            self.n_unequal + other.n_unequal,
            self.unequal or other.unequal,
            self.all_certain and other.all_certain,
            self.edges.merge(other.edges),
        )

    def score_type(self) -> Verdict:
        """Conclude, or raise a ValueError where the scores could be one thing or another.

        They are probabilities if all are from 0 to 1 and the columns of each classifier sum to 1
        (one column alone need not). Where a few rows of many are not, these rows must be wrong;
        and numbers from 0 to 100 may be percentages.
        """
        if self.outside is not None:
            self._refuse_few(self.n_outside, self.outside, "contains {} in")
            if self.lowest >= 0.0 and self.highest <= _PERCENT:
                raise ValueError(
                    f"scores are from {self.lowest:g} to {self.highest:g}; divide them by 100 if "
                    "they are percentages. If they are not, set score_type='logit' for log-odds, "
                    "or 'margin' for other scores, which an audit cannot judge (in the command, "
                    "--score-type)"
                )
            return Verdict("margin")
        if self.unequal is None:
            return Verdict("probability", self._certainty())
        self._refuse_few(self.n_unequal, self.unequal, "sums to {} in")
        where, total = self.unequal
        return Verdict(
            "margin",
            f"scores are from 0 to 1, but those of a row do not sum to 1 ({total:g} in {where}), "
            "so they are used as margins. If they are probabilities, divide each row by its sum. "
            "If they are margins, set score_type='margin'.",
        )

    def _certainty(self) -> str | None:
        """Tell of scores that look like predicted classes, if they do."""
        both = self.lowest == 0.0 and self.highest == 1.0
        if not (self.all_certain and both and self.n_rows >= _FEWEST_CERTAIN):
            return None
        return (
            "all scores are 0 or 1, like predicted classes, and do not show how sure the "
            "classifier is. Give what its predict_proba or decision_function returns. If the "
            "scores are probabilities, set score_type='probability' (in the command, "
            "--score-type probability)."
        )

    def _refuse_few(self, count: int, odd: Odd, what: str) -> None:
        if count > _FEW * self.n_rows:
            return
        where, value = odd
        others = "" if count == 1 else f" ({count} rows are like it)"
        raise ValueError(
            f"scores {what.format(f'{value:g}')} {where}{others}, but the scores of the other "
            f"{self.n_rows - count} rows are probabilities; correct what is wrong, or set "
            "score_type='margin' or 'logit' (in the command, --score-type) if the scores are not "
            "probabilities"
        )


def _farthest_sums(matrix: Floats, n_classes: int) -> Floats:
    """For each row, the sum over a classifier's columns that is farthest from 1."""
    farthest = np.ones(len(matrix))
    if matrix.shape[1] == 1:
        return farthest
    for start in range(0, matrix.shape[1], n_classes):
        sums = matrix[:, start : start + n_classes] @ np.ones(n_classes)
        np.copyto(farthest, sums, where=np.abs(sums - 1.0) > np.abs(farthest - 1.0))
    return farthest


def _are_certain(matrix: Floats) -> bool:
    return bool(((matrix == 0.0) | (matrix == 1.0)).all())


def _first_outside(row: Floats) -> float:
    return float(row[(row < 0.0) | (row > 1.0)][0])
