"""`caltree fit` on files larger than memory: their rows are read in chunks, three times in all."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pyarrow as pa

from .._histogram.partitions import Given
from .._histogram.storing import Folder
from .._inputs.arrays import Mask
from .columns import Columns, Positive
from .errors import working
from .fit import fit_in_memory
from .io.formats import STANDARD
from .io.sources import Source, open_source
from .model_rows import LabelledRows
from .progress import fit_bar
from .training import (
    Fitted,
    ScoresFound,
    find_columns,
    find_label,
    hold_out,
    read_labels,
    read_rows,
)
from .tree_of_chunks import TreeOfChunks

if TYPE_CHECKING:
    from .fit import Request

# Larger files are read in chunks: 1 GB as numbers, of which there are several copies if all rows
# are in memory.
MOST_VALUES = 2**27
_BYTES = 8
_GIGABYTE = 2**30
# The formats whose columns have a type from the first row on; Parquet also knows its rows.
_TYPED = ("parquet", "arrow")


def is_large(source: Source, path: str) -> bool:
    """Whether a file is too large to be read into memory without need: by its size alone."""
    if source.format not in _TYPED or path == STANDARD:
        return False
    return _size(source, path) > _BYTES * MOST_VALUES


def _size(source: Source, path: str) -> int:
    """About how many bytes the rows take."""
    if source.n_rows is None:
        return os.path.getsize(path)
    return source.n_rows * len(source.columns) * _BYTES


@dataclass(frozen=True)
class LargeFile:
    """A large file, its columns by role, and the rows that are held out."""

    request: Request
    columns: Columns
    positive: Positive
    n_rows: int
    held_out: Mask | None

    @classmethod
    def look_at(cls, request: Request, source: Source) -> LargeFile:
        """Read the labels, which tell what the other columns are."""
        label = find_label(request, source)
        seen: dict[Any, int] = {}
        parts = []
        with _open(request, [label]) as labels:
            for first, batch in labels.rows():
                unique, codes = np.unique(
                    read_labels(labels, label, batch, first), return_inverse=True
                )
                numbers = [seen.setdefault(each, len(seen)) for each in unique.tolist()]
                parts.append(np.array(numbers, dtype=np.int32)[codes])
        classes = sorted(seen)
        columns, positive = find_columns(request, source, label, classes)
        found, held_out = np.concatenate(parts), None
        if request.holdout and request.groups is None:
            # By the order of the classes, which decides on what is drawn.
            ranks = np.argsort([seen[each] for each in classes])
            _, chosen = hold_out(request, ranks[found], None)
            held_out = np.zeros(len(found), dtype=bool)
            held_out[chosen] = True
        return cls(request, columns, positive, len(found), held_out)

    @property
    def n_kept(self) -> int:
        """How many rows are not held out."""
        return self.n_rows if self.held_out is None else int((~self.held_out).sum())

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        columns = self.columns
        single = (columns.label, columns.weight, columns.groups)
        named = [name for name in single if name is not None]
        return [*dict.fromkeys([*columns.scores, *columns.attributes, *named])]

    def read(self) -> Iterator[Given]:
        """Read the rows that are not held out, a chunk at a time."""
        for rows, held_out in self._rows():
            kept = rows if held_out is None else rows.take(np.flatnonzero(~held_out))
            yield kept.table, kept.y, kept.scores, kept.weights

    def read_held_out(self) -> LabelledRows:
        """Read the rows that are held out."""
        parts = [
            rows.take(np.flatnonzero(held_out))
            for rows, held_out in self._rows()
            if held_out is not None
        ]
        return LabelledRows(
            pa.concat_tables([part.table for part in parts], promote_options="permissive"),
            np.concatenate([part.y for part in parts]),
            np.concatenate([part.scores for part in parts]),
            None if parts[0].weights is None else np.concatenate([p.weights for p in parts]),
        )

    def _rows(self) -> Iterator[tuple[LabelledRows, Mask | None]]:
        """Read all rows, with those that are held out marked."""
        label = str(self.columns.label)
        with _open(self.request, self.names) as source:
            for first, batch in source.rows():
                y = read_labels(source, label, batch, first)
                rows = read_rows(self.request, self.columns, source, batch, y, first)
                some = slice(first - 1, first - 1 + len(y))
                yield rows, None if self.held_out is None else self.held_out[some]


def fit_large_file(request: Request, calibrator: Any, source: Source) -> Fitted:
    """Fit a calibrator to a large file: in chunks if it can, else in memory, and say so."""
    file = LargeFile.look_at(request, source)
    size = _size(source, request.table) / _GIGABYTE
    reason = _reason_for_memory(request, calibrator, file.n_kept)
    if reason is not None:
        with _open(request, file.names) as narrowed:
            if is_large(narrowed, request.table):
                click.echo(
                    f"caltree: warning: {source.name} takes {size:.1f} GB or more in memory, where "
                    f"{reason} needs all rows; a tree that grows on histograms reads Parquet and "
                    "Arrow files in chunks",
                    err=True,
                )
            return fit_in_memory(request, calibrator, narrowed)
    if not request.quiet:
        click.echo(f"Reading {source.name} in chunks: it is {size:.1f} GB as numbers.", err=True)
    tree = TreeOfChunks(**calibrator.get_params()).set_params(pos_label=file.positive.label)
    with (
        fit_bar("fitting", quiet=request.quiet),
        working(f"fit to {source.name}"),
        Folder.temporary() as folder,
    ):
        fitted = tree.fit_chunks(file.read, folder).to_tree()
    # As the rows were taken, whatever was asked for: so it is stored of those in memory, too.
    fitted.set_params(score_type=fitted.score_type_)
    scores = ScoresFound(fitted.score_type_, file.positive)
    held_out = None if file.held_out is None else file.read_held_out()
    return Fitted(fitted, file.columns, scores, file.n_kept, None, held_out)


def _reason_for_memory(request: Request, calibrator: Any, n_rows: int) -> str | None:
    """Return what needs all rows in memory; None if nothing does."""
    if request.kind != "tree":
        return f"--calibrator {request.kind}"
    if request.groups is not None:
        return "--groups"
    if request.intervals:
        return "--intervals"
    few = not TreeOfChunks(**calibrator.get_params()).suits(n_rows)
    return "a tree of so few rows, or of tree_method=exact," if few else None


def _open(request: Request, names: Sequence[str]) -> AbstractContextManager[Source]:
    return open_source(request.table, request.format, request.delimiter, columns=names)
