"""The figures that the paper prints: its data sets, results tables and sign tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

from .._inputs.parameters import check_choice

Mark: TypeAlias = Literal["win", "draw", "loss"]

LEARNERS = ("naive_bayes", "boosted_stumps", "boosted_trees", "svm")
"""The base classifiers, one results table each."""

CALIBRATORS = ("pct", "platt", "isotonic")
"""Probability calibration trees, and the two that they are compared with."""

RIVALS = CALIBRATORS[1:]

IN_WORDS = {
    "naive_bayes": "naive Bayes",
    "boosted_stumps": "boosted stumps",
    "boosted_trees": "boosted trees",
    "svm": "SVMs with RBF kernels",
    "pct": "PCT",
    "platt": "PS",
    "isotonic": "IR",
    "none": "uncalibrated",
    "tree": "tree with our defaults",
    "forest": "forest",
    "logistic_model_tree": "logistic model tree",
}


@dataclass(frozen=True)
class Size:
    """The size of a data set, as the paper prints it."""

    rows: int
    attributes: int
    classes: int


@dataclass(frozen=True)
class Significance:
    """How the paper decides that two RMSEs differ."""

    p: float
    runs: int
    folds: int


@dataclass(frozen=True)
class Counts:
    """On how many data sets calibration trees are better, no different and worse."""

    wins: int
    draws: int
    losses: int


@dataclass(frozen=True)
class SignTest:
    """One line of the paper's table of sign tests."""

    counts: Counts
    p: str
    """As printed, e.g. "<0.00001"."""


@cache
def sizes() -> Mapping[str, Size]:
    """Return the sizes of the data sets, in the order of the paper."""
    stored = _figures()["datasets"].items()
    return MappingProxyType(
        {
            name: Size(size["instances"], size["attributes"], size["classes"])
            for name, size in stored
        }
    )


def significance() -> Significance:
    """Return the level of significance, and the cross-validation behind every RMSE."""
    stored = _figures()["significance"]
    return Significance(stored["p"], stored["runs"], stored["folds"])


def rmse(learner: str, dataset: str, calibrator: str = "pct") -> float:
    """Return the mean RMSE that the paper prints, to three digits."""
    calibrator = check_choice("calibrator", calibrator, CALIBRATORS)
    return float(_row(learner, dataset)[calibrator])


def mark(learner: str, dataset: str, versus: str) -> Mark:
    """Whether the paper marks the calibration tree as better or worse than another calibrator.

    A filled circle is a win, an open circle a loss, and nothing a draw.
    """
    versus = check_choice("versus", versus, RIVALS)
    return cast(Mark, _row(learner, dataset)[f"pct_vs_{versus}"])


def sign_test(learner: str, versus: str) -> SignTest:
    """Return the sign test that the paper prints."""
    learner = check_choice("learner", learner, LEARNERS)
    stored = _figures()["sign_test"][learner][check_choice("versus", versus, RIVALS)]
    return SignTest(Counts(stored["wins"], stored["draws"], stored["losses"]), stored["p"])


def count_marks(learner: str, versus: str) -> Counts:
    """Count the marks of a results table, which its sign test should be about."""
    counted = Counter(mark(learner, dataset, versus) for dataset in sizes())
    return Counts(counted["win"], counted["draw"], counted["loss"])


def discrepancies() -> tuple[str, ...]:
    """Say where a printed sign test does not count what its results table marks."""
    return tuple(
        f"{learner}, pct against {versus}: the sign test counts {_in_words(printed)}; "
        f"the table marks {_in_words(marked)}"
        for learner in LEARNERS
        for versus in RIVALS
        if (printed := sign_test(learner, versus).counts)
        != (marked := count_marks(learner, versus))
    )


def _in_words(counts: Counts) -> str:
    return f"{counts.wins} wins, {counts.draws} draws and {counts.losses} losses"


def _row(learner: str, dataset: str) -> dict[str, Any]:
    learner = check_choice("learner", learner, LEARNERS)
    dataset = check_choice("dataset", dataset, tuple(sizes()))
    return cast(dict[str, Any], _figures()["rmse"][learner][dataset])


@cache
def _figures() -> dict[str, Any]:
    text = files(__package__).joinpath("published.json").read_text(encoding="utf-8")
    return cast(dict[str, Any], json.loads(text))
