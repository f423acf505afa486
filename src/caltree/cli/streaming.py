"""Batches in, calibrated batches out, in constant memory."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
from joblib import cpu_count

from .._running.threads import in_order
from .columns import Columns
from .errors import CommandError
from .io.formats import Format
from .io.sinks import open_sink
from .io.sources import Source
from .model_rows import Inputs
from .models import Model
from .progress import progress

_MOST_THREADS = 4  # one thread reads and writes, and that does not keep more of them busy


def calibrate(
    model: Model,
    columns: Columns,
    source: Source,
    out: str,
    target: Format,
    *,
    prefix: str,
    n_jobs: int | None,
    quiet: bool,
) -> int:
    """Write the rows of a source with their probabilities, and return the number of rows."""
    inputs = Inputs.of(model, columns, source)
    names = [f"{prefix}{label}" for label in model.classes]
    _check_new_names(names, source)
    if "n_jobs" in model.calibrator.get_params():
        model.calibrator.set_params(n_jobs=1)  # the batches are shared out already
    n_rows, n_threads = 0, n_jobs or _n_threads()
    with open_sink(out, target) as sink:
        retype = source.is_text and sink.is_typed

        def work(numbered: tuple[int, Any]) -> Any:
            return _calibrate_batch(inputs, *numbered, names=names, retype=retype)

        with (
            progress("calibrating", source.n_rows, quiet=quiet) as advance,
            closing(in_order(work, source.rows(), n_threads, n_ahead=n_threads)) as batches,
        ):
            for batch in batches:
                sink.write(batch)
                n_rows += batch.num_rows
                advance(batch.num_rows)
    return n_rows


def _n_threads() -> int:
    return min(_MOST_THREADS, int(cpu_count()))


def _check_new_names(names: list[str], source: Source) -> None:
    present = [name for name in names if name in source.columns]
    if present:
        raise CommandError(
            f"{source.name} has a column {present[0]!r} already; choose other names with --prefix"
        )


def _calibrate_batch(
    inputs: Inputs, first_row: int, batch: Any, *, names: list[str], retype: bool
) -> Any:
    scores = inputs.scores(batch, first_row)
    converted = inputs.convert(batch, first_row)
    probabilities = inputs.probabilities(inputs.table(converted), scores)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    if retype:
        given |= converted
        given |= dict(zip(inputs.columns.scores, map(pa.array, scores.T), strict=True))
    columns = [pa.array(np.ascontiguousarray(column)) for column in probabilities.T]
    arrays = [*given.values(), *columns]
    fields = [
        field.with_type(array.type) for field, array in zip(batch.schema, arrays, strict=False)
    ]
    fields += [pa.field(name, pa.float64()) for name in names]
    schema = pa.schema(fields, metadata=batch.schema.metadata)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
