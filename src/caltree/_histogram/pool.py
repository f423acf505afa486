"""Chunks of rows, wherever they are: states of the chunks, and sums over them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeGuard, TypeVar, cast

import numpy as np
import numpy.typing as npt

from .._running.threads import count_threads, run_in_threads
from .chunk import Chunk, Plan
from .storing import Folder, Stored, load

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


class QueryOfOne(Protocol[StateIn, ResultOut]):
    """A query that has a quicker way if all rows are in one chunk."""

    def answer(self, plan: Plan, chunk: Chunk, state: StateIn) -> ResultOut:
        """Return the result for the rows of this chunk."""


@dataclass(frozen=True)
class Several(Generic[State]):
    """Several queries at once."""

    queries: tuple[Query[State, Any], ...]

    def zeros(self, plan: Plan) -> Wholes:
        return np.concatenate([query.zeros(plan).ravel() for query in self.queries])

    def add(self, plan: Plan, chunk: Chunk, state: State, total: Wholes) -> None:
        for query, part in zip(self.queries, self._parts(plan, total), strict=True):
            query.add(plan, chunk, state, part)

    def finish(self, plan: Plan, total: Wholes) -> list[Any]:
        parts = zip(self.queries, self._parts(plan, total), strict=True)
        return [query.finish(plan, part) for query, part in parts]

    def _parts(self, plan: Plan, total: Wholes) -> list[Wholes]:
        """Return the sums of each query, as views."""
        shapes = [query.zeros(plan).shape for query in self.queries]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        parts = np.split(total, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


Program: TypeAlias = Generator[Query[State, Any] | Step[State, State] | float, Any, Result]
"""Asks chunks one question after another, and returns a result.

It yields a query, whose result is sent back; a step, which all chunks take; or the share of its
work that is done. It must be a function of the plan and of the answers alone: it may be run again.
"""


class Pool(ABC, Generic[State]):
    """Chunks of rows, each with a state, somewhere."""

    is_far: ClassVar[bool]
    """Whether each question takes a way there and back: then it is better to ask several at once,
    even some that turn out not to be needed."""

    @abstractmethod
    def advance(self, step: Step[State, Next]) -> Pool[Next]:
        """Return the same chunks with their next states."""

    @abstractmethod
    def total(self, query: Query[State, Result]) -> Result:
        """Return the result of a query over all chunks."""

    @abstractmethod
    def run(
        self, program: Callable[[Plan], Program[State, Result]], tell: Callable[[float], None]
    ) -> tuple[Result, Pool[State]]:
        """Return the result of a program, and the chunks with the states in which it left them.

        `tell` is told which share of the work is done.
        """


def is_step(asked: Step[State, State] | Query[State, Any]) -> TypeGuard[Step[State, State]]:
    """Tell a step from a query."""
    return hasattr(asked, "advance")


def can_answer(query: Query[State, Result]) -> TypeGuard[QueryOfOne[State, Result]]:
    """Whether a query has a quicker way if all rows are in one chunk."""
    return hasattr(query, "answer")


def add_up(query: Query[State, Any], plan: Plan, chunks: Iterable[tuple[Chunk, State]]) -> Wholes:
    """Return the sum over some chunks."""
    total = query.zeros(plan)
    for chunk, state in chunks:
        query.add(plan, chunk, state, total)
    return total


class LocalPool(Pool[State]):
    """Chunks in this process, worked on by threads; in files, if there is a folder for them."""

    is_far = False

    def __init__(
        self,
        plan: Plan,
        chunks: Sequence[Chunk | Stored[Chunk]],
        states: Sequence[State | Stored[State]],
        n_jobs: int | None,
        folder: Folder | None = None,
    ) -> None:
        self.plan = plan
        self._chunks = list(zip(chunks, states, strict=True))
        self._n_threads = min(count_threads(n_jobs), len(chunks))
        self._folder = folder

    def advance(self, step: Step[State, Next]) -> LocalPool[Next]:
        """Return the same chunks with their next states."""

        def advance(
            held: tuple[Chunk | Stored[Chunk], State | Stored[State]],
        ) -> Next | Stored[Next]:
            state = step.advance(self.plan, load(held[0]), load(held[1]))
            return state if self._folder is None else self._folder.store(state)

        states = run_in_threads(advance, self._chunks, self._n_threads)
        chunks = [rows for rows, _ in self._chunks]
        return LocalPool(self.plan, chunks, states, self._n_threads, self._folder)

    def total(self, query: Query[State, Result]) -> Result:
        """Return the result of a query over all chunks."""
        if len(self._chunks) == 1 and can_answer(query):
            rows, state = self._chunks[0]
            return query.answer(self.plan, load(rows), load(state))

        def add(chunks: Sequence[tuple[Chunk | Stored[Chunk], State | Stored[State]]]) -> Wholes:
            return add_up(query, self.plan, ((load(rows), load(state)) for rows, state in chunks))

        parts = [self._chunks[start :: self._n_threads] for start in range(self._n_threads)]
        total, *others = run_in_threads(add, parts, self._n_threads)
        for other in others:
            total += other
        return query.finish(self.plan, total)

    def run(
        self, program: Callable[[Plan], Program[State, Result]], tell: Callable[[float], None]
    ) -> tuple[Result, LocalPool[State]]:
        """Return the result of a program, and the chunks with the states in which it left them."""
        pool, running = self, program(self.plan)
        answer: Any = None
        while True:
            try:
                asked = running.send(answer)
            except StopIteration as end:
                return end.value, pool
            answer = None
            if isinstance(asked, float):
                tell(asked)
            elif is_step(asked):
                pool = pool.advance(asked)
            else:
                answer = pool.total(cast("Query[State, Any]", asked))
