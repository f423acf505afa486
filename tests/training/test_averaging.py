"""Averages over several predictions of the same rows: the weights that lose least."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from caltree._fitted.selection import SCORINGS
from caltree._training.averaging import best_weights

from ..support.held_out import random_candidates, rows_of, sums_of, tree_levels

quick = settings(max_examples=40, deadline=None, derandomize=True)
each_scoring = pytest.mark.parametrize("scoring", SCORINGS)
# Sums are of single precision.
each_form = pytest.mark.parametrize("form", [lambda rows: rows, sums_of], ids=["rows", "sums"])


# Weights


def loss_of(weights, rows):
    """The loss to minimise, by rows and classes, spelled out."""
    mixture = np.tensordot(weights, rows.probabilities, 1)
    if rows.scoring == "log_loss":
        losses = -np.log(mixture[np.arange(len(rows.labels)), rows.labels])
    else:
        losses = ((mixture - np.eye(mixture.shape[1])[rows.labels]) ** 2).sum(axis=1)
    return float(np.average(losses, weights=rows.weights))


def searched_weights(rows):
    """By a general method, from several starts."""
    count = len(rows)
    starts = [np.full(count, 1 / count), *np.eye(count)]
    found = [
        minimize(
            loss_of,
            start * 0.9 + 0.1 / count,
            args=(rows,),
            method="SLSQP",
            bounds=[(0, 1)] * count,
            constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 300},
        ).x
        for start in starts[:3]
    ]
    return [np.clip(weights, 0, 1) / np.clip(weights, 0, 1).sum() for weights in found]


def assert_on_the_simplex(weights):
    assert (weights >= 0).all()
    assert abs(weights.sum() - 1) < 1e-12


@each_form
@each_scoring
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_weights_are_better(scoring, weighted, seed, form):
    candidates, labels = random_candidates(seed, n_classes=2 + seed % 2)
    row_weights = np.random.default_rng(seed).gamma(1, size=len(labels)) if weighted else None
    rows = rows_of(candidates, labels, row_weights, scoring)
    weights = best_weights(form(rows))
    assert_on_the_simplex(weights)
    lowest = min(loss_of(other, rows) for other in searched_weights(rows))
    assert loss_of(weights, rows) <= lowest + 1e-6


@quick
@given(
    seed=st.integers(0, 999),
    scoring=st.sampled_from(SCORINGS),
    n_candidates=st.integers(2, 13),
    n_rows=st.integers(1, 40),
)
def test_neither_a_candidate_nor_a_mixture_of_two_is_better(seed, scoring, n_candidates, n_rows):
    candidates, labels = random_candidates(seed, n_candidates, n_rows)
    row_weights = np.random.default_rng(seed).gamma(1, size=n_rows) + 0.01
    rows = rows_of(candidates, labels, row_weights, scoring)
    weights = best_weights(rows)
    assert_on_the_simplex(weights)
    found = loss_of(weights, rows)
    for one in np.eye(n_candidates):
        for weight in (1.0, 0.5):
            assert found <= loss_of(weight * one + (1 - weight) * weights, rows) + 1e-5


@each_form
@each_scoring
def test_the_right_one_gets_everything(scoring, form):
    candidates, labels = random_candidates(0)
    candidates[3] = np.eye(3)[labels]
    weights = best_weights(form(rows_of(candidates, labels, scoring=scoring)))
    np.testing.assert_allclose(weights, np.eye(6)[3], rtol=0, atol=1e-4)


@each_scoring
def test_weights_that_are_rounding_are_none(scoring):
    candidates, labels = random_candidates(0)
    candidates[3] = np.eye(3)[labels]
    weights = best_weights(rows_of(candidates, labels, scoring=scoring))
    assert (weights[weights > 0] > 1e-6).all() and (weights == 0).any()


@each_form
@each_scoring
def test_of_equal_candidates_the_first_gets_the_weight(scoring, form):
    candidates, labels = random_candidates(1, n_candidates=3)
    candidates = candidates[[0, 2, 0, 0, 2]]
    weights = best_weights(form(rows_of(candidates, labels, scoring=scoring)))
    assert_on_the_simplex(weights)
    assert (weights[2:] == 0).all()
    some = best_weights(form(rows_of(candidates, labels, scoring=scoring)), [3, 4])
    assert_on_the_simplex(some)
    assert (some[:3] == 0).all()
    np.testing.assert_allclose(some[3:], weights[:2], rtol=0, atol=1e-12)


@each_form
@each_scoring
def test_some_candidates_may_have_no_weight(scoring, form):
    candidates, labels = random_candidates(2)
    rows = rows_of(candidates, labels, scoring=scoring)
    for used in ([4], [1, 3], [5, 0, 2]):
        weights = best_weights(form(rows), used)
        assert_on_the_simplex(weights)
        assert set(np.flatnonzero(weights)) <= set(used)
        among = best_weights(rows_of(candidates[used], labels, scoring=scoring))
        expected = loss_of(among, rows_of(candidates[used], labels, scoring=scoring))
        assert loss_of(weights, rows) == pytest.approx(expected, abs=1e-6)


@each_scoring
def test_candidates_that_exclude_the_truth(scoring):
    labels = np.array([0, 1, 0, 1])
    wrong, right = np.eye(2)[1 - labels], np.eye(2)[labels]
    assert_on_the_simplex(best_weights(rows_of([wrong, wrong], labels, scoring=scoring)))
    half = (wrong + right) / 2
    assert_on_the_simplex(best_weights(rows_of([wrong, half], labels, scoring=scoring)))
    weights = best_weights(rows_of([wrong, right], labels, scoring=scoring))
    np.testing.assert_allclose(weights, [0, 1], rtol=0, atol=1e-6)


@quick
@given(seed=st.integers(0, 999), scoring=st.sampled_from(SCORINGS))
def test_a_row_of_weight_two_is_two_rows(seed, scoring):
    candidates, labels = random_candidates(seed)
    times = np.random.default_rng(seed).integers(1, 4, len(labels))
    rows = rows_of(candidates, labels, times, scoring)
    weighted = best_weights(rows)
    repeated = best_weights(
        rows_of(np.repeat(candidates, times, axis=1), np.repeat(labels, times), scoring=scoring)
    )
    # Candidates that are all but equal may have any weights.
    np.testing.assert_allclose(
        np.tensordot(weighted, candidates, 1),
        np.tensordot(repeated, candidates, 1),
        rtol=0,
        atol=1e-5,
    )


# The levels of a tree


def test_the_best_level_has_the_largest_weight():
    for best in range(4):
        qualities = [0.2] * 4
        qualities[best] = 2.0
        held_out = tree_levels(qualities)
        weights = best_weights(held_out)
        assert weights.sum() == pytest.approx(1.0) and weights.argmax() == 1 + best
        losses = [held_out.loss(alone) for alone in np.eye(5)]
        assert int(np.argmin(losses)) == 1 + best
        assert held_out.loss(weights) <= min(losses)


@each_scoring
def test_an_average_is_better_than_its_parts(scoring):
    held_out = tree_levels([1.0, 1.0, 1.0, 1.0], scoring=scoring)
    weights = best_weights(held_out)
    assert held_out.loss(weights) < 0.98 * min(held_out.loss(alone) for alone in np.eye(5))
    assert (weights[1:] > 0.05).all() or scoring == "log_loss"
