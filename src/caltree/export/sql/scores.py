"""Scores in the forms in which calibrators use them, in SQL: as `caltree._inputs.scores`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._inputs.score_limits import ScoreLimits
from ..._inputs.scores import (
    LARGEST_LOG_ODDS,
    LARGEST_SCORE,
    SUM_ROUNDING,
    ScoreType,
    log_odds,
)
from .dialects import Dialect
from .layers import Layers
from .logistic import LARGEST_EXPONENT, softmax
from .text import add_terms

# The difference of two of these is still a number.
_LARGEST_LOGIT = 8e307
_LARGEST_NUMBER = float(np.finfo(np.float64).max)
# A product that is rounded to 0 is an error in PostgreSQL. Smaller numbers change no sum.
_SMALLEST_FACTOR = 1e-200
_SMALLEST_SHARE = 1e-300
# The logarithm of the smallest probability above 0.
_LOWEST_LOG = 745.0


@dataclass
class Scores:
    """Columns of scores, and short names for expressions of them."""

    dialect: Dialect
    columns: list[str]
    """The columns as doubles."""
    labels: Sequence[Any]
    score_type: ScoreType
    limits: ScoreLimits
    """What probabilities of 0 and 1 count as."""
    taken: list[str]
    """The names of columns, which no short name may be."""
    is_turned: bool = False
    """Whether a single column is the score of the first class."""

    def __post_init__(self) -> None:
        self._given = self.columns
        if self.is_turned:
            turned = "1 - {}" if self.score_type == "probability" else "-{}"
            self.columns = [f"({turned.format(column)})" for column in self.columns]
        self.layers = Layers(self.dialect, self.taken, self._valid)

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.labels)

    @property
    def _valid(self) -> str:
        """The condition that `predict_proba` would take all scores."""
        probability = self.score_type == "probability"
        low, high = (0.0, 1.0) if probability else (-_LARGEST_NUMBER, _LARGEST_NUMBER)
        limits = f"BETWEEN {self.dialect.double(low)} AND {self.dialect.double(high)}"
        return " AND ".join(f"{column} {limits}" for column in self._given)

    def name_each(self, kind: str, values: Sequence[str], layer: int = 0) -> list[str]:
        """Give short names to expressions, one per class, or that of the second of two."""
        classes = self.classes_of(len(values))
        labels = [self.labels[j] for j in classes]
        return [
            self.layers.name(layer, f"{kind}_{label}", value)
            for label, value in zip(labels, values, strict=True)
        ]

    def classes_of(self, n_columns: int) -> list[int]:
        """Return the class of each of several columns."""
        return [1] if n_columns == 1 else [c % self.n_classes for c in range(n_columns)]

    def regressors(self, columns: list[str], published: bool = False) -> tuple[list[str], float]:
        """Return columns of scores as logistic models see them, and their largest absolute value.

        Those that bend the models of two classes are made of their names, see `bend`.
        """
        dialect, m = self.dialect, self.n_classes
        if self.score_type != "probability":
            if published or self.score_type == "margin":
                return [self.clip_score(column) for column in columns], LARGEST_SCORE
            if len(columns) == 1:
                limit = LARGEST_LOG_ODDS
                return [dialect.clip(columns[0], -limit, limit)], limit
            columns = self._softmax_of_logits(columns)
        elif published:
            return [self._published_log_odds(column) for column in columns], _LOWEST_LOG
        if m > 2:
            return [self._log(column) for column in columns], -math.log(self.limits.lowest)
        used = columns[1:] if len(columns) == 2 else columns
        return [self.clipped_log_odds(column) for column in used], LARGEST_LOG_ODDS

    def bend(self, odds: str) -> str:
        """Return what lets the models of two classes bend, from log-odds or a margin by name."""
        size = exponent = f"-abs({odds})"
        if self.score_type == "margin":
            exponent = self.dialect.clip_below(size, -LARGEST_EXPONENT)
        return f"{size} - 2 * ln(1 + exp({exponent}))"

    def offsets(self) -> list[str]:
        """Return the uncalibrated log-odds."""
        probabilities = self.uncalibrated()
        if self.n_classes == 2:
            return [self.clipped_log_odds(probabilities[1])]
        return [self._log(probability) for probability in probabilities]

    def uncalibrated(self) -> list[str]:
        """Return the scores as probabilities, one per class."""
        scores = self.average()
        if self.score_type != "probability":
            if len(scores) > 1:
                return softmax(self.dialect, scores)
            score = self.dialect.clip(scores[0], -LARGEST_EXPONENT, LARGEST_EXPONENT)
            return [f"1 / (1 + exp({score}))", f"1 / (1 + exp(-{score}))"]
        if len(scores) == 1:
            return [f"1 - {scores[0]}", self.drop_tiny(scores[0])]
        return normalize(self.dialect, scores)

    def average(self) -> list[str]:
        """Return the mean over several classifiers side by side."""
        scores = self.columns
        if self.score_type != "probability":
            scores = [self.for_products(self.clip_score(column)) for column in scores]
        if len(scores) <= self.n_classes:
            return scores
        n_classifiers = len(scores) // self.n_classes
        sums = [f"({add_terms(scores[j :: self.n_classes])})" for j in range(self.n_classes)]
        return [self._mean(total, n_classifiers) for total in sums]

    def one_score_a_class(self) -> list[str]:
        """Return the scores of a calibrator that maps the score of each class on its own."""
        scores = self.average()
        if self.n_classes > 2 or len(scores) == 1:
            return scores
        if self.score_type == "probability":
            return scores[1:]
        return [f"({scores[1]} - {scores[0]})"]

    def clipped_log_odds(self, probability: str) -> str:
        """Return the log-odds of a probability, clipped."""
        p = self.dialect.clip(probability, self.limits.lowest, self.limits.highest)
        return f"ln({p} / (1 - {p}))"

    def for_products(self, score: str) -> str:
        """Return a score whose products are not errors; logarithms are never that small."""
        if self.score_type == "probability":
            return score
        return self.drop_tiny(score, _SMALLEST_FACTOR)

    def clip_score(self, score: str) -> str:
        """Clip a score that is not a probability."""
        return self.dialect.clip(score, -LARGEST_SCORE, LARGEST_SCORE)

    def drop_tiny(self, score: str, smallest: float = _SMALLEST_SHARE) -> str:
        """Put 0 for a number so small that PostgreSQL would refuse its products."""
        if self.dialect.name != "postgresql":
            return score
        return f"CASE WHEN abs({score}) < {self.dialect.double(smallest)} THEN 0 ELSE {score} END"

    def _mean(self, total: str, count: int) -> str:
        mean = f"{total} / {count}"
        if self.dialect.name != "postgresql" or self.score_type != "probability":
            return mean
        return f"CASE WHEN {total} < {_SMALLEST_SHARE!r} THEN {total} ELSE {mean} END"

    def _log(self, probability: str) -> str:
        return f"ln({self.dialect.clip_below(probability, self.limits.lowest)})"

    def _published_log_odds(self, p: str) -> str:
        lowest, highest = log_odds(np.array([[0.0, 1.0]]), "probability", published=True)[0]
        return (
            f"CASE WHEN {p} > 0 AND {p} < 1 THEN ln({p} / (1 - {p})) "
            f"WHEN {p} <= 0 THEN {self.dialect.double(lowest)} "
            f"ELSE {self.dialect.double(highest)} END"
        )

    def _softmax_of_logits(self, columns: Sequence[str]) -> list[str]:
        limit, m = _LARGEST_LOGIT, self.n_classes
        logits = [self.dialect.clip(column, -limit, limit) for column in columns]
        blocks = [logits[start : start + m] for start in range(0, len(logits), m)]
        return [p for block in blocks for p in softmax(self.dialect, block)]


def normalize(dialect: Dialect, values: Sequence[str]) -> list[str]:
    """Divide numbers from 0 to 1 by their sum unless that is 1; zeros become equal shares."""
    total, equal = f"({add_terms(values)})", dialect.double(1.0 / len(values))
    near = f"abs({total} - 1) <= {dialect.double(SUM_ROUNDING)}"
    found = []
    for value in values:
        whens = f"WHEN {near} THEN {value} WHEN {total} > 0 THEN {value} / {total} ELSE {equal}"
        if dialect.name == "postgresql":
            # It refuses a quotient that is rounded to 0.
            tiny = f"{value} < {_SMALLEST_SHARE!r} AND {total} > {_SMALLEST_FACTOR!r}"
            whens = f"WHEN {tiny} THEN 0 {whens}"
        found.append(f"CASE {whens} END")
    return found
