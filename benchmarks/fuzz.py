"""A fuzzer of fits, predictions, storage and model files.

Each problem has random rows, weights, scores and parameters, of all calibrators and engines. It
must end in an error of caltree that names an argument, or in finite probabilities of sum 1, which
neither threads, storage, pickling nor batches change, nor, of some, SQL and ONNX. Mutated model
files must be refused, or predict probabilities, too.

    python benchmarks/fuzz.py --problems 10000
    python benchmarks/fuzz.py --seed 1 --seconds 600
    python benchmarks/fuzz.py --seed 1 --only 1234      one problem again, with its rows

A finding is printed with the command that repeats it; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fuzzing.checks import InvariantError, check_classifier, check_problem, last_lines
from fuzzing.problems import make_problem

_CLASSIFIERS = 0.005


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if there is a finding."""
    parser = argparse.ArgumentParser(description="Fuzz calibrators.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problems", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after as long")
    parser.add_argument("--only", type=int, help="the number of the only problem to run")
    options = parser.parse_args(arguments)
    numbers = range(options.problems) if options.only is None else [options.only]
    outcomes: Counter[str] = Counter()
    begin = time.monotonic()
    for number in numbers:
        outcomes.update([_run(options.seed, number, show=options.only is not None)])
        seconds = time.monotonic() - begin
        if number % 1000 == 999 and options.only is None:
            print(
                f"{number + 1} problems, {outcomes['finding']} findings, {seconds:.0f} s",
                flush=True,
            )
        if seconds > options.seconds:
            break
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    print(f"seed {options.seed}: {outcomes.total()} problems in {seconds:.0f} s: {told}")
    return 1 if outcomes["finding"] else 0


def _run(seed: int, number: int, *, show: bool) -> str:
    """Run one problem; return the outcome."""
    random = np.random.default_rng([seed, number])
    problem = None
    try:
        if random.random() < _CLASSIFIERS:
            return check_classifier(random)
        problem = make_problem(random)
        if show:
            print(problem.describe())
        return check_problem(problem, random)
    except Exception as finding:
        kind = "CalibratedClassifier" if problem is None else repr(problem.calibrator)
        told = finding if isinstance(finding, InvariantError) else last_lines(finding)
        print(f"FINDING in problem {number}, {kind}:\n  {told}")
        print(f"  python benchmarks/fuzz.py --seed {seed} --only {number}", flush=True)
        return "finding"


if __name__ == "__main__":
    sys.exit(main())
