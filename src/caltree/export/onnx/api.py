"""`to_onnx`: a fitted calibrator as an ONNX model."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..._inputs.attributes import Attribute, Attributes
from ..._inputs.parameters import check_choice
from ..._model_base import fitted_attributes
from .calibrators import Source, add_calibrator
from .checks import Known, check_attribute, check_calibrator, check_missing_text
from .graph import Graph, import_onnx
from .routes import is_text

if TYPE_CHECKING:
    from onnx import ModelProto

_OUTPUT = "probabilities"
_SCORES = "scores"
_TABLE = "X"


def to_onnx(
    calibrator: Any,
    *,
    dtype: Literal["float32", "float64"] = "float64",
    missing_text: str = "",
) -> ModelProto:
    """Return a fitted calibrator as an ONNX model; see `Calibrator.to_onnx`."""
    onnx = import_onnx()
    check_choice("dtype", dtype, ("float32", "float64"))
    check_missing_text(missing_text)
    known = check_calibrator(calibrator)
    attributes = fitted_attributes(known)
    for attribute in () if attributes is None else attributes.columns:
        check_attribute(attribute, missing_text, np.dtype(dtype))
    columns, inputs = _inputs(onnx, attributes, dtype)
    graph = Graph([*(each.name for each in inputs), _SCORES, _OUTPUT])
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    make = onnx.helper.make_tensor_value_info
    inputs.append(make(_SCORES, number, ["rows", known.n_scores_]))
    scores = graph.double(_SCORES)
    found = add_calibrator(graph, known, columns, scores, known.n_scores_, missing_text)
    graph.op("Cast", found, to=number, output=_OUTPUT)
    outputs = [make(_OUTPUT, number, ["rows", len(known.classes_)])]
    model: ModelProto = graph.model(type(known).__name__, inputs, outputs)
    _add_metadata(model, known, attributes, missing_text)
    return model


def _add_metadata(
    model: ModelProto, calibrator: Known, attributes: Attributes | None, missing_text: str
) -> None:
    """Describe the calibrator within its model."""
    from ... import __version__

    names = [] if attributes is None else [each.name for each in _inputs_of(attributes)]
    facts = {
        "caltree_version": __version__,
        "calibrator": type(calibrator).__name__,
        "classes": json.dumps(calibrator.classes_.tolist()),
        "attributes": json.dumps(names),
        "score_type": calibrator.score_type_,
        "missing_text": missing_text,
    }
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=value)


def _inputs(onnx: Any, attributes: Attributes | None, dtype: str) -> tuple[list[Source], list[Any]]:
    """Return the sources of the attributes, and the inputs of the model."""
    make = onnx.helper.make_tensor_value_info
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    if attributes is None:
        return [], []
    # What is not used need not go in, unless columns go by their places alone.
    taken = _inputs_of(attributes)
    if not any(is_text(attribute.categories) for attribute in taken):
        place_of = {attribute.name: place for place, attribute in enumerate(taken)}
        sources = [Source(_TABLE, place_of.get(each.name, 0)) for each in attributes.columns]
        return sources, [make(_TABLE, number, ["rows", len(taken)])]
    name_of = dict(zip((each.name for each in taken), _input_names(taken), strict=True))
    inputs = [
        make(
            name_of[each.name],
            onnx.TensorProto.STRING if is_text(each.categories) else number,
            ["rows", 1],
        )
        for each in taken
    ]
    return [Source(name_of.get(each.name, ""), 0) for each in attributes.columns], inputs


def _inputs_of(attributes: Attributes) -> list[Attribute]:
    """Return the attributes that go into a model."""
    by_name = attributes.names is not None
    return [each for each in attributes.columns if each.is_used or not by_name]


def _input_names(attributes: Iterable[Attribute]) -> list[str]:
    """Return the names of attributes, with "_" behind those that are empty or taken."""
    own = [attribute.name for attribute in attributes]
    reserved = {"", _SCORES, _OUTPUT}
    taken = reserved.union(own)
    names = []
    for name in own:
        if name in reserved:
            while name in taken:
                name += "_"
            taken.add(name)
        names.append(name)
    return names
