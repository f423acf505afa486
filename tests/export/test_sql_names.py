"""Names, texts, numbers and types survive SQL."""

import datetime
import math
import struct
from contextlib import closing
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import IdentityCalibrator, IsotonicScaling, PublishedCalibrationTree
from caltree.export.sql.dialects import DIALECTS, unused_name

from ..support.databases import Sqlite
from ..support.export_cases import INJECTION
from ..support.marks import new_values
from ..support.trees import fixed_tree

pytestmark = new_values

TEXTS = ["O'Hara", "'; DROP TABLE t; --", "back\\slash", "\\'", "two\nlines\r\n", "tab\t", "%s %%"]
TEXTS += ["Zoë", "😀", '"', "`", "", " ", "a''b", "$1", ":name", "?", "{}", "/* */", "--"]
NAMES = [name for name in [INJECTION, *TEXTS, "select", "From", "x.y", "_s", "_score_1"] if name]


def two_groups(values, groups=(0, 1)):
    """Labels and scores of rows that belong together by the group of their value."""
    group = np.array([groups[0] if hit else groups[1] for hit in values])
    random = np.random.default_rng(0)
    return (random.random(len(group)) < np.where(group == 1, 0.85, 0.15)).astype(int)


def split_tree(column, in_first, name="a", **params):
    """A tree with one split, on the column of a frame."""
    frame = pd.DataFrame({name: column})
    y = two_groups(in_first)
    scores = np.full((len(y), 1), 0.5)
    tree = fixed_tree(max_depth=1, **params).fit(frame, y, scores)
    assert tree.get_n_leaves() == 2
    return tree


def answers(database, tree, table="t", **names):
    """The probabilities of the second class, row by row."""
    query = tree.to_sql(database.dialect, scores="p", **names).select(table, ["row", "p"])
    return [row[-1] for row in sorted(database.run(query))]


def store(database, column, name="a", table="t", types=None):
    frame = pd.DataFrame({"row": range(len(column)), "p": 0.5, name: column})
    database.store(table, frame, types)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_columns_and_tables(database, name):
    values = np.arange(80.0)
    tree = split_tree(values, values < 40, name)
    store(database, values, name, table=name)
    expected = tree.predict_proba(pd.DataFrame({name: values}), np.full(80, 0.5))[:, 1]
    np.testing.assert_allclose(answers(database, tree, name), expected, rtol=0, atol=1e-12)
    columns = tree.to_sql(database.dialect, scores="p")
    origin = DIALECTS[database.dialect].quote(name)
    alone = sorted(database.run(f"SELECT row, {columns[1]} FROM {origin}"))
    np.testing.assert_allclose([row[1] for row in alone], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_names_of_scores_and_classes(database, name):
    labels = np.array([name, name + "!"])
    identity = IdentityCalibrator(pos_label=name).fit(None, labels, scores=[0.8, 0.1])
    database.store("t", pd.DataFrame({name: [0.25]}))
    columns = identity.to_sql(database.dialect, scores=name)
    assert database.run(f"SELECT {columns} FROM t") == [(0.25, 0.75)]
    cursor = database.connection.execute(f"SELECT {columns} FROM t")
    assert [column[0] for column in cursor.description] == [f"calibrated_{x}" for x in labels]


@pytest.mark.parametrize("label", ["1", slice(100)])
def test_a_label_that_is_not_a_class_is_said(label):
    identity = IdentityCalibrator().fit(None, [0, 1], scores=[0.2, 0.9])
    with pytest.raises(KeyError, match=r"is not a class; the classes are \[0, 1\]"):
        identity.to_sql("duckdb")[label]


def test_all_categories_of_texts(database):
    values = TEXTS * 20
    known = set(TEXTS[::2])
    tree = split_tree(pd.Series(values, dtype=object), [value in known for value in values])
    new = [*TEXTS, "unseen", None, "o'hara", "O'HARA"]
    store(database, new)
    X = pd.DataFrame({"a": pd.Series(new, dtype=object)})
    expected = tree.predict_proba(X, np.full(len(new), 0.5))[:, 1]
    assert len(set(expected.tolist())) == 2
    np.testing.assert_allclose(answers(database, tree), expected, rtol=0, atol=1e-12)


def test_a_category_that_no_row_can_hold(database):
    values = ["a\0b", "c"] * 40
    tree = split_tree(pd.Series(values, dtype=object), [value == "c" for value in values])
    store(database, ["c", "d", None])
    X = pd.DataFrame({"a": ["c", "d", None]})
    expected = tree.predict_proba(X, np.full(3, 0.5))[:, 1]
    np.testing.assert_allclose(answers(database, tree), expected, rtol=0, atol=1e-12)


def test_collations_do_not_matter(database):
    values = ["red", "blue"] * 40
    tree = split_tree(values, [value == "red" for value in values])
    kind = {"duckdb": "VARCHAR COLLATE nocase", "sqlite": "TEXT COLLATE NOCASE"}
    declared = kind.get(database.dialect, "text")
    database.connection.execute(f"CREATE TEMPORARY TABLE c (row integer, p float, a {declared})")
    database.connection.execute("INSERT INTO c VALUES (0, 0.5, 'RED'), (1, 0.5, 'BLUE')")
    expected = tree.predict_proba(pd.DataFrame({"a": ["RED", "BLUE"]}), [0.5, 0.5])[:, 1]
    np.testing.assert_allclose(answers(database, tree, "c"), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["integer", "bigint", "smallint", "numeric(8, 3)", "real"])
def test_numbers_of_any_type(database, kind):
    values = np.arange(80.0)
    tree = split_tree(values, values < 40)
    database.connection.execute(f"CREATE TEMPORARY TABLE n (row integer, p {kind}, a {kind})")
    database.connection.execute("INSERT INTO n VALUES (0, 0, 39), (1, 1, 40), (2, 0, NULL)")
    expected = tree.predict_proba(pd.DataFrame({"a": [39, 40, np.nan]}), [0.0, 1.0, 0.0])[:, 1]
    np.testing.assert_allclose(answers(database, tree, "n"), expected, rtol=0, atol=1e-12)


def test_a_date_is_the_text_it_is_written_as(database):
    days = ["2024-01-01", "2024-06-30"] * 40
    tree = split_tree(days, [day < "2024-02" for day in days])
    new = [datetime.date(2024, 1, 1), datetime.date(2024, 6, 30)]
    if database.dialect == "sqlite":  # which has no dates
        new = [str(day) for day in new]
    store(database, pd.Series(new, dtype=object), types={"a": "date"})
    expected = tree.predict_proba(pd.DataFrame({"a": days[:2]}), [0.5, 0.5])[:, 1]
    np.testing.assert_allclose(answers(database, tree), expected, rtol=0, atol=1e-12)


def test_an_enumeration(database):
    if database.dialect == "sqlite":
        pytest.skip("SQLite has no enumerations")
    values = ["red", "blue", "gone"] * 40
    tree = split_tree(values, [value != "blue" for value in values])
    database.connection.execute("CREATE TYPE colour AS ENUM ('red', 'blue')")
    database.connection.execute("CREATE TEMPORARY TABLE e (row integer, p float, a colour)")
    database.connection.execute("INSERT INTO e VALUES (0, 0.5, 'red'), (1, 0.5, 'blue')")
    expected = tree.predict_proba(pd.DataFrame({"a": ["red", "blue"]}), [0.5, 0.5])[:, 1]
    found = answers(database, tree, "e")
    database.connection.execute("DROP TABLE e")
    database.connection.execute("DROP TYPE colour")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


CATEGORIES = {
    "booleans": [False, True],
    "numbers": [1, 2, 3],
    "fractions": [0.1, 0.25, 1e-3],
    "large numbers": [2**53, 2**53 + 1, 2**62 + 1],
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_that_are_no_texts(database, kind):
    values = CATEGORIES[kind] * 40
    tree = split_tree(values, [v == values[0] for v in values], categorical_features=["a"])
    new = pd.DataFrame({"a": pd.Series(CATEGORIES[kind])})
    expected = tree.predict_proba(new, np.full(len(new), 0.5))[:, 1]
    assert expected[0] != expected[1]
    store(database, new["a"], types={"a": "bigint"} if kind == "large numbers" else None)
    np.testing.assert_allclose(answers(database, tree), expected, rtol=0, atol=1e-12)


def test_a_declared_category_without_rows(database):
    values = pd.Categorical(["small", "large"] * 40, categories=["small", "huge", "large"])
    tree = split_tree(values, [value == "small" for value in values])
    new = ["small", "huge", "large", "other"]
    store(database, new)
    expected = tree.predict_proba(pd.DataFrame({"a": new}), np.full(4, 0.5))[:, 1]
    np.testing.assert_allclose(answers(database, tree), expected, rtol=0, atol=1e-12)


def test_missing_values_of_their_own(database):
    values = np.where(np.arange(120) % 3 == 0, np.nan, np.arange(120.0))
    tree = split_tree(values, np.isnan(values))
    new = [5.0, np.nan, -math.inf, math.inf, -0.0, 1e308]
    database.store("t", pd.DataFrame({"row": range(6), "p": 0.5, "a": new}))
    if database.dialect != "sqlite":  # which stores NaN as NULL
        nan = f"CAST('NaN' AS {DIALECTS[database.dialect].number})"
        database.connection.execute(f"UPDATE t SET a = {nan} WHERE row = 1")
    expected = tree.predict_proba(pd.DataFrame({"a": new}), np.full(6, 0.5))[:, 1]
    assert expected[1] != expected[0]
    np.testing.assert_allclose(answers(database, tree), expected, rtol=0, atol=1e-12)


def test_splits_with_one_way_only(database):
    # Training makes none of these, but a stored tree may have them.
    largest = np.finfo(np.float64).max
    numbers = np.arange(80.0)
    all_left = split_tree(numbers, numbers < 40)
    all_left.model_.threshold[0], all_left.model_.missing[0] = largest, 0
    texts = ["red", "blue"] * 40
    one_branch = split_tree(texts, [text == "red" for text in texts])
    one_branch.model_.branches[:], one_branch.model_.missing[0] = 1, 1
    nothing = split_tree(numbers, numbers < 40)
    empty = replace(nothing.model_.attributes.columns[0], categories=(), fill=0.0)
    nothing.model_ = replace(
        nothing.model_, attributes=replace(nothing.model_.attributes, columns=(empty,))
    )
    for name, tree, column in (
        ("numbers", all_left, [1.0, np.nan, 1e308]),
        ("texts", one_branch, ["red", "green", None]),
        ("empty", nothing, ["red", "green", None]),
    ):
        store(database, column, table=name)
        expected = tree.predict_proba(pd.DataFrame({"a": column}), np.full(3, 0.5))[:, 1]
        assert len(set(expected.tolist())) == 1
        np.testing.assert_allclose(answers(database, tree, name), expected, rtol=0, atol=1e-12)


def test_values_next_to_a_threshold(database):
    random = np.random.default_rng(0)
    values = np.concatenate([random.random(30), random.normal(size=30).round(2), [1e-5, 3e9, 0.1]])
    rows, trees = [], []
    for value in values.tolist():
        tree = split_tree([value, value + 1.0] * 40, [True, False] * 40)
        tree.model_.threshold[0] = value
        trees.append(tree)
        rows += [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]
    store(database, rows)
    for number, tree in enumerate(trees):
        near = slice(3 * number, 3 * number + 3)
        X = pd.DataFrame({"a": rows[near]})
        expected = tree.predict_proba(X, np.full(3, 0.5))[:, 1]
        assert expected[0] != expected[1]
        np.testing.assert_allclose(answers(database, tree)[near], expected, rtol=0, atol=1e-12)


def run_in_sqlite(query):
    database = Sqlite()
    with closing(database.connection):
        return database.run(query)


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_sqlite_reads_exact_numbers(value):
    ((found,),) = run_in_sqlite(f"SELECT {DIALECTS['sqlite'].exact(value)}")
    assert struct.pack("d", found) == struct.pack("d", value) or found == value == 0.0


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_sqlite_reads_texts(text):
    assert run_in_sqlite(f"SELECT {DIALECTS['sqlite'].string(text)}") == [(text,)]


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_bigquery_reads_texts_and_names(text):
    sqlglot = pytest.importorskip("sqlglot")
    text = text.replace("\0", "")
    dialect = DIALECTS["bigquery"]
    literal = sqlglot.parse_one(f"SELECT {dialect.string(text)}", read="bigquery").expressions[0]
    assert literal.name == text
    if text and "." not in text:  # with a dot it would be the name of a table
        column = sqlglot.parse_one(f"SELECT {dialect.quote(text)}", read="bigquery")
        assert column.expressions[0].name == text


def test_texts_are_read_as_written(database):
    for text in TEXTS:
        literal = DIALECTS[database.dialect].string(text)
        assert database.run(f"SELECT {literal}") == [(text,)]


def test_columns_with_other_names(database):
    values = np.arange(80.0)
    tree = split_tree(values, values < 40, "")
    expected = tree.predict_proba(pd.DataFrame({"": values}), np.full(80, 0.5))[:, 1]
    store(database, values, "elsewhere")
    for names in (["elsewhere"], {"": "elsewhere"}):
        found = answers(database, tree, attributes=names)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_names_without_names():
    tree = fixed_tree(max_depth=1).fit(
        np.arange(80.0).reshape(-1, 1), two_groups([True] * 40 + [False] * 40), np.full(80, 0.5)
    )
    assert '"x0"' in tree.to_sql()[0]
    assert '"score"' in tree.to_sql()[0]


def test_default_names_of_scores():
    y = [0, 1, 2] * 10
    scores = np.full((30, 6), 1 / 3)
    one = IdentityCalibrator().fit(None, y, scores[:, :3]).to_sql()
    assert all(f'"score_{label}"' in one[0] for label in range(3))
    two = IdentityCalibrator().fit(None, y, scores).to_sql()
    assert all(f'"score_{label}_{k}"' in two[0] for label in range(3) for k in (1, 2))


def test_a_column_that_is_not_there_is_an_error(database):
    """SQLite would read a name in double quotes as a text, and that as the number 0."""
    database.store("lacking", pd.DataFrame({"p_yes": [0.5]}))
    columns = identity().to_sql(database.dialect)
    for query in (f"SELECT {columns} FROM lacking", columns.select("lacking", ["p_yes"])):
        with pytest.raises(Exception, match=r"(?i)column.*\bscore\b"):
            database.run(query)


def test_results_have_different_names():
    def names(dialect, labels):
        identity = IdentityCalibrator().fit(None, labels, scores=[0.2, 0.9])
        return list(identity.to_sql(dialect).names.values())

    assert names("duckdb", ["Yes", "yes"]) == ['"calibrated_Yes"', '"calibrated_yes_2"']
    assert names("bigquery", ["a b", "a.b"]) == ["`calibrated_a_b`", "`calibrated_a_b_2`"]
    long = ["é" * 40 + "1", "é" * 40 + "2"]
    first, second = names("postgresql", long)
    assert first != second
    assert max(len(name.encode()) for name in (first, second)) <= 63 + 2


def test_a_name_that_is_taken_is_changed():
    assert unused_name("a", ["A", "a_2"]) == "a_3"
    assert unused_name("a" * 9, ["a" * 5], longest=5) == "aaa_2"


def identity():
    return IdentityCalibrator().fit(None, [0, 1], scores=[0.2, 0.9])


def number_tree():
    return split_tree(np.arange(80.0), np.arange(80) < 40)


def test_a_dialect_that_is_not_known():
    with pytest.raises(ValueError, match=r"dialect must be one of 'duckdb', .*got 'oracle'"):
        identity().to_sql("oracle")


def test_scores_that_are_too_many():
    with pytest.raises(ValueError, match="scores names 3 columns, but the calibrator was fitted"):
        identity().to_sql(scores=["a", "b", "c"])
    published = PublishedCalibrationTree().fit(
        np.zeros((20, 1)), [0, 1] * 10, np.full((20, 2), 0.5)
    )
    with pytest.raises(ValueError, match="scores names 1 columns"):
        published.to_sql(scores="a")


@pytest.mark.parametrize("scores", [3, [3], [None]])
def test_scores_that_are_no_names(scores):
    with pytest.raises(TypeError, match="scores must be names of columns, got"):
        identity().to_sql(scores=scores)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_a_name_that_no_column_can_have(name):
    with pytest.raises(ValueError, match="scores: no column of duckdb can be called"):
        identity().to_sql(scores=name)


def test_attributes_that_are_not_there():
    with pytest.raises(ValueError, match=r"attributes renames .'b'., but the calibrator has .'a'."):
        number_tree().to_sql(attributes={"b": "c"})
    with pytest.raises(ValueError, match="attributes names 2 columns"):
        number_tree().to_sql(attributes=["a", "b"])


def test_categories_of_several_types():
    values = pd.Categorical([1, "one"] * 40, categories=[1, "one"])
    tree = split_tree(values, [value == 1 for value in values])
    with pytest.raises(ValueError, match=r"'a' has categories of several types .number, string."):
        tree.to_sql()


def test_categories_beyond_all_integers():
    values = pd.Series([2**64, 1] * 40, dtype=object)
    tree = split_tree(values, values == 1, categorical_features=["a"])
    with pytest.raises(ValueError, match="'a' has the category 18446744073709551616, beyond"):
        tree.to_sql()


def test_a_calibrator_must_be_fitted():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        IsotonicScaling().to_sql()


def test_what_is_shown():
    columns = identity().to_sql("postgresql", scores="p")
    assert repr(columns) == "SqlColumns('postgresql', classes=[0, 1])"
    assert len(columns) == 2
    assert dict(columns) == {0: columns[0], 1: columns[1]}
    assert columns.select(["sales", "t"], []).endswith('FROM "sales"."t"')
