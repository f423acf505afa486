"""`caltree apply`: calibrated probabilities for the rows of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .._options import ABOUT_NAMES
from . import options
from .columns import PREFIX
from .command import Command
from .errors import CommandError, usage_error
from .io.formats import STANDARD, STREAM, Format, format_of_path

if TYPE_CHECKING:
    from .._base import Calibrator
    from .io.sources import Source


@click.command(cls=Command, epilog=ABOUT_NAMES)
@options.model_argument
@options.table_argument
@click.option("--out", metavar="FILE", required=True, help="Where to write the table; - is stdout.")
@click.option(
    "--prefix",
    default=PREFIX,
    show_default=True,
    help="Prefix of the names of the new columns; the class follows.",
)
@click.option(
    "--on-bad-row",
    type=click.Choice(["error", "null"]),
    default="error",
    show_default=True,
    help="What to do with a row whose score is missing, infinite or, for probabilities, not "
    "between 0 and 1: stop, or leave its probabilities empty (null) and count it.",
)
@click.option(
    "--interval",
    "confidence",
    metavar="CONFIDENCE",
    type=float,
    help="Also add an interval for the true probability of each class, such as 0.95, in columns "
    "that end in _lower and _upper. The model must have been fitted with --intervals.",
)
@options.scores_of_model
@options.attributes_of_model
@options.input_format
@options.delimiter
@options.format_option("--out-format", "--out")
@options.n_jobs
@options.quiet
def apply(
    model: str,
    table: str,
    out: str,
    prefix: str,
    on_bad_row: str,
    confidence: float | None,
    scores: tuple[str, ...] | None,
    attributes: tuple[str, ...] | None,
    format: str | None,
    delimiter: str | None,
    out_format: str | None,
    n_jobs: int | None,
    quiet: bool,
) -> None:
    """Add calibrated probabilities to the rows of TABLE.

    MODEL is a file that caltree fit (or a calibrator's save) wrote. There is one new column
    per class, such as calibrated_yes. All other columns are copied. If TABLE is CSV and --out has
    types, attributes and scores get the types that the model learned, and other columns are text.
    --delimiter applies to TABLE and, if that is CSV, to --out. Only a few batches of rows are in
    memory at a time.

    An empty field or null is missing. In columns of numbers, NA, NaN and similar words are missing,
    too.

    \b
    Example:
      caltree apply model.json new.parquet --out calibrated.parquet
    """  # noqa: D301  # click knows \b as one character
    from .errors import warn, warn_of_unseen
    from .io.sources import open_source
    from .io.targets import check_target, check_terminal
    from .models import read_model
    from .streaming import calibrate

    check_target(out, table, model)
    known = read_model(model)
    columns = known.with_columns(scores, attributes)
    if confidence is not None:
        _check_interval(confidence, known.calibrator, model)
    with open_source(table, format, delimiter) as source:
        target = _format_of(out, out_format, source)
        if delimiter is not None:
            target = target._replace(delimiter=delimiter)
        check_terminal(out, target)
        counts = calibrate(
            known,
            columns,
            source,
            out,
            target,
            prefix=prefix,
            confidence=confidence,
            bad_rows_are_null=on_bad_row == "null",
            n_jobs=n_jobs,
            quiet=quiet,
        )
    if counts.bad:
        warn(
            f"{counts.bad:,} of {counts.rows:,} rows have no probabilities: their score is "
            f"missing, infinite or not a probability; the first is row {counts.first_bad}"
        )
    warn_of_unseen(counts.unseen, table)
    if not quiet:
        click.echo(f"{counts.rows - counts.bad:,} rows calibrated: {out}", err=True)


def _check_interval(confidence: float, calibrator: Calibrator, model: str) -> None:
    """Refuse a confidence that is no share, and a model without intervals."""
    if not 0.0 < confidence < 1.0:
        raise usage_error(f"--interval must be between 0 and 1, such as 0.95, got {confidence:g}")
    if calibrator.spread_ is None:
        raise CommandError(
            f"{model} has no intervals; fit it with caltree fit --intervals, or leave out "
            "--interval"
        )


def _format_of(out: str, given: str | None, source: Source) -> Format:
    """The format of the output; that of standard output is the input's, Arrow as a stream."""
    if out != STANDARD:
        return format_of_path(out, given, "--out-format")
    name = given or source.format
    return Format(STREAM if name == "arrow" else name, delimiter=source.delimiter)
