"""One fold of the paper's experiment: train a learner, calibrate its scores, judge the result."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from .._base import Calibrator
from .._classifier.out_of_fold import Task, make_folds, train
from .._classifier.response import choose_method, class_scores, combined_score_type
from .._inputs.arrays import Floats
from ..forest import CalibrationForest
from ..logistic_model_tree import LogisticModelTree
from ..metrics import brier_score, expected_calibration_error, log_loss, rmse
from ..published import PublishedCalibrationTree
from ..scaling import IdentityCalibrator, IsotonicScaling, PlattScaling
from ..tree import CalibrationTree
from .data import DataSet
from .learners import SVM, LogitBoost, NaiveBayes

Rows = npt.NDArray[np.intp]

N_INNER_FOLDS = 5

LEARNERS: Mapping[str, Callable[[int], Any]] = {
    "naive_bayes": lambda seed: NaiveBayes(),
    "boosted_stumps": lambda seed: LogitBoost(base="stump"),
    "boosted_trees": lambda seed: LogitBoost(base="tree", max_depth=3),
    "svm": lambda seed: SVM(random_state=seed),
}
"""The base classifiers of the paper; those in which chance plays a part are given a seed."""

ALONE: Mapping[str, Callable[[], Any]] = {"logistic_model_tree": LogisticModelTree}
"""Classifiers that are judged without a calibrator, beside the calibrated ones."""

CALIBRATORS: Mapping[str, Callable[[], Calibrator]] = {
    "pct": PublishedCalibrationTree,
    "platt": PlattScaling,
    "isotonic": IsotonicScaling,
    "none": IdentityCalibrator,
    "tree": CalibrationTree,
    "forest": lambda: CalibrationForest(random_state=1),
}
"""The calibrators of the paper, the one that leaves scores uncalibrated, and our own."""


def calibrators_for(learner: str, wanted: Sequence[str]) -> tuple[str, ...]:
    """The calibrators of a learner's scores: those wanted, or none for a classifier alone."""
    return ("none",) if learner in ALONE else tuple(wanted)


@dataclass
class Outcome:
    """The measures and the times of one fold."""

    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    """By calibrator and measure."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By step: the learner, under its name, and each calibrator, as "calibrator pct"."""


def outer_folds(y: npt.NDArray[Any], run: int, n_folds: int, seed: int) -> list[tuple[Rows, Rows]]:
    """The stratified folds of one run, whose rows are shuffled by the seed `seed + run`."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed + run)
    with warnings.catch_warnings():
        # Some classes have fewer rows than there are folds.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(splitter.split(np.zeros(len(y)), y))


def n_test_rows(n_rows: int, n_folds: int, fold: int) -> int:
    """Return the number of test rows of a fold: whatever the labels, folds are nearly equal."""
    return len(range(fold, n_rows, n_folds))


def seed_of(*what: Any) -> int:
    """A seed that depends on nothing but the arguments."""
    return zlib.crc32(repr(what).encode())


@dataclass(frozen=True)
class Scored:
    """A learner's scores: out of fold for the training rows, and for the test rows."""

    X: Any
    y: npt.NDArray[Any]
    scores: Floats
    X_test: Any
    y_test: npt.NDArray[Any]
    test_scores: Floats
    classes: npt.NDArray[Any]
    kind: str


def tuned(learner: Any, X: Any, y: npt.NDArray[Any]) -> Any:
    """A learner with the parameters that suit some rows best, if it tunes any."""
    return learner.tune(X, y) if hasattr(learner, "tune") else learner


def score(data: DataSet, learner: Any, fold: tuple[Rows, Rows], seed: int) -> Scored:
    """Out-of-fold scores of the training rows, and scores of the test rows.

    The latter come from a learner that is fitted to all training rows. A learner that tunes
    parameters tunes them once, on these rows.
    """
    rows, test_rows = fold
    X, y = data.X.iloc[rows], data.y[rows]
    X_test, y_test = data.X.iloc[test_rows], data.y[test_rows]
    classes = np.unique(y)
    learner = tuned(learner, X, y)
    method = choose_method(learner, "auto")
    inner = StratifiedKFold(N_INNER_FOLDS, shuffle=True, random_state=seed)
    everything = np.ones(len(y), dtype=bool)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = make_folds(inner, X, y, everything, {})
    task = Task(learner, method, X, y, {}, is_frozen=False)
    [fitted], [scores] = train([task], everything, folds, np.arange(len(y)), classes, None)
    test_scores = class_scores(fitted, X_test, classes, method)
    kind = combined_score_type([method], "side_by_side")
    return Scored(X, y, scores, X_test, y_test, test_scores, classes, kind)


def calibrate(scored: Scored, calibrator: Calibrator, labels: Sequence[str]) -> Floats:
    """Calibrated probabilities of the test rows, one column for each of `labels`.

    A class that the training rows lack has the probability 0.
    """
    if "score_type" in calibrator.get_params():
        calibrator.set_params(score_type=scored.kind)
    calibrator.fit(scored.X, scored.y, scores=scored.scores)
    probabilities = np.zeros((len(scored.y_test), len(labels)))
    columns = [list(labels).index(label) for label in scored.classes]
    probabilities[:, columns] = calibrator.predict_proba(scored.X_test, scores=scored.test_scores)
    return probabilities


def predict_alone(data: DataSet, learner: str, fold: tuple[Rows, Rows]) -> Floats:
    """Probabilities of the test rows by one of `ALONE`, one column for each class of the data."""
    rows, test_rows = fold
    with warnings.catch_warnings():
        # A class may have fewer rows than there are folds, and a category no training row.
        warnings.simplefilter("ignore", UserWarning)
        model = ALONE[learner]().fit(data.X.iloc[rows], data.y[rows])
        found = model.predict_proba(data.X.iloc[test_rows])
    probabilities = np.zeros((len(test_rows), len(data.classes)))
    probabilities[:, [list(data.classes).index(label) for label in model.classes_]] = found
    return probabilities


def run_fold(
    data: DataSet,
    learner: str,
    run: int,
    fold: int,
    calibrators: Sequence[str],
    *,
    n_folds: int = 10,
    seed: int = 1,
) -> Outcome:
    """Carry out one fold with some of `CALIBRATORS`; runs and folds are counted from 0."""
    outcome = Outcome()
    rows = outer_folds(data.y, run, n_folds, seed)[fold]
    if learner in ALONE:
        with _time_step(outcome, learner):
            probabilities = predict_alone(data, learner, rows)
        outcome.measures["none"] = measures(data.y[rows[1]], probabilities, data.classes)
        return outcome
    fold_seed = seed_of(data.name, run, fold, seed)
    with _time_step(outcome, learner):
        scored = score(data, LEARNERS[learner](fold_seed), rows, fold_seed)
    for name in calibrators:
        with _time_step(outcome, f"calibrator {name}"):
            probabilities = calibrate(scored, CALIBRATORS[name](), data.classes)
        outcome.measures[name] = measures(scored.y_test, probabilities, data.classes)
    return outcome


def measures(y: npt.NDArray[Any], probabilities: Floats, labels: Sequence[str]) -> dict[str, float]:
    """The measures of probabilities, by name.

    The AUC of two classes is that of the second; of more it is the mean of each class against the
    rest, weighted by the rows of the class. A class without rows, or with all of them, has none,
    and if no class has one, there is no "auc" among the measures.
    """
    given: dict[str, Any] = {"labels": list(labels)}
    correct = np.asarray(labels)[probabilities.argmax(axis=1)] == y
    return {
        "rmse": rmse(y, probabilities, **given),
        "log_loss": log_loss(y, probabilities, **given),
        "brier_score": brier_score(y, probabilities, **given),
        "calibration_error": expected_calibration_error(y, probabilities, **given),
        "accuracy": float(correct.mean()),
        **_auc(y, probabilities, labels),
    }


def _auc(y: npt.NDArray[Any], probabilities: Floats, labels: Sequence[str]) -> dict[str, float]:
    columns = range(1 if len(labels) == 2 else 0, len(labels))
    rows = {column: y == labels[column] for column in columns}
    areas = {
        column: roc_auc_score(truth, probabilities[:, column])
        for column, truth in rows.items()
        if truth.any() and not truth.all()
    }
    if not areas:
        return {}
    weights = [rows[column].sum() for column in areas]
    return {"auc": float(np.average(list(areas.values()), weights=weights))}


@contextmanager
def _time_step(outcome: Outcome, step: str) -> Iterator[None]:
    start = time.process_time()
    yield
    outcome.seconds[step] = time.process_time() - start
