"""Batches in, calibrated batches out, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from joblib import cpu_count

from .._inputs.unseen import Unseen
from .columns import Columns
from .errors import CommandError
from .io.formats import Format
from .io.sinks import open_sink
from .io.sources import Source
from .model_rows import Inputs
from .models import Model
from .progress import progress

_MOST_THREADS = 4  # one thread reads and writes, and that does not keep more of them busy

Item = TypeVar("Item")
Result = TypeVar("Result")


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
) -> tuple[int, Unseen]:
    """Write the rows of a source with their probabilities.

    Return the number of rows, and the counts of values that training did not have.
    """
    inputs = Inputs.of(model, columns, source)
    names = [f"{prefix}{label}" for label in model.classes]
    _check_new_names(names, source)
    if "n_jobs" in model.calibrator.get_params():
        model.calibrator.set_params(n_jobs=1)  # the batches are shared out already
    n_rows, unseen = 0, Unseen()
    with open_sink(out, target) as sink:
        retype = source.is_text and sink.is_typed

        def work(numbered: tuple[int, Any]) -> tuple[Any, Unseen]:
            return _calibrate_batch(inputs, *numbered, names=names, retype=retype)

        with (
            progress("calibrating", source.n_rows, quiet=quiet) as advance,
            closing(in_order(work, source.rows(), n_jobs or _n_threads())) as batches,
        ):
            for batch, new in batches:
                sink.write(batch)
                unseen.update(new)
                n_rows += batch.num_rows
                advance(batch.num_rows)
    return n_rows, unseen


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Generator[Result]:
    """Results of a function in the order of the items, a few of which are in work at a time."""
    pool = ThreadPoolExecutor(n_threads)
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > n_threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


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
) -> tuple[Any, Unseen]:
    scores = inputs.scores(batch, first_row)
    converted = inputs.convert(batch, first_row)
    table = inputs.table(converted, batch.num_rows)
    probabilities, unseen = inputs.probabilities(table, scores)
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
    return pa.RecordBatch.from_arrays(arrays, schema=schema), unseen
