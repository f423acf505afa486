"""The rows of a file for a calibrator or an audit: which columns they are in, and their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._inputs.score_types import resolve_score_type
from .._inputs.scores import ScoreType
from .._inputs.warning import did_you_mean
from .columns import (
    PREFIX,
    Columns,
    Positive,
    calibrated_columns,
    check_number,
    find_positive,
    guess_label,
    guess_scores,
    in_class_order,
    named_like_scores,
)
from .errors import CommandError, working
from .io import convert
from .io.convert import Where
from .io.sources import Source
from .model_rows import LabelledRows, whole_table

if TYPE_CHECKING:
    from .fit import Request


# So pandas names an index without a name, when it writes a table to a file.
_INDEX = re.compile(r"__index_level_\d+__")


class TableRequest(Protocol):
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
    def quiet(self) -> bool: ...
    @property
    def wants_attributes(self) -> bool: ...


@dataclass(frozen=True)
class ScoresFound:
    """The type of the scores in a file, and their class."""

    score_type: ScoreType
    positive: Positive

    def describe(self, columns: Columns) -> str:
        """The type of the scores, and of which class a single column is, and why."""
        if self.positive.label is None:
            return f"{self.score_type} of each class in this order"
        return (
            f"{self.score_type} of {columns.label} = {self.positive.label} ({self.positive.reason})"
        )


@dataclass(frozen=True)
class Fitted:
    """A fitted calibrator, and the facts that are told about it."""

    calibrator: Any
    columns: Columns
    scores: ScoresFound
    n_rows: int
    n_groups: int | None
    held_out: LabelledRows | None


def read_training(
    request: TableRequest, source: Source, work: str
) -> tuple[Columns, ScoresFound, LabelledRows]:
    """The rows of a table, which columns they are in, and the type of the scores.

    `work` is what is to be done with them, for messages.
    """
    label = find_label(request, source)
    batch = whole_table(source)
    y = read_labels(source, label, batch)
    classes = np.unique(y).tolist()
    columns, positive = find_columns(request, source, label, classes)
    rows = read_rows(request, columns, source, batch, y)
    keep = None if rows.weights is None else rows.weights > 0.0
    with working(work):
        used = rows.scores if keep is None else rows.scores[keep]
        kind = resolve_score_type(used, len(classes), request.score_type, keep, first_row=1)
    return columns, ScoresFound(kind, positive), rows


def find_label(request: TableRequest, source: Source) -> str:
    """The column of the label; all columns that the request names must be there."""
    label = request.label or guess_label(source.columns, source.name)
    named = [name for name in (label, request.weight, request.groups) if name is not None]
    source.check(*named, *(request.scores or ()), *(request.attributes or ()))
    return label


def read_labels(source: Source, label: str, batch: Any, first: int = 1) -> npt.NDArray[Any]:
    """The labels of some rows, of which the first has a number."""
    where = Where(source.name, label, first)
    return convert.labels(batch.column(label), where, is_text=source.is_text)


def find_columns(
    request: TableRequest, source: Source, label: str, classes: Sequence[Any]
) -> tuple[Columns, Positive]:
    """The columns by role, and the class that a single column of scores is of."""
    if len(classes) < 2:
        raise CommandError(
            f"{source.name}: the column {label!r} holds only one class, {classes[0]}; "
            "give rows of two classes or more"
        )
    named = (label, request.weight, request.groups)
    scores = request.scores or guess_scores(
        [name for name in source.columns if name not in named], classes, source.name
    )
    taken = [name for name in scores if name in named]
    if taken:
        raise CommandError(
            f"--scores names {taken[0]}, which is the label, the weight or the groups; name the "
            "column of the scores that the classifier gave"
        )
    check_number(scores, classes)
    scores = in_class_order(scores, classes)
    positive = find_positive(scores, classes, request.positive)
    return _columns(request, source, label, scores, classes), positive


def read_rows(
    request: TableRequest,
    columns: Columns,
    source: Source,
    batch: Any,
    y: npt.NDArray[Any],
    first: int = 1,
) -> LabelledRows:
    """The values of some rows, of which the first has a number."""
    places = [Where(source.name, name, first) for name in columns.scores]
    given = [batch.column(name) for name in columns.scores]
    matrix = convert.scores(given, places, request.score_type)
    weights = groups = None
    if columns.weight is not None:
        where = Where(source.name, columns.weight, first)
        weights = convert.weights(batch.column(columns.weight), where)
    if columns.groups is not None:
        where = Where(source.name, columns.groups, first)
        groups = convert.groups(batch.column(columns.groups), where)
    table = _attributes(request, columns, source, batch, first)
    return LabelledRows(table, y, matrix, weights, groups)


def hold_out(
    request: Request, y: npt.NDArray[Any], groups: npt.NDArray[Any] | None
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Deal rows, given by their labels and groups, to fitting and to judging the model."""
    from sklearn.model_selection import GroupShuffleSplit, train_test_split

    seed = request.random_state or 0
    with working("hold out rows"):
        if groups is not None:
            splitter = GroupShuffleSplit(1, test_size=request.holdout, random_state=seed)
            [(kept, held_out)] = splitter.split(y, groups=groups)
        else:
            kept, held_out = train_test_split(
                np.arange(len(y)), test_size=request.holdout, stratify=y, random_state=seed
            )
    if groups is not None and request.report is not None:
        _check_groups_of_report(request, groups[held_out])
    return np.sort(kept), np.sort(held_out)


def _check_groups_of_report(request: Request, held_out: npt.NDArray[Any]) -> None:
    """Refuse fewer groups held out than a report needs, before the model is fitted."""
    from .._audit.rows import FOLDS

    n_groups = len(np.unique(held_out))
    if n_groups < FOLDS:
        raise CommandError(
            f"--holdout {request.holdout:g} holds out {n_groups} group{'s' * (n_groups != 1)}, but "
            f"a report needs at least {FOLDS}; give --holdout a larger share, or leave out --report"
        )


def _columns(
    request: TableRequest,
    source: Source,
    label: str,
    scores: tuple[str, ...],
    classes: Sequence[Any],
) -> Columns:
    """The columns by role; without --attributes, all columns without another role are used."""
    taken = {label, *scores, request.weight, request.groups, *(request.exclude or ())}
    source.check(*(request.exclude or ()))
    attributes = request.attributes
    if not attributes:
        attributes = _other_columns(request, source, taken, classes)
        _note_scores_among(attributes, request, scores, classes)
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
        raise not_an_attribute("--categorical", unknown[0], attributes)
    return Columns(scores, attributes, label, request.weight, request.groups)


def _note_scores_among(
    attributes: Sequence[str],
    request: TableRequest,
    scores: Sequence[str],
    classes: Sequence[Any],
) -> None:
    """Say which attributes may be the scores of classes that no row has."""
    found = named_like_scores(attributes, scores, classes)
    if found and request.wants_attributes and not request.quiet:
        one = len(found) == 1
        click.echo(
            f"{', '.join(found)} {'is' if one else 'are'} named like the scores, but no row has "
            f"{'that class' if one else 'those classes'}, so {'it is' if one else 'they are'} "
            f"among the attributes; leave {'it' if one else 'them'} out with --exclude.",
            err=True,
        )


def _other_columns(
    request: TableRequest, source: Source, taken: set[str | None], classes: Sequence[Any]
) -> tuple[str, ...]:
    """The columns without another role that may be attributes, and notes on the others."""
    others = [name for name in source.columns if name not in taken]
    written = calibrated_columns(PREFIX, classes, interval=True)
    left_out = {
        "the index of a pandas table": [name for name in others if _INDEX.fullmatch(name)],
        "which caltree apply wrote": [name for name in others if name in written],
    }
    for what, names in left_out.items():
        if names and request.wants_attributes and not request.quiet:
            click.echo(
                f"Leaving out {', '.join(names)}, {what} in {source.name}; to keep "
                f"{'it' if len(names) == 1 else 'them'}, name all attributes in --attributes.",
                err=True,
            )
    return tuple(name for name in others if not any(name in names for names in left_out.values()))


def not_an_attribute(option: str, name: str, attributes: Sequence[str]) -> CommandError:
    """Return the error of an option that names a column that is no attribute."""
    if attributes and _INDEX.fullmatch(name):
        return CommandError(
            f"{option} names {name}, the index of a pandas table, which is an attribute only if "
            "--attributes names it; name all attributes there"
        )
    return CommandError(
        f"{option} names {name}, which is not an attribute{did_you_mean(name, attributes)}; these "
        f"are {', '.join(attributes) or 'none'}"
    )


def _attributes(
    request: TableRequest, columns: Columns, source: Source, batch: Any, first: int
) -> Any:
    if not columns.attributes:
        return None
    found = {}
    for name in columns.attributes:
        column, where = batch.column(name), Where(source.name, name, first)
        if name in (request.categorical or ()):
            found[name] = convert.categories(column, where, is_text=source.is_text)
        elif source.is_text:
            found[name] = convert.guess_type(column, where)
        else:
            found[name] = convert.as_given(column, where)
        convert.check_finite(found[name], where)
    return pa.table(found)
