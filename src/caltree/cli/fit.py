"""`caltree fit`: a calibrator for the scores in a file."""

from __future__ import annotations

from typing import Any

import click

from . import options
from .columns import GUESSES
from .command import Command

CALIBRATORS = ("tree", "forest", "platt", "isotonic", "published")
_DEFAULT_HOLDOUT = 0.2

_HELP = f"""Fit a calibrator to the scores in TABLE and write it to a file.

The scores must come from a classifier that has not seen these rows, such as out-of-fold
predictions.

With two classes one column of scores will do, that of the second class in sorted order: of no and
yes the score of yes. Otherwise --scores names one column a class, in the sorted order of the
classes (p_a,p_b,p_c for a, b, c), and so on for further classifiers.

{GUESSES}
Attributes are all other columns. Those of text are nominal, and so are those of true and false. A
column of CSV is one of numbers if all of its values are numbers; --categorical keeps it text. An
empty field or null is missing; among numbers NA, NaN and the like are, too.

\b
Examples:
  caltree fit scored.csv --label y --scores p_yes --out model.json
  caltree fit scored.parquet --out model.json --holdout 0.2 --report report.html
"""


@click.command(cls=Command, help=_HELP)
@options.table_argument
@click.option("--out", metavar="FILE", required=True, help="Where to write the model; - is stdout.")
@click.option("--label", metavar="NAME", help="The column of the label.")
@options.names_option("--scores", "The columns of the scores between commas.")
@options.names_option("--attributes", "The columns of the attributes; by default all others.")
@options.names_option("--exclude", "Columns that are no attributes, such as identifiers.")
@options.names_option("--categorical", "Attributes whose numbers are names of something.")
@click.option(
    "--weight", metavar="NAME", help="The column that says how many rows each row counts for."
)
@click.option(
    "--calibrator",
    "kind",
    type=click.Choice(CALIBRATORS),
    default="tree",
    show_default=True,
    help="published: the tree of the paper, to the digit.",
)
@click.option(
    "--score-type",
    type=click.Choice(["auto", "probability", "logit", "margin"]),
    default="auto",
    show_default=True,
    help="auto: probabilities if all are from 0 to 1 and those of a row sum to 1, else margins.",
)
@click.option(
    "--objective",
    type=click.Choice(["rmse", "log_loss"]),
    help="The loss by which a tree or forest chooses; rmse by default.",
)
@click.option(
    "--random-state",
    type=click.IntRange(0, 2**32 - 1),
    metavar="SEED",
    help="Decides what is drawn at random. A tree draws nothing without it; for a forest and "
    "for rows held out it is 0 by default.",
)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="The share of rows to judge the model by; the model is not fitted to them. 0.2 by "
    "default with --report, else none.",
)
@click.option("--report", metavar="FILE", help="Where to write a page on the rows held out.")
@options.input_format
@options.n_jobs
@options.quiet
def fit(**given: Any) -> None:
    """Fit a calibrator; the help is given to the option above, since it is put together."""
    from .fitting import Request, carry_out

    if given["holdout"] is None:
        given["holdout"] = _DEFAULT_HOLDOUT if given["report"] else 0.0
    if given["report"] and not given["holdout"]:
        raise click.UsageError(
            "--report is about rows held out; give --holdout a share above 0",
            click.get_current_context(),
        )
    if given["objective"] and given["kind"] not in ("tree", "forest"):
        raise click.UsageError(
            f"--calibrator {given['kind']} has no --objective; leave it out",
            click.get_current_context(),
        )
    if given["score_type"] != "auto" and given["kind"] == "isotonic":
        raise click.UsageError(
            "--calibrator isotonic has no --score-type, since only the order of the scores "
            "matters; leave it out",
            click.get_current_context(),
        )
    carry_out(Request(**given))
