"""`caltree evaluate`: metrics before and after calibration, on held-out rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from .._inputs.probabilities import columns_of
from .._inputs.ranking import find_backwards, warn_of_backwards
from .._inputs.scores import ScoreKind
from .._options import ABOUT_NAMES
from ..metrics import brier_score, expected_calibration_error, log_loss, rmse
from ..reliability import bins_for
from . import options
from .command import Command
from .io.formats import STANDARD
from .report import warn_of_training_rows

if TYPE_CHECKING:
    from rich.table import Table

_METRICS = {
    "rmse": ("RMSE", rmse),
    "brier_score": ("Brier score", brier_score),
    "log_loss": ("log loss", log_loss),
    "expected_calibration_error": ("calibration error", expected_calibration_error),
}

Figures = dict[str, dict[str, float]]


@click.command(cls=Command, epilog=ABOUT_NAMES)
@options.model_argument
@options.table_argument
@options.label_of_model
@options.scores_of_model
@options.attributes_of_model
@options.weight_of_model
@options.input_format
@options.delimiter
@options.as_json
def evaluate(
    model: str,
    table: str,
    label: str | None,
    scores: tuple[str, ...] | None,
    attributes: tuple[str, ...] | None,
    weight: str | None,
    format: str | None,
    delimiter: str | None,
    as_json: bool,
) -> None:
    """Measure probabilities before and after calibration.

    TABLE should hold rows that neither the classifier nor the model has seen; on others both look
    better than they are. A warning says so if the model was fitted to some of the rows.

    The calibration error is the mean distance between probability and observed frequency, in bins
    of equally many rows: one for each 60 rows, but at most 15.

    \b
    Example:
      caltree evaluate model.json held_out.csv
    """  # noqa: D301  # click knows \b as one character
    from .errors import warn_of_unseen, working
    from .io.sources import open_source
    from .io.targets import check_target
    from .model_rows import label_and_weight, predict_labelled
    from .models import read_model

    check_target(STANDARD)
    known = read_model(model)
    columns = known.with_columns(scores, attributes)
    with open_source(table, format, delimiter) as source:
        found = predict_labelled(known, label_and_weight(columns, source, label, weight), source)
    with working(f"measure {table}"):
        classes = known.calibrator.classes_
        figures = measure(found.y, found.before, found.after, classes, found.weights)
        kind, codes = ScoreKind(len(classes), "probability"), columns_of(found.y, classes)
        backwards = find_backwards(found.before, kind, codes, found.weights, found.after)
    positive = known.calibrator.score_columns_.positive
    warn_of_backwards(backwards, known.classes, positive, stacklevel=1)
    warn_of_unseen(found.unseen, table)
    seen = found.overlap.to_dict()
    warn_of_training_rows(seen)
    if as_json:
        plain = {
            "model": model,
            "table": table,
            "rows": len(found.y),
            "unseen": found.unseen.to_list(),
            "training_rows": {name: seen[name] for name in ("status", "share")},
            "measures": figures,
        }
        click.echo(json.dumps(plain, indent=2))
        return
    from rich.console import Console

    click.echo(f"{len(found.y):,} rows of {table}:")
    Console().print(as_table(figures))


def measure(y: Any, before: Any, after: Any, classes: Any, weights: Any) -> Figures:
    """Every metric of the uncalibrated and of the calibrated probabilities."""
    n_rows = len(y) if weights is None else int((weights > 0.0).sum())
    bins = {"expected_calibration_error": {"n_bins": bins_for(n_rows)}}
    return {
        name: {
            when: metric(y, p, labels=classes, sample_weight=weights, **bins.get(name, {}))
            for when, p in (("uncalibrated", before), ("calibrated", after))
        }
        for name, (_, metric) in _METRICS.items()
    }


def as_table(figures: Figures) -> Table:
    """The metrics as a table for the terminal."""
    from rich.table import Table

    table = Table("lower is better")
    table.add_column("uncalibrated", justify="right")
    table.add_column("calibrated", justify="right")
    for name, (title, _) in _METRICS.items():
        row = figures[name]
        table.add_row(title, f"{row['uncalibrated']:.4f}", f"{row['calibrated']:.4f}")
    return table
