"""Chunks of rows, wherever they are: states of the chunks, and sums over them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .._running.threads import count_threads, run_in_threads
from .chunk import Chunk, Plan

Wholes: TypeAlias = npt.NDArray[np.int64]
State = TypeVar("State")
Next = TypeVar("Next")
Result = TypeVar("Result")
StateIn = TypeVar("StateIn", contravariant=True)
NextOut = TypeVar("NextOut", covariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)


class Step(Protocol[StateIn, NextOut]):
    """Makes a new state of a chunk; it changes nothing that it is given."""

    def advance(self, plan: Plan, chunk: Chunk, state: StateIn) -> NextOut:
        """Return the next state of a chunk."""


class Query(Protocol[StateIn, ResultOut]):
    """A sum over all rows, in whole numbers, and the result that is made of it."""

    def zeros(self, plan: Plan) -> Wholes:
        """Return the sum over no rows."""

    def add(self, plan: Plan, chunk: Chunk, state: StateIn, total: Wholes) -> None:
        """Add the rows of a chunk, in place."""

    def finish(self, plan: Plan, total: Wholes) -> ResultOut:
        """Return the result, given the sum over all rows."""


class Pool(ABC, Generic[State]):
    """Chunks of rows, each with a state, somewhere."""

    @abstractmethod
    def advance(self, step: Step[State, Next]) -> Pool[Next]:
        """Return the same chunks with their next states."""

    @abstractmethod
    def total(self, query: Query[State, Result]) -> Result:
        """Return the result of a query over all chunks."""


def add_up(query: Query[State, Any], plan: Plan, chunks: Sequence[tuple[Chunk, State]]) -> Wholes:
    """Return the sum over some chunks."""
    total = query.zeros(plan)
    for chunk, state in chunks:
        query.add(plan, chunk, state, total)
    return total


class LocalPool(Pool[State]):
    """Chunks in this process, worked on by threads."""

    def __init__(
        self, plan: Plan, chunks: Sequence[Chunk], states: Sequence[State], n_jobs: int | None
    ) -> None:
        self.plan = plan
        self._chunks = list(zip(chunks, states, strict=True))
        self._n_threads = min(count_threads(n_jobs), len(chunks))

    def advance(self, step: Step[State, Next]) -> LocalPool[Next]:
        """Return the same chunks with their next states."""

        def advance(chunk: tuple[Chunk, State]) -> Next:
            return step.advance(self.plan, *chunk)

        states = run_in_threads(advance, self._chunks, self._n_threads)
        return LocalPool(self.plan, [rows for rows, _ in self._chunks], states, self._n_threads)

    def total(self, query: Query[State, Result]) -> Result:
        """Return the result of a query over all chunks."""

        def add(chunks: Sequence[tuple[Chunk, State]]) -> Wholes:
            return add_up(query, self.plan, chunks)

        parts = [self._chunks[start :: self._n_threads] for start in range(self._n_threads)]
        total, *others = run_in_threads(add, parts, self._n_threads)
        for other in others:
            total += other
        return query.finish(self.plan, total)
