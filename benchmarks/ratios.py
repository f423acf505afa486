"""Processor time of fits and predictions as multiples of a known program's, in the same run.

Both programs of a ratio meet the same machine, in turns, on one thread. Its other work thus hardly
matters, but its processor does: on another one than the stored ratios are from, store those of an
unchanged checkout before you compare. The best of several turns counts: of all three attempts if a
ratio is to be stored, and else of as many as it takes to be at most 20 % above the stored one.

    python benchmarks/ratios.py                    compare with benchmarks/ratios.json; exit code 1
                                                   if something is worse
    python benchmarks/ratios.py --store            store what is measured now
    python benchmarks/ratios.py --only forest      the cases whose names contain this
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lightgbm import LGBMClassifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.naive_bayes import GaussianNB

import caltree
from caltree import (
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PublishedCalibrationTree,
)

sys.path.insert(0, str(Path(__file__).parent))

from forest import processor_seconds
from speed import data, peer

STORED = Path(__file__).with_name("ratios.json")
ALLOWED = 1.2
"""By how much a ratio may exceed the stored one."""
ATTEMPTS = 3
Action = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """Two programs for the same rows."""

    name: str
    group: str
    peer: str
    repeats: int
    prepare: Callable[[], tuple[Action, Action]]
    """Makes the rows; returns ours and the peer's action."""


def lightgbm(**options: Any) -> LGBMClassifier:
    """LightGBM on one thread."""
    return LGBMClassifier(n_jobs=1, verbose=-1, **options)


def published(n_rows: int, n_classes: int, **options: Any) -> tuple[Action, Action]:
    """Fits of the published tree and of scikit-learn's tree."""
    X, y, scores = data(n_rows, n_classes, **options)
    ours = PublishedCalibrationTree(n_jobs=1)
    return partial(ours.fit, X, y, scores), partial(peer().fit, X, y)


def default_tree(n_rows: int) -> tuple[Action, Action]:
    """Fits of the default tree and of scikit-learn's tree."""
    X, y, scores = data(n_rows, 2)
    return partial(CalibrationTree(n_jobs=1).fit, X, y, scores), partial(peer().fit, X, y)


def large_tree(n_rows: int) -> tuple[Action, Action]:
    """Fits of a tree on histograms and of LightGBM."""
    X, y, scores = data(n_rows, 2)
    ours = CalibrationTree(tree_method="hist", n_jobs=1)
    return partial(ours.fit, X, y, scores), partial(lightgbm().fit, X, y)


def forest(n_rows: int) -> tuple[Action, Action]:
    """Fits of a forest and of LightGBM."""
    X, y, scores = data(n_rows, 2)
    ours = CalibrationForest(random_state=0, n_jobs=1)
    return partial(ours.fit, X, y, scores), partial(lightgbm().fit, X, y)


def boosting(n_rows: int) -> tuple[Action, Action]:
    """Fits of boosted trees and of LightGBM."""
    X, y, scores = data(n_rows, 2)
    ours = CalibrationBoosting(random_state=0, n_jobs=1)
    return partial(ours.fit, X, y, scores), partial(lightgbm().fit, X, y)


def classifier(n_rows: int) -> tuple[Action, Action]:
    """A calibrated naive Bayes model, here and in scikit-learn."""
    X, y, _ = data(n_rows, 2)
    ours = CalibratedClassifier(GaussianNB(), IsotonicScaling())
    theirs = CalibratedClassifierCV(GaussianNB(), method="isotonic", cv=5, ensemble=False)
    return partial(ours.fit, X, y), partial(theirs.fit, X, y)


def tree_prediction(n_rows: int) -> tuple[Action, Action]:
    """Predictions of the default tree and of scikit-learn's tree."""
    X, y, scores = data(n_rows, 2)
    some = slice(0, n_rows // 5)
    ours = CalibrationTree(n_jobs=1).fit(X[some], y[some], scores[some])
    theirs = peer().fit(X[some], y[some])
    return partial(ours.predict_proba, X, scores), partial(theirs.predict_proba, X)


def forest_prediction(n_rows: int) -> tuple[Action, Action]:
    """Predictions of a forest and of 100 trees of LightGBM with 255 leaves."""
    X, y, scores = data(n_rows, 2)
    some = slice(0, n_rows // 10)
    ours = CalibrationForest(random_state=0, n_jobs=1).fit(X[some], y[some], scores[some])
    theirs = lightgbm(num_leaves=255).fit(X[some], y[some])
    return (
        partial(ours.predict_proba, X, scores),
        partial(theirs.predict_proba, X, num_threads=1),
    )


TREE = "scikit-learn's DecisionTreeClassifier"
LIGHTGBM = "LightGBM"
CASES = [
    Case("published tree, 30,000 rows, 2 classes", "fit", TREE, 2, partial(published, 30_000, 2)),
    Case(
        "published tree, 10,000 rows, 10 classes",
        "fit",
        TREE,
        1,
        partial(published, 10_000, 10, n_redundant=2),
    ),
    Case("tree, 30,000 rows", "fit", TREE, 2, partial(default_tree, 30_000)),
    Case("forest, 3,000 rows", "fit", LIGHTGBM, 1, partial(forest, 3_000)),
    Case("boosting, 10,000 rows", "fit", LIGHTGBM, 1, partial(boosting, 10_000)),
    Case(
        "naive Bayes with isotonic regression, 30,000 rows",
        "fit",
        "scikit-learn's CalibratedClassifierCV",
        5,
        partial(classifier, 30_000),
    ),
    Case("tree on histograms, 200,000 rows", "scale", LIGHTGBM, 1, partial(large_tree, 200_000)),
    Case("tree, 100,000 rows", "prediction", TREE, 3, partial(tree_prediction, 100_000)),
    Case(
        "forest, 30,000 rows",
        "prediction",
        f"{LIGHTGBM}, 100 trees of 255 leaves",
        2,
        partial(forest_prediction, 30_000),
    ),
]


def measure(case: Case, bound: float, attempts: int) -> float:
    """The ratio of a case, measured again if it is above a bound."""
    ours, theirs = case.prepare()
    best = [float("inf"), float("inf")]
    for _ in range(attempts):
        found = processor_seconds(case.repeats, ours, theirs)
        best = [min(pair) for pair in zip(best, found, strict=True)]
        if best[0] <= bound * best[1]:
            break
    return best[0] / best[1]


def compare(
    cases: Sequence[Case], stored: dict[str, Any], attempts: int
) -> tuple[list[dict[str, Any]], int]:
    """Measure and print all cases; return them, and how many are worse than stored."""
    known = {(each["group"], each["name"]): each["ratio"] for each in stored.get("cases", [])}
    found, n_worse = [], 0
    for case in cases:
        before = known.get((case.group, case.name))
        bound = 0.0 if before is None else ALLOWED * before
        ratio = measure(case, bound, attempts)
        n_worse += before is not None and ratio > bound
        verdict = "new" if before is None else "WORSE" if ratio > bound else "ok"
        shown = "" if before is None else f"stored {before:7.3f}"
        print(f"{case.group:<11} {case.name:<50} {ratio:7.3f} {shown:<15} {verdict}", flush=True)
        found.append(
            {
                "group": case.group,
                "name": case.name,
                "peer": case.peer,
                "ratio": float(f"{ratio:.3g}"),
            }
        )
    return found, n_worse


def processor() -> str:
    """The name of the processor, as far as the system tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def main(given: Sequence[str] | None = None) -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", action="store_true", help="store what is measured")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="turns of each case")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    options = parser.parse_args(given)
    stored = json.loads(STORED.read_text()) if STORED.exists() and not options.store else {}
    cases = [case for case in CASES if options.only in f"{case.group} {case.name}"]
    found, n_worse = compare(cases, stored, options.attempts)
    if options.store:
        content = {"caltree": caltree.__version__, "processor": processor(), "cases": found}
        STORED.write_text(json.dumps(content, indent=2) + "\n")
        return 0
    if n_worse:
        print(f"{n_worse} of {len(cases)} are more than {ALLOWED - 1:.0%} worse than stored")
        if stored["processor"] != processor():
            print(
                f"The stored ratios are from another processor ({stored['processor']}; this is "
                f"{processor()}): store those of an unchanged checkout first, with --store"
            )
    return int(n_worse > 0)


if __name__ == "__main__":
    sys.exit(main())
