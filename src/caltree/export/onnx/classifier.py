"""From the scores of its classifiers to a calibrated classifier, as operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._classifier.response import Method, combined_score_type
from ..._inputs.scores import LARGEST_SCORE, ScoreType
from .graph import Graph
from .routes import is_text
from .scores import Scores

Classes = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """The scores of one classifier."""

    tensor: str
    """Its scores as skl2onnx gives them."""
    method: Method
    classes: Classes
    """The classes it knows."""


def label_constants(classes: Classes) -> Classes:
    """Return labels as ONNX can give them: strings or whole numbers."""
    return classes.astype(object if is_text(classes.tolist()) else np.int64)


def add_classifier(
    graph: Graph, model: Any, parts: Sequence[Part], calibrate: Callable[[str, int], str]
) -> str:
    """Add a calibrated classifier, and return the name of its probabilities, one column per class.

    `calibrate` adds its calibrator: from the name and the width of the scores to the name of the
    probabilities.
    """
    methods = [part.method for part in parts]
    kind = combined_score_type(methods, model.combine_)
    for part in parts:
        _check_known(part, model.classes_)
    aligned = [_class_scores(graph, part, model.classes_) for part in parts]
    scores = _combine_scores(aligned, methods, model.combine_, kind)
    if len(model.present_classes_) == len(model.classes_):
        return calibrate(scores.matrix, scores.width)
    some = _take_classes(scores, model.present_classes_)
    return _add_absent_classes(scores, calibrate(some.matrix, some.width), model.present_classes_)


def _check_known(part: Part, classes: Classes) -> None:
    if part.method == "decision_function" and not np.array_equal(part.classes, classes):
        absent = np.setdiff1d(classes, part.classes).tolist()
        raise ValueError(
            f"a classifier gives margins, but none for the classes {absent}, whose scores then "
            "depend on all rows together; use a classifier that knows all classes, or probabilities"
        )


def _class_scores(graph: Graph, part: Part, classes: Classes) -> Scores:
    """As :func:`caltree._classifier.response.class_scores`."""
    op, n_classes = graph.op, len(classes)
    values = graph.double(part.tensor)
    if part.method == "decision_function":
        width = 1 if n_classes == 2 else n_classes
        # The margins of two classes may be given as one column, or as one for each.
        columns = [-1] if n_classes == 2 else range(n_classes)
        margins = op("Clip", graph.columns(values, columns), -LARGEST_SCORE, LARGEST_SCORE)
        return Scores(graph, margins, width, n_classes, "margin")
    values = op("Clip", values, 0.0, 1.0)
    if not np.array_equal(part.classes, classes):
        places = np.eye(n_classes)[np.searchsorted(classes, part.classes)]
        values = op("MatMul", values, places)
    return Scores(graph, values, n_classes, n_classes, "probability")


def _combine_scores(
    parts: Sequence[Scores], methods: Sequence[Method], combine: str, kind: ScoreType
) -> Scores:
    """As :func:`caltree._classifier.response.combine_scores`."""
    if len(parts) == 1:
        return parts[0]
    graph, n_classes = parts[0].graph, parts[0].n_classes
    if len(set(methods)) > 1:
        parts = [_as_margins(part) for part in parts]
    if combine == "side_by_side":
        parts = [_one_column_a_class(part) for part in parts]
        matrix = graph.op("Concat", *(part.matrix for part in parts), axis=1)
        return Scores(graph, matrix, len(parts) * n_classes, n_classes, kind)
    total = graph.op("Sum", *(part.matrix for part in parts))
    mean = graph.op("Div", total, float(len(parts)))
    return Scores(graph, mean, parts[0].width, n_classes, kind)


def _as_margins(part: Scores) -> Scores:
    if part.score_type == "margin":
        return part
    odds, graph = part.log_odds(), part.graph
    if part.n_classes > 2:
        return Scores(graph, odds.matrix, part.width, part.n_classes, "margin")
    return Scores(graph, graph.columns(odds.matrix, [1]), 1, 2, "margin")


def _one_column_a_class(part: Scores) -> Scores:
    if part.width > 1:
        return part
    halves = part.graph.op("Mul", part.matrix, np.array([[-0.5, 0.5]]))
    return Scores(part.graph, halves, 2, 2, part.score_type)


def _take_classes(scores: Scores, present: npt.NDArray[np.intp]) -> Scores:
    """As :func:`caltree._classifier.absent_classes.take_classes`."""
    graph, op, n_present = scores.graph, scores.graph.op, len(present)
    chosen = op("Gather", scores.by_classifier(), present.astype(np.int64), axis=2)
    if scores.score_type == "probability":
        sums = graph.sum(chosen, 2, keepdims=1)
        even = np.full((1, 1, n_present), 1.0 / n_present)
        chosen = op("Where", op("Greater", sums, 0.0), op("Div", chosen, sums), even)
    width = scores.width // scores.n_classes * n_present
    matrix = graph.reshape(chosen, -1, width)
    return Scores(graph, matrix, width, n_present, scores.score_type)


def _add_absent_classes(scores: Scores, probabilities: str, present: npt.NDArray[np.intp]) -> str:
    """As :func:`caltree._classifier.absent_classes.add_absent_classes`."""
    graph, op = scores.graph, scores.graph.op
    placed = op("MatMul", probabilities, np.eye(scores.n_classes)[present])
    if scores.score_type != "probability":
        return placed
    absent = np.ones((1, scores.n_classes))
    absent[0, present] = 0.0
    others = op("Mul", scores.average().matrix, absent)
    left = op("Sub", 1.0, graph.sum(others, 1, keepdims=1))
    return op("Add", op("Mul", placed, left), others)
