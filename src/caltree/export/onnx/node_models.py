"""The node models on the paths of rows, as operators of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._fitted.model import FittedModel
from ..._inputs.arrays import Floats
from .graph import Graph
from .scores import Scores, logistic

Indices = npt.NDArray[np.int64]

# Log-odds of a row that are computed for all rows at once; more are computed block by block.
_FEW = 64
# Log-odds in a block: few enough to stay in the processor's cache.
_BLOCK = 2**16


@dataclass(frozen=True)
class NodeModels:
    """The node models that count for something, and where rows meet them.

    The number of a leaf leads to the nodes on its path, and these to their parameters, which are
    kept once for each node, however many paths contain it.
    """

    weight: Floats
    """The last one, of no node, fills up shorter paths."""
    terms: list[Floats]
    """The intercepts, and the slopes by score or, if `own_scores`, by classifier: nodes x log-
    odds."""
    own_scores: bool
    """Whether each log-odds has slopes over the scores of its own class alone."""
    ways: Indices
    """The nodes on the path to every leaf of all trees, one path per row."""
    begin: Indices
    """Where the leaves of each tree begin."""

    @classmethod
    def of(cls, model: FittedModel) -> NodeModels:
        """Take the node models of a fitted tree or forest."""
        counts = model.weight > 0.0
        nothing = int(counts.sum())
        ways = _ways(model, counts)
        longest = max(map(len, ways))
        filled = [[*way, *[nothing] * (longest - len(way))] for way in ways]
        leaves = np.flatnonzero(model.attribute < 0)
        parameters = model.parameters[counts]
        parameters = np.concatenate([parameters, np.zeros((1, *parameters.shape[1:]))])
        return cls(
            weight=np.append(model.weight[counts], 0.0),
            terms=[np.ascontiguousarray(term) for term in np.moveaxis(parameters, 2, 0)],
            own_scores=model.seen_scores.shape[1] < model.n_scores,
            ways=np.array(filled, dtype=np.int64),
            begin=np.searchsorted(leaves, model.roots).astype(np.int64),
        )

    @property
    def n_states(self) -> int:
        """The number of log-odds of a row."""
        return int(self.terms[0].shape[1])

    @property
    def n_visits(self) -> int:
        """The most nodes that a row meets."""
        return len(self.begin) * int(self.ways.shape[1])

    def probabilities(self, leaves: str, odds: Scores, offset: str | None) -> str:
        """Add the sum over the nodes of weight times probability, a column per class.

        `leaves` are the numbers of the leaves that rows reach, a column per tree, and `offset` the
        uncalibrated log-odds, if the node models correct them.
        """
        graph = odds.graph
        inputs = [(leaves, len(self.begin)), (odds.matrix, odds.width)]
        inputs += [] if offset is None else [(offset, self.n_states)]
        if self.n_visits * self.n_states <= _FEW:
            return self._evaluate(graph, *(name for name, _ in inputs))
        onnx = graph.onnx
        widths = [width for _, width in inputs]
        body = graph.make_inner()
        given = [body.free_name("rows") for _ in inputs]
        found = self._evaluate(body, *given)
        types = [onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.DOUBLE]
        make = onnx.helper.make_tensor_value_info
        described = [
            make(name, kind, ["block", width])
            for name, kind, width in zip(given, types, widths, strict=False)
        ]
        n_classes = max(2, self.n_states)
        result = [make(found, onnx.TensorProto.DOUBLE, ["block", n_classes])]
        most = max(1, _BLOCK // (self.n_visits * self.n_states))
        return by_blocks(graph, body.proto("block", described, result), inputs, n_classes, most)

    def _evaluate(self, graph: Graph, leaves: str, odds: str, offset: str | None = None) -> str:
        op = graph.op
        numbers = op("Cast", leaves, to=graph.onnx.TensorProto.INT64)
        ways = op("Gather", self.ways, op("Add", numbers, self.begin[np.newaxis, :]), axis=0)
        nodes = graph.reshape(ways, -1, self.n_visits)
        intercepts, *slopes = self.terms
        states = op("Gather", intercepts, nodes, axis=0)
        width = self.n_states if self.own_scores else 1
        for number, slope in enumerate(slopes):
            scores = graph.columns(odds, range(number * width, (number + 1) * width))
            score = graph.reshape(scores, -1, 1, width)
            states = op("Add", states, op("Mul", op("Gather", slope, nodes, axis=0), score))
        if offset is not None:
            states = op("Add", states, graph.reshape(offset, -1, 1, self.n_states))
        if self.n_states == 1:
            found = logistic(graph, states, axis=2)
        else:
            found = op("Softmax", states, axis=2)
        weight = graph.reshape(op("Gather", self.weight, nodes, axis=0), -1, 1, self.n_visits)
        return graph.reshape(op("MatMul", weight, found), -1, max(2, self.n_states))


def by_blocks(
    graph: Graph, body: object, inputs: Sequence[tuple[str, int]], n_columns: int, most: int
) -> str:
    """Compute a graph, the body, for all rows of its inputs, `most` rows at a time.

    Memory then grows with the rows, but not with the rows times the nodes they meet. Inputs are
    given with their numbers of columns; the output has `n_columns`.
    """
    op = graph.op

    def whole(*numbers: int) -> Indices:
        return np.array(numbers, dtype=np.int64)

    n_rows = op("Shape", inputs[0][0], start=0, end=1)
    size = op("Max", op("Min", n_rows, whole(most)), whole(1))
    rounded_up = op("Div", op("Sub", op("Add", n_rows, size), whole(1)), size)
    n_blocks = op("Max", rounded_up, whole(1))
    lacking = op("Sub", op("Mul", n_blocks, size), n_rows)
    padding = op("Concat", whole(0, 0), lacking, whole(0), axis=0)
    blocks = [
        op("Reshape", op("Pad", name, padding), op("Concat", n_blocks, size, whole(width), axis=0))
        for name, width in inputs
    ]
    found = op("Scan", *blocks, num_scan_inputs=len(blocks), body=body)
    rows = graph.reshape(found, -1, n_columns)
    return op("Slice", rows, whole(0), n_rows, whole(0))


def _ways(model: FittedModel, counts: npt.NDArray[np.bool_]) -> list[list[int]]:
    """Return the nodes that count on the path to every leaf, numbered among themselves."""
    number = np.cumsum(counts) - 1
    ways: list[list[int]] = [[] for _ in counts]
    for node, attribute in enumerate(model.attribute):
        if counts[node]:
            ways[node] = [*ways[node], int(number[node])]
        if attribute >= 0:
            for child in model.children(node):
                ways[child] = ways[node]
    return [ways[leaf] for leaf in np.flatnonzero(model.attribute < 0)]
