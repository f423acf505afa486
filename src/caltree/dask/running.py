"""Programs that run on a cluster, where their decisions are tasks like any others.

A program asks one question after another. If each answer came back to the client first, a fit would
wait for the network hundreds of times. So tasks for later questions are submitted in advance: the
task that has the answer to one question continues the program, and finds the next question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, cast

from .._histogram.chunk import Plan
from .._histogram.pool import Program, Query, Result, Step, is_step

Start: TypeAlias = Callable[[Plan], Program[Any, Result]]


@dataclass
class Running(Generic[Result]):
    """A program up to its next question: what was answered so far, and what it asks now.

    It never changes, so that results that are lost with a worker can be computed again. The
    generator itself cannot be sent or copied. It only saves time: the next task takes it, and a
    later one runs the program again, with the same answers.
    """

    start: Start[Result]
    answers: tuple[Any, ...] = ()
    asked: Query[Any, Any] | Step[Any, Any] | None = None
    """None if the program has ended."""
    share: float = 0.0
    """Which share of the work is done."""
    result: Result | None = None
    aid: list[Program[Any, Result]] = field(default_factory=list)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "aid": []}

    def go_on(self, plan: Plan, answer: Any) -> Running[Result]:
        """Return the program at its next question, given the answer to this one."""
        return self._proceed(self._generator(plan), answer, (*self.answers, answer))

    @classmethod
    def begin(cls, start: Start[Result], plan: Plan) -> Running[Result]:
        """Return a program at its first question."""
        return cls(start)._proceed(start(plan), None, ())

    def _generator(self, plan: Plan) -> Program[Any, Result]:
        try:
            return self.aid.pop()
        except IndexError:
            again = Running.begin(self.start, plan)
            for answer in self.answers:
                again = again.go_on(plan, answer)
            return again.aid.pop()

    def _proceed(
        self, program: Program[Any, Result], answer: Any, answers: tuple[Any, ...]
    ) -> Running[Result]:
        share = self.share
        try:
            asked = program.send(answer)
            while isinstance(asked, float):
                share = asked
                asked = next(program)
        except StopIteration as end:
            return Running(self.start, answers, None, share, end.value)
        return Running(self.start, answers, asked, share, None, [program])

    @property
    def step(self) -> Step[Any, Any] | None:
        """The step that the chunks are to take now, if any."""
        return self.asked if self.asked is not None and is_step(self.asked) else None

    @property
    def query(self) -> Query[Any, Any] | None:
        """The query that is to be answered now, if any."""
        asked = None if self.asked is None or is_step(self.asked) else self.asked
        return cast("Query[Any, Any] | None", asked)
