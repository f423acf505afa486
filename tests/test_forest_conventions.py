"""CalibrationForest: what it refuses, and the conventions of scikit-learn that it keeps."""

import copy
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from caltree import CalibratedClassifier, CalibrationForest

from .support.forests import (
    few,
    same_forest,
)
from .support.trees import assert_probabilities, make_frame, make_rows, squared_error

# Refusals


BAD_PARAMETERS = {
    "n_estimators": [0, 1, -3, 2.0, "many", None, True, 10**9],
    "max_features": [0, 0.0, -1, 1.5, Fraction(3, 2), "all", None, True, float("nan")],
    "l2_regularization": [0, 0.0, -1.0, 1e-10, 1e10, 10**400, "weak", None, True, float("nan")],
    "scoring": ["mse", "logloss", None, 3],
    "do_no_harm": ["yes", 1, 0, None],
    "min_samples_leaf": [0, 0.5, 2.0, -1, "two", None, True, float("nan"), float("inf")],
    "max_depth": [-1, 2.0, "deep", True],
    "max_bins": [1, 0, 2.0, None, 65_535, 10**9, "many"],
    "score_type": ["probabilities", None, 0],
    "random_state": ["luck", -1, 0.5, [1, 2]],
    "n_jobs": [0, 1.5, "all", True],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_PARAMETERS.items() for value in values],
)
def test_bad_parameters_are_named(name, value):
    X, y, scores = make_rows(20)
    forest = few(**{name: value})
    with pytest.raises(ValueError, match=name):
        forest._check_parameters()
    with pytest.raises(ValueError, match=name):
        forest.fit(X, y, scores)
    assert not hasattr(forest, "model_")


@pytest.mark.parametrize("columns", [["x9"], [9], [True], "x0", 3])
def test_bad_categorical_features_are_named(columns):
    X, y, scores = make_rows(20)
    with pytest.raises((ValueError, TypeError), match="categorical_features"):
        few(categorical_features=columns).fit(X, y, scores)


def test_good_parameters_are_taken():
    X, y, scores = make_rows(50)
    good = {
        "n_estimators": [2, np.int64(3)],
        "max_features": [1, 2, 0.1, 1.0, np.float64(0.5), np.int64(1)],
        "l2_regularization": [1, 1e-3, np.float32(0.5)],
        "do_no_harm": [False, np.True_],
        "min_samples_leaf": [1, np.int64(2), 1000],
        "max_depth": [None, 0, 3],
        "max_bins": [2, 65_534],
        "random_state": [None, 0, np.random.RandomState(0)],
        "n_jobs": [None, 1, -1],
    }
    for name, values in good.items():
        for value in values:
            forest = few(**{"n_estimators": 2, name: value}).fit(X, y, scores)
            assert_probabilities(forest.predict_proba(X, scores))


def test_wrong_widths_and_lengths_are_named():
    X, y, scores = make_rows(100, 3)
    forest = few(n_estimators=2).fit(X, y, scores)
    for given_X, given_scores, message in (
        (X[:, :2], scores, "X has 2 attributes"),
        (X, scores[:, :2], "scores has 2 columns"),
        (X, np.hstack([scores, scores]), "scores has 6 columns"),
        (X[:50], scores, "scores has 100 rows, but X has 50"),
        (X, np.full(scores.shape, np.nan), "scores contains NaN"),
        (X, 2 * scores, "not a probability"),
    ):
        with pytest.raises(ValueError, match=message):
            forest.predict_proba(given_X, given_scores)
    for fit, message in (
        ((X, y[:50], scores), "y has 50 labels"),
        ((X, y, scores[:50]), "scores has 50 rows"),
        ((X, y, scores[:, :2]), "scores has 2 columns"),
        ((X, np.zeros(100), scores), "one class only"),
        ((X, None, scores), "y"),
    ):
        with pytest.raises(ValueError, match=message):
            few(n_estimators=2).fit(*fit)
    two = few(n_estimators=2).fit(X, y > 0, scores[:, 0])
    with pytest.raises(ValueError, match="scores has 4 columns"):
        two.predict_proba(X, np.full((100, 4), 0.5))


def test_no_rows_at_all_give_no_probabilities():
    X, y, scores = make_rows(100)
    forest = few().fit(X, y, scores)
    assert forest.predict_proba(X[:0], scores[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda forest: forest.predict_proba([[0]], [0.5]),
        lambda forest: forest.feature_importances_,
        lambda forest: forest.to_dict(),
        lambda forest: forest.save("never.json"),
    ],
)
def test_an_unfitted_forest_says_so(ask):
    with pytest.raises(NotFittedError, match="CalibrationForest"):
        ask(CalibrationForest())


# scikit-learn's conventions


def test_parameters_are_kept_as_given():
    params = {
        "n_estimators": 7,
        "max_features": 0.3,
        "l2_regularization": 0.2,
        "scoring": "log_loss",
        "do_no_harm": False,
        "min_samples_leaf": 3,
        "max_depth": 4,
        "max_bins": 30,
        "score_type": "logit",
        "pos_label": "yes",
        "categorical_features": [1],
        "drop_identifiers": False,
        "random_state": 5,
        "n_jobs": 2,
        "verbose": 1,
    }
    forest = CalibrationForest(**params)
    assert forest.get_params() == params
    assert clone(forest).get_params() == params
    assert CalibrationForest().set_params(**params).get_params() == params
    assert CalibrationForest(30).n_estimators == 30
    assert repr(CalibrationForest(30)) == "CalibrationForest(n_estimators=30)"
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        forest.set_params(depth=3)


def test_fit_changes_neither_parameters_nor_data():
    frame, y, scores = make_frame()
    for X in (frame, make_rows()[0]):
        weight = np.arange(len(y)) % 3
        given = [copy.deepcopy(value) for value in (X, y, scores, weight)]
        forest = few(n_jobs=2)
        params = forest.get_params()
        assert forest.fit(X, y, scores, sample_weight=weight) is forest
        forest.predict_proba(X, scores)
        assert forest.get_params() == params
        for before, after in zip(given, (X, y, scores, weight), strict=True):
            assert pd.DataFrame(before).equals(pd.DataFrame(after))


def test_fitting_again_forgets_what_was():
    frame, y, scores = make_frame()
    X, y3, scores3 = make_rows(n_classes=3)
    forest = few().fit(frame, np.array(["no", "yes"])[y], scores)
    assert forest.n_features_in_ == 6 and forest.feature_names_in_.tolist() == list(frame.columns)
    forest.set_params(score_type="margin").fit(X, y3, scores3)
    fresh = few(score_type="margin").fit(X, y3, scores3)
    assert not hasattr(forest, "feature_names_in_")
    assert vars(forest).keys() == vars(fresh).keys()
    assert same_forest(forest, fresh) and forest.n_features_in_ == 3


def test_in_a_calibrated_classifier():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    # Two attributes that count once are seen twice.
    X[:, 2] = X[:, 1] + 0.01 * rng.standard_normal(600)
    y = (rng.random(600) < expit(3 * X[:, 1] * np.sign(X[:, 0]))).astype(int)
    model = CalibratedClassifier(GaussianNB(), few(), cv=3).fit(X, y)
    assert isinstance(model.calibrator_, CalibrationForest)
    calibrated = model.predict_proba(X)
    assert_probabilities(calibrated)
    alone = GaussianNB().fit(X, y).predict_proba(X)
    assert squared_error(calibrated, y) < 0.9 * squared_error(alone, y)
    with joblib.parallel_config("threading"):
        again = CalibratedClassifier(GaussianNB(), few(n_jobs=2), cv=3, n_jobs=2).fit(X, y)
    assert np.array_equal(again.predict_proba(X), calibrated)
    joint = CalibratedClassifier([GaussianNB(), LogisticRegression()], few(), cv=3).fit(X, y)
    assert_probabilities(joint.predict_proba(X))


def test_in_a_grid_search():
    X, y, _ = make_rows(200)
    grid = {"calibrator__n_estimators": [2, 6], "calibrator__scoring": ["rmse", "log_loss"]}
    search = GridSearchCV(
        CalibratedClassifier(GaussianNB(), few(), cv=2), grid, cv=2, scoring="neg_log_loss"
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_.calibrator_
    assert best.model_.n_trees == search.best_params_["calibrator__n_estimators"]


DRAWN = "rows are drawn as they come, and count by their weights once drawn"


@pytest.fixture
def _one_thread():
    """Many threads for a few rows wait for each other most of the time."""
    with threadpool_limits(1):
        yield


@pytest.mark.usefixtures("_one_thread")
@parametrize_with_checks(
    [CalibratedClassifier(LogisticRegression(), few(n_estimators=4), cv=2)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": DRAWN,
        "check_sample_weight_equivalence_on_sparse_data": DRAWN,
    },
)
def test_it_passes_every_check_of_a_classifier(estimator, check):
    check(estimator)
