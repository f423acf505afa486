"""Progress of long work, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import TaskProgressColumn, TextColumn

from .._running.bars import bar, terminal
from .._running.progress import showing


@contextmanager
def progress(what: str, n_rows: int | None, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A progress bar, or a count of rows if there is no total. Silent unless on a terminal."""
    count = TextColumn("{task.completed:,} rows")
    with bar(what, count, total=n_rows, quiet=quiet) as update:
        yield lambda n: update(advance=n)


@contextmanager
def fit_bar(what: str, *, quiet: bool) -> Iterator[None]:
    """A bar of the share of a fit that is done, and the time left. Silent unless on a terminal."""
    with (
        bar(what, TaskProgressColumn(), total=1.0, quiet=quiet) as update,
        showing(lambda share: update(completed=share)),
    ):
        yield


@contextmanager
def busy(what: str, *, quiet: bool) -> Iterator[None]:
    """A spinner while work is done. Silent unless on a terminal."""
    with terminal(quiet).status(what):
        yield
