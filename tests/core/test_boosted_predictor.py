"""The predictor of boosted trees: the same as sums in plain NumPy, and arrays that are none."""

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from caltree import _core


def indices(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int32)


def stump(**changes: Any) -> dict[str, Any]:
    """Two trees: a split of a number, and one of 3 categories; then a split on the score."""
    arguments = {
        "attribute": indices(0, -1, -1, 1, -1, 2, -1, -1),
        "threshold": np.array([0.5, 0, 0, 0, 0, 0.25, 0, 0]),
        "first_child": indices(1, -1, -1, 4, -1, 6, -1, -1),
        "n_children": indices(2, 0, 0, 2, 0, 2, 0, 0),
        "missing": indices(0, 0, 0, 1, 0, 1, 0, 0),
        "table": indices(-1, -1, -1, 0, -1, -1, -1, -1),
        "branches": indices(1, 0, 1),
        "n_categories": indices(0, 3),
        "value": np.array([0, 1.0, -0.5, 0, 0.25, 0, 2.0, -3.0]),
        "roots": indices(0, 3),
        "state": indices(0, 0),
        "parameters": np.array([[0.1, 1.5]]),
        "n_scores": 1,
        "start": 0.75,
        "curve_weight": 0.25,
        "boosted_weight": 0.5,
    }
    return {**arguments, **changes}


def plain(arrays: dict[str, Any], matrix: Any, scores: Any, offset: Any = None) -> np.ndarray:
    """Predict in plain NumPy, row by row."""
    n_states = len(arrays["parameters"])
    curve = arrays["parameters"][:, 0] + scores @ arrays["parameters"][:, 1:].T
    curve = curve if offset is None else curve + offset
    boosted = arrays["start"] * curve
    columns = np.hstack([matrix, scores])
    for row, values in enumerate(columns):
        for root, state in zip(arrays["roots"], arrays["state"], strict=True):
            boosted[row, state] += arrays["value"][leaf_of(arrays, values, int(root))]
    parts = []
    for odds, weight in ((curve, "curve_weight"), (boosted, "boosted_weight")):
        whole = np.hstack([np.zeros_like(odds), odds]) if n_states == 1 else odds
        parts.append(arrays[weight] * softmax(whole, axis=1))
    return parts[0] + parts[1]


def leaf_of(arrays: dict[str, Any], values: Any, node: int) -> int:
    """Return the leaf of a row."""
    n_categories = arrays["n_categories"]
    while arrays["attribute"][node] >= 0:
        attribute = arrays["attribute"][node]
        value = values[attribute]
        known = n_categories[attribute] if attribute < len(n_categories) else 0
        if known > 0:
            seen = 0 <= value < known
            begin = arrays["table"][node]
            branch = arrays["branches"][begin + int(value)] if seen else arrays["missing"][node]
        elif np.isnan(value):
            branch = arrays["missing"][node]
        else:
            threshold = arrays["threshold"][node]
            branch = int(value > threshold and threshold != _core.only_missing)
        node = int(arrays["first_child"][node] + branch)
    return node


def rows(n_rows: int, n_scores: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(n_rows)
    numbers = random.choice([0.5, np.nextafter(0.5, 1), np.nan, np.inf, -np.inf, 0.1], n_rows)
    categories = random.choice([0, 1, 2, 3, -1, np.nan, 1e300], n_rows)
    scores = np.asfortranarray(random.choice([0.25, 0.5, -1.0], (n_rows, n_scores)))
    return np.column_stack([numbers, categories]), scores


@pytest.mark.parametrize("n_rows", [0, 1, 7, 255, 256, 257, 700])
@pytest.mark.parametrize("order", ["C", "F"])
def test_same_as_in_numpy(n_rows, order):
    matrix, scores = rows(n_rows)
    matrix = np.asarray(matrix, order=order)
    found = _core.BoostedPredictor(**stump()).probabilities(matrix, scores)
    np.testing.assert_allclose(found, plain(stump(), matrix, scores), rtol=0, atol=1e-14)


def test_several_classes_and_an_offset():
    matrix, scores = rows(300, n_scores=3)
    random = np.random.default_rng(0)
    arrays = stump(state=indices(2, 0), parameters=random.normal(size=(3, 4)), n_scores=3)
    offset = np.asfortranarray(random.normal(size=(300, 3)))
    predictor = _core.BoostedPredictor(**arrays)
    for given in (None, offset):
        expected = plain(arrays, matrix, scores, given)
        found = predictor.probabilities(matrix, scores, given)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_own_scores_alone():
    """A log-odds of each class, of which each sees one of three scores."""
    matrix, scores = rows(50, n_scores=3)
    curve = np.array([[0.1, 1.0], [0.2, 2.0], [0.3, 0.5]])
    arrays = stump(parameters=curve, n_scores=3, curve_weight=1.0, boosted_weight=0.0)
    found = _core.BoostedPredictor(**arrays).probabilities(matrix, scores)
    expected = softmax(curve[:, 0] + curve[:, 1] * scores, axis=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


def test_only_missing_values_go_to_the_second_child():
    threshold = np.array([_core.only_missing, 0, 0, 0, 0, 0.25, 0, 0])
    arrays = stump(threshold=threshold, missing=indices(1, 0, 0, 1, 0, 1, 0, 0))
    matrix, scores = rows(200)
    found = _core.BoostedPredictor(**arrays).probabilities(matrix, scores)
    np.testing.assert_allclose(found, plain(arrays, matrix, scores), rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"value": np.zeros(7)}, "one entry per node"),
        ({"attribute": indices(0, -1)}, "one entry per node"),
        ({"attribute": indices(0, -1, -1, 1, -1, 3, -1, -1)}, "an attribute is out of range"),
        ({"first_child": indices(0, -1, -1, 4, -1, 6, -1, -1)}, "a child is out of range"),
        ({"first_child": indices(1, -1, -1, 4, -1, 7, -1, -1)}, "a child is out of range"),
        ({"n_children": indices(3, 0, 0, 2, 0, 2, 0, 0)}, "two children per split"),
        ({"missing": indices(2, 0, 0, 1, 0, 1, 0, 0)}, "missing values go to no child"),
        ({"branches": indices(1, 0)}, "categories are out of range"),
        ({"branches": indices(1, 0, 2)}, "a category goes to no child"),
        ({"roots": indices(), "state": indices()}, "at least one tree"),
        ({"roots": indices(0, 8)}, "a root is out of range"),
        ({"roots": indices(1, 3)}, "roots must rise from 0"),
        ({"roots": indices(0, 0)}, "roots must rise from 0"),
        ({"state": indices(0)}, "one entry per tree"),
        ({"state": indices(0, 1)}, "a log-odds is out of range"),
        ({"state": indices(-1, 0)}, "a log-odds is out of range"),
        ({"parameters": np.zeros((2, 2))}, "one log-odds, or at least three"),
        ({"parameters": np.zeros((1, 3))}, "a log-odds sees all scores or its own"),
    ],
)
def test_trees_that_are_none(changes, message):
    with pytest.raises(ValueError, match=message):
        _core.BoostedPredictor(**stump(**changes))


def test_rows_that_do_not_fit():
    matrix, scores = rows(10)
    predictor = _core.BoostedPredictor(**stump())
    for given, message in (
        ((matrix[:, :1], scores), "the matrix has another width"),
        ((matrix[:5], scores), "scores and matrix differ in length"),
        ((matrix, np.asfortranarray(np.hstack([scores, scores]))), "scores has another width"),
        ((matrix, scores, np.zeros((10, 2), order="F")), "the offset has another shape"),
    ):
        with pytest.raises(ValueError, match=message):
            predictor.probabilities(*given)
