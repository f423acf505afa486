"""Programs that run on a cluster can be begun again, and give the same result."""

import pickle

import pytest

from caltree.dask.running import Running


class Step:
    def advance(self, plan, chunk, state):
        raise NotImplementedError


def program(plan):
    """Adds up what it is told, with a step in between."""
    total = yield ("ask", plan)
    yield 0.5
    yield Step()
    total += yield ("ask", total)
    return total


def test_a_program_goes_on_from_answer_to_answer():
    first = Running.begin(program, 7)
    assert (first.query, first.step, first.share) == (("ask", 7), None, 0.0)
    second = first.go_on(7, 10)
    assert second.query is None
    assert isinstance(second.step, Step)
    assert second.share == 0.5
    third = second.go_on(7, None)
    assert third.query == ("ask", 10)
    last = third.go_on(7, 5)
    assert (last.asked, last.result) == (None, 15)


@pytest.mark.parametrize("forget", [False, True])
def test_what_was_used_or_sent_is_run_again(forget):
    """A generator can be used once, and cannot be sent: the answers make another."""
    third = Running.begin(program, 7).go_on(7, 10).go_on(7, None)
    if forget:
        third = pickle.loads(pickle.dumps(third))
        assert third.aid == []
    results = [third.go_on(7, answer).result for answer in (5, 6, 5)]
    assert results == [15, 16, 15]
