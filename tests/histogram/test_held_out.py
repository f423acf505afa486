"""Mixtures that are known by sums over chunks, against the same row by row."""

from __future__ import annotations

import functools
import math
from unittest.mock import patch

import numpy as np
import pytest

from caltree._fitted.selection import SCORINGS
from caltree._histogram import engine
from caltree._histogram.held_out import HeldOutSums
from caltree._training.averaging import best_weights
from caltree._training.do_no_harm import leave_uncalibrated_if_in_doubt
from caltree._training.held_out import HeldOutRows

from ..support.histogram_cases import chunks_of, histogram_tree
from ..support.trees import make_rows

N_ROWS = 700


@functools.cache
def both_ways(n_classes, scoring, weighted, some_held_out=False, grouped=False):
    """The candidates of a tree, known by sums, and the same by rows."""
    kept = []

    def watched(pool, *args, **kwargs):
        kept.append((pool, HeldOutSums(pool, *args, **kwargs)))
        return kept[-1][1]

    X, y, scores = make_rows(N_ROWS, n_classes=n_classes)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 7.0], N_ROWS) if weighted else None
    cv = [(np.arange(200, N_ROWS), np.arange(200))] if some_held_out else 4
    with patch.object(engine, "HeldOutSums", watched), chunks_of(150):
        tree = histogram_tree(scoring=scoring, cv=cv)
        groups = [f"g{row % 90}" for row in range(N_ROWS)] if grouped else None
        tree.fit(X, y, scores, sample_weight=weights, groups=groups)
    [(pool, sums)] = kept
    parts = [state for _, state in pool._chunks if len(state.labels)]
    p = np.concatenate([part.probabilities for part in parts], axis=1).astype(np.float64)
    if n_classes == 2:
        p = np.concatenate([1.0 - p, p], axis=2)
    labels = np.concatenate([part.labels for part in parts])
    weights = np.concatenate([part.weights for part in parts]) if weighted else None
    groups = np.concatenate([part.groups for part in parts]) if grouped else None
    rows = HeldOutRows(sums.names, p, labels, weights, scoring, sums.has_uncalibrated, groups)
    return sums, rows, tree


every_case = pytest.mark.parametrize(
    ("n_classes", "scoring", "weighted", "some"),
    [
        (2, "rmse", False, False),
        (2, "log_loss", True, False),
        (3, "rmse", True, False),
        (3, "log_loss", False, False),
        (2, "log_loss", False, True),
    ],
)


def random_weights(n_candidates, count):
    rng = np.random.default_rng(n_candidates)
    return [*np.eye(n_candidates), *rng.dirichlet(np.full(n_candidates, 0.5), count)]


@every_case
def test_losses_are_those_of_the_rows(n_classes, scoring, weighted, some):
    sums, rows, tree = both_ways(n_classes, scoring, weighted, some)
    candidates = tree.selection_.candidates
    assert len(sums) == len(rows) == len(candidates) > 4
    assert len(rows.labels) == (200 if some else N_ROWS)
    for weights in random_weights(len(sums), 5):
        assert sums.loss(weights) == pytest.approx(rows.loss(weights), abs=1e-6)
    for candidate, alone in zip(candidates, np.eye(len(rows)), strict=True):
        assert candidate.loss == pytest.approx(rows.loss(alone), abs=1e-6)


@pytest.mark.parametrize("grouped", [False, True], ids=["rows", "groups"])
@every_case
def test_excess_is_that_of_the_rows(n_classes, scoring, weighted, some, grouped):
    sums, rows, _ = both_ways(n_classes, scoring, weighted, some, grouped and not some)
    mixtures = random_weights(len(sums), 4)
    found_any = False
    for of in SCORINGS:
        for worse, better in zip(mixtures[1:], mixtures[:-1], strict=True):
            expected = rows.excess(worse, better, of)
            assert sums.excess(worse, better, of) == pytest.approx(expected, rel=1e-6, abs=1e-6)
            found_any = found_any or abs(expected) > 2.0
    assert found_any
    assert sums.excess(mixtures[0], mixtures[0], scoring) == 0.0


@every_case
def test_likelihood_ratios_are_those_of_the_rows(n_classes, scoring, weighted, some):
    sums, rows, _ = both_ways(n_classes, scoring, weighted, some)
    for weights in (np.full(len(sums), 1 / len(sums)), random_weights(len(sums), 1)[-1]):
        for found, expected in zip(
            sums.likelihood_ratios(weights), rows.likelihood_ratios(weights), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_case
def test_scores_are_left_uncalibrated_as_by_the_rows(n_classes, scoring, weighted, some):
    sums, rows, _ = both_ways(n_classes, scoring, weighted, some)
    for weights in random_weights(len(sums), 3)[1:]:
        found, expected = (leave_uncalibrated_if_in_doubt(each, [weights]) for each in (sums, rows))
        assert (found[0] == 1.0) == (expected[0] == 1.0)
        # The last of the bisections may be decided by rounding.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1 / 64)


@every_case
def test_equals_are_those_of_the_rows(n_classes, scoring, weighted, some):
    sums, rows, _ = both_ways(n_classes, scoring, weighted, some)
    n = len(sums)
    found = [[sums.are_equal(a, b) for a in range(n)] for b in range(n)]
    assert found == [[rows.are_equal(a, b) for a in range(n)] for b in range(n)]
    assert all(found[a][a] for a in range(n)) and not all(map(all, found))


@every_case
def test_best_weights_lose_as_little_as_those_of_the_rows(n_classes, scoring, weighted, some):
    sums, rows, _ = both_ways(n_classes, scoring, weighted, some)
    for used in (range(len(sums)), [0, 2, len(sums) - 1], [1]):
        found, expected = (best_weights(each, used) for each in (sums, rows))
        assert found.min() >= 0.0 and math.isclose(found.sum(), 1.0, abs_tol=1e-9)
        assert set(np.flatnonzero(found)) <= set(used)
        assert rows.loss(found) == pytest.approx(rows.loss(expected), abs=1e-6)
        apart = np.tensordot(found - expected, rows.probabilities, 1)
        assert np.sqrt(np.mean(apart**2)) < 1e-3


def test_candidates_that_predict_the_same_are_equal():
    """Where the trees of the folds have too few rows to be split, all levels are their roots."""
    X, y, scores = make_rows(300)
    kept = []

    def watched(pool, *args, **kwargs):
        kept.append(HeldOutSums(pool, *args, **kwargs))
        return kept[-1]

    with patch.object(engine, "HeldOutSums", watched), chunks_of(80):
        histogram_tree(min_samples_split=280).fit(X, y, scores)
    assert kept[0].names == ("uncalibrated", "global", "2 regions")
    assert kept[0].are_equal(1, 2) and not kept[0].are_equal(0, 1)
