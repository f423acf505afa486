"""Calibrated classifiers on a cluster."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from caltree import CalibratedClassifier as LocalClassifier
from caltree import CalibrationTree as LocalTree
from caltree import PlattScaling
from caltree._inputs.folds import hashed_folds
from caltree.dask import CalibratedClassifier, CalibrationTree

from ..support.dask_classifiers import BrokenBayes, DaskBayes, DaskMargins, OnlyDaskBayes
from ..support.dask_rows import QUICK, divided
from ..support.default_trees import fitted
from ..support.trees import make_rows

SIZES = (250, 0, 151, 199)


def plain_rows(n_classes=2):
    X, y, _ = make_rows(600, n_classes=n_classes)
    return X, np.array(["no", "yes", "perhaps"], dtype=object)[y]


def calibrated(estimator, **params):
    return CalibratedClassifier(estimator, CalibrationTree(**QUICK), **params)


@pytest.mark.parametrize(
    ("n_classes", "margins"), [(2, False), (3, True)], ids=["probabilities", "margins"]
)
def test_a_frozen_classifier_is_calibrated_as_on_one_machine(client, n_classes, margins):
    X, y = plain_rows(n_classes)
    base = LinearSVC() if margins else GaussianNB()
    frozen = FrozenEstimator(base.fit(X[:200], y[:200]))
    expected = LocalClassifier(frozen, LocalTree(tree_method="hist", **QUICK)).fit(X, y)
    rows = divided(X, SIZES)
    model = calibrated(frozen).fit(rows, divided(y, SIZES))
    assert fitted(model.calibrator_) == fitted(expected.calibrator_)
    assert model.fingerprint_.to_dict() == expected.fingerprint_.to_dict()
    assert model.n_features_in_ == 3 and model.response_methods_ == expected.response_methods_
    for method in ("predict_proba", "predict_log_proba", "decision_function", "predict"):
        lazy = getattr(model, method)(rows)
        assert isinstance(lazy, da.Array)
        assert np.array_equal(lazy.compute(), getattr(expected, method)(X))
        assert np.array_equal(getattr(model, method)(X), getattr(expected, method)(X))


def test_dataframes_weights_and_chosen_columns(client):
    X, y = plain_rows()
    X, y = pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(y)
    weights = pd.Series(np.random.default_rng(0).integers(0, 3, 600).astype(float))
    weights[:250] = 0.0
    frozen = FrozenEstimator(GaussianNB().fit(X[:250], y[:250]))
    tree = LocalTree(tree_method="hist", **QUICK)
    expected = LocalClassifier(frozen, tree, attributes=["c", "a"]).fit(X, y, weights)
    model = calibrated(frozen, attributes=["c", "a"])
    model.fit(*(divided(values, SIZES) for values in (X, y, weights)))
    assert list(model.calibrator_.feature_names_in_) == ["c", "a"]
    assert fitted(model.calibrator_) == fitted(expected.calibrator_)
    assert model.fingerprint_.to_dict() == expected.fingerprint_.to_dict()
    found = model.predict_proba(divided(X, SIZES))
    assert np.array_equal(found.compute(), expected.predict_proba(X))


def test_a_class_that_no_calibration_row_has(client):
    X, y = plain_rows(3)
    frozen = FrozenEstimator(GaussianNB().fit(X, y))
    some = y != "perhaps"
    expected = LocalClassifier(frozen, LocalTree(tree_method="hist", **QUICK))
    sizes = (100, int(some.sum()) - 100)
    with pytest.warns(UserWarning, match="no calibration row has the classes"):
        expected.fit(X[some], y[some])
    with pytest.warns(UserWarning, match="no calibration row has the classes"):
        model = calibrated(frozen)
        model.fit(divided(X[some], sizes), divided(y[some], sizes))
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    rows = divided(X, SIZES)
    assert np.array_equal(model.predict_proba(rows).compute(), expected.predict_proba(X))


def out_of_fold(X, y, weights, n_folds):
    """Scores of rows by naive Bayes that has not seen them, and of the one that has."""
    fold = hashed_folds(0, len(y), n_folds, n_folds, 0)
    scores = np.empty((len(y), 2))
    for number in range(n_folds):
        own, others = fold == number, fold != number
        some = None if weights is None else weights[others]
        scores[own] = GaussianNB().fit(X[others], y[others], some).predict_proba(X[own])
    return scores, GaussianNB().fit(X, y, weights)


@pytest.mark.parametrize("make", [DaskBayes, OnlyDaskBayes, DaskMargins])
def test_out_of_fold_scores_train_the_calibrator(client, make):
    X, y = plain_rows()
    scores, bayes = out_of_fold(X, y, None, 3)
    tree = LocalTree(tree_method="hist", **QUICK)
    if make is DaskMargins:
        logs = np.log(scores)
        tree.set_params(score_type="margin").fit(X, y, logs[:, 1] - logs[:, 0])
    else:
        tree.fit(X, y, scores)
    rows = divided(X, (250, 350))
    model = calibrated(make(), cv=3).fit(rows, divided(y, (250, 350)))
    found = model.predict_proba(rows).compute()
    if make is DaskMargins:
        # Logarithms are not quite undone by exponentials.
        assert model.calibrator_.score_type_ == "margin"
        assert model.calibrator_.model_.attribute.tolist() == tree.model_.attribute.tolist()
    else:
        assert fitted(model.calibrator_) == fitted(tree)
        assert np.array_equal(found, tree.predict_proba(X, bayes.predict_proba(X)))


def test_weights_go_to_the_classifier_too(client):
    X, y = plain_rows()
    weights = np.random.default_rng(0).integers(0, 3, 600).astype(float)
    keep = weights > 0
    scores, bayes = out_of_fold(X[keep], y[keep], weights[keep], 2)
    tree = LocalTree(tree_method="hist", **QUICK).fit(X[keep], y[keep], scores, weights[keep])
    model = calibrated(DaskBayes(), cv=2)
    otherwise = da.from_array(y, chunks=100), da.from_array(weights, chunks=500)
    model.fit(da.from_array(X, chunks=(SIZES, 2)), *otherwise)
    assert fitted(model.calibrator_) == fitted(tree)
    local = model.to_local()
    assert type(local) is LocalClassifier and type(local.calibrator_) is LocalTree
    assert np.array_equal(local.predict_proba(X), tree.predict_proba(X, bayes.predict_proba(X)))
    assert np.array_equal(clone(local).fit(X, y).predict(X[:5]).shape, (5,))


@pytest.mark.filterwarnings("ignore:Parameter n_jobs will be ignored")  # LightGBM's own default
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # LightGBM 4.6, of arrays
def test_lightgbm(client):
    lightgbm = pytest.importorskip("lightgbm")
    X, y = plain_rows()
    X, y = np.tile(X, (4, 1)), np.tile(y == "yes", 4).astype(int)
    sizes = (1200, 1200)
    base = lightgbm.DaskLGBMClassifier(n_estimators=3, num_leaves=4, verbose=-1)
    model = calibrated(base, cv=2).fit(divided(X, sizes), divided(y, sizes))
    assert isinstance(model.estimator_, lightgbm.DaskLGBMClassifier)
    found = model.predict_proba(divided(X, sizes)).compute()
    local = model.to_local()
    assert isinstance(local.estimator_, lightgbm.LGBMClassifier)
    assert np.array_equal(found, local.predict_proba(X))
    before = model.estimator_.predict_proba(divided(X, sizes)).compute()
    # Where calibrating does not help, the scores are left alone.
    assert np.mean((found[:, 1] - y) ** 2) <= np.mean((before[:, 1] - y) ** 2)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"estimator": GaussianNB()}, TypeError, r"GaussianNB cannot be fitted to Dask coll.*Froz"),
        ({"estimator": [DaskBayes()]}, TypeError, "estimator must be one classifier, got a list"),
        ({"estimator": "bayes"}, TypeError, "estimator must be a classifier"),
        ({"estimator": FrozenEstimator(GaussianNB())}, NotFittedError, "is not fitted"),
        ({"calibrator": PlattScaling()}, TypeError, r"PlattScaling does not take Dask.*use caltr"),
        (
            {"calibrator": "forest"},
            ValueError,
            "calibrator must be one of 'tree', 'boosting', got 'forest'",
        ),
        ({"calibrator": None}, TypeError, "calibrator must have fit"),
        ({"calibrator": LogisticRegression()}, TypeError, "calibrator must have fit"),
        ({"cv": 1}, ValueError, "cv must be a whole number from 2"),
        ({"response_method": "none"}, ValueError, "response_method must be one of"),
        ({"attributes": [3]}, ValueError, "attributes has the index 3, but X has 3 columns"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_before_any_work(client, params, error, message):
    X, y = plain_rows()
    with pytest.raises(error, match=message):
        CalibratedClassifier(**{"estimator": DaskBayes(), **params}).fit(
            divided(X, SIZES), divided(y, SIZES)
        )


def test_a_classifier_that_says_nothing(client):
    X, y = plain_rows()
    message = r"^BrokenBayes.predict_proba gave NaN for row 0; .*\(in partition \d\)$"
    with pytest.raises(ValueError, match=message):
        calibrated(BrokenBayes(), cv=2).fit(divided(X, (250, 350)), divided(y, (250, 350)))


def test_one_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        CalibratedClassifier(DaskBayes()).predict(da.zeros((3, 3)))
