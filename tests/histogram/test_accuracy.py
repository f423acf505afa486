"""Trees on histograms are about as good as trees on rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

from caltree.metrics import log_loss, rmse

from ..support.default_trees import assert_uncalibrated, noise, rows_with_shift
from ..support.histogram_cases import chunks_of, fixed_histogram_tree, histogram_tree
from ..support.trees import CalibrationTree, assert_probabilities, make_frame, make_rows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_as_good_on_fresh_rows_as_a_tree_on_rows(n_classes):
    differences, gains = [], []
    for seed in range(3):
        X, y, scores = make_rows(9000, n_classes=n_classes, seed=seed)
        train, test = slice(0, 3000), slice(3000, None)
        rows, bins = (
            rmse(
                y[test],
                CalibrationTree(tree_method=mode)
                .fit(X[train], y[train], scores[train])
                .predict_proba(X[test], scores[test]),
            )
            for mode in ("exact", "hist")
        )
        differences.append(bins - rows)
        gains.append(rmse(y[test], scores[test]) - bins)
    assert np.mean(differences) < 0.002 and max(differences) < 0.004
    assert min(gains) > 0.05


@pytest.mark.parametrize("seed", range(4))
def test_calibrated_scores_stay_uncalibrated(seed):
    y, scores = rows_with_shift(0.0, 4000, seed=seed)
    tree = histogram_tree().fit(noise(4000), y, scores)
    assert_uncalibrated(tree, noise(4000), scores, np.column_stack([1 - scores, scores]))


def test_one_shift_for_all_rows_is_global():
    y, scores = rows_with_shift(1.0, 4000)
    trees = [histogram_tree(random_state=k).fit(noise(4000), y, scores) for k in range(4)]
    # Now and then a tree is found in noise.
    assert sum(tree.selection_.chosen == "global" for tree in trees) >= 3
    tree = trees[0]
    calibrated = tree.predict_proba(noise(4000), scores)[:, 1]
    assert calibrated.mean() == pytest.approx(y.mean(), abs=0.02)


def test_a_region_is_put_right_and_only_there():
    X = noise(6000)
    wrong = X[:, 1] > 0.8
    y, scores = rows_with_shift(np.where(wrong, 2.5, 0.0), 6000)
    tree = histogram_tree().fit(X, y, scores)
    assert tree.selection_.chosen == "local"
    assert tree.feature_importances_.argmax() == 1
    calibrated = tree.predict_proba(X, scores)[:, 1]
    for part in (wrong, ~wrong):
        assert calibrated[part].mean() == pytest.approx(y[part].mean(), abs=0.02)
    assert np.abs(calibrated - scores)[~wrong].mean() < 0.03


@pytest.mark.parametrize("sharper", [3, 10, 40])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_that_are_far_too_sure_are_made_less_so(n_classes, sharper):
    rng = np.random.default_rng(n_classes)
    logits = rng.normal(0, 1.5, (1500, n_classes))
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    scores = softmax(sharper * logits, axis=1)
    right = log_loss(y, softmax(logits, axis=1))
    assert log_loss(y, scores) > 1.3 * right
    nothing = np.zeros((1500, 1))
    with chunks_of(400):
        tree = fixed_histogram_tree(max_depth=0).fit(nothing, y, scores)
    # Of the scores that are cut off something is lost for good.
    assert log_loss(y, tree.predict_proba(nothing, scores)) < 1.1 * right


def test_margins_become_probabilities():
    X = noise(4000)
    y, scores = rows_with_shift(np.where(X[:, 0] > 0, 1.0, -1.0), 4000)
    margins = 7.0 * np.log(scores / (1 - scores)) + 3.0
    tree = histogram_tree(score_type="margin").fit(X, y, margins)
    calibrated = tree.predict_proba(X, margins)
    assert_probabilities(calibrated)
    odds = np.log(scores / (1 - scores)) + np.where(X[:, 0] > 0, 1.0, -1.0)
    assert np.sqrt(np.mean((calibrated[:, 1] - expit(odds)) ** 2)) < 0.04


def test_every_kind_of_column_helps():
    frame, y, scores = make_frame(5000)
    test, truth, of_test = make_frame(5000, seed=1)
    found = {}
    for mode in ("exact", "hist"):
        tree = CalibrationTree(tree_method=mode).fit(frame, y, scores)
        found[mode] = rmse(truth, tree.predict_proba(test, of_test))
    assert found["hist"] < found["exact"] + 0.002 and found["hist"] < rmse(truth, of_test) - 0.05


def test_several_classifiers_are_calibrated_together():
    X, y, scores = make_rows(4000, n_classes=3)
    both = np.hstack([scores, scores[:, ::-1]])
    train, test = slice(0, 2000), slice(2000, None)
    found = {}
    for mode in ("exact", "hist"):
        tree = CalibrationTree(tree_method=mode).fit(X[train], y[train], both[train])
        found[mode] = rmse(y[test], tree.predict_proba(X[test], both[test]))
    assert found["hist"] < found["exact"] + 0.004


@pytest.mark.parametrize("scale", [1e3, 1e7])
def test_weights_of_any_size_are_exact_enough(scale):
    """A unit is a share of the largest weight, so that sums neither overflow nor vanish."""
    X, y, scores = make_rows(600)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 600)
    plain, scaled = (
        fixed_histogram_tree(max_depth=1, l2_regularization=0.05 * factor, min_samples_leaf=1)
        .fit(X, y, scores, sample_weight=weights * factor)
        .model_
        for factor in (1.0, scale)
    )
    assert plain.n_nodes == 3
    assert np.array_equal(plain.threshold, scaled.threshold)
    np.testing.assert_allclose(plain.parameters[0], scaled.parameters[0], rtol=1e-6)
    np.testing.assert_allclose(plain.n_rows * scale, scaled.n_rows, rtol=1e-12)
    np.testing.assert_allclose(plain.gain * scale, scaled.gain, rtol=1e-6)


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_weights_of_as_many_rows_as_sums_can_hold_will_do(scoring):
    X, y, scores = make_rows(400)
    tree = histogram_tree(scoring=scoring).fit(X, y, scores, sample_weight=np.full(400, 2e13))
    assert_probabilities(tree.predict_proba(X, scores))


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_a_fold_whose_rows_count_for_nothing_says_nothing(scoring):
    X, y, scores = make_rows(40)
    weights = np.where(np.arange(40) % 2 < 1, 1e9, 1e-12)
    alternating = [(np.arange(k, 40, 2), np.arange(1 - k, 40, 2)) for k in (0, 1)]
    tree = histogram_tree(scoring=scoring, cv=alternating).fit(X, y, scores, weights)
    assert_probabilities(tree.predict_proba(X, scores))
    with pytest.raises(ValueError, match=r"cv holds out only rows whose .* is negligible"):
        tree.set_params(cv=alternating[:1]).fit(X, y, scores, weights)
