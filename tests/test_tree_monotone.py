"""`monotone`: within a region, a higher score never gives a lower probability."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

from caltree import CalibrationTree
from caltree._inputs.scores import ScoreKind, resolve_monotone

from .support.histogram_cases import examples
from .support.trees import FIXED, make_rows

GRID = np.concatenate([[0.0, 1e-12], np.linspace(0.001, 0.999, 400), [1 - 1e-12, 1.0]])


def turned_rows(seed, n_rows=400, kind="regions"):
    """Scores that say the opposite, in a region or only where they are far from even."""
    rng = np.random.default_rng(seed)
    X, odds = rng.normal(size=(n_rows, 3)), 2.0 * rng.standard_normal(n_rows)
    if kind == "two values":
        odds = np.sign(odds)
    turned = {"regions": X[:, 0] > 0, "far": np.abs(odds) > 2, "two values": X[:, 1] > -1}[kind]
    y = (rng.random(n_rows) < expit(np.where(turned, -odds, odds) + X[:, 2])).astype(int)
    return X, y, expit(odds)


def falls_most(tree, X, grid=GRID):
    """By how much any row's probability falls where its score rises."""
    given = [np.full(len(X), score) for score in grid]
    if tree.score_type_ != "probability":
        given = [logit(np.clip(scores, 1e-15, 1 - 1e-15)) for scores in given]
    found = np.array([tree.predict_proba(X, scores)[:, 1] for scores in given])
    return float(-np.diff(found, axis=0).min())


@examples(40)
@given(
    seed=st.integers(0, 999),
    n_rows=st.sampled_from([30, 100, 400]),
    kind=st.sampled_from(["regions", "far", "two values"]),
    method=st.sampled_from(["exact", "hist"]),
    score_type=st.sampled_from(["probability", "logit", "margin"]),
    penalty=st.sampled_from([1e-9, 0.05, 10.0]),
    chooses=st.booleans(),
    do_no_harm=st.booleans(),
)
def test_no_probability_falls_with_the_score(
    seed, n_rows, kind, method, score_type, penalty, chooses, do_no_harm
):
    X, y, scores = turned_rows(seed, n_rows, kind)
    params = {"do_no_harm": do_no_harm, "tree_method": method} if chooses else FIXED
    tree = CalibrationTree(l2_regularization=penalty, score_type=score_type, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the scores may rank backwards
        tree.fit(X, y, scores if score_type == "probability" else logit(scores))
    assert falls_most(tree, X[:20]) <= 1e-15


@pytest.mark.parametrize("method", ["exact", "hist"])
@pytest.mark.parametrize("kind", ["regions", "two values"])
def test_without_it_a_region_may_turn_scores_round(kind, method):
    X, y, scores = turned_rows(0, n_rows=1500, kind=kind)
    params = {**FIXED, "tree_method": method}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        free, rising = (
            CalibrationTree(monotone=monotone, **params).fit(X, y, scores)
            for monotone in (False, True)
        )
    assert falls_most(free, X[:50]) > 0.01
    assert falls_most(rising, X[:50]) <= 1e-12
    residuals = [tree.predict_proba(X, scores)[:, 1] - y for tree in (free, rising)]
    assert np.mean(residuals[0] ** 2) < np.mean(residuals[1] ** 2)


@pytest.mark.parametrize("method", ["exact", "hist"])
def test_where_no_model_would_fall_nothing_changes(method):
    rng = np.random.default_rng(0)
    X, odds = rng.normal(size=(800, 2)), rng.standard_normal(800)
    y = (rng.random(800) < expit(2.0 * odds + X[:, 0])).astype(int)
    params = {**FIXED, "tree_method": method, "max_depth": 2, "min_samples_leaf": 100}
    free, rising, auto = (
        CalibrationTree(monotone=monotone, **params).fit(X, y, expit(odds)).model_.to_dict()
        for monotone in (False, True, "auto")
    )
    assert free == rising == auto and len(free["attribute"]) > 3


def test_auto_is_true_where_it_can_be():
    X, y, scores = turned_rows(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        auto, rising, free = (
            CalibrationTree(monotone=monotone, **FIXED).fit(X, y, scores).model_.to_dict()
            for monotone in ("auto", True, False)
        )
    assert auto == rising != free
    three = make_rows(200, 3)
    assert CalibrationTree(**FIXED).fit(*three).get_n_leaves() > 1


@pytest.mark.parametrize(
    ("n_classes", "score_type", "n_columns", "possible"),
    [
        (2, "probability", 1, True),
        (2, "probability", 2, True),
        (2, "logit", 1, True),
        (2, "logit", 2, True),
        (2, "margin", 1, True),
        (2, "margin", 2, False),  # of which neither is the other's opposite
        (2, "probability", 4, False),
        (3, "probability", 3, False),
    ],
)
def test_what_can_be_monotone(n_classes, score_type, n_columns, possible):
    kind = ScoreKind(n_classes, score_type)
    assert resolve_monotone("auto", kind, n_columns) is possible
    assert resolve_monotone(False, kind, n_columns) is False
    if possible:
        assert resolve_monotone(True, kind, n_columns) is True
        return
    with pytest.raises(ValueError, match="monotone=True needs two classes and one score, but"):
        resolve_monotone(True, kind, n_columns)


def test_what_cannot_be_monotone_is_refused_before_it_is_fitted():
    with pytest.raises(ValueError, match=r"there are 3 classes and 3 columns of scores; use mono"):
        CalibrationTree(monotone=True).fit(*make_rows(50, 3))


@pytest.mark.parametrize("value", [None, 1, 0, "yes", "Auto", []])
def test_other_values_are_refused(value):
    with pytest.raises(ValueError, match="monotone must be 'auto', True or False, got"):
        CalibrationTree(monotone=value).fit(*make_rows(50))
