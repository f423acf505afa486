"""Data that a calibration tree can do something with, and ways to compare trees."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationTree, PublishedCalibrationTree
from caltree._fitted.model import FittedModel
from caltree._training.levels import pruned_level

# Nothing is left to choose by cross-validation, and a tree may have any number of leaves.
FIXED = {"kept_gain": None, "path_averaging": False, "do_no_harm": False, "max_leaf_nodes": None}
# The published method, but for nodes in which no score varies.
BOOSTED = {"constant_scores": "frequencies"}
FIXED_BOOSTED = {**BOOSTED, "boosting_iterations": 3, "ccp_alpha": None}


def make_rows(n_rows=300, n_classes=2, seed=0, round_to=2):
    """Attributes, labels and scores that are right in one region and wrong in the other."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, 3)), round_to)
    evidence = rng.normal(size=(n_rows, n_classes))
    truth = np.where(X[:, :1] > 0.3, 3 * evidence, -0.7 * evidence)
    truth[:, 0] += 3 * (X[:, 0] > 0.3) - 1.5 + (X[:, 1] > 0)
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    scores = np.exp(evidence)
    return X, y, scores / scores.sum(axis=1, keepdims=True)


def make_frame(n_rows=300, seed=0):
    """A pandas table with every kind of column, some values missing."""
    rng = np.random.default_rng(seed)
    X, y, scores = make_rows(n_rows, seed=seed)
    colour = np.where(X[:, 0] > 0.3, "red", np.where(X[:, 1] > 0, "green", "blue"))
    frame = pd.DataFrame(
        {
            "number": X[:, 0],
            "colour": pd.Series(colour),
            "size": pd.Categorical(
                np.where(X[:, 2] > 0, "large", "small"), categories=["small", "large"]
            ),
            "known": X[:, 1] > 0,
            "count": pd.Series(rng.integers(0, 9, n_rows), dtype="Int64"),
            "flag": pd.Series(rng.random(n_rows) < 0.5, dtype="boolean"),
        }
    )
    for j, name in enumerate(frame.columns):
        if name != "known":
            frame.loc[rng.random(n_rows) < 0.02 * (j + 1), name] = None
    return frame, y, scores


def fixed_tree(**params):
    """A tree that chooses nothing by cross-validation."""
    return CalibrationTree(**{**FIXED, **params})


def boosted_tree(**params):
    """A tree of LogitBoost's node models that splits by gain ratio."""
    return PublishedCalibrationTree(**{**BOOSTED, **params})


def fixed_boosted_tree(**params):
    """The same, with nothing chosen by cross-validation."""
    return PublishedCalibrationTree(**{**FIXED_BOOSTED, **params})


def finished(structure, models, alpha=None):
    """The arrays of a tree whose leaves alone decide, pruned if a strength is given."""
    return pruned_level(alpha).collapse((structure, models), np.ones(1))


def same_tree(one, other):
    """Whether two fitted trees are the same to the bit, and chosen for the same reason."""
    arrays = [field.name for field in fields(FittedModel) if field.name != "attributes"]
    return one.selection_ == other.selection_ and all(
        np.array_equal(getattr(one.model_, name), getattr(other.model_, name)) for name in arrays
    )


def assert_probabilities(probabilities):
    assert np.isfinite(probabilities).all()
    assert probabilities.min() >= 0.0 and probabilities.max() <= 1.0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def assert_same(one, other, X, scores, X_other=None, scores_other=None):
    assert same_tree(one, other)
    expected = one.predict_proba(X, scores)
    X_other = X if X_other is None else X_other
    scores_other = scores if scores_other is None else scores_other
    assert np.array_equal(expected, other.predict_proba(X_other, scores_other))
    assert np.array_equal(one.apply(X), other.apply(X_other))


both_engines = pytest.mark.parametrize(
    "make", [fixed_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)


def squared_error(probabilities, y):
    """The mean squared error of probabilities."""
    return np.mean((probabilities - np.eye(probabilities.shape[1])[y]) ** 2)
