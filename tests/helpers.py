"""Data that a calibration tree can do something with, and ways to compare trees."""

import numpy as np
import pandas as pd

from caltree import CalibrationTree

FIXED = {"boosting_iterations": 3, "pruning": None}


def make_rows(n_rows=300, n_classes=2, seed=0, round_to=2):
    """Attributes, labels and scores that are right in one region and wrong in the other."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, 3)), round_to)
    evidence = rng.normal(size=(n_rows, n_classes))
    truth = np.where(X[:, :1] > 0.3, 2 * evidence, -1.5 * evidence)
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


def same_tree(one, other):
    """Whether two fitted trees are the same to the bit."""
    return all(
        np.array_equal(getattr(one.tree_, name), getattr(other.tree_, name))
        for name in ("attribute", "threshold", "first_child", "n_rows", "coefficients")
    )


def assert_probabilities(probabilities):
    assert np.isfinite(probabilities).all()
    assert probabilities.min() >= 0.0 and probabilities.max() <= 1.0
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-12)
