"""Time and memory of calibrators by the number of classes.

Gaussian classes around random centres, whose attributes hang together, and scores of a naive Bayes
model, fitted to other rows, that does not know so. Every fit has a process of its own and one
thread; seconds are those of the processor, and memory is what the process took beyond the data.
Times are also given as multiples of those of the fewest classes.

    python benchmarks/classes.py                                       10, 100 and 1,000 classes
    python benchmarks/classes.py --classes 10 100                      fewer, which is faster
    python benchmarks/classes.py --calibrators tree forest --trees 10
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB

import caltree

N_ATTRIBUTES = 20
MEGABYTE = 2**20
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
CALIBRATORS: dict[str, Callable[[int], Any]] = {
    "temperature": lambda _: caltree.TemperatureScaling(),
    "beta": lambda _: caltree.BetaScaling(),
    "platt": lambda _: caltree.PlattScaling(),
    "isotonic": lambda _: caltree.IsotonicScaling(),
    "tree": lambda _: caltree.CalibrationTree(n_jobs=1),
    "forest": lambda trees: caltree.CalibrationForest(trees, random_state=0, n_jobs=1),
    "boosting": lambda _: caltree.CalibrationBoosting(random_state=0, n_jobs=1),
    "published": lambda _: caltree.PublishedCalibrationTree(n_jobs=1),
}
DEFAULT = [name for name in CALIBRATORS if name != "published"]


def make_rows(n_classes: int, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attributes, labels and scores; every class has a row."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(n_classes, N_ATTRIBUTES))
    y = rng.integers(n_classes, size=(2, n_rows))
    y[:, :n_classes] = np.arange(n_classes)
    together = np.eye(N_ATTRIBUTES) + 0.3 * rng.normal(size=(N_ATTRIBUTES, N_ATTRIBUTES))
    X = centres[y] + rng.normal(size=(2, n_rows, N_ATTRIBUTES)) @ together
    return X[1], y[1], GaussianNB().fit(X[0], y[0]).predict_proba(X[1])


def measure(name: str, n_classes: int, n_rows: int, n_trees: int) -> dict[str, float]:
    """Seconds of a fit and a prediction in this process, and the memory that they took."""
    X, y, scores = make_rows(n_classes, n_rows)
    before, calibrator = peak_memory(), CALIBRATORS[name](n_trees)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrator.fit(X, y, scores=scores)
    fitted = time.process_time()
    calibrator.predict_proba(X, scores=scores)
    end = time.process_time()
    peak = peak_memory()
    return {"fit": fitted - start, "predict": end - fitted, "peak": peak, "more": peak - before}


def peak_memory() -> float:
    """The most memory of this process so far, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def measure_apart(name: str, n_classes: int, options: argparse.Namespace) -> dict[str, float]:
    """Measure in a process of its own."""
    one = [name, str(n_classes), str(options.rows), str(options.trees)]
    done = subprocess.run(
        [sys.executable, __file__, "--one", *one],
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_THREAD},
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(given: Sequence[str] | None = None) -> None:
    """Fit every calibrator to every number of classes, and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--calibrators", nargs="+", choices=CALIBRATORS, default=DEFAULT)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=100, help="of a forest")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(given)
    if options.one:
        name, *numbers = options.one
        print(json.dumps(measure(name, *map(int, numbers))))
        return
    print(f"{options.rows:,} rows, {N_ATTRIBUTES} attributes; a forest of {options.trees} trees\n")
    print("| calibrator | classes | fit | times | predict | times | memory | beyond data |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.calibrators:
        fewest: dict[str, float] = {}
        for n_classes in sorted(options.classes):
            found = measure_apart(name, n_classes, options)
            fewest = fewest or found
            cells = [name, f"{n_classes:,}"]
            for part in ("fit", "predict"):
                cells += [f"{found[part]:.2f} s", f"{found[part] / fewest[part]:.1f}"]
            cells += [f"{found[part] / MEGABYTE:,.0f} MB" for part in ("peak", "more")]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
