"""Progress of long work, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from .._running.progress import showing


@contextmanager
def progress(what: str, n_rows: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar, or a count of rows if there is no total. Silent unless on a terminal."""
    console = _console(quiet)
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
    ]
    if n_rows is not None:
        columns += [TextColumn("left:"), TimeRemainingColumn()]
    with Progress(*columns, console=console, disable=console.quiet) as bar:
        task = bar.add_task(what, total=n_rows)
        yield lambda n: bar.update(task, advance=n)


@contextmanager
def fit_bar(what: str, *, quiet: bool) -> Iterator[None]:
    """A bar of the share of a fit that is done, and the time left. Silent unless on a terminal."""
    console = _console(quiet)
    columns = [
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console, disable=console.quiet) as bar:
        task = bar.add_task(what, total=1.0)
        with showing(lambda share: bar.update(task, completed=share)):
            yield


@contextmanager
def busy(what: str, *, quiet: bool) -> Iterator[None]:
    """A spinner while work is done. Silent unless on a terminal."""
    with _console(quiet).status(what):
        yield


def _console(quiet: bool) -> Console:
    """Standard error, silent unless it is a terminal: some versions of rich print an empty line."""
    console = Console(stderr=True)
    console.quiet = quiet or not console.is_terminal
    return console
