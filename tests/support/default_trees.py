"""Rows for default trees, and what was fitted to them."""

import numpy as np
from scipy.special import expit


def fitted(tree):
    """Everything that was fitted, as plain values."""
    stored = tree.to_dict()
    return {name: value for name, value in stored.items() if name != "params"}


def squared_error(probabilities, y):
    return float(((probabilities - np.eye(probabilities.shape[1])[y]) ** 2).mean())


def rows_with_shift(shift, n_rows, seed=0):
    """Labels whose log-odds are those of the scores, shifted; and the scores."""
    rng = np.random.default_rng(seed)
    odds = 1.5 * rng.standard_normal(n_rows)
    return (rng.random(n_rows) < expit(odds + shift)).astype(int), expit(odds)


def noise(n_rows, n_columns=3, seed=99):
    return np.random.default_rng(seed).standard_normal((n_rows, n_columns))
