"""Shares: what each of several predictions of the same rows shall count for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from caltree._training.do_no_harm import OBJECTIVES
from caltree._training.shares import best_shares

quick = settings(max_examples=40, deadline=None, derandomize=True)


def random_candidates(seed, n_candidates=6, n_rows=60, n_classes=3):
    """Probabilities of various quality, some of them nearly or exactly the same."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    truth = 2.0 * np.eye(n_classes)[labels] + rng.standard_normal((n_rows, n_classes))
    noise = rng.standard_normal((n_candidates, n_rows, n_classes))
    logits = truth * rng.uniform(0, 2, (n_candidates, 1, 1)) + noise
    logits[1] = logits[0] + rng.choice([0.0, 1e-9, 1e-3]) * noise[1]
    odds = np.exp(logits)
    return odds / odds.sum(axis=2, keepdims=True), labels


def loss_of(shares, candidates, labels, weights, objective):
    """What the shares are to minimise, by rows and classes, spelled out."""
    blend = np.tensordot(shares, candidates, 1)
    if objective == "log_loss":
        of_rows = -np.log(blend[np.arange(len(labels)), labels])
    else:
        of_rows = ((blend - np.eye(blend.shape[1])[labels]) ** 2).sum(axis=1)
    return float(np.average(of_rows, weights=weights))


def searched_shares(candidates, labels, weights, objective):
    """By a general method, from several starts."""
    count = len(candidates)
    starts = [np.full(count, 1 / count), *np.eye(count)]
    found = [
        minimize(
            lambda shares: loss_of(shares, candidates, labels, weights, objective),
            start * 0.9 + 0.1 / count,
            method="SLSQP",
            bounds=[(0, 1)] * count,
            constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 300},
        ).x
        for start in starts[:3]
    ]
    return [np.clip(shares, 0, 1) / np.clip(shares, 0, 1).sum() for shares in found]


def assert_on_the_simplex(shares):
    assert (shares >= 0).all()
    assert abs(shares.sum() - 1) < 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_shares_are_better(objective, weighted, seed):
    candidates, labels = random_candidates(seed, n_classes=2 + seed % 2)
    weights = np.random.default_rng(seed).gamma(1, size=len(labels)) if weighted else None
    shares = best_shares(candidates, labels, weights, objective)
    assert_on_the_simplex(shares)
    found = loss_of(shares, candidates, labels, weights, objective)
    lowest = min(
        loss_of(other, candidates, labels, weights, objective)
        for other in searched_shares(candidates, labels, weights, objective)
    )
    # Expectation and maximisation stop after a number of steps.
    assert found <= lowest + (1e-6 if objective == "rmse" else 1e-4)


@quick
@given(
    seed=st.integers(0, 999),
    objective=st.sampled_from(OBJECTIVES),
    n_candidates=st.integers(2, 13),
    n_rows=st.integers(1, 40),
)
def test_neither_a_candidate_nor_a_mixture_of_two_is_better(seed, objective, n_candidates, n_rows):
    candidates, labels = random_candidates(seed, n_candidates, n_rows)
    weights = np.random.default_rng(seed).gamma(1, size=n_rows) + 0.01
    shares = best_shares(candidates, labels, weights, objective)
    assert_on_the_simplex(shares)
    found = loss_of(shares, candidates, labels, weights, objective)
    # What so many steps are known to reach.
    slack = 1e-5 if objective == "rmse" else 2 * math.log(n_candidates) / 500
    for one in np.eye(n_candidates):
        for share in (1.0, 0.5):
            mixed = share * one + (1 - share) * shares
            assert found <= loss_of(mixed, candidates, labels, weights, objective) + slack


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_right_one_gets_everything(objective):
    candidates, labels = random_candidates(0)
    candidates[3] = np.eye(3)[labels]
    shares = best_shares(candidates, labels, None, objective)
    np.testing.assert_allclose(shares, np.eye(6)[3], rtol=0, atol=1e-4)


def test_shares_that_are_rounding_are_none():
    candidates, labels = random_candidates(0)
    candidates[3] = np.eye(3)[labels]
    shares = best_shares(candidates, labels, None, "rmse")
    assert (shares[shares > 0] > 1e-6).all() and (shares == 0).any()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_equal_candidates_share_in_any_way(objective):
    candidates, labels = random_candidates(1, n_candidates=2)
    candidates = np.repeat(candidates[:1], 13, axis=0)
    assert_on_the_simplex(best_shares(candidates, labels, None, objective))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_candidates_that_exclude_what_happened(objective):
    labels = np.array([0, 1, 0, 1])
    wrong, right = np.eye(2)[1 - labels], np.eye(2)[labels]
    assert_on_the_simplex(best_shares(np.array([wrong, wrong]), labels, None, objective))
    shares = best_shares(np.array([wrong, right]), labels, None, objective)
    np.testing.assert_allclose(shares, [0, 1], rtol=0, atol=1e-6)


@quick
@given(seed=st.integers(0, 999), objective=st.sampled_from(OBJECTIVES))
def test_a_row_of_weight_two_is_two_rows(seed, objective):
    candidates, labels = random_candidates(seed)
    times = np.random.default_rng(seed).integers(1, 4, len(labels))
    weighted = best_shares(candidates, labels, times.astype(float), objective)
    repeated = best_shares(
        np.repeat(candidates, times, axis=1), np.repeat(labels, times), None, objective
    )
    # Candidates that are all but equal share in any way.
    np.testing.assert_allclose(
        np.tensordot(weighted, candidates, 1),
        np.tensordot(repeated, candidates, 1),
        rtol=0,
        atol=1e-5,
    )
