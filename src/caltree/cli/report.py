"""`caltree report`: a page on what calibration does, and where."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._options import ABOUT_NAMES, names_option
from . import options
from .command import Command
from .errors import usage_error, working, writing
from .io.formats import STANDARD

if TYPE_CHECKING:
    from ..report import Report
    from ..report.inputs import Given
    from .model_rows import GroupColumns

_SHORT = "Write a page about the effect of a model on TABLE."


@click.command(cls=Command, epilog=ABOUT_NAMES, short_help=_SHORT)
@options.model_argument
@options.table_argument
@click.option("--out", metavar="FILE", help="Where to write the page, an HTML file.")
@names_option("--by", "Columns whose groups are to be tested; they need not be attributes.")
@options.label_of_model
@options.scores_of_model
@options.attributes_of_model
@options.weight_of_model
@click.option(
    "--groups",
    metavar="NAME",
    help="The column that says which rows belong together, such as those of one customer: they "
    "count as one observation.",
)
@click.option("--title", help="The title of the page; by default the name of the table.")
@options.input_format
@options.delimiter
@options.as_json
@options.quiet
def report(
    model: str,
    table: str,
    out: str | None,
    by: tuple[str, ...] | None,
    label: str | None,
    scores: tuple[str, ...] | None,
    attributes: tuple[str, ...] | None,
    weight: str | None,
    groups: str | None,
    title: str | None,
    format: str | None,
    delimiter: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write a page about the effect of a model on the rows of TABLE, overall and in groups.

    TABLE should hold rows that neither the classifier nor the model has seen; on others both look
    better than they are.

    \b
    Examples:
      caltree report model.json held_out.csv --out report.html --by sex --by education
      caltree report model.json held_out.csv --json > report.json
    """  # noqa: D301  # click knows \b as one character
    from .io.sources import open_source
    from .io.targets import check_target
    from .model_rows import GroupColumns, label_and_weight, labelled_parts
    from .models import read_model
    from .progress import busy

    if out is None and not as_json:
        raise usage_error("there is nowhere to write the report; give --out FILE, or --json")
    if out is not None:
        check_report(out)
    check_target(out or STANDARD, table, model)
    known = read_model(model)
    columns = known.with_columns(scores, attributes)
    with (
        open_source(table, format, delimiter) as source,
        busy("Writing the report ...", quiet=quiet),
    ):
        labelled = label_and_weight(columns, source, label, weight)
        own = columns.attributes if known.attributes else ()
        asked = GroupColumns.of(by or (), own, source, groups)
        parts = labelled_parts(known, labelled, source, asked.read)
        made = make_report(known.calibrator, parts, title or Path(table).name, asked)
    if out is not None:
        with writing(out):
            made.save(out)
    if as_json:
        click.echo(made.to_json())
    if out is not None and not quiet:
        click.echo(f"Report: {out}", err=True)


def check_report(out: str) -> None:
    """Check that a report can be made, before any work is done."""
    import jinja2  # noqa: F401  # asked for before any work is done

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise usage_error(f"the name of a report must end in .html, got {out}")


def make_report(
    calibrator: Any,
    parts: Iterable[Given],
    title: str,
    asked: GroupColumns | None = None,
    groups: Any = None,
) -> Report:
    """Make the report of labelled rows, which come in parts; warn if it has seen them.

    Rows that belong together are told by `groups`, unless these are yet to be read.
    """
    from ..report.api import report_on_parts

    with working("make the report"):
        if asked is not None:
            columns = (asked.own, asked.get_table, asked.get_groups)
            made = report_on_parts(calibrator, parts, title, *columns)
        else:
            made = report_on_parts(calibrator, parts, title, groups=lambda: groups)
    warn_of_training_rows(made.data["data"]["training_rows"])
    return made


def warn_of_training_rows(found: Mapping[str, Any]) -> None:
    """Say so if a relevant share of the rows are rows that the model was fitted to."""
    if found["status"] == "seen":
        click.echo(
            f"caltree: warning: about {found['share']:.0%} of these rows are rows that the model "
            "was fitted to, on which it looks better than it is; give rows that were held out",
            err=True,
        )
