"""Size of a stored forest, and the time of its predictions in those of LightGBM, in the same run.

LightGBM predicts by 100 trees of 255 leaves, fitted to the same rows; both have one thread. The
forest is fitted to 20,000, 30,000 and 200,000 rows of made-up data, and to a data set if there is
a folder of them. Time is that of the processor, the best of several alternating runs.

    python benchmarks/forest.py                      a few minutes
    python benchmarks/forest.py --quick              20,000 rows, and 100,000 to predict
    python benchmarks/forest.py --data-dir FOLDER    also taiwan-credit
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.model_selection import cross_val_predict
from speed import MILLION, data, report

from caltree import CalibrationForest
from caltree.metrics import rmse
from caltree.paper.datasets import load

# The bar is that of a forest of 20,000 rows; others are printed without one.
ROWS_OF_SIZE, MOST_MEGABYTES = 20_000, 4.0
MOST_PREDICTIONS = 3.0
# Rows that are neither fitted nor made up for prediction: the forest is judged by them.
N_TEST = 10_000


def processor_seconds(repeats: int, *actions: Callable[[], Any]) -> list[float]:
    """The shortest time of each action, the actions taking turns."""
    best = [float("inf")] * len(actions)
    for _ in range(repeats):
        for i, action in enumerate(actions):
            start = time.process_time()
            action()
            best[i] = min(best[i], time.process_time() - start)
    return best


def stored_megabytes(forest: CalibrationForest) -> float:
    """The size of the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forest.json"
        forest.save(path)
        return path.stat().st_size / 1e6


def report_size(name: str, forest: CalibrationForest, n_rows: int, error: float) -> None:
    """The size of the file, and the error on other rows."""
    note = f"{forest.model_.n_nodes:,} nodes, RMSE {error:.5f}"
    size = stored_megabytes(forest)
    if n_rows == ROWS_OF_SIZE:
        report(f"{name}, JSON", size, MOST_MEGABYTES, "MB", note)
    else:
        print(f"  {name}, JSON: {size:.2f} MB, {note}")


def made_up(n_rows: int, n_predicted: int) -> None:
    """A forest of made-up rows: its size, and its speed."""
    X, y, scores = data(n_rows + N_TEST, 2)
    start = time.process_time()
    forest = CalibrationForest(random_state=0, n_jobs=1).fit(
        X[:n_rows], y[:n_rows], scores[:n_rows]
    )
    seconds = time.process_time() - start
    calibrated = forest.predict_proba(X[n_rows:], scores[n_rows:])
    name = f"{n_rows:,} made-up rows"
    print(f"  {name}: fitted in {seconds:.1f} s")
    report_size(name, forest, n_rows, rmse(y[n_rows:], calibrated))
    peer = LGBMClassifier(num_leaves=255, n_jobs=1, verbose=-1).fit(X[:n_rows], y[:n_rows])
    # Other values than those of the fit, as new rows have.
    rng = np.random.default_rng(0)
    rows = rng.integers(0, len(X), n_predicted)
    X_new = X[rows] + 0.01 * rng.standard_normal((n_predicted, X.shape[1]))
    scores_new = scores[rows]
    ours, theirs = processor_seconds(
        3,
        lambda: forest.predict_proba(X_new, scores_new),
        lambda: peer.predict_proba(X_new, num_threads=1),
    )
    note = f"{ours / n_predicted * 1e6:.1f} us / {theirs / n_predicted * 1e6:.1f} us per row"
    report(f"{name}, prediction", ours / theirs, MOST_PREDICTIONS, "units", note)


def data_set(name: str, folder: str) -> None:
    """The size of a forest that calibrates LightGBM on 20,000 rows of a data set."""
    found = load(name, folder)
    X = found.X.set_axis([f"x{i}" for i in range(found.X.shape[1])], axis="columns")
    order = np.random.RandomState(0).permutation(len(X))
    train, test = order[:ROWS_OF_SIZE], order[ROWS_OF_SIZE:]
    model = LGBMClassifier(verbose=-1, random_state=0, n_jobs=1)
    fitted, y = X.iloc[train], found.y[train]
    scores = cross_val_predict(model, fitted, y, method="predict_proba")
    forest = CalibrationForest(random_state=0, n_jobs=1).fit(fitted, y, scores=scores)
    scores_new = model.fit(fitted, y).predict_proba(X.iloc[test])
    calibrated = forest.predict_proba(X.iloc[test], scores=scores_new)
    error = rmse(found.y[test], calibrated)
    report_size(f"{ROWS_OF_SIZE:,} rows of {name}", forest, ROWS_OF_SIZE, error)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="20,000 rows alone")
    parser.add_argument("--data-dir", help="a folder of data sets as ARFF files")
    arguments = parser.parse_args()
    print("\nForest of 100 trees, 2 classes, 20 attributes, one thread, against LightGBM")
    n_predicted = MILLION // 10 if arguments.quick else MILLION
    for n_rows in (20_000,) if arguments.quick else (20_000, 30_000, 200_000):
        made_up(n_rows, n_predicted)
    if arguments.data_dir is not None:
        data_set("taiwan-credit", arguments.data_dir)


if __name__ == "__main__":
    main()
