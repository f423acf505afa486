"""Progress of the experiment: a bar on a terminal, and elsewhere, as in a log, lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import click
from rich.progress import MofNCompleteColumn

from .._running.bars import bar, terminal
from .experiment import Done
from .store import Cell


@contextmanager
def fold_progress(n_done: int, n_folds: int, *, quiet: bool) -> Iterator[Callable[[Done], None]]:
    """A function to call with every fold that is finished, of those not done before."""
    if not quiet and terminal(quiet).quiet:
        yield _Lines(n_done, n_folds).add
        return
    count = MofNCompleteColumn()
    with bar("reading data sets", count, total=n_folds, done=n_done, quiet=quiet) as update:
        yield lambda done: update(advance=1, description=in_words(done.cell))


def in_words(cell: Cell) -> str:
    """A fold, as people count."""
    return f"{cell.dataset}, {cell.learner}, run {cell.run + 1}, fold {cell.fold + 1}"


class _Lines:
    """A line for each fold: the seconds of the processor that it took, and what is left."""

    def __init__(self, n_done: int, n_folds: int) -> None:
        self._n_before = self._n_done = n_done
        self._n_folds = n_folds
        self._began = time.monotonic()

    def add(self, done: Done) -> None:
        self._n_done += 1
        a_fold = (time.monotonic() - self._began) / (self._n_done - self._n_before)
        left = timedelta(seconds=round(a_fold * (self._n_folds - self._n_done)))
        took = f"{sum(done.outcome.seconds.values()):.1f} s" if done.outcome else "failed"
        counted = f"{self._n_done} of {self._n_folds}"
        click.echo(f"{in_words(done.cell)}: {took}, {counted}, left: {left}", err=True)
