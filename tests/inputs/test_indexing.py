"""Rows and columns of any table come back as the table's own kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector

from caltree._inputs.indexing import Columns, column_positions, count_rows, take_columns, take_rows
from caltree._inputs.tables import read_table

NUMBERS = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0], [9.0, 10.0, 11.0]])
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(NUMBERS, columns=NAMES)


class OnlyAnArray:
    """What has neither a shape nor a length, but can be made an array of."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values


TABLES = {
    "numpy": NUMBERS,
    "Fortran": np.asfortranarray(NUMBERS),
    "list": NUMBERS.tolist(),
    "tuple": tuple(map(tuple, NUMBERS.tolist())),
    "pandas": FRAME,
    "pandas, repeated index": FRAME.set_axis([7, 7, -1, 7]),
    "pandas, text index": FRAME.set_axis(list("dcba")),
    "pandas, numbers for names": pd.DataFrame(NUMBERS),
    "polars": pl.DataFrame(NUMBERS, schema=NAMES),
    "pyarrow": pa.table(dict(zip(NAMES, NUMBERS.T, strict=True))),
    "csr": sparse.csr_matrix(NUMBERS),
    "csc array": sparse.csc_array(NUMBERS),
    "coo": sparse.coo_matrix(NUMBERS),
    "coo array": sparse.coo_array(NUMBERS),
    "array protocol": OnlyAnArray(NUMBERS),
}
VECTORS = {
    "numpy": np.array([10, 20, 30, 40]),
    "list": [10, 20, 30, 40],
    "tuple": (10, 20, 30, 40),
    "range": range(10, 50, 10),
    "pandas": pd.Series([10, 20, 30, 40], index=[2, 2, 0, 1]),
    "pandas array": pd.array([10, 20, 30, 40], dtype="Int64"),
    "polars": pl.Series([10, 20, 30, 40]),
    "pyarrow": pa.chunked_array([[10, 20], [30, 40]]),
    "array protocol": OnlyAnArray([10, 20, 30, 40]),
}


def plain(table):
    """Any table as a list of rows."""
    dense = table.toarray() if sparse.issparse(table) else np.asarray(table)
    return dense.tolist()


# Rows


@pytest.mark.parametrize("kind", TABLES)
def test_the_rows_of_a_table_are_counted(kind):
    n_rows = count_rows(TABLES[kind], "X")
    assert n_rows == 4 and type(n_rows) is int


@pytest.mark.parametrize("kind", VECTORS)
def test_the_items_of_a_vector_are_counted(kind):
    assert count_rows(VECTORS[kind], "y") == 4


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (None, TypeError, "y must be .* got NoneType"),
        (3, TypeError, "y must be .* got int"),
        (iter([1]), TypeError, "y must be .* got list_iterator"),
        (np.float64(3), TypeError, "y must be .* got float64"),
        (np.array(3), ValueError, r"y must have rows and columns, got shape \(\)"),
        (OnlyAnArray(3), TypeError, "y must be .* got OnlyAnArray"),
        (pl.LazyFrame({"a": [1]}), TypeError, "y is a lazy LazyFrame; collect it"),
    ],
)
def test_what_has_no_rows_is_refused(values, error, message):
    with pytest.raises(error, match=f"^{message}"):
        count_rows(values, "y")


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("rows", [[2, 0, 2], [3], []], ids=str)
def test_rows_are_taken_by_position(kind, rows):
    table = TABLES[kind]
    taken = take_rows(table, np.array(rows, dtype=np.intp))
    if kind in ("list", "tuple") and not rows:
        assert taken == type(table)()
    else:
        assert plain(taken) == NUMBERS[rows].tolist()
    assert plain(table) == NUMBERS.tolist()


@pytest.mark.parametrize("kind", VECTORS)
def test_items_are_taken_by_position(kind):
    assert plain(take_rows(VECTORS[kind], np.array([2, 0, 2]))) == [30, 10, 30]


KEPT = ["numpy", "list", "tuple", "pandas", "polars", "pyarrow"]


@pytest.mark.parametrize("kind", KEPT)
def test_rows_are_of_the_same_kind(kind):
    rows = np.array([1, 3])
    assert type(take_rows(TABLES[kind], rows)) is type(TABLES[kind])
    assert type(take_rows(VECTORS[kind], rows)) is type(VECTORS[kind])


@pytest.mark.parametrize("kind", ["csr", "csc array", "coo", "coo array"])
def test_rows_of_a_sparse_table_are_sparse(kind):
    assert take_rows(TABLES[kind], np.array([1, 3])).format == "csr"
    assert take_columns(TABLES[kind], [1]).format == "csc"


def test_rows_keep_names_types_and_index():
    frame = pd.DataFrame(
        {"colour": pd.Categorical(["red", "blue", "red"]), "n": pd.array([1, None, 3], "Int64")},
        index=["x", "y", "x"],
    )
    pd.testing.assert_frame_equal(take_rows(frame, np.array([2, 1])), frame.iloc[[2, 1]])


def test_rows_of_a_frame_with_twin_names():
    frame = pd.DataFrame(NUMBERS, columns=["a", "a", "b"])
    assert plain(take_rows(frame, np.array([1]))) == [[3.0, 4.0, 5.0]]


# Columns


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("columns", [[2, 0], [1]], ids=str)
def test_columns_are_taken_by_position(kind, columns):
    taken = take_columns(TABLES[kind], columns)
    assert plain(taken) == NUMBERS[:, columns].tolist()
    if kind.startswith(("numpy", "pandas", "polars", "pyarrow")):
        assert type(taken) is type(TABLES[kind])


def test_columns_of_mixed_rows_stay_what_they_are():
    assert take_columns([["x", 1, 2.5], ["y", 2, 3.5]], [0, 1]).tolist() == [["x", 1], ["y", 2]]


@pytest.mark.parametrize("kind", ["pandas, text index", "polars", "pyarrow"])
def test_columns_keep_their_names(kind):
    assert read_table(take_columns(TABLES[kind], [2, 0]), "X").names == ("c", "a")


GOOD_CHOICES = {
    "names": (["c", "a"], [2, 0]),
    "numpy names": (np.array(["c", "a"]), [2, 0]),
    "pandas names": (FRAME.columns[1:], [1, 2]),
    "indices": ([2, 0], [2, 0]),
    "numpy indices": (np.array([2, 0]), [2, 0]),
    "range": (range(1, 3), [1, 2]),
    "tuple": ((1,), [1]),
    "generator": ((j for j in (0, 2)), [0, 2]),
    "both": (["c", 0], [2, 0]),
    "mask": ([True, False, True], [0, 2]),
    "numpy mask": (np.array([False, True, False]), [1]),
    "pandas mask": (FRAME.mean() > 4.5, [1, 2]),
    "empty mask": ([False] * 3, []),
    "slice": (slice(1, None), [1, 2]),
    "slice from the end": (slice(-1, None), [2]),
    "slice backwards": (slice(None, None, -2), [2, 0]),
    "nothing": ([], []),
}


@pytest.mark.parametrize("case", GOOD_CHOICES)
def test_columns_are_chosen_in_every_way(case):
    choice, expected = GOOD_CHOICES[case]
    positions = column_positions(choice, read_table(FRAME, "X"), "attributes")
    assert positions == expected
    assert all(type(position) is int for position in positions)


BAD_CHOICES = {
    "name alone": ("a", TypeError, r"things must be a list; use \['a'\]"),
    "index alone": (1, TypeError, r"things must be a list; use \[1\]"),
    "unknown name": (["d"], ValueError, r"things names 'd', which .* are \['a', 'b', 'c'\]"),
    "too large": ([3], ValueError, "things has the index 3, but X has 3 columns; use 0 to 2"),
    "negative": ([-1], ValueError, "things has the index -1"),
    "short mask": ([True], ValueError, "things is a mask of length 1, but X has 3 columns"),
    "half a mask": ([True, 1, 2], TypeError, "things must hold column names.* got True"),
    "fraction": ([1.5], TypeError, "things must hold column names.* got 1.5"),
    "None": ([None], TypeError, "things must hold column names.* got None"),
}


@pytest.mark.parametrize("case", BAD_CHOICES)
def test_bad_choices_are_named(case):
    choice, error, message = BAD_CHOICES[case]
    with pytest.raises(error, match=f"^{message}"):
        column_positions(choice, read_table(FRAME, "X"), "things")


def test_a_table_without_names_has_none_to_choose():
    with pytest.raises(ValueError, match=r"names 'a', .*the columns are without names"):
        column_positions(["a"], read_table(NUMBERS, "X"), "attributes")


# Columns that are remembered


@pytest.mark.parametrize("kind", TABLES)
def test_no_choice_is_the_table_itself(kind):
    assert Columns.choose(TABLES[kind], None).of(TABLES[kind]) is TABLES[kind]


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("choice", [[2, 0], lambda X: [2, 0]], ids=["indices", "callable"])
def test_a_choice_is_taken_from_every_table(kind, choice):
    columns = Columns.choose(TABLES[kind], choice)
    assert plain(columns.of(TABLES[kind])) == NUMBERS[:, [2, 0]].tolist()


def test_a_selector_of_scikit_learn_chooses():
    frame = FRAME.assign(colour=["red", "blue"] * 2)
    columns = Columns.choose(frame, make_column_selector(dtype_exclude=float))
    assert columns.of(frame).columns.tolist() == ["colour"]


def test_a_choice_is_made_once_and_found_by_name_in_another_table():
    columns = Columns.choose(FRAME, lambda X: [X.shape[1] - 1, 0])
    other = pl.DataFrame({"z": [0], "c": [1], "a": [2], "b": [3]})
    assert columns.of(other).to_dict(as_series=False) == {"c": [1], "a": [2]}


@pytest.mark.parametrize(("fitted", "other"), [(FRAME, NUMBERS), (NUMBERS, FRAME)])
def test_a_choice_is_found_by_position_where_names_are_lacking(fitted, other):
    columns = Columns.choose(fitted, [1, 2])
    assert plain(columns.of(other)) == NUMBERS[:, 1:].tolist()


def test_a_column_with_a_similar_name_is_suggested():
    frame = pd.DataFrame({"Age": [1], "age group": [2]})
    with pytest.raises(ValueError, match=r"'age', which .* of X \(did you mean Age\?\); the col"):
        Columns.choose(frame, ["age"])
    with pytest.raises(ValueError, match=r"'income', which is not a column of X; the columns"):
        Columns.choose(frame, ["income"])


def test_a_chosen_column_that_is_gone_is_named():
    columns = Columns.choose(FRAME, ["a", "c"])
    with pytest.raises(ValueError, match=r"attributes names 'c', which is not a column of X"):
        columns.of(FRAME[["a", "b"]])
    with pytest.raises(ValueError, match="attributes has the index 2, but X has 2 columns"):
        columns.of(NUMBERS[:, :2])


@pytest.mark.parametrize("choice", [[], slice(0, 0), [False] * 3, lambda X: []])
def test_choosing_nothing_is_refused(choice):
    with pytest.raises(ValueError, match=r"attributes chooses no column; .*PlattScaling\(\)"):
        Columns.choose(FRAME, choice)


@pytest.mark.parametrize("table", [None, FRAME["a"], 3])
def test_columns_of_what_is_no_table(table):
    with pytest.raises(TypeError, match=r"^X must be a numpy array"):
        Columns.choose(table, ["a"])
    with pytest.raises(TypeError, match=r"^X must be a numpy array"):
        Columns.choose(FRAME, ["a"]).of(table)
