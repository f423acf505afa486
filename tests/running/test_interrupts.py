"""Ctrl-C: work ends at once, the process lives on, and the next fit gives what it gave before.

Undisturbed, each piece of work here would take longer than the limit.
"""

import signal
import subprocess
import sys
import time

import pytest

LIMIT = 120.0

SCRIPT = """
import signal
import sys
import numpy as np
from caltree import CalibrationBoosting, CalibrationForest, CalibrationTree
from caltree import PublishedCalibrationTree

def make(n_rows, n_columns):
    random = np.random.default_rng(0)
    X, scores = random.random((n_rows, n_columns)), random.random(n_rows)
    return X, random.random(n_rows) < np.where(X[:, 0] < 0.5, scores, scores / 2), scores

def answer():
    X, y, scores = make(2000, 3)
    tree = CalibrationTree(n_jobs=2).fit(X, y, scores)
    return tree.predict_proba(X, scores).tobytes()

# A shell may have started the tests with Ctrl-C switched off, for work in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
before = answer()
{prepare}
print("ready", flush=True)
try:
    {work}
except KeyboardInterrupt as interrupt:
    assert type(interrupt) is KeyboardInterrupt
    print("interrupted", answer() == before)
else:
    print("not interrupted")
"""

WORK = {
    "one call in the main thread": (
        "X, y, scores = make(1000, 3); forest = CalibrationForest(200).fit(X, y, scores); "
        "X, y, scores = make(1_000_000, 3)",
        "forest.predict_proba(X, scores)",
    ),
    "calls in threads": (
        "X, y, scores = make(1000, 3); forest = CalibrationForest(200, n_jobs=2); "
        "forest.fit(X, y, scores); X, y, scores = make(2_000_000, 3)",
        "forest.predict_proba(X, scores)",
    ),
    "an exact fit": (
        "X, y, scores = make(150_000, 20)",
        "CalibrationTree(tree_method='exact').fit(X, y, scores)",
    ),
    "a fit on histograms": (
        "X, y, scores = make(600_000, 20)",
        "CalibrationTree(tree_method='hist', n_jobs=2).fit(X, y, scores)",
    ),
    "a forest": (
        "X, y, scores = make(60_000, 20)",
        "CalibrationForest(n_jobs=2).fit(X, y, scores)",
    ),
    "boosting": (
        "X, y, scores = make(500_000, 20)",
        "CalibrationBoosting(n_jobs=2).fit(X, y, scores)",
    ),
    "the published method": (
        "X, y, scores = make(300_000, 20)",
        "PublishedCalibrationTree(n_jobs=2).fit(X, y, scores)",
    ),
}


def interrupt(process):
    """Interrupt a process that is at work; return what it said and how it ended."""
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=LIMIT)
    return process.returncode, said, errors


@pytest.mark.parametrize("name", WORK)
def test_work_ends_at_once_and_the_next_fit_is_as_before(name):
    prepare, work = WORK[name]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(prepare=prepare, work=work)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert interrupt(process) == (0, "interrupted True\n", "")
        finally:
            process.kill()


def test_threads_of_others_that_are_at_work_when_python_ends_do_not_abort_it():
    work = """
import threading
forest = CalibrationForest(20).fit(*make(1000, 3))
X, y, scores = make(5000, 3)

def predict():
    while True:
        forest.predict_proba(X, scores)

for _ in range(4):
    threading.Thread(target=predict, daemon=True).start()
"""
    prepare = SCRIPT.split("before = ")[0]
    lines = f"{prepare}\n{work}\nimport time; time.sleep(0.5)"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (0, b"")
