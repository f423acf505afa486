"""What `caltree fit` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click
import numpy as np
import pyarrow as pa

from .. import CalibrationForest, CalibrationTree, IsotonicScaling, PlattScaling
from .._attribute_base import AttributeCalibrator
from .columns import Columns, check_number, check_order, class_in_name, guess_label, guess_scores
from .errors import CommandError, working
from .io import convert
from .io.convert import Where
from .io.sources import Source, open_source
from .io.targets import check_target
from .measures import as_table, measured
from .models import write_model
from .progress import busy
from .report import check_report, write_report
from .rows import Labelled, whole_table


@dataclass(frozen=True)
class Request:
    """The options of the command."""

    table: str
    out: str
    label: str | None
    scores: tuple[str, ...] | None
    attributes: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    categorical: tuple[str, ...] | None
    weight: str | None
    kind: str
    score_type: str
    objective: str | None
    random_state: int | None
    holdout: float
    report: str | None
    format: str | None
    n_jobs: int | None
    quiet: bool


def carry_out(request: Request) -> None:
    """Read, fit, write, and say what was done."""
    check_target(request.out, request.table)
    if request.report is not None:
        check_report(request.report)
        check_target(request.report, request.table, request.out)
    with open_source(request.table, request.format) as source:
        columns, rows = read_training(request, source)
    fitted_to, held_out = _split(rows, request)
    calibrator = make_calibrator(request, columns)
    with busy("Fitting ...", quiet=request.quiet), working(f"fit to {source.name}"):
        calibrator.fit(
            fitted_to.table, fitted_to.y, fitted_to.scores, sample_weight=fitted_to.weights
        )
    if "n_jobs" in calibrator.get_params():
        calibrator.set_params(n_jobs=None)  # a matter of this machine
    if request.report is not None and held_out is not None:
        write_report(calibrator, held_out, request.report, title=source.name)
    write_model(calibrator, columns, request.out)
    if not request.quiet:
        _say(request, calibrator, columns, fitted_to, held_out)


def read_training(request: Request, source: Source) -> tuple[Columns, Labelled]:
    """The rows to learn from, and which columns they are in."""
    label = request.label or guess_label(source.columns, source.name)
    named = [name for name in (label, request.weight) if name is not None]
    source.check(*named, *(request.scores or ()), *(request.attributes or ()))
    batch = whole_table(source)
    y = convert.labels(batch.column(label), Where(source.name, label), is_text=source.is_text)
    classes = np.unique(y).tolist()
    if len(classes) < 2:
        raise CommandError(
            f"{source.name}: the column {label!r} holds the one class {classes[0]} only; a "
            "calibrator needs rows of two classes or more"
        )
    scores = request.scores or guess_scores(
        [name for name in source.columns if name not in named], classes, source.name
    )
    check_number(scores, classes)
    check_order(scores, classes)
    _warn_of_first_class(scores, classes)
    columns = _columns(request, source, label, scores)
    places = [Where(source.name, name) for name in scores]
    matrix = convert.scores([batch.column(name) for name in scores], places, request.score_type)
    weight = request.weight
    weights = None
    if weight is not None:
        weights = convert.weights(batch.column(weight), Where(source.name, weight))
    return columns, Labelled(_attributes(request, columns, source, batch), y, matrix, weights)


def make_calibrator(request: Request, columns: Columns) -> Any:
    """The calibrator that was asked for, unfitted."""
    shared: dict[str, Any] = {"score_type": request.score_type, "n_jobs": request.n_jobs or -1}
    if request.objective is not None:
        shared["objective"] = request.objective
    if request.categorical is not None:
        shared["categorical_features"] = list(request.categorical)
    seed = request.random_state
    if request.kind == "platt":
        return PlattScaling(score_type=shared["score_type"])
    if request.kind == "isotonic":
        return IsotonicScaling()
    if request.kind == "forest":
        return CalibrationForest(random_state=seed or 0, **shared)
    make = CalibrationTree.published if request.kind == "published" else CalibrationTree
    return make(random_state=seed, **shared)


def _columns(request: Request, source: Source, label: str, scores: tuple[str, ...]) -> Columns:
    """All columns; without --attributes these are those that are nothing else."""
    taken = {label, *scores, request.weight, *(request.exclude or ())}
    source.check(*(request.exclude or ()))
    attributes = request.attributes or tuple(n for n in source.columns if n not in taken)
    twice = [name for name in attributes if name in taken]
    if twice:
        raise CommandError(
            f"--attributes names {twice[0]}, which is the label, a score, the weight or excluded; "
            "name it once"
        )
    if request.kind in ("platt", "isotonic"):
        attributes = ()
    elif not attributes:
        raise CommandError(
            f"{source.name} has no column left for an attribute; give a table that has some or "
            "use --calibrator platt or isotonic"
        )
    unknown = [name for name in request.categorical or () if name not in attributes]
    if unknown:
        raise CommandError(
            f"--categorical names {unknown[0]}, which is no attribute; these are "
            f"{', '.join(attributes) or 'none'}"
        )
    return Columns(scores, attributes, label, request.weight)


def _attributes(request: Request, columns: Columns, source: Source, batch: Any) -> Any:
    if not columns.attributes:
        return None
    found = {}
    for name in columns.attributes:
        column, where = batch.column(name), Where(source.name, name)
        if name in (request.categorical or ()) and source.is_text:
            found[name] = convert.texts(column, where)
        elif source.is_text:
            found[name] = convert.guessed(column, where)
        else:
            found[name] = convert.as_given(column, where)
        convert.check_finite(found[name], where)
    return pa.table(found)


def _warn_of_first_class(scores: tuple[str, ...], classes: list[Any]) -> None:
    first, second = map(str, classes[:2])
    if len(scores) == 1 and class_in_name(scores[0], classes) == first:
        click.echo(
            f"caltree: warning: the one column of scores, {scores[0]}, is taken for the scores of "
            f"{second}, the second class",
            err=True,
        )


def _split(rows: Labelled, request: Request) -> tuple[Labelled, Labelled | None]:
    if not request.holdout:
        return rows, None
    from sklearn.model_selection import train_test_split

    with working("hold out rows"):
        kept, held_out = train_test_split(
            np.arange(len(rows.y)),
            test_size=request.holdout,
            stratify=rows.y,
            random_state=request.random_state or 0,
        )
    return _taken(rows, np.sort(kept)), _taken(rows, np.sort(held_out))


def _taken(rows: Labelled, chosen: Any) -> Labelled:
    return Labelled(
        None if rows.table is None else rows.table.take(chosen),
        rows.y[chosen],
        rows.scores[chosen],
        None if rows.weights is None else rows.weights[chosen],
    )


def _say(
    request: Request, calibrator: Any, columns: Columns, rows: Labelled, held_out: Labelled | None
) -> None:
    from rich.console import Console

    classes = calibrator.classes_.tolist()
    of = f" of {classes[1]}" if len(columns.scores) == 1 else ""
    lines = [
        f"Fitted {type(calibrator).__name__} to {len(rows.y):,} rows of {request.table}.",
        f"  label       {columns.label}: {', '.join(map(str, classes))}",
        f"  scores      {', '.join(columns.scores)}, taken as {calibrator.score_type_}{of}",
    ]
    if isinstance(calibrator, AttributeCalibrator):
        lines.append(f"  attributes  {', '.join(columns.attributes)}")
    if columns.weight is not None:
        lines.append(f"  weight      {columns.weight}")
    click.echo("\n".join(lines), err=True)
    if held_out is not None:
        from .._inputs.scores import ScoreKind

        before = ScoreKind(len(classes), calibrator.score_type_).uncalibrated(held_out.scores)
        after = calibrator.predict_proba(held_out.table, held_out.scores)
        figures = measured(held_out.y, before, after, calibrator.classes_, held_out.weights)
        click.echo(f"On {len(held_out.y):,} rows held out:", err=True)
        Console(stderr=True).print(as_table(figures))
    if request.report is not None:
        click.echo(f"Report: {request.report}", err=True)
    click.echo(f"Model: {request.out}", err=True)
