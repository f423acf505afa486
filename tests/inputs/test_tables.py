"""Tables of pandas, polars and pyarrow are read alike."""

import datetime
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

from caltree._inputs.attributes import Attribute, Attributes, learn

from .test_attributes import NAN, column, objects, same, words


def test_arrays_import_no_more_of_narwhals_than_scikit_learn_does():
    code = (
        "import sys; import numpy as np; import sklearn.base;"
        "before = {name for name in sys.modules if 'narwhals' in name};"
        "from caltree._inputs.attributes import learn;"
        "learn(np.ones((2, 2)))[0].encode(np.ones((2, 2)));"
        "sys.exit(before != {name for name in sys.modules if 'narwhals' in name})"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def frame(library, columns):
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


libraries = pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
COLUMNS = {"n": [1, 2, 3], "f": [0.5, None, 2.5], "b": [True, False, True], "s": ["v", None, "u"]}


@libraries
def test_a_table(library):
    attributes, encoded = learn(frame(library, COLUMNS))
    assert attributes == Attributes(
        (
            Attribute("n", None, 2.0),
            Attribute("f", None, 1.5, has_missing=True),
            Attribute("b", (False, True), 1.0),
            Attribute("s", ("u", "v"), 0.0, has_missing=True),
        ),
        ("n", "f", "b", "s"),
    )
    assert encoded.flags.f_contiguous
    assert same(encoded, [[1, 0.5, 1, 1], [2, NAN, 0, NAN], [3, 2.5, 1, 0]])
    new = {"n": [7], "f": [math.inf], "b": [False], "s": ["w"]}
    assert attributes.encode(frame(library, new)).tolist() == [[7.0, math.inf, 0.0, 0.0]]


@libraries
def test_names_are_checked(library):
    attributes, _ = learn(frame(library, {"a": [1.0], "b": [2.0]}))
    with pytest.raises(ValueError, match=r"X lacks \['b'\], .*fitted with$"):
        attributes.encode(frame(library, {"a": [1.0]}))
    with pytest.raises(ValueError, match=r"X lacks .*\['b'\].*; it has \['c'\] instead"):
        attributes.encode(frame(library, {"a": [1.0], "c": [1.0]}))
    with pytest.raises(ValueError, match=r"X has 3 attributes, but the .* was fitted with 2"):
        attributes.encode(np.ones((1, 3)))
    with pytest.warns(UserWarning, match=r"X does not have valid feature names, but .* with feat"):
        assert attributes.encode(np.array([[5.0, 6.0]])).tolist() == [[5.0, 6.0]]
    with pytest.warns(UserWarning, match=r"X has feature names, but .* fitted without"):
        encoded = learn(np.ones((1, 2)))[0].encode(frame(library, {"a": [5.0], "b": [6.0]}))
    assert encoded.tolist() == [[5.0, 6.0]]


@libraries
def test_columns_are_taken_by_name(library):
    attributes, encoded = learn(frame(library, {"a": [1.0, 2.0], "b": ["u", "v"]}))
    other = frame(
        library, {"when": [datetime.datetime(2020, 1, 1)] * 2, "b": ["u", "v"], "a": [1.0, 2.0]}
    )
    assert same(attributes.encode(other), encoded)


@libraries
def test_columns_chosen_by_name(library):
    table = frame(library, {"a": [1, 2, 2], "b": [7, 5, 7]})
    attributes, encoded = learn(table, categorical_features=["b"])
    assert [c.categories for c in attributes.columns] == [None, (5, 7)]
    assert encoded[:, 1].tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(ValueError, match=r"names 'c', .* columns are \['a', 'b'\]"):
        learn(table, categorical_features=["c"])


@libraries
def test_kept_rows_of_a_table(library):
    keep = np.array([False, True, True])
    attributes, encoded = learn(frame(library, COLUMNS), keep=keep, sample_weight=np.ones(2))
    assert attributes.fills.tolist() == [2.5, 2.5, 0.0, 0.0]
    assert attributes.columns[3].categories == ("u",)
    assert same(encoded, [[2, NAN, 0, NAN], [3, 2.5, 1, 0]])


@libraries
@pytest.mark.parametrize(
    "values", [[datetime.datetime(2020, 1, 1)], [datetime.timedelta(1)], [[1, 2]], [b"a"]]
)
def test_strange_columns_are_refused(library, values):
    with pytest.raises(TypeError, match=r"attribute 'odd' of X .*(numbers or strings|all numbers)"):
        learn(frame(library, {"a": [1.0], "odd": values}))


@libraries
def test_a_table_without_rows_or_columns(library):
    with pytest.raises(ValueError, match="0 row"):
        learn(frame(library, {"a": []}))
    with pytest.raises(ValueError, match=r"0 (row|feature)\(s\)"):
        learn(frame(library, {}))
    attributes, _ = learn(frame(library, COLUMNS))
    assert attributes.encode(frame(library, COLUMNS)[:0]).shape == (0, 4)


@libraries
def test_a_column_of_nulls(library):
    attributes, encoded = learn(frame(library, {"a": [None, None]}))
    assert attributes.columns[0] == Attribute("a", None, 0.0, has_missing=True)
    assert same(encoded, [[NAN], [NAN]])
    assert same(attributes.encode(frame(library, {"a": [1, None]})), [[1.0], [NAN]])


def test_pandas_types():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(
        {
            "integer": pd.array([1, None, 3], dtype="Int64"),
            "boolean": pd.array([True, None, True], dtype="boolean"),
            "string": pd.array(["b", pd.NA, "a"], dtype="string"),
            "object": pd.Series(["b", pd.NaT, "a"], dtype=object),
            "objects": pd.Series([2, pd.NA, 4.5], dtype=object),
            "category": pd.Categorical(["m", None, "l"], categories=["s", "m", "l"]),
            "ordered": pd.Categorical(["m", None, "l"], categories=["s", "m", "l"], ordered=True),
            "numbers": pd.Categorical([3, None, 1], categories=[3, 2, 1]),
            "mixed": pd.Categorical([True, None, "x"], categories=["x", True, 2.5]),
            "sparse": pd.arrays.SparseArray([0.0, 1.0, 0.0]),
        }
    )
    attributes, encoded = learn(X)
    assert {c.name: c.categories for c in attributes.columns} == {
        "integer": None,
        "boolean": (False, True),
        "string": ("a", "b"),
        "object": ("a", "b"),
        "objects": None,
        "category": ("s", "m", "l"),
        "ordered": ("s", "m", "l"),
        "numbers": (3, 2, 1),
        "mixed": ("x", True, 2.5),
        "sparse": None,
    }
    assert repr(attributes.columns[7].categories + attributes.columns[8].categories) == (
        "(3, 2, 1, 'x', True, 2.5)"
    )
    assert same(encoded[0], [1, 1, 1, 1, 2, 1, 1, 0, 1, 0])
    assert same(encoded[1], [NAN] * 9 + [1])
    assert same(attributes.encode(X), encoded)
    plain = X.assign(numbers=[1.0, 9.0, NAN], integer=pd.Categorical([5, 6, 5]))
    assert same(attributes.encode(plain)[:, 7], [2.0, 0.0, NAN])
    assert same(attributes.encode(plain)[:, 0], [5.0, 6.0, 5.0])


def test_pandas_objects_chosen_as_categories():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"a": pd.Series([7, None, 5], dtype=object)})
    attribute, encoded = column(X, categorical_features=["a"])
    assert attribute.categories == (5, 7)
    assert same(encoded, [1.0, NAN, 0.0])


def test_pandas_categories_become_plain_scalars():
    pd = pytest.importorskip("pandas")
    declared = pd.CategoricalDtype(pd.Index([np.int64(4), "x"], dtype=object))
    attribute, _ = column(pd.DataFrame({"a": pd.Series(["x"], dtype=declared)}))
    assert [type(category) for category in attribute.categories] == [int, str]


def test_pandas_columns_without_values():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(
        {
            "string": pd.array([None, None], dtype="string"),
            "boolean": pd.array([None, None], dtype="boolean"),
            "category": pd.Categorical([None, None], categories=["a", "b"]),
        }
    )
    attributes, encoded = learn(X)
    assert [c.categories for c in attributes.columns] == [(), (False, True), ("a", "b")]
    assert np.isnan(encoded).all() and attributes.fills.tolist() == [0.0, 0.0, 0.0]
    new = pd.DataFrame({"string": ["a"], "boolean": [True], "category": ["b"]})
    assert same(attributes.encode(new), [[NAN, 1.0, 1.0]])
    numeric = learn(pd.DataFrame({"category": [1.0]}))[0]
    assert same(numeric.encode(X[["category"]]), [[NAN], [NAN]])


def test_pandas_categories_that_are_neither_strings_nor_numbers():
    pd = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="'bin' of X has categories of type interval"):
        learn(pd.DataFrame({"bin": pd.cut([1.0, 5.0], [0, 2, 6])}))
    with pytest.raises(ValueError, match="infinity among the categories of attribute 'c'"):
        learn(pd.DataFrame({"c": pd.Categorical([1.0, math.inf])}))


def test_pandas_names():
    pd = pytest.importorskip("pandas")
    assert learn(pd.DataFrame(np.ones((2, 2))))[0].names is None
    assert [c.name for c in learn(pd.DataFrame(np.ones((2, 2))))[0].columns] == ["x0", "x1"]
    with pytest.raises(TypeError, match="strings and others that are not"):
        learn(pd.DataFrame(np.ones((2, 2)), columns=["a", 1]))
    with pytest.raises(ValueError, match=r"X has duplicate column names; rename them.*'a'"):
        learn(pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]))


def test_a_series_is_no_table():
    pd = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match=r"X must be .*, got Series"):
        learn(pd.Series([1.0]))


def test_pandas_on_pyarrow():
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    dictionary = pa.array(["b", None, "a"]).dictionary_encode()
    X = pa.table({"i": [1, None, 3], "d": dictionary}).to_pandas(types_mapper=pd.ArrowDtype)
    attributes, encoded = learn(X)
    assert [c.categories for c in attributes.columns] == [None, ("a", "b")]
    assert same(encoded, [[1.0, 1.0], [NAN, NAN], [3.0, 0.0]])


def test_polars_types():
    pl = pytest.importorskip("polars")
    X = pl.DataFrame(
        {
            "integer": [2**53 + 1, None, 2**53],
            "nan": [1.0, NAN, None],
            "boolean": [None, None, None],
            "decimal": ["1.5", None, "2.5"],
            "category": ["b", None, "a"],
            "enum": ["m", None, "l"],
        },
        schema_overrides={"boolean": pl.Boolean, "category": pl.Categorical},
    ).with_columns(
        pl.col("decimal").cast(pl.Decimal(10, 2)), pl.col("enum").cast(pl.Enum(["s", "m", "l"]))
    )
    attributes, encoded = learn(X, categorical_features=["integer"])
    assert [c.categories for c in attributes.columns] == [
        (2**53, 2**53 + 1), None, (False, True), None, ("a", "b"), ("s", "m", "l")
    ]  # fmt: skip
    assert same(encoded[0], [1.0, 1.0, NAN, 1.5, 1.0, 1.0])
    assert np.isnan(encoded[1]).all()
    assert same(attributes.encode(X), encoded)
    with pytest.raises(TypeError, match="X is a lazy LazyFrame; collect it first"):
        learn(X.lazy())


def test_pyarrow_dictionaries():
    pa = pytest.importorskip("pyarrow")
    text = pa.chunked_array([pa.array(part).dictionary_encode() for part in (["c", None], ["a"])])
    number = pa.array([7, None, 5]).dictionary_encode()
    X = pa.table({"text": text, "number": number})
    attributes, encoded = learn(X)
    assert [c.categories for c in attributes.columns] == [("a", "c"), (5, 7)]
    assert same(encoded, [[1.0, 1.0], [NAN, NAN], [0.0, 0.0]])
    assert same(attributes.encode(X), encoded)
    with pytest.raises(ValueError, match="duplicate column names"):
        learn(pa.table([pa.array([1]), pa.array([2])], names=["a", "a"]))


@settings(deadline=None)
@given(words)
def test_every_library_gives_the_same(values):
    pa, pd, pl = map(pytest.importorskip, ("pyarrow", "pandas", "polars"))
    expected, codes = learn(objects(*values), categorical_features=[0])
    tables = [
        pd.DataFrame({"x0": pd.array(values, dtype="string")}),
        pl.DataFrame({"x0": values}, schema={"x0": pl.String}),
        pa.table({"x0": pa.array(values, type=pa.string())}),
    ]
    for table in tables:
        attributes, encoded = learn(table)
        assert attributes.columns == expected.columns
        assert same(encoded, codes)
        assert same(attributes.encode(table), codes)
