"""LogitBoost of the core beside its specification."""

from __future__ import annotations

import numpy as np
import pytest

from caltree import _core

from ..spec.learners import logitboost as spec

N_CATEGORIES = np.array([0, 3, 0, 5, 0], dtype=np.int32)


def table(seed: int, n_rows: int, share_missing: float) -> np.ndarray:
    """Three numeric attributes, of which one has few values, and two nominal ones."""
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(size=n_rows).round(1),
        rng.integers(0, 3, n_rows),
        rng.normal(size=n_rows),
        rng.integers(0, 5, n_rows),
        np.maximum(rng.normal(size=n_rows), 0.0),
    ]
    matrix = np.column_stack(columns).astype(float)
    matrix[rng.random(matrix.shape) < share_missing] = np.nan
    return matrix


def some_labels(matrix: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    known = np.nan_to_num(matrix)
    score = known[:, 2] + known[:, 1] * (known[:, 3] - 2) / 2 + rng.normal(size=len(matrix))
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return np.searchsorted(cuts, score).astype(np.uint16)


@pytest.mark.parametrize("max_depth", [None, 1, 3])
@pytest.mark.parametrize("share_missing", [0.0, 0.15])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_the_same_as_specified(n_classes, share_missing, max_depth):
    matrix = table(n_classes, 300, share_missing)
    labels = some_labels(matrix, n_classes, 1)
    given = (matrix, N_CATEGORIES, labels, n_classes, 8, max_depth)
    trees, expected = _core.fit_logitboost(*given), spec.fit(*given)
    new = table(100, 200, 0.2)
    for rows in (matrix, new):
        probabilities = _core.predict_logitboost(rows, N_CATEGORIES, n_classes, **trees)
        np.testing.assert_allclose(
            probabilities, spec.predict(expected, rows, n_classes), rtol=0, atol=1e-12
        )


def test_more_rows_than_sixteen_bits_count():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(70_000, 2))
    matrix[:, 1] = np.arange(len(matrix)) % 69_999  # of the last rows, too, one is told apart
    labels = (matrix[:, 1] > 68_000).astype(np.uint16)
    given = (matrix, np.zeros(2, np.int32), labels, 2, 1, 2)
    probabilities = _core.predict_logitboost(
        matrix, np.zeros(2, np.int32), 2, **_core.fit_logitboost(*given)
    )
    np.testing.assert_array_equal(probabilities.argmax(axis=1), labels)


def test_any_layout_of_the_matrix():
    matrix = table(0, 100, 0.1)
    labels = some_labels(matrix, 3, 0)
    wide = np.zeros((100, 10))
    wide[:, ::2] = matrix
    fits = [
        _core.fit_logitboost(one, N_CATEGORIES, labels, 3, 3, 3)
        for one in (matrix, np.asfortranarray(matrix), wide[:, ::2])
    ]
    for name in fits[0]:
        np.testing.assert_array_equal(fits[0][name], fits[1][name])
        np.testing.assert_array_equal(fits[0][name], fits[2][name])


def fit_arguments() -> dict[str, object]:
    matrix = table(0, 20, 0.1)
    return {
        "matrix": matrix,
        "n_categories": N_CATEGORIES,
        "labels": some_labels(matrix, 2, 0),
        "n_classes": 2,
        "n_iterations": 2,
        "max_depth": 2,
    }


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("n_categories", np.zeros(4, np.int32), "one number of categories"),
        ("n_categories", np.array([0, -1, 0, 5, 0], np.int32), "not be negative"),
        ("n_categories", np.array([0, 2, 0, 5, 0], np.int32), "a category is out of range"),
        ("labels", np.zeros(19, np.uint16), "differ in length"),
        ("labels", np.full(20, 2, np.uint16), "class index"),
        ("n_classes", 1, "at least 2"),
        ("max_depth", 0, "between 1 and 1000"),
        ("max_depth", 1001, "between 1 and 1000"),
        ("matrix", np.zeros((0, 5)), "rows"),
    ],
)
def test_fits_that_cannot_be(name, value, message):
    with pytest.raises(ValueError, match=message):
        _core.fit_logitboost(**(fit_arguments() | {name: value}))


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("attribute", 0, 5, "attribute is out of range"),
        ("first_child", 0, 0, "child is out of range"),
        ("n_children", 0, 10_000, "child is out of range"),
        ("n_children", 0, 1, "goes to no child"),
        ("cut", 0, "other", "have a cut"),
        ("roots", 0, -1, "root is out of range"),
        ("roots", 0, 10_000, "root is out of range"),
        ("value", slice(1), None, "one entry per node"),
    ],
)
def test_trees_that_cannot_be(name, place, value, message):
    given = fit_arguments()
    trees = {key: array.copy() for key, array in _core.fit_logitboost(**given).items()}
    if value is None:
        trees[name] = trees[name][place]
    else:
        is_nominal = np.isnan(trees["cut"][0])
        trees[name][place] = (0.0 if is_nominal else np.nan) if value == "other" else value
    with pytest.raises(ValueError, match=message):
        _core.predict_logitboost(given["matrix"], N_CATEGORIES, 2, **trees)


def test_as_many_trees_for_each_class():
    trees = _core.fit_logitboost(**fit_arguments())
    with pytest.raises(ValueError, match="as many trees"):
        _core.predict_logitboost(table(0, 5, 0.0), N_CATEGORIES, 3, **trees)
