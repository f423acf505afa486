"""Fitted calibrators of every kind, and rows that are as nasty as rows can be."""

from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
    ensemble,
)

from .boosting_cases import few_rounds

INJECTION = 'a"; DROP TABLE t; --'
NAMES = ["O'Hara", 'back\\slash "quoted"', "two\nlines", "Zoë 😀 `tick` 100 %s", ""]
PLAIN = ["red", "green", "blue"]
TINIEST = 5e-324
NEXT_TO_ONE = 1.0 - 2.0**-53


@dataclass(frozen=True)
class Case:
    """A calibrator to fit, and what its scores are like."""

    calibrator: Any
    n_classes: int = 2
    n_classifiers: int = 1
    scores: str = "probability"
    columns: int | None = None
    """The columns of the scores; by default one per class and classifier."""
    params: dict[str, Any] = field(default_factory=dict)
    of_first: bool = False
    """Whether the one column is the score of the first class."""


def _cases():
    ten = {"n_classes": 10}
    forest = {"n_estimators": 6, "max_depth": 5, "random_state": 0}
    small_forest = {"n_estimators": 4, "max_depth": 3, "random_state": 0}
    few_trees = {"n_estimators": 4, "random_state": 0}
    leaves = {"path_averaging": False}
    largest = {"kept_gain": None, "do_no_harm": False, "max_leaf_nodes": 12}
    first = {"columns": 1, "of_first": True}
    return {
        "averaged": Case(CalibrationTree, columns=1),
        "averaged, two columns": Case(CalibrationTree, columns=2),
        "averaged, ten classes": Case(CalibrationTree, **ten),
        "leaves": Case(CalibrationTree, params=leaves, columns=1),
        "leaves, ten classes": Case(CalibrationTree, params={**leaves, **largest}, **ten),
        "published": Case(PublishedCalibrationTree),
        "published, ten classes": Case(PublishedCalibrationTree, **ten),
        "log loss": Case(CalibrationTree, params={"scoring": "log_loss"}, columns=1),
        "two classifiers": Case(CalibrationTree, n_classifiers=2),
        "two classifiers, three classes": Case(CalibrationTree, n_classes=3, n_classifiers=2),
        "logit": Case(CalibrationTree, scores="logit", columns=1),
        "logit, two columns": Case(CalibrationTree, scores="logit"),
        "logit, three classes": Case(CalibrationTree, n_classes=3, scores="logit"),
        "margin": Case(CalibrationTree, scores="margin", columns=1),
        "margin, ten classes": Case(CalibrationTree, scores="margin", **ten),
        "published margin": Case(PublishedCalibrationTree, scores="margin"),
        "forest": Case(CalibrationForest, params=forest, columns=1),
        "forest, ten classes": Case(CalibrationForest, params=small_forest, **ten),
        "forest of margins": Case(CalibrationForest, params=forest, scores="margin"),
        "forest of two classifiers": Case(CalibrationForest, params=forest, n_classifiers=2),
        "boosting": Case(CalibrationBoosting, columns=1),
        "boosting, not monotone": Case(CalibrationBoosting, params={"monotone": False}),
        "boosting, three classes": Case(CalibrationBoosting, n_classes=3),
        "boosting, ten classes": Case(CalibrationBoosting, **ten),
        "boosting of logits": Case(CalibrationBoosting, scores="logit", **first),
        "boosting of margins": Case(CalibrationBoosting, scores="margin"),
        "boosting of two classifiers": Case(CalibrationBoosting, n_classifiers=2),
        "boosting of two classifiers, three classes": Case(
            CalibrationBoosting, n_classes=3, n_classifiers=2
        ),
        "boosting, uncalibrated": Case(CalibrationBoosting, scores="perfect", columns=1),
        "ensemble": Case(CalibrationEnsemble, params=few_trees, columns=1),
        "ensemble, three classes": Case(CalibrationEnsemble, n_classes=3, params=few_trees),
        "ensemble of margins": Case(CalibrationEnsemble, scores="margin", params=few_trees),
        "ensemble of two classifiers": Case(CalibrationEnsemble, n_classifiers=2, params=few_trees),
        "ensemble, uncalibrated": Case(
            CalibrationEnsemble, scores="perfect", columns=1, params=few_trees
        ),
        "uncalibrated": Case(CalibrationTree, scores="perfect", columns=1),
        "platt": Case(PlattScaling, columns=1),
        "platt, two columns": Case(PlattScaling),
        "platt, ten classes": Case(PlattScaling, **ten),
        "platt of margins": Case(PlattScaling, n_classes=3, scores="margin"),
        "temperature": Case(TemperatureScaling, columns=1),
        "temperature of margins": Case(TemperatureScaling, scores="margin"),
        "temperature, ten classes": Case(TemperatureScaling, **ten),
        "beta": Case(BetaScaling, columns=1),
        "beta, two classifiers": Case(BetaScaling, n_classifiers=2),
        "beta, ten classes": Case(BetaScaling, **ten),
        "beta, more than thirty classes": Case(BetaScaling, n_classes=31),
        "beta of logits": Case(BetaScaling, scores="logit"),
        "beta of margins": Case(BetaScaling, scores="margin", columns=1),
        "beta of margins, three classes": Case(
            BetaScaling, n_classes=3, n_classifiers=2, scores="margin"
        ),
        "beta of logits, three classes": Case(BetaScaling, n_classes=3, scores="logit"),
        "isotonic": Case(IsotonicScaling, columns=1),
        "isotonic, ten classes": Case(IsotonicScaling, **ten),
        "isotonic of margins": Case(IsotonicScaling, scores="margin"),
        "robust platt": Case(RobustPlattScaling, columns=1),
        "robust platt, ten classes": Case(RobustPlattScaling, **ten),
        "smooth isotonic": Case(SmoothIsotonicScaling, columns=1),
        "regularized isotonic": Case(RegularizedIsotonicScaling, columns=1),
        "smooth isotonic, ten classes": Case(SmoothIsotonicScaling, **ten),
        "regularized isotonic, ten classes": Case(RegularizedIsotonicScaling, **ten),
        "smooth isotonic of margins": Case(SmoothIsotonicScaling, scores="margin"),
        "regularized isotonic of margins": Case(RegularizedIsotonicScaling, scores="margin"),
        "identity": Case(IdentityCalibrator, n_classes=3, n_classifiers=2),
        "averaged, first class": Case(CalibrationTree, **first),
        "published, first class": Case(PublishedCalibrationTree, **first),
        "logit, first class": Case(CalibrationTree, scores="logit", **first),
        "forest of margins, first class": Case(
            CalibrationForest, params=forest, scores="margin", **first
        ),
        "platt, first class": Case(PlattScaling, **first),
        "beta, first class": Case(BetaScaling, **first),
        "isotonic, first class": Case(IsotonicScaling, **first),
        "identity, first class": Case(IdentityCalibrator, **first),
        "rounded": Case(CalibrationTree, scores="rounded", columns=1),
        "rounded, three classes": Case(CalibrationTree, n_classes=3, scores="rounded"),
        "rounded, first class": Case(CalibrationTree, scores="rounded", **first),
        "boosting, rounded": Case(CalibrationBoosting, scores="rounded"),
        "platt, rounded, three classes": Case(PlattScaling, n_classes=3, scores="rounded"),
        "beta, rounded": Case(BetaScaling, scores="rounded", columns=1),
        "identity of logits": Case(IdentityCalibrator, n_classes=3, scores="logit"),
    }


CASES = _cases()
PROBABILITIES = {"probability", "perfect", "rounded"}


@cache
def fitted(name):
    """The calibrator of a case, fitted to a table with every kind of column."""
    case = CASES[name]
    n_rows = 3000 if case.n_classes == 2 else 1200
    table = make_table(n_rows, seed=1)
    rng = np.random.default_rng(2)
    evidence = rng.normal(size=(n_rows, case.n_classes))
    region = (table["number"].fillna(0.0) > 0.3) + 2.0 * table["surname"].isin(NAMES[:2])
    region += (table["code"] == 7).fillna(False) + table["flag"].fillna(False).astype(float)
    strength = np.array([1.0, 2.5, -1.0, 0.3, 0.6, 1.5])[region.to_numpy(int)]
    if case.scores == "perfect":
        strength = np.ones(n_rows)
    truth = strength[:, np.newaxis] * evidence
    truth += np.arange(case.n_classes) / case.n_classes * (strength[:, np.newaxis] - 1.0)
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    labels = label_names(case.n_classes)
    params = dict(case.params)
    if case.of_first:
        params["pos_label"] = labels[0]
    if case.scores in {"logit", "margin"}:
        params["score_type"] = case.scores
    noise = rng.normal(scale=0.3, size=(n_rows, case.n_classifiers, case.n_classes))
    if case.scores == "perfect":
        noise[:] = 0.0
    scores = _as_scores(case, evidence[:, np.newaxis] + noise)
    calibrator = case.calibrator(**params)
    if "categorical_features" in calibrator.get_params():
        calibrator.set_params(categorical_features=["code", "share"])
    shallow = partial(CalibrationForest, max_depth=4)
    with few_rounds(), mock.patch.object(ensemble, "CalibrationForest", shallow):
        return calibrator.fit(table, labels[y], scores=scores)


def label_names(n_classes):
    """Labels in their order, some of which need quoting."""
    return np.array(["O'Hara", *(f"class {j}" for j in range(2, n_classes)), 'say "no"'])


def make_table(n_rows, seed, unseen=False):
    """Attributes of every kind, with missing values, and with unseen categories if asked for."""
    rng = np.random.default_rng(seed)
    surnames = [*NAMES, *PLAIN, *(["never seen", "o'hara", "RED"] if unseen else [])]
    sizes = ["small", "large", "huge"]
    table = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows).round(2),
            INJECTION: rng.integers(-3, 4, n_rows) / 8,
            "s": rng.random(n_rows),
            "surname": pd.Series(rng.choice(surnames, n_rows), dtype=object),
            "size": pd.Categorical(rng.choice(sizes, n_rows), categories=sizes),
            "flag": pd.Series(rng.random(n_rows) < 0.5, dtype="boolean"),
            "code": pd.Series(rng.choice([3, 5, 7, 11, *([9] if unseen else [])], n_rows)).astype(
                "Int64"
            ),
            "share": rng.choice([0.1, 0.25, 1e-3, *([0.7] if unseen else [])], n_rows),
        }
    )
    for j, name in enumerate(table.columns):
        table.loc[rng.random(n_rows) < 0.02 * (j + 1), name] = None
    return table


def hostile_rows(name, n_rows=100_000, seed=5):
    """Rows for a case: a table and a matrix of scores, extreme ones among them."""
    case = CASES[name]
    rng = np.random.default_rng(seed)
    table = make_table(n_rows, seed, unseen=True)
    extreme = rng.random(n_rows) < 0.02
    infinite = rng.choice([np.inf, -np.inf, -0.0, 1e300], n_rows)
    table["number"] = np.where(extreme, infinite, table["number"])
    evidence = rng.normal(scale=2.0, size=(n_rows, case.n_classifiers, case.n_classes))
    scores = _as_scores(case, evidence)
    nasty = rng.random(scores.shape) < 0.05
    if case.scores in PROBABILITIES:
        values = [0.0, 1.0, 1e-300, TINIEST, 0.5, 1e-17, NEXT_TO_ONE, 2.0**-53, 1e-5]
    else:
        values = [0.0, -0.0, 1e100, -1e100, 1e300, -1e300, TINIEST, 1e-300, 40.0, -800.0]
    return table, np.where(nasty, rng.choice(values, scores.shape), scores)


def _as_scores(case, evidence):
    """Evidence by classifier and class as the scores of a case."""
    n_rows = len(evidence)
    if case.scores in PROBABILITIES:
        scores = np.exp(evidence)
        scores /= scores.sum(axis=2, keepdims=True)
        if case.scores == "rounded":
            scores = _round(scores)
        if case.columns == 1:
            return scores[:, 0, :1] if case.of_first else scores[:, 0, 1:2]
        return scores.reshape(n_rows, -1)
    if case.columns == 1:
        margin = evidence[:, 0, 1:2] - evidence[:, 0, :1]
        return -margin if case.of_first else margin
    return evidence.reshape(n_rows, -1)


def _round(scores):
    """Twentieths, some of them 0 or 1, whose sum is 1."""
    steps = np.floor(20 * scores)
    first = steps.argmax(axis=2)[..., np.newaxis]
    missing = 20 - steps.sum(axis=2, keepdims=True)
    np.put_along_axis(steps, first, np.take_along_axis(steps, first, axis=2) + missing, axis=2)
    return steps / 20
