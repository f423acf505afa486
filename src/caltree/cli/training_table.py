"""Rows of a file for a calibrator or an audit: label, scores, attributes, weight and groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._inputs.score_types import resolve_score_type
from .._inputs.scores import ScoreType
from .columns import (
    Columns,
    Positive,
    check_number,
    find_positive,
    guess_label,
    guess_scores,
    in_class_order,
)
from .errors import CommandError, working

if TYPE_CHECKING:
    from .io.sources import Source
    from .model_rows import LabelledRows


class Request(Protocol):
    """The options that say what the columns of a table are."""

    @property
    def label(self) -> str | None: ...
    @property
    def scores(self) -> tuple[str, ...] | None: ...
    @property
    def attributes(self) -> tuple[str, ...] | None: ...
    @property
    def exclude(self) -> tuple[str, ...] | None: ...
    @property
    def categorical(self) -> tuple[str, ...] | None: ...
    @property
    def weight(self) -> str | None: ...
    @property
    def groups(self) -> str | None: ...
    @property
    def positive(self) -> str | None: ...
    @property
    def score_type(self) -> str: ...
    @property
    def wants_attributes(self) -> bool: ...


@dataclass(frozen=True)
class ScoresFound:
    """What the scores of a file are taken for."""

    score_type: ScoreType
    positive: Positive

    def describe(self, columns: Columns) -> str:
        """The type of the scores, and of which class a single column is, and why."""
        if self.positive.label is None:
            return f"{self.score_type} of each class in this order"
        return (
            f"{self.score_type} of {columns.label} = {self.positive.label} ({self.positive.reason})"
        )


def read_table(
    request: Request, source: Source, work: str
) -> tuple[Columns, ScoresFound, LabelledRows]:
    """The rows of a table, which columns they are in, and what the scores are taken for.

    `work` is what is to be done with them, for messages.
    """
    from .io import convert
    from .io.convert import Where
    from .model_rows import LabelledRows, whole_table

    label = request.label or guess_label(source.columns, source.name)
    named = [name for name in (label, request.weight, request.groups) if name is not None]
    source.check(*named, *(request.scores or ()), *(request.attributes or ()))
    batch = whole_table(source)
    y = convert.labels(batch.column(label), Where(source.name, label), is_text=source.is_text)
    classes = np.unique(y).tolist()
    if len(classes) < 2:
        raise CommandError(
            f"{source.name}: the column {label!r} holds the one class {classes[0]} only; "
            "give rows of two classes or more"
        )
    scores = request.scores or guess_scores(
        [name for name in source.columns if name not in named], classes, source.name
    )
    check_number(scores, classes)
    scores = in_class_order(scores, classes)
    positive = find_positive(scores, classes, request.positive)
    columns = _columns(request, source, label, scores)
    places = [Where(source.name, name) for name in scores]
    matrix = convert.scores([batch.column(name) for name in scores], places, request.score_type)
    weight = request.weight
    weights = None
    if weight is not None:
        weights = convert.weights(batch.column(weight), Where(source.name, weight))
    groups = None
    if request.groups is not None:
        groups = convert.groups(batch.column(request.groups), Where(source.name, request.groups))
    keep = None if weights is None else weights > 0.0
    with working(work):
        used = matrix if keep is None else matrix[keep]
        kind = resolve_score_type(used, len(classes), request.score_type, keep, first_row=1)
    table = _attributes(request, columns, source, batch)
    return columns, ScoresFound(kind, positive), LabelledRows(table, y, matrix, weights, groups)


def _columns(request: Request, source: Source, label: str, scores: tuple[str, ...]) -> Columns:
    """The columns by role; without --attributes, all columns without another role are used."""
    taken = {label, *scores, request.weight, request.groups, *(request.exclude or ())}
    source.check(*(request.exclude or ()))
    attributes = request.attributes or tuple(n for n in source.columns if n not in taken)
    twice = [name for name in attributes if name in taken]
    if twice:
        raise CommandError(
            f"--attributes names {twice[0]}, which is the label, a score, the weight, the groups "
            "or excluded; name it once"
        )
    if not request.wants_attributes:
        attributes = ()
    elif not attributes:
        raise CommandError(
            f"{source.name} has no column left for an attribute; give a table that has some, or "
            "fit a calibrator that needs none: --calibrator platt, temperature, beta or isotonic"
        )
    unknown = [name for name in request.categorical or () if name not in attributes]
    if unknown:
        raise CommandError(
            f"--categorical names {unknown[0]}, which is no attribute; these are "
            f"{', '.join(attributes) or 'none'}"
        )
    return Columns(scores, attributes, label, request.weight, request.groups)


def _attributes(request: Request, columns: Columns, source: Source, batch: Any) -> Any:
    if not columns.attributes:
        return None
    import pyarrow as pa

    from .io import convert
    from .io.convert import Where

    found = {}
    for name in columns.attributes:
        column, where = batch.column(name), Where(source.name, name)
        if name in (request.categorical or ()):
            found[name] = convert.categories(column, where, is_text=source.is_text)
        elif source.is_text:
            found[name] = convert.guess_type(column, where)
        else:
            found[name] = convert.as_given(column, where)
        convert.check_finite(found[name], where)
    return pa.table(found)
