"""Chunks of rows on the workers of a cluster.

Every worker keeps its rows, as one group for each of its threads. A question goes to the groups,
and its answers are merged among the workers. A program, which asks many, makes its decisions there,
too (see `running`), and is looked at now and then. Everything that a task needs is made by other
tasks, so that what is lost with a worker is made again by the scheduler.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

from dask.sizeof import sizeof
from distributed import Future, wait

from .._histogram.chunk import Chunk, Plan
from .._histogram.pool import Next, Pool, Program, Query, Result, State, Step, Wholes, add_up
from .running import Running
from .tasks import Tasks

Group: TypeAlias = tuple[Chunk, ...]

# How many sums are merged at a time.
_AT_ONCE = 8
# A query up to this size goes along with each task, which spares a step; the scheduler sends a
# larger one to one worker only, from which the others fetch it.
_MOST_BYTES_ALONG = 2**14
# Of a program so much is handed in ahead: rounds of one step and some queries. A level of growing
# trees is a round: rows go to its nodes, whose models are fitted in 5 queries at most if no step of
# Newton's method is halved, and then split. What is not needed costs next to nothing.
_QUERIES_OF_ROUND, _ROUNDS_AHEAD = 6, 4


def _size_of_chunk(chunk: Chunk) -> int:
    """Tell the scheduler how large chunks are, so it does not move them around."""
    return sum(sizeof(getattr(chunk, each.name)) for each in fields(chunk))


sizeof.register(Chunk, _size_of_chunk)


class DaskPool(Pool[State]):
    """Chunks on the workers of a cluster, with the plan that they were made by."""

    is_far = True

    def __init__(
        self,
        tasks: Tasks,
        plan: Future,
        groups: Sequence[Future],
        states: Sequence[Any],
        home: str | None,
    ) -> None:
        self._tasks = tasks
        self._home = home  # the worker where programs run, if it is known
        self._plan = plan
        self._groups = groups
        self._states = states

    @classmethod
    def of_chunks(cls, tasks: Tasks, plan: Future, chunks: Sequence[Future]) -> DaskPool[None]:
        """Group the chunks of each worker; they have no states yet."""
        groups, home = _group_by_worker(tasks, chunks)
        return DaskPool(tasks, plan, groups, [None] * len(groups), home)

    def advance(self, step: Step[State, Next]) -> DaskPool[Next]:
        """Return the same chunks with their next states."""
        return self._with(self._map(_advance, self._send(step)))

    def total(self, query: Query[State, Result]) -> Result:
        """Return the result of a query over all chunks."""
        sent = self._send(query)
        sums = merge_down(self._tasks, self._map(_add_up, sent), _sum)
        result = self._tasks.submit(_finish, sent, self._plan, *sums)
        found: Result = result.result()
        return found

    def run(
        self, program: Callable[[Plan], Program[State, Result]], tell: Callable[[float], None]
    ) -> tuple[Result, DaskPool[State]]:
        """Return the result of a program, and the chunks with the states in which it left them."""
        pool, running = self, self._decide(Running.begin, program, self._plan)
        while True:
            for _ in range(_ROUNDS_AHEAD):
                pool, running = pool._run_round(running)
            share, ended, result = self._decide(_look_at, running).result()
            tell(share)
            if ended:
                return result, pool

    def _run_round(self, running: Future) -> tuple[DaskPool[State], Future]:
        """Hand in a step, if the program wants one, and some queries."""
        pool: DaskPool[State] = self._with(self._map(_advance, self._decide(_step_of, running)))
        running = self._decide(_after_step, running, self._plan)
        for _ in range(_QUERIES_OF_ROUND):
            query = self._decide(_query_of, running)
            sums = merge_down(self._tasks, pool._map(_add_up, query), _sum)
            running = self._decide(_after_query, running, self._plan, *sums)
        return pool, running

    def _decide(self, function: Callable[..., Any], *given: Any) -> Future:
        """Call a function of a program where all others were: elsewhere it would begin again."""
        return self._tasks.submit(function, *given, **_near(self._home))

    def _with(self, states: Sequence[Any]) -> DaskPool[Any]:
        return DaskPool(self._tasks, self._plan, self._groups, states, self._home)

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


def _group_by_worker(tasks: Tasks, chunks: Sequence[Future]) -> tuple[list[Future], str | None]:
    """Return the chunks of each worker, in as many groups as it has threads, and one worker."""
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
        near = _near(worker if worker in threads else None)
        groups += [
            tasks.submit(_group, *some[start::n_groups], **near) for start in range(n_groups)
        ]
    return groups, min(threads, default=None)


def _near(worker: str | None) -> dict[str, Any]:
    """Options of a task that is to be done by a worker, or by another if that is lost."""
    return {} if worker is None else {"workers": [worker], "allow_other_workers": True}


def _same(value: Any) -> Any:
    return value


def _group(*chunks: Chunk) -> Group:
    return chunks


def _with_states(group: Group, states: Any) -> list[tuple[Chunk, Any]]:
    before = [None] * len(group) if states is None else states
    return list(zip(group, before, strict=True))


def _advance(group: Group, states: Any, sent: Step[Any, Any] | None, plan: Plan) -> Any:
    if sent is None:
        return states
    return tuple(sent.advance(plan, *pair) for pair in _with_states(group, states))


def _add_up(group: Group, states: Any, sent: Query[Any, Any] | None, plan: Plan) -> Wholes | None:
    return None if sent is None else add_up(sent, plan, _with_states(group, states))


def _sum(*sums: Wholes | None) -> Wholes | None:
    """Add up what groups answered; None if they were not asked."""
    known = [each for each in sums if each is not None]
    if len(known) <= 1:
        return known[0] if known else None
    total = known[0].copy()
    for other in known[1:]:
        total += other
    return total


def _finish(query: Query[Any, Result], plan: Plan, *sums: Wholes) -> Result:
    total = _sum(*sums)
    assert total is not None  # they were asked
    return query.finish(plan, total)


def _step_of(running: Running[Any]) -> Step[Any, Any] | None:
    return running.step


def _query_of(running: Running[Any]) -> Query[Any, Any] | None:
    return running.query


def _after_step(running: Running[Any], plan: Plan) -> Running[Any]:
    return running if running.step is None else running.go_on(plan, None)


def _after_query(running: Running[Any], plan: Plan, *sums: Wholes) -> Running[Any]:
    query = running.query
    return running if query is None else running.go_on(plan, _finish(query, plan, *sums))


def _look_at(running: Running[Result]) -> tuple[float, bool, Result | None]:
    """Return the share of the work that is done, whether that is all, and the result."""
    return running.share, running.asked is None, running.result
