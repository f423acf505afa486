"""`caltree audit`: are the scores in a file calibrated, overall and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .._options import ABOUT_NAMES, names_option
from . import options
from .columns import GUESSES
from .command import Command
from .errors import CommandError, usage_error, working, writing
from .io.formats import STANDARD

_HELP = f"""Say whether the scores in TABLE are calibrated, overall and for whom.

No model is needed. TABLE should hold rows that the classifier has not seen. The answer has
four parts: a test of the whole; the loss in three parts (what a curve for all rows would correct,
what regions would correct beyond it, and the rest); the groups that --by names; and regions that
were found on one half of the rows and tested on the other.

{GUESSES}
Attributes are all other columns, except those that look like identifiers.

\b
Examples:
  caltree audit scored.csv --label y --scores p_yes --by sex --by education
  caltree audit scored.parquet --out audit.html
  caltree audit scored.csv --json > audit.json
"""


@click.command(
    cls=Command,
    help=_HELP,
    short_help="Test whether the scores in TABLE are calibrated.",
    epilog=ABOUT_NAMES,
)
@options.table_argument
@click.option("--label", metavar="NAME", help="The column of the label.")
@names_option("--scores", "The columns of the scores.")
@names_option("--by", "Attributes whose groups are to be tested.")
@click.option("--pairs", is_flag=True, help="Also test the groups of every pair of these.")
@names_option("--attributes", "The columns of the attributes; by default all others.")
@names_option("--exclude", "Columns that are not attributes, such as identifiers.")
@names_option("--categorical", "Attributes whose numbers are codes.")
@click.option("--weight", metavar="NAME", help="The column that says how much each row counts.")
@click.option(
    "--groups",
    metavar="NAME",
    help="The column that says which rows belong together, such as those of one customer. It is "
    "not an attribute.",
)
@click.option(
    "--positive",
    metavar="CLASS",
    help="The class of a single column of scores; by default the one it is named after, else the "
    "second.",
)
@click.option(
    "--score-type",
    type=click.Choice(["auto", "probability", "logit"]),
    default="auto",
    show_default=True,
    help="auto: probabilities if all are from 0 to 1 and those of a row sum to 1.",
)
@click.option(
    "--adjustment",
    type=click.Choice(["holm", "benjamini-hochberg"]),
    default="holm",
    show_default=True,
    help="How p-values are adjusted for all groups and regions that are tested.",
)
@click.option(
    "--random-state",
    type=click.IntRange(0, 2**32 - 1),
    metavar="SEED",
    default=0,
    show_default=True,
    help="Decides how rows are divided into halves.",
)
@click.option("--out", metavar="FILE", help="Where to write a page, an HTML file.")
@options.input_format
@options.delimiter
@options.as_json
@options.n_jobs
@options.quiet
def audit(**given: Any) -> None:
    """Audit the scores of a file; the decorator has the help, which is put together."""
    carry_out(AuditRequest(**given))


@dataclass(frozen=True)
class AuditRequest:
    """The options of the command."""

    table: str
    label: str | None
    scores: tuple[str, ...] | None
    by: tuple[str, ...] | None
    pairs: bool
    attributes: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    categorical: tuple[str, ...] | None
    weight: str | None
    groups: str | None
    positive: str | None
    score_type: str
    adjustment: str
    random_state: int
    out: str | None
    format: str | None
    delimiter: str | None
    as_json: bool
    n_jobs: int | None
    quiet: bool

    @property
    def wants_attributes(self) -> bool:
        """An audit divides the rows by them."""
        return True


def carry_out(request: AuditRequest) -> None:
    """Read the table, audit it, and say what was found."""
    from .._audit import audit as make_audit
    from .io.sources import open_source
    from .io.targets import check_target
    from .progress import busy
    from .training import read_training

    _check_out(request)
    check_target(request.out or STANDARD, request.table)
    with open_source(request.table, request.format, request.delimiter) as source:
        columns, scores, rows = read_training(request, source, f"audit {source.name}")
    _check_by(request, columns.attributes)
    with busy("Auditing ...", quiet=request.quiet), working(f"audit {source.name}"):
        found = make_audit(
            rows.table,
            rows.y,
            rows.scores,
            by=None if request.by is None else list(request.by),
            pairs=request.pairs,
            sample_weight=rows.weights,
            groups=rows.groups,
            adjustment=request.adjustment,  # type: ignore[arg-type]  # one of the choices
            score_type=scores.score_type,  # type: ignore[arg-type]  # margins are refused
            pos_label=scores.positive.label,
            categorical_features=None if request.categorical is None else list(request.categorical),
            drop_identifiers=request.attributes is None,
            random_state=request.random_state,
            n_jobs=request.n_jobs or -1,
        )
    if request.out is not None:
        with writing(request.out):
            found.save(request.out)
    if not request.quiet or request.out is None:
        click.echo(found.to_json() if request.as_json else found.to_text())
    if request.out is not None and not request.quiet:
        click.echo(f"Page: {request.out}", err=True)


def _check_out(request: AuditRequest) -> None:
    if request.out is not None and Path(request.out).suffix.lower() not in (".html", ".htm"):
        raise usage_error(f"the name of a page must end in .html, got {request.out}")
    if request.pairs and len(request.by or ()) < 2:
        raise usage_error("--pairs needs two attributes or more; name them with --by")


def _check_by(request: AuditRequest, attributes: tuple[str, ...]) -> None:
    from .training import not_an_attribute

    unknown = [name for name in request.by or () if name not in attributes]
    excluded = [name for name in unknown if name in (request.exclude or ())]
    if excluded:
        raise CommandError(
            f"--by names {excluded[0]}, which --exclude leaves out; the groups of an audit are "
            f"those of attributes: take {excluded[0]} out of --exclude"
        )
    if unknown:
        raise not_an_attribute("--by", unknown[0], attributes)
