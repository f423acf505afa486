"""Where chunks of rows are, and how they are asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeAlias, TypeVar

from joblib import effective_n_jobs

from .chunk import Rows, Wholes, histograms
from .plan import Plan

Question: TypeAlias = Callable[[Plan, Rows, Any, Any], Any]
Finish: TypeAlias = Callable[[Plan, Wholes, Any], Any]
Item = TypeVar("Item")
Result = TypeVar("Result")


class Pool(Protocol):
    """Chunks of rows, each with a state, somewhere."""

    def fresh(self) -> Pool:
        """The same chunks, with states of their own."""

    def update(self, question: Question, message: Any = None) -> None:
        """Put the answer of every chunk in the place of its state."""

    def total(self, question: Question, message: Any = None, finish: Finish | None = None) -> Any:
        """The sum of all answers; or what `finish` makes of it, given the plan and the message."""


def total_of(
    question: Question, plan: Plan, chunks: Sequence[tuple[Rows, Any]], message: Any
) -> Wholes:
    """The sum of the answers of some chunks."""
    total = None
    for rows, state in chunks:
        if question is histograms:
            total = histograms(plan, rows, state, message, total)
        elif total is None:
            total = question(plan, rows, state, message)
        else:
            total += question(plan, rows, state, message)
    if total is None:
        raise ValueError("there are no chunks to ask")
    return total


class LocalPool:
    """Chunks in this process, worked on by threads."""

    def __init__(self, plan: Plan, chunks: Sequence[Rows], n_jobs: int | None) -> None:
        self.plan = plan
        self._chunks = chunks
        self._states: list[Any] = [None] * len(chunks)
        self._threads = min(effective_n_jobs(n_jobs), len(chunks))

    def fresh(self) -> LocalPool:
        """The same chunks, with states of their own."""
        return LocalPool(self.plan, self._chunks, self._threads)

    def update(self, question: Question, message: Any = None) -> None:
        """Put the answer of every chunk in the place of its state."""

        def answer(chunk: tuple[Rows, Any]) -> Any:
            return question(self.plan, *chunk, message)

        self._states = in_threads(answer, self._all(), self._threads)

    def total(self, question: Question, message: Any = None, finish: Finish | None = None) -> Any:
        """The sum of all answers; or what `finish` makes of it, given the plan and the message."""

        def add_up(chunks: Sequence[tuple[Rows, Any]]) -> Wholes:
            return total_of(question, self.plan, chunks, message)

        every = self._all()
        shares = [every[start :: self._threads] for start in range(self._threads)]
        total, *others = in_threads(add_up, shares, self._threads)
        for other in others:
            total += other
        return total if finish is None else finish(self.plan, total, message)

    def _all(self) -> list[tuple[Rows, Any]]:
        return list(zip(self._chunks, self._states, strict=True))


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], n_threads: int
) -> list[Result]:
    """What a function makes of each item.

    Not joblib's threads, which are waited for in steps of ten milliseconds: there are hundreds of
    questions, and most of them are answered sooner.
    """
    if n_threads == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(n_threads) as executor:
        return list(executor.map(function, items))
