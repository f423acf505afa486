"""Weights count rows: in splits, node models, errors, pruning and choices."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import CalibrationTree

from .support.trees import (
    BOOSTED,
    FIXED,
    FIXED_BOOSTED,
    assert_probabilities,
    assert_same,
    boosted_tree,
    fixed_tree,
    make_frame,
    make_rows,
    same_tree,
)

WEIGHTS = {
    "int": lambda w: w.astype(int),
    "float32": lambda w: w.astype(np.float32),
    "list": lambda w: w.tolist(),
    "strided": lambda w: np.repeat(w, 2)[::2],
    "pandas": pd.Series,
    "polars": pl.Series,
}


@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights_of_every_kind_give_the_same_tree(kind):
    X, y, scores = make_rows()
    weight = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    expected = fixed_tree().fit(X, y, scores, sample_weight=weight)
    tree = fixed_tree().fit(X, y, scores, sample_weight=WEIGHTS[kind](weight))
    assert same_tree(expected, tree)


@st.composite
def weighted_rows(draw):
    n_rows = draw(st.integers(12, 60))
    n_classes = draw(st.sampled_from([2, 3]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    colour = rng.choice(["red", "green", "blue", None], n_rows, p=[0.4, 0.3, 0.2, 0.1])
    number = rng.integers(-5, 6, n_rows).astype(float)
    number[rng.random(n_rows) < 0.15] = np.nan
    X = pd.DataFrame({"number": number, "colour": colour, "noise": rng.integers(0, 99, n_rows)})
    hint = np.nan_to_num(number) > 0
    y = np.where(rng.random(n_rows) < 0.7, hint, rng.integers(0, n_classes, n_rows)).astype(int)
    y[:n_classes] = np.arange(n_classes)
    scores = rng.dirichlet(np.ones(n_classes), n_rows)
    weight = rng.integers(draw(st.sampled_from([0, 1])), 4, n_rows).astype(float)
    weight[:n_classes] = 2
    return X, y, scores, weight


WAYS = {
    "boosted, grown": {**FIXED_BOOSTED},
    "boosted, pruned": {**BOOSTED, "boosting_iterations": 1, "pruning": 0.01},
    "published": {
        **BOOSTED,
        "boosting_iterations": 2,
        "pruning": 0.0,
        "constant_scores": "ignore",
    },
    "grown": {**FIXED},
    "pruned": {**FIXED, "pruning": 0.02, "objective": "log_loss"},
    "by gain ratio": {**FIXED, "splits": "gain_ratio"},
}
quick = settings(max_examples=40, deadline=None, derandomize=True)


def fit_to(rows, repeats, sample_weight=None, **params):
    """A tree on some of the rows, given once or more."""
    X, y, scores, _ = rows
    data = X.iloc[repeats], y[repeats], scores[repeats]
    return CalibrationTree(**{**params, "min_samples_split": 5}).fit(*data, sample_weight)


def assert_weights_count(weighted, repeated, rows):
    X, _, scores, weight = rows
    for name in ("attribute", "n_rows", "missing", "missing_rows", "branches"):
        assert np.array_equal(getattr(weighted.tree_, name), getattr(repeated.tree_, name))
    np.testing.assert_allclose(weighted.tree_.threshold, repeated.tree_.threshold, atol=1e-12)
    # Elsewhere they may part: two rows alone are fitted equally well by any of the scores.
    seen = X[weight > 0], scores[weight > 0]
    np.testing.assert_allclose(
        weighted.predict_proba(*seen), repeated.predict_proba(*seen), rtol=0, atol=1e-9
    )


def row_numbers(weight):
    return np.repeat(np.arange(len(weight)), weight.astype(int))


@pytest.mark.parametrize("way", WAYS)
@quick
@given(rows=weighted_rows())
def test_a_weight_counts_rows(way, rows):
    weight = rows[-1]
    weighted = fit_to(rows, slice(None), weight, **WAYS[way])
    repeated = fit_to(rows, row_numbers(weight), **WAYS[way])
    assert_weights_count(weighted, repeated, rows)


@quick
@given(rows=weighted_rows())
def test_a_weight_counts_rows_in_bins(rows):
    weight = rows[-1]
    params = {**FIXED, "max_bins": 4}
    weighted = fit_to(rows, slice(None), weight, **params)
    assert_weights_count(weighted, fit_to(rows, row_numbers(weight), **params), rows)


def fit_in_given_folds(seed, **params):
    """Trees on rows of some weight, and on as many rows of each, with the same folds."""
    X, y, scores = make_rows(60, seed=seed)
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    trees, row_of_fold = [], np.arange(len(y)) % 3
    for rows, sample_weight in ((np.arange(len(y)), weight), (row_numbers(weight), None)):
        folds = [np.flatnonzero(row_of_fold[rows] == k) for k in range(3)]
        cv = [(np.setdiff1d(np.arange(len(rows)), fold), fold) for fold in folds]
        tree = CalibrationTree(cv=cv, **params).fit(X[rows], y[rows], scores[rows], sample_weight)
        trees.append((tree, tree.predict_proba(X, scores)))
    return trees


@pytest.mark.parametrize("splits", ["residual", "gain_ratio", "cv"])
@pytest.mark.parametrize("seed", range(6))
def test_a_weight_counts_rows_in_given_folds(splits, seed):
    (weighted, one), (repeated, other) = fit_in_given_folds(seed, splits=splits, do_no_harm=False)
    assert weighted.splits_ == repeated.splits_
    for found, expected in zip(weighted.pruning_path_, repeated.pruning_path_, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=0)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_a_weight_counts_rows_in_the_choice_of_what_to_do():
    for seed in range(30):
        (weighted, one), (repeated, other) = fit_in_given_folds(seed)
        for row, expected in zip(weighted.selection_, repeated.selection_, strict=True):
            assert row == {**expected, "loss": pytest.approx(expected["loss"], abs=1e-9)}
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


CHOSEN_WAYS = {
    "chosen": {"cv": 3},
    "boosted, chosen": {**BOOSTED, "max_boosting_iterations": 5, "cv": 3},
    "published, chosen": {
        **BOOSTED,
        "max_boosting_iterations": 5,
        "cv": 3,
        "constant_scores": "ignore",
    },
}


@pytest.mark.parametrize("way", [*WAYS, *CHOSEN_WAYS])
@quick
@given(rows=weighted_rows())
def test_a_row_without_weight_is_no_row(way, rows):
    X, _, scores, weight = rows
    params = (WAYS | CHOSEN_WAYS)[way]
    left_out = fit_to(rows, slice(None), weight, **params)
    kept = np.flatnonzero(weight > 0)
    dropped = fit_to(rows, kept, weight[kept], **params)
    assert_same(dropped, left_out, X, scores)
    assert left_out.boosting_iterations_ == dropped.boosting_iterations_
    assert left_out.pruning_alpha_ == dropped.pruning_alpha_
    assert left_out.splits_ == dropped.splits_


@quick
@given(rows=weighted_rows())
def test_weights_of_one_are_no_weights(rows):
    X, y, scores, _ = rows
    for params in (
        {**FIXED, "min_samples_split": 4},
        {**FIXED_BOOSTED, "min_samples_split": 4},
        {"cv": 3},
        {**BOOSTED, "cv": 3, "max_boosting_iterations": 5},
    ):
        unit = CalibrationTree(**params).fit(X, y, scores, sample_weight=np.ones(len(y)))
        assert_same(CalibrationTree(**params).fit(X, y, scores), unit, X, scores)


def test_rows_without_weight_bring_no_category_no_class_and_no_infinity():
    X, y, scores = make_rows()
    kept = np.arange(len(X)) >= 5
    colour = np.where(kept, np.where(X[:, 0] > 0.3, "red", "blue"), "mauve")
    number = np.where(kept, X[:, 1], np.inf)
    frame = pd.DataFrame({"colour": colour, "number": number})
    labels = np.where(kept, y, 9)
    tree = fixed_tree().fit(frame, labels, scores, sample_weight=kept)
    expected = fixed_tree().fit(frame[kept], y[kept], scores[kept])
    assert tree.classes_.tolist() == [0, 1]
    assert tree.tree_.attributes.columns[0].categories == ("blue", "red")
    assert_same(expected, tree, frame, scores)


def test_weights_move_the_mean_and_the_most_frequent_category():
    X = pd.DataFrame({"number": [0.0, 10.0] * 10, "colour": ["a", "b"] * 10})
    y, scores = [0, 1] * 10, np.linspace(0.1, 0.9, 20)
    unweighted = fixed_tree().fit(X, y, scores).tree_.attributes
    weighted = fixed_tree().fit(X, y, scores, sample_weight=[1, 3] * 10).tree_.attributes
    assert unweighted.fills.tolist() == [5.0, 0.0]
    assert weighted.fills.tolist() == [7.5, 1.0]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-5, 1e300])
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_weights_of_any_size_give_probabilities(scale):
    frame, y, scores = make_frame()
    weight = scale * np.random.default_rng(0).integers(1, 9, len(y))
    for params in ({}, FIXED, BOOSTED, FIXED_BOOSTED):
        tree = CalibrationTree(**params).fit(frame, y, scores, sample_weight=weight)
        assert_probabilities(tree.predict_proba(frame, scores))


def test_weights_that_sum_to_next_to_nothing_warn():
    X, y, scores = make_rows()
    with pytest.warns(UserWarning, match="sample_weight sums to 0.3.*rescale"):
        fixed_tree().fit(X, y, scores, sample_weight=np.full(len(X), 0.001))


@pytest.mark.parametrize("make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"])
def test_rows_of_weight_zero_may_lack_label_and_scores(make):
    rng = np.random.default_rng(3)
    X, y = rng.random((60, 2)), rng.integers(0, 2, 60).astype(float)
    scores, weight = rng.random(60), np.ones(60)
    without = make().fit(X[5:], y[5:], scores[5:])
    weight[:5], y[:5], scores[:5] = 0, np.nan, np.nan
    with_them = make().fit(X, y, scores, sample_weight=weight)
    new = rng.random(60)
    assert np.array_equal(with_them.predict_proba(X, new), without.predict_proba(X, new))
