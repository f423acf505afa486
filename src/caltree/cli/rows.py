"""Labelled rows of a file, as calibrators want them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._inputs.scores import ScoreKind
from .columns import Columns
from .errors import CommandError, reading
from .inputs import Inputs
from .io.convert import Floats, Where, known_labels, weights
from .io.sources import Source
from .models import Model


@dataclass(frozen=True)
class Judged:
    """Labels, and probabilities before and after calibration."""

    y: npt.NDArray[Any]
    before: Floats
    after: Floats
    weights: Floats | None


@dataclass(frozen=True)
class Labelled:
    """Labels with attributes and scores."""

    table: Any
    y: npt.NDArray[Any]
    scores: Floats
    weights: Floats | None


def judge(model: Model, columns: Columns, source: Source) -> Judged:
    """Calibrate a whole file, keeping nothing but labels and probabilities."""
    inputs = Inputs.of(model, columns, source)
    parts = []
    for first, batch in source.rows():
        scores = inputs.scores(batch, first)
        after = inputs.probabilities(inputs.table(inputs.converted(batch, first)), scores)
        before = ScoreKind(len(model.classes), model.calibrator.score_type_).uncalibrated(scores)
        parts.append((*_labels_and_weights(model, columns, source, batch, first), before, after))
    y, weight, before, after = (_joined(part) for part in zip(*parts, strict=True))
    _check_rows(source, len(y))
    return Judged(y, before, after, weight)


def read_labelled(model: Model, columns: Columns, source: Source) -> Labelled:
    """A whole file in memory, as the model learned its columns."""
    inputs = Inputs.of(model, columns, source)
    batch = whole_table(source)
    scores = inputs.scores(batch, 1)
    y, weight = _labels_and_weights(model, columns, source, batch, 1)
    return Labelled(inputs.table(inputs.converted(batch, 1)), y, scores, weight)


def label_and_weight(
    columns: Columns, source: Source, label: str | None, weight: str | None
) -> Columns:
    """The columns with a label that the file has, and with a weight if it is there."""
    label = label or columns.label
    if label is None:
        raise CommandError(
            f"the model does not say which column is the label; give --label: {source.name} has "
            f"{', '.join(source.columns)}"
        )
    if weight is None and columns.weight in source.columns:
        weight = columns.weight
    source.check(label, *([] if weight is None else [weight]))
    return Columns(columns.scores, columns.attributes, label, weight)


def whole_table(source: Source) -> Any:
    """All rows as one record batch."""
    batches = [batch for _, batch in source.rows()]
    with reading(source.name, source.format):
        tables = [pa.Table.from_batches([batch]) for batch in batches]
        table = pa.concat_tables(tables, promote_options="permissive").combine_chunks()
    _check_rows(source, table.num_rows)
    return table.to_batches()[0]


def _check_rows(source: Source, n_rows: int) -> None:
    if n_rows == 0:
        raise CommandError(f"{source.name} has no rows; give a table with some")


def _labels_and_weights(
    model: Model, columns: Columns, source: Source, batch: Any, first: int
) -> tuple[Any, Any]:
    label, weight = str(columns.label), columns.weight
    y = known_labels(batch.column(label), model.classes, Where(source.name, label, first))
    if weight is None:
        return y, None
    return y, weights(batch.column(weight), Where(source.name, weight, first))


def _joined(parts: Sequence[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)
