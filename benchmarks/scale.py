"""Many rows: time and memory of the default tree against LightGBM, and what histograms cost.

Time is that of one fit each, in processes of their own that take turns, on the same float32 data
and as many threads; CPU is the ratio of the processor time of both, which other work on the machine
changes little. Memory is the highest of the whole process, with the data and all libraries.

With `--wide`, the tree is grown on 2,000 rows of 5,000 attributes with histograms and without, in
turns in one process, and processor times are compared.

With a folder of the paper's data sets (ARFF files), those of more than 10,000 rows are calibrated
with and without histograms, in the folds of a cross-validation.

    python benchmarks/scale.py                           1 and 10 million rows
    python benchmarks/scale.py --rows 100000 1000000     fewer
    python benchmarks/scale.py --wide                    a wide table only
    python benchmarks/scale.py --data-dir FOLDER         also what histograms cost
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from itertools import product

import numpy as np

N_ATTRIBUTES = 20
ROWS = (1_000_000, 10_000_000)
GIGABYTE = 2**30
FEWEST_ROWS = 10_000
N_FOLDS = 3
WIDE = 2_000, 5_000
TURNS = 3
SEEDS = (0, 1, 2)
LEARNERS = ("naive_bayes", "gradient_boosting")
BARS = {"LightGBM": 1.0, "GB": 8.0, "growth": 12.0, "RMSE": 0.001, "wide": 1.0}


def make(
    n_rows: int, n_attributes: int = N_ATTRIBUTES
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attributes, labels, and scores that are wrong in other ways in many regions."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, n_attributes), dtype=np.float32)
    scores = np.empty(n_rows)
    y = np.empty(n_rows, dtype=np.int8)
    for begin in range(0, n_rows, 2**20):
        rows = slice(begin, begin + 2**20)
        x = X[rows].T
        log_odds = 1.5 * x[0] + 0.8 * x[5]
        wrong = np.where(x[1] > 0.5, 1.0, -0.3) * np.where(x[3] > 0, 1.0, 0.2)
        truth = 0.6 * log_odds + wrong + 0.5 * np.sin(2 * x[4]) + 0.4 * x[6] * x[7]
        scores[rows] = 1 / (1 + np.exp(-log_odds))
        y[rows] = rng.random(len(truth)) < 1 / (1 + np.exp(-truth))
    return X, y, scores


def fit(what: str, n_rows: int, n_jobs: int) -> None:
    """Print the seconds of a fit and the highest memory of this process."""
    X, y, scores = make(n_rows)
    if what == "LightGBM":
        from lightgbm import LGBMClassifier

        start, cpu = time.perf_counter(), time.process_time()
        LGBMClassifier(n_jobs=n_jobs, verbose=-1).fit(X, y)
        leaves = 0
    else:
        from caltree import CalibrationTree

        start, cpu = time.perf_counter(), time.process_time()
        leaves = CalibrationTree(n_jobs=n_jobs).fit(X, y, scores).get_n_leaves()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"seconds": seconds, "cpu": cpu, "memory": memory, "leaves": leaves}
    print(json.dumps(found))


def in_its_own_process(what: str, n_rows: int, n_jobs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--fit", what, "--rows", str(n_rows), "--jobs"]
    done = subprocess.run([*command, str(n_jobs)], check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def time_and_memory(rows: list[int], n_jobs: int) -> None:
    print(f"Default fits, {N_ATTRIBUTES} attributes (float32), 2 classes, {n_jobs} threads\n")
    header = f"{'rows':>12} {'LightGBM':>10} {'tree':>10} {'ratio':>7} {'CPU':>7}"
    print(header + f" {'memory':>9} {'leaves':>7}")
    seconds = {}
    for n_rows in rows:
        peer = in_its_own_process("LightGBM", n_rows, n_jobs)
        tree = in_its_own_process("tree", n_rows, n_jobs)
        seconds[n_rows] = tree["seconds"]
        print(
            f"{n_rows:>12,} {peer['seconds']:>8.1f} s {tree['seconds']:>8.1f} s "
            f"{tree['seconds'] / peer['seconds']:>7.2f} {tree['cpu'] / peer['cpu']:>7.2f} "
            f"{tree['memory'] / GIGABYTE:>6.2f} GB "
            f"{tree['leaves']:>7}",
            flush=True,
        )
    least, most = min(rows), max(rows)
    print(
        f"\nFrom {least:,} to {most:,} rows the time of the tree grows "
        f"{seconds[most] / seconds[least]:.1f}-fold."
    )
    print(
        f"Bars at 10,000,000 rows: ratio {BARS['LightGBM']}, {BARS['GB']:g} GB, "
        f"{BARS['growth']:g}-fold from 1,000,000."
    )


def wide_table(n_jobs: int) -> None:
    """Grow the tree on a wide table with and without histograms, in turns."""
    from caltree import CalibrationTree

    X, y, scores = make(*WIDE)
    print(f"\n{WIDE[0]:,} rows of {WIDE[1]:,} attributes (float32): processor time\n")
    print(f"{'without':>10} {'with':>10} {'ratio':>7}")
    for _ in range(TURNS):
        seconds = []
        for method in ("exact", "hist"):
            start = time.process_time()
            CalibrationTree(tree_method=method, n_jobs=n_jobs).fit(X, y, scores)
            seconds.append(time.process_time() - start)
        without, with_them = seconds
        print(f"{without:>8.1f} s {with_them:>8.1f} s {with_them / without:>7.2f}", flush=True)
    print(f"\nThe bar is {BARS['wide']}.")


def cost_of_histograms(folder: str, n_jobs: int) -> None:
    from comparison.data import LEARNERS as MAKERS
    from comparison.data import names_in, with_plain_names

    from caltree import CalibrationTree
    from caltree.metrics import rmse
    from caltree.paper.datasets import load
    from caltree.paper.protocol import calibrate, outer_folds, score

    print(
        f"\nRMSE with and without histograms, mean of {N_FOLDS} folds and of {len(SEEDS)} deals "
        "of the trees' own\n"
    )
    print(f"{'data set':<18} {'learner':<18} {'without':>9} {'with':>9} {'difference':>11}")
    worst = -np.inf
    for name in names_in(folder):
        data = load(name, folder)
        if len(data.y) <= FEWEST_ROWS:
            continue
        data = with_plain_names(data)
        for learner in LEARNERS:
            found: dict[str, list[float]] = {"exact": [], "hist": []}
            for rows in outer_folds(data.y, 0, N_FOLDS, 1):
                scored = score(data, MAKERS[learner](1), rows, 1)
                for method, seed in product(found, SEEDS):
                    tree = CalibrationTree(tree_method=method, random_state=seed, n_jobs=n_jobs)
                    p = calibrate(scored, tree, data.classes)
                    found[method].append(rmse(scored.y_test, p, labels=list(data.classes)))
            without, with_them = (float(np.mean(found[key])) for key in ("exact", "hist"))
            worst = max(worst, with_them - without)
            print(
                f"{name:<18} {learner:<18} {without:>9.5f} {with_them:>9.5f} "
                f"{with_them - without:>+11.5f}",
                flush=True,
            )
    print(f"\nThe largest loss is {worst:+.5f}; the bar is {BARS['RMSE']}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--wide", action="store_true", help="a wide table only")
    parser.add_argument("--data-dir", help="a folder of data sets")
    parser.add_argument("--fit", choices=("LightGBM", "tree"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:
        fit(options.fit, options.rows[0], options.jobs)
        return
    if options.wide:
        wide_table(options.jobs)
        return
    time_and_memory(sorted(options.rows), options.jobs)
    if options.data_dir:
        cost_of_histograms(options.data_dir, options.jobs)


if __name__ == "__main__":
    main()
