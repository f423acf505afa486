"""Support vector machines: inputs, the search for C and gamma, margins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.svm import SVC

from caltree.paper.learners import SVM
from caltree.paper.learners.svm import _search, _spread_over_classes

POWERS = [0.01, 0.1, 1.0, 10.0, 100.0]


def test_two_classes_have_one_margin():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:], np.array(["no", "yes"])[y[50:] - 1]
    model = SVM(random_state=0).fit(X, y)
    margins = model.decision_function(X)
    assert margins.shape == (100,)
    np.testing.assert_array_equal(model.predict(X), np.where(margins > 0, "yes", "no"))
    scaled = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    plain = SVC(C=model.C_, gamma=model.gamma_).fit(scaled, y == "yes")
    np.testing.assert_allclose(margins, plain.decision_function(scaled), rtol=1e-6, atol=1e-9)


def test_more_classes_have_a_margin_each():
    X, y = load_iris(return_X_y=True)
    model = SVM(random_state=0).fit(X, y)
    margins = model.decision_function(X)
    assert margins.shape == (150, 3)
    scaled = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    for label in range(3):
        plain = SVC(C=model.C_, gamma=model.gamma_).fit(scaled, y == label)
        np.testing.assert_allclose(
            margins[:, label], plain.decision_function(scaled), rtol=1e-6, atol=1e-9
        )
    np.testing.assert_array_equal(model.predict(X), margins.argmax(axis=1))


def test_the_inputs_of_the_machines():
    X = pd.DataFrame(
        {
            "number": [2.0, 4.0, 6.0, np.nan],
            "three": ["a", "b", "c", None],
            "two": ["x", "y", "y", None],
            "constant": [5.0] * 4,
        }
    )
    model = SVM(random_state=0).fit(X, [0, 1, 0, 1])
    inputs = model._inputs(np.array([[2, 0, 0, 5], [6, 1, 1, 9], [8, 2, 1, 5.0]]))
    expected = [[0, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0], [1.5, 0, 0, 1, 1, 0]]
    np.testing.assert_allclose(inputs, expected)
    # Missing values: the mean 4, and the most frequent categories, a (the first) and y.
    filled = X.fillna({"number": 4.0, "three": "a", "two": "y"})
    np.testing.assert_array_equal(model.decision_function(X), model.decision_function(filled))


def test_numbers_of_any_size_fit_the_range():
    X = np.array([[-1.7e308], [1.7e308], [0.0], [1.0]])
    assert np.isfinite(SVM(random_state=0).fit(X, [0, 1, 0, 1]).decision_function(X)).all()


def test_the_search_tries_the_whole_grid():
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:90] / 16, y[:90]
    X, y = X[y.argsort(kind="stable")], np.sort(y)
    correct = {}
    for C in POWERS:
        for gamma in POWERS:
            correct[C, gamma] = 0
            for test in (0, 1):
                train_X, train_y, test_X = X[1 - test :: 2], y[1 - test :: 2], X[test::2]
                margins = [
                    SVC(C=C, gamma=gamma).fit(train_X, train_y == label).decision_function(test_X)
                    for label in range(3)
                ]
                correct[C, gamma] += np.sum(np.argmax(margins, axis=0) == y[test::2])
    assert len(set(correct.values())) > 3
    assert _search(X, y, 3) == max(correct, key=correct.__getitem__)


@pytest.mark.parametrize(
    ("n_rows", "n_classes", "fraction"),
    [(9000, 2, 1.0), (5000, 3, 0.2), (5001, 3, 0.1)],
)
def test_the_part_of_the_rows_that_the_paper_searches_on(n_rows, n_classes, fraction):
    assert SVM()._fraction(n_rows, n_classes) == fraction
    assert SVM(search_fraction=0.5)._fraction(n_rows, n_classes) == 0.5


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_of_the_search_keep_the_proportions(seed):
    labels = np.random.default_rng(seed).permutation(np.repeat([0, 1, 2], [600, 300, 100]))
    rows = _spread_over_classes(labels, 0.2, np.random.RandomState(seed))
    assert len(np.unique(rows)) == 200
    for half in (rows[::2], rows[1::2]):
        np.testing.assert_allclose(np.bincount(labels[half]), [60, 30, 10], atol=1)
    other = _spread_over_classes(labels, 0.2, np.random.RandomState(seed + 1))
    assert set(rows) != set(other)


def test_few_rows_are_all_searched():
    labels = np.array([0, 1, 2] * 4)
    rows = _spread_over_classes(labels, 0.1, np.random.RandomState(0))
    np.testing.assert_array_equal(np.sort(rows), np.arange(12))


def test_a_class_that_a_half_lacks():
    X = np.linspace(0, 1, 30)[:, np.newaxis]
    y = np.repeat([0, 1, 2], [14, 15, 1])
    model = SVM(random_state=0).fit(X, y)
    assert model.decision_function(X).shape == (30, 3)


def test_the_same_seed_gives_the_same_machine():
    X, y = load_iris(return_X_y=True)
    margins = [SVM(random_state=3).fit(X, y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*margins)


@pytest.mark.parametrize("fraction", [0, 1.5, "all", None])
def test_a_fraction_that_cannot_be(fraction):
    with pytest.raises(ValueError, match="search_fraction"):
        SVM(search_fraction=fraction).fit([[0], [1]], [0, 1])


def test_what_is_given_is_not_searched():
    X, y = load_iris(return_X_y=True)
    model = SVM(C=3.0, gamma=0.2).fit(X, y)
    assert (model.C_, model.gamma_) == (3.0, 0.2)
    assert not np.array_equal(
        model.decision_function(X), SVM(C=3.0, gamma=2).fit(X, y).decision_function(X)
    )


def test_a_tuned_copy_has_what_the_search_chooses_and_is_not_fitted():
    X, y = load_iris(return_X_y=True)
    model = SVM(search_fraction=1.0, random_state=0)
    copy, fitted = model.tune(X, y), clone(model).fit(X, y)
    assert (copy.C, copy.gamma) == (fitted.C_, fitted.gamma_)
    assert (model.C, model.gamma) == (None, None) and not hasattr(copy, "C_")
    again = copy.fit(X, y).decision_function(X)
    assert np.array_equal(again, fitted.decision_function(X))


@pytest.mark.parametrize("params", [{"C": 1.0}, {"gamma": 1.0}, {"C": 0, "gamma": 1}])
def test_one_of_them_alone_or_none_above_zero(params):
    with pytest.raises(ValueError, match=r"^(C|gamma) must be a finite number above 0, or both"):
        SVM(**params).fit([[0.0], [1.0]], [0, 1])
