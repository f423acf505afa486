"""Bars of long work on standard error, shown on a terminal alone; commands alone import this."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


@contextmanager
def bar(
    what: str, count: ProgressColumn, *, total: float | None, done: int = 0, quiet: bool
) -> Iterator[Callable[..., None]]:
    """A bar with a count and, if there is a total, the time left. Silent unless on a terminal.

    It yields rich's `Progress.update` of this bar.
    """
    console = terminal(quiet)
    columns = [TextColumn("{task.description}"), BarColumn(), count, TimeElapsedColumn()]
    if total is not None:
        columns += [TextColumn("left:"), TimeRemainingColumn()]
    with Progress(*columns, console=console, disable=console.quiet) as shown:
        task = shown.add_task(what, total=total, completed=done)
        yield partial(shown.update, task)


def terminal(quiet: bool) -> Console:
    """Standard error, silent unless it is a terminal: some versions of rich print an empty line."""
    console = Console(stderr=True)
    console.quiet = quiet or not console.is_terminal
    return console
