"""`CalibratedClassifier` for skl2onnx, which turns pipelines of scikit-learn into ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..._classifier_base import CalibratedClassifierBase
from ..._inputs.attributes import Attributes
from ..._model_base import fitted_attributes
from ...classifier import CalibratedClassifier
from .calibrators import Source, add_calibrator
from .checks import check_attribute, check_calibrator, check_missing_text
from .classifier import Part, add_classifier, label_constants
from .graph import OPSETS, Graph
from .routes import is_text

_ALIAS = "CaltreeCalibratedClassifier"


def register_converter() -> None:
    """Teach skl2onnx to convert `CalibratedClassifier`, alone or in a pipeline.

    Call it once, before ``skl2onnx.to_onnx``. The classifiers within are converted by skl2onnx, so
    it must know them. The option `missing_text` is the text that stands for a missing string; it is
    empty by default.

    Examples
    --------
    >>> from skl2onnx import to_onnx
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from caltree import CalibratedClassifier
    >>> from caltree.export.onnx import register_converter
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedClassifier(LogisticRegression(max_iter=1000)).fit(X, y)
    >>> register_converter()
    >>> onnx_model = to_onnx(model, X[:1].astype("float32"), options={"zipmap": False})
    >>> [output.name for output in onnx_model.graph.output]
    ['label', 'probabilities']
    """
    _import_skl2onnx().update_registered_converter(
        CalibratedClassifier,
        _ALIAS,
        _set_types,
        _convert,
        options={
            "zipmap": [True, False, "columns"],
            "nocl": [True, False],
            "output_class_labels": [False, True],
            "missing_text": None,  # any
        },
    )


def _import_skl2onnx() -> Any:
    try:
        import skl2onnx
    except ImportError:
        raise ImportError(
            "converting pipelines needs skl2onnx: pip install caltree[onnx]"
        ) from None
    return skl2onnx


def _set_types(operator: Any) -> None:
    """Set the types of the outputs."""
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType
    from skl2onnx.common.utils_classifier import get_label_classes

    classes = get_label_classes(operator.scope_inst, operator.raw_operator)
    rows = operator.inputs[0].get_first_dimension()
    label = StringTensorType if is_text(classes) else Int64TensorType
    operator.outputs[0].set_type(label([rows]))
    operator.outputs[1].set_type(_number_type(operator)([rows, len(classes)]))


def _number_type(operator: Any) -> Any:
    """Return the precision of the outputs: double if some input has it."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    is_double = any(isinstance(each.type, DoubleTensorType) for each in operator.inputs)
    return DoubleTensorType if is_double else FloatTensorType


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Have the classifiers converted, and add the calibrated classifier behind them."""
    model = operator.raw_operator
    options = scope.get_options(model, {"missing_text": "", "nocl": False})
    missing_text = options["missing_text"]
    check_missing_text(missing_text)
    calibrator = check_calibrator(model.calibrator_)
    if container.target_opset_onnx < OPSETS[""]:
        raise ValueError(
            f"target_opset={container.target_opset_onnx} is too old for CalibratedClassifier, "
            f"which needs at least {OPSETS['']}"
        )
    columns = _attribute_columns(operator.inputs, model, missing_text)
    trained = model.estimator_ if isinstance(model.estimator_, list) else [model.estimator_]
    variables, parts = list(operator.inputs), []
    for estimator, method in zip(trained, model.response_methods_, strict=True):
        found = _scores_of(
            scope, container, estimator, operator.inputs, method, _number_type(operator)
        )
        variables.append(found)
        known = np.asarray(getattr(estimator, "classes_", model.classes_))
        parts.append(Part(found.onnx_name, method, known))
    prefix = scope.get_unique_operator_name("caltree") + "_"
    graph = Graph((each.onnx_name for each in variables), prefix)

    def calibrate(scores: str, width: int) -> str:
        return add_calibrator(graph, calibrator, columns, scores, width, missing_text)

    probabilities = add_classifier(graph, model, parts, calibrate)
    labels = np.arange(len(model.classes_)) if options["nocl"] else label_constants(model.classes_)
    best = graph.op("ArgMax", probabilities, axis=1, keepdims=0)
    number = _element_type(operator.outputs[1])
    outputs = [graph.op("Gather", labels, best), graph.op("Cast", probabilities, to=number)]
    _add_graph(scope, container, graph, variables, outputs, operator.outputs)


def _add_graph(
    scope: Any,
    container: Any,
    graph: Graph,
    variables: Sequence[Any],
    outputs: Sequence[str],
    targets: Sequence[Any],
) -> None:
    """Put a graph between variables of skl2onnx."""
    from skl2onnx.helpers import add_onnx_graph

    used = [each for each in variables if graph.uses(each.onnx_name)]
    make = graph.onnx.helper.make_tensor_value_info
    model = graph.model(
        "caltree",
        [make(each.onnx_name, _element_type(each), None) for each in used],
        [make(name, _element_type(to), None) for name, to in zip(outputs, targets, strict=True)],
    )
    add_onnx_graph(scope, SimpleNamespace(inputs=used, outputs=targets), container, model)


def _element_type(variable: Any) -> int:
    return int(variable.type.to_onnx_type().tensor_type.elem_type)


def _attribute_columns(inputs: Sequence[Any], model: Any, missing_text: str) -> list[Source]:
    """Return the sources of the calibrator's attributes."""
    from skl2onnx.common.data_types import FloatTensorType, StringTensorType

    known = fitted_attributes(model.calibrator_)
    if known is None:
        return []
    sources = []
    for attribute, (variable, column) in zip(
        known.columns, _places(inputs, known, model.attribute_columns_.positions), strict=True
    ):
        if variable is None or not attribute.is_used:
            sources.append(Source("", 0))
            continue
        single = isinstance(variable.type, FloatTensorType)
        check_attribute(attribute, missing_text, np.dtype("float32" if single else "float64"))
        holds_text = isinstance(variable.type, StringTensorType)
        if holds_text != is_text(attribute.categories):
            now, before = ("strings", "numbers") if holds_text else ("numbers", "strings")
            raise TypeError(
                f"input {variable.raw_name!r} holds {now}, but attribute {attribute.name!r} held "
                f"{before} in training; give each column an input of its own type"
            )
        sources.append(Source(variable.onnx_name, column))
    return sources


def _places(
    inputs: Sequence[Any], known: Attributes, positions: list[int] | None
) -> list[tuple[Any, int]]:
    """Return the input of every attribute, and its column there."""
    names = [attribute.name for attribute in known.columns]
    positions = list(range(len(names))) if positions is None else positions
    if len(inputs) == 1:
        return [(inputs[0], position) for position in positions]
    if known.names is not None:
        by_name = {variable.raw_name: variable for variable in inputs}
        absent = [name for name in known.used_names if name not in by_name]
        if absent:
            raise ValueError(
                f"the inputs lack the attributes {absent}; give each column an input of its name, "
                "or all of them one input"
            )
        return [(by_name.get(name), 0) for name in names]
    every = [(each, column) for each in inputs for column in range(each.type.shape[1])]
    return [every[position] for position in positions]


def _scores_of(
    scope: Any, container: Any, estimator: Any, inputs: list[Any], method: str, number: Any
) -> Any:
    """Have skl2onnx convert a classifier, and return the variable of its scores."""
    from skl2onnx import get_model_alias
    from skl2onnx.common.data_types import Int64TensorType
    from sklearn.pipeline import Pipeline

    estimator = _unwrap(estimator)
    if isinstance(estimator, Pipeline):
        *transformers, last = estimator.steps
        if transformers:
            inputs = _make_table(scope, "SklearnPipeline", Pipeline(transformers), inputs, number)
        return _scores_of(scope, container, last[1], inputs, method, number)
    options = {"zipmap": False} if container.has_options(estimator, "zipmap") else {}
    if method == "decision_function":
        if not container.has_options(estimator, "raw_scores"):
            raise ValueError(
                f"skl2onnx cannot give decision_function of {type(estimator).__name__}; use a "
                "classifier with predict_proba, or response_method='predict_proba'"
            )
        options["raw_scores"] = True
    scope.add_options(id(estimator), options)
    container.add_options(id(estimator), options)
    takes_columns = isinstance(estimator, CalibratedClassifierBase)
    if len(inputs) > 1 and not takes_columns:
        inputs = _make_table(scope, "SklearnConcat", None, inputs, number)
    child = scope.declare_local_operator(get_model_alias(type(estimator)), estimator)
    child.inputs = inputs
    child.outputs.append(scope.declare_local_variable("class", Int64TensorType()))
    child.outputs.append(scope.declare_local_variable("scores", number()))
    return child.outputs[1]


def _make_table(scope: Any, alias: str, model: Any, inputs: list[Any], number: Any) -> list[Any]:
    """Have skl2onnx convert a transformer that makes one table of its inputs."""
    child = scope.declare_local_operator(alias, model)
    child.inputs = inputs
    child.outputs.append(scope.declare_local_variable("table", number()))
    return list(child.outputs)


def _unwrap(estimator: Any) -> Any:
    """Return the classifier within a frozen one or a search."""
    from sklearn.frozen import FrozenEstimator

    while True:
        if isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        else:
            return estimator
