"""Tables in files, a batch of rows at a time."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ..._inputs.warning import did_you_mean
from ..._options import list_names
from ..errors import CommandError, UnreadableError, reading, usage_error
from .formats import STANDARD, STREAM, Format, format_of_bytes, format_of_path, is_compressed

Stream: TypeAlias = "io.BufferedReader[Any]"
Opened: TypeAlias = tuple[Any, int | None, Iterator[Any]]
"""The schema, the number of rows if it is known, and the batches."""

_BUFFER = 2**20
_MOST_VALUES = 2**22
"""Values of a batch: 32 MB as numbers."""
_MOST_ROWS = 2**17
_FEWEST_ROWS = 2**10
_JSON_ROWS = 2**14
_BLOCK = 2**22
"""Bytes of a block of CSV."""
_SHOWN = 60
"""Bytes of a wrong row that are shown."""
_DELIMITERS = ";\t|,"
"""Characters that may stand between fields."""


class _OpenQuoteError(ValueError):
    """CSV ends within quotes; the message is the beginning of the row."""


@dataclass(frozen=True)
class Source:
    """A table that is read once, from the first row to the last."""

    name: str
    format: str
    schema: Any
    """The Arrow schema. Columns of CSV are text; later batches of JSON lines may have more."""
    batches: Iterator[Any]
    n_rows: int | None = None
    """None where only reading it would tell."""
    delimiter: str = ","
    """The character between fields of CSV."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.schema.names)

    @property
    def is_text(self) -> bool:
        """Whether its values have no type."""
        return self.format == "csv"

    def check(self, *names: str, hint: str = "") -> None:
        """Refuse a table that lacks columns; a hint says more about these."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            lacks = "the column" if len(missing) == 1 else "the columns"
            meant = did_you_mean(missing[0], self.columns) if len(missing) == 1 else ""
            raise CommandError(
                f"{self.name} lacks {lacks} {list_names(missing)}{meant}{hint}; it has "
                f"{list_names(self.columns)}"
            )

    def rows(self) -> Iterator[tuple[int, Any]]:
        """The batches, each with the number of its first row; an empty one if there is no row."""
        first = 1
        for batch in self.batches:
            yield first, batch
            first += batch.num_rows
        if first == 1:
            yield first, pa.RecordBatch.from_pylist([], self.schema)


@contextmanager
def open_source(
    path: str,
    given: str | None,
    delimiter: str | None = None,
    columns: Sequence[str] | None = None,
) -> Iterator[Source]:
    """Open a file, or standard input, whose format is given, known by its ending or sniffed.

    All columns are read, or those that are named; it must have them.
    """
    name = "standard input" if path == STANDARD else path
    with ExitStack() as stack:
        with reading(name):
            stream = stack.enter_context(_binary(path))
        if path == STANDARD:
            with reading(name):
                stream = _decompress(stream)
                found = Format(given or format_of_bytes(stream.peek(8)))
        else:
            found = format_of_path(path, given, "--format")
        kind = found.name
        with reading(name, kind):
            if kind == "csv":
                schema, n_rows, batches = _csv(stream, delimiter, found.delimiter)
            elif kind == "parquet":
                schema, n_rows, batches = _parquet(stream, stack, columns)
            else:
                schema, n_rows, batches = _READERS[kind](stream, stack)
        if delimiter is not None and kind != "csv":
            raise usage_error(f"--delimiter is for CSV, but {name} is {kind}; leave it out")
        _check_names(name, schema.names)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
            batches = (batch.select(list(columns)) for batch in batches)
        batches = _guard(batches, name, kind)
        yield Source(name, kind, schema, batches, n_rows, delimiter or found.delimiter)


@contextmanager
def _binary(path: str) -> Iterator[Stream]:
    if path != STANDARD:
        with open(path, "rb") as file:
            yield file
        return
    if sys.stdin is None:
        raise UnreadableError("it is closed; give the name of a file")
    # Gives the bytes that have come in, without waiting for a full buffer.
    raw: Any = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    stream: Stream = io.BufferedReader(raw, _BUFFER)
    try:
        yield stream
    finally:
        stream.detach()


def _decompress(stream: Stream) -> Stream:
    if not is_compressed(stream.peek(2)):
        return stream
    return io.BufferedReader(gzip.GzipFile(fileobj=stream), _BUFFER)


def _guard(batches: Iterator[Any], name: str, kind: str) -> Iterator[Any]:
    with reading(name, kind):
        yield from batches


def _check_names(name: str, columns: list[str]) -> None:
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise CommandError(f"{name} has several columns named {', '.join(twice)}; rename them")


def _seekable(stream: Stream, stack: ExitStack) -> Any:
    """The stream itself if it is a file, otherwise a copy of it on disk."""
    if isinstance(stream.raw, io.FileIO) and stream.seekable():
        return stream
    copy = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # the stack closes it
    while part := stream.read1(_BUFFER):
        copy.write(part)
    copy.seek(0)
    return copy


def _parquet(stream: Stream, stack: ExitStack, columns: Sequence[str] | None) -> Opened:
    seekable = _seekable(stream, stack)
    # Read through a buffer: otherwise whole groups of rows come into memory, and all of them stay
    # there to the end.
    file = pa.parquet.ParquetFile(_native(seekable, stack), buffer_size=_BUFFER, pre_buffer=False)
    schema = file.schema_arrow
    names = None if columns is None else list(columns)
    size = _rows_of_batch(len(schema.names if names is None else names))
    batches = file.iter_batches(batch_size=size, columns=names)
    return schema, file.metadata.num_rows, batches


def _native(stream: Any, stack: ExitStack) -> Any:
    """The file without Python in between."""
    if isinstance(stream.name, str):
        return stack.enter_context(pa.OSFile(stream.name))
    return stack.enter_context(pa.PythonFile(stream))


def _rows_of_batch(n_columns: int) -> int:
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_VALUES // max(n_columns, 1)))


def _arrow(stream: Stream, stack: ExitStack) -> Opened:
    if format_of_bytes(stream.peek(8)) == STREAM:
        reader = stack.enter_context(pa.ipc.open_stream(stream))
        return reader.schema, None, _slice(reader)
    reader = stack.enter_context(pa.ipc.open_file(_native(_seekable(stream, stack), stack)))
    batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
    return reader.schema, None, _slice(batches)


def _slice(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        step = _rows_of_batch(batch.num_columns)
        for start in range(0, batch.num_rows, step):
            yield batch.slice(start, step)


def _csv(stream: Stream, given: str | None, default: str) -> Opened:
    stream = _decompress(stream)
    delimiter = given or default
    header = _header(stream, delimiter)
    if not header:
        raise UnreadableError("it is empty; there should be a line with the names of the columns")
    if given is None:
        _check_delimiter(header, default)
    # Text, since what a column looks like at first it need not be to the end.
    schema = pa.schema([(name, pa.string()) for name in header])
    return schema, None, _csv_batches(stream, schema, delimiter)


def _check_delimiter(header: tuple[str, ...], delimiter: str) -> None:
    """Refuse a header that another character divides into more names."""
    by_other = {other: 1 + sum(name.count(other) for name in header) for other in _DELIMITERS}
    likely = max(by_other, key=lambda other: by_other[other])
    if by_other[likely] > len(header):
        now, then = (_in_words(each) for each in (delimiter, likely))
        raise UnreadableError(
            f"its first line has {len(header)} name(s) if {now} separates them, and "
            f"{by_other[likely]} if {then} does; use --delimiter {then}, or {now} if that is right"
        )


def _in_words(delimiter: str) -> str:
    return "tab" if delimiter == "\t" else f"'{delimiter}'"


def _csv_batches(stream: Stream, schema: Any, delimiter: str) -> Iterator[Any]:
    first_row = 1
    try:
        for block in whole_lines(stream, delimiter):
            table = _parse_csv(block, schema, first_row, delimiter)
            yield from _slice(table.to_batches())
            first_row += table.num_rows
    except _OpenQuoteError as error:
        raise UnreadableError(
            f"row {first_row} opens a quote that is never closed; close it: {error}"
        ) from None


def _parse_csv(block: bytes, schema: Any, first_row: int, delimiter: str) -> Any:
    ragged: list[Any] = []

    def refuse(row: Any) -> str:
        ragged.append(row)
        return "error"

    try:
        return pa.csv.read_csv(
            pa.BufferReader(block),
            # One thread, which knows the numbers of the rows.
            pa.csv.ReadOptions(column_names=schema.names, block_size=2 * _BLOCK, use_threads=False),
            pa.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
            ),
            pa.csv.ConvertOptions(column_types=schema, null_values=[""], strings_can_be_null=True),
        )
    except pa.ArrowInvalid as error:
        if ragged:
            row = ragged[0]
            raise UnreadableError(
                f"row {first_row + row.number - 1} has {row.actual_columns} fields, but there are "
                f"{row.expected_columns} columns; correct it: {row.text}"
            ) from None
        if "UTF8" in str(error):
            raise UnreadableError(f"it is not UTF-8 from row {first_row} on; convert it") from None
        raise


def whole_lines(stream: Stream, delimiter: str = ",") -> Iterator[bytes]:
    """The rest of a CSV file in blocks that end where a row ends.

    Arrow could read the stream itself, but while it waits for a pipe no signal could stop it; nor
    while Python waits for a whole block.
    """
    # A quoted field, which may not be closed yet.
    begin = re.escape(delimiter.encode())
    quoted = re.compile(rb'(?<![^%b\r\n])"(?:[^"]+|"")*(?:"|\Z)' % begin)
    rest, wanted = bytearray(), _BLOCK
    while part := stream.read1(_BUFFER):
        rest += part
        if len(rest) >= wanted:
            end = _end_of_rows(rest, quoted)
            if end:
                yield bytes(rest[:end])
                del rest[:end]
            wanted = len(rest) + _BLOCK
    last = deque(quoted.finditer(rest) if b'"' in rest else (), maxlen=1)
    if last and last[0].group().count(b'"') % 2:
        end = _end_of_rows(rest[: last[0].start()], quoted)
        if rest[:end].strip():
            yield bytes(rest[:end])
        raise _OpenQuoteError(rest[end : end + _SHOWN].decode("utf-8", "replace"))
    if rest.strip():
        yield bytes(rest)


def _end_of_rows(text: bytearray, pattern: re.Pattern[bytes]) -> int:
    """Where the last whole row ends: after a line break that stands in no quotes."""
    end = len(text)
    quoted = [match.span() for match in pattern.finditer(text)] if b'"' in text else []
    while end > 0:
        while quoted and quoted[-1][0] >= end:
            quoted.pop()
        end = text.rfind(b"\n", 0, end) + 1
        inside = [start for start, stop in quoted[-1:] if start < end <= stop]
        if not inside:
            return end
        end = inside[0]
    return 0


def _header(stream: Stream, delimiter: str) -> tuple[str, ...]:
    """The names in the first line, which may be several if a name has line breaks."""
    lines = [stream.readline()]
    while b"".join(lines).count(b'"') % 2 and (line := stream.readline()):
        lines.append(line)
    try:
        text = b"".join(lines).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableError(
            "it is not text in UTF-8; convert it, or say what it is with --format"
        ) from None
    lines_of_text = io.StringIO(text, newline="")
    try:
        return tuple(next(csv.reader(lines_of_text, delimiter=delimiter, strict=True), []))
    except csv.Error as error:
        raise UnreadableError(
            f"the line with the names of the columns is wrong ({error}); does it open a quote "
            f"that is never closed? {text[:_SHOWN]}"
        ) from None


def _jsonl(stream: Stream, stack: ExitStack) -> Opened:
    batches = _objects(_decompress(stream))
    first = next(batches, None)
    if first is None:
        raise UnreadableError("it is empty; there should be one JSON object per line")
    return first.schema, None, chain([first], batches)


def _objects(stream: Stream) -> Iterator[Any]:
    known: dict[str, None] = {}
    rows: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(stream, 1):
        if line.strip():
            rows.append((number, _object(line, number)))
        if len(rows) == _JSON_ROWS:
            yield _batch(rows, known)
            rows = []
    if rows:
        yield _batch(rows, known)


def _batch(rows: list[tuple[int, dict[str, Any]]], known: dict[str, None]) -> Any:
    """Rows as columns: those that were known before, and after them what is new."""
    known.update(dict.fromkeys(key for _, row in rows for key in row))
    return pa.record_batch([_column(rows, name) for name in known], names=list(known))


def _object(line: bytes, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise UnreadableError(f"line {number} is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise UnreadableError(f"line {number} is not a JSON object")
    return found


def _column(rows: list[tuple[int, dict[str, Any]]], name: str) -> Any:
    values = [row.get(name) for _, row in rows]
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        kinds = {type(value) for value in values if value is not None}
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise UnreadableError(
            f"{name!r} holds values of several types ({found}) between lines {rows[0][0]} "
            f"and {rows[-1][0]}; make them one type"
        ) from None


_READERS: dict[str, Callable[[Stream, ExitStack], Opened]] = {
    "arrow": _arrow,
    STREAM: _arrow,
    "jsonl": _jsonl,
}
