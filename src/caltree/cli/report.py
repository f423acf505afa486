"""`caltree report`: a page on what calibration does, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._options import ABOUT_NAMES
from . import options
from .command import Command
from .errors import usage_error, working, writing

if TYPE_CHECKING:
    from ..report.inputs import Given


@click.command(cls=Command, epilog=ABOUT_NAMES)
@options.model_argument
@options.table_argument
@click.option("--out", metavar="FILE", required=True, help="Where to write the page, an HTML file.")
@options.label_of_model
@options.scores_of_model
@options.attributes_of_model
@options.weight_of_model
@click.option("--title", help="The title of the page; by default the name of the table.")
@options.input_format
@options.delimiter
@options.quiet
def report(
    model: str,
    table: str,
    out: str,
    label: str | None,
    scores: tuple[str, ...] | None,
    attributes: tuple[str, ...] | None,
    weight: str | None,
    title: str | None,
    format: str | None,
    delimiter: str | None,
    quiet: bool,
) -> None:
    """Write a page on what the model does to the rows of TABLE.

    TABLE should hold rows that neither the classifier nor the model has seen; on others both look
    better than they are.

    \b
    Example:
      caltree report model.json held_out.csv --out report.html
    """  # noqa: D301  # click knows \b as one character
    from .io.sources import open_source
    from .io.targets import check_target
    from .model_rows import label_and_weight, labelled_parts
    from .models import read_model
    from .progress import busy

    check_report(out)
    check_target(out, table, model)
    known = read_model(model)
    columns = known.with_columns(scores, attributes)
    with (
        open_source(table, format, delimiter) as source,
        busy("Writing the report ...", quiet=quiet),
    ):
        labelled = label_and_weight(columns, source, label, weight)
        parts = labelled_parts(known, labelled, source)
        write_report(known.calibrator, parts, out, title or Path(table).name)
    if not quiet:
        click.echo(f"Report: {out}", err=True)


def check_report(out: str) -> None:
    """Check that a report can be made, before any work is done."""
    from ..report import report  # noqa: F401  # asked for before any work is done

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise usage_error(f"the name of a report must end in .html, got {out}")


def write_report(calibrator: Any, parts: Iterable[Given], out: str, title: str) -> None:
    """Make the page of labelled rows, which come in parts, and write it."""
    from ..report.api import report_on_parts

    with working("make the report"):
        page = report_on_parts(calibrator, parts, title)
    with writing(out):
        page.save(out)
    warn_of_training_rows(page.data["training_rows"])


def warn_of_training_rows(found: Mapping[str, Any]) -> None:
    """Say so if a relevant share of the rows are rows that the model was fitted to."""
    if found["status"] == "seen":
        click.echo(
            f"caltree: warning: about {found['share']:.0%} of these rows are rows that the model "
            "was fitted to, on which it looks better than it is; give rows that were held out",
            err=True,
        )
