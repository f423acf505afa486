"""The native core at its own door: wrong sizes and numbers are errors, never crashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from caltree import _core

from .. import spec
from ..support.trees import finished

N = 60


def training_arguments(**changes: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, N)
    arguments = {
        "matrix": np.column_stack([labels + rng.random(N), rng.integers(0, 4, N)]),
        "n_categories": np.array([0, 4], dtype=np.int32),
        "fills": np.array([0.5, 1.0]),
        "labels": labels.astype(np.uint16),
        "n_classes": 3,
        "scores": np.asfortranarray(rng.standard_normal((N, 3))),
        "weights": None,
    }
    return {**arguments, **changes}


def rows(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.uint32)


EVERYTHING = np.arange(N, dtype=np.uint32)


@pytest.fixture(scope="module")
def training() -> _core.Training:
    return _core.Training(**training_arguments())


@pytest.fixture(scope="module")
def structure(training) -> _core.Structure:
    return _core.grow(training, EVERYTHING, 16.0, 2.0, 10)


def fit(training, structure, rows=EVERYTHING, held_out=EVERYTHING[:0], **changes):
    arguments = {
        "iterations": 3,
        "max_iterations": 10,
        "n_folds": 5,
        "constant_scores_give_frequencies": False,
        "keep_coefficients": True,
    }
    return _core.fit_models(training, structure, rows, held_out, **{**arguments, **changes})


# -- Training data --------------------------------------------------------------------------------


def changed(array: np.ndarray, position: Any, value: float) -> np.ndarray:
    array = array.copy(order="K")
    array[position] = value
    return array


GOOD = training_arguments()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"labels": GOOD["labels"][1:]}, "labels and matrix differ in length"),
        ({"scores": np.asfortranarray(GOOD["scores"][1:])}, "scores and matrix differ in length"),
        ({"weights": np.ones(N - 1)}, "weights and matrix differ in length"),
        ({"n_categories": GOOD["n_categories"][:1]}, "one number of categories an attribute"),
        ({"n_categories": np.array([0, -1], dtype=np.int32)}, "must not be negative"),
        ({"fills": GOOD["fills"][:1]}, "one fill an attribute"),
        ({"fills": np.array([np.nan, 1.0])}, "fills must be finite"),
        ({"fills": np.array([np.inf, 1.0])}, "fills must be finite"),
        ({"fills": np.array([0.5, 4.0])}, "a nominal fill must be a category"),
        ({"fills": np.array([0.5, -1.0])}, "a nominal fill must be a category"),
        ({"labels": changed(GOOD["labels"], 7, 3)}, "a class index is out of range"),
        ({"n_classes": 1}, "the number of classes"),
        ({"n_classes": 2**16}, "the number of classes"),
        ({"scores": changed(GOOD["scores"], (5, 1), np.nan)}, "scores must be finite"),
        ({"scores": changed(GOOD["scores"], (5, 1), -np.inf)}, "scores must be finite"),
        ({"scores": np.empty((N, 0), order="F")}, "there must be rows and scores"),
        ({"weights": changed(np.ones(N), 3, 0.0)}, "weights must be positive"),
        ({"weights": changed(np.ones(N), 3, -1.0)}, "weights must be positive"),
        ({"weights": changed(np.ones(N), 3, np.nan)}, "weights must be positive"),
        ({"weights": changed(np.ones(N), 3, np.inf)}, "weights must be positive"),
        (
            {
                "matrix": GOOD["matrix"][:0],
                "labels": GOOD["labels"][:0],
                "scores": np.empty((0, 3), order="F"),
            },
            "there must be rows and scores",
        ),
    ],
)
def test_training_data_that_do_not_fit_together(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.Training(**training_arguments(**changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": GOOD["scores"][0]},
        {"matrix": GOOD["matrix"].astype(str)},
        {"weights": "none"},
    ],
)
def test_training_data_of_the_wrong_kind(changes):
    with pytest.raises(TypeError):
        _core.Training(**training_arguments(**changes))


def test_any_layout_of_the_matrix_will_do():
    matrix = GOOD["matrix"]
    wide = np.zeros((2 * N, 6))
    wide[::2, ::3] = matrix
    layouts = [matrix, np.asfortranarray(matrix), wide[::2, ::3], matrix[::-1].copy()[::-1]]
    trees = []
    for layout in layouts:
        training = _core.Training(**training_arguments(matrix=layout))
        structure = _core.grow(training, EVERYTHING, 16.0, 2.0, 10)
        trees.append(finished(structure, fit(training, structure)))
    for tree in trees[1:]:
        assert all(np.array_equal(tree[key], trees[0][key]) for key in tree)


# -- Row numbers ----------------------------------------------------------------------------------


def test_row_numbers_out_of_range(training, structure):
    beyond = rows(0, 1, N)
    good, none = rows(0, 1), rows()
    calls = [
        lambda: _core.grow(training, beyond, 16.0, 2.0, 10),
        lambda: fit(training, structure, rows=beyond),
        lambda: fit(training, structure, held_out=beyond),
        lambda: _core.boosting_path(training, beyond, good),
        lambda: _core.boosting_path(training, good, beyond),
        lambda: _core.boosting_path(training, none, good),
        lambda: _core.boosting_path(training, good, none),
        lambda: _core.folds(GOOD["labels"], beyond, 2),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"out of range|need rows"):
            call()


@pytest.mark.parametrize("n_folds", [0, 1, 4])
def test_folds_that_cannot_be_dealt(n_folds):
    with pytest.raises(ValueError, match="between 2 and n folds"):
        _core.folds(GOOD["labels"], rows(0, 1, 2), n_folds)


def test_node_models_of_another_tree(training, structure):
    alone = _core.grow(training, EVERYTHING, 16.0, 2.0, 0)
    models = fit(training, alone)
    assert len(structure) > len(alone) == 1
    with pytest.raises(ValueError, match="another tree"):
        _core.pruning_sequence(structure, models)
    with pytest.raises(ValueError, match="another tree"):
        finished(structure, models)


def test_node_models_without_coefficients(training, structure):
    models = fit(training, structure, keep_coefficients=False)
    with pytest.raises(ValueError, match="keep no coefficients"):
        finished(structure, models)


def test_node_models_need_two_folds(training, structure):
    with pytest.raises(ValueError, match="at least 2 folds"):
        fit(training, structure, n_folds=1)


# -- Folds ----------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, database=None)
@given(
    st.lists(st.integers(0, 4), min_size=2, max_size=80),
    st.integers(2, 8),
    st.randoms(use_true_random=False),
)
def test_folds_are_dealt_as_specified(labels, n_folds, random):
    n_folds = min(n_folds, len(labels))
    order = list(range(len(labels)))
    random.shuffle(order)
    labels, order = np.array(labels), np.array(order)
    dealt = _core.folds(labels.astype(np.uint16), order.astype(np.uint32), n_folds)
    expected = spec.deal_folds(labels[order], n_folds)
    assert len(dealt) == len(expected)
    for (train, test), (expected_train, expected_test) in zip(dealt, expected, strict=True):
        np.testing.assert_array_equal(train, order[expected_train])
        np.testing.assert_array_equal(test, order[expected_test])


# -- Predictors -----------------------------------------------------------------------------------


def indices(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def stump(**changes: Any) -> dict[str, Any]:
    """A split of a numeric attribute whose left child splits a nominal one of 3 categories.

    A missing number goes left, a missing category where the last one goes.
    """
    arguments = {
        "attribute": indices(0, 1, -1, -1, -1, -1),
        "threshold": np.array([0.5, 0, 0, 0, 0, 0]),
        "first_child": indices(1, 3, -1, -1, -1, -1),
        "n_children": indices(2, 3, 0, 0, 0, 0),
        "missing": indices(0, 2, 0, 0, 0, 0),
        "table": indices(-1, 1, -1, -1, -1, -1),
        "branches": indices(-9, 0, 1, 2),
        "n_categories": indices(0, 3),
        "weight": np.array([0.0, 0, 1, 1, 1, 1]),
        "coefficients": np.zeros((6, 2, 2)),
    }
    return {**arguments, **changes}


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"first_child": indices(0, 3, -1, -1, -1, -1)}, "a child is out of range"),  # a cycle
        ({"first_child": indices(1, 1, -1, -1, -1, -1)}, "a child is out of range"),
        ({"first_child": indices(1, -1, -1, -1, -1, -1)}, "a child is out of range"),
        ({"first_child": indices(1, 4, -1, -1, -1, -1)}, "a child is out of range"),
        ({"first_child": indices(2**31 - 1, 3, -1, -1, -1, -1)}, "a child is out of range"),
        ({"attribute": indices(2, 1, -1, -1, -1, -1)}, "an attribute is out of range"),
        ({"attribute": indices(0, 1, -1, -1, -1)}, "one entry a node"),
        ({"threshold": np.zeros(5)}, "one entry a node"),
        ({"first_child": indices(1, 3)}, "one entry a node"),
        ({"coefficients": np.zeros((5, 2, 2))}, "one entry a node"),
        ({"weight": np.ones(5)}, "one entry a node"),
        ({"coefficients": np.zeros((6, 1, 2))}, "at least 2 classes"),
        ({"coefficients": np.zeros((6, 2, 0))}, "at least 2 classes"),
        ({"n_children": indices(2, 3)}, "one entry a node"),
        ({"n_children": indices(2, 4, 0, 0, 0, 0)}, "a child is out of range"),
        ({"n_children": indices(2, 2**31 - 1, 0, 0, 0, 0)}, "a child is out of range"),
        ({"n_children": indices(1, 3, 0, 0, 0, 0)}, "a child is out of range"),
        ({"n_children": indices(2, -3, 0, 0, 0, 0)}, "a child is out of range"),
        ({"missing": indices(0, 2)}, "one entry a node"),
        ({"missing": indices(2, 2, 0, 0, 0, 0)}, "missing values go to no child"),
        ({"missing": indices(0, 3, 0, 0, 0, 0)}, "missing values go to no child"),
        ({"missing": indices(0, -1, 0, 0, 0, 0)}, "missing values go to no child"),
        ({"table": indices(-1, 1)}, "one entry a node"),
        ({"table": indices(-1, -1, -1, -1, -1, -1)}, "categories are out of range"),
        ({"table": indices(-1, 2, -1, -1, -1, -1)}, "categories are out of range"),
        ({"table": indices(-1, 2**31 - 1, -1, -1, -1, -1)}, "categories are out of range"),
        ({"branches": indices()}, "categories are out of range"),
        ({"branches": indices(-9, 0, 1, 3)}, "a category goes to no child"),
        ({"branches": indices(-9, 0, -1, 2)}, "a category goes to no child"),
        ({"n_categories": indices(0, 4)}, "categories are out of range"),
        ({"n_categories": indices(0, -3)}, "must not be negative"),
    ],
)
def test_trees_that_are_none(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.Predictor(**stump(**changes))


def test_a_tree_without_nodes():
    empty = stump()
    for name in empty.keys() - {"branches", "n_categories"}:
        empty[name] = empty[name][:0]
    with pytest.raises(ValueError, match="one entry a node"):
        _core.Predictor(**empty)


def test_every_value_finds_a_leaf():
    numbers = [0.5, np.nextafter(0.5, 1), np.nan, np.inf, -np.inf]
    categories = [0, 1, 2, 3, -1, 1e300, -1e300, np.nan, np.inf]
    matrix = np.array([[number, category] for number in numbers for category in categories])
    leaves = _core.Predictor(**stump()).apply(matrix)
    for (number, category), leaf in zip(matrix, leaves, strict=True):
        known = 0.0 if np.isnan(number) else number
        expected = 3 + (int(category) if category in (0, 1, 2) else 2)
        assert leaf == (2 if known > 0.5 else expected)


def test_missing_numbers_go_either_way_and_categories_may_share_a_child():
    predictor = _core.Predictor(
        **stump(
            first_child=indices(1, 3, -1, -1, -1),
            attribute=indices(0, 1, -1, -1, -1),
            threshold=np.array([0.5, 0, 0, 0, 0]),
            n_children=indices(2, 2, 0, 0, 0),
            missing=indices(1, 0, 0, 0, 0),
            table=indices(-1, 0, -1, -1, -1),
            branches=indices(1, 0, 1),
            weight=np.ones(5),
            coefficients=np.zeros((5, 2, 2)),
        )
    )
    matrix = np.array([[np.nan, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    assert predictor.apply(matrix).tolist() == [2, 4, 3, 4, 3]


def test_tables_and_scores_that_do_not_fit_the_tree():
    predictor = _core.Predictor(**stump())
    matrix, scores = np.zeros((4, 2)), np.zeros((4, 1), order="F")
    assert predictor.probabilities(matrix, scores).tolist() == [[0.5, 0.5]] * 4
    with pytest.raises(ValueError, match="another width"):
        predictor.apply(matrix[:, :1])
    with pytest.raises(ValueError, match="the matrix has another width"):
        predictor.probabilities(matrix[:, :1], scores)
    with pytest.raises(ValueError, match="scores has another width"):
        predictor.probabilities(matrix, np.zeros((4, 2), order="F"))
    with pytest.raises(ValueError, match="differ in length"):
        predictor.probabilities(matrix, np.zeros((3, 1), order="F"))
    for shape in [(4, 2), (3, 1), (4, 0)]:
        with pytest.raises(ValueError, match="the offset has another shape"):
            predictor.probabilities(matrix, scores, np.zeros(shape, order="F"))
    assert predictor.apply(matrix[:0]).shape == (0,)
    assert predictor.probabilities(matrix[:0], scores[:0]).shape == (0, 2)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_node_on_the_way_has_its_say(n_classes):
    rng = np.random.default_rng(n_classes)
    n_rows = 1000
    coefficients = rng.normal(size=(6, n_classes, 1 + n_classes))
    matrix = np.column_stack([rng.normal(size=n_rows), rng.integers(0, 4, n_rows)])
    scores = np.asfortranarray(rng.normal(size=(n_rows, n_classes)))
    logits = coefficients[:, :, 0] + np.einsum("is,vjs->ivj", scores, coefficients[:, :, 1:])
    said = softmax(logits, axis=2)
    parent = [-1, 0, 0, 1, 1, 1]
    # Some nodes say nothing: those at the root, in the middle, at the end, everywhere.
    for weight in (rng.random(6), [0.3, 0, 0.7, 0.7, 0.2, 0], [0, 0.5, 0, 0, 0, 0], [0] * 6):
        weight = np.array(weight, dtype=np.float64)
        predictor = _core.Predictor(**stump(weight=weight, coefficients=coefficients))
        expected = np.zeros((n_rows, n_classes))
        for row, leaf in enumerate(predictor.apply(matrix)):
            node = int(leaf)
            while node >= 0:
                expected[row] += weight[node] * said[row, node]
                node = parent[node]
        found = predictor.probabilities(matrix, scores)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)


# -- Accuracy -------------------------------------------------------------------------------------


def probabilities_of(logits: np.ndarray) -> np.ndarray:
    """The softmax of the core: a leaf that hands its scores through."""
    n_classes = logits.shape[1]
    coefficients = np.hstack([np.zeros((n_classes, 1)), np.eye(n_classes)])[None]
    predictor = _core.Predictor(
        attribute=indices(-1),
        threshold=np.zeros(1),
        first_child=indices(-1),
        n_children=indices(0),
        missing=indices(0),
        table=indices(-1),
        branches=indices(),
        n_categories=indices(0),
        weight=np.ones(1),
        coefficients=coefficients,
    )
    return predictor.probabilities(np.zeros((len(logits), 1)), np.asfortranarray(logits))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_probabilities_are_accurate_to_the_last_bits(n_classes):
    rng = np.random.default_rng(0)
    lowest = np.concatenate([np.linspace(-745, 0, 4001), -np.logspace(-20, 2.8, 4000)])
    logits = rng.uniform(-745, 0, (len(lowest), n_classes))
    logits[:, 0], logits[:, -1] = 0.0, lowest
    expected = softmax(logits, axis=1)
    assert 0 < expected[:, -1].min() < np.finfo(float).tiny
    # Below the normal numbers a unit in the last place is all there is.
    allowed = 4 * np.spacing(expected)
    assert (np.abs(probabilities_of(logits) - expected) <= allowed).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_huge_logits(n_classes):
    logits = np.zeros((4, n_classes))
    logits[:, -1] = [-800.0, -1e300, 800.0, 1e300]
    expected = softmax(logits, axis=1)
    np.testing.assert_allclose(probabilities_of(logits), expected, rtol=1e-15, atol=0)


def test_blocks_of_rows_leave_no_trace():
    logits = np.random.default_rng(0).normal(0, 5, (1030, 3))
    whole = probabilities_of(logits)
    for size in (1, 2, 3, 255, 256, 257, 513):
        np.testing.assert_array_equal(probabilities_of(logits[:size]), whole[:size])
        np.testing.assert_array_equal(probabilities_of(logits[-size:]), whole[-size:])


# -- Weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_of_one_change_no_bit(n_classes, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, 300)
    matrix = np.column_stack([labels + rng.normal(0, 1, 300), rng.integers(0, 4, 300)])
    changes = {
        "matrix": matrix,
        "labels": labels.astype(np.uint16),
        "n_classes": n_classes,
        "scores": np.asfortranarray(rng.standard_normal((300, n_classes))),
    }
    results = []
    for weights in (None, np.ones(300)):
        training = _core.Training(**training_arguments(**changes, weights=weights))
        every = np.arange(300, dtype=np.uint32)
        folds = _core.folds(changes["labels"], every, 5)
        paths = [_core.boosting_path(training, *fold) for fold in folds]
        best, sums = _core.choose_iterations(paths, 60)
        structure = _core.grow(training, folds[0][0], 16.0, 2.0, 100)
        models = fit(training, structure, *folds[0], iterations=max(best, 1))
        tree = finished(structure, models, 1e-4)
        results.append([sums, *_core.pruning_sequence(structure, models), *tree.values()])
    for without, with_ones in zip(*results, strict=True):
        np.testing.assert_array_equal(without, with_ones)
