"""`caltree demo`: a naive Bayes model of made-up loans, calibrated in all the usual ways."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._fitted.files import write_atomically
from .errors import CommandError, writing
from .io.targets import check_target

if TYPE_CHECKING:
    from rich.table import Table

    from .demo_data import Comparison

_ENDINGS = (".png", ".pdf", ".svg")


@click.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=Path("caltree-demo.png"),
    show_default=True,
    help="Where to write the picture; the ending says what kind.",
)
@click.option("--no-plot", is_flag=True, help="Draw no picture.")
def demo(output: Path, no_plot: bool) -> None:
    """Calibrate a naive Bayes model of made-up loans and compare with the usual ways.

    Nothing is downloaded, and the figures are those of loans that were held out.
    """
    file_format = None if no_plot else _picture_format(output)
    comparison = _compare()
    _show(comparison)
    if file_format is not None:
        from .demo_data import draw

        picture = draw(comparison, file_format)
        with writing(str(output)):
            write_atomically(output, picture)
        click.echo(f"\nReliability diagrams: {output}")


def _picture_format(output: Path) -> str:
    """The format of the picture by its ending, checked before any work is done."""
    import matplotlib  # noqa: F401  # asked for before any work is done

    ending = output.suffix.lower()
    if ending not in _ENDINGS:
        raise CommandError(f"cannot write {output}: its name must end in .png, .pdf or .svg")
    check_target(str(output))
    return ending.removeprefix(".")


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
        f"default.\nWhat its probabilities are worth on {len(comparison.test.y):,} held-out "
        "loans (lower is better):\n"
    )
    Console().print(_table(comparison))
    click.echo("\nThe calibration tree, and what it makes of the scores of naive Bayes:\n")
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
