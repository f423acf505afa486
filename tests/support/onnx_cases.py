"""Calibrators as ONNX, run on rows as onnxruntime wants them."""

from copy import copy
from dataclasses import replace

import numpy as np
import onnx
import pytest

from caltree._fitted.blended import BlendedModel
from caltree._model_base import AttributeCalibrator

from .export_cases import fitted, hostile_rows

# Its wheels for a new Python come late.
onnxruntime = pytest.importorskip("onnxruntime")

MISSING = "<missing>"
# What "share" becomes so that single precision holds it.
ROUND = {0.1: 0.125, 1e-3: 0.0, 0.25: 0.25, 0.7: 0.75}


def checked(model):
    """A model that is well formed."""
    onnx.checker.check_model(model, full_check=True)
    return model


def session(model):
    """One that runs on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(checked(model).SerializeToString(), options)


def feeds(running, table, scores, dtype):
    """The inputs of a session: a matrix, or a column each of which the last are the scores."""
    *attributes, last = running.get_inputs()
    numbers = np.asarray(scores, dtype=dtype).reshape(-1, last.shape[1])
    if [each.name for each in attributes] == ["X"]:
        return {"X": np.asarray(table, dtype=dtype), "scores": numbers}
    columns = {}
    for each, (_, column) in zip(attributes, table.items() if attributes else (), strict=True):
        if each.type == "tensor(string)":
            values = column.astype(object).where(column.notna(), MISSING).to_numpy()
        else:
            values = column.to_numpy(dtype=dtype, na_value=np.nan)
        columns[each.name] = values.reshape(-1, 1)
    return {**columns, "scores": numbers}


def probabilities(model, table, scores, dtype):
    """What onnxruntime makes of a model."""
    running = session(model)
    (found,) = running.run(["probabilities"], feeds(running, table, scores, dtype))
    assert found.dtype == dtype
    return found


def single(name, n_rows):
    """A fitted calibrator of a case and rows for it, all numbers of single precision."""
    calibrator = copy(fitted(name))
    if isinstance(calibrator, AttributeCalibrator):
        calibrator.model_ = _rounded(calibrator.model_)
    table, scores = hostile_rows(name, n_rows)
    table = table.assign(share=table["share"].map(ROUND))
    with np.errstate(over="ignore"):
        for column in table.columns[:3]:
            table[column] = table[column].astype(np.float32)
    rng = np.random.default_rng(0)
    largest = float(np.finfo(np.float32).max)
    scores = np.clip(scores, -largest, largest).astype(np.float32)
    extreme = rng.choice(np.array([1e-30, 1.0 - 2.0**-24], dtype=np.float32), scores.shape)
    return calibrator, table, np.where(rng.random(scores.shape) < 0.05, extreme, scores)


def _rounded(model):
    columns = [
        replace(column, categories=tuple(map(ROUND.get, column.categories)))
        if column.name == "share"
        else column
        for column in model.attributes.columns
    ]
    known = replace(model.attributes, columns=tuple(columns))
    if isinstance(model, BlendedModel):
        return BlendedModel(*(replace(part, attributes=known) for part in model.parts))
    return replace(model, attributes=known)
