"""`caltree paper`: the paper's experiments from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .._fitted.files import write_atomically
from .._options import ABOUT_NAMES, names_option
from .published import LEARNERS

if TYPE_CHECKING:
    from .experiment import Done, Plan
    from .render import Table
    from .store import Store

SMALL = (
    "audiology",
    "credit-rating",
    "cylinder-bands",
    "german-credit",
    "mice-protein",
    "mfeat-morph",
    "phishing",
    "pima-diabetes",
    "segment",
    "tic-tac-toe",
    "vote",
    "vowel",
    "yeast",
)
"""Data sets that OpenML has and on which every learner takes seconds, not minutes, a fold."""


@click.group()
def paper() -> None:
    """Carry out the experiments of the paper on calibration trees."""


def _check_folder(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    if given is not None and not Path(given).is_dir():
        raise click.ClickException(f"--data-dir: {given} is not a folder")
    return given


_data_dir_option = click.option(
    "--data-dir",
    type=click.Path(resolve_path=True),
    callback=_check_folder,
    help="A folder of ARFF files, gzip allowed; without it data sets come from OpenML.",
)


_store_option = click.option(
    "--store",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("caltree-paper.sqlite"),
    show_default=True,
    help="The file of results.",
)


@paper.command(epilog=ABOUT_NAMES)
@names_option("--datasets", "Data sets, 'small' or 'all'.", default=["small"])
@names_option("--learners", "Base learners, or 'all'.", default=list(LEARNERS))
@names_option(
    "--calibrators", "Calibrators, or 'all'.", default=["none", "pct", "platt", "isotonic"]
)
@click.option("--runs", type=click.IntRange(1), default=10, show_default=True)
@click.option("--folds", type=click.IntRange(2), default=10, show_default=True)
@click.option(
    "--first-folds",
    type=click.IntRange(1),
    metavar="N",
    help="Only the first N folds of each run, to see what all would cost.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--jobs", type=int, default=1, show_default=True, help="Folds at a time.")
@click.option("--scheduler", help="Address of a Dask scheduler, whose workers do the work.")
@click.option("--quiet", is_flag=True, help="Print only errors.")
@_data_dir_option
@_store_option
def run(
    datasets: tuple[str, ...],
    learners: tuple[str, ...],
    calibrators: tuple[str, ...],
    path: Path,
    **options: Any,
) -> None:
    """Carry out folds and store their results; folds that are stored already are not repeated.

    If the command is stopped at any moment, the next run continues where it was. Two of them may
    share one file. Progress is a bar on a terminal; elsewhere, as in a log, it is a line for each
    fold.
    """
    from .datasets import NAMES, check_available
    from .experiment import Plan
    from .progress import in_words
    from .protocol import ALONE, CALIBRATORS
    from .store import Store

    plan = Plan(
        datasets=_choice("--datasets", datasets, NAMES, {"small": SMALL}),
        learners=_choice("--learners", learners, (*LEARNERS, *ALONE)),
        calibrators=_choice("--calibrators", calibrators, tuple(CALIBRATORS)),
        **{name: options[name] for name in ("runs", "folds", "first_folds", "seed", "data_dir")},
    )
    with _one_line_errors():
        check_available(plan.datasets, plan.data_dir)
        store = Store(path, plan.settings())
        failures = _carry_out(plan, store, options)
    for failure in failures:
        last = failure.error.strip().splitlines()[-1]
        click.echo(f"failed: {in_words(failure.cell)}: {last}", err=True)
    if failures:
        raise click.ClickException(f"folds that failed: {len(failures)}; run it again to retry")


def _carry_out(plan: Plan, store: Store, options: dict[str, Any]) -> list[Done]:
    from .experiment import carry_out, remaining
    from .progress import fold_progress

    n_left, total = len(remaining(plan, store)), len(plan.cells())
    jobs, quiet = {"n_jobs": options["jobs"], "scheduler": options["scheduler"]}, options["quiet"]
    with fold_progress(total - n_left, total, quiet=quiet) as report:
        failures = carry_out(plan, store, **jobs, report=report)
    if not quiet:
        n_done = total - len(remaining(plan, store))
        click.echo(f"{n_done} of {total} folds are in {store.path}", err=True)
    return failures


@paper.command()
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "latex"]),
    default="markdown",
    show_default=True,
    help="The form of the printed tables.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="A folder for the tables as Markdown, LaTeX and CSV.",
)
@click.option(
    "--pooled",
    is_flag=True,
    help="Show the RMSE of all test rows together, not the mean of that of each fold.",
)
@_store_option
def tables(path: Path, form: str, output: Path | None, pooled: bool) -> None:
    """Print tables 1 to 6, ours beside the paper's, and list where they differ."""
    from . import render
    from .store import Store
    from .summary import all_tables

    with _one_line_errors():
        found = all_tables(Store(path), pooled=pooled)
        for table in found.values():
            click.echo(getattr(render, form)(table))
        if output is not None:
            _write_tables(found, output)


def _write_tables(tables: dict[str, Table], folder: Path) -> None:
    from . import render

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        for ending, make in (("tex", render.latex), ("csv", render.comma_separated)):
            write_atomically(folder / f"{name}.{ending}", make(table).encode())
    everything = "\n".join(map(render.markdown, tables.values()))
    write_atomically(folder / "tables.md", everything.encode())


@paper.command(name="export")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@_store_option
def export_results(path: Path, output: Path) -> None:
    """Write all results to OUTPUT, a small JSON file that can be kept and shared."""
    from .exchange import to_text
    from .store import Store

    with _one_line_errors():
        write_atomically(output, to_text(Store(path)).encode())


@paper.command(name="import")
@click.argument("results", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_store_option
def import_results(path: Path, results: Path) -> None:
    """Add the results of RESULTS, a file that `caltree paper export` wrote.

    The tables can then be made, and a run goes on where those results end.
    """
    from .exchange import from_text
    from .store import Store

    with _one_line_errors():
        try:
            from_text(results.read_text(encoding="utf-8"), lambda given: Store(path, given))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"cannot read {results}: {error}") from None


@paper.command(epilog=ABOUT_NAMES)
@names_option(
    "--datasets",
    "Data sets of the whole experiment, 'all', or 'stored': those that have results.",
    default=["stored"],
)
@_store_option
def cost(path: Path, datasets: tuple[str, ...]) -> None:
    """Print what the experiments cost: measured, and estimated where nothing was measured.

    One fold of each data set is enough: `caltree paper run --datasets all --runs 1
    --first-folds 1`.
    """
    from . import render
    from .cost import cost_of_all, cost_summary
    from .datasets import NAMES
    from .store import Store

    with _one_line_errors():
        store = Store(path)
        stored = tuple(store.datasets())
        chosen = _choice("--datasets", datasets, NAMES, {"stored": stored})
        for table in (cost_summary(store), cost_of_all(store, chosen)):
            click.echo(render.markdown(table))


@paper.command()
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("caltree-paper-figures"),
    show_default=True,
    help="The folder.",
)
@click.option(
    "--format",
    "ending",
    type=click.Choice(["png", "pdf", "svg"]),
    default="png",
    show_default=True,
)
@_data_dir_option
def figures(output: Path, ending: str, data_dir: str | None) -> None:
    """Draw the reliability diagrams, the artificial example and the tree of RDG1."""
    import io

    from .datasets import check_available, load
    from .figures import DIAGRAMS, artificial_figure, reliability_figure, tree_figure

    with _one_line_errors():
        import matplotlib  # noqa: F401  # asked for before any work is done

        check_available(DIAGRAMS, data_dir)
        data = {name: load(name, data_dir) for name in DIAGRAMS}
        output.mkdir(parents=True, exist_ok=True)
        for name, figure in (
            ("reliability", reliability_figure(data)),
            ("artificial", artificial_figure()),
            ("tree", tree_figure()),
        ):
            picture = io.BytesIO()
            figure.savefig(picture, format=ending)
            write_atomically(output / f"{name}.{ending}", picture.getvalue())
            click.echo(output / f"{name}.{ending}")


def _choice(
    option: str,
    given: tuple[str, ...],
    known: tuple[str, ...],
    sets: dict[str, tuple[str, ...]] | None = None,
) -> tuple[str, ...]:
    named = {"all": known, **(sets or {})}
    if len(given) == 1 and given[0] in named:
        return named[given[0]]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise click.BadParameter(
            f"{', '.join(unknown)} is not among {', '.join(known)}; give names of these, or "
            f"{' or '.join(named)}",
            click.get_current_context(),
            param_hint=f"'{option}'",
        )
    return given


@contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        remedy = 'run: pip install "caltree[paper]"'
        raise click.ClickException(f"{error.name} is not installed; {remedy}") from None
    except (OSError, ValueError, ImportError) as error:
        raise click.ClickException(" ".join(str(error).split())) from None
