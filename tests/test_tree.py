"""The calibration tree as an estimator: what it answers, what it keeps."""

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
    squared_error,
)

both_engines = pytest.mark.parametrize(
    "make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"]
)


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


@pytest.mark.filterwarnings("ignore:the scores rank")  # by chance, they may
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


@pytest.mark.filterwarnings("ignore:all scores are 0 or 1:UserWarning")
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


@pytest.mark.filterwarnings("ignore:all scores are 0 or 1:UserWarning")
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
