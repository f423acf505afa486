"""Threads that share out work and stop when it is no longer wanted: started nowhere else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from joblib.parallel import get_active_backend

from .. import _core

Item = TypeVar("Item")
Result = TypeVar("Result")


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for, as joblib counts them."""
    backend, of_context = get_active_backend(require="sharedmem")
    return int(backend.effective_n_jobs(of_context if n_jobs is None else n_jobs))


def run_in_threads(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_threads: int,
    tell: Callable[[float], None] | None = None,
) -> list[Result]:
    """Call a function for each item, and tell which part of them is done; see `in_order`."""
    found: list[Result] = []
    with closing(in_order(function, items, n_threads, n_ahead=len(items))) as results:
        for result in results:
            found.append(result)
            if tell is not None:
                tell(len(found) / len(items))
    return found


def in_order(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    n_threads: int,
    *,
    n_ahead: int | None = None,
) -> Generator[Result]:
    """Results of a function in the order of the items.

    At most `n_ahead` items, by default two per thread, are in work or done and not yet taken.

    Whatever ends this early, be it Ctrl-C, an error or that the results are not wanted any more,
    stops the threads, too, also those in native code, and waits for them. Wrap it into
    `contextlib.closing` unless all results are taken at once: a generator that is left behind by
    an exception lives for as long as its traceback. Without threads, native code in the main
    thread looks out for Ctrl-C itself.

    Not with joblib's threads: it leaves them at work when it is interrupted, and one that returns
    from native code while Python ends aborts the process.
    """
    if n_threads == 1:
        yield from map(function, items)
        return
    most_pending = 2 * n_threads if n_ahead is None else n_ahead
    token = _core.StopToken()
    pool = ThreadPoolExecutor(n_threads, initializer=token.watch)
    pending: deque[Future[Result]] = deque()
    try:
        for item in items:
            pending.append(pool.submit(function, item))
            if len(pending) > most_pending:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        token.set()
        pool.shutdown(cancel_futures=True)
