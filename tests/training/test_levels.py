"""Levels of a tree: how many leaves each may have, and what is split there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import CalibrationTree, _core
from caltree._training import levels as levels_module
from caltree._training.exact import ExactEngine
from caltree._training.levels import leaf_levels, pruned_level
from caltree._training.settings import Growth

from ..spec.levels import HAIR, LEAST_GAIN, limits_of_levels
from ..support.datasets import make_dataset
from ..support.trees import FIXED, fixed_tree, make_rows

quick = settings(max_examples=60, deadline=None, derandomize=True)


def grow(X, y, scores, *, min_samples_leaf=5.0):
    growth = Growth(0.05, 8.0, min_samples_leaf, None, 255)
    return ExactEngine(make_dataset(X, y, scores), [], growth, "rmse", None).grow().whole


def n_leaves(collapsed):
    return int((collapsed["attribute"] < 0).sum())


@quick
@given(st.integers(1, 3000), st.none() | st.integers(2, 300))
def test_limits_double_up_to_the_most_leaves(most, max_leaf_nodes):
    # A tree of which nothing counts but the leaves that each of its nodes needs.
    needed = np.array([2.0, np.inf, float(most), np.inf][: 4 if most > 1 else 2])
    if most == 1:
        needed[:] = np.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, "pruning_order", lambda *_: (None, needed))
        found = leaf_levels((None, None), max_leaf_nodes, between=True)
        alone = leaf_levels((None, None), max_leaf_nodes, between=False)
    expected = limits_of_levels(most, max_leaf_nodes)
    assert (-found.lowest).tolist() == expected
    names = ["global", *(f"{limit} regions" for limit in expected[1:])]
    assert list(found.names) == names
    # Without those between, the root and the largest are left.
    assert (-alone.lowest).tolist() == ([1, expected[-1]] if expected[-1] > 1 else [1])
    assert list(alone.names) == [names[0], names[-1]][: len(alone)]


def test_levels_of_a_tree_have_more_and_more_leaves():
    tree = grow(*make_rows(2000, seed=3))
    levels = leaf_levels(tree, None, between=True)
    counts = [n_leaves(levels.collapse(tree, only)) for only in np.eye(len(levels))]
    assert len(counts) > 4 and counts[0] == 1
    assert (np.diff(counts) >= 0).all()
    assert (counts <= -levels.lowest).all() and counts[-1] == -levels.lowest[-1]
    # One step of pruning may take several leaves, but not many.
    assert (np.array(counts[1:]) > -levels.lowest[1:] / 2).all()


def test_a_level_is_the_best_pruned_tree_of_so_many_leaves():
    """By brute force: of all trees that pruning leaves, the largest that is allowed."""
    X, y, scores = make_rows(800)
    tree = grow(X, y, scores)
    levels = leaf_levels(tree, None, between=True)
    strength = _core.pruning_order(*tree, LEAST_GAIN)[0]
    steps = np.unique(strength)
    for only, limit in zip(np.eye(len(levels)), -levels.lowest, strict=True):
        found = levels.collapse(tree, only)
        pruned = [
            _core.collapse_tree(*tree, strength, np.array([np.nextafter(step, 1e9)]), np.ones(1))
            for step in steps
        ]
        allowed = [each for each in pruned if n_leaves(each) <= limit]
        largest = max(allowed, key=n_leaves)
        assert np.array_equal(found["threshold"], largest["threshold"])
        assert np.array_equal(found["attribute"], largest["attribute"])


@pytest.mark.parametrize("max_leaf_nodes", [2, 3, 5, 16])
@pytest.mark.parametrize("method", ["exact", "hist"])
def test_no_tree_has_more_leaves_than_it_may(max_leaf_nodes, method):
    X, y, scores = make_rows(2000, seed=3)
    for choosing in ({}, FIXED):
        params = {**choosing, "tree_method": method, "max_leaf_nodes": max_leaf_nodes}
        tree = CalibrationTree(**params).fit(X, y, scores)
        assert 1 < tree.get_n_leaves() <= max_leaf_nodes
        if tree.selection_ is not None:
            assert tree.selection_.candidates[-1].name == f"{max_leaf_nodes} regions"
    free = CalibrationTree(**FIXED, tree_method=method).fit(X, y, scores)
    assert free.get_n_leaves() > max_leaf_nodes


@pytest.mark.parametrize("method", ["exact", "hist"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_node_has_rows(n_classes, method):
    X, y, scores = make_rows(900, n_classes=n_classes)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 3.0], 900)
    tree = fixed_tree(tree_method=method, min_samples_leaf=7).fit(X, y, scores, weights)
    model = tree.model_
    counts = np.bincount(tree.apply(X), weights, minlength=model.n_nodes)
    leaves = model.attribute < 0
    np.testing.assert_allclose(counts[leaves], model.n_rows[leaves], rtol=1e-12)
    assert leaves.sum() > 3 and model.n_rows.min() >= 7


# A hair


def test_what_a_hair_is():
    """A change of probabilities by a hair lessens the mean deviance by so much at least."""
    assert levels_module._HAIR == HAIR
    p = np.linspace(0.001, 0.999, 999)
    for q in (p + HAIR, p - HAIR):
        q = np.clip(q, 1e-12, 1 - 1e-12)
        gain = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
        far = np.abs(p - q) >= HAIR * (1 - 1e-9)
        assert (gain[far] >= LEAST_GAIN * (1 - 1e-6)).all()


def shifted_rows(shift, n_rows=200_000):
    """Scores that are right, but for a shift of the probabilities in half of the rows."""
    rng = np.random.default_rng(0)
    X = np.tile([[0.0], [1.0]], (n_rows // 2, 1))
    p = np.full(n_rows, 0.5) + shift * (2 * X[:, 0] - 1)
    # As exactly as may be: no chance is left.
    y = np.zeros(n_rows, dtype=int)
    for side in (0, 1):
        rows = np.flatnonzero(X[:, 0] == side)
        y[rows[: round(float(p[rows].sum()))]] = 1
    order = rng.permutation(n_rows)
    return X[order], y[order], np.full((n_rows, 1), 0.5)


@pytest.mark.parametrize("method", ["exact", "hist"])
def test_a_split_that_changes_probabilities_by_less_than_a_hair_is_none(method):
    for shift, n_regions in ((0.4 * HAIR, 1), (2.0 * HAIR, 2)):
        X, y, scores = shifted_rows(shift)
        tree = fixed_tree(tree_method=method).fit(X, y, scores)
        assert tree.get_n_leaves() == n_regions, shift
    # The published method has no such rule.
    tree = grow(*shifted_rows(0.4 * HAIR))
    assert n_leaves(pruned_level(None).collapse(tree, np.ones(1))) == 2


# A pruning strength


def test_a_pruned_tree_is_pruned_up_to_its_strength():
    tree = grow(*make_rows(800))
    alphas = np.unique(_core.pruning_order(*tree)[0])
    sizes = []
    for alpha in [None, *alphas]:
        sizes.append(n_leaves(pruned_level(alpha).collapse(tree, np.ones(1))))
    # At the strength of a step this is taken already.
    assert sizes[0] == len(tree[0]) // 2 + 1
    assert (np.diff(sizes[1:]) < 0).all() and sizes[-1] == 1
    between = n_leaves(pruned_level((alphas[-2] + alphas[-1]) / 2).collapse(tree, np.ones(1)))
    assert between == sizes[-2] > 1
