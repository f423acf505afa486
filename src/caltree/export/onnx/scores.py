"""Scores in the forms in which calibrators use them, as operators of ONNX.

The numbers are those of `caltree._inputs.scores`, in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._inputs.score_limits import USUAL_LIMITS, ScoreLimits
from ..._inputs.scores import (
    LARGEST_LOG_ODDS,
    LARGEST_SCORE,
    PUBLISHED_ONE,
    PUBLISHED_ZERO,
    SUM_ROUNDING,
    ScoreType,
)
from .graph import Graph


@dataclass(frozen=True)
class Scores:
    """A matrix of scores within a graph, of double precision."""

    graph: Graph
    matrix: str
    width: int
    """The number of columns."""
    n_classes: int
    score_type: ScoreType
    limits: ScoreLimits = USUAL_LIMITS
    """What probabilities of 0 and 1 count as."""

    def turn(self) -> Scores:
        """As :func:`caltree._inputs.score_columns.turn`."""
        op, matrix = self.graph.op, self.matrix
        of_probabilities = self.score_type == "probability"
        turned = op("Sub", 1.0, matrix) if of_probabilities else op("Neg", matrix)
        return replace(self, matrix=turned)

    def log_odds(self, published: bool = False) -> Scores:
        """As :func:`caltree._inputs.scores.log_odds`."""
        op, p = self.graph.op, self.matrix
        if self.score_type != "probability":
            return replace(self, matrix=op("Clip", p, -LARGEST_SCORE, LARGEST_SCORE))
        if not published:
            p = op("Clip", p, self.limits.lowest, self.limits.highest)
        else:
            p = op("Where", op("Equal", p, 0.0), PUBLISHED_ZERO, p)
            p = op("Where", op("Equal", p, 1.0), PUBLISHED_ONE, p)
        return replace(self, matrix=op("Log", op("Div", p, op("Sub", 1.0, p))))

    def regressors(self, published: bool) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.regressors`."""
        plain = self._plain_regressors(published)
        return plain if published or self.n_classes > 2 else plain.with_bends()

    def with_bends(self) -> Scores:
        """Add to log-odds what lets models bend, as :func:`caltree._inputs.scores.bend`."""
        op, negated = self.graph.op, self.graph.op("Neg", self.graph.op("Abs", self.matrix))
        softened = op("Log", op("Add", 1.0, op("Exp", negated)))
        bends = op("Sub", negated, op("Mul", 2.0, softened))
        both = op("Concat", self.matrix, bends, axis=1)
        return replace(self, matrix=both, width=2 * self.width)

    def _plain_regressors(self, published: bool) -> Scores:
        op, matrix = self.graph.op, self.matrix
        if published or self.score_type == "margin":
            return self.log_odds(published)
        if self.score_type == "logit":
            if self.width == 1:
                return replace(self, matrix=op("Clip", matrix, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS))
            softmax = op("Softmax", self.by_classifier(), axis=2)
            matrix = self.graph.reshape(softmax, -1, self.width)
        probabilities = replace(self, matrix=matrix, score_type="probability")
        if self.n_classes > 2:
            return replace(self, matrix=op("Log", op("Max", matrix, self.limits.lowest)))
        if self.width == 2:
            probabilities = probabilities._second()
        return probabilities.log_odds(published)

    def uncalibrated(self) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.uncalibrated`."""
        op, scores = self.graph.op, self.average()
        if self.score_type == "probability":
            if scores.width > 1:
                return scores.normalize()
            both = op("Concat", op("Sub", 1.0, scores.matrix), scores.matrix, axis=1)
            return replace(self, matrix=both, width=2)
        if scores.width > 1:
            return replace(scores, matrix=op("Softmax", scores.matrix, axis=1))
        return replace(self, matrix=logistic(self.graph, scores.matrix, axis=1), width=2)

    def offset(self) -> str:
        """As :func:`caltree._inputs.scores.ScoreKind.offset`, of scores that are not margins."""
        op, probabilities = self.graph.op, self.uncalibrated()
        if self.n_classes == 2:
            second = replace(probabilities, score_type="probability")._second()
            return second.log_odds().matrix
        return op("Log", op("Max", probabilities.matrix, self.limits.lowest))

    def average(self) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.average`."""
        op, matrix = self.graph.op, self.matrix
        if self.score_type != "probability":
            matrix = op("Clip", matrix, -LARGEST_SCORE, LARGEST_SCORE)
        if self.width <= self.n_classes:
            return replace(self, matrix=matrix)
        total = self.graph.sum(replace(self, matrix=matrix).by_classifier(), 1)
        mean = op("Div", total, float(self.width // self.n_classes))
        return replace(self, matrix=mean, width=self.n_classes)

    def by_classifier(self) -> str:
        """Add the scores as a tensor of rows, classifiers and classes."""
        n_classifiers = self.width // self.n_classes
        return self.graph.reshape(self.matrix, -1, n_classifiers, self.n_classes)

    def one_score_a_class(self) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.one_score_a_class`."""
        scores = self.average()
        if self.n_classes > 2 or scores.width == 1:
            return scores
        second = scores._second()
        if self.score_type == "probability":
            return second
        first = self.graph.columns(scores.matrix, [0])
        return replace(second, matrix=self.graph.op("Sub", second.matrix, first))

    def normalize(self) -> Scores:
        """As :func:`caltree._inputs.scores.normalize_rows`."""
        op = self.graph.op
        sums = self.graph.sum(self.matrix, 1, keepdims=1)
        far = op("Greater", op("Abs", op("Sub", sums, 1.0)), SUM_ROUNDING)
        shares = op("Div", self.matrix, op("Where", far, sums, 1.0))
        even = np.full((1, self.width), 1.0 / self.width)
        return replace(self, matrix=op("Where", op("Greater", sums, 0.0), shares, even))

    def _second(self) -> Scores:
        return replace(self, matrix=self.graph.columns(self.matrix, [1]), width=1)


def logistic(graph: Graph, odds: str, axis: int) -> str:
    """Add the probabilities of two classes, side by side, from the log-odds of the second."""

    # The operator Sigmoid of onnxruntime is 0 below -37, where this still has all its digits.
    def of(exponent: str) -> str:
        return graph.op("Div", 1.0, graph.op("Add", 1.0, graph.op("Exp", exponent)))

    return graph.op("Concat", of(odds), of(graph.op("Neg", odds)), axis=axis)
