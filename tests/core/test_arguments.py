"""The native core at its own door: wrong sizes and numbers are errors, never crashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
        "keep_parameters": True,
    }
    fitter = _core.ModelFitter(training, structure, rows, held_out, **{**arguments, **changes})
    fitter.fit_top(0)
    return fitter.take()


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
        ({"n_categories": GOOD["n_categories"][:1]}, "one number of categories per attribute"),
        ({"n_categories": np.array([0, -1], dtype=np.int32)}, "must not be negative"),
        ({"fills": GOOD["fills"][:1]}, "one fill per attribute"),
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
    models = fit(training, structure, keep_parameters=False)
    with pytest.raises(ValueError, match="keep no parameters"):
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
