"""`caltree apply`: calibrated probabilities for the rows of a file."""

from __future__ import annotations

import click

from . import options
from .command import Command
from .io.formats import STANDARD, STREAM, Format, format_of_path


@click.command(cls=Command)
@options.model_argument
@options.table_argument
@click.option("--out", metavar="FILE", required=True, help="Where to write the table; - is stdout.")
@click.option(
    "--prefix",
    default="calibrated_",
    show_default=True,
    help="Prefix of the names of the new columns; the class follows.",
)
@options.scores_of_model
@options.attributes_of_model
@options.input_format
@options.format_option("--out-format", "--out")
@options.n_jobs
@options.quiet
def apply(
    model: str,
    table: str,
    out: str,
    prefix: str,
    scores: tuple[str, ...] | None,
    attributes: tuple[str, ...] | None,
    format: str | None,
    out_format: str | None,
    n_jobs: int | None,
    quiet: bool,
) -> None:
    r"""Add calibrated probabilities to the rows of TABLE.

    MODEL is a file that caltree fit (or a calibrator's save) wrote. There is one new column a
    class, named calibrated_ and the class, such as calibrated_yes. All other columns stay as they
    are; those of CSV stay text, unless the output has types: then attributes and scores get those
    that the model learned. Only a few batches of rows are in memory at a time.

    Every column is converted to the type that the model learned. An empty field or null is
    missing; among numbers NA, NaN and the like are, too.

    \b
    Example:
      caltree apply model.json new.parquet --out calibrated.parquet
    """
    from .errors import warn_of_unseen
    from .io.sources import open_source
    from .io.targets import check_target, check_terminal
    from .models import read_model
    from .streaming import calibrate

    check_target(out, table, model)
    known = read_model(model)
    columns = known.with_columns(scores, attributes)
    with open_source(table, format) as source:
        target = _format_of(out, out_format, source.format)
        check_terminal(out, target)
        n_rows, unseen = calibrate(
            known, columns, source, out, target, prefix=prefix, n_jobs=n_jobs, quiet=quiet
        )
    warn_of_unseen(unseen, table)
    if not quiet:
        click.echo(f"{n_rows:,} rows calibrated: {out}", err=True)


def _format_of(out: str, given: str | None, source_format: str) -> Format:
    """The format of the output; that of standard output is the input's, Arrow as a stream."""
    if out != STANDARD:
        return format_of_path(out, given, "--out-format")
    name = given or source_format
    return Format(STREAM if name == "arrow" else name)
