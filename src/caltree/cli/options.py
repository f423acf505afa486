"""Options that several commands share."""

from __future__ import annotations

import click

from .._options import Decorator, names_option
from .io.formats import CHOICES


def _one_character(
    context: click.Context, option: click.Parameter, given: str | None
) -> str | None:
    found = "\t" if given in ("tab", r"\t") else given
    if found is not None and (len(found) != 1 or not found.isascii() or found in '"\r\n'):
        raise click.BadParameter(
            f"{given!r} is not a delimiter; give one character, such as ';', or tab",
            context,
            option,
        )
    return found


def format_option(name: str, of: str) -> Decorator:
    """An option for the format of a file, which its name need not tell."""
    text = f"The format of {of}; by default its ending says it."
    return click.option(name, type=click.Choice(CHOICES), help=text)


scores_of_model = names_option(
    "--scores", "The columns of the scores, if their names differ from those of the fit."
)
attributes_of_model = names_option(
    "--attributes",
    "The columns of the attributes, in the order of the fit, if their names differ.",
)
label_of_model = click.option(
    "--label", metavar="NAME", help="The column of the label, if its name differs from the fit."
)
weight_of_model = click.option(
    "--weight",
    metavar="NAME",
    help="The column that says how many rows each row counts for; by default that of the fit, if "
    "the table has it.",
)
input_format = format_option("--format", "TABLE")
delimiter = click.option(
    "--delimiter",
    callback=_one_character,
    metavar="CHARACTER",
    help="The character between the fields of CSV; a comma by default, and in .tsv a tab.",
)
quiet = click.option("--quiet", is_flag=True, help="Print only errors and warnings.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
n_jobs = click.option(
    "--n-jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Threads to use; by default one for each processor. The result does not depend on it.",
)
model_argument = click.argument("model", metavar="MODEL")
table_argument = click.argument("table", metavar="TABLE")
