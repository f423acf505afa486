"""`caltree demo`: a naive Bayes model of made-up loans, calibrated by several methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._fitted.files import write_atomically
from .errors import CommandError, writing
from .io.targets import check_target
from .report import check_report

if TYPE_CHECKING:
    from rich.table import Table

    from .demo_data import Comparison

_ENDINGS = (".png", ".pdf", ".svg")


def _file_option(name: str, default: str, help: str) -> Callable[[Any], Any]:
    kind = click.Path(path_type=Path)
    return click.option(name, type=kind, default=Path(default), show_default=True, help=help)


@click.command(short_help="Calibrate a model of made-up loans, and show the gain.")
@_file_option("--plot", "caltree-demo.png", "Where to write the picture: .png, .pdf or .svg.")
@_file_option("--report", "caltree-demo.html", "Where to write the report on the tree.")
@_file_option("--table", "caltree-demo.csv", "Where to write the held-out loans with their scores.")
@click.option("--no-files", is_flag=True, help="Print only; write no file.")
def demo(plot: Path, report: Path, table: Path, no_files: bool) -> None:
    """Calibrate a naive Bayes model of made-up loans, and compare calibrators.

    Nothing is downloaded. All figures are measured on held-out loans. The table is for trying the
    other commands.
    """
    file_format = "" if no_files else _check_files(plot, report, table)
    comparison = _compare()
    _show(comparison)
    if not no_files:
        _write(comparison, plot, file_format, report, table)


def _check_files(plot: Path, report: Path, table: Path) -> str:
    """Check the files before any work is done; return the format of the picture."""
    import matplotlib  # noqa: F401  # asked for before any work is done

    ending = plot.suffix.lower()
    if ending not in _ENDINGS:
        raise CommandError(f"cannot write {plot}: its name must end in .png, .pdf or .svg")
    check_report(str(report))
    for path in (plot, report, table):
        check_target(str(path))
    return ending.removeprefix(".")


def _write(comparison: Comparison, plot: Path, file_format: str, report: Path, table: Path) -> None:
    from .demo_data import LABEL, SCORES, draw, make_csv, make_report

    contents = {
        plot: draw(comparison, file_format),
        report: make_report(comparison),
        table: make_csv(comparison),
    }
    for path, content in contents.items():
        with writing(str(path)):
            write_atomically(path, content)
    click.echo(
        f"\nReliability diagrams: {plot}\n"
        f"Report on the tree, to open in a browser: {report}\n"
        f"The held-out loans with their scores: {table}\n"
        f"Try: caltree audit {table} --label {LABEL} --scores {SCORES}"
    )


def _compare() -> Comparison:
    from rich.console import Console

    with Console(stderr=True).status("Calibrating ..."):
        from .demo_data import compare

        return compare()


def _show(comparison: Comparison) -> None:
    from rich.console import Console

    from .demo_data import N_TRAINING

    click.echo(
        f"{N_TRAINING:,} made-up loans: a naive Bayes model estimates the probability of a "
        f"default.\nErrors of its probabilities on {len(comparison.test.y):,} held-out "
        "loans (lower is better):\n"
    )
    Console().print(_table(comparison))
    click.echo("\nThe calibration tree:\n")
    click.echo(comparison.tree.to_text())


def _table(comparison: Comparison) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table("probabilities", caption="* the best calibrator", caption_justify="left")
    table.add_column("RMSE", justify="right")
    table.add_column("log loss", justify="right")
    best = [min(column) for column in zip(*map(astuple, comparison.quality.values()), strict=True)]
    for name, quality in comparison.quality.items():
        cells = [
            Text(f"{figure:.4f} *", style="bold green")
            if figure == lowest
            else Text(f"{figure:.4f}  ")
            for figure, lowest in zip(astuple(quality), best, strict=True)
        ]
        table.add_row(name, *cells)
    table.add_section()
    attainable = [f"{figure:.4f}  " for figure in astuple(comparison.attainable)]
    table.add_row("the true probabilities", *attainable, style="dim")
    return table
