"""Weights count rows: in splits, node models, errors, pruning and choices."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)
from caltree._training import regularized_isotonic

from .support.marks import new_values
from .support.trees import (
    assert_probabilities,
    assert_same,
    boosted_tree,
    fixed_boosted_tree,
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
    "boosted, grown": fixed_boosted_tree(),
    "boosted, pruned": boosted_tree(boosting_iterations=1, ccp_alpha=0.01),
    "published": PublishedCalibrationTree(boosting_iterations=2, ccp_alpha=0.0),
    "grown": fixed_tree(),
    "cut back": fixed_tree(max_leaf_nodes=3, scoring="log_loss"),
}
quick = settings(max_examples=40, deadline=None, derandomize=True)


def fit_to(rows, repeats, tree, sample_weight=None):
    """A tree like the given one, on some of the rows, given once or more."""
    X, y, scores, _ = rows
    data = X.iloc[repeats], y[repeats], scores[repeats]
    return clone(tree).set_params(min_samples_split=5).fit(*data, sample_weight)


def assert_weights_count(weighted, repeated, rows):
    X, _, scores, weight = rows
    for name in ("attribute", "n_rows", "missing", "missing_rows", "branches"):
        assert np.array_equal(getattr(weighted.model_, name), getattr(repeated.model_, name))
    np.testing.assert_allclose(weighted.model_.threshold, repeated.model_.threshold, atol=1e-12)
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
    weighted = fit_to(rows, slice(None), WAYS[way], weight)
    repeated = fit_to(rows, row_numbers(weight), WAYS[way])
    assert_weights_count(weighted, repeated, rows)


@quick
@given(rows=weighted_rows())
def test_a_weight_counts_rows_in_bins(rows):
    weight = rows[-1]
    tree = fixed_tree(max_bins=4)
    weighted = fit_to(rows, slice(None), tree, weight)
    assert_weights_count(weighted, fit_to(rows, row_numbers(weight), tree), rows)


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


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_a_weight_counts_rows_in_given_folds(averaging, seed):
    (weighted, one), (repeated, other) = fit_in_given_folds(
        seed, path_averaging=averaging, do_no_harm=False
    )
    assert weighted.get_n_leaves() == repeated.get_n_leaves()
    importances = weighted.feature_importances_, repeated.feature_importances_
    np.testing.assert_allclose(*importances, rtol=0, atol=1e-7)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


def test_a_weight_counts_rows_in_the_choice_of_what_to_do():
    for seed in range(30):
        (weighted, one), (repeated, other) = fit_in_given_folds(seed)
        assert weighted.selection_.chosen == repeated.selection_.chosen
        candidates = weighted.selection_.candidates, repeated.selection_.candidates
        for found, expected in zip(*candidates, strict=True):
            assert found.name == expected.name
            assert found.loss == pytest.approx(expected.loss, abs=1e-9)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


CHOSEN_WAYS = {
    "chosen": CalibrationTree(cv=3),
    "boosted, chosen": boosted_tree(max_boosting_iterations=5, cv=3),
    "published, chosen": PublishedCalibrationTree(max_boosting_iterations=5, cv=3),
}


@pytest.mark.parametrize("way", [*WAYS, *CHOSEN_WAYS])
@quick
@given(rows=weighted_rows())
@new_values
def test_a_row_without_weight_is_no_row(way, rows):
    X, _, scores, weight = rows
    tree = (WAYS | CHOSEN_WAYS)[way]
    left_out = fit_to(rows, slice(None), tree, weight)
    kept = np.flatnonzero(weight > 0)
    dropped = fit_to(rows, kept, tree, weight[kept])
    assert_same(dropped, left_out, X, scores)
    assert left_out.to_dict()["chosen"] == dropped.to_dict()["chosen"]


@quick
@given(rows=weighted_rows())
def test_weights_of_one_are_no_weights(rows):
    X, y, scores, _ = rows
    for tree in (
        fixed_tree(min_samples_split=4),
        fixed_boosted_tree(min_samples_split=4),
        CalibrationTree(cv=3),
        boosted_tree(cv=3, max_boosting_iterations=5),
    ):
        unit = clone(tree).fit(X, y, scores, sample_weight=np.ones(len(y)))
        assert_same(clone(tree).fit(X, y, scores), unit, X, scores)


@new_values
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
    assert tree.model_.attributes.columns[0].categories == ("blue", "red")
    assert_same(expected, tree, frame, scores)


def test_weights_move_the_mean_and_the_most_frequent_category():
    X = pd.DataFrame({"number": [0.0, 10.0] * 10, "colour": ["a", "b"] * 10})
    y, scores = [0, 1] * 10, np.linspace(0.1, 0.9, 20)
    unweighted = fixed_tree().fit(X, y, scores).model_.attributes
    weighted = fixed_tree().fit(X, y, scores, sample_weight=[1, 3] * 10).model_.attributes
    assert unweighted.fills.tolist() == [5.0, 0.0]
    assert weighted.fills.tolist() == [7.5, 1.0]


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-5, 1e12])
@pytest.mark.filterwarnings("ignore:sample_weight sums to")
def test_weights_of_any_size_give_probabilities(scale):
    frame, y, scores = make_frame()
    weight = scale * np.random.default_rng(0).integers(1, 9, len(y))
    for make in (CalibrationTree, fixed_tree, boosted_tree, fixed_boosted_tree):
        tree = make().fit(frame, y, scores, sample_weight=weight)
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


EVERY = {
    "exact": CalibrationTree(tree_method="exact"),
    "exact, log loss": CalibrationTree(tree_method="exact", scoring="log_loss"),
    "hist": CalibrationTree(tree_method="hist"),
    "hist, log loss": CalibrationTree(tree_method="hist", scoring="log_loss"),
    "published": PublishedCalibrationTree(max_boosting_iterations=5),
    "forest": CalibrationForest(4, random_state=0),
    "platt": PlattScaling(),
    "temperature": TemperatureScaling(),
    "beta": BetaScaling(),
    "isotonic": IsotonicScaling(),
    "smooth isotonic": SmoothIsotonicScaling(),
    "regularized isotonic": RegularizedIsotonicScaling(),
    "robust platt": RobustPlattScaling(),
    "identity": IdentityCalibrator(),
}
every_calibrator = pytest.mark.parametrize("calibrator", EVERY.values(), ids=EVERY)


def one_beside(weight, others):
    return np.append(np.full(39, float(others)), weight)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (one_beside(1e17, 1), "sums to 1e.17, and the largest weight is 1e.17 in row 39"),
        (np.full(40, 1e15), "sums to 4e.16, and the largest weight is 1e.15 in row 0"),
        (np.full(40, 1e160), "sums to 4e.161, .*rescale"),
        (10.0 ** np.linspace(300, -300, 40), "sums to 1e.300, .* in row 0"),
        (one_beside(1e6, 1e-12), "contains 1e.06 in row 39, so large that .* correct that weight"),
    ],
    ids=["one huge", "all huge", "beyond storage", "all sizes", "one and next to nothing"],
)
@every_calibrator
def test_weights_that_no_sum_can_hold_are_refused(calibrator, weights, message):
    X, y, scores = make_rows(40)
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        clone(calibrator).fit(X, y, scores, sample_weight=weights)


@pytest.mark.parametrize(
    "weights",
    [
        np.full(40, 2e14),
        one_beside(1e9, 1),
        one_beside(1e-12, 1),
        10.0 ** np.linspace(10, -300, 40),
        10.0 ** np.linspace(-6, 6, 40),
    ],
    ids=["huge", "one large", "one small", "down to nothing", "widely spread"],
)
@pytest.mark.parametrize("seed", range(3))
@every_calibrator
def test_weights_that_can_be_fitted_can_be_stored(calibrator, weights, seed, monkeypatch):
    monkeypatch.setattr(regularized_isotonic, "_MOST_STEPS", 200)  # with such weights it takes all
    X, y, scores = make_rows(40, n_classes=2 + seed % 2, seed=seed)
    fitted = clone(calibrator).fit(X, y, scores, np.random.default_rng(seed).permutation(weights))
    probabilities = fitted.predict_proba(X, scores)
    assert_probabilities(probabilities)
    again = type(fitted).from_dict(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
    assert np.array_equal(again.predict_proba(X, scores), probabilities)


def test_weights_are_refused_before_any_classifier_is_trained():
    X, y, _ = make_rows(40)
    never = GridSearchCV(GaussianNB(), {"no_parameter_of_it": [1]})
    with pytest.raises(ValueError, match="sample_weight sums to 4e"):
        CalibratedClassifier(never).fit(X, y, sample_weight=np.full(40, 1e15))
