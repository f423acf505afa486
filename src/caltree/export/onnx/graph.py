"""A graph of ONNX operators, put together one operator at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Value: TypeAlias = str | float | npt.NDArray[Any]

# Old enough for every runtime in use. Scikit-learn's converters still write the tree ensemble of
# these versions, and a model can have only one version of each.
OPSETS = {"": 15, "ai.onnx.ml": 3}
_IR_VERSION = 8
_OF_MACHINE_LEARNING = {"LabelEncoder", "TreeEnsembleRegressor"}


def import_onnx() -> Any:
    """Return the library, or tell how to install it."""
    try:
        import onnx
    except ImportError:
        raise ImportError("writing ONNX needs onnx: pip install caltree[onnx]") from None
    return onnx


class Graph:
    """Operators in the order in which they are computed; all numbers are of double precision.

    The names of operators begin with `prefix` and are none of those taken by inputs and outputs.
    """

    def __init__(self, taken: Iterable[str] = (), prefix: str = "") -> None:
        self.onnx = import_onnx()
        self._taken = set(taken)
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def op(self, kind: str, *inputs: Value, output: str | None = None, **attributes: Any) -> str:
        """Add an operator of this kind in ONNX, and return the name of its output.

        Inputs are names of tensors, or constants.
        """
        names = [value if isinstance(value, str) else self._constant(value) for value in inputs]
        output = self.free_name(kind) if output is None else output
        domain = "ai.onnx.ml" if kind in _OF_MACHINE_LEARNING else ""
        node = self.onnx.helper.make_node(kind, names, [output], output, domain=domain)
        node.attribute.extend(_attribute(self.onnx, name, v) for name, v in attributes.items())
        self._nodes.append(node)
        return output

    def make_inner(self) -> Graph:
        """Make a graph to be used within this one; no name is in both."""
        graph = Graph(prefix=self._prefix)
        graph._taken = self._taken
        return graph

    def free_name(self, kind: str) -> str:
        """Return a name that is not taken."""
        name = f"{self._prefix}{kind}_{len(self._taken)}"
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def double(self, tensor: str) -> str:
        """Convert a tensor of numbers to double precision."""
        return self.op("Cast", tensor, to=self.onnx.TensorProto.DOUBLE)

    def columns(self, matrix: str, chosen: Sequence[int]) -> str:
        """Take some columns of a matrix."""
        return self.op("Gather", matrix, np.array(chosen, dtype=np.int64), axis=1)

    def reshape(self, tensor: str, *shape: int) -> str:
        """Give a tensor another shape."""
        return self.op("Reshape", tensor, np.array(shape, dtype=np.int64))

    def sum(self, tensor: str, axis: int, *, keepdims: int = 0) -> str:
        """Add up a tensor along an axis."""
        return self.op("ReduceSum", tensor, np.array([axis], dtype=np.int64), keepdims=keepdims)

    def uses(self, tensor: str) -> bool:
        """Whether an operator takes a tensor."""
        return any(tensor in node.input for node in self._nodes)

    def proto(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the graph, with the given inputs and outputs."""
        return self.onnx.helper.make_graph(self._nodes, name, inputs, outputs, self._constants)

    def model(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the graph as a model."""
        from ... import __version__

        helper = self.onnx.helper
        return helper.make_model(
            self.proto(name, inputs, outputs),
            opset_imports=[helper.make_opsetid(*opset) for opset in OPSETS.items()],
            ir_version=_IR_VERSION,
            producer_name="caltree",
            producer_version=__version__,
        )

    def _constant(self, value: float | npt.NDArray[Any]) -> str:
        name = self.free_name("constant")
        self._constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name


def _attribute(onnx: Any, name: str, value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        value = onnx.numpy_helper.from_array(value)
    return onnx.helper.make_attribute(name, value)
