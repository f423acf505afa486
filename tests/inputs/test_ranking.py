"""Scores that rank a class backwards are found, and useless ones are not taken for them."""

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm, spearmanr
from sklearn.metrics import roc_auc_score

from caltree._inputs.ranking import (
    describe_backwards,
    find_backwards,
    rank_auc,
    rank_correlation,
)
from caltree._inputs.scores import ScoreKind

ONE = ScoreKind(2, "probability")


@pytest.mark.parametrize("decimals", [1, 8])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_auc_is_that_of_scikit_learn(decimals, weighted):
    rng = np.random.default_rng(0)
    truth = rng.random(500) < 0.3
    values = np.round(rng.random(500) + 0.2 * truth, decimals)
    weights = rng.random(500) if weighted else None
    auc, _ = rank_auc(values, truth, weights)
    assert auc == pytest.approx(roc_auc_score(truth, values, sample_weight=weights), abs=1e-12)


@pytest.mark.parametrize("decimals", [1, 8])
def test_the_standard_error_is_that_of_wilcoxon(decimals):
    rng = np.random.default_rng(1)
    truth = rng.random(2000) < 0.2
    values = np.round(rng.random(2000) - 0.03 * truth, decimals)
    auc, error = rank_auc(values, truth, None)
    found = mannwhitneyu(values[truth], values[~truth], use_continuity=False, method="asymptotic")
    assert abs(auc - 0.5) / error == pytest.approx(norm.isf(found.pvalue / 2), rel=2e-3)


def test_weights_of_one_size_are_no_weights():
    rng = np.random.default_rng(2)
    truth, values = rng.random(100) < 0.5, rng.random(100)
    for size in (1e-300, 1.0, 1e300):
        weighted = rank_auc(values, truth, np.full(100, size))
        assert weighted == pytest.approx(rank_auc(values, truth, None), rel=1e-12)


@pytest.mark.parametrize(
    "values, truth, weights",
    [
        (np.full(1000, 0.3), np.arange(1000) % 3 == 0, None),
        (np.full(1000, 0.3), np.arange(1000) % 3 == 0, np.random.default_rng(0).random(1000)),
        (np.arange(1000.0), np.zeros(1000, dtype=bool), None),
        (np.arange(10.0), np.arange(10) < 5, None),
    ],
)
def test_scores_that_show_nothing(values, truth, weights):
    labels = truth.astype(np.uint16)
    assert find_backwards(values[:, np.newaxis] / 1000, ONE, labels, weights) == []


@pytest.mark.parametrize("n_rows, share", [(50, 0.5), (1000, 0.5), (1000, 0.02)])
@pytest.mark.parametrize("weighted", [False, True])
def test_useless_scores_are_seldom_taken_for_backwards(n_rows, share, weighted):
    rng = np.random.default_rng(3)
    alarms = 0
    for _ in range(200):
        labels = (rng.random(n_rows) < share).astype(np.uint16)
        weights = rng.lognormal(0.0, 1.0, n_rows) if weighted else None
        alarms += len(find_backwards(rng.random((n_rows, 1)), ONE, labels, weights))
    assert alarms == 0


def test_a_class_that_is_ranked_backwards_is_named():
    rng = np.random.default_rng(4)
    truth = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    labels = np.array([rng.choice(3, p=row) for row in truth]).astype(np.uint16)
    kind = ScoreKind(3, "probability")
    assert find_backwards(truth, kind, labels, None) == []
    swapped = truth[:, [2, 1, 0]]
    assert [each.column for each in find_backwards(swapped, kind, labels, None)] == [0, 2]
    both = np.hstack([truth, swapped])
    found = find_backwards(both, kind, labels, None)
    assert [(each.classifier, each.column) for each in found] == [(1, 0), (1, 2)]
    logits = np.log(swapped) + rng.normal(0.0, 100.0, (3000, 1))
    found = find_backwards(logits, ScoreKind(3, "logit"), labels, None)
    assert [each.column for each in found] == [0, 2]


def test_two_margins_count_by_their_difference():
    rng = np.random.default_rng(5)
    margins = rng.normal(size=(3000, 2))
    labels = (margins[:, 1] > margins[:, 0]).astype(np.uint16)
    kind = ScoreKind(2, "margin")
    assert find_backwards(margins, kind, labels, None) == []
    [found] = find_backwards(-margins, kind, labels, None)
    assert found.column == 1 and found.auc == 0.0


def test_calibrated_probabilities_tell_where_labels_are_too_few():
    random = np.random.default_rng(0)
    scores = random.random((400, 1))
    kind, labels = ScoreKind(2, "probability"), random.integers(0, 2, 400)
    turned = 1.0 - scores + random.normal(0.0, 0.3, (400, 1))
    assert find_backwards(scores, kind, labels, None) == []
    [found] = find_backwards(scores, kind, labels, None, np.hstack([1.0 - turned, turned]))
    assert found.auc is None and found.column == 1
    assert found.correlation == pytest.approx(spearmanr(scores[:, 0], turned[:, 0]).statistic)
    assert "low where the scores are high" in describe_backwards([found], ["no", "yes"], 1)
    for calibrated in (1.0 - turned, np.full((400, 1), 0.5), random.random((400, 1))):
        both = np.hstack([1.0 - calibrated, calibrated])
        assert find_backwards(scores, kind, labels, None, both) == []


def test_ranks_of_many_copies_are_those_of_weights():
    random = np.random.default_rng(1)
    a, b, copies = random.random(50).round(1), random.random(50), random.integers(1, 5, 50)
    r, _ = rank_correlation(a, b, None)
    assert r == pytest.approx(spearmanr(a, b).statistic)
    assert rank_correlation(a, b, np.full(50, 7.0)) == pytest.approx(rank_correlation(a, b, None))
    _, error = rank_correlation(a, b, copies.astype(float))
    assert 50**-0.5 < error < (copies.sum() / copies.max()) ** -0.5 * 1.1
