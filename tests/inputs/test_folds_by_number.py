"""Folds that the numbers of the rows decide on, and folds that were given."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree._histogram.in_process import given_folds
from caltree._inputs.folds import (
    IN_NO_FOLD,
    check_folds,
    folds_by_number,
    hashed_folds,
    judged_folds,
    seed_of,
)

from ..support.default_trees import fitted
from ..support.histogram_cases import examples, histogram_tree
from ..support.trees import make_rows


@examples(50)
@given(
    st.integers(0, 2**40),
    st.integers(1, 500),
    st.integers(2, 250),
    st.sampled_from([0, 1]),
    st.data(),
)
def test_a_row_is_in_the_same_fold_wherever_a_chunk_begins(first, n_rows, n_folds, seed, data):
    n_judged = data.draw(st.integers(1, n_folds))
    begin = data.draw(st.integers(0, n_rows))
    whole = hashed_folds(first, n_rows, n_folds, n_judged, seed)
    assert whole.dtype == np.uint8 and len(whole) == n_rows
    rest = hashed_folds(first + begin, n_rows - begin, n_folds, n_judged, seed)
    assert np.array_equal(whole[begin:], rest)
    every = hashed_folds(first, n_rows, n_folds, n_folds, seed)
    assert np.array_equal(whole, np.where(every < n_judged, every, IN_NO_FOLD))


@pytest.mark.parametrize("n_folds", [2, 5, 10, 250])
def test_folds_are_about_as_large_as_each_other(n_folds):
    n_rows = 1000 * n_folds
    counts = np.bincount(hashed_folds(0, n_rows, n_folds, n_folds, 0), minlength=n_folds)
    assert len(counts) == n_folds and counts.sum() == n_rows
    # Each is binomial, of mean 1000 and deviation at most 32.
    assert np.abs(counts - 1000).max() < 5 * 32
    # Neither rows in order nor every other row fall into one fold.
    for step in (2, 3, 16):
        some = hashed_folds(0, n_rows, n_folds, n_folds, 0)[::step]
        mean = len(some) / n_folds
        assert np.abs(np.bincount(some, minlength=n_folds) - mean).max() < 5 * np.sqrt(mean)


def test_neighbours_are_in_folds_of_their_own():
    folds = hashed_folds(0, 50_000, 5, 5, 0)
    assert (np.sort(folds.reshape(-1, 5)) == np.arange(5)).all()
    for distance in (5, 64, 1000):
        alike = np.mean(folds[distance:] == folds[:-distance])
        assert alike == pytest.approx(0.2, abs=0.02)


@pytest.mark.parametrize("seed", [1, 2, 12_345, 2**31 - 1])
def test_another_seed_deals_other_folds(seed):
    one, other = (hashed_folds(0, 20_000, 5, 5, each) for each in (0, seed))
    assert np.mean(one == other) == pytest.approx(0.2, abs=0.02)
    assert np.abs(np.bincount(other) - 4000).max() < 300


def test_random_state_is_a_seed():
    assert seed_of(None) == 0
    assert seed_of(3) == seed_of(3) != seed_of(4)
    state = np.random.RandomState(3)
    assert seed_of(state) == seed_of(3) != seed_of(state)
    with pytest.raises(ValueError, match="random_state must be None, a whole number"):
        seed_of("three")


def test_random_state_deals_the_folds():
    X, y, scores = make_rows(400)
    trees = [
        fitted(histogram_tree(random_state=state).fit(X, y, scores)) for state in (None, 0, 0, 1)
    ]
    assert trees[1] == trees[2]
    assert trees[0] != trees[1] != trees[3]
    with pytest.raises(ValueError, match="random_state must be None"):
        histogram_tree(random_state="three").fit(X, y, scores)


def test_as_many_folds_are_judged_as_are_needed():
    assert [judged_folds(5, n) for n in (5, 200_000, 250_000, 500_000)] == [5, 5, 4, 2]
    assert [judged_folds(5, n) for n in (10**6, 10**8)] == [1, 1]
    assert judged_folds(250, 10**7) == 5
    for n_folds in (2, 5, 10):
        for n_rows in (300_000, 777_777, 10**7):
            held_out = judged_folds(n_folds, n_rows) * n_rows / n_folds
            assert held_out >= 200_000 or judged_folds(n_folds, n_rows) == n_folds


def test_folds_that_are_not_judged_are_trained_on(monkeypatch):
    """Nobody holds their rows out, and so nobody judges by them."""
    X, y, scores = make_rows(900)
    monkeypatch.setattr("caltree._inputs.folds._ENOUGH_HELD_OUT", 300)
    tree = histogram_tree(cv=4).fit(X, y, scores)
    fold = hashed_folds(0, 900, 4, 2, 0)
    cv = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(2)]
    assert (fold == IN_NO_FOLD).any()
    assert fitted(tree) == fitted(histogram_tree(cv=cv).fit(X, y, scores))


@pytest.mark.parametrize("n_rows", [5, 6, 8, 10])
def test_a_fold_without_a_row_does_no_harm(n_rows):
    """With few rows, chance may leave a fold empty."""
    X, y, scores = make_rows(n_rows, seed=1)
    y[:2] = [0, 1]
    tree = histogram_tree(cv=5).fit(X, y, scores)
    assert np.isfinite(tree.predict_proba(X, scores)).all()


@pytest.mark.parametrize(("n_folds", "n_rows"), [(2, 2), (250, 250), (250, 10**9)])
def test_so_many_folds_will_do(n_folds, n_rows):
    check_folds(n_folds, n_rows)


@pytest.mark.parametrize(("n_folds", "n_rows", "most"), [(3, 2, 2), (251, 10**9, 250)])
def test_more_will_not(n_folds, n_rows, most):
    message = f"cv gives {n_folds} folds of {n_rows} rows; with histograms use at most {most}"
    with pytest.raises(ValueError, match=message):
        check_folds(n_folds, n_rows)


# Given


def test_given_folds_are_those_of_the_rows():
    tests = [np.array([0, 3]), np.array([4, 1])]
    folds = [(np.setdiff1d(np.arange(6), test), test) for test in tests]
    fold_of = given_folds(folds, 6)
    assert fold_of(0, 6).tolist() == [0, 1, IN_NO_FOLD, 0, 1, IN_NO_FOLD]
    assert fold_of(2, 3).tolist() == [IN_NO_FOLD, 0, 1]
    assert folds_by_number(3, 2, 7)(5, 20).tolist() == hashed_folds(5, 20, 3, 2, 7).tolist()


@pytest.mark.parametrize(
    ("train", "test"),
    [
        ([0, 1], [2]),
        ([0, 1, 2, 3], [3]),
        ([0, 1, 2], [2]),
        ([0, 1, 1], [3]),
        ([0, 0, 2], [1]),
    ],
)
def test_folds_that_do_not_train_on_the_rest_are_refused(train, test):
    fold = (np.array(train, dtype=np.uint32), np.array(test, dtype=np.uint32))
    with pytest.raises(ValueError, match="fold 0 of cv has rows in both of its parts or in none"):
        given_folds([fold], 4)
