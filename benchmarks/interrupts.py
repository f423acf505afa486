"""Ctrl-C at random moments: how soon work ends, and whether what follows is as before.

Each case is interrupted again and again by SIGINT, at moments drawn from the time that it takes
undisturbed. Fits and predictions are interrupted in one process, in which a smaller fit follows
each interruption and must give what it gave before the first. Commands are interrupted after
Python has started (before that, it answers itself); they must end with exit code 130, one line,
and no file changed.

    python benchmarks/interrupts.py                        20 interruptions of each case
    python benchmarks/interrupts.py --times 5 exact dask   fewer, of some cases
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from caltree import CalibrationForest, CalibrationTree

LIMIT, LIMIT_OF_CLUSTER = 1.0, 2.0
SCRIPT = Path(sys.executable).with_name("caltree")
N_ATTRIBUTES = 20
_COMPLAINTS = (b"caltree: interrupted\n", b"caltree: interrupted; no file was changed\n")


@dataclass
class Outcome:
    """What came of the interruptions of one case."""

    limit: float
    seconds: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    as_before: bool = True

    def holds(self, code: int | None) -> bool:
        """Whether all that must hold does."""
        return (
            max(self.seconds) <= self.limit
            and self.as_before
            and (code is None or set(self.codes) == {code})
        )

    def row(self, name: str, code: int | None) -> str:
        """One row of the table."""
        codes = ", ".join(f"{c}: {n}" for c, n in self.codes.items()) or "-"
        cells = [
            f"{name:<22}",
            f"{len(self.seconds):>5}",
            f"{np.median(self.seconds):>8.2f} s",
            f"{max(self.seconds):>8.2f} s",
            f"{self.limit:>5.0f} s",
            f"{codes:<12}",
            f"{'yes' if self.as_before else 'NO':<9}",
            "holds" if self.holds(code) else "FAILS",
        ]
        return "  ".join(cells)


def make_rows(n_rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Attributes, labels and scores that are wrong in many regions."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, N_ATTRIBUTES))
    log_odds = 1.2 * X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3]
    y = random.random(n_rows) < 1.0 / (1.0 + np.exp(-log_odds))
    return X, y.astype(int), 1.0 / (1.0 + np.exp(-1.2 * X[:, 0]))


@contextmanager
def interruption(moment: float) -> Iterator[list[float]]:
    """Interrupt this process in so many seconds; the time when that was done is noted."""
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(moment, interrupt)
    timer.start()
    try:
        yield sent
    finally:
        timer.cancel()
        timer.join()


def interrupt_here(
    work: Callable[[], Any], answer: Callable[[], Any], times: int, limit: float
) -> Outcome:
    """Interrupt work in this process."""
    before = answer()
    began = time.perf_counter()
    work()
    longest = time.perf_counter() - began
    random = np.random.default_rng(1)
    outcome = Outcome(limit)
    while len(outcome.seconds) < times:
        try:
            with interruption(random.uniform(0.0, longest)) as sent:
                work()
        except KeyboardInterrupt:
            outcome.seconds.append(time.perf_counter() - sent[0])
            outcome.as_before &= np.array_equal(answer(), before)
    return outcome


def exact(times: int) -> Outcome:
    """An exact fit in two threads."""
    return _fit(lambda: CalibrationTree(tree_method="exact", n_jobs=2), 40_000, times)


def exact_alone(times: int) -> Outcome:
    """An exact fit without threads."""
    return _fit(lambda: CalibrationTree(tree_method="exact"), 20_000, times)


def histogram(times: int) -> Outcome:
    """A fit on histograms."""
    return _fit(lambda: CalibrationTree(tree_method="hist", n_jobs=2), 300_000, times)


def forest(times: int) -> Outcome:
    """A fit of a forest."""
    return _fit(lambda: CalibrationForest(50, random_state=0, n_jobs=2), 20_000, times)


def _fit(make: Callable[[], Any], n_rows: int, times: int) -> Outcome:
    rows, few, new = make_rows(n_rows), make_rows(2000), make_rows(500, seed=1)

    def answer() -> Any:
        return make().fit(*few).predict_proba(new[0], new[2])

    return interrupt_here(lambda: make().fit(*rows), answer, times, LIMIT)


def prediction(times: int) -> Outcome:
    """Probabilities of five million rows."""
    few, (X, _, scores) = make_rows(20_000), make_rows(5_000_000, seed=1)
    tree = CalibrationTree().fit(*few)

    def answer() -> Any:
        return tree.predict_proba(X[:1000], scores[:1000])

    return interrupt_here(lambda: tree.predict_proba(X, scores), answer, times, LIMIT)


def cluster(times: int) -> Outcome:
    """A fit on a Dask cluster of two processes."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from caltree.dask import CalibrationTree as DaskTree

    few, rows, new = make_rows(4000), make_rows(100_000), make_rows(500, seed=1)

    def parts(given: tuple[Any, Any, Any]) -> list[Any]:
        return [da.from_array(array, chunks=(len(array) // 8, *array.shape[1:])) for array in given]

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local,
        Client(local) as client,
    ):
        lazy = client.persist(parts(rows))
        small = client.persist(parts(few))

        def answer() -> Any:
            return DaskTree().fit(*small).to_local().predict_proba(new[0], new[2])

        return interrupt_here(lambda: DaskTree().fit(*lazy), answer, times, LIMIT_OF_CLUSTER)


def fit_command(times: int) -> Outcome:
    """`caltree fit`."""
    return _interrupt_command(
        ["fit", "rows.parquet", "--label", "y", "--scores", "p", "--out", "model.json"], times
    )


def report_command(times: int) -> Outcome:
    """`caltree report`."""
    return _interrupt_command(
        ["report", "fitted.json", "rows.parquet", "--label", "y", "--out", "page.html"], times
    )


def _interrupt_command(arguments: list[str], times: int) -> Outcome:
    import pyarrow as pa
    import pyarrow.parquet as pq

    outcome = Outcome(LIMIT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        X, y, scores = make_rows(40_000)
        columns = {f"x{j}": X[:, j] for j in range(N_ATTRIBUTES)}
        pq.write_table(pa.table({**columns, "y": y, "p": scores}), folder / "rows.parquet")
        pq.write_table(
            pa.table({**columns, "y": y, "p": scores}).slice(0, 5000), folder / "few.parquet"
        )
        run = ["fit", "few.parquet", "--label", "y", "--scores", "p", "--out", "fitted.json"]
        subprocess.run([SCRIPT, *run], cwd=folder, check=True, capture_output=True)
        for target in ("model.json", "page.html"):
            (folder / target).write_text("precious")
        before = _content(folder)
        started = _seconds([sys.executable, "-c", "pass"], folder)
        longest = _seconds([SCRIPT, *arguments], folder)
        random = np.random.default_rng(1)
        while len(outcome.seconds) < times:
            for target, content in before.items():
                (folder / target).write_bytes(content)
            process = subprocess.Popen(
                [SCRIPT, *arguments], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE
            )
            time.sleep(random.uniform(3 * started, longest))
            if process.poll() is not None:
                process.communicate()
                continue
            sent = time.perf_counter()
            process.send_signal(signal.SIGINT)
            said, complaint = process.communicate()
            if process.returncode == 0:
                continue  # done before the signal was seen
            outcome.seconds.append(time.perf_counter() - sent)
            outcome.codes[process.returncode] += 1
            in_one_line = complaint in _COMPLAINTS
            outcome.as_before &= said == b"" and in_one_line and _content(folder) == before
    return outcome


def _seconds(command: list[Any], folder: Path) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - began


def _content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


CASES: dict[str, tuple[Callable[[int], Outcome], int | None]] = {
    "exact": (exact, None),
    "exact_alone": (exact_alone, None),
    "histogram": (histogram, None),
    "forest": (forest, None),
    "prediction": (prediction, None),
    "fit_command": (fit_command, 130),
    "report_command": (report_command, 130),
    "dask": (cluster, None),
}


def main() -> None:
    """Interrupt what was asked for, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", default=list(CASES), help=", ".join(CASES))
    parser.add_argument("--times", type=int, default=20)
    given = parser.parse_args()
    # A shell switches Ctrl-C off for work in the background, and for all that this starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    print("case                    times      median     slowest  limit  exit codes    as before")
    failed = False
    for name in given.cases:
        run, code = CASES[name]
        outcome = run(given.times)
        failed |= not outcome.holds(code)
        print(outcome.row(name, code), flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
