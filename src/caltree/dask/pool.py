"""Chunks of rows on the workers of a cluster.

Every worker keeps its rows, as one group for each of its threads. A question goes to the groups,
and its answers are merged among the workers. Everything that a task needs is made by other tasks,
so that what is lost with a worker is made again by the scheduler.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import fields
from typing import Any, TypeAlias

from dask.sizeof import sizeof
from distributed import Client, Future, wait

from .._histogram.chunk import Rows, Wholes
from .._histogram.plan import Plan
from .._histogram.pool import Finish, Question, total_of

Group: TypeAlias = tuple[Rows, ...]

# How many answers are merged at a time.
_AT_ONCE = 8
# A message up to this size goes along with each question, which spares a step; the scheduler sends
# a larger one to one worker only, from which the others fetch it.
_MOST_BYTES_ALONG = 2**14


def _size_of_rows(rows: Rows) -> int:
    """The scheduler shall know how large they are, lest it send them around."""
    return sum(sizeof(getattr(rows, each.name)) for each in fields(rows))


sizeof.register(Rows, _size_of_rows)


class DaskPool:
    """Chunks on the workers of a cluster, with the plan that they were made by."""

    def __init__(self, client: Client, plan: Future, chunks: Sequence[Future]) -> None:
        self._client = client
        self._plan = plan
        self._groups = _grouped(client, chunks)
        self._states: list[Any] = [None] * len(self._groups)

    def fresh(self) -> DaskPool:
        """The same chunks, with states of their own."""
        other = copy(self)
        other._states = [None] * len(self._groups)
        return other

    def update(self, question: Question, message: Any = None) -> None:
        """Put the answer of every chunk in the place of its state."""
        self._states = self._asked(_updated, question, self._sent(message))

    def total(self, question: Question, message: Any = None, finish: Finish | None = None) -> Any:
        """The sum of all answers; or what `finish` makes of it, given the plan and the message."""
        sent = self._sent(message)
        answers = merged(self._client, self._asked(_total, question, sent), _sum, _AT_ONCE)
        total = self._client.submit(_finished, finish, self._plan, sent, *answers, pure=False)
        return total.result()

    def _asked(self, how: Callable[..., Any], question: Question, sent: Any) -> list[Future]:
        """The answer of every group."""
        given = {"question": question, "plan": self._plan, "message": sent}
        answers: list[Future] = self._client.map(
            how, self._groups, self._states, pure=False, **given
        )
        return answers

    def _sent(self, message: Any) -> Any:
        """A message as it goes to the groups."""
        small = len(pickle.dumps(message)) <= _MOST_BYTES_ALONG
        return message if small else held(self._client, message)


def held(client: Client, value: Any) -> Future:
    """A value that a task holds: were it scattered, it could be lost."""
    return client.submit(_same, value, pure=False)


def merge(client: Client, answers: Sequence[Future], function: Callable[..., Any]) -> Future:
    """What a function makes of several answers, some at a time, wherever they are."""
    return client.submit(function, *merged(client, answers, function, _AT_ONCE), pure=False)


def merged(
    client: Client, answers: Sequence[Future], function: Callable[..., Any], at_most: int
) -> list[Future]:
    """As `merge`, until no more than so many answers are left."""
    left = list(answers)
    while len(left) > at_most:
        left = [
            client.submit(function, *left[begin : begin + _AT_ONCE], pure=False)
            for begin in range(0, len(left), _AT_ONCE)
        ]
    return left


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


def _with_states(group: Group, states: Any) -> list[tuple[Rows, Any]]:
    before = [None] * len(group) if states is None else states
    return list(zip(group, before, strict=True))


def _updated(group: Group, states: Any, question: Question, plan: Plan, message: Any) -> Any:
    pairs = _with_states(group, states)
    return tuple(question(plan, rows, state, message) for rows, state in pairs)


def _total(group: Group, states: Any, question: Question, plan: Plan, message: Any) -> Wholes:
    return total_of(question, plan, _with_states(group, states), message)


def _sum(*answers: Wholes) -> Wholes:
    if len(answers) == 1:
        return answers[0]
    total = answers[0].copy()
    for answer in answers[1:]:
        total += answer
    return total


def _finished(finish: Finish | None, plan: Plan, message: Any, *answers: Wholes) -> Any:
    total = _sum(*answers)
    return total if finish is None else finish(plan, total, message)
