"""Tables into files, a batch of rows at a time; a file appears whole or not at all."""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from ..._fitted.files import atomic_file
from ..errors import CommandError, writing
from .formats import STANDARD, STREAM, Format

_MOST_SHARED = 10
"""How many rows share a number on average where a dictionary of numbers begins to pay."""


class Sink:
    """A file that batches are written to; the first of them sets the schema."""

    def __init__(self, file: BinaryIO, file_format: Format, name: str) -> None:
        self._file, self._format, self._name = file, file_format, name
        self._kind = file_format.name
        self._writer: Any = None

    @property
    def is_typed(self) -> bool:
        """Whether its columns have types."""
        return self._kind != "csv"

    def write(self, batch: Any) -> None:
        """Write the next rows."""
        if self._writer is None:
            self._writer = self._make_writer(batch)
        if self._kind in ("parquet", "arrow", STREAM):
            batch = _align(batch, self._writer.schema, self._name)
        self._writer.write_batch(batch)

    def _make_writer(self, first: Any) -> Any:
        if self._kind == "csv":
            return _CsvWriter(self._file, first, self._format.delimiter)
        return _WRITERS[self._kind](self._file, first)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def open_sink(path: str, file_format: Format) -> Iterator[Sink]:
    """Open a file, or standard output, for batches.

    An OSError of the body counts as one of writing: those of reading are errors of the command
    by then.
    """
    with writing(_name(path)), _binary(path, file_format.compressed) as file:
        sink = Sink(file, file_format, _name(path))
        try:
            yield sink
        except BaseException:
            # The file is thrown away, but a writer left open would complain later.
            with suppress(Exception):
                sink.close()
            raise
        sink.close()


def _name(path: str) -> str:
    return "standard output" if path == STANDARD else path


@contextmanager
def _binary(path: str, compressed: bool) -> Iterator[BinaryIO]:
    if path == STANDARD:
        stream = sys.stdout.buffer
        yield stream
        stream.flush()
        return
    with atomic_file(Path(path)) as beside, open(beside, "wb") as file:
        if not compressed:
            yield file
            return
        # Without name and time, so that the same rows give the same file.
        with gzip.GzipFile("", "wb", 6, file, 0) as packed:
            yield packed  # type: ignore[misc]  # a file in all that is asked of it


def _align(batch: Any, schema: Any, name: str) -> Any:
    """A batch with the columns and types of the first, which a typed file keeps to its end."""
    if batch.schema.equals(schema):
        return batch
    unexpected = [column for column in batch.schema.names if column not in schema.names]
    if unexpected:
        raise CommandError(
            f"cannot write {name}: the column {unexpected[0]!r} appears in later rows only; give "
            "it to the first row too (null will do) or write .jsonl"
        )
    arrays = []
    for field in schema:
        column = batch.column(field.name)
        try:
            arrays.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise CommandError(
                f"cannot write {name}: the column {field.name!r} is {field.type} in the first "
                f"rows and {column.type} later; make them one type or write .jsonl"
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _parquet(file: BinaryIO, first: Any) -> Any:
    return pa.parquet.ParquetWriter(file, first.schema, use_dictionary=_dictionary_columns(first))


def _dictionary_columns(first: Any) -> bool | list[str]:
    """All columns but those of numbers that are nearly all different.

    To try a dictionary on these takes several times as long as all other work together.
    """
    if any(pa.types.is_nested(field.type) for field in first.schema):
        return True  # their inner columns cannot be named beforehand
    return [
        name
        for name, column in zip(first.schema.names, first.columns, strict=True)
        if not pa.types.is_floating(column.type)
        or len(column) > _MOST_SHARED * pc.count_distinct(column).as_py()
    ]


class _ArrowWriter:
    def __init__(self, file: BinaryIO, first: Any, make: Callable[..., Any]) -> None:
        self.schema = first.schema
        self._writer = make(file, self.schema)
        self.write_batch = self._writer.write_batch
        self.close = self._writer.close


class _CsvWriter:
    """Text as it is, in quotes where it must be; what is missing is an empty field."""

    def __init__(self, file: BinaryIO, first: Any, delimiter: str) -> None:
        self._file, self._delimiter = file, delimiter
        self._write([pa.array([name]) for name in first.schema.names])

    def write_batch(self, batch: Any) -> None:
        columns = zip(batch.schema.names, batch.columns, strict=True)
        if batch.num_rows:
            self._write([_as_text(column, name) for name, column in columns])

    def _write(self, columns: list[Any]) -> None:
        quoted = [_quote(column, self._delimiter) for column in columns]
        self._file.write(_lines(quoted, self._delimiter))

    def close(self) -> None:
        """Do nothing: the file has no end of its own."""


def _as_text(column: Any, name: str) -> Any:
    try:
        return column.cast(pa.string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise CommandError(
            f"CSV cannot hold the column {name!r} of type {column.type}; write .parquet or .jsonl"
        ) from None


def _quote(text: Any, delimiter: str) -> Any:
    text = pc.fill_null(text, "")
    special = pc.match_substring_regex(text, f'["{re.escape(delimiter)}\r\n]')
    if not pc.any(special).as_py():
        return text
    doubled = pc.replace_substring(text, '"', '""')
    return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), text)


def _lines(columns: list[Any], delimiter: str) -> memoryview:
    """The rows as they stand in the file: the joined strings lie side by side in memory."""
    rows = pc.binary_join_element_wise(*columns, delimiter)
    lines = pc.binary_join_element_wise(rows, "", "\n")
    return memoryview(lines.buffers()[2])[: pc.sum(pc.binary_length(lines)).as_py()]


class _JsonWriter:
    def __init__(self, file: BinaryIO, first: Any) -> None:
        self._file = file

    def write_batch(self, batch: Any) -> None:
        columns = [_without_nan(column) for column in batch.columns]
        rows = pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
        self._file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))

    def close(self) -> None:
        """Do nothing: the file has no end of its own."""


def _without_nan(column: Any) -> Any:
    """JSON has no NaN."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)


_WRITERS: dict[str, Callable[[BinaryIO, Any], Any]] = {
    "parquet": _parquet,
    "arrow": lambda file, first: _ArrowWriter(file, first, pa.ipc.new_file),
    STREAM: lambda file, first: _ArrowWriter(file, first, pa.ipc.new_stream),
    "jsonl": _JsonWriter,
}
