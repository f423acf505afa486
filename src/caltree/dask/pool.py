"""Chunks of rows on the workers of a cluster.

Every worker keeps its rows, as one group for each of its threads. A question goes to the groups,
and its answers are merged among the workers. Everything that a task needs is made by other tasks,
so that what is lost with a worker is made again by the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

from dask.sizeof import sizeof
from distributed import Client, Future, wait

from ..histogram.chunks import Rows, Wholes
from ..histogram.plan import Plan
from ..histogram.pools import Finish, Question, total_of

Group: TypeAlias = tuple[Rows, ...]

# How many answers are merged at a time.
_AT_ONCE = 8


def _size_of_rows(rows: Rows) -> int:
    """The scheduler shall know how large they are, lest it send them around."""
    return sum(sizeof(getattr(rows, each.name)) for each in fields(rows))


sizeof.register(Rows, _size_of_rows)


class DaskPool:
    """Chunks on the workers of a cluster."""

    def __init__(self, client: Client, plan: Plan, chunks: Sequence[Future]) -> None:
        self.plan = plan
        self._client = client
        self._plan = self._made(plan)
        self._groups = _grouped(client, chunks)
        self._states: list[Any] = [None] * len(self._groups)

    def update(self, question: Question, message: Any = None) -> None:
        """Put the answer of every chunk in the place of its state."""
        sent = self._made(message)
        self._states = [
            self._client.submit(_updated, question, self._plan, group, state, sent, pure=False)
            for group, state in zip(self._groups, self._states, strict=True)
        ]

    def total(self, question: Question, message: Any = None, finish: Finish | None = None) -> Any:
        """The sum of all answers; or what `finish` makes of it, given the plan and the message."""
        sent = self._made(message)
        answers = [
            self._client.submit(_total, question, self._plan, group, state, sent, pure=False)
            for group, state in zip(self._groups, self._states, strict=True)
        ]
        merged = merge(self._client, answers, _sum)
        if finish is not None:
            merged = self._client.submit(finish, self._plan, merged, sent, pure=False)
        return merged.result()

    def _made(self, value: Any) -> Future:
        """A value that a task holds: were it scattered, it could be lost."""
        return self._client.submit(_same, value, pure=False)


def merge(client: Client, answers: Sequence[Future], function: Callable[..., Any]) -> Future:
    """What a function makes of several answers, some at a time, wherever they are."""
    answers = list(answers)
    while len(answers) > 1:
        answers = [
            client.submit(function, *answers[begin : begin + _AT_ONCE], pure=False)
            for begin in range(0, len(answers), _AT_ONCE)
        ]
    return answers[0]


def _grouped(client: Client, chunks: Sequence[Future]) -> list[Future]:
    """The chunks of each worker, in as many groups as it has threads."""
    wait(chunks)
    where = client.who_has(list(chunks))
    of_worker: dict[str, list[Future]] = {}
    for chunk in chunks:
        holders = where.get(chunk.key) or ("",)
        of_worker.setdefault(sorted(holders)[0], []).append(chunk)
    threads = client.nthreads()
    groups = []
    for worker, some in sorted(of_worker.items()):
        n_groups = min(len(some), threads.get(worker, 1))
        near = {"workers": [worker], "allow_other_workers": True} if worker in threads else {}
        groups += [
            client.submit(_group, *some[start::n_groups], pure=False, **near)
            for start in range(n_groups)
        ]
    return groups


def _same(value: Any) -> Any:
    return value


def _group(*rows: Rows) -> Group:
    return rows


def _updated(question: Question, plan: Plan, group: Group, states: Any, message: Any) -> Any:
    before = [None] * len(group) if states is None else states
    pairs = zip(group, before, strict=True)
    return tuple(question(plan, rows, state, message) for rows, state in pairs)


def _total(question: Question, plan: Plan, group: Group, states: Any, message: Any) -> Wholes:
    before = [None] * len(group) if states is None else states
    return total_of(question, plan, list(zip(group, before, strict=True)), message)


def _sum(*answers: Wholes) -> Wholes:
    total = answers[0].copy()
    for answer in answers[1:]:
        total += answer
    return total
