"""LogitBoost: iterations worked out by hand, every split tried, and the published answers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeRegressor

from caltree.metrics import rmse
from caltree.paper.learners import LogitBoost

from ..spec.learners.logitboost import working
from ..spec.learners.splits import Presorted
from ..spec.learners.stumps import fit_stump
from ..spec.learners.trees import fit_tree
from ..support.fixtures import OPEN, UCI, load, name_of

STUMPS = [path for path in OPEN + UCI if "boosted_stumps" in name_of(path)]
TREES = [path for path in OPEN + UCI if "boosted_trees" in name_of(path)]
# Elsewhere, two attributes split the same rows of a small node in the same way, and rounding
# decided which of them the published trees took: other rows may go another way.
TREES_WITHOUT_TIES = {"agrawal_missing-boosted_trees", "rdg1-boosted_trees", "vote-boosted_trees"}
# 379 training rows, nearly separable, and 30 attributes that are often tied.
MOST_TIES = "breast_cancer-boosted_trees"


@pytest.mark.parametrize("path", STUMPS, ids=name_of)
def test_published_stumps(path):
    fixture = load(path)
    model = LogitBoost().fit(fixture.table("train"), fixture.labels("train"))
    probabilities = model.predict_proba(fixture.table("test"))
    np.testing.assert_allclose(probabilities, fixture.probabilities("test"), rtol=0, atol=1e-10)


@pytest.mark.parametrize("path", TREES, ids=name_of)
def test_published_trees(path):
    fixture = load(path)
    model = LogitBoost(base="tree").fit(fixture.table("train"), fixture.labels("train"))
    probabilities, expected = (
        model.predict_proba(fixture.table("test")),
        fixture.probabilities("test"),
    )
    if fixture.name in TREES_WITHOUT_TIES:
        np.testing.assert_allclose(probabilities, expected, rtol=0, atol=1e-10)
    y = fixture.labels("test")
    tolerance = 0.02 if fixture.name == MOST_TIES else 0.003
    assert rmse(y, probabilities) == pytest.approx(rmse(y, expected), abs=tolerance)
    differences = np.abs(probabilities - expected).max(axis=1)
    assert np.mean(differences < 1e-3) > 0.95


def test_working_responses_and_weights():
    # 1/p and -1/(1-p), at most 3; (y - p) / z, here 0.3, 0.45 and 0.3, divided by their mean.
    truth = np.array([[1.0], [1.0], [0.0]])
    responses, weights = working(truth, np.array([[0.1], [0.5], [0.9]]))
    np.testing.assert_allclose(responses[:, 0], [3.0, 2.0, -3.0])
    np.testing.assert_allclose(weights[:, 0], np.array([0.3, 0.25, 0.3]) / (0.85 / 3))


def test_certainty_has_no_weight():
    responses, weights = working(np.eye(2), np.eye(2))
    np.testing.assert_array_equal(responses, [[1, -1], [-1, 1]])
    np.testing.assert_array_equal(weights, 0)


def test_one_iteration_with_two_classes():
    # The responses of class 0 are 2, 2, -2, 2 with equal weights. The cut at 1.5 leaves the
    # means 2 and 0; half of them is F, and class 1 has the negative.
    model = LogitBoost(1).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 0])
    left = 1 / (1 + np.exp(-2))
    probabilities = model.predict_proba([[1.0], [1.5], [1.6], [9.0]])
    np.testing.assert_allclose(probabilities[:, 0], [left, left, 0.5, 0.5])
    # No value was missing: the mean of all rows, 1.
    np.testing.assert_allclose(model.predict_proba([[np.nan]])[0, 0], 1 / (1 + np.exp(-1)))


def test_one_iteration_with_three_classes():
    # With p = 1/3 the responses are 3 and -1.5. F is 2/3 of them: 2 and -1.
    X = pd.DataFrame({"c": ["a", "b", "c"] * 2})
    model = LogitBoost(1).fit(X, ["A", "B", "C"] * 2)
    expected = np.exp(2) / (np.exp(2) + 2 * np.exp(-1))
    np.testing.assert_allclose(np.diag(model.predict_proba(X)[:3]), expected)


def test_the_second_iteration_starts_from_the_first():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    p = 1 / (1 + np.exp(-2))  # after one iteration with responses of 2
    F = 1 + 0.5 / p
    probabilities = LogitBoost(2).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(probabilities[:2, 0], 1 / (1 + np.exp(-2 * F)))


def test_missing_values_are_a_branch_of_a_stump():
    X = [[0.0], [0.0], [1.0], [1.0], [np.nan], [np.nan], [np.nan], [np.nan]]
    model = LogitBoost(1).fit(X, [0, 0, 1, 1, 0, 0, 0, 1])
    expected = 1 / (1 + np.exp([-2.0, 2.0, -1.0]))
    np.testing.assert_allclose(model.predict_proba([[0], [1], [np.nan]])[:, 0], expected)


def test_missing_values_are_dealt_out_in_a_tree():
    # One row of class 0 has no value: a third of it, with the response 2, goes to each category.
    X = pd.DataFrame({"c": ["a", "a", "b", "b", "c", "c", None]})
    model = LogitBoost(1, base="tree").fit(X, [0, 0, 1, 1, 0, 1, 0])
    values = np.array([2, (-4 + 2 / 3) / (7 / 3), (2 / 3) / (7 / 3)])
    expected = 1 / (1 + np.exp(-np.append(values, values.mean())))
    new = pd.DataFrame({"c": ["a", "b", "c", None]})
    np.testing.assert_allclose(model.predict_proba(new)[:, 0], expected)


@pytest.mark.parametrize(("base", "side"), [("stump", 0), ("tree", 1)])
def test_a_value_halfway(base, side):
    X = [[0.0], [2.0]] * 3
    model = LogitBoost(1, base=base).fit(X, [0, 1] * 3)
    halfway, known = model.predict_proba([[1.0]])[0], model.predict_proba(X[:2])
    np.testing.assert_array_equal(halfway, known[side])


@pytest.mark.parametrize("base", ["stump", "tree"])
def test_neighbouring_floats_are_told_apart(base):
    values = [1.0, np.nextafter(1.0, 2.0), np.nextafter(np.nextafter(1.0, 2.0), 2.0)]
    for low, high in (values[:2], values[1:]):
        X, y = [[low], [high]] * 3, [0, 1] * 3
        assert list(LogitBoost(1, base=base).fit(X, y).predict(X)) == y


@pytest.mark.parametrize("base", ["stump", "tree"])
def test_nothing_to_split_leaves_the_mean(base):
    model = LogitBoost(1, base=base).fit([[1.0]] * 4, [0, 0, 0, 1])
    np.testing.assert_allclose(model.predict_proba([[5.0]])[0, 0], 1 / (1 + np.exp(-1)))


def test_equal_attributes_are_used_in_their_order():
    column = np.array([0.1, 0.7, 0.3, 0.9, 0.2, 0.8])
    X = np.column_stack([np.zeros(6), column, column, 3 * column])
    for base in ("stump", "tree"):
        model = LogitBoost(1, base=base).fit(X, [0, 1, 0, 1, 0, 1])
        assert model._trees["attribute"][0] == 1


def table_of_everything(seed: int, n_rows: int = 60) -> tuple[Presorted, np.ndarray, np.ndarray]:
    """Two numeric and two nominal attributes with missing values, responses and weights."""
    rng = np.random.default_rng(seed)
    matrix = np.column_stack(
        [
            rng.normal(size=n_rows).round(1),
            rng.integers(0, 3, n_rows),
            rng.normal(size=n_rows),
            rng.integers(0, 5, n_rows),
        ]
    ).astype(float)
    matrix[rng.random(matrix.shape) < 0.15] = np.nan
    response, weight = rng.normal(size=n_rows), rng.random(n_rows)
    return Presorted(matrix, np.array([0, 3, 0, 5], np.int32)), response, weight / weight.mean()


def squared_error(groups: np.ndarray, response: np.ndarray, weight: np.ndarray) -> float:
    error = 0.0
    for group in np.unique(groups):
        here = groups == group
        mean = np.average(response[here], weights=weight[here])
        error += np.sum(weight[here] * (response[here] - mean) ** 2)
    return error


@pytest.mark.parametrize("seed", range(8))
def test_no_stump_is_better(seed):
    table, response, weight = table_of_everything(seed)
    errors = []
    for j, values in enumerate(table.matrix.T):
        missing = np.isnan(values)
        known = np.unique(values[~missing])
        for split in known if table.n_categories[j] else known[:-1]:
            inside = values == split if table.n_categories[j] else values <= split
            errors.append(squared_error(np.where(missing, 2, inside), response, weight))
    stump = fit_stump(table, response, weight)
    predicted = stump.predict(table.matrix)
    assert np.sum(weight * (response - predicted) ** 2) == pytest.approx(min(errors), rel=1e-10)


@pytest.mark.parametrize("seed", range(8))
def test_no_single_split_of_a_tree_is_better(seed):
    table, response, weight = table_of_everything(seed)
    errors = {}
    for j, values in enumerate(table.matrix.T):
        known = ~np.isnan(values)
        cuts = [None] if table.n_categories[j] else np.unique(values[known])[1:]
        for cut in cuts:
            branches = values[known] if cut is None else values[known] >= cut
            names, branches = np.unique(branches, return_inverse=True)
            shares = np.bincount(branches, weight[known]) / weight[known].sum()
            # Every row without a value, once in each branch, with its share of the weight.
            copies = np.concatenate([branches, np.repeat(np.arange(len(names)), (~known).sum())])
            dealt = np.concatenate([weight[known], np.outer(shares, weight[~known]).ravel()])
            copied = np.concatenate([response[known], np.tile(response[~known], len(names))])
            errors[j, cut] = squared_error(copies, copied, dealt)
    best = min(errors, key=errors.__getitem__)
    root = fit_tree(table, response, weight, 1)
    assert root.attribute == best[0]
    if best[1] is not None:
        np.testing.assert_array_equal(
            table.matrix[:, root.attribute] >= root.cut, table.matrix[:, root.attribute] >= best[1]
        )


@pytest.mark.parametrize("seed", range(4))
def test_trees_of_numbers_are_those_of_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4)).astype(np.float32).astype(float)
    response = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=200)
    weight = rng.random(200)
    weight /= weight.mean()
    ours = fit_tree(Presorted(X, np.zeros(4, np.int32)), response, weight, 3)
    theirs = DecisionTreeRegressor(max_depth=3).fit(X, response, sample_weight=weight)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_a_node_of_little_variance_is_not_split():
    # The 1 stands out; what varies among the other rows is a millionth of it.
    X, response = np.arange(6.0)[:, np.newaxis], np.array([0, 1e-3, 0, 1e-3, 0, 1.0])
    root = fit_tree(Presorted(X, np.zeros(1, np.int32)), response, np.ones(6), 3)
    assert root.cut == 4.5
    assert [child.children for child in root.children] == [[], []]


@pytest.mark.parametrize("n_categories", [0, 2])
def test_next_to_no_weight_is_no_branch(n_categories):
    table = Presorted(np.array([[0.0], [0.0], [0.0], [1.0]]), np.array([n_categories], np.int32))
    response = np.array([0.0, 0.0, 0.0, 3.0])
    for light, is_split in ((1e-9, False), (1e-3, True)):
        weight = np.array([4 / 3, 4 / 3, 4 / 3, light])
        assert (fit_stump(table, response, weight).attribute == 0) == is_split
        assert (fit_tree(table, response, weight, 3).attribute == 0) == is_split


def test_no_weight_at_all_has_the_value_0():
    table, response, weight = table_of_everything(0)
    for fitted in (
        fit_stump(table, response, 0 * weight),
        fit_tree(table, response, 0 * weight, 3),
    ):
        np.testing.assert_array_equal(fitted.predict(table.matrix), 0)


def test_a_category_that_a_node_lacks_has_the_value_of_the_node():
    # Category 2 is declared, but no row has it.
    table = Presorted(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([3], np.int32))
    for max_depth in (1, 3):
        root = fit_tree(table, np.array([1.0, 1.0, 4.0, 6.0]), np.ones(4), max_depth)
        np.testing.assert_allclose(root.predict(np.array([[0.0], [1.0], [2.0]])), [1, 5, 3])


@pytest.mark.parametrize(
    "params", [{"n_estimators": 0}, {"base": "forest"}, {"max_depth": 0}, {"max_depth": None}]
)
def test_parameters_that_cannot_be(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        LogitBoost(**params).fit([[0], [1]], [0, 1])
