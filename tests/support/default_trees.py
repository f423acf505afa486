"""Rows for default trees, and what was fitted to them."""

import numpy as np
from scipy.special import expit

from caltree._training.do_no_harm import HEDGE


def fitted(tree):
    """Everything that was fitted, as plain values."""
    stored = tree.to_dict()
    return {name: value for name, value in stored.items() if name != "params"}


def rows_with_shift(shift, n_rows, seed=0):
    """Labels whose log-odds are those of the scores, shifted; and the scores."""
    rng = np.random.default_rng(seed)
    odds = 1.5 * rng.standard_normal(n_rows)
    return (rng.random(n_rows) < expit(odds + shift)).astype(int), expit(odds)


def noise(n_rows, n_columns=3, seed=99):
    return np.random.default_rng(seed).standard_normal((n_rows, n_columns))


def assert_uncalibrated(calibrator, X, scores, expected):
    """Scores say what they said, but for a little that saves what is certain and wrong."""
    weight = calibrator.selection_.uncalibrated_weight
    assert weight == 1.0 or abs(weight - (1.0 - HEDGE)) < 1e-12
    assert abs(calibrator.model_.uncalibrated_weight - weight) < 1e-12
    found = calibrator.predict_proba(X, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15 if weight == 1.0 else HEDGE)
