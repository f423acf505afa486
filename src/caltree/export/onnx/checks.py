"""What can be written as ONNX, and why something else cannot."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._base import Calibrator
from ..._fitted.forest_model import ForestModel
from ..._fitted.model import TreeModel
from ..._inputs.attributes import Attribute, Attributes
from ...forest import CalibrationForest
from ...scaling import IdentityCalibrator, IsotonicScaling, PlattScaling
from ...tree import CalibrationTree

Known: TypeAlias = (
    CalibrationTree | CalibrationForest | PlattScaling | IsotonicScaling | IdentityCalibrator
)

_MOST_BYTES = 2**31 - 1
_BYTES_OF_A_NODE = 100


def check_calibrator(calibrator: Any) -> Known:
    """Refuse what has no counterpart in ONNX."""
    if not isinstance(calibrator, Known):
        raise TypeError(
            f"{type(calibrator).__name__} cannot be written as ONNX; the calibrators of caltree can"
        )
    check_is_fitted(calibrator)
    model = model_of(calibrator)
    if model is not None:
        _check_size(model)
    return calibrator


def check_missing_text(missing_text: Any) -> None:
    """Refuse what cannot stand for a missing string."""
    if not isinstance(missing_text, str):
        raise TypeError(f"missing_text must be a string, got {missing_text!r}")
    if not _is_unicode(missing_text):
        raise ValueError(f"missing_text is {missing_text!r}, which is no valid Unicode")


def _check_size(model: TreeModel | ForestModel) -> None:
    """Refuse more nodes than a model of ONNX can hold, which is a message of protobuf."""
    coefficients = model.parameters if isinstance(model, ForestModel) else model.coefficients
    n_nodes = len(model.attribute)
    n_bytes = coefficients.nbytes + _BYTES_OF_A_NODE * n_nodes
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"{n_nodes} nodes need about {n_bytes / 2**30:.1f} GiB, but a model of ONNX holds no "
            "more than 2; fit fewer trees, or larger leaves (min_samples_leaf)"
        )


def attributes_of(calibrator: Calibrator) -> Attributes | None:
    """The attributes that a calibrator looks at; None for global ones."""
    model = model_of(calibrator)
    return None if model is None else model.attributes


def check_attribute(attribute: Attribute, missing_text: str, dtype: Any) -> None:
    """Refuse an attribute whose values no tensor can hold.

    Parameters
    ----------
    attribute : Attribute
        The attribute.
    missing_text : str
        What stands for a missing string.
    dtype : dtype
        The precision of its numbers.
    """
    name, categories = attribute.name, attribute.categories or ()
    texts = [category for category in categories if isinstance(category, str)]
    for text in (name, *texts):
        if not _is_unicode(text):
            raise ValueError(f"attribute {name!r} has {text!r}, which is no valid Unicode")
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
            raise ValueError(
                f"attribute {name!r} has the category {number!r}, which {dtype} cannot hold; "
                "use dtype='float64', or strings"
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def model_of(calibrator: Calibrator) -> TreeModel | ForestModel | None:
    """The nodes of a calibrator; None for global ones."""
    if isinstance(calibrator, CalibrationTree):
        return calibrator.tree_
    return calibrator.forest_ if isinstance(calibrator, CalibrationForest) else None
