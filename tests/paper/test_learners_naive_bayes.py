"""Naive Bayes: small cases worked out by hand, and what the published one answered."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from caltree.paper.learners import NaiveBayes

from ..support.fixtures import OPEN, UCI, load, name_of

FIXTURES = [path for path in OPEN + UCI if "naive_bayes" in name_of(path)]


@pytest.mark.parametrize("path", FIXTURES, ids=name_of)
def test_the_published_probabilities(path):
    fixture = load(path)
    model = NaiveBayes().fit(fixture.table("train"), fixture.labels("train"))
    probabilities = model.predict_proba(fixture.table("test"))
    expected = fixture.probabilities("test")
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-10)
    # What is 0 and what is merely tiny makes a difference to log-odds.
    np.testing.assert_array_equal(probabilities == 0, expected == 0)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-7)


def test_the_training_probabilities_are_of_other_models():
    fixture = load(next(path for path in OPEN if name_of(path) == "wine-naive_bayes"))
    model = NaiveBayes().fit(fixture.table("train"), fixture.labels("train"))
    differences = model.predict_proba(fixture.table("train")) - fixture.probabilities("train")
    assert np.abs(differences).max() > 0.01


def test_a_numeric_attribute():
    # The gaps of 1, 2 and 4 are 1 and 2, so that the precision is 1.5: the values become 1.5,
    # 1.5, 1.5 and 4.5. Class a has the mean 1.5 and the least deviation, 0.25; class b has the
    # mean 3 and the deviation 1.5. The value 2 becomes 1.5 as well.
    X, y = [[1.0], [2.0], [2.0], [4.0]], ["a", "a", "b", "b"]
    of_a = norm.cdf(0.75 / 0.25) - norm.cdf(-0.75 / 0.25)
    of_b = norm.cdf(-0.75 / 1.5) - norm.cdf(-2.25 / 1.5)
    model = NaiveBayes().fit(X, y)
    expected = [of_a / (of_a + of_b), of_b / (of_a + of_b)]
    np.testing.assert_allclose(model.predict_proba([[2.0]]), [expected], rtol=1e-12)
    assert expected[0] == pytest.approx(0.804904, abs=1e-6)


def test_halfway_values_are_rounded_to_even_multiples():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    below, at, above = NaiveBayes().fit(X, y).predict_proba([[0.5], [1.5], [2.5]])
    known = NaiveBayes().fit(X, y).predict_proba([[0.0], [2.0]])
    np.testing.assert_array_equal([below, at, above], known[[0, 1, 1]])


def test_a_nominal_attribute():
    # Laplace: the classes have 4/6 and 2/6; x has 3/6 in a, 1/4 in b; z has 1/6 and 1/4.
    X = pd.DataFrame({"c": pd.Categorical(["x", "x", "y", "y"], categories=["x", "y", "z"])})
    model = NaiveBayes().fit(X, ["a", "a", "a", "b"])
    new = pd.DataFrame({"c": pd.Categorical(["x", "z", None], categories=["x", "y", "z"])})
    np.testing.assert_allclose(model.predict_proba(new)[:, 0], [0.8, 4 / 7, 2 / 3], rtol=1e-12)
    np.testing.assert_allclose(model.class_prior_, [2 / 3, 1 / 3])


def test_missing_values_are_left_out_of_training():
    X, y = [[1.0], [2.0], [2.0], [4.0], [np.nan], [np.nan]], ["a", "a", "b", "b", "a", "b"]
    model = NaiveBayes().fit(X, y)
    without = NaiveBayes().fit(X[:4], y[:4])
    new = [[1.0], [3.0]]
    np.testing.assert_array_equal(model.predict_proba(new), without.predict_proba(new))
    np.testing.assert_allclose(model.predict_proba([[np.nan]]), [[0.5, 0.5]])


def test_an_attribute_with_one_value_has_the_precision_of_a_hundredth():
    X = [[7.0, 0.0], [7.0, 0.0], [7.0, 1.0], [7.0, 1.0]]
    model = NaiveBayes().fit(X, [0, 0, 1, 1])
    same = model.predict_proba([[7.0, 0.0], [7.004, 0.0]])
    np.testing.assert_array_equal(same[0], same[1])
    np.testing.assert_allclose(
        same[0],
        NaiveBayes().fit([[0], [0], [1], [1]], [0, 0, 1, 1]).predict_proba([[0]])[0],
        rtol=1e-12,
    )


def test_far_from_everything_the_floor_leaves_the_frequencies():
    model = NaiveBayes().fit([[0.0], [1.0], [2.0], [3.0], [4.0]], [0, 0, 0, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[1e6], [np.inf]]), [[4 / 7, 3 / 7]] * 2)


def test_the_floor_is_one_of_densities():
    # The first attribute is far from class 0, the second far from class 1: each class has the
    # floor once and, elsewhere, the same probability of an interval. But the intervals of the
    # second attribute are 10 times as wide, and so the density there is a tenth.
    first = np.array([0, 1, 2, 1000, 1001, 1002.0])
    X = np.column_stack([first, 10 * first[::-1]])
    model = NaiveBayes().fit(X, [0, 0, 0, 1, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[1001.0, 10010.0]]), [[1 / 11, 10 / 11]])


def test_a_class_without_a_value_has_the_density_of_all_rows():
    X, y = [[1.0], [2.0], [4.0], [np.nan], [np.nan], [np.nan]], [0, 0, 0, 1, 1, 1]
    np.testing.assert_allclose(NaiveBayes().fit(X, y).predict_proba([[1.0], [9.0]]), 0.5)


def test_the_scale_of_many_attributes_does_not_matter():
    # Densities of 1e9 and more, of 100 attributes, exceed what a float can hold.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 100)), np.arange(60) % 3
    small = NaiveBayes().fit(X * 2.0**-40, y).predict_proba(X * 2.0**-40)
    np.testing.assert_allclose(small, NaiveBayes().fit(X, y).predict_proba(X), rtol=1e-6)


def test_weights_count_rows():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"n": rng.normal(size=40).round(1), "c": rng.choice(["x", "y"], 40)})
    y, weights = rng.integers(0, 2, 40), rng.integers(0, 3, 40)
    repeated = np.repeat(np.arange(40), weights)
    weighted = NaiveBayes().fit(X, y, sample_weight=weights)
    plain = NaiveBayes().fit(X.iloc[repeated], y[repeated])
    np.testing.assert_allclose(weighted.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
