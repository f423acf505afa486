"""Databases say what `predict_proba` says."""

import sys
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationForest, CalibrationTree, IdentityCalibrator, PlattScaling
from caltree.export.sql.dialects import DIALECTS

from ..support.databases import DuckDB
from ..support.export_cases import CASES, fitted, hostile_rows
from ..support.marks import new_values
from ..support.trees import fixed_tree, make_rows

pytestmark = new_values

TOLERANCE = 1e-12
FULL_SIZE = ["averaged", "leaves, ten classes"]
# Expressions that stand alone repeat what the classes could share.
SHORT_ALONE = ["leaves", "published", "two classifiers", "margin", "forest", "isotonic", "identity"]
SHORT_ALONE += ["boosting", "boosting, three classes"]


def stored(database, X, scores, table="t"):
    """Put rows into a database and say what the columns of the scores are called."""
    names = [f"p{j}" for j in range(scores.shape[1])]
    frame = X.copy()
    frame[names] = scores
    frame["row"] = np.arange(len(frame))
    database.store(table, frame)
    return names


def answers(database, query):
    """The probabilities of a query whose first column is the number of the row."""
    rows = np.array(database.run(f"{query} ORDER BY row"), dtype=np.float64)
    assert np.array_equal(rows[:, 0], np.arange(len(rows)))
    return rows[:, 1:]


def assert_equal_in(database, calibrator, X, scores):
    names = stored(database, X, scores)
    query = calibrator.to_sql(database.dialect, scores=names).select("t", ["row"])
    expected = calibrator.predict_proba(X, scores)
    np.testing.assert_allclose(answers(database, query), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_a_database_says_what_predict_proba_says(database, name):
    X, scores = hostile_rows(name, 500)
    assert_equal_in(database, fitted(name), X, scores)


@pytest.mark.parametrize("name", FULL_SIZE)
def test_it_does_so_for_many_rows(database, name):
    X, scores = hostile_rows(name, 20_000)
    assert_equal_in(database, fitted(name), X, scores)


@pytest.mark.parametrize("name", SHORT_ALONE)
def test_each_expression_stands_alone(database, name):
    X, scores = hostile_rows(name, 500)
    calibrator = fitted(name)
    columns = calibrator.to_sql(database.dialect, scores=stored(database, X, scores))
    expected = calibrator.predict_proba(X, scores)
    together = answers(database, f"SELECT row, {columns} FROM t")
    np.testing.assert_allclose(together, expected, rtol=0, atol=TOLERANCE)
    for j, label in enumerate(calibrator.classes_.tolist()):
        alone = answers(database, f"SELECT row, {columns[label]} FROM t AS _s")
        np.testing.assert_allclose(alone[:, 0], expected[:, j], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", ["boosting", "boosting, three classes"])
@pytest.mark.parametrize("weights", [(0.25, 0.5), (1.0, 0.0), (0.5, 0.5)])
def test_the_curve_of_boosted_trees_has_a_weight_of_its_own(database, name, weights):
    calibrator = copy(fitted(name))
    names = {"curve_weight": weights[0], "boosted_weight": weights[1]}
    calibrator.model_ = replace(calibrator.model_, **names)
    assert_equal_in(database, calibrator, *hostile_rows(name, 300))


def test_a_whole_query_keeps_all_columns(database):
    X, scores = hostile_rows("leaves", 50)
    names = stored(database, X, scores)
    query = fitted("leaves").to_sql(database.dialect, scores=names).select("t")
    rows = database.run(query)
    assert len(rows) == 50
    assert len(rows[0]) == X.shape[1] + 1 + 1 + 2


def chain(depth, missing):
    """A tree in which every right child is split again, and rows for it."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.arange(2000.0)})
    scores = random.uniform(0.2, 0.8, (2000, 1))
    tree = fixed_tree(drop_identifiers=False, max_depth=1).fit(
        X, random.integers(0, 2, 2000), scores
    )
    n_nodes = 2 * depth + 1
    leaf = np.arange(n_nodes) % 2 == 1
    leaf[-1] = True
    arrays = {
        "attribute": np.where(leaf, -1, 0).astype(np.int32),
        "threshold": np.where(leaf, 0.0, 5.0 * np.arange(n_nodes)),
        "first_child": np.where(leaf, -1, np.arange(n_nodes) + 1).astype(np.int32),
        "n_children": np.where(leaf, 0, 2).astype(np.int32),
        "missing": np.where(leaf, 0, missing).astype(np.int32),
        "missing_rows": np.zeros(n_nodes),
        "table": np.full(n_nodes, -1, dtype=np.int32),
        "n_rows": np.ones(n_nodes),
        "gain": np.zeros(n_nodes),
        "weight": leaf.astype(float),
        "parameters": random.normal(size=(n_nodes, 1, 3)),
    }
    tree.model_ = replace(tree.model_, **arrays)
    return tree, X, scores


@pytest.mark.parametrize("missing", [0, 1])
def test_a_tree_may_be_deeper_than_expressions_may_be_nested(database, missing):
    tree, X, scores = chain(150, missing)
    assert tree.get_depth() == 150
    names = stored(database, X, scores)
    X.loc[[0, 1999], "x"] = np.nan
    if database.dialect != "sqlite":  # which stores NaN as NULL
        nan = f"CAST('NaN' AS {DIALECTS[database.dialect].number})"
        database.connection.execute(f"UPDATE t SET x = {nan} WHERE row = 0")
    else:
        database.connection.execute("UPDATE t SET x = NULL WHERE row = 0")
    database.connection.execute("UPDATE t SET x = NULL WHERE row = 1999")
    query = tree.to_sql(database.dialect, scores=names).select("t", ["row"])
    expected = tree.predict_proba(X, scores)
    np.testing.assert_allclose(answers(database, query), expected, rtol=0, atol=TOLERANCE)


def test_a_forest_splits_on_tiny_scores_too(database):
    X, y, scores = make_rows(600)
    X = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    margins = np.log(scores[:, 1:] / scores[:, :1])
    forest = CalibrationForest(n_estimators=10, score_type="margin", random_state=0)
    forest.fit(X, y, margins)
    on_scores = forest.model_.attribute >= 3
    assert on_scores.any()
    forest.model_.threshold[on_scores] = 0.0
    tiny = np.random.default_rng(0).choice([1e-250, -1e-250, 0.0, 5e-324], margins.shape)
    assert_equal_in(database, forest, X, tiny)


def test_a_forest_of_a_hundred_trees(database):
    X, y, scores = make_rows(600)
    X = pd.DataFrame(X, columns=["x0", "x1", "x2"])
    forest = CalibrationForest(n_estimators=100, random_state=0, max_depth=4).fit(X, y, scores)
    assert_equal_in(database, forest, X, scores)


def test_many_scores_are_added_in_groups(database):
    random = np.random.default_rng(0)
    scores = random.random((200, 30))
    identity = IdentityCalibrator(score_type="probability").fit(None, np.arange(200) % 30, scores)
    assert_equal_in(database, identity, pd.DataFrame(index=range(200)), scores)


@pytest.mark.parametrize(
    "name", ["leaves", "leaves, ten classes", "published", "isotonic", "identity", "margin"]
)
def test_what_predict_proba_refuses_is_null(database, name):
    calibrator = fitted(name)
    wrong = [np.nan, np.inf, -np.inf]
    if calibrator.score_type_ == "probability":
        wrong += [-0.1, 1.1]
    X, scores = hostile_rows(name, len(wrong) + 3)
    for value in wrong:
        with pytest.raises(ValueError, match="scores contains"):
            calibrator.predict_proba(X, np.full_like(scores, value))
    scores[:, -1] = [0.5, np.nan, *wrong, 0.25]
    names = stored(database, X, scores)
    if database.dialect != "sqlite":  # which stores NaN as NULL
        nan = f"CAST('NaN' AS {DIALECTS[database.dialect].number})"
        database.connection.execute(f"UPDATE t SET {names[-1]} = {nan} WHERE row = 2")
        database.connection.execute(f"UPDATE t SET {names[-1]} = NULL WHERE row = 1")
    columns = calibrator.to_sql(database.dialect, scores=names)
    for query in (f"SELECT row, {columns} FROM t", columns.select("t", ["row"])):
        found = answers(database, query)
        assert np.isnan(found[1:-1]).all()
        assert np.isfinite(found[[0, -1]]).all()


def test_one_column_of_two_will_do(database):
    X, scores = hostile_rows("averaged, two columns", 500)
    second = scores[:, 1:]
    calibrator = fitted("averaged, two columns")
    names = stored(database, X, second)
    query = calibrator.to_sql(database.dialect, scores=names).select("t", ["row"])
    expected = calibrator.predict_proba(X, second)
    np.testing.assert_allclose(answers(database, query), expected, rtol=0, atol=TOLERANCE)


def test_a_stored_calibrator_gives_the_same_sql():
    tree = fitted("averaged")
    again = CalibrationTree.from_dict(tree.to_dict())
    assert str(again.to_sql()) == str(tree.to_sql())


def bigquery_answers(query, X, scores):
    """What DuckDB says to a query for BigQuery, which is nowhere but in its cloud."""
    # Older ones misread \` in text (sqlglot) or have no answer to a score of 1 (DuckDB).
    sqlglot = pytest.importorskip("sqlglot", minversion="30.30")
    pytest.importorskip("duckdb", minversion="2.0")
    deepest = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        (translated,) = sqlglot.transpile(query, read="bigquery", write="duckdb")
    finally:
        sys.setrecursionlimit(deepest)
    database = DuckDB()
    stored(database, X, scores)
    return answers(database, translated)


@pytest.mark.parametrize(
    "name", ["leaves", "published", "leaves, ten classes", "published margin", "identity"]
)
def test_bigquery_translated(name):
    X, scores = hostile_rows(name, 500)
    calibrator = fitted(name)
    columns = calibrator.to_sql("bigquery", scores=[f"p{j}" for j in range(scores.shape[1])])
    expected = calibrator.predict_proba(X, scores)
    found = bigquery_answers(columns.select("t", ["row"]), X, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)
    first = next(iter(columns))
    alone = bigquery_answers(f"SELECT `row`, {columns[first]} FROM t", X, scores)
    np.testing.assert_allclose(alone[:, 0], expected[:, 0], rtol=0, atol=TOLERANCE)


def test_bigquery_takes_no_more_than_a_megabyte():
    X, y, scores = make_rows(2000, n_classes=10)
    columns = fixed_tree(min_samples_leaf=2).fit(X, y, scores).to_sql("bigquery")
    with pytest.raises(ValueError, match=r"bigquery takes queries of at most 1048576; fit a"):
        columns.select("t")
    with pytest.raises(ValueError, match="bytes"):
        columns[0]


def test_more_levels_than_columns():
    X, y, scores = make_rows(300, n_classes=3)
    forest = CalibrationForest(n_estimators=400, random_state=0).fit(X, y, scores)
    with pytest.raises(ValueError, match="too many for the columns of sqlite; fit one with fewer"):
        forest.to_sql("sqlite")


def test_a_global_calibrator_needs_no_attributes():
    platt = PlattScaling().fit(None, [0, 1] * 10, scores=[0.2, 0.6] * 10)
    assert "score" in platt.to_sql()[1]
