"""Progress of a fit: its stages, which `verbose` prints and the command shows as a bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Show = Callable[[float], None]
"""Shows the share of the work that is done."""


@dataclass
class _Progress:
    """The progress of one fit, and who is told of it."""

    name: str | None = None
    """Of the estimator whose stages are printed; None for none."""
    show: Show | None = None
    done: float = 0.0
    """The share of the work that finished stages had."""


_current: ContextVar[_Progress] = ContextVar("progress")


class Stage:
    """A part of a fit."""

    def __init__(self, progress: _Progress, share: float) -> None:
        self._progress = progress
        self._share = share
        self._began = time.perf_counter()

    def reach(self, part: float) -> None:
        """Tell that a part of this stage, from 0 to 1, is done."""
        progress = self._progress
        if progress.show is not None:
            progress.show(min(1.0, progress.done + part * self._share))

    def part(self, number: int, n_parts: int) -> Show:
        """Return a function that tells how much of one of several equal parts is done."""
        return lambda part: self.reach((number + part) / n_parts)

    def say(self, what: str) -> None:
        """Print what was done, and how long it took since the stage began."""
        if self._progress.name is not None:
            seconds = time.perf_counter() - self._began
            print(f"[{self._progress.name}] {what} in {seconds:.1f} s", flush=True)


@contextmanager
def stage(share: float) -> Iterator[Stage]:
    """A stage of the fit at hand that takes about this share of its time."""
    progress = _current.get(_Progress())
    this = Stage(progress, share)
    yield this
    this.reach(1.0)
    progress.done += share


@contextmanager
def fitting(estimator: object, verbose: int) -> Iterator[None]:
    """The fit of an estimator, which prints its stages if it is verbose."""
    name = type(estimator).__name__ if verbose else None
    with _set(_Progress(name, _current.get(_Progress()).show)):
        yield


@contextmanager
def showing(show: Show) -> Iterator[None]:
    """Show the progress of the fit that is made meanwhile."""
    with _set(_Progress(show=show)):
        yield


@contextmanager
def _set(progress: _Progress) -> Iterator[None]:
    before = _current.set(progress)
    try:
        yield
    finally:
        _current.reset(before)
