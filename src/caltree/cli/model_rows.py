"""Rows of a file as a model takes them: attributes, scores, labels and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._fitted.fingerprint import Overlap, calibration_hashes
from .._inputs.arrays import Floats
from .._inputs.hashing import Hashes
from .._inputs.scores import ScoreKind
from .._inputs.unseen import Unseen
from .._model_base import predict_and_count
from .._options import list_names
from .columns import Columns
from .errors import CommandError, reading, working
from .io.convert import Where, as_learned, known_labels, scores, weights
from .io.convert import groups as read_groups
from .io.sources import Source
from .models import Model

if TYPE_CHECKING:
    from ..report.inputs import Given


@dataclass(frozen=True)
class Inputs:
    """Attributes and scores of record batches, as the model learned them."""

    model: Model
    columns: Columns
    file: str
    bad_rows_are_null: bool = False
    """Whether rows without a usable score get no probabilities, instead of being an error."""

    @classmethod
    def of(
        cls, model: Model, columns: Columns, source: Source, *, bad_rows_are_null: bool = False
    ) -> Inputs:
        """Check that the file has what the model needs."""
        learned = model.attributes
        used = [] if learned is None else [each.is_used for each in learned.columns]
        hint = ", which the model takes (for other names, use --scores and --attributes)"
        source.check(*columns.scores, *compress(columns.attributes, used), hint=hint)
        return cls(model, columns, source.name, bad_rows_are_null)

    def scores(self, batch: Any, first_row: int) -> Floats:
        """The scores side by side."""
        names = self.columns.scores
        places = [Where(self.file, name, first_row) for name in names]
        taken_as = self.model.calibrator.score_type_
        given = [batch.column(name) for name in names]
        return scores(given, places, taken_as, check=not self.bad_rows_are_null)

    def convert(self, batch: Any, first_row: int) -> dict[str, Any]:
        """The columns of the used attributes by name, each of the type that the model learned."""
        learned = self.model.attributes
        if learned is None:
            return {}
        return {
            name: as_learned(batch.column(name), attribute, Where(self.file, name, first_row))
            for name, attribute in zip(self.columns.attributes, learned.columns, strict=True)
            if attribute.is_used
        }

    def table(self, converted: dict[str, Any], n_rows: int) -> Any:
        """Converted attributes as the calibrator takes them; None if it uses none."""
        learned = self.model.attributes
        if learned is None:
            return None
        unused = pa.nulls(n_rows)
        columns = [converted.get(name, unused) for name in self.columns.attributes]
        if learned.names is not None:
            return pa.table(columns, names=list(learned.names))
        # A calibrator that was fitted without names wants none.
        nominal = any(attribute.categories for attribute in learned.columns)
        if not nominal:
            return np.column_stack([_as_floats(column) for column in columns])
        table = np.empty((len(columns[0]), len(columns)), dtype=object)
        for j, column in enumerate(columns):
            table[:, j] = column.to_pylist()
        return table

    def probabilities(self, table: Any, scores: Floats) -> tuple[Floats, Unseen]:
        """Calibrated probabilities, one column per class, and counts of values that are new.

        Probabilities of bad rows are NaN.
        """
        on_bad_rows: Literal["error", "nan"] = "nan" if self.bad_rows_are_null else "error"
        with working(f"calibrate {self.file}"):
            return predict_and_count(self.model.calibrator, table, scores, on_bad_rows=on_bad_rows)

    def hashes(self, table: Any, y: Any, scores: Floats, weights: Floats | None) -> Hashes:
        """The hashes of the rows by which the model knows those that it was fitted to."""
        known, calibrator = self.model.attributes, self.model.calibrator
        matrix = None if known is None else known.encode(table)
        labels = np.searchsorted(calibrator.classes_, y)
        kind = ScoreKind(len(self.model.classes), calibrator.score_type_)
        found = calibration_hashes(matrix, labels, scores, kind)
        return found if weights is None else found[weights > 0.0]


@dataclass(frozen=True)
class Predictions:
    """Labels, and probabilities before and after calibration."""

    y: npt.NDArray[Any]
    before: Floats
    after: Floats
    weights: Floats | None
    unseen: Unseen
    """Counts of values that training did not have."""
    overlap: Overlap
    """How many of the rows the model was fitted to."""


@dataclass(frozen=True)
class LabelledRows:
    """Rows of a file with their labels."""

    table: Any
    y: npt.NDArray[Any]
    scores: Floats
    weights: Floats | None
    groups: npt.NDArray[Any] | None = None

    @property
    def parts(self) -> list[Given]:
        """The rows as one part, for a report."""
        return [(self.table, self.y, self.scores, self.weights)]

    def take(self, chosen: npt.NDArray[np.intp]) -> LabelledRows:
        """Some of the rows."""
        return LabelledRows(
            None if self.table is None else self.table.take(chosen),
            self.y[chosen],
            self.scores[chosen],
            None if self.weights is None else self.weights[chosen],
            None if self.groups is None else self.groups[chosen],
        )


def predict_labelled(model: Model, columns: Columns, source: Source) -> Predictions:
    """Calibrate a whole file, keeping nothing but labels, weights, probabilities and hashes."""
    inputs = Inputs.of(model, columns, source)
    parts, unseen = [], Unseen()
    for first, batch in source.rows():
        scores = inputs.scores(batch, first)
        arranged = model.calibrator.read_scores(scores)
        table = inputs.table(inputs.convert(batch, first), batch.num_rows)
        after, new = inputs.probabilities(table, scores)
        unseen.update(new)
        before = model.calibrator.uncalibrated(arranged)
        y, weight = _labels_and_weights(model, columns, source, batch, first)
        parts.append((y, weight, before, after, inputs.hashes(table, y, arranged, weight)))
    y, weight, before, after, hashes = map(_concatenate, zip(*parts, strict=True))
    _check_rows(source, len(y))
    overlap = model.calibrator.fingerprint_.overlap(hashes)
    return Predictions(y, before, after, weight, unseen, overlap)


@dataclass(frozen=True)
class GroupColumns:
    """Columns whose groups are tested, and the one that says which rows belong together."""

    own: list[int]
    """The numbers of attributes."""
    further: list[str]
    """The names of columns that are not attributes."""
    together: str | None
    """The name of the column of rows that belong together."""
    source: Source
    batches: list[Any] = field(default_factory=list)
    """The values of further columns, batch by batch."""
    groups: list[npt.NDArray[Any]] = field(default_factory=list)
    """The groups of rows that belong together, batch by batch."""

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        attributes: Sequence[str],
        source: Source,
        together: str | None = None,
    ) -> GroupColumns:
        """Find columns by their names."""
        source.check(*names, *([] if together is None else [together]))
        own = [attributes.index(name) for name in names if name in attributes]
        return cls(own, [name for name in names if name not in attributes], together, source)

    def read(self, first: int, batch: Any) -> None:
        """Keep the columns of a batch, whose first row has a number."""
        if self.further:
            self.batches.append(pa.Table.from_batches([batch.select(self.further)]))
        if self.together is not None:
            where = Where(self.source.name, self.together, first)
            self.groups.append(read_groups(batch.column(self.together), where))

    def get_groups(self) -> Any:
        """The groups of all rows that were read; None if they were not asked for."""
        return np.concatenate(self.groups) if self.groups else None

    def get_table(self) -> Any:
        """The further columns of all rows that were read; None if there are none."""
        if not self.further:
            return None
        return pa.concat_tables(self.batches, promote_options="permissive")


def labelled_parts(
    model: Model, columns: Columns, source: Source, also: Callable[[int, Any], None]
) -> Iterator[Given]:
    """Read a file in parts, its columns of the types that the model learned.

    Every batch, and the number of its first row, is also shown to a function.
    """
    inputs, n_rows = Inputs.of(model, columns, source), 0
    for first, batch in source.rows():
        also(first, batch)
        n_rows += batch.num_rows
        _check_rows(source, n_rows)
        scores = inputs.scores(batch, first)
        y, weight = _labels_and_weights(model, columns, source, batch, first)
        table = inputs.table(inputs.convert(batch, first), batch.num_rows)
        yield table, y, scores, weight


def label_and_weight(
    columns: Columns, source: Source, label: str | None, weight: str | None
) -> Columns:
    """The columns with a label that the file has, and with a weight if it is there."""
    label = label or columns.label
    if label is None:
        raise CommandError(
            f"the model does not say which column is the label; give --label: {source.name} has "
            f"{list_names(source.columns)}"
        )
    if weight is None and columns.weight in source.columns:
        weight = columns.weight
    source.check(label, *([] if weight is None else [weight]))
    return Columns(columns.scores, columns.attributes, label, weight, columns.groups)


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


def _concatenate(parts: Sequence[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)


def _as_floats(column: Any) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
