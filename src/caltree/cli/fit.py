"""`caltree fit`: a calibrator for the scores in a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from .._fitted.selection import LOCAL, UNCALIBRATED
from .._model_base import fitted_attributes
from .._options import ABOUT_NAMES, names_option
from . import options
from .columns import GUESSES
from .command import Command
from .errors import usage_error, working, writing
from .evaluate import as_table, measure
from .io.targets import check_target
from .models import write_model
from .parameters import CALIBRATORS, describe_parameters, is_global, make_calibrator
from .report import check_report, make_report

if TYPE_CHECKING:
    from .io.sources import Source
    from .training import Fitted

_DEFAULT_HOLDOUT = 0.2
LARGE_FILES = """A tree reads a Parquet file of more than 134,217,728 values (rows times columns),
or an Arrow file of more than 1 GB, in chunks if it has more than 200,000 rows. Then its memory
does not grow with the file, but it needs temporary files. Held-out rows are kept in memory. Other
calibrators, other files and --groups need all rows in memory."""

_HELP = f"""Fit a calibrator to the scores in TABLE and write it to a file.

The scores must come from a classifier that has not seen these rows, such as out-of-fold
predictions.

Scores: with two classes, one column is enough. It holds the scores of the class that it is named
after, such as p_yes, or of --positive, or else of the second class in sorted order. With more
classes, --scores names one column per class, in the sorted order of the classes (p_a,p_b,p_c for
a, b, c). Columns that are named after the classes may be in any order. The scores of a further
classifier follow in the same way.

{GUESSES}
Attributes: all other columns. Those that look like identifiers are left out, with a warning, unless
--attributes or --categorical names them. Columns of text, or of true and false, are categories. A
column of a CSV file holds numbers if all of its values are numbers; --categorical turns it into
categories. Dates are refused; leave them out with --exclude. An empty field or null is missing. In
columns of numbers, NA, NaN and similar words are missing, too.

{LARGE_FILES}

\b
Examples:
  caltree fit scored.csv --label y --scores p_yes --out model.json
  caltree fit scored.parquet --out model.json --holdout 0.2 --report report.html
"""


@click.command(cls=Command, help=_HELP, epilog=f"{ABOUT_NAMES}\n{describe_parameters()}")
@options.table_argument
@click.option("--out", metavar="FILE", required=True, help="Where to write the model; - is stdout.")
@click.option("--label", metavar="NAME", help="The column of the label.")
@names_option("--scores", "The columns of the scores.")
@names_option("--attributes", "The columns of the attributes; by default all others.")
@names_option("--exclude", "Columns that are not attributes, such as identifiers.")
@names_option("--categorical", "Attributes whose numbers are codes.")
@click.option(
    "--weight", metavar="NAME", help="The column that says how many rows each row counts for."
)
@click.option(
    "--groups",
    metavar="NAME",
    help="The column that says which rows belong together, such as those of one customer. They "
    "stay together in folds, in samples of a forest and in held-out rows. It is not an attribute.",
)
@click.option(
    "--calibrator",
    "kind",
    type=click.Choice(list(CALIBRATORS)),
    default="tree",
    show_default=True,
    help="published: the tree of the paper, to the digit. ensemble: forest and boosting, averaged. "
    "boosting and ensemble need LightGBM: pip install 'caltree[boosting]'.",
)
@click.option(
    "--positive",
    metavar="CLASS",
    help="The class of a single column of scores; by default the one it is named after, else the "
    "second.",
)
@click.option(
    "--score-type",
    type=click.Choice(["auto", "probability", "logit", "margin"]),
    default="auto",
    show_default=True,
    help="auto: probabilities if all are from 0 to 1 and those of a row sum to 1, margins if many "
    "are not; unclear cases are refused.",
)
@click.option(
    "--scoring",
    type=click.Choice(["rmse", "log_loss"]),
    help="The loss by which a tree, forest, boosting or ensemble chooses; rmse by default.",
)
@click.option(
    "--param",
    "params",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a parameter of the calibrator; may be given more than once. They are listed below.",
)
@click.option(
    "--random-state",
    type=click.IntRange(0, 2**32 - 1),
    metavar="SEED",
    help="The seed of random choices. By default, a tree and boosting make no random choices, and "
    "the seed of a forest, an ensemble and held-out rows is 0.",
)
@click.option(
    "--holdout",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="SHARE",
    help="The share of rows, or of groups, to judge the model by; the model is not fitted to them. "
    "0.2 by default with --report, else none.",
)
@click.option(
    "--intervals",
    is_flag=True,
    help="Also learn the intervals of caltree apply --interval; takes 10 to 40 times as long.",
)
@click.option(
    "--fingerprint/--no-fingerprint",
    default=True,
    help="Whether the model contains up to 256 hashes of its rows, so that evaluate and report "
    "recognise them; by default it does.",
)
@click.option("--report", metavar="FILE", help="Where to write a page on the rows held out.")
@options.input_format
@options.delimiter
@options.n_jobs
@options.quiet
def fit(**given: Any) -> None:
    """Fit a calibrator; the decorator has the help, which is put together."""
    if given["holdout"] is None:
        given["holdout"] = _DEFAULT_HOLDOUT if given["report"] else 0.0
    if given["report"] and not given["holdout"]:
        raise usage_error("--report needs held-out rows; give --holdout a share above 0")
    if given["scoring"] and given["kind"] not in ("tree", "forest", "boosting", "ensemble"):
        raise usage_error(f"--calibrator {given['kind']} has no --scoring; leave it out")
    if given["groups"] and is_global(given["kind"]) and not given["holdout"]:
        raise usage_error(
            f"--calibrator {given['kind']} has no folds, so --groups would change nothing; "
            "leave it out"
        )
    carry_out(Request(**given))


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
    groups: str | None
    kind: str
    positive: str | None
    score_type: str
    scoring: str | None
    params: tuple[str, ...]
    random_state: int | None
    holdout: float
    intervals: bool
    fingerprint: bool
    report: str | None
    format: str | None
    delimiter: str | None
    n_jobs: int | None
    quiet: bool

    @property
    def wants_attributes(self) -> bool:
        """Whether the calibrator looks at attributes."""
        return not is_global(self.kind)


def carry_out(request: Request) -> None:
    """Read, fit, write, and say what was done."""
    from .io.sources import open_source
    from .large_files import fit_large_file, is_large

    check_target(request.out, request.table)
    if request.report is not None:
        check_report(request.report)
        check_target(request.report, request.table, request.out)
    calibrator = make_calibrator(request.kind, _parameters(request), request.params)
    with open_source(request.table, request.format, request.delimiter) as source:
        fit_file = fit_large_file if is_large(source, request.table) else fit_in_memory
        fitted = fit_file(request, calibrator, source)
    if "n_jobs" in fitted.calibrator.get_params():
        fitted.calibrator.set_params(n_jobs=None)  # a matter of this machine
    if request.report is not None and fitted.held_out is not None:
        held_out = fitted.held_out
        made = make_report(fitted.calibrator, held_out.parts, source.name, groups=held_out.groups)
        with writing(request.report):
            made.save(request.report)
    write_model(fitted.calibrator, fitted.columns, request.out, request.fingerprint)
    if not request.quiet:
        _print_summary(request, fitted)


def fit_in_memory(request: Request, calibrator: Any, source: Source) -> Fitted:
    """Read all rows, and fit a calibrator to them."""
    from .progress import fit_bar
    from .training import Fitted, hold_out, read_training

    columns, scores, rows = read_training(request, source, f"fit to {source.name}")
    fitted_to, held_out = rows, None
    if request.holdout:
        kept, others = hold_out(request, rows.y, rows.groups)
        fitted_to, held_out = rows.take(kept), rows.take(others)
    calibrator.set_params(score_type=scores.score_type, pos_label=scores.positive.label)
    # A calibrator without attributes has no folds either.
    has_folds = fitted_to.groups is not None and columns.attributes
    named_groups = {"groups": fitted_to.groups} if has_folds else {}
    with fit_bar("fitting", quiet=request.quiet), working(f"fit to {source.name}"):
        given = (fitted_to.table, fitted_to.y, fitted_to.scores, fitted_to.weights)
        calibrator.fit(*given, **named_groups)
        if request.intervals:
            calibrator.fit_intervals(*given)
    n_groups = None if fitted_to.groups is None else len(set(fitted_to.groups.tolist()))
    return Fitted(calibrator, columns, scores, len(fitted_to.y), n_groups, held_out)


def _parameters(request: Request) -> dict[str, Any]:
    """The parameters that have an option of their own."""
    found: dict[str, Any] = {"score_type": request.score_type, "n_jobs": request.n_jobs or -1}
    if request.scoring is not None:
        found["scoring"] = request.scoring
    if request.categorical is not None:
        found["categorical_features"] = list(request.categorical)
    seed = request.random_state
    found["random_state"] = seed or 0 if request.kind in ("forest", "ensemble") else seed
    if request.attributes is not None:
        found["drop_identifiers"] = False  # whoever names the attributes knows what they are
    return found


def _choice(calibrator: Any) -> str | None:
    """What was chosen by held-out rows, and what that gains; None if there was no choice."""
    selection = getattr(calibrator, "selection_", None)
    if selection is None:
        return None
    if selection.chosen == UNCALIBRATED:
        return f"{selection.choice} on held-out rows"
    words = selection.choice
    if selection.chosen == LOCAL and hasattr(calibrator, "get_n_leaves"):
        words = f"{LOCAL}, a model for each of {calibrator.get_n_leaves()} regions"
    before = [f"{each.loss:.4f} -> " for each in selection.candidates if each.name == UNCALIBRATED]
    measure = "RMSE" if selection.scoring == "rmse" else "log loss"
    return f"{words}; held-out {measure} {''.join(before)}{selection.loss:.4f}"


def _print_summary(request: Request, fitted: Fitted) -> None:
    from rich.console import Console

    calibrator, columns, held_out = fitted.calibrator, fitted.columns, fitted.held_out
    classes = calibrator.classes_.tolist()
    lines = [
        f"Fitted {type(calibrator).__name__} to {fitted.n_rows:,} rows of {request.table}.",
        f"  label       {columns.label}: {', '.join(map(str, classes))}",
        f"  scores      {', '.join(columns.scores)}, taken as {fitted.scores.describe(columns)}",
    ]
    known = fitted_attributes(calibrator)
    if known is not None:
        lines.append(f"  attributes  {', '.join(known.used_names) or 'none'}")
    if columns.weight is not None:
        lines.append(f"  weight      {columns.weight}")
    if fitted.n_groups is not None:
        lines.append(f"  groups      {columns.groups}: {fitted.n_groups:,}")
    chosen = _choice(calibrator)
    if chosen is not None:
        lines.append(f"  choice      {chosen}")
    click.echo("\n".join(lines), err=True)
    if held_out is not None:
        before = calibrator.uncalibrated(calibrator.read_scores(held_out.scores))
        after = calibrator.predict_proba(held_out.table, held_out.scores)
        figures = measure(held_out.y, before, after, calibrator.classes_, held_out.weights)
        click.echo(f"On {len(held_out.y):,} rows held out:", err=True)
        Console(stderr=True).print(as_table(figures))
    if request.report is not None:
        click.echo(f"Report: {request.report}", err=True)
    click.echo(f"Model: {request.out}", err=True)
