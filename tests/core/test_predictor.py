"""The predictor of the core: every row finds its leaves, and every node on the way has its say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, softmax

from caltree import _core

from ..support.histogram_cases import examples

# -- Arrays that are no trees ---------------------------------------------------------------------


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
        "parameters": np.zeros((6, 1, 2)),
        "roots": indices(0),
        "n_scores": 1,
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
        ({"attribute": indices(2**31 - 1, 1, -1, -1, -1, -1)}, "an attribute is out of range"),
        ({"attribute": indices(0, 1, -1, -1, -1)}, "one entry per node"),
        ({"threshold": np.zeros(5)}, "one entry per node"),
        ({"first_child": indices(1, 3)}, "one entry per node"),
        ({"parameters": np.zeros((5, 1, 2))}, "one entry per node"),
        ({"weight": np.ones(5)}, "one entry per node"),
        ({"parameters": np.zeros((6, 2, 2))}, "one log-odds, or at least three"),
        ({"parameters": np.zeros((6, 0, 2))}, "one log-odds, or at least three"),
        ({"parameters": np.zeros((6, 1, 0))}, "one log-odds, or at least three"),
        ({"parameters": np.zeros((6, 1, 3))}, "a log-odds sees all scores or its own"),
        ({"parameters": np.zeros((6, 3, 3))}, "a log-odds sees all scores or its own"),
        ({"parameters": np.zeros((6, 3, 2)), "n_scores": 4}, "a log-odds sees all scores or its"),
        ({"n_scores": 0}, "a log-odds sees all scores or its own"),
        ({"attribute": indices(3, 1, -1, -1, -1, -1)}, "an attribute is out of range"),
        ({"roots": indices()}, "at least one tree"),
        ({"roots": indices(0, 6)}, "a root is out of range"),
        ({"roots": indices(-1)}, "a root is out of range"),
        ({"n_children": indices(2, 3)}, "one entry per node"),
        ({"n_children": indices(2, 4, 0, 0, 0, 0)}, "a child is out of range"),
        ({"n_children": indices(2, 2**31 - 1, 0, 0, 0, 0)}, "a child is out of range"),
        ({"n_children": indices(1, 3, 0, 0, 0, 0)}, "a child is out of range"),
        ({"n_children": indices(2, -3, 0, 0, 0, 0)}, "a child is out of range"),
        ({"missing": indices(0, 2)}, "one entry per node"),
        ({"missing": indices(2, 2, 0, 0, 0, 0)}, "missing values go to no child"),
        ({"missing": indices(0, 3, 0, 0, 0, 0)}, "missing values go to no child"),
        ({"missing": indices(0, -1, 0, 0, 0, 0)}, "missing values go to no child"),
        ({"table": indices(-1, 1)}, "one entry per node"),
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
    for name in empty.keys() - {"branches", "n_categories", "roots", "n_scores"}:
        empty[name] = empty[name][:0]
    with pytest.raises(ValueError, match="one entry per node"):
        _core.Predictor(**empty)


def test_every_value_finds_a_leaf():
    numbers = [0.5, np.nextafter(0.5, 1), np.nan, np.inf, -np.inf]
    categories = [0, 1, 2, 3, -1, 1e300, -1e300, np.nan, np.inf]
    matrix = np.array([[number, category] for number in numbers for category in categories])
    leaves = _core.Predictor(**stump()).apply(matrix)
    assert leaves.shape == (len(matrix), 1)
    for (number, category), leaf in zip(matrix, leaves[:, 0], strict=True):
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
            parameters=np.zeros((5, 1, 2)),
        )
    )
    matrix = np.array([[np.nan, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0]])
    assert predictor.apply(matrix)[:, 0].tolist() == [2, 4, 3, 4, 3]


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
    with pytest.raises(ValueError, match="scores has another width"):
        predictor.apply(matrix, np.zeros((4, 2), order="F"))
    with pytest.raises(ValueError, match="differ in length"):
        predictor.apply(matrix, scores[:3])
    assert predictor.apply(matrix[:0]).shape == (0, 1)
    assert predictor.probabilities(matrix[:0], scores[:0]).shape == (0, 2)


def test_splits_on_scores_need_scores():
    predictor = _core.Predictor(**stump(attribute=indices(2, 1, -1, -1, -1, -1)))
    matrix, scores = np.zeros((3, 2)), np.array([[0.4], [0.5], [0.6]], order="F")
    assert predictor.apply(matrix, scores)[:, 0].tolist() == [3, 3, 2]
    with pytest.raises(ValueError, match="a split on scores needs them"):
        predictor.apply(matrix)


# -- Forests --------------------------------------------------------------------------------------


@st.composite
def forests(draw: Callable[..., Any]) -> dict[str, Any]:
    """Trees of any shape side by side, that split on attributes and on scores."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_classes = draw(st.sampled_from([2, 2, 3, 5, 12]))
    n_states = 1 if n_classes == 2 else n_classes
    n_classifiers = draw(st.sampled_from([1, 2]))
    n_scores = n_states * n_classifiers
    # Of many classes, each log-odds sees the scores of its own class alone.
    n_seen = draw(st.sampled_from([n_scores, n_classifiers]))
    n_categories = draw(st.lists(st.sampled_from([0, 0, 1, 3, 5]), min_size=1, max_size=3))
    columns: dict[str, list[Any]] = {name: [] for name in NODE_ARRAYS}
    branches: list[int] = []
    roots: list[int] = []

    def add_leaf() -> int:
        for name, values in columns.items():
            values.append(-1 if name in ("attribute", "first_child", "table") else 0)
        return len(columns["attribute"]) - 1

    for _ in range(draw(st.integers(1, 4))):
        roots.append(add_leaf())
        pending = [roots[-1]]
        for _ in range(draw(st.integers(0, 6))):
            node = pending.pop(int(rng.integers(len(pending))))
            attribute = int(rng.integers(len(n_categories) + n_scores))
            n_values = n_categories[attribute] if attribute < len(n_categories) else 0
            count = int(rng.integers(2, 5)) if n_values else 2
            children = [add_leaf() for _ in range(count)]
            columns["attribute"][node], columns["first_child"][node] = attribute, children[0]
            columns["n_children"][node] = count
            columns["missing"][node] = int(rng.integers(count))
            if n_values:
                columns["table"][node] = len(branches)
                branches += rng.integers(0, count, n_values).tolist()
            else:
                only_missing = rng.random() < 0.2
                columns["threshold"][node] = (
                    _core.only_missing if only_missing else round(rng.normal(), 1)
                )
            pending += children
    n_nodes = len(columns["attribute"])
    weight = rng.random(n_nodes) * (rng.random(n_nodes) < draw(st.sampled_from([0.3, 1.0])))
    return {
        **{name: indices(*values) for name, values in columns.items() if name != "threshold"},
        "threshold": np.array(columns["threshold"], dtype=np.float64),
        "branches": indices(*branches),
        "n_categories": indices(*n_categories),
        "weight": weight,
        "parameters": rng.normal(size=(n_nodes, n_states, 1 + n_seen)),
        "roots": indices(*roots),
        "n_scores": n_scores,
    }


NODE_ARRAYS = ("attribute", "threshold", "first_child", "n_children", "missing", "table")


def way(trees: dict[str, Any], root: int, values: np.ndarray) -> Iterator[int]:
    """The nodes that a row passes, given its attributes and scores."""
    node = int(root)
    yield node
    while (attribute := trees["attribute"][node]) >= 0:
        value = values[attribute]
        n_categories = [*trees["n_categories"], *[0] * trees["n_scores"]][attribute]
        if n_categories > 0:
            known = value in range(n_categories)
            at = trees["table"][node] + (int(value) if known else 0)
            branch = trees["branches"][at] if known else trees["missing"][node]
        elif np.isnan(value):
            branch = trees["missing"][node]
        else:
            threshold = trees["threshold"][node]
            # The largest number stands for infinity: only missing values are beyond it.
            branch = int(value > threshold and threshold != np.finfo(float).max)
        node = int(trees["first_child"][node] + branch)
        yield node


def node_probabilities(
    parameters: np.ndarray, scores: np.ndarray, offset: np.ndarray | None
) -> np.ndarray:
    """The probabilities of a node model for one row, class by class."""
    n_states, width = parameters.shape
    log_odds = np.zeros(n_states) if offset is None else offset.copy()
    for state, (intercept, *slopes) in enumerate(parameters):
        # All scores, or those of the state's own class: each classifier has one per class.
        seen = scores if width == 1 + len(scores) else scores[state::n_states]
        log_odds[state] += intercept + seen @ np.array(slopes)
    if n_states == 1:
        return np.array([expit(-log_odds[0]), expit(log_odds[0])])
    return np.asarray(softmax(log_odds))


def some_rows(trees: dict[str, Any], n_rows: int, rng: np.random.Generator) -> Any:
    """Attributes, some missing or unknown, and scores."""
    matrix = np.round(rng.normal(size=(n_rows, len(trees["n_categories"]))), 1)
    for column, size in enumerate(trees["n_categories"]):
        if size > 0:
            matrix[:, column] = rng.integers(0, size + 1, n_rows)
        else:
            matrix[rng.random(n_rows) < 0.1, column] = np.inf
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    scores = np.round(rng.normal(size=(n_rows, trees["n_scores"])), 1)
    return matrix, np.asfortranarray(scores)


@examples(80)
@given(forests(), st.booleans(), st.sampled_from([1, 7, 40]), st.integers(0, 2**32 - 1))
def test_forests_are_the_walk_of_their_arrays(trees, with_offset, n_rows, seed):
    rng = np.random.default_rng(seed)
    matrix, scores = some_rows(trees, n_rows, rng)
    n_states = trees["parameters"].shape[1]
    offset = np.asfortranarray(rng.normal(size=(n_rows, n_states))) if with_offset else None
    leaves = np.zeros((n_rows, len(trees["roots"])), dtype=int)
    expected = np.zeros((n_rows, max(2, n_states)))
    for row in range(n_rows):
        values = np.concatenate([matrix[row], scores[row]])
        for tree, root in enumerate(trees["roots"]):
            for node in way(trees, root, values):
                said = node_probabilities(
                    trees["parameters"][node],
                    scores[row],
                    None if offset is None else offset[row],
                )
                expected[row] += trees["weight"][node] * said
            leaves[row, tree] = node
    predictor = _core.Predictor(**trees)
    assert np.array_equal(predictor.apply(matrix, scores), leaves)
    found = predictor.probabilities(matrix, scores, offset)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)


def test_the_forests_above_are_of_every_kind():
    seen = set()

    @examples(80)
    @given(forests())
    def look(trees):
        _, n_states, width = trees["parameters"].shape
        inner = trees["attribute"] >= 0
        seen.add("several trees" if len(trees["roots"]) > 1 else "one tree")
        seen.add("own scores" if width < 1 + trees["n_scores"] else "all scores")
        if (trees["attribute"] >= len(trees["n_categories"])).any():
            seen.add("split on scores" if n_states == 1 else "split on scores of many classes")
        if (trees["table"] >= 0).any():
            seen.add("categories")
        if (trees["threshold"] == _core.only_missing).any():
            seen.add("only missing")
        if (trees["weight"] == 0).any() and inner.any():
            seen.add("no weight")

    look()
    assert len(seen) == 9


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_in_blocks(n_classes):
    """Some nodes say nothing: those at the root, in the middle, at the end, everywhere."""
    rng = np.random.default_rng(n_classes)
    n_states = 1 if n_classes == 2 else n_classes
    parameters = rng.normal(size=(6, n_states, 1 + n_classes))
    matrix = np.column_stack([rng.normal(size=1000), rng.integers(0, 4, 1000)])
    scores = np.asfortranarray(rng.normal(size=(1000, n_classes)))
    for weight in (rng.random(6), [0.3, 0, 0.7, 0.7, 0.2, 0], [0, 0.5, 0, 0, 0, 0], [0] * 6):
        weight = np.array(weight, dtype=np.float64)
        trees = stump(weight=weight, parameters=parameters, n_scores=n_classes)
        expected = np.zeros((1000, n_classes))
        for row, values in enumerate(matrix):
            for node in way(trees, 0, values):
                said = node_probabilities(parameters[node], scores[row], None)
                expected[row] += weight[node] * said
        found = _core.Predictor(**trees).probabilities(matrix, scores)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-16)


# -- Accuracy -------------------------------------------------------------------------------------


def probabilities_of(logits: np.ndarray) -> np.ndarray:
    """The softmax of the core: a leaf that hands its scores through."""
    n_classes = logits.shape[1]
    # Of two classes there is one log-odds, of the second against the first.
    slopes = np.array([[-1.0, 1.0]]) if n_classes == 2 else np.eye(n_classes)
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
        parameters=np.hstack([np.zeros((len(slopes), 1)), slopes])[np.newaxis],
        roots=indices(0),
        n_scores=n_classes,
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
