"""The calibration tree as an estimator: what it answers, what it keeps, what it obeys."""

import copy
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold

from caltree import CalibrationTree, PublishedCalibrationTree

from .support.trees import (
    FIXED,
    assert_probabilities,
    boosted_tree,
    fixed_boosted_tree,
    fixed_tree,
    make_frame,
    make_rows,
    same_tree,
)

both_engines = pytest.mark.parametrize(
    "make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"]
)
both_fixed_engines = pytest.mark.parametrize(
    "make", [fixed_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)


def squared_error(probabilities, y):
    return np.mean((probabilities - np.eye(probabilities.shape[1])[y]) ** 2)


# Constant scores


def make_checkerboard(n_rows=800, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 12, (n_rows, 2)).astype(float)
    field = (X[:, 0] // 4 + 2 * (X[:, 1] // 6)).astype(int)
    y = np.where(rng.random(n_rows) < 0.85, field % n_classes, rng.integers(0, n_classes, n_rows))
    return X, y


def frequencies(tree, X, y):
    """(n_j + 1) / (n + m) among the training rows of each row's leaf."""
    counts = np.zeros((tree.model_.n_nodes, len(tree.classes_)))
    np.add.at(counts, (tree.apply(X), y), 1)
    smoothed = (counts + 1) / (counts.sum(axis=1, keepdims=True) + counts.shape[1])
    return smoothed[tree.apply(X)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", [boosted_tree, fixed_boosted_tree], ids=["chosen", "fixed"])
def test_a_classifier_that_answers_the_prior_comes_out_as_a_decision_tree(n_classes, make):
    X, y = make_checkerboard(n_classes=n_classes)
    prior = np.tile(np.bincount(y) / len(y), (len(y), 1))
    tree = make(min_samples_leaf=5).fit(X, y, prior)
    probabilities = tree.predict_proba(X, prior)
    assert tree.get_n_leaves() >= 3
    np.testing.assert_allclose(probabilities, frequencies(tree, X, y), rtol=0, atol=1e-12)
    assert squared_error(probabilities, y) < 0.8 * squared_error(prior, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("params", [{}, {**FIXED, "max_depth": 3}], ids=["chosen", "fixed"])
def test_shrunken_node_models_come_close_to_a_decision_tree(n_classes, params):
    X, y = make_checkerboard(n_classes=n_classes)
    prior = np.tile(np.bincount(y) / len(y), (len(y), 1))
    tree = CalibrationTree(min_samples_leaf=25, **params).fit(X, y, prior)
    probabilities = tree.predict_proba(X, prior)
    assert tree.get_n_leaves() >= 3
    expected = frequencies(tree, X, y)
    assert np.array_equal(probabilities.argmax(axis=1), expected.argmax(axis=1))
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=0.1)
    assert squared_error(probabilities, y) < 0.8 * squared_error(prior, y)


CONSTANT = pytest.mark.parametrize("scores", [0.0, 0.5, 1.0, -3.7, 1e100, 1e-320])


@CONSTANT
def test_any_constant_score_will_do(scores):
    X, y = make_checkerboard()
    constant = np.full(len(y), scores)
    tree = boosted_tree(min_samples_leaf=5).fit(X, y, constant)
    expected = frequencies(tree, X, y)
    np.testing.assert_allclose(tree.predict_proba(X, constant), expected, rtol=0, atol=1e-12)


@CONSTANT
def test_any_constant_score_will_do_for_shrunken_node_models(scores):
    X, y = make_checkerboard()
    constant = np.full(len(y), scores)
    tree = CalibrationTree(min_samples_leaf=25, path_averaging=False).fit(X, y, constant)
    assert tree.get_n_leaves() >= 3
    expected = frequencies(tree, X, y)
    np.testing.assert_allclose(tree.predict_proba(X, constant), expected, rtol=0, atol=0.05)


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
def test_scores_that_are_constant_in_one_node_only():
    X, y, scores = make_rows(500)
    X[:, 0] = X[:, 0] > 0.3
    scores[X[:, 0] == 1] = [0.3, 0.7]
    tree = fixed_boosted_tree(max_depth=1).fit(X, y, scores)
    constant = tree.apply(X) == 2
    assert np.array_equal(constant, X[:, 0] == 1)
    probabilities = tree.predict_proba(X, scores)
    expected = frequencies(tree, X, y)
    np.testing.assert_allclose(probabilities[constant], expected[constant], rtol=0, atol=1e-12)
    assert len(np.unique(probabilities[~constant])) > 100


@pytest.mark.parametrize("n_classes", [2, 3])
def test_published_answers_nothing_where_scores_say_nothing(n_classes):
    X, y = make_checkerboard(n_classes=n_classes)
    for scores in (np.zeros((len(y), n_classes)), np.full((len(y), n_classes), 0.5)):
        score_type = "probability" if scores[0, 0] else "logit"
        tree = PublishedCalibrationTree(score_type=score_type).fit(X, y, scores)
        assert (tree.predict_proba(X, scores) == 1 / n_classes).all()


# Extreme scores


def few_iterations(make):
    """Parameters that keep boosting short, for trees that boost."""
    boosts = "max_boosting_iterations" in make().get_params()
    return {"max_boosting_iterations": 20} if boosts else {}


EXTREMES = [0.0, -0.0, 1e-320, -1e-320, 1e-8, 1.0, -1.0, 700.0, -800.0, 1e6, -1e6, 1e100, -1e308]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999),
    values=st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=4),
    shape=st.sampled_from([(2, 1), (2, 2), (3, 3), (3, 6)]),
    make=st.sampled_from(
        [CalibrationTree, fixed_tree, PublishedCalibrationTree, boosted_tree, fixed_boosted_tree]
    ),
)
def test_extreme_margins_give_probabilities(seed, values, shape, make):
    n_classes, n_columns = shape
    rng = np.random.default_rng(seed)
    X, y = make_checkerboard(60, n_classes, seed)
    scores = rng.choice(values, (60, n_columns))
    tree = make(score_type="margin", **few_iterations(make)).fit(X, y, scores)
    assert_probabilities(tree.predict_proba(X, scores))
    assert_probabilities(tree.predict_proba(X, rng.choice(EXTREMES, scores.shape)))
    assert np.isfinite(tree.model_.parameters).all()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999),
    values=st.lists(
        st.sampled_from([0.0, 1.0, 1e-320, 1e-16, 0.5, 1 - 1e-16]), min_size=1, max_size=4
    ),
    make=st.sampled_from([CalibrationTree, boosted_tree, PublishedCalibrationTree]),
)
def test_extreme_probabilities_give_probabilities(seed, values, make):
    X, y = make_checkerboard(60, 2, seed)
    p = np.random.default_rng(seed).choice(values, 60)
    for scores in (p, np.column_stack([1 - p, p])):
        tree = make(**few_iterations(make)).fit(X, y, scores)
        assert tree.score_type_ == "probability"
        assert_probabilities(tree.predict_proba(X, scores))


@both_engines
def test_certainty_that_is_right_stays_almost_certain(make):
    X, y = make_checkerboard()
    tree = make().fit(X, y, y.astype(float))
    assert tree.predict_proba(X, y.astype(float))[np.arange(len(y)), y].min() > 0.99


# scikit-learn's conventions


def test_parameters_are_kept_as_given():
    params = {
        "l2_regularization": 0.5,
        "monotone": False,
        "scoring": "log_loss",
        "path_averaging": False,
        "do_no_harm": False,
        "max_bins": 9,
        "tree_method": "exact",
        "min_samples_split": 20,
        "min_samples_leaf": 3,
        "max_depth": 4,
        "max_leaf_nodes": 7,
        "kept_gain": 0.5,
        "cv": StratifiedKFold(3),
        "score_type": "logit",
        "pos_label": "yes",
        "categorical_features": [1],
        "drop_identifiers": False,
        "random_state": 5,
        "n_jobs": 2,
        "verbose": 1,
    }
    tree = CalibrationTree(**params)
    assert tree.get_params() == params
    assert clone(tree).get_params() | {"cv": None} == params | {"cv": None}
    assert CalibrationTree().set_params(**params).get_params() == params
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        tree.set_params(depth=3)


def test_fit_changes_neither_parameters_nor_data():
    frame, y, scores = make_frame()
    for X in (frame, make_rows()[0]):
        weight = np.arange(len(y)) % 3
        given = [copy.deepcopy(value) for value in (X, y, scores, weight)]
        tree = CalibrationTree(cv=3, n_jobs=2, random_state=0)
        params = tree.get_params()
        assert tree.fit(X, y, scores, sample_weight=weight) is tree
        tree.predict_proba(X, scores)
        tree.apply(X)
        assert tree.get_params() == params
        for before, after in zip(given, (X, y, scores, weight), strict=True):
            assert pd.DataFrame(before).equals(pd.DataFrame(after))


def test_repr_names_what_was_changed():
    assert repr(CalibrationTree(max_depth=3)) == "CalibrationTree(max_depth=3)"


@pytest.mark.parametrize(
    "ask",
    [
        lambda tree: tree.predict_proba([[0]], [0.5]),
        lambda tree: tree.apply([[0]]),
        lambda tree: tree.get_n_leaves(),
        lambda tree: tree.get_depth(),
        lambda tree: tree.to_text(),
        lambda tree: tree.to_dict(),
        lambda tree: tree.save("never.json"),
    ],
)
def test_an_unfitted_tree_says_so(ask):
    with pytest.raises(NotFittedError, match="CalibrationTree"):
        ask(CalibrationTree())


def test_fitted_attributes():
    frame, y, scores = make_frame()
    tree = CalibrationTree().fit(frame, np.array(["no", "yes"])[y], scores)
    assert tree.classes_.tolist() == ["no", "yes"]
    assert tree.n_features_in_ == 6
    assert tree.feature_names_in_.tolist() == list(frame.columns)
    assert tree.score_type_ == "probability"
    names = [candidate.name for candidate in tree.selection_.candidates]
    assert names[:4] == ["uncalibrated", "global", "2 regions", "4 regions"]
    assert tree.selection_.chosen == "local"
    assert tree.feature_importances_.shape == (6,)


@pytest.mark.parametrize(
    ("before", "after"),
    [(CalibrationTree, fixed_tree), (boosted_tree, fixed_boosted_tree)],
    ids=["shrunken", "boosted"],
)
def test_fitting_again_forgets_what_was(before, after):
    frame, y, scores = make_frame()
    X, y3, scores3 = make_rows(n_classes=3)
    tree = before().fit(frame, np.array(["no", "yes"])[y], scores)
    fresh = after(score_type="margin").fit(X, y3, scores3)
    tree.set_params(**fresh.get_params()).fit(X, y3, scores3)
    assert not hasattr(tree, "feature_names_in_")
    assert vars(tree).keys() == vars(fresh).keys()
    assert tree.n_features_in_ == 3 and tree.classes_.tolist() == [0, 1, 2]
    assert tree.selection_ is None
    if isinstance(tree, PublishedCalibrationTree):
        assert tree.ccp_path_ is None and tree.ccp_alpha_ is None
        assert tree.boosting_rmse_ is None and tree.boosting_iterations_ == 3
    assert same_tree(tree, fresh)


@both_engines
def test_copies_predict_the_same(make):
    frame, y, scores = make_frame()
    tree = make().fit(frame, y, scores)
    assert tree.get_n_leaves() > 1
    fresh = pickle.loads(pickle.dumps(tree))
    expected = tree.predict_proba(frame, scores)
    for other in (fresh, pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree), copy.copy(tree)):
        assert np.array_equal(other.predict_proba(frame, scores), expected)
        assert other.to_text() == tree.to_text()
        assert other.get_params() == tree.get_params()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_pickle_is_read_by_another_process(tmp_path, n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    tree = CalibrationTree().fit(X, y, scores)
    assert tree.get_n_leaves() > 1
    expected = tree.predict_proba(X, scores)
    (tmp_path / "tree.pickle").write_bytes(pickle.dumps((tree, X, scores)))
    code = (
        "import pickle, sys, numpy as np\n"
        "tree, X, scores = pickle.load(open(sys.argv[1] + '/tree.pickle', 'rb'))\n"
        "np.save(sys.argv[1] + '/answer.npy', tree.predict_proba(X, scores))\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    assert np.array_equal(np.load(tmp_path / "answer.npy"), expected)


# Threads and chance


def everything(tree):
    found = [tree.selection_, tree.to_dict()["chosen"], tree.model_.to_dict()]
    if isinstance(tree, PublishedCalibrationTree):
        found += [part.tolist() for part in (tree.boosting_rmse_, *tree.ccp_path_)]
    return found


@both_engines
@pytest.mark.parametrize("n_jobs", [1, 2, -1])
def test_threads_change_nothing(n_jobs, make):
    frame, y, scores = make_frame()
    expected = make().fit(frame, y, scores)
    assert expected.get_n_leaves() > 1
    tree = make(n_jobs=n_jobs).fit(frame, y, scores)
    assert everything(tree) == everything(expected)


@both_engines
@pytest.mark.parametrize("backend", ["threading", "loky", "sequential"])
def test_any_joblib_backend_will_do(backend, make):
    X, y, scores = make_rows()
    expected = everything(make().fit(X, y, scores))
    with joblib.parallel_config(backend, n_jobs=2):
        assert everything(make().fit(X, y, scores)) == expected


@both_engines
def test_trees_can_be_fitted_and_asked_in_threads(make):
    X, y, scores = make_rows()
    tree = make().fit(X, y, scores)

    def work(_):
        again = make().fit(X, y, scores)
        return everything(again), tree.predict_proba(X, scores).tolist()

    answers = joblib.Parallel(n_jobs=4, prefer="threads")(map(joblib.delayed(work), range(8)))
    assert all(answer == (everything(tree), answers[0][1]) for answer in answers)


@both_engines
def test_random_state_decides_the_folds(make):
    X, y, scores = make_rows()

    def fit(random_state):
        return everything(make(random_state=random_state).fit(X, y, scores))

    assert fit(3) == fit(3) == fit(np.random.RandomState(3))
    assert fit(None) == fit(None)
    curves = {str(fit(seed)[:-1]) for seed in (None, 0, 1, 2)}
    assert len(curves) == 4


# What the tree obeys


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
