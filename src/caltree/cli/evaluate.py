"""`caltree evaluate`: what calibration is worth on rows that were held out."""

from __future__ import annotations

import json

import click

from . import options
from .command import Command


@click.command(cls=Command)
@options.model_argument
@options.table_argument
@options.label_of_model
@options.scores_of_model
@options.attributes_of_model
@options.weight_of_model
@options.input_format
@options.as_json
def evaluate(
    model: str,
    table: str,
    label: str | None,
    scores: tuple[str, ...] | None,
    attributes: tuple[str, ...] | None,
    weight: str | None,
    format: str | None,
    as_json: bool,
) -> None:
    r"""Measure probabilities before and after calibration.

    TABLE should hold rows that neither the classifier nor the model has seen; on others both look
    better than they are.

    \b
    Example:
      caltree evaluate model.json held_out.csv
    """
    from .errors import working
    from .io.sources import open_source
    from .measures import as_table, measured
    from .models import read_model
    from .rows import judge, label_and_weight

    known = read_model(model)
    columns = known.with_columns(scores, attributes)
    with open_source(table, format) as source:
        judged = judge(known, label_and_weight(columns, source, label, weight), source)
    with working(f"measure {table}"):
        classes = known.calibrator.classes_
        figures = measured(judged.y, judged.before, judged.after, classes, judged.weights)
    if as_json:
        found = {"model": model, "table": table, "rows": len(judged.y), "measures": figures}
        click.echo(json.dumps(found, indent=2))
        return
    from rich.console import Console

    click.echo(f"{len(judged.y):,} rows of {table}:")
    Console().print(as_table(figures))
