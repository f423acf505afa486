"""Threads that share out work: order, reading ahead, and that nothing goes on in vain."""

import threading
from contextlib import closing

import joblib
import numpy as np
import pytest

from caltree import CalibrationTree, _core
from caltree._running.threads import count_threads, in_order, run_in_threads


@pytest.fixture(scope="module")
def tree():
    random = np.random.default_rng(0)
    X, scores = random.random((500, 2)), random.random(500)
    y = random.random(500) < np.where(X[:, 0] < 0.5, scores, scores / 2)
    return CalibrationTree().fit(X, y, scores)


class Busy:
    """Native work without an end, as far as a test has the patience."""

    def __init__(self, tree, rounds=1_000_000):
        self.model, self.matrix, self.rounds = tree.model_, np.zeros((1000, 2)), rounds
        self.has_begun, self.was_stopped = threading.Event(), False

    def __call__(self):
        self.has_begun.set()
        try:
            for _ in range(self.rounds):
                self.model.apply(self.matrix)
        except _core.Stopped:
            self.was_stopped = True
            raise


def test_results_come_in_order_and_an_error_ends_the_work():
    def work(number):
        if number == 7:
            raise ValueError("seven")
        return number

    assert list(in_order(work, range(7), 3)) == list(range(7))
    found = []
    with pytest.raises(ValueError, match="seven"), closing(in_order(work, range(100), 2)) as some:
        for number in some:
            found.append(number)
    assert found == list(range(7))


@pytest.mark.parametrize(("n_ahead", "most"), [(None, 5), (2, 3)])
def test_only_a_few_items_are_read_ahead(n_ahead, most):
    read_so_far = []

    def items():
        for number in range(50):
            read_so_far.append(number)
            yield number

    for done, _ in enumerate(in_order(abs, items(), 2, n_ahead=n_ahead)):
        assert len(read_so_far) <= done + most


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_whatever_ends_the_work_ends_native_code_too(tree, error):
    busy = Busy(tree)

    def fail():
        busy.has_begun.wait()
        raise error

    with pytest.raises(error):
        run_in_threads(lambda job: job(), [fail, busy], 2)
    assert busy.was_stopped


def test_results_that_are_not_wanted_end_native_code_too(tree):
    busy = Busy(tree)
    with closing(in_order(lambda job: job(), [busy.has_begun.wait, busy], 2, n_ahead=1)) as some:
        next(some)
    assert busy.was_stopped


def test_the_end_of_one_piece_of_work_is_not_that_of_another(tree):
    busy, found = Busy(tree, rounds=300), []

    def run():
        found.extend(run_in_threads(lambda job: job(), [busy, busy], 2))

    def fail(_):
        raise ValueError("only here")

    other = threading.Thread(target=run)
    other.start()
    busy.has_begun.wait()
    with pytest.raises(ValueError, match="only here"):
        run_in_threads(fail, range(4), 2)
    other.join()
    assert found == [None, None] and not busy.was_stopped


def test_a_thread_that_watches_no_token_goes_on(tree):
    _core.StopToken().set()
    assert len(tree.apply(np.zeros((10, 2)))) == 10


def test_a_token_stops_a_thread_that_watches_it(tree):
    raised = []

    def work():
        token = _core.StopToken()
        token.watch()
        tree.apply(np.zeros((10, 2)))
        token.set()
        try:
            tree.apply(np.zeros((10, 2)))
        except KeyboardInterrupt as error:
            raised.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert raised == [_core.Stopped]


def test_threads_are_counted_as_joblib_counts_them():
    assert count_threads(None) == count_threads(1) == 1
    assert count_threads(3) == 3
    assert count_threads(-1) == joblib.cpu_count()
    with joblib.parallel_config("threading", n_jobs=2):
        assert count_threads(None) == 2
