"""Fitted calibrators as operators of ONNX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import groupby

import numpy as np

from ..._fitted.blended import parts_that_count
from ..._fitted.boosted import BoostedModel
from ..._fitted.model import FittedModel
from ..._fitted.splines import cubic_pieces
from ..._fitted.trees import Trees
from ..._inputs.arrays import Floats
from ..._inputs.attributes import Attribute
from ...curves import CurveScaling
from ...scaling import IsotonicScaling, PlattScaling, SmoothIsotonicScaling
from ..shared import linear_pieces
from .boosted import boosted_probabilities
from .checks import Known, model_of
from .graph import Graph
from .node_models import NodeModels
from .routes import Ensemble, Split, add_tree, is_text, split_of
from .scores import Scores, logistic


@dataclass(frozen=True)
class Source:
    """Where the values of an attribute come from: a column of a tensor."""

    tensor: str
    column: int


def add_calibrator(
    graph: Graph,
    calibrator: Known,
    sources: Sequence[Source],
    scores: str,
    width: int,
    missing_text: str,
) -> str:
    """Add a calibrator to a graph, and return the name of its probabilities.

    Scores, of which there are `width` columns, and probabilities are of double precision;
    `missing_text` stands for a missing string.
    """
    given = Scores(
        graph,
        scores,
        width,
        len(calibrator.classes_),
        calibrator.score_type_,
        calibrator.score_limits_,
    )
    if width == 1 and calibrator.score_columns_.is_turned:
        given = given.turn()
    if isinstance(calibrator, PlattScaling):
        return _platt(given, calibrator)
    if isinstance(calibrator, CurveScaling):
        return _curve(given, calibrator)
    if isinstance(calibrator, IsotonicScaling):
        return _isotonic(given, calibrator)
    model = model_of(calibrator)
    if model is None or model.uncalibrated_weight == 1.0:
        return given.uncalibrated().matrix
    odds = given.regressors(calibrator.scores_are_published)
    offset = given.offset() if model.offset else None
    first, *others = [
        _probabilities(part, _leaves(graph, part, sources, odds, missing_text), odds, offset)
        for part in parts_that_count(model)
    ]
    found = reduce(partial(graph.op, "Add"), others, first)
    if model.uncalibrated_weight > 0.0:
        left = graph.op("Mul", given.uncalibrated().matrix, model.uncalibrated_weight)
        found = graph.op("Add", found, left)
    return graph.op("Clip", found, 0.0, 1.0)


def _probabilities(model: Trees, leaves: str, odds: Scores, offset: str | None) -> str:
    """Add what the models of trees say, less the share of the uncalibrated probabilities."""
    if isinstance(model, BoostedModel):
        return boosted_probabilities(model, leaves, odds, offset)
    assert isinstance(model, FittedModel)
    return NodeModels.of(model).probabilities(leaves, odds, offset)


def _leaves(
    graph: Graph,
    model: Trees,
    sources: Sequence[Source],
    odds: Scores,
    missing_text: str,
) -> str:
    """Add the numbers of the leaves that rows reach, a column per tree."""
    roots = model.roots
    used = np.unique(model.attribute[model.attribute >= 0]).tolist()
    if not used:
        shape = graph.op(
            "Concat", graph.op("Shape", odds.matrix, start=0, end=1), np.array([len(roots)]), axis=0
        )
        return graph.op("Expand", np.zeros((1, len(roots)), dtype=np.float32), shape)
    known = model.attributes.columns
    attribute_of = dict(enumerate(known))
    column_of = {attribute: column for column, attribute in enumerate(used)}

    def split(node: int) -> Split:
        number = int(model.attribute[node])
        return split_of(model, node, attribute_of.get(number), column_of[number])

    ensemble = Ensemble()
    for root, end in zip(roots, [*roots[1:], len(model.attribute)], strict=True):
        leaves = root + np.flatnonzero(model.attribute[root:end] < 0)
        numbers = {int(leaf): number for number, leaf in enumerate(leaves)}
        add_tree(ensemble, int(root), model.first_child, split, numbers)
    chosen = [(known[j], sources[j]) for j in used if j < len(known)]
    parts = _columns(graph, chosen, missing_text)
    on_scores = [j - len(known) for j in used if j >= len(known)]
    if on_scores:
        parts.append(graph.columns(odds.matrix, on_scores))
    return ensemble.add_to(graph, graph.op("Concat", *parts, axis=1))


def _columns(
    graph: Graph, chosen: Sequence[tuple[Attribute, Source]], missing_text: str
) -> list[str]:
    """Add attributes as numbers of double precision, NaN for missing."""

    def place(item: tuple[Attribute, Source]) -> tuple[str, bool, str]:
        attribute, source = item
        text = is_text(attribute.categories)
        return source.tensor, text, attribute.name if text else ""

    parts = []
    for (tensor, text, _), group in groupby(chosen, place):
        members = list(group)
        values = graph.columns(tensor, [source.column for _, source in members])
        if text:
            values = _codes(graph, values, members[0][0], missing_text)
        parts.append(graph.double(values))
    return parts


def _codes(graph: Graph, values: str, attribute: Attribute, missing_text: str) -> str:
    """Add the codes of strings: unseen ones get that of the most frequent, missing ones NaN."""
    categories = [str(category) for category in attribute.categories or ()]
    return graph.op(
        "LabelEncoder",
        values,
        keys_strings=[text.encode() for text in (*categories, missing_text)],
        values_floats=[*map(float, range(len(categories))), math.nan],
        default_float=attribute.fill,
    )


def _platt(given: Scores, calibrator: PlattScaling) -> str:
    op = given.graph.op
    odds = given.one_score_a_class().log_odds().matrix
    linear = op(
        "Add", op("Mul", odds, calibrator.slopes_[np.newaxis]), calibrator.intercepts_[np.newaxis]
    )
    if given.n_classes == 2:
        return logistic(given.graph, linear, axis=1)
    away = op("Exp", op("Neg", op("Abs", linear)))
    log_expit = op("Sub", op("Min", linear, 0.0), op("Log", op("Add", 1.0, away)))
    return op("Softmax", log_expit, axis=1)


def _curve(given: Scores, calibrator: CurveScaling) -> str:
    op, parameters = given.graph.op, calibrator.parameters_
    seen = given.one_score_a_class().regressors(published=False)
    intercepts, slopes = parameters[np.newaxis, :, 0], parameters[:, 1:].T
    sees_all = len(slopes) == seen.width
    linear = op("Add", op("MatMul" if sees_all else "Mul", seen.matrix, slopes), intercepts)
    if given.n_classes == 2:
        return logistic(given.graph, linear, axis=1)
    return op("Softmax", linear, axis=1)


def _isotonic(given: Scores, calibrator: IsotonicScaling) -> str:
    graph, op = given.graph, given.graph.op
    scores = given.one_score_a_class()
    ensemble = Ensemble()
    smooth = isinstance(calibrator, SmoothIsotonicScaling)
    make_pieces = cubic_pieces if smooth else linear_pieces
    lines: list[Floats] = []
    for column, corners in enumerate(zip(calibrator.thresholds_, calibrator.values_, strict=True)):
        lines.append(make_pieces(*corners))
        # Up to its first corner a function is constant, and again from its last one on.
        bounds = [float(corner) for corner in corners[0]]
        cut = Split(column, bounds, list(range(len(bounds) + 1)), 0)
        ensemble.put_split(ensemble.start_tree(), cut, lambda child, _: ensemble.add_leaf(child))
    found = op("Cast", ensemble.add_to(graph, scores.matrix), to=graph.onnx.TensorProto.INT64)
    begin = np.cumsum([0, *map(len, lines[:-1])], dtype=np.int64)
    pieces = op("Add", found, begin[np.newaxis])
    corner, *others = (
        op("Gather", np.ascontiguousarray(part), pieces, axis=0) for part in np.concatenate(lines).T
    )
    distance = op("Sub", scores.matrix, corner)
    if smooth:
        length, *terms = others
        share = op("Div", distance, length)
        # Of the highest power first, as long as there are others.
        values = reduce(lambda sum_, term: op("Add", op("Mul", sum_, share), term), terms[::-1])
        values = op("Clip", values, 0.0, 1.0)
    else:
        height, slope = others
        values = op("Add", op("Mul", slope, distance), height)
    if given.n_classes == 2:
        return op("Concat", op("Sub", 1.0, values), values, axis=1)
    return replace(scores, matrix=values).normalize().matrix
