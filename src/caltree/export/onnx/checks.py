"""Checks of calibrators and attributes that ONNX cannot hold."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._base import Calibrator
from ..._fitted.blended import Model, parts_of
from ..._inputs.attributes import Attribute
from ..._model_base import AttributeCalibrator
from ...curves import CurveScaling
from ...scaling import IdentityCalibrator, IsotonicScaling, PlattScaling
from ..shared import is_unicode

Known: TypeAlias = (
    AttributeCalibrator | PlattScaling | CurveScaling | IsotonicScaling | IdentityCalibrator
)

_MOST_BYTES = 2**31 - 1
_BYTES_OF_A_NODE = 100


def check_calibrator(calibrator: Any) -> Known:
    """Refuse calibrators that have no counterpart in ONNX."""
    if not isinstance(calibrator, Known):
        raise TypeError(
            f"{type(calibrator).__name__} cannot be written as ONNX; the calibrators of caltree "
            "can. For a whole CalibratedClassifier, call caltree.export.onnx.register_converter() "
            "and then skl2onnx.to_onnx"
        )
    check_is_fitted(calibrator)
    model = model_of(calibrator)
    if model is not None:
        _check_size(model)
    return calibrator


def check_missing_text(missing_text: Any) -> None:
    """Refuse a value that cannot stand for a missing string."""
    if not isinstance(missing_text, str):
        raise TypeError(f"missing_text must be a string, got {missing_text!r}")
    if not is_unicode(missing_text):
        raise ValueError(f"missing_text is {missing_text!r}, which is not valid Unicode")


def _check_size(model: Model) -> None:
    """Refuse more nodes than an ONNX model, a message of protobuf, can hold."""
    n_nodes = model.n_nodes
    n_bytes = sum(part.parameters.nbytes for part in parts_of(model)) + _BYTES_OF_A_NODE * n_nodes
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"{n_nodes} nodes need about {n_bytes / 2**30:.1f} GiB, but an ONNX model holds at "
            "most 2; fit fewer trees, or larger leaves (min_samples_leaf)"
        )


def check_attribute(attribute: Attribute, missing_text: str, dtype: Any) -> None:
    """Refuse an attribute whose values no tensor holds, of strings or of numbers of this type."""
    name, categories = attribute.name, attribute.categories or ()
    texts = [category for category in categories if isinstance(category, str)]
    for text in (name, *texts):
        if not is_unicode(text):
            raise ValueError(f"attribute {name!r} has {text!r}, which is not valid Unicode")
    if texts and len(texts) < len(categories):
        raise ValueError(
            f"attribute {name!r} has strings and numbers among its categories, and no ONNX tensor "
            "holds both; make all of them strings before fitting"
        )
    if missing_text in texts:
        raise ValueError(
            f"missing_text={missing_text!r} is a category of attribute {name!r}; choose a text "
            "that none of them is"
        )
    for number in () if texts else categories:
        with np.errstate(over="ignore"):
            is_exact = float(dtype.type(number)) == number
        if not is_exact:
            remedy = "strings" if dtype == np.float64 else "dtype='float64', or strings"
            raise ValueError(
                f"attribute {name!r} has the category {number!r}, which {dtype} cannot hold; "
                f"use {remedy}"
            )


def model_of(calibrator: Calibrator) -> Model | None:
    """Return the trees of a calibrator; None for global ones."""
    return calibrator.model_ if isinstance(calibrator, AttributeCalibrator) else None
