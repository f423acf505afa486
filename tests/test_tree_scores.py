"""The default CalibrationTree: weights, scores of every kind, little data, storage."""

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import CalibrationTree, PublishedCalibrationTree
from caltree._inputs.folds import make_folds
from caltree.metrics import log_loss, rmse

from .support.default_trees import fitted, noise, rows_with_shift
from .support.trees import (
    FIXED,
    assert_probabilities,
    fixed_tree,
    make_frame,
    make_rows,
    squared_error,
)

# Threads, chance, storage


@pytest.mark.parametrize("n_jobs", [1, 2, 4, -1])
def test_threads_change_nothing(n_jobs):
    frame, y, scores = make_frame()
    expected = CalibrationTree().fit(frame, y, scores)
    tree = CalibrationTree(n_jobs=n_jobs).fit(frame, y, scores)
    assert fitted(tree) == fitted(expected)


def test_random_state_shuffles_the_folds():
    X, y, scores = make_rows(300)
    losses = [
        CalibrationTree(random_state=seed).fit(X, y, scores).selection_.candidates[1].loss
        for seed in (None, None, 0, 0, 1)
    ]
    assert losses[0] == losses[1] and losses[2] == losses[3]
    assert len(set(losses)) == 3


CASES = {
    "local": lambda: (*make_rows(300), {}),
    "three classes": lambda: (*make_rows(300, 3), {}),
    "frame": lambda: (*make_frame(300), {}),
    "margins": lambda: (*make_rows(300, 3), {"score_type": "margin"}),
    "uncalibrated": lambda: (noise(300), *rows_with_shift(0.0, 300), {}),
    "log loss": lambda: (*make_rows(300), {"scoring": "log_loss"}),
    "not cut back": lambda: (*make_rows(300), FIXED),
}


@pytest.mark.parametrize("kind", CASES)
def test_copies_predict_the_same(kind, tmp_path):
    X, y, scores, params = CASES[kind]()
    tree = CalibrationTree(**params).fit(X, y, scores)
    expected = tree.predict_proba(X, scores)
    assert_probabilities(expected)
    tree.save(tmp_path / "tree.json")
    copies = [
        CalibrationTree.load(tmp_path / "tree.json"),
        CalibrationTree.from_dict(json.loads(json.dumps(tree.to_dict(), allow_nan=False))),
        pickle.loads(pickle.dumps(tree)),
        copy.deepcopy(tree),
    ]
    for other in copies:
        assert other.to_dict() == tree.to_dict()
        assert np.array_equal(other.predict_proba(X, scores), expected)
        assert np.array_equal(other.apply(X), tree.apply(X))
        assert other.to_text() == tree.to_text()
        np.testing.assert_array_equal(other.feature_importances_, tree.feature_importances_)
        assert vars(other).keys() == vars(tree).keys()
        assert other.get_params() == tree.get_params()


@pytest.mark.parametrize(
    "loss", [10**400, float("nan"), float("inf")], ids=["huge", "nan", "infinite"]
)
def test_losses_that_are_no_losses_are_refused(loss):
    X, y, scores = make_rows(100)
    stored = CalibrationTree().fit(X, y, scores).to_dict()
    good = stored["selection"]
    of_candidate = {**good["candidates"][0], "loss": loss}
    for bad in (
        {**good, "candidates": [of_candidate, *good["candidates"][1:]]},
        {**good, "calibrated_loss": loss},
        {**good, "loss": loss},
    ):
        with pytest.raises(ValueError, match="stored selection"):
            CalibrationTree.from_dict({**stored, "selection": bad})


# Weights


def twice(folds, n_rows):
    """The folds of rows and of their copies, which stand behind all of them."""
    return [tuple(np.concatenate([part, part + n_rows]) for part in fold) for fold in folds]


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_a_row_of_weight_two_is_two_rows(scoring):
    frame, y, scores = make_frame(200)
    folds = [tuple(map(np.array, fold)) for fold in make_folds(4, y.astype(np.uint16), None, None)]
    params = {"scoring": scoring, "max_bins": 20}
    weighted = CalibrationTree(cv=folds, **params).fit(frame, y, scores, np.full(200, 2.0))
    repeated = CalibrationTree(cv=twice(folds, 200), **params).fit(
        pd.concat([frame, frame], ignore_index=True), np.tile(y, 2), np.tile(scores, (2, 1))
    )
    assert weighted.get_n_leaves() == repeated.get_n_leaves() > 1
    assert weighted.selection_.chosen == repeated.selection_.chosen == "local"
    losses = [
        [candidate.loss for candidate in tree.selection_.candidates]
        for tree in (weighted, repeated)
    ]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-9)
    for name in ("attribute", "first_child", "n_rows", "missing", "branches"):
        one, other = getattr(weighted.model_, name), getattr(repeated.model_, name)
        assert np.array_equal(one, other), name
    np.testing.assert_allclose(
        weighted.predict_proba(frame, scores),
        repeated.predict_proba(frame, scores),
        rtol=0,
        atol=1e-9,
    )


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999), n_classes=st.sampled_from([2, 3]), max_bins=st.sampled_from([5, 255])
)
def test_weights_are_numbers_of_rows(seed, n_classes, max_bins):
    X, y, scores = make_rows(150, n_classes, seed)
    times = np.random.default_rng(seed).integers(1, 4, 150)
    place = np.repeat(np.arange(150), times)
    params = {"max_depth": 2, "max_bins": max_bins}
    weighted = fixed_tree(**params).fit(X, y, scores, times.astype(float))
    repeated = fixed_tree(**params).fit(X[place], y[place], scores[place])
    assert np.array_equal(weighted.model_.n_rows, repeated.model_.n_rows)
    np.testing.assert_allclose(weighted.model_.gain, repeated.model_.gain, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        weighted.predict_proba(X, scores), repeated.predict_proba(X, scores), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_losses_are_weighted(scoring):
    X, y, scores = make_rows(300)
    weight = np.random.default_rng(0).gamma(1, size=300)
    tree = CalibrationTree(scoring=scoring).fit(X, y, scores, weight)
    loss = {"rmse": rmse, "log_loss": log_loss}[scoring]
    expected = loss(y, scores, sample_weight=weight)
    assert tree.selection_.candidates[0].loss == pytest.approx(expected)
    assert expected != pytest.approx(loss(y, scores))


def test_rows_of_weight_0_have_no_influence():
    frame, y, scores = make_frame(300)
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 1.0, 2.0], 300)
    absent = weight == 0
    expected = CalibrationTree().fit(frame, y, scores, weight)
    changed = frame.copy()
    changed.loc[absent, "number"] = 1e9
    changed.loc[absent, "colour"] = "ultraviolet"
    labels = np.where(absent, 1 - y, y)
    assert fitted(CalibrationTree().fit(changed, labels, scores, weight)) == fitted(expected)
    without = CalibrationTree().fit(frame[~absent], y[~absent], scores[~absent], weight[~absent])
    assert fitted(without) == fitted(expected)


# Scores of every kind


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
@pytest.mark.parametrize("cls", [CalibrationTree, PublishedCalibrationTree])
def test_several_classifiers_side_by_side(n_classes, kind, cls):
    X, y, scores = make_rows(600, n_classes)
    useless = np.random.default_rng(0).dirichlet(np.ones(n_classes), 600)
    both = np.hstack([useless, scores])
    if kind != "probability":
        both = np.log(both)
    tree = cls(score_type=kind).fit(X[:400], y[:400], both[:400])
    assert tree.n_scores_ == 2 * n_classes
    # With two classes, every score has one beside it that bends the node models.
    bends = 2 if cls is CalibrationTree and n_classes == 2 else 1
    assert tree.model_.n_scores == bends * tree.n_scores_
    assert tree.model_.offset == (cls is CalibrationTree and kind != "margin")
    calibrated = tree.predict_proba(X[400:], both[400:])
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y[400:]) < 0.7 * squared_error(scores[400:], y[400:])


def test_more_classes_than_scores_that_a_class_can_look_at():
    X, y, scores = make_rows(800, 12)
    three = np.hstack([scores] * 3)
    tree = CalibrationTree(cv=2, max_depth=2).fit(X, y, three)
    assert tree.model_.parameters.shape[1:] == (12, 1 + 3)
    slopes = tree.model_.coefficients(0)[:, 1:].reshape(12, 3, 12)
    own = np.eye(12, dtype=bool)[:, np.newaxis, :]
    assert not np.where(own, 0.0, slopes).any() and slopes[np.broadcast_to(own, slopes.shape)].any()
    assert_probabilities(tree.predict_proba(X, three))
    of_all = CalibrationTree(cv=2, max_depth=2).fit(X, y, scores)
    assert (of_all.model_.coefficients(0)[:, 1:] != 0).all()


@pytest.mark.parametrize("cls", [CalibrationTree, PublishedCalibrationTree])
def test_one_column_or_two(cls):
    X, y, scores = make_rows(300)
    both = cls().fit(X, y, scores)
    one = cls().fit(X, y, scores[:, 1])
    calibrated = [both.predict_proba(X, scores), one.predict_proba(X, scores[:, 1])]
    np.testing.assert_allclose(calibrated[0], calibrated[1], rtol=0, atol=1e-9)
    if cls is CalibrationTree:
        np.testing.assert_allclose(one.predict_proba(X, scores), calibrated[1], rtol=0, atol=1e-12)
    else:
        with pytest.raises(ValueError, match="scores has 2 columns"):
            one.predict_proba(X, scores)


def test_probabilities_and_their_log_odds_give_the_same_tree():
    X, y, scores = make_rows(300)
    odds = np.log(scores[:, 1] / scores[:, 0])
    by_probability = CalibrationTree().fit(X, y, scores)
    by_odds = CalibrationTree(score_type="logit").fit(X, y, odds)
    assert np.array_equal(by_probability.model_.attribute, by_odds.model_.attribute)
    np.testing.assert_allclose(
        by_probability.predict_proba(X, scores), by_odds.predict_proba(X, odds), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e90])
def test_margins_of_any_scale_give_the_same_probabilities(scale):
    X, y, scores = make_rows(300, 3)
    margins = np.log(scores)
    expected = fixed_tree(score_type="margin", max_depth=2).fit(X, y, margins)
    tree = fixed_tree(score_type="margin", max_depth=2).fit(X, y, scale * margins)
    np.testing.assert_allclose(
        tree.predict_proba(X, scale * margins),
        expected.predict_proba(X, margins),
        rtol=0,
        atol=1e-6,
    )


EXTREMES = [0.0, -0.0, 1e-320, -1e-320, 1e-8, 1.0, -1.0, 700.0, -800.0, 1e6, -1e6, 1e100, -1e308]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999),
    values=st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=4),
    shape=st.sampled_from([(2, 1), (2, 2), (3, 3), (3, 6)]),
    score_type=st.sampled_from(["margin", "logit"]),
    l2_regularization=st.sampled_from([0.05, 1e-9, 1e9]),
    do_no_harm=st.booleans(),
)
def test_extreme_scores_give_probabilities(
    seed, values, shape, score_type, l2_regularization, do_no_harm
):
    n_classes, n_columns = shape
    rng = np.random.default_rng(seed)
    X, y, _ = make_rows(60, n_classes, seed)
    y[:n_classes] = np.arange(n_classes)
    scores = rng.choice(values, (60, n_columns))
    tree = CalibrationTree(
        score_type=score_type, l2_regularization=l2_regularization, do_no_harm=do_no_harm, cv=3
    )
    tree.fit(X, y, scores)
    assert_probabilities(tree.predict_proba(X, scores))
    assert_probabilities(tree.predict_proba(X, rng.choice(EXTREMES, scores.shape)))
    for name in ("parameters", "gain", "threshold"):
        assert np.isfinite(getattr(tree.model_, name)).all()
    json.dumps(tree.to_dict(), allow_nan=False)


@pytest.mark.filterwarnings("ignore:all scores are 0 or 1:UserWarning")
@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999),
    values=st.lists(
        st.sampled_from([0.0, 1.0, 1e-320, 1e-16, 0.5, 1 - 1e-16]), min_size=1, max_size=4
    ),
    cls=st.sampled_from([CalibrationTree, PublishedCalibrationTree]),
)
def test_extreme_probabilities_give_probabilities(seed, values, cls):
    X, y, _ = make_rows(60, 2, seed)
    y[:2] = [0, 1]
    p = np.random.default_rng(seed).choice(values, 60)
    for scores in (p, np.column_stack([1 - p, p])):
        tree = cls(cv=3).fit(X, y, scores)
        assert tree.score_type_ == "probability"
        assert_probabilities(tree.predict_proba(X, scores))


def test_certainty_that_is_right_stays_uncalibrated():
    X, y, _ = make_rows(200)
    tree = CalibrationTree(score_type="probability").fit(X, y, y.astype(float))
    assert tree.selection_.chosen == "uncalibrated"
    assert np.array_equal(tree.predict_proba(X, y.astype(float)), np.eye(2)[y])


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
def test_certainty_that_is_wrong_is_not():
    X, y, _ = make_rows(200)
    wrong = 1.0 - y
    tree = CalibrationTree(monotone=False, score_type="probability").fit(X, y, wrong)
    assert tree.selection_.chosen != "uncalibrated"
    assert squared_error(tree.predict_proba(X, wrong), y) < 1e-3
    # What must not turn scores round takes no notice of them.
    tree = CalibrationTree(score_type="probability").fit(X, y, wrong)
    assert tree.selection_.chosen != "uncalibrated"
    low, high = (tree.predict_proba(X, np.full(200, score))[:, 1] for score in (0.0, 1.0))
    assert (low <= high).all() and squared_error(tree.predict_proba(X, wrong), y) < 0.25


def test_constant_scores_that_say_nothing():
    X, y, _ = make_rows(400)
    y = ((X[:, 0] > 0) ^ (np.arange(400) % 5 == 0)).astype(int)
    for constant in (0.5, 0.0, 1.0, 1e-320):
        scores = np.full(400, constant)
        assert CalibrationTree().fit(X, y, scores).selection_.chosen == "local"
        tree = CalibrationTree(path_averaging=False).fit(X, y, scores)
        assert tree.selection_.chosen == "local"
        calibrated = tree.predict_proba(X, scores)
        for region in (X[:, 0] > 0, X[:, 0] <= 0):
            observed = y[region].mean()
            assert calibrated[region, 1].mean() == pytest.approx(observed, abs=0.01)


# Little data


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("do_no_harm", [False, True])
def test_one_row_a_class(n_classes, do_no_harm):
    X = np.arange(2.0 * n_classes).reshape(n_classes, 2)
    y = np.arange(n_classes)
    scores = np.random.default_rng(0).dirichlet(np.ones(n_classes), n_classes)
    tree = CalibrationTree(cv=2, do_no_harm=do_no_harm).fit(X, y, scores)
    assert tree.get_n_leaves() == 1
    assert_probabilities(tree.predict_proba(X, scores))
    grown = fixed_tree(min_samples_split=2, min_samples_leaf=1).fit(X, y, scores)
    assert grown.get_n_leaves() == n_classes
    assert_probabilities(grown.predict_proba(X, scores))


def test_fewer_rows_than_folds():
    with pytest.raises(ValueError, match="cv=5 needs at least 5 rows, got 2"):
        CalibrationTree().fit([[0], [1]], [0, 1], [0.2, 0.7])
    tree = fixed_tree().fit([[0], [1]], [0, 1], [0.2, 0.7])
    assert_probabilities(tree.predict_proba([[0], [1]], [0.2, 0.7]))


def test_constant_columns_change_nothing():
    X, y, scores = make_rows(300)
    expected = CalibrationTree().fit(X, y, scores)
    wider = np.hstack([np.full((300, 1), 7.0), X, np.zeros((300, 1))])
    tree = CalibrationTree().fit(wider, y, scores)
    assert np.array_equal(tree.predict_proba(wider, scores), expected.predict_proba(X, scores))
    assert tree.feature_importances_[[0, -1]].tolist() == [0.0, 0.0]
    assert np.array_equal(tree.feature_importances_[1:-1], expected.feature_importances_)
    alone = CalibrationTree().fit(np.ones((300, 2)), y, scores)
    assert alone.get_n_leaves() == 1


def test_attributes_of_any_size_can_be_cut():
    y, scores = rows_with_shift(np.repeat([-2.0, 2.0], 200), 400)
    for low, high in (
        (-1e308, 1e308),
        (5e-324, 1e-323),
        (1.0, np.nextafter(1.0, 2.0)),
        (-1.0, 0.0),
    ):
        x = np.repeat([low, high], 200)[:, None]
        tree = CalibrationTree().fit(x, y, scores)
        assert tree.get_n_leaves() == 2
        assert tree.apply([[low], [high]]).tolist() == [1, 2]
        assert tree.model_.n_rows.tolist() == [400, 200, 200]
