"""Chunks of rows on the workers of a cluster.

Every worker keeps its rows, as one group for each of its threads. A question goes to the groups,
and its answers are merged among the workers. Everything that a task needs is made by other tasks,
so that what is lost with a worker is made again by the scheduler.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

from dask.sizeof import sizeof
from distributed import Future, wait

from .._histogram.chunk import Chunk, Plan
from .._histogram.pool import Next, Pool, Query, Result, State, Step, Wholes, add_up
from .tasks import Tasks

Group: TypeAlias = tuple[Chunk, ...]

# How many sums are merged at a time.
_AT_ONCE = 8
# A query up to this size goes along with each task, which spares a step; the scheduler sends a
# larger one to one worker only, from which the others fetch it.
_MOST_BYTES_ALONG = 2**14


def _size_of_chunk(chunk: Chunk) -> int:
    """Tell the scheduler how large chunks are, lest it send them around."""
    return sum(sizeof(getattr(chunk, each.name)) for each in fields(chunk))


sizeof.register(Chunk, _size_of_chunk)


class DaskPool(Pool[State]):
    """Chunks on the workers of a cluster, with the plan that they were made by."""

    def __init__(
        self, tasks: Tasks, plan: Future, groups: Sequence[Future], states: Sequence[Any]
    ) -> None:
        self._tasks = tasks
        self._plan = plan
        self._groups = groups
        self._states = states

    @classmethod
    def of_chunks(cls, tasks: Tasks, plan: Future, chunks: Sequence[Future]) -> DaskPool[None]:
        """Group the chunks of each worker; they have no states yet."""
        groups = _group_by_worker(tasks, chunks)
        return DaskPool(tasks, plan, groups, [None] * len(groups))

    def advance(self, step: Step[State, Next]) -> DaskPool[Next]:
        """Return the same chunks with their next states."""
        states = self._map(_advance, self._send(step))
        return DaskPool(self._tasks, self._plan, self._groups, states)

    def total(self, query: Query[State, Result]) -> Result:
        """Return the result of a query over all chunks."""
        sent = self._send(query)
        sums = merge_down(self._tasks, self._map(_add_up, sent), _sum)
        result = self._tasks.submit(_finish, sent, self._plan, *sums)
        found: Result = result.result()
        return found

    def _map(self, function: Callable[..., Any], sent: Any) -> list[Future]:
        """Call a function for every group."""
        futures: list[Future] = self._tasks.map(
            function, self._groups, self._states, sent=sent, plan=self._plan
        )
        return futures

    def _send(self, value: Any) -> Any:
        """Return a step or query as it goes to the groups."""
        small = len(pickle.dumps(value)) <= _MOST_BYTES_ALONG
        return value if small else hold(self._tasks, value)


def hold(tasks: Tasks, value: Any) -> Future:
    """Return a value that a task holds: were it scattered, it could be lost."""
    return tasks.submit(_same, value)


def merge(tasks: Tasks, answers: Sequence[Future], function: Callable[..., Any]) -> Future:
    """Merge several answers by a function, some at a time, wherever they are."""
    return tasks.submit(function, *merge_down(tasks, answers, function))


def merge_down(
    tasks: Tasks, answers: Sequence[Future], function: Callable[..., Any]
) -> list[Future]:
    """Merge answers until few enough are left to merge at once."""
    left = list(answers)
    while len(left) > _AT_ONCE:
        left = [
            tasks.submit(function, *left[begin : begin + _AT_ONCE])
            for begin in range(0, len(left), _AT_ONCE)
        ]
    return left


def _group_by_worker(tasks: Tasks, chunks: Sequence[Future]) -> list[Future]:
    """Return the chunks of each worker, in as many groups as it has threads."""
    wait(chunks)
    where = tasks.client.who_has(list(chunks))
    of_worker: dict[str, list[Future]] = {}
    for chunk in chunks:
        holders = where.get(chunk.key) or ("",)
        of_worker.setdefault(sorted(holders)[0], []).append(chunk)
    threads = tasks.client.nthreads()
    groups = []
    for worker, some in sorted(of_worker.items()):
        n_groups = min(len(some), threads.get(worker, 1))
        near = {"workers": [worker], "allow_other_workers": True} if worker in threads else {}
        groups += [
            tasks.submit(_group, *some[start::n_groups], **near) for start in range(n_groups)
        ]
    return groups


def _same(value: Any) -> Any:
    return value


def _group(*chunks: Chunk) -> Group:
    return chunks


def _with_states(group: Group, states: Any) -> list[tuple[Chunk, Any]]:
    before = [None] * len(group) if states is None else states
    return list(zip(group, before, strict=True))


def _advance(group: Group, states: Any, sent: Step[Any, Any], plan: Plan) -> tuple[Any, ...]:
    return tuple(sent.advance(plan, *pair) for pair in _with_states(group, states))


def _add_up(group: Group, states: Any, sent: Query[Any, Any], plan: Plan) -> Wholes:
    return add_up(sent, plan, _with_states(group, states))


def _sum(*sums: Wholes) -> Wholes:
    if len(sums) == 1:
        return sums[0]
    total = sums[0].copy()
    for other in sums[1:]:
        total += other
    return total


def _finish(query: Query[Any, Result], plan: Plan, *sums: Wholes) -> Result:
    return query.finish(plan, _sum(*sums))
