"""Boosted trees as operators of ONNX: what leaves add to the log-odds of a curve."""

from __future__ import annotations

import numpy as np

from ..._fitted.boosted import BoostedModel
from .graph import Graph
from .node_models import by_blocks
from .scores import Scores, logistic

# Numbers of leaves in a block of rows: few enough to stay in the processor's cache.
_BLOCK = 2**16


def boosted_probabilities(
    model: BoostedModel, leaves: str, odds: Scores, offset: str | None
) -> str:
    """Add the weighted sum of the curve, with and without the trees: one column per class.

    `leaves` are the numbers of the leaves that rows reach, a column per tree, and `offset` the
    uncalibrated log-odds, if the curve corrects them.
    """
    graph = odds.graph
    curve = _curve(model, odds, offset)
    parts = []
    if model.curve_weight > 0.0:
        parts.append(_weighted(graph, curve, model.n_states, model.curve_weight))
    if model.boosted_weight > 0.0:
        boosted = graph.op("Add", graph.op("Mul", curve, model.start), _sums(graph, model, leaves))
        parts.append(_weighted(graph, boosted, model.n_states, model.boosted_weight))
    return parts[0] if len(parts) == 1 else graph.op("Add", *parts)


def _curve(model: BoostedModel, odds: Scores, offset: str | None) -> str:
    """Add the log-odds of the curve."""
    op, dense = odds.graph.op, model.dense_parameters(model.parameters)
    slopes = np.ascontiguousarray(dense[:, 1:].T)
    linear = op("Add", op("MatMul", odds.matrix, slopes), dense[np.newaxis, :, 0])
    return linear if offset is None else op("Add", linear, offset)


def _weighted(graph: Graph, log_odds: str, n_states: int, weight: float) -> str:
    """Add a weight times the probabilities of log-odds, of which two classes have one."""
    if n_states == 1:
        return graph.op("Mul", logistic(graph, log_odds, axis=1), weight)
    return graph.op("Mul", graph.op("Softmax", log_odds, axis=1), weight)


def _sums(graph: Graph, model: BoostedModel, leaves: str) -> str:
    """Add the sums of the values of leaves, a column per log-odds, a block of rows at a time."""
    make, types = graph.onnx.helper.make_tensor_value_info, graph.onnx.TensorProto
    body = graph.make_inner()
    given = body.free_name("rows")
    found = _sums_of_block(body, model, given)
    described = [make(given, types.FLOAT, ["block", model.n_trees])]
    result = [make(found, types.DOUBLE, ["block", model.n_states])]
    most = max(1, _BLOCK // model.n_trees)
    return by_blocks(
        graph,
        body.proto("block", described, result),
        [(leaves, model.n_trees)],
        model.n_states,
        most,
    )


def _sums_of_block(graph: Graph, model: BoostedModel, leaves: str) -> str:
    numbers = graph.op("Cast", leaves, to=graph.onnx.TensorProto.INT64)
    of_leaves = np.flatnonzero(model.attribute < 0)
    begin = np.searchsorted(of_leaves, model.roots).astype(np.int64)
    places = graph.op("Add", numbers, begin[np.newaxis, :])
    values = graph.op("Gather", model.value[of_leaves], places, axis=0)
    # A column per log-odds, with ones for the trees that add to it.
    adds = (model.state[:, np.newaxis] == np.arange(model.n_states)).astype(np.float64)
    return graph.op("MatMul", values, adds)
