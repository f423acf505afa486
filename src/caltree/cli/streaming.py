"""Batches in, calibrated batches out, in constant memory."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from joblib import cpu_count

from .._inputs.unseen import Unseen
from .._running.threads import in_order
from .columns import Columns, calibrated_columns
from .errors import CommandError
from .io.formats import Format
from .io.sinks import open_sink
from .io.sources import Source
from .model_rows import Inputs
from .models import Model
from .progress import progress

_MOST_THREADS = 4  # one thread reads and writes, and that does not keep more of them busy


@dataclass
class Counts:
    """How many rows there were, and how many of them were bad or had values that were new."""

    rows: int = 0
    bad: int = 0
    """Rows that got no probabilities."""
    first_bad: int | None = None
    """The number of the first bad row."""
    unseen: Unseen = field(default_factory=Unseen)
    """Values that training did not have."""

    def add(self, probabilities: Any, unseen: Unseen) -> None:
        """Count the next rows by their probabilities of one class, and their new values."""
        if probabilities.null_count and self.first_bad is None:
            missing = probabilities.is_null().to_numpy(zero_copy_only=False)
            self.first_bad = self.rows + int(missing.argmax()) + 1
        self.rows += len(probabilities)
        self.bad += probabilities.null_count
        self.unseen.update(unseen)


def calibrate(
    model: Model,
    columns: Columns,
    source: Source,
    out: str,
    target: Format,
    *,
    prefix: str,
    confidence: float | None,
    bad_rows_are_null: bool,
    n_jobs: int | None,
    quiet: bool,
) -> Counts:
    """Write the rows of a source with their probabilities, and count them."""
    inputs = Inputs.of(model, columns, source, bad_rows_are_null=bad_rows_are_null)
    names = calibrated_columns(prefix, model.classes, interval=confidence is not None)
    _check_new_names(names, source)
    if "n_jobs" in model.calibrator.get_params():
        model.calibrator.set_params(n_jobs=1)  # the batches are shared out already
    counts, n_threads = Counts(), n_jobs or _n_threads()
    with open_sink(out, target) as sink:
        retype = source.is_text and sink.is_typed

        def work(numbered: tuple[int, Any]) -> tuple[Any, Unseen]:
            return _calibrate_batch(
                inputs, *numbered, names=names, confidence=confidence, retype=retype
            )

        with (
            progress("calibrating", source.n_rows, quiet=quiet) as advance,
            closing(in_order(work, source.rows(), n_threads, n_ahead=n_threads)) as batches,
        ):
            for batch, new in batches:
                sink.write(batch)
                counts.add(batch.column(names[0]), new)
                advance(batch.num_rows)
    return counts


def _n_threads() -> int:
    return min(_MOST_THREADS, int(cpu_count()))


def _check_new_names(names: list[str], source: Source) -> None:
    present = [name for name in names if name in source.columns]
    if present:
        raise CommandError(
            f"{source.name} has a column {present[0]!r} already; choose other names with --prefix"
        )


def _calibrate_batch(
    inputs: Inputs,
    first_row: int,
    batch: Any,
    *,
    names: list[str],
    confidence: float | None,
    retype: bool,
) -> tuple[Any, Unseen]:
    scores = inputs.scores(batch, first_row)
    converted = inputs.convert(batch, first_row)
    table = inputs.table(converted, batch.num_rows)
    probabilities, unseen = inputs.probabilities(table, scores)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    if retype:
        given |= converted
        given |= dict(zip(inputs.columns.scores, map(_nan_as_null, scores.T), strict=True))
    columns = [_nan_as_null(column) for column in probabilities.T]
    if confidence is not None:
        ends = inputs.model.calibrator.interval_around(probabilities, table, scores, confidence)
        columns += [_nan_as_null(column) for column in ends.reshape(len(ends), -1).T]
    arrays = [*given.values(), *columns]
    fields = [
        field.with_type(array.type) for field, array in zip(batch.schema, arrays, strict=False)
    ]
    fields += [pa.field(name, pa.float64()) for name in names]
    schema = pa.schema(fields, metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=schema), unseen


def _nan_as_null(values: Any) -> Any:
    return pa.array(np.ascontiguousarray(values), from_pandas=True)
