"""Speed and memory of the calibration tree, against scikit-learn in the same run.

Machines differ and are shared, so that seconds mean little: the unit is one fit of scikit-learn's
``DecisionTreeClassifier(criterion="entropy", min_samples_split=16, min_samples_leaf=2)`` on the
same data, and every figure is the best of several alternating runs.

    python benchmarks/speed.py            everything, a few minutes
    python benchmarks/speed.py --quick    without the million rows
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from caltree import (
    CalibratedClassifier,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
)

N_JOBS = 2
MILLION = 1_000_000


def data(n_rows: int, n_classes: int, **options: Any) -> tuple[Any, Any, Any]:
    """20 numeric attributes, labels, and out-of-fold naive Bayes scores."""
    kind = {"n_informative": 10, "n_redundant": 4, "flip_y": 0.1, "random_state": 1, **options}
    X, y = make_classification(n_rows, 20, n_classes=n_classes, **kind)
    return X, y, cross_val_predict(GaussianNB(), X, y, cv=5, method="predict_proba")


def peer() -> DecisionTreeClassifier:
    """The unit of time."""
    return DecisionTreeClassifier(
        criterion="entropy", min_samples_split=16, min_samples_leaf=2, random_state=0
    )


def best_seconds(repeats: int, *actions: Callable[[], Any]) -> list[float]:
    """The shortest time of each action, the actions taking turns."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def report(what: str, value: float, limit: float, unit: str, note: str = "") -> None:
    """One line: the figure, its bar, and whether it is met."""
    verdict = "met" if value <= limit else "MISSED"
    print(f"  {what:<44} {value:8.2f} {unit:<7} bar {limit:<5g} {verdict:<7} {note}", flush=True)


def fit_speed(quick: bool) -> None:
    """The published fit in units of the peer's, and how it grows with the rows."""
    print(f"\nPublished fit with n_jobs={N_JOBS}, in fits of scikit-learn's tree")
    cases = [(30_000, 2, 0.25, {}, 5)]
    # Time is proportional to the iterations that cross-validation asks for, and these depend on
    # the data: a case chosen for few, one with more, and one with nearly all of the 200 allowed.
    cases += [(10_000, 10, 1.5, {"n_redundant": 2}, 3)]
    cases += [(10_000, 10, 6.0, {}, 3), (10_000, 10, 6.0, {"class_sep": 2.0}, 3)]
    cases += [] if quick else [(MILLION, 2, 0.5, {}, 1)]
    for n_rows, n_classes, limit, options, repeats in cases:
        X, y, scores = data(n_rows, n_classes, **options)
        tree = PublishedCalibrationTree(n_jobs=N_JOBS)
        ours, theirs = best_seconds(
            repeats, partial(tree.fit, X, y, scores), partial(peer().fit, X, y)
        )
        note = f"{ours:.2f} s / {theirs:.2f} s, {tree.boosting_iterations_} iterations"
        note += f" {options}" if options else ""
        report(f"{n_rows:,} rows, {n_classes} classes", ours / theirs, limit, "units", note)


def growth(quick: bool) -> None:
    """Time by number of rows."""
    # With a given number of iterations: the number that cross-validation asks for jumps about.
    print("\nGrowth of the published fit, 2 classes, 20 iterations (linear: constant us per row)")
    for n_rows in (10_000, 30_000, 100_000, 300_000) + (() if quick else (MILLION,)):
        X, y, scores = data(n_rows, 2)
        tree = PublishedCalibrationTree(boosting_iterations=20, n_jobs=N_JOBS)
        repeats = 1 if n_rows > 100_000 else 3
        (seconds,) = best_seconds(repeats, partial(tree.fit, X, y, scores))
        print(
            f"  {n_rows:>9,} rows {seconds:8.2f} s {seconds / n_rows * 1e6:8.1f} us per row, "
            f"{tree.get_n_leaves()} leaves",
            flush=True,
        )


def memory() -> None:
    """Peak memory of a fit on a million rows, in a process of its own."""
    print("\nMemory of the published fit")
    answer = subprocess.run(
        [sys.executable, __file__, "--memory"], check=True, capture_output=True, text=True
    )
    peak, inputs = map(float, answer.stdout.split())
    note = f"peak {peak / 1e6:.0f} MB, inputs {inputs / 1e6:.0f} MB (inputs included in the peak)"
    report("1,000,000 rows, 2 classes", peak / inputs, 4.0, "inputs", note)


def measure_memory() -> None:
    """Print the peak above what the libraries take, and the size of the inputs."""
    rng = np.random.default_rng(0)
    PublishedCalibrationTree(n_jobs=N_JOBS).fit(
        rng.random((1000, 2)), rng.integers(0, 2, 1000), rng.random(1000)
    )
    before = resident_bytes()
    # Made in place, so that nothing but the fit can reach the peak.
    X = rng.standard_normal((MILLION, 20))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.standard_normal(MILLION) > 0).astype(np.int64)
    scores = np.empty((MILLION, 2))
    np.exp(-X[:, 0], out=scores[:, 0])
    scores[:, 1] = 1.0 / (1.0 + scores[:, 0])
    np.subtract(1.0, scores[:, 1], out=scores[:, 0])
    PublishedCalibrationTree(n_jobs=N_JOBS).fit(X, y, scores)
    print(peak_bytes() - before, X.nbytes + y.nbytes + scores.nbytes)


def peak_bytes() -> int:
    """The most memory the process ever occupied."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not ru_maxrss, which on Linux a process inherits from the one that started it.
        lines = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(lines[0].split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """Memory that the process occupies now."""
    import psutil

    return int(psutil.Process().memory_info().rss)


def prediction(quick: bool) -> None:
    """predict_proba against the peer's."""
    n_rows = 100_000 if quick else MILLION
    print(f"\nPrediction of {n_rows:,} rows, in predictions of scikit-learn's tree")
    X, y, scores = data(n_rows, 2)
    some = slice(0, 100_000)
    tree = PublishedCalibrationTree(n_jobs=N_JOBS).fit(X[some], y[some], scores[some])
    unpruned = PublishedCalibrationTree(ccp_alpha=None, boosting_iterations=2)
    unpruned.fit(X[some], y[some], scores[some])
    theirs = peer().fit(X[some], y[some])
    times = best_seconds(
        5,
        lambda: tree.predict_proba(X, scores),
        lambda: unpruned.predict_proba(X, scores),
        lambda: theirs.predict_proba(X),
    )
    for name, model, seconds in (
        ("published tree", tree, times[0]),
        ("tree without pruning", unpruned, times[1]),
    ):
        note = f"{seconds:.3f} s / {times[2]:.3f} s, {model.get_n_leaves()} leaves"
        note += f" / {theirs.get_n_leaves()} leaves"
        report(name, seconds / times[2], 1.5, "units", note)


def whole_classifier() -> None:
    """A classifier and its calibrator, against scikit-learn's way of doing the same."""
    print("\nNaive Bayes calibrated, 30,000 rows x 20, in fits of scikit-learn's equivalent")
    X, y, _ = data(30_000, 2)
    for method, calibrator in (("isotonic", IsotonicScaling()), ("sigmoid", PlattScaling())):
        ours = CalibratedClassifier(GaussianNB(), calibrator)
        theirs = CalibratedClassifierCV(GaussianNB(), method=method, cv=5, ensemble=False)
        fits = best_seconds(15, partial(ours.fit, X, y), partial(theirs.fit, X, y))
        asks = best_seconds(15, partial(ours.predict_proba, X), partial(theirs.predict_proba, X))
        for what, (mine, other) in (("fit", fits), ("predict_proba", asks)):
            note = f"{mine * 1e3:.0f} ms / {other * 1e3:.0f} ms"
            report(f"{type(calibrator).__name__}, {what}", mine / other, 1.2, "units", note)


def forests(quick: bool) -> None:
    """The forest, against MCGrad with as many threads; one, since each fit is a process's all."""
    print("\nForest of 100 trees, 2 classes, 20 attributes, in fits of MCGrad on the same thread")
    if find_spec("mcgrad") is None:
        print("  mcgrad is not installed: pip install --group benchmark")
        return
    from comparison.peers import MCGrad

    for n_rows in (10_000,) if quick else (10_000, 30_000):
        X, y, scores = data(n_rows, 2)
        table = pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
        ours = CalibrationForest(random_state=0, n_jobs=1)
        theirs = MCGrad(random_state=0)
        fits = best_seconds(
            1 if quick else 2,
            partial(ours.fit, table, y, scores=scores),
            partial(theirs.fit, table, y, scores=scores),
        )
        note = f"{fits[0]:.1f} s / {fits[1]:.1f} s, {fits[1] / fits[0]:.1f} times as fast"
        limit = 1.0 if n_rows < 30_000 else 0.15
        report(f"fit, {n_rows:,} rows", fits[0] / fits[1], limit, "units", note)


def trees() -> None:
    """The default tree, in fits of the published one."""
    print("\nDefault tree, 30,000 rows x 20, in fits of the published one")
    X, y, scores = data(30_000, 2)
    kinds = (CalibrationTree(n_jobs=N_JOBS), PublishedCalibrationTree(n_jobs=N_JOBS))
    ours, published = best_seconds(3, *(partial(tree.fit, X, y, scores) for tree in kinds))
    note = f"{ours * 1e3:.0f} ms / {published * 1e3:.0f} ms"
    report("fit", ours / published, 1.5, "units", note)


def small_things() -> None:
    """A small fit, and the import."""
    print("\nSmall things")
    X, y, scores = data(500, 2)
    X = np.ascontiguousarray(X[:, :10])
    tree = CalibrationTree()
    (seconds,) = best_seconds(20, lambda: tree.fit(X, y, scores))
    report("fit, 500 rows x 10 attributes", seconds * 1e3, 20.0, "ms")
    code = (
        "import time, sklearn; start = time.perf_counter(); import caltree; "
        "print(time.perf_counter() - start)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout)
        for _ in range(7)
    ]
    report("import caltree after import sklearn", min(runs) * 1e3, 50.0, "ms")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="without the million rows")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory()
        return
    small_things()
    whole_classifier()
    trees()
    forests(arguments.quick)
    fit_speed(arguments.quick)
    prediction(arguments.quick)
    growth(arguments.quick)
    if not arguments.quick:
        memory()


if __name__ == "__main__":
    main()
