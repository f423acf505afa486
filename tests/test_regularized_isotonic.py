"""Isotonic regression of a vote with regularisation: cases by hand, optimality, extremes."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from caltree import IsotonicScaling, RegularizedIsotonicScaling
from caltree._training.regularized_isotonic import (
    MOST_GROUPS,
    fit_regularized_isotonic,
    laplacian,
    rising_values,
)


def second(model, scores):
    return model.predict_proba(None, scores)[:, 1]


# By hand


@pytest.mark.parametrize("strength", [1e-9, 0.5, 1.0, 3.0])
def test_two_groups_by_hand(strength):
    """Two rows, one of each class: p² + (1 - q)² + strength (q - p)² is lowest where p + q = 1.

    Its derivative by p is then 2 p - 2 strength (1 - 2 p), so that p is
    strength / (1 + 2 strength).
    """
    model = RegularizedIsotonicScaling(l2_regularization=strength).fit(None, [0, 1], [0.2, 0.6])
    p = strength / (1 + 2 * strength)
    assert model.thresholds_[0].tolist() == [0.2, 0.6]
    assert model.values_[0] == pytest.approx([p, 1 - p], abs=1e-9)
    assert second(model, [0.0, 0.4, 1.0]) == pytest.approx([p, 0.5, 1 - p], abs=1e-9)


def test_groups_out_of_order_by_hand():
    """Votes 1, 2, 3 with shares 1, 0 and 1: the first two must be equal, p, and the third is q.

    All three are neighbours, each of the two others by half: c is 1/2. What is left is
    (1 - p)² + p² + (1 - q)² + 1/2 * 2 (q - p)², with derivatives 4 p - 2 - 2 (q - p) and
    2 (q - 1) + 2 (q - p): p is 3/5 and q is 4/5.
    """
    places = np.array([[1.0], [2.0], [3.0]])
    penalty = laplacian(places, np.ones(3))
    assert penalty.tolist() == [[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]]
    found = rising_values(np.array([1.0, 0.0, 1.0]), np.ones(3), penalty)
    assert found == pytest.approx([3 / 5, 3 / 5, 4 / 5], abs=1e-9)


def test_the_vote_is_the_mean_of_the_classifiers():
    first, other = np.array([0.1, 0.9, 0.5]), np.array([0.9, 0.3, 0.9])  # votes 0.5, 0.6, 0.7
    scores = np.column_stack([1 - first, first, 1 - other, other])
    model = RegularizedIsotonicScaling(l2_regularization=1e-9).fit(None, [0, 1, 1], scores)
    assert model.thresholds_[0] == pytest.approx([0.5, 0.6, 0.7])
    assert model.values_[0] == pytest.approx([0.0, 1.0, 1.0], abs=1e-6)


def test_neighbours_are_those_of_single_classifiers_or_of_successive_votes():
    # Sixteen votes in a row; by the second classifier every other one is two deviations away.
    places = np.array([[float(i), 99.0 * (i % 2)] for i in range(16)])
    near = laplacian(places, np.ones(16))[0] < 0
    assert np.flatnonzero(near).tolist() == [1, 2, 4, 6, 8]
    line = laplacian(places[:, :1], np.ones(16))[0] < 0
    assert np.flatnonzero(line).tolist() == [1, 2, 3, 4, 5]


# In general


@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_the_result_is_the_best_of_all_that_rise(strength):
    random = np.random.default_rng(3)
    frequency, size = random.random(9), random.uniform(1, 5, 9)
    penalty = strength * laplacian(random.normal(size=(9, 2)), size)
    found = rising_values(frequency, size, penalty)

    def loss(p):
        return size @ (p - frequency) ** 2 + p @ penalty @ p

    steps = LinearConstraint(np.diff(np.eye(9), axis=0), 0.0, np.inf)
    best = minimize(
        loss,
        np.linspace(0.2, 0.8, 9),
        method="SLSQP",
        bounds=[(0, 1)] * 9,
        constraints=steps,
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert (np.diff(found) >= 0).all()
    assert loss(found) <= best.fun + 1e-9
    assert found == pytest.approx(best.x, abs=1e-4)


def test_with_little_regularisation_it_is_isotonic_regression():
    random = np.random.default_rng(0)
    scores = random.integers(0, 50, 400) / 50
    labels = random.random(400) < scores
    model = RegularizedIsotonicScaling(l2_regularization=1e-9).fit(None, labels, scores)
    steps = IsotonicScaling().fit(None, labels, scores)
    assert second(model, scores) == pytest.approx(second(steps, scores), abs=1e-6)


def test_with_much_regularisation_it_is_the_frequency():
    random = np.random.default_rng(0)
    scores = random.random(300)
    labels = random.random(300) < scores
    model = RegularizedIsotonicScaling(l2_regularization=1e9).fit(None, labels, scores)
    assert second(model, [0.1, 0.9]) == pytest.approx(labels.mean(), abs=1e-3)


def test_many_votes_are_gathered_in_groups():
    random = np.random.default_rng(1)
    scores = random.normal(size=5000)
    labels = random.random(5000) < 1 / (1 + np.exp(-scores))
    model = RegularizedIsotonicScaling(score_type="margin").fit(None, labels, scores)
    thresholds, values = model.thresholds_[0], model.values_[0]
    assert len(thresholds) == MOST_GROUPS
    assert (np.diff(thresholds) > 0).all() and (np.diff(values) >= 0).all()
    assert values == pytest.approx(1 / (1 + np.exp(-thresholds)), abs=0.15)


def test_what_is_as_near_as_the_fifth_is_a_neighbour():
    near = laplacian(0.1 * np.arange(21.0)[:, np.newaxis], np.ones(21))[10] < 0
    assert np.flatnonzero(near).tolist() == [7, 8, 9, 11, 12, 13]


def test_weights_count_rows():
    random = np.random.default_rng(2)
    scores, labels = random.random(600), random.integers(0, 2, 600) > 0
    weights = random.integers(0, 4, 600)
    places = np.column_stack([scores, random.random(600)])
    weighted = fit_regularized_isotonic(scores, places, labels, weights.astype(float), 1.0)
    rows = np.repeat(np.arange(600), weights)
    repeated = fit_regularized_isotonic(scores[rows], places[rows], labels[rows], None, 1.0)
    assert weighted[0] == pytest.approx(repeated[0]) and weighted[1] == pytest.approx(repeated[1])


@pytest.mark.parametrize("unit", [1e-280, 1e-150, 1e90])
def test_the_unit_of_margins_does_not_matter(unit):
    scores, labels = np.array([0.2, 0.3, 0.5, 0.6, 0.9]), [0, 1, 0, 1, 1]
    plain = RegularizedIsotonicScaling(score_type="margin").fit(None, labels, scores)
    scaled = RegularizedIsotonicScaling(score_type="margin").fit(None, labels, scores * unit)
    assert second(scaled, scores * unit) == pytest.approx(second(plain, scores), abs=1e-9)


def test_one_score_for_all_rows():
    model = RegularizedIsotonicScaling().fit(None, [0, 1, 1, 1], [0.3] * 4)
    assert second(model, [0.1, 0.3, 0.9]) == pytest.approx([0.75] * 3)


@pytest.mark.parametrize("bad", [0, -1.0, "cv", None, np.inf, np.nan])
def test_the_strength_is_checked(bad):
    with pytest.raises(ValueError, match="l2_regularization must be a number from"):
        RegularizedIsotonicScaling(l2_regularization=bad).fit(None, [0, 1], [0.2, 0.6])
