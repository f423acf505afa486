"""What a fitted calibrated classifier says, and what it remembers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from caltree import CalibratedClassifier, CalibrationTree, IsotonicScaling, PlattScaling

from ..support.classifiers import Says, Told, recorder
from ..support.trees import assert_probabilities, fixed_tree, make_rows

X, Y, SCORES = make_rows(160)
X3, Y3, SCORES3 = make_rows(200, n_classes=3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
METHODS = ["predict", "predict_proba", "predict_log_proba", "decision_function"]
DATA = pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
CALIBRATORS = pytest.mark.parametrize(
    "calibrator",
    [None, PlattScaling(), IsotonicScaling()],
    ids=["default", "PlattScaling", "IsotonicScaling"],
)


def model_of(calibrator=None, estimator=None, **params):
    estimator, calibrator = estimator or GaussianNB(), calibrator or fixed_tree()
    return CalibratedClassifier(estimator, calibrator, cv=3, **params)


def test_the_default_calibrator_is_a_calibration_tree():
    model = CalibratedClassifier(GaussianNB()).fit(X, Y)
    assert isinstance(model.calibrator_, CalibrationTree)
    assert model.calibrator_.get_params() == CalibrationTree(score_type="probability").get_params()
    assert model.calibrator == "tree"


def test_calibration_helps_a_classifier_that_is_wrong_in_one_region():
    X, y, scores = make_rows(1500, seed=3)
    table, train, rest = np.hstack([scores, X]), slice(0, 1000), slice(1000, 1500)
    errors = [
        brier_score_loss(
            y[rest], model.fit(table[train], y[train]).predict_proba(table[rest])[:, 1]
        )
        for model in (
            model_of(CalibrationTree(), Says()),
            model_of(PlattScaling(), Says()),
            Says(),
        )
    ]
    assert errors[0] < 0.75 * min(errors[1:])


@DATA
@CALIBRATORS
def test_the_prediction_is_the_most_probable_class(data, calibrator):
    words = np.array(["x", "y", "z"])
    model = model_of(calibrator).fit(data[0], words[data[1]])
    probabilities = model.predict_proba(data[0])
    assert_probabilities(probabilities)
    assert probabilities.shape == (len(data[0]), len(model.classes_))
    assert np.array_equal(model.predict(data[0]), words[probabilities.argmax(axis=1)])


@DATA
@CALIBRATORS
def test_the_decision_function_agrees_with_the_prediction(data, calibrator):
    model = model_of(calibrator).fit(*data)
    decision, predicted = model.decision_function(data[0]), model.predict(data[0])
    assert np.isfinite(decision).all()
    if len(model.classes_) == 2:
        assert decision.shape == (len(data[0]),)
        assert np.array_equal(decision > 0, predicted == 1)
    else:
        assert decision.shape == (len(data[0]), 3)
        assert np.array_equal(decision.argmax(axis=1), predicted)


def test_the_decision_function_is_the_log_odds_of_two_classes():
    model = model_of(PlattScaling()).fit(X, Y)
    second = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(model.decision_function(X), np.log(second / (1 - second)), rtol=1e-9)


def certain(n_classes=2):
    """A model of isotonic regression that knows some rows for certain."""
    scores = np.eye(n_classes)[np.arange(60) % n_classes]
    return CalibratedClassifier(Says(), IsotonicScaling()).fit(scores, np.arange(60) % n_classes)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_certainty_has_minus_infinity_as_logarithm_and_a_finite_decision(n_classes):
    model, rows = certain(n_classes), np.eye(n_classes)
    assert np.array_equal(model.predict_proba(rows), rows)
    logarithms = model.predict_log_proba(rows)
    assert np.array_equal(logarithms, np.where(rows == 1, 0, -np.inf))
    decision = model.decision_function(rows)
    assert np.isfinite(decision).all()
    if n_classes == 2:
        assert decision[0] < -700 and decision[1] > 700


def test_logarithms_are_those_of_the_probabilities():
    model = model_of().fit(X3, Y3)
    assert np.array_equal(model.predict_log_proba(X3), np.log(model.predict_proba(X3)))


def test_the_score_is_the_weighted_accuracy():
    model, weights = model_of().fit(X, Y), np.linspace(0, 1, 160)
    expected = accuracy_score(Y, model.predict(X), sample_weight=weights)
    assert model.score(X, Y, sample_weight=weights) == expected


def test_what_is_fitted_can_be_looked_at():
    model = model_of().fit(FRAME, Y)
    assert model.classes_.tolist() == [0, 1]
    assert isinstance(model.estimator_, GaussianNB) and model.estimator_ is not model.estimator
    assert model.response_methods_ == ["predict_proba"]
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = model.calibrator_.predict_proba(FRAME, model.estimator_.predict_proba(FRAME))
    assert np.array_equal(model.predict_proba(FRAME), expected)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_said_before_fit(method):
    with pytest.raises(NotFittedError, match="CalibratedClassifier instance is not fitted yet"):
        getattr(model_of(), method)(X)


def test_a_second_fit_forgets_the_first():
    model = model_of(attributes=slice(1, None)).fit(FRAME, np.array(["no", "yes"])[Y])
    model.fit(X3, Y3)
    fresh = model_of(attributes=slice(1, None)).fit(X3, Y3)
    assert set(vars(model)) == set(vars(fresh))
    assert not hasattr(model, "feature_names_in_")
    assert np.array_equal(model.predict_proba(X3), fresh.predict_proba(X3))


def test_a_second_fit_forgets_how_many_columns_the_first_had():
    model = model_of().fit(X, Y)
    model.set_params(estimator=Says(), attributes=[2]).fit(np.hstack([SCORES, X]), Y)
    assert not hasattr(model, "n_features_in_")


class Breaks(ClassifierMixin, BaseEstimator):
    """Fails in one of its steps."""

    def __init__(self, step):
        self.step = step

    def fit(self, X, y):
        if self.step == "fit":
            raise RuntimeError("fit broke")
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        if self.step == "predict_proba":
            raise RuntimeError("predict_proba broke")
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


class BreaksToo(Told):
    def fit(self, X, y, scores):
        raise RuntimeError("calibrator broke")


@pytest.mark.parametrize(
    ("estimator", "calibrator"),
    [
        (Breaks("fit"), PlattScaling()),
        (Breaks("predict_proba"), PlattScaling()),
        (Breaks("nowhere"), BreaksToo()),
    ],
    ids=["fit", "predict_proba", "calibrator"],
)
def test_a_failed_fit_leaves_everything_as_it_was(estimator, calibrator):
    model = CalibratedClassifier(estimator, calibrator)
    with pytest.raises(RuntimeError, match="broke"):
        model.fit(X, Y)
    assert not hasattr(model, "classes_")
    model = model_of().fit(X, Y)
    expected = model.predict_proba(X)
    model.set_params(estimator=estimator, calibrator=calibrator)
    before = vars(model).copy()
    with pytest.raises(RuntimeError, match="broke"):
        model.fit(X3[:, :2], Y3)
    assert vars(model) == before
    assert np.array_equal(model.predict_proba(X), expected)


def test_a_changed_parameter_changes_nothing_before_the_next_fit():
    model = model_of(estimator=[LinearSVC(), GaussianNB()]).fit(X, Y)
    expected = model.predict_proba(X)
    model.set_params(response_method="decision_function", attributes=[0], combine="average")
    model.set_params(estimator=LogisticRegression(), calibrator=PlattScaling(), cv=2)
    assert np.array_equal(model.predict_proba(X), expected)


def test_new_rows_are_checked_by_the_classifier():
    with pytest.raises(ValueError, match="X has 2 features, but GaussianNB is expecting 3"):
        model_of().fit(X, Y).predict_proba(X[:, :2])


def test_no_rows_have_no_probabilities():
    model = CalibratedClassifier(Says(), fixed_tree()).fit(np.hstack([SCORES, X]), Y)
    assert model.predict_proba(np.empty((0, 5))).shape == (0, 2)


def test_fitting_twice_gives_the_same_digits():
    estimator, calls = recorder()
    model = model_of(estimator=estimator)
    first = model.fit(X, Y).predict_proba(X)
    assert np.array_equal(model.fit(X, Y).predict_proba(X), first)
    assert len(calls) == 8
