"""Attributes of hundreds of categories: a tree and a forest use those that help, and only those."""

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationForest, CalibrationTree

N_ROWS = 8000
N_CODES = 300
CALIBRATORS = {
    "tree": CalibrationTree,
    "hist": lambda **given: CalibrationTree(tree_method="hist", **given),
    "forest": lambda **given: CalibrationForest(10, random_state=0, **given),
}


def make_rows(shifts, seed=0):
    """Attributes, scores that do not know of the shift of each category, and the truth."""
    rng = np.random.default_rng(seed)
    n = 2 * N_ROWS
    x, code = rng.normal(size=(n, 2)), rng.integers(0, len(shifts), n)
    log_odds = x[:, 0] + np.where(x[:, 1] > 0, 0.5, -0.5)
    truth = 1 / (1 + np.exp(-log_odds - shifts[code]))
    X = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "code": code.astype(float)})
    scores = 1 / (1 + np.exp(-x[:, 0]))
    return X, (rng.random(n) < truth).astype(int), scores, truth


def loss(calibrator, rows, *, columns, nominal=None):
    """The expected log loss on the rows that the calibrator was not fitted to."""
    X, y, scores, truth = rows
    model = CALIBRATORS[calibrator](categorical_features=nominal)
    model.fit(X[columns][:N_ROWS], y[:N_ROWS], scores=scores[:N_ROWS])
    p = model.predict_proba(X[columns][N_ROWS:], scores=scores[N_ROWS:])[:, 1]
    truth = truth[N_ROWS:]
    return -(truth * np.log(p) + (1 - truth) * np.log(1 - p)).mean()


def losses(calibrator, shifts):
    rows = make_rows(shifts)
    every = ["a", "b", "code"]
    return {
        "categories": loss(calibrator, rows, columns=every, nominal=["code"]),
        "numbers": loss(calibrator, rows, columns=every),
        "without": loss(calibrator, rows, columns=["a", "b"]),
    }


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_useful_categories_help(calibrator):
    found = losses(calibrator, np.random.default_rng(1).normal(0, 0.9, N_CODES))
    assert found["categories"] < 0.98 * min(found["without"], found["numbers"])


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_useless_categories_do_not_hurt(calibrator):
    found = losses(calibrator, np.zeros(N_CODES))
    assert found["categories"] < 1.002 * found["without"]


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_an_order_of_the_codes_is_found(calibrator):
    found = losses(calibrator, np.linspace(-1, 1, N_CODES))
    assert found["categories"] < 1.005 * found["numbers"]


def test_categories_that_no_row_has_go_with_their_neighbours_if_codes_are_cut_in_order():
    rng = np.random.default_rng(0)
    n_codes, n = 200, 600
    code = rng.choice(np.arange(0, n_codes, 2), n)
    y = (rng.random(n) < np.where(code < 100, 0.2, 0.8)).astype(int)
    X = pd.DataFrame({"code": pd.Categorical(code, categories=range(n_codes))})
    tree = CalibrationTree(max_depth=1, do_no_harm=False)
    leaf = tree.fit(X, y, scores=np.full(n, 0.5)).apply(
        pd.DataFrame({"code": pd.Categorical(range(n_codes), categories=range(n_codes))})
    )
    assert len(np.unique(leaf)) == 2
    assert np.count_nonzero(np.diff(leaf)) == 1
    assert abs(np.flatnonzero(np.diff(leaf))[0] - 99) <= 4


def test_both_engines_divide_many_categories_alike():
    X, y, scores, _ = make_rows(np.random.default_rng(1).normal(0, 0.7, N_CODES))
    X = X[["code"]]
    exact, hist = (
        CalibrationTree(
            tree_method=method, max_depth=1, categorical_features=["code"], do_no_harm=False
        ).fit(X, y, scores=scores)
        for method in ("exact", "hist")
    )
    assert exact.model_.attribute[0] == hist.model_.attribute[0] == 0
    assert np.array_equal(exact.model_.branches, hist.model_.branches)
