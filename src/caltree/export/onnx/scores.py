"""What `scores.py` does with scores, as operators of ONNX: the same numbers in the same order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..._inputs.scores import LARGEST_LOG_ODDS as _LARGEST_LOG_ODDS
from ..._inputs.scores import LARGEST_SCORE as _LARGEST_SCORE
from ..._inputs.scores import SMALLEST_PROBABILITY as _SMALLEST_PROBABILITY
from ..._inputs.scores import SUM_ROUNDING as _FARTHEST_FROM_ONE
from ..._inputs.scores import ScoreType, is_offset
from .graph import Graph


@dataclass(frozen=True)
class Scores:
    """A matrix of scores within a graph; what is made of it is of double precision.

    Parameters
    ----------
    graph : Graph
        Where operators are added.
    matrix : str
        The scores, of double precision.
    width : int
        The number of columns.
    n_classes : int
        The number of classes.
    score_type : {"probability", "logit", "margin"}
        What they are.
    """

    graph: Graph
    matrix: str
    width: int
    n_classes: int
    score_type: ScoreType

    def log_odds(self, extremes: str) -> Scores:
        """As :func:`caltree._inputs.scores.log_odds`."""
        op, p = self.graph.op, self.matrix
        if self.score_type != "probability":
            return replace(self, matrix=op("Clip", p, -_LARGEST_SCORE, _LARGEST_SCORE))
        if extremes == "clip":
            p = op("Clip", p, _SMALLEST_PROBABILITY, 1.0 - _SMALLEST_PROBABILITY)
        else:
            p = op("Where", op("Equal", p, 0.0), 0.00001, p)
            p = op("Where", op("Equal", p, 1.0), 0.99999, p)
        return replace(self, matrix=op("Log", op("Div", p, op("Sub", 1.0, p))))

    def regressors(self, extremes: str) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.regressors`."""
        op, matrix = self.graph.op, self.matrix
        if extremes == "published" or self.score_type == "margin":
            return self.log_odds(extremes)
        if self.score_type == "logit":
            if self.width == 1:
                return replace(
                    self, matrix=op("Clip", matrix, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS)
                )
            blocks = self.graph.shaped(matrix, -1, self.width // self.n_classes, self.n_classes)
            matrix = self.graph.shaped(op("Softmax", blocks, axis=2), -1, self.width)
        probabilities = replace(self, matrix=matrix, score_type="probability")
        if self.n_classes > 2:
            return replace(self, matrix=op("Log", op("Max", matrix, _SMALLEST_PROBABILITY)))
        if self.width == 2:
            probabilities = probabilities._second()
        return probabilities.log_odds(extremes)

    def uncalibrated(self) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.uncalibrated`."""
        op, scores = self.graph.op, self.averaged()
        if self.score_type == "probability":
            if scores.width > 1:
                return scores.normalised()
            both = op("Concat", op("Sub", 1.0, scores.matrix), scores.matrix, axis=1)
            return replace(self, matrix=both, width=2)
        if scores.width > 1:
            return replace(scores, matrix=op("Softmax", scores.matrix, axis=1))
        return replace(self, matrix=logistic(self.graph, scores.matrix, axis=1), width=2)

    def offset(self, odds: Scores) -> str | None:
        """As :func:`caltree._inputs.scores.ScoreKind.offset`."""
        if self.score_type == "margin":
            return None
        if is_offset(self.n_classes, odds.width):
            return odds.matrix
        op, probabilities = self.graph.op, self.uncalibrated()
        if self.n_classes == 2:
            second = replace(probabilities, score_type="probability")._second()
            return second.log_odds("clip").matrix
        return op("Log", op("Max", probabilities.matrix, _SMALLEST_PROBABILITY))

    def averaged(self) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.average`."""
        op, matrix = self.graph.op, self.matrix
        if self.score_type != "probability":
            matrix = op("Clip", matrix, -_LARGEST_SCORE, _LARGEST_SCORE)
        if self.width <= self.n_classes:
            return replace(self, matrix=matrix)
        n_classifiers = self.width // self.n_classes
        blocks = self.graph.shaped(matrix, -1, n_classifiers, self.n_classes)
        mean = op("Div", self.graph.summed(blocks, 1), float(n_classifiers))
        return replace(self, matrix=mean, width=self.n_classes)

    def one_score_a_class(self) -> Scores:
        """As :func:`caltree._inputs.scores.ScoreKind.one_score_a_class`."""
        scores = self.averaged()
        if self.n_classes > 2 or scores.width == 1:
            return scores
        second = scores._second()
        if self.score_type == "probability":
            return second
        first = self.graph.columns(scores.matrix, [0])
        return replace(second, matrix=self.graph.op("Sub", second.matrix, first))

    def normalised(self) -> Scores:
        """As :func:`caltree._inputs.scores.normalize_rows`."""
        op = self.graph.op
        sums = self.graph.summed(self.matrix, 1, keepdims=1)
        far = op("Greater", op("Abs", op("Sub", sums, 1.0)), _FARTHEST_FROM_ONE)
        shares = op("Div", self.matrix, op("Where", far, sums, 1.0))
        even = np.full((1, self.width), 1.0 / self.width)
        return replace(self, matrix=op("Where", op("Greater", sums, 0.0), shares, even))

    def _second(self) -> Scores:
        return replace(self, matrix=self.graph.columns(self.matrix, [1]), width=1)


def logistic(graph: Graph, odds: str, axis: int) -> str:
    """The probabilities of two classes, side by side, from the log-odds of the second."""

    # The operator Sigmoid of onnxruntime is 0 below -37, where this still has all its digits.
    def of(exponent: str) -> str:
        return graph.op("Div", 1.0, graph.op("Add", 1.0, graph.op("Exp", exponent)))

    return graph.op("Concat", of(odds), of(graph.op("Neg", odds)), axis=axis)
