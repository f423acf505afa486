"""Small forests, and rows for them."""

import json

import numpy as np
from scipy.special import softmax

from caltree import CalibrationForest

FEW = {"n_estimators": 8, "random_state": 0}


def few(**params):
    """A small forest."""
    return CalibrationForest(**{**FEW, **params})


def fitted(forest):
    """Everything that was fitted, as plain values."""
    stored = forest.to_dict()
    return {name: value for name, value in stored.items() if name != "params"}


def same_forest(one, other):
    return fitted(one) == fitted(other)


def log_loss(probabilities, y):
    return float(-np.log(probabilities[np.arange(len(y)), y]).mean())


def calibrated_rows(n_rows, n_classes, seed):
    """Probabilities that are right, and attributes that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    scores = softmax(1.5 * rng.standard_normal((n_rows, n_classes)), axis=1)
    y = (rng.random((n_rows, 1)) > np.cumsum(scores, axis=1)).sum(axis=1)
    return X, np.minimum(y, n_classes - 1), scores


def assert_survives(forest, X, scores):
    again = CalibrationForest.from_dict(json.loads(json.dumps(forest.to_dict(), allow_nan=False)))
    assert again.to_dict() == forest.to_dict()
    assert np.array_equal(again.predict_proba(X, scores), forest.predict_proba(X, scores))
    return again
