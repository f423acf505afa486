"""The limits that a calibration tree obeys as it grows, and the choices that it makes."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.model_selection import StratifiedKFold

from caltree import CalibrationTree

from .support.trees import (
    boosted_tree,
    fixed_boosted_tree,
    fixed_tree,
    make_frame,
    make_rows,
    squared_error,
)

both_engines = pytest.mark.parametrize(
    "make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"]
)
both_fixed_engines = pytest.mark.parametrize(
    "make", [fixed_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)


@pytest.fixture(scope="module")
def rows():
    return make_rows(800, n_classes=3, seed=1, round_to=1)


def leaves_by_depth(tree):
    model = tree.model_
    depths = np.zeros(model.n_nodes, dtype=int)
    for node in range(model.n_nodes):
        for child in range(model.n_children[node]):
            depths[model.first_child[node] + child] = depths[node] + 1
    return depths[model.attribute < 0]


@both_fixed_engines
def test_leaves_and_depth_agree_with_apply(rows, make):
    X, y, scores = rows
    tree = make().fit(X, y, scores)
    leaves, counts = np.unique(tree.apply(X), return_counts=True)
    assert len(leaves) == tree.get_n_leaves() > 8
    assert (tree.model_.attribute[leaves] == -1).all()
    assert np.array_equal(tree.model_.n_rows[leaves], counts)
    assert tree.get_depth() == leaves_by_depth(tree).max() > 3


@both_fixed_engines
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3])
def test_max_depth_is_obeyed(max_depth, rows, make):
    X, y, scores = rows
    tree = make(max_depth=max_depth).fit(X, y, scores)
    assert tree.get_depth() == max_depth
    assert tree.get_n_leaves() <= 2**max_depth
    if max_depth == 0:
        assert tree.get_n_leaves() == 1 and (tree.apply(X) == 0).all()


@both_fixed_engines
@pytest.mark.parametrize("least", [2, 40, 101, 800, 801])
def test_min_samples_split_is_obeyed(least, rows, make):
    X, y, scores = rows
    model = make(min_samples_split=least).fit(X, y, scores).model_
    split = model.n_rows[model.attribute >= 0]
    assert (split >= least).all()
    assert (len(split) > 0) == (least <= 800)


@both_fixed_engines
@pytest.mark.parametrize("least", [1, 30, 61, 400])
def test_min_samples_leaf_is_obeyed(least, rows, make):
    X, y, scores = rows
    tree = make(min_samples_leaf=least).fit(X, y, scores)
    assert np.bincount(tree.apply(X))[np.unique(tree.apply(X))].min() >= least


def test_stronger_pruning_leaves_fewer_leaves(rows):
    X, y, scores = rows

    def fit(alpha):
        return fixed_boosted_tree(ccp_alpha=alpha).fit(X, y, scores)

    # What a leaf must gain in mean squared error.
    strengths = [0.0, 1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1.0]
    leaves = [fit(alpha).get_n_leaves() for alpha in strengths]
    assert leaves == sorted(leaves, reverse=True)
    assert len(set(leaves)) > 4 and leaves[-1] == 1
    grown, chosen = fit(None), fit("cv")
    assert grown.get_n_leaves() >= leaves[0] and grown.get_n_leaves() >= chosen.get_n_leaves()
    assert chosen.get_n_leaves() == fit(chosen.ccp_alpha_).get_n_leaves()


def test_fewer_leaves_are_obeyed(rows):
    X, y, scores = rows
    limits = [2, 3, 4, 8, 13, None]
    leaves = [fixed_tree(max_leaf_nodes=limit).fit(X, y, scores).get_n_leaves() for limit in limits]
    assert leaves == sorted(leaves) and len(set(leaves)) > 4
    assert all(count <= limit for count, limit in zip(leaves[:-1], limits[:-1], strict=True))


def test_a_smaller_share_of_the_gain_leaves_fewer_leaves():
    # What is wrong with the scores changes gradually: the more leaves, the better.
    rng = np.random.default_rng(0)
    X, odds = rng.standard_normal((3000, 3)), rng.standard_normal(3000)
    y, scores = rng.random(3000) < expit(odds + X[:, 0] + X[:, 1]), expit(odds)
    for averaging in (False, True):
        params = {"path_averaging": averaging, "do_no_harm": False}
        leaves = [
            CalibrationTree(kept_gain=share, **params).fit(X, y, scores).get_n_leaves()
            for share in (0.01, 0.5, 0.8, 0.95, 1.0)
        ]
        assert leaves == sorted(leaves) and leaves[0] < leaves[-1]
        # What is not cut back at all has at least as many.
        grown = CalibrationTree(kept_gain=None, **params).fit(X, y, scores)
        assert leaves[-1] <= grown.get_n_leaves() <= 64


@pytest.mark.parametrize(
    ("make", "fewer"),
    [(fixed_boosted_tree, {"ccp_alpha": 3e-4}), (fixed_tree, {"max_leaf_nodes": 6})],
    ids=["boosted", "shrunken"],
)
def test_pruning_never_adds_a_split(rows, make, fewer):
    X, y, scores = rows
    grown = make().fit(X, y, scores)
    pruned = make(**fewer).fit(X, y, scores)
    assert 1 < pruned.get_n_leaves() < grown.get_n_leaves()
    leaf_of = {}
    for fine, coarse in zip(grown.apply(X), pruned.apply(X), strict=True):
        assert leaf_of.setdefault(fine, coarse) == coarse


def test_the_best_strength_is_chosen(rows):
    X, y, scores = rows
    tree = boosted_tree().fit(X, y, scores)
    strengths, rmse = tree.ccp_path_
    assert len(strengths) == len(rmse) > 1
    assert tree.ccp_alpha_ == strengths[rmse == rmse.min()].max()


def test_the_best_iteration_is_chosen(rows):
    X, y, scores = rows
    tree = boosted_tree().fit(X, y, scores)
    assert 0 < tree.boosting_iterations_ == np.argmin(tree.boosting_rmse_)


def test_max_boosting_iterations_is_obeyed(rows):
    X, y, scores = rows
    tree = boosted_tree(max_boosting_iterations=1).fit(X, y, scores)
    assert len(tree.boosting_rmse_) == 2 and tree.boosting_iterations_ == 1


@both_fixed_engines
def test_the_structure_does_not_depend_on_the_order_of_the_rows(make):
    frame, y, scores = make_frame(600)
    order = np.random.default_rng(0).permutation(len(y))
    tree = make().fit(frame, y, scores)
    shuffled = make().fit(frame.iloc[order], y[order], scores[order])
    assert tree.get_n_leaves() > 8
    for name in ("attribute", "first_child", "n_rows", "missing", "missing_rows", "branches"):
        assert np.array_equal(getattr(tree.model_, name), getattr(shuffled.model_, name))
    np.testing.assert_allclose(tree.model_.threshold, shuffled.model_.threshold, atol=1e-12)
    np.testing.assert_allclose(
        tree.predict_proba(frame, scores), shuffled.predict_proba(frame, scores), atol=1e-9
    )


@both_engines
def test_the_tree_helps_where_the_classifier_is_wrong_by_region(rows, make):
    X, y, scores = rows
    X_new, y_new, scores_new = make_rows(800, n_classes=3, seed=2, round_to=1)
    tree = make().fit(X, y, scores)
    root = make(max_depth=0).fit(X, y, scores)
    before = squared_error(scores_new, y_new)
    at_the_root = squared_error(root.predict_proba(X_new, scores_new), y_new)
    assert squared_error(tree.predict_proba(X_new, scores_new), y_new) < 0.95 * at_the_root
    assert at_the_root < before


def rows_of_few_values(n_classes, constant=()):
    """Attributes of few values, and scores of which some classes may have but one."""
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((2000, 3)))
    logits = rng.standard_normal((2000, n_classes))
    logits[:, list(constant)] = 0.7
    truth = np.where(X[:, :1] > 0, 0.3 * logits, logits)
    truth[:, 0] += X[:, 1]
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    scores = softmax(logits, axis=1) if not constant else logits
    return X, y, scores


SOME_SCORES = {
    "two classes": (2, (), {}),
    "three classes": (3, (), {}),
    "margins": (3, (), {"score_type": "margin"}),
    "a class of constant scores": (3, (2,), {"score_type": "margin"}),
    "constant scores": (2, (0, 1), {"score_type": "logit"}),
}


@pytest.mark.parametrize("max_depth", [0, 1, 2, None])
@pytest.mark.parametrize("kind", SOME_SCORES)
def test_histograms_give_the_exact_tree_where_every_value_has_a_bin(kind, max_depth):
    n_classes, constant, params = SOME_SCORES[kind]
    X, y, scores = rows_of_few_values(n_classes, constant)
    exact, hist = (
        fixed_tree(max_depth=max_depth, tree_method=method, **params).fit(X, y, scores)
        for method in ("exact", "hist")
    )
    if max_depth is None:
        assert exact.get_n_leaves() == hist.get_n_leaves() > 3
    else:
        assert np.array_equal(exact.model_.attribute, hist.model_.attribute)
        assert np.array_equal(exact.model_.n_rows, hist.model_.n_rows)
    np.testing.assert_allclose(
        hist.predict_proba(X, scores), exact.predict_proba(X, scores), rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_histograms_choose_as_the_exact_tree_where_every_value_has_a_bin(n_classes, scoring):
    X, y, scores = rows_of_few_values(n_classes)
    cv = list(StratifiedKFold(4).split(X, y))
    exact, hist = (
        CalibrationTree(cv=cv, scoring=scoring, tree_method=method).fit(X, y, scores)
        for method in ("exact", "hist")
    )
    assert exact.selection_.chosen == hist.selection_.chosen == "local"
    assert exact.get_n_leaves() == hist.get_n_leaves() > 2
    for one, other in zip(exact.selection_.candidates, hist.selection_.candidates, strict=True):
        assert one.name == other.name
        # What held-out rows are predicted is of single precision.
        assert one.loss == pytest.approx(other.loss, abs=1e-6)
    np.testing.assert_allclose(
        exact.feature_importances_, hist.feature_importances_, rtol=0, atol=1e-3
    )
    # Of the weights, that of the uncalibrated probabilities is one of 128.
    found, expected = (tree.predict_proba(X, scores) for tree in (hist, exact))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1 / 64)
