"""One fold of the experiment: its rows, its scores, and what the probabilities are worth."""

import math
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB

from caltree import IdentityCalibrator, LogisticModelTree, PlattScaling
from caltree.paper import protocol
from caltree.paper.data import DataSet
from caltree.paper.generators import led24, rdg1
from caltree.paper.protocol import (
    CALIBRATORS,
    LEARNERS,
    calibrate,
    measures,
    n_test_rows,
    outer_folds,
    predict_alone,
    run_fold,
    score,
    seed_of,
)
from tests.support.trees import assert_probabilities


@pytest.fixture(scope="module")
def digits():
    return led24(300)


# Rows


def test_folds_are_disjoint_stratified_and_cover_every_row(digits):
    folds = outer_folds(digits.y, 0, 10, 1)
    assert len(folds) == 10
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(300))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(300))
        for label in digits.classes:
            assert abs(np.sum(digits.y[test] == label) - np.sum(digits.y == label) / 10) < 1


def test_runs_and_seeds_shuffle_otherwise(digits):
    def first_test_rows(run, seed):
        return outer_folds(digits.y, run, 10, seed)[0][1].tolist()

    assert first_test_rows(0, 1) == first_test_rows(0, 1)
    shuffled = [first_test_rows(run, seed) for run, seed in ((0, 1), (1, 1), (0, 7))]
    assert len(set(map(tuple, shuffled))) == 3


def test_a_class_may_have_fewer_rows_than_there_are_folds():
    y = np.array(["common"] * 20 + ["rare"] * 2)
    folds = outer_folds(y, 0, 10, 1)
    assert sum(np.sum(y[test] == "rare") for _, test in folds) == 2


def test_the_number_of_test_rows_does_not_depend_on_the_labels():
    random = np.random.default_rng(0)
    for n_folds in (2, 3, 10):
        for n_rows in (23, 57, 100):
            frequencies = random.dirichlet(np.full(5, 0.7))
            y = np.append(random.choice(5, n_rows - n_folds, p=frequencies), [7] * n_folds)
            sizes = [len(test) for _, test in outer_folds(random.permutation(y), 0, n_folds, 1)]
            assert sizes == [n_test_rows(n_rows, n_folds, fold) for fold in range(n_folds)]


def test_a_seed_depends_on_what_it_is_for():
    assert seed_of("vote", 0, 1, 1) == seed_of("vote", 0, 1, 1) == 3884290526
    others = {seed_of("sick", 0, 1, 1), seed_of("vote", 1, 0, 1), seed_of("vote", 0, 1, 2)}
    assert len(others | {seed_of("vote", 0, 1, 1)}) == 4


class Recorder(ClassifierMixin, BaseEstimator):
    """A learner that writes down which rows it has been trained on."""

    fits: ClassVar[list[set[float]]] = []

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.fits.append(set(X["number"]))
        return self

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def test_no_learner_is_trained_on_test_rows(monkeypatch):
    y = np.array(["a", "b", "c"] * 20)
    data = DataSet("numbered", pd.DataFrame({"number": np.arange(60.0)}), y, ("a", "b", "c"), ())
    monkeypatch.setattr(Recorder, "fits", [])
    for train, test in outer_folds(y, 0, 4, 1):
        Recorder.fits.clear()
        scored = score(data, Recorder(), (train, test), 5)
        # Five parts of the training rows, each left out once, and then all of them.
        *parts, everything = Recorder.fits
        assert everything == set(train)
        assert len(parts) == 5
        left_out = [set(train) - part for part in parts]
        assert sorted(row for rows in left_out for row in rows) == sorted(train)
        assert all(part < set(train) for part in parts)
        assert set(scored.X_test["number"]) == set(test)
        assert scored.y.tolist() == y[train].tolist()
        assert scored.y_test.tolist() == y[test].tolist()


# Scores


def numbers_of(data):
    """The same data set in numbers, for learners that know no categories."""
    X = data.X.apply(lambda column: column.cat.codes.astype(float))
    return DataSet(data.name, X, data.y, data.classes, data.notes)


@pytest.mark.parametrize("seed", [3, 4])
def test_scores_are_those_of_cross_validation(digits, seed):
    data = numbers_of(digits)
    train, test = outer_folds(data.y, 2, 10, 1)[7]
    scored = score(data, BernoulliNB(), (train, test), seed)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    X, y = data.X.iloc[train], data.y[train]
    expected = cross_val_predict(BernoulliNB(), X, y, cv=folds, method="predict_proba")
    np.testing.assert_array_equal(scored.scores, expected)
    refitted = BernoulliNB().fit(X, y).predict_proba(data.X.iloc[test])
    np.testing.assert_array_equal(scored.test_scores, refitted)
    assert (scored.kind, scored.classes.tolist()) == ("probability", list(data.classes))


def test_what_a_learner_tunes_it_tunes_once_on_the_training_rows(digits):
    calls = []

    class Tunes(BernoulliNB):
        def tune(self, X, y):
            calls.append((len(X), y.tolist()))
            return BernoulliNB(alpha=7.0)

    data = DataSet("digits", digits.X.astype(int), digits.y, digits.classes, ())
    fold = outer_folds(data.y, 0, 10, 1)[0]
    scored = score(data, Tunes(), fold, 3)
    assert calls == [(270, data.y[fold[0]].tolist())]
    assert np.array_equal(scored.scores, score(data, BernoulliNB(alpha=7.0), fold, 3).scores)


def test_a_class_that_training_lacks_has_the_probability_0():
    data = rdg1(80)
    y = data.y.astype("<U4")
    y[11] = "rare"
    data = DataSet("rdg1", data.X, y, ("c1", "rare", "c0"), ())
    fold = next(fold for fold in outer_folds(y, 0, 5, 1) if 11 in fold[1])
    scored = score(data, LEARNERS["naive_bayes"](0), fold, 0)
    probabilities = calibrate(scored, IdentityCalibrator(), data.classes)
    assert_probabilities(probabilities)
    assert probabilities[:, 1].tolist() == [0.0] * len(fold[1])
    # The columns are in the order of the labels, which need not be sorted.
    np.testing.assert_allclose(probabilities[:, [2, 0]], scored.test_scores, rtol=1e-12)
    found = measures(scored.y_test, probabilities, data.classes)
    assert math.isfinite(found["log_loss"]) and found["rmse"] > 0


def test_the_calibrators_are_told_what_kind_of_scores_they_get(digits):
    class Margins(BernoulliNB):
        decision_function = BernoulliNB.predict_joint_log_proba
        predict_proba = property()

    data = numbers_of(digits)
    scored = score(data, Margins(), outer_folds(data.y, 0, 10, 1)[0], 0)
    assert scored.kind == "margin"
    assert scored.scores.max() < 0
    told = PlattScaling()
    assert_probabilities(calibrate(scored, told, data.classes))
    assert told.score_type == "margin"
    expected = PlattScaling(score_type="margin").fit(scored.X, scored.y, scores=scored.scores)
    np.testing.assert_array_equal(
        calibrate(scored, PlattScaling(), data.classes),
        expected.predict_proba(scored.X_test, scores=scored.test_scores),
    )


# Folds


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_fold_of_every_learner(learner):
    data = rdg1(60)
    outcome = run_fold(data, learner, 0, 1, list(CALIBRATORS), n_folds=3)
    assert list(outcome.measures) == list(CALIBRATORS)
    names = ["rmse", "log_loss", "brier_score", "calibration_error", "accuracy", "auc"]
    for found in outcome.measures.values():
        assert list(found) == names
        assert all(map(math.isfinite, found.values()))
        assert 0 < found["rmse"] < 1 and 0 < found["accuracy"] <= 1
        assert found["brier_score"] == pytest.approx(found["rmse"] ** 2, rel=1e-12)
    assert list(outcome.seconds) == [learner, *(f"calibrator {name}" for name in CALIBRATORS)]
    assert outcome.seconds[learner] > 0
    assert min(outcome.seconds.values()) >= 0
    assert len({found["rmse"] for found in outcome.measures.values()}) > 1


def test_a_classifier_alone_is_judged_as_it_is():
    data = rdg1(60)
    rows, test_rows = outer_folds(data.y, 0, 3, 1)[1]
    outcome = run_fold(data, "logistic_model_tree", 0, 1, ["pct", "platt"], n_folds=3)
    model = LogisticModelTree().fit(data.X.iloc[rows], data.y[rows])
    found = model.predict_proba(data.X.iloc[test_rows])
    order = [model.classes_.tolist().index(label) for label in data.classes]
    assert outcome.measures == {"none": measures(data.y[test_rows], found[:, order], data.classes)}
    assert list(outcome.seconds) == ["logistic_model_tree"]


def test_a_classifier_alone_gives_an_absent_class_the_probability_0():
    data = rdg1(80)
    y = data.y.astype("<U4")
    y[11] = "rare"
    data = DataSet("rdg1", data.X, y, ("c1", "rare", "c0"), ())
    fold = next(fold for fold in outer_folds(y, 0, 5, 1) if 11 in fold[1])
    probabilities = predict_alone(data, "logistic_model_tree", fold)
    assert_probabilities(probabilities)
    assert probabilities[:, 1].tolist() == [0.0] * len(fold[1])


def test_a_fold_is_the_same_every_time_and_with_every_company(digits):
    together = run_fold(digits, "naive_bayes", 0, 2, tuple(CALIBRATORS))
    for name, found in together.measures.items():
        assert run_fold(digits, "naive_bayes", 0, 2, [name]).measures == {name: found}
    assert list(run_fold(digits, "naive_bayes", 0, 2, []).seconds) == ["naive_bayes"]


def test_chance_is_given_by_the_seed():
    data = rdg1(40, n_numeric=3)
    first = run_fold(data, "svm", 0, 0, ["none"], n_folds=2)
    assert run_fold(data, "svm", 0, 0, ["none"], n_folds=2).measures == first.measures
    assert run_fold(data, "svm", 0, 0, ["none"], n_folds=2, seed=2).measures != first.measures


def test_runs_folds_and_seeds_differ(digits):
    def found(run, fold, seed):
        return run_fold(digits, "naive_bayes", run, fold, ["none"], seed=seed).measures["none"]

    cells = [(0, 0, 1), (0, 1, 1), (1, 0, 1), (0, 0, 5)]
    assert len({found(*cell)["log_loss"] for cell in cells}) == 4


def test_the_rows_of_a_fold_are_those_of_its_run(digits, monkeypatch):
    seen = []

    def spy(data, learner, fold, seed):
        seen.append((fold, seed))
        return score(data, learner, fold, seed)

    monkeypatch.setattr(protocol, "score", spy)
    run_fold(digits, "naive_bayes", 3, 4, ["none"], n_folds=6, seed=8)
    [((train, test), seed)] = seen
    expected = outer_folds(digits.y, 3, 6, 8)[4]
    assert (train.tolist(), test.tolist()) == (expected[0].tolist(), expected[1].tolist())
    assert seed == seed_of("led24", 3, 4, 8)


def test_measures_worked_by_hand():
    y = np.array(["no", "yes", "yes", "no"])
    probabilities = np.array([[0.8, 0.2], [0.4, 0.6], [0.9, 0.1], [0.5, 0.5]])
    found = measures(y, probabilities, ("no", "yes"))
    squares = (0.2**2 + 0.4**2 + 0.9**2 + 0.5**2) / 4
    assert found["rmse"] == pytest.approx(math.sqrt(squares), rel=1e-12)
    assert found["brier_score"] == pytest.approx(squares, rel=1e-12)
    logarithms = [math.log(0.8), math.log(0.6), math.log(0.1), math.log(0.5)]
    assert found["log_loss"] == pytest.approx(-sum(logarithms) / 4, rel=1e-12)
    assert found["accuracy"] == 0.75
    # Of four pairs of a "yes" and a "no", 0.6 is above 0.2 and 0.5, and 0.1 below both.
    assert found["auc"] == 0.5
    # Of two classes the columns are mirrored; every row is alone in its bin.
    errors = 0.2 + 0.4 + 0.9 + 0.5
    assert found["calibration_error"] == pytest.approx(errors / 4, rel=1e-12)


def test_measures_follow_the_order_of_the_labels():
    y = np.array(["b", "a", "b"])
    probabilities = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert measures(y, probabilities, ("b", "a")) == {
        "rmse": 0.0,
        "log_loss": pytest.approx(0.0, abs=1e-12),
        "brier_score": 0.0,
        "calibration_error": 0.0,
        "accuracy": 1.0,
        "auc": 1.0,
    }


def test_the_auc_of_two_classes_shares_ties_and_needs_both():
    y = np.array(["no", "yes", "yes", "no"])
    second = np.array([0.2, 0.6, 0.2, 0.5])
    probabilities = np.column_stack([1 - second, second])
    # 0.6 is above both, 0.2 below one and level with the other: 2.5 of 4 pairs.
    assert measures(y, probabilities, ("no", "yes"))["auc"] == 0.625
    assert "auc" not in measures(y[1:3], probabilities[1:3], ("no", "yes"))


def test_the_auc_of_many_classes_is_weighted_and_leaves_out_a_class_without_rows():
    y = np.array(["a", "a", "b", "c"])
    probabilities = np.array(
        [[0.5, 0.3, 0.2, 0.0], [0.2, 0.4, 0.4, 0.0], [0.3, 0.6, 0.1, 0.0], [0.1, 0.5, 0.4, 0.0]]
    )
    # Of a 3 of 4 pairs, two rows; of b all 3; of c 2 and a tie of 3.
    expected = (2 * 3 / 4 + 1 + 2.5 / 3) / 4
    found = measures(y, probabilities, ("a", "b", "c", "d"))["auc"]
    assert found == pytest.approx(expected, rel=1e-12)
