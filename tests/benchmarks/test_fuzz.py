"""The fuzzer: a short run without a finding, and findings where there is something to find."""

import subprocess
import sys

import numpy as np
import pytest

from benchmarks.fuzzing.checks import InvariantError, check_probabilities, check_problem
from benchmarks.fuzzing.problems import PARAMETERS, Problem, make_problem
from caltree import IdentityCalibrator, PlattScaling

from ..support.fixtures import ROOT


def run(*options):
    command = [sys.executable, "benchmarks/fuzz.py", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_many_problems_without_a_finding():
    done = run("--seed", "7", "--problems", "150")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 7: 150 problems in" in done.stdout
    assert "fitted" in done.stdout and "refused" in done.stdout


def test_one_problem_again_with_its_rows():
    done = run("--seed", "7", "--only", "3")
    assert done.returncode == 0 and "seed 7: 1 problems in" in done.stdout
    assert "calibrator:" in done.stdout and "sample_weight:" in done.stdout


def test_a_problem_is_the_same_each_time():
    first, second = (make_problem(np.random.default_rng([3, 14])) for _ in range(2))
    assert first.describe() == second.describe()


def test_every_parameter_that_is_drawn_is_one():
    for kind, drawn in PARAMETERS.items():
        assert set(drawn) <= set(kind().get_params())


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([[0.5, 0.5, 0.0]], "of shape"),
        ([[np.nan, 1.0]], "not finite"),
        ([[1.5, -0.5]], "beyond 0 and 1"),
        ([[0.5, 0.4]], "of another sum"),
    ],
)
def test_what_are_no_probabilities_is_a_finding(found, message):
    with pytest.raises(InvariantError, match=message):
        check_probabilities(np.array(found), 1, 2)


class Wrong(IdentityCalibrator):
    """Raises an error of a library, names no argument, or predicts by the number of rows."""

    def fit(self, X, y, scores, sample_weight=None):
        if sample_weight is not None:
            raise IndexError("list index out of range")
        if X is None:
            np.array([]).max()
        return super().fit(X, y, scores)

    def predict_proba(self, X, scores):
        return (
            np.full((len(scores), 2), 0.5) if len(scores) < 4 else super().predict_proba(X, scores)
        )


@pytest.mark.parametrize(
    ("X", "weights", "message"),
    [
        (np.zeros((4, 1)), np.ones(4), "IndexError: list index out of range"),
        (None, None, "an error of a library"),
        (np.zeros((4, 1)), None, "other probabilities"),
    ],
)
def test_findings(X, weights, message):
    scores = np.array([[0.1], [0.2], [0.3], [0.9]])
    problem = Problem(Wrong(), X, [0, 1, 0, 1], scores, weights, None, np.zeros((4, 1)), scores)
    with pytest.raises(InvariantError, match=message):
        check_problem(problem, np.random.default_rng(0))


def test_an_error_that_names_its_argument_is_no_finding():
    scores = np.full((4, 1), np.nan)
    problem = Problem(PlattScaling(), None, [0, 1, 0, 1], scores, None, None, None, scores)
    assert check_problem(problem, np.random.default_rng(0)) == "refused"
