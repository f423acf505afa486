"""Speed of LogitBoost, the paper's boosted stumps and boosted trees, beside its specification.

The specification (`tests/spec/learners`) is the NumPy code that the native learner replaced. Both
read the same tables and are trained in turns in one process, and a Markdown table shows the
seconds of the processor of one fit, the least of several, how many times as fast the native code
is, and the largest difference between the probabilities that the two predict.

    python benchmarks/learners.py --data-dir FOLDER
    python benchmarks/learners.py --data-dir FOLDER --datasets segment,spambase,vowel --repeats 5
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from caltree.paper.datasets import load
from caltree.paper.learners import LogitBoost

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.spec.learners import logitboost as specification

BASES = {"stump": "boosted stumps", "tree": "boosted trees"}


class SpecifiedLogitBoost(LogitBoost):
    """The same learner, trained by the specification."""

    def fit(self, X: Any, y: Any) -> Self:
        """Boost regressions in NumPy."""
        matrix, labels, _ = self._learn(X, y)
        self._fitted = specification.fit(
            matrix,
            self._attributes.n_categories,
            labels,
            len(self.classes_),
            self.n_estimators,
            None if self.base == "stump" else self.max_depth,
        )
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of the classes."""
        return specification.predict(self._fitted, self._encode(X), len(self.classes_))


def seconds(work: Callable[[], Any]) -> float:
    """The seconds of the processor that some work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def compare(name: str, base: Any, data_dir: str | None, repeats: int, fits: int) -> str:
    """A line of the table: the specification is fitted once, and the native code `fits` times."""
    data = load(name, data_dir)
    old, new = SpecifiedLogitBoost(base=base), LogitBoost(base=base)
    new.fit(data.X, data.y)
    pairs = [
        (
            seconds(lambda: old.fit(data.X, data.y)),
            min(seconds(lambda: new.fit(data.X, data.y)) for _ in range(fits)),
        )
        for _ in range(repeats)
    ]
    least_old, least_new = (min(times) for times in zip(*pairs, strict=True))
    difference = np.abs(old.predict_proba(data.X) - new.predict_proba(data.X)).max()
    cells = [name, BASES[base], f"{least_old:.3f}", f"{least_new:.4f}"]
    return " | ".join([*cells, f"{least_old / least_new:.1f}", f"{difference:.0e}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="a folder of ARFF files; without it, OpenML")
    parser.add_argument("--datasets", default="segment,spambase")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--fits", type=int, default=5, help="of the native code in each repeat")
    given = parser.parse_args()
    header = ["data set", "learner", "specification, s", "native, s", "times as fast", "difference"]
    print("|", " | ".join(header), "|\n| --- | --- | ---: | ---: | ---: | ---: |")
    for name in given.datasets.split(","):
        for base in BASES:
            line = compare(name, base, given.data_dir, given.repeats, given.fits)
            print("|", line, "|", flush=True)


if __name__ == "__main__":
    main()
