"""Averages that are judged by sums over chunks, against those judged row by row."""

from __future__ import annotations

import functools
import math
from unittest.mock import patch

import numpy as np
import pytest

from caltree._histogram import engine as making
from caltree._histogram.held_out import HeldOutSums
from caltree._training.averaging import HeldOutRows
from caltree._training.do_no_harm import OBJECTIVES, Judge

from ..support.histogram_cases import chunks_of, histogram_tree
from ..support.trees import make_rows

N_ROWS = 700


@functools.cache
def both_ways(n_classes, objective, weighted, some_held_out=False):
    """The candidates of a tree, known by sums, and the same by rows."""
    kept = []

    def watched(pool, *args, **kwargs):
        kept.append((pool, HeldOutSums(pool, *args, **kwargs)))
        return kept[-1][1]

    X, y, scores = make_rows(N_ROWS, n_classes=n_classes)
    weights = np.random.default_rng(0).choice([0.5, 1.0, 7.0], N_ROWS) if weighted else None
    cv = [(np.arange(200, N_ROWS), np.arange(200))] if some_held_out else 4
    with patch.object(making, "HeldOutSums", watched), chunks_of(150):
        tree = histogram_tree(splits="residual", objective=objective, cv=cv)
        tree.fit(X, y, scores, sample_weight=weights)
    [(pool, sums)] = kept
    parts = [state for state in pool._states if len(state.labels)]
    values = np.concatenate([part.values for part in parts], axis=1).astype(np.float64)
    if n_classes == 2:
        values = np.concatenate([1.0 - values, values], axis=2)
    labels = np.concatenate([part.labels for part in parts])
    of_parts = [part.weights for part in parts]
    of_rows = np.concatenate(of_parts) if weighted else None
    return sums, HeldOutRows(values, Judge(labels, of_rows, objective)), tree


every_case = pytest.mark.parametrize(
    ("n_classes", "objective", "weighted", "some"),
    [
        (2, "rmse", False, False),
        (2, "log_loss", True, False),
        (3, "rmse", True, False),
        (3, "log_loss", False, False),
        (2, "log_loss", False, True),
    ],
)


def random_shares(n_candidates, count):
    rng = np.random.default_rng(n_candidates)
    return [*np.eye(n_candidates), *rng.dirichlet(np.full(n_candidates, 0.5), count)]


@every_case
def test_losses_are_those_of_the_rows(n_classes, objective, weighted, some):
    sums, rows, tree = both_ways(n_classes, objective, weighted, some)
    assert len(sums) == len(rows) == len(tree.levels_) > 4
    assert len(rows.judge.labels) == (200 if some else N_ROWS)
    for shares in random_shares(len(sums), 5):
        expected = rows.judge.loss(rows.average(shares))
        assert sums.judge.loss(sums.average(shares)) == pytest.approx(expected, abs=1e-6)
    weight = len(rows.judge.labels) if rows.judge.weights is None else rows.judge.weights.sum()
    assert sums.judge.total_weight == pytest.approx(weight, rel=1e-12)
    for number, row in enumerate(tree.levels_):
        assert row["loss"] == pytest.approx(rows.judge.loss(rows.candidates[number]), abs=1e-6)


@every_case
def test_excess_is_that_of_the_rows(n_classes, objective, weighted, some):
    sums, rows, _ = both_ways(n_classes, objective, weighted, some)
    shares = random_shares(len(sums), 4)
    found_any = False
    for of in OBJECTIVES:
        for worse, better in zip(shares[1:], shares[:-1], strict=True):
            expected = rows.judge.excess(rows.average(worse), rows.average(better), of)
            found = sums.judge.excess(worse, better, of)
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-6)
            found_any = found_any or abs(expected) > 2.0
    assert found_any
    alone = shares[0]
    assert sums.judge.excess(alone, alone, objective) == 0.0
    leaning = (judge.judge.lean for judge in (sums, rows))
    one, other = shares[0], shares[-1]
    assert next(leaning)(one, other) == next(leaning)(rows.average(one), rows.average(other))
    for margin in (0.5, 1.0):
        expected = rows.judge.is_tie(rows.average(one), rows.average(other), margin)
        assert sums.judge.is_tie(one, other, margin) == expected
    expected = rows.judge.helps(rows.average(one), rows.average(other))
    assert sums.judge.helps(one, other) == expected


@every_case
def test_equals_are_those_of_the_rows(n_classes, objective, weighted, some):
    sums, rows, _ = both_ways(n_classes, objective, weighted, some)
    n = len(sums)
    found = [[sums.are_equal(a, b) for a in range(n)] for b in range(n)]
    assert found == [[rows.are_equal(a, b) for a in range(n)] for b in range(n)]
    assert all(found[a][a] for a in range(n)) and not all(map(all, found))


@every_case
def test_best_shares_lose_as_little_as_those_of_the_rows(n_classes, objective, weighted, some):
    sums, rows, _ = both_ways(n_classes, objective, weighted, some)
    for used in (range(len(sums)), [0, 2, len(sums) - 1], [1]):
        found, expected = np.zeros(len(sums)), np.zeros(len(sums))
        found[list(used)] = sums.best_shares(list(used))
        expected[list(used)] = rows.best_shares(list(used))
        assert found.min() >= 0.0 and math.isclose(found.sum(), 1.0, abs_tol=1e-9)
        losses = [rows.judge.loss(rows.average(shares)) for shares in (found, expected)]
        # Expectation and maximisation may not have come to an end.
        assert losses[0] <= losses[1] + 1e-6
        if objective == "rmse":
            assert losses[0] == pytest.approx(losses[1], abs=1e-6)
            apart = rows.average(found) - rows.average(expected)
            assert np.sqrt(np.mean(apart**2)) < 1e-3


def test_candidates_that_say_the_same_are_equal():
    """With nothing to split, all levels are the root."""
    _, y, scores = make_rows(300)
    kept = []

    def watched(pool, *args, **kwargs):
        kept.append(HeldOutSums(pool, *args, **kwargs))
        return kept[-1]

    with patch.object(making, "HeldOutSums", watched), chunks_of(80):
        histogram_tree(splits="residual").fit(np.zeros((300, 1)), y, scores)
    n = len(kept[0])
    assert n > 3 and all(kept[0].are_equal(1, other) for other in range(1, n))
    assert not kept[0].are_equal(0, 1)
