"""Do no harm: the simplest average that will do, and when scores stay uncalibrated."""

import math

import numpy as np
import pytest

from caltree._fitted.selection import SCORINGS, Candidate, Selection
from caltree._training.averaging import best_weights
from caltree._training.do_no_harm import (
    DEMANDED,
    TIE,
    TIE_WITH_GLOBAL,
    leave_uncalibrated_if_in_doubt,
    make_selection,
    simplest_average,
)
from caltree._training.losses import row_losses, standard_errors

from ..support.held_out import random_candidates, rows_of, sums_of, tree_sizes

FIRST, SECOND = np.eye(2)
each_scoring = pytest.mark.parametrize("scoring", SCORINGS)


def predictions_apart(errors, scoring, n_rows=400, seed=0):
    """Two lists of probabilities whose losses are that many standard errors apart."""
    difference = np.random.default_rng(seed).standard_normal(n_rows)
    difference -= difference.mean()
    difference = 1e-3 * (difference + errors * difference.std() / math.sqrt(n_rows))
    lower = np.full(n_rows, 0.2)
    of_class = [
        np.exp(-losses) if scoring == "log_loss" else 1.0 - np.sqrt(losses)
        for losses in (lower + difference, lower)
    ]
    return [np.column_stack([p, 1.0 - p]) for p in of_class]


def zeros(probabilities, scoring="rmse", weights=None, has_uncalibrated=True):
    """Candidates for rows that are all of the first class."""
    labels = np.zeros(len(probabilities[0]), dtype=int)
    return rows_of(probabilities, labels, weights, scoring, has_uncalibrated)


# Held-out rows


@each_scoring
@pytest.mark.parametrize("weighted", [False, True])
def test_mixtures_are_weighted_means(scoring, weighted):
    candidates, labels = random_candidates(0)
    weights = np.random.default_rng(0).gamma(1, size=len(labels)) if weighted else None
    held_out = rows_of(candidates, labels, weights, scoring)
    one, other = np.random.default_rng(1).dirichlet(np.ones(6), 2)
    losses = [
        row_losses(np.tensordot(mixture, candidates, 1), labels, scoring)
        for mixture in (one, other)
    ]
    mean = np.average(losses[0], weights=weights)
    expected = mean if scoring == "log_loss" else math.sqrt(mean)
    assert held_out.loss(one) == pytest.approx(expected, rel=1e-12)
    found = held_out.excess(one, other, scoring)
    assert found == pytest.approx(standard_errors(*losses, weights), rel=1e-9)
    assert found == -held_out.excess(other, one, scoring)
    sums = sums_of(held_out)
    assert sums.loss(one) == pytest.approx(expected, abs=1e-6)
    assert sums.excess(one, other, scoring) == pytest.approx(found, rel=1e-4)


# The simplest average


@each_scoring
@pytest.mark.parametrize("errors", [-3.0, 0.0, 0.49, 0.99, 1.01, 3.0])
@pytest.mark.parametrize("has_uncalibrated", [False, True])
def test_the_root_is_taken_if_the_tree_is_no_more_than_an_error_better(
    scoring, errors, has_uncalibrated
):
    root, pruned = predictions_apart(errors, scoring)
    known = [np.full_like(root, 0.5)] * has_uncalibrated + [root, pruned]
    held_out = zeros(known, scoring, has_uncalibrated=has_uncalibrated)
    local, simplest = simplest_average(held_out, averaging=False)
    alone = np.eye(len(known))
    assert np.array_equal(local, alone[-1])
    assert TIE_WITH_GLOBAL == 1.0
    assert np.array_equal(simplest, alone[-2] if errors < 1.0 else alone[-1])


def test_regions_are_as_large_as_they_can_be():
    # Nothing is gained beyond the second size.
    held_out = tree_sizes([1.0, 2.0, 0.0, 0.5])
    local, simplest = simplest_average(held_out, averaging=True)
    assert np.array_equal(local, simplest)
    assert local[3] == 0 and local[2] > 0.5
    assert held_out.excess(local, best_weights(held_out), "rmse") <= TIE
    # Where the smallest regions are needed, they are taken.
    _, simplest = simplest_average(tree_sizes([0.5, 0.5, 2.0, 0.5]), averaging=True)
    assert simplest[3] > 0.5


def test_an_average_of_fewer_sizes_is_taken_if_it_is_half_an_error_worse_at_most():
    root = np.full((400, 2), 0.5)
    for errors, is_enough in ((0.3, True), (0.7, False)):
        middle, small = predictions_apart(errors, "rmse")
        held_out = zeros([root, middle, small, root], has_uncalibrated=False)
        local, simplest = simplest_average(held_out, averaging=True)
        assert np.array_equal(local, simplest)
        assert (local[2] == 0) == is_enough


def test_one_model_for_all_rows_will_do_where_a_tree_is_no_better():
    held_out = tree_sizes([1.5, 0.0, 0.0, 0.0])
    local, simplest = simplest_average(held_out, averaging=True)
    assert np.array_equal(simplest, np.eye(5)[1])
    weights = leave_uncalibrated_if_in_doubt(held_out, simplest)
    assert make_selection(held_out, local, weights).chosen == "global"
    assert weights[0] + weights[1] == pytest.approx(1.0) and weights[0] < 0.2


def test_without_averages_it_is_the_pruned_tree_or_the_root():
    for qualities, expected in (([0.5, 2.0], [0, 0, 1]), ([2.0, 1.0], [0, 1, 0])):
        held_out = tree_sizes(qualities)
        local, simplest = simplest_average(held_out, averaging=False)
        assert local.tolist() == [0, 0, 1]
        assert simplest.tolist() == expected
        weights = leave_uncalibrated_if_in_doubt(held_out, simplest, averaging=False)
        assert weights.tolist() == expected


# Uncalibrated probabilities


@each_scoring
@pytest.mark.parametrize("judged_by", SCORINGS)
def test_scores_are_calibrated_only_if_it_helps_by_both_losses(scoring, judged_by):
    demanded = {"rmse": 2.0, "log_loss": 3.0}[scoring]
    assert DEMANDED[scoring] == demanded
    for errors, helps in ((-4.0, False), (demanded - 0.01, False), (demanded + 0.01, None)):
        worse, better = predictions_apart(errors, scoring)
        held_out = zeros([worse, better], judged_by)
        expected = helps
        if helps is None:
            # By this loss it does; then the other decides.
            other = next(name for name in SCORINGS if name != scoring)
            expected = held_out.excess(FIRST, SECOND, other) > DEMANDED[other]
        weights = leave_uncalibrated_if_in_doubt(held_out, SECOND, averaging=False)
        assert np.array_equal(weights, SECOND if expected else FIRST)


def test_an_improvement_by_both_losses_is_needed():
    uncalibrated = np.tile([0.3, 0.7], (400, 1))
    uncalibrated[::2] = [0.7, 0.3]
    better = uncalibrated + np.array([0.1, -0.1])
    choose = leave_uncalibrated_if_in_doubt
    found = choose(zeros([uncalibrated, better]), SECOND, averaging=False)
    assert np.array_equal(found, SECOND)
    found = choose(zeros([better, uncalibrated]), SECOND, averaging=False)
    assert np.array_equal(found, FIRST)
    # Most rows are better, but a few surely wrong: squared error and log loss disagree.
    sure = better.copy()
    sure[:12] = [1e-12, 1.0]
    held_out = zeros([uncalibrated, sure])
    assert held_out.excess(FIRST, SECOND, "rmse") > 2.0
    assert np.array_equal(choose(held_out, SECOND), FIRST)


def test_uncalibrated_probabilities_get_the_largest_weight_that_costs_nothing():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    labels = (rng.random(2000) < truth).astype(int)
    calibrated = np.column_stack([1 - truth, truth])
    shares = []
    for sharper in (1.7, 2.5, 4.0):
        odds = np.power(calibrated, sharper)
        uncalibrated = odds / odds.sum(axis=1, keepdims=True)
        held_out = rows_of([uncalibrated, calibrated], labels, has_uncalibrated=True)
        weights = leave_uncalibrated_if_in_doubt(held_out, SECOND)
        assert weights.sum() == pytest.approx(1.0, abs=1e-15)
        share, step = weights[0], 2.0**-7
        shares.append(share)
        for nearby, tie in ((share, True), (share + step, False)):
            excess = held_out.excess(np.array([nearby, 1 - nearby]), SECOND, "rmse")
            assert (excess <= TIE) == tie
        sums = leave_uncalibrated_if_in_doubt(sums_of(held_out), SECOND)
        np.testing.assert_allclose(sums, weights, rtol=0, atol=step)
    # The worse the scores, the less is left to them.
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1] > 0


def test_row_weights_decide():
    one, other = np.tile([0.9, 0.1], (200, 1)), np.tile([0.5, 0.5], (200, 1))
    one[:100], other[:100] = other[:100].copy(), one[:100].copy()
    even, uneven = np.ones(200), np.repeat([3.0, 1.0], 100)
    for weights, expected in ((even, FIRST), (uneven, SECOND)):
        held_out = zeros([one, other], weights=weights)
        found = leave_uncalibrated_if_in_doubt(held_out, SECOND, averaging=False)
        assert np.array_equal(found, expected)
    assert held_out.loss(FIRST) == pytest.approx(math.sqrt(0.75 * 0.25 + 0.25 * 0.01))


def test_scores_that_are_as_good_stay_uncalibrated():
    held_out = tree_sizes([1.0, 1.0, 1.0, 1.0], uncalibrated=4.0, noise=0.3)
    local, simplest = simplest_average(held_out, averaging=True)
    weights = leave_uncalibrated_if_in_doubt(held_out, simplest)
    assert weights.tolist() == [1, 0, 0, 0, 0]
    assert make_selection(held_out, local, weights).chosen == "uncalibrated"
    without = tree_sizes([1.0, 1.0, 1.0, 1.0], uncalibrated=None)
    local, simplest = simplest_average(without, averaging=True)
    assert len(simplest) == 4 and simplest.sum() == pytest.approx(1.0)


# The selection


@each_scoring
def test_the_selection_tells_losses_and_weights(scoring):
    held_out = tree_sizes([0.2, 1.0, 1.2], scoring=scoring)
    local = np.array([0.0, 0.0, 0.5, 0.5])
    weights = np.array([0.25, 0.0, 0.375, 0.375])
    found = make_selection(held_out, local, weights)
    names = ("uncalibrated", "global", "regions of 15 rows", "pruned tree")
    assert found == Selection(
        scoring,
        tuple(
            Candidate(name, held_out.loss(alone), weight)
            for name, alone, weight in zip(names, np.eye(4), weights, strict=True)
        ),
        held_out.loss(local),
        held_out.loss(weights),
    )
    assert (found.chosen, found.uncalibrated_weight) == ("local", 0.25)
    assert Selection.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    ("weights", "chosen"),
    [
        ([1, 0, 0, 0], "uncalibrated"),
        ([0, 1, 0, 0], "global"),
        ([0.5, 0.5, 0, 0], "global"),
        ([0.5, 0.25, 0, 0.25], "local"),
        ([0, 0, 0, 1], "local"),
    ],
)
def test_the_choice_is_the_most_special_candidate_with_a_weight(weights, chosen):
    held_out = tree_sizes([0.2, 1.0, 1.2])
    assert make_selection(held_out, np.eye(4)[3], np.array(weights)).chosen == chosen
