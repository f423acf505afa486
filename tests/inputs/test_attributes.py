"""Tables of every kind become one matrix, and new rows are encoded as the training rows were."""

import datetime
import decimal
import json
import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from caltree._inputs.attributes import Attribute, Attributes, learn

NAN = math.nan


def same(actual, expected):
    return np.array_equal(actual, np.array(expected, dtype=float), equal_nan=True)


def column(values, **options):
    """Learn a table of one column, as its attribute and its encoded values."""
    attributes, encoded = learn(values, **options)
    return attributes.columns[0], encoded[:, 0]


def objects(*values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array


# Arrays


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_float64_array_is_passed_through(order):
    X = np.array([[1.0, NAN], [3.0, 5.0]], order=order)
    attributes, encoded = learn(X)
    assert encoded is X
    assert attributes.encode(X) is X
    assert attributes == Attributes(
        (Attribute("x0", None, 2.0), Attribute("x1", None, 5.0, has_missing=True)), None
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint64, ">f8"])
def test_other_numbers_are_converted(dtype):
    _, encoded = learn(np.array([[1, 2], [3, 4]], dtype=dtype))
    assert encoded.dtype == np.float64 and encoded.flags.f_contiguous
    assert encoded.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_a_strided_array_becomes_contiguous():
    _, encoded = learn(np.arange(24.0).reshape(4, 6)[::2, ::2])
    assert encoded.flags.f_contiguous
    assert encoded.tolist() == [[0.0, 2.0, 4.0], [12.0, 14.0, 16.0]]


def test_booleans_always_have_both_categories():
    attribute, encoded = column(np.array([[True], [True]]))
    assert attribute == Attribute("x0", (False, True), 1.0)
    assert encoded.tolist() == [1.0, 1.0]


def test_strings_are_sorted_categories():
    attributes, encoded = learn(np.array([["b", "x"], ["a", "x"], ["b", "y"]]))
    assert [c.categories for c in attributes.columns] == [("a", "b"), ("x", "y")]
    assert all(type(c) is str for c in attributes.columns[0].categories)
    assert encoded.tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    assert attributes.n_categories.tolist() == [2, 2] and attributes.n_categories.dtype == np.int32
    assert attributes.fills.tolist() == [1.0, 0.0] and attributes.fills.dtype == np.float64


@pytest.mark.parametrize(
    "values, categories, codes",
    [
        ((1, 2.5, None, np.float32(4), NAN), None, [1.0, 2.5, NAN, 4.0, NAN]),
        (("b", None, NAN, "a", np.str_("b")), ("a", "b"), [1.0, NAN, NAN, 0.0, 1.0]),
        ((True, None, np.False_, NAN, True), (False, True), [1.0, NAN, 0.0, NAN, 1.0]),
        ((None, NAN), None, [NAN, NAN]),
    ],
)
def test_objects_of_one_kind(values, categories, codes):
    attribute, encoded = column(objects(*values))
    assert attribute.categories == categories
    assert same(encoded, codes)


@pytest.mark.parametrize(
    "values, found, row",
    [
        (("a", None, 3), "int", 2),
        ((1.5, NAN, "a"), "str", 2),
        ((NAN, "a", 1.5), "float", 2),
        ((True, 2), "int", 1),
        ((1, [2]), "list", 1),
        (({}, "a"), "dict", 0),
        ((1, decimal.Decimal(2)), "Decimal", 1),
        ((b"a",), "bytes", 0),
        ((1, 2j), "complex", 1),
        ((None, datetime.date(2020, 1, 1)), "date", 1),
        ((1, np.timedelta64(3, "s")), "timedelta64", 1),
    ],
)
def test_mixtures_and_strange_objects_are_refused(values, found, row):
    message = f"attribute 'x0' of X has a {found} in row {row}; its values must"
    with pytest.raises(TypeError, match=message):
        learn(objects(*values))


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]", "S3"])
def test_strange_arrays_are_refused(dtype):
    with pytest.raises(TypeError, match=r"attribute 'x0' of X is of type .*numbers or strings"):
        learn(np.zeros((2, 2), dtype=dtype))


def test_a_list_of_rows_keeps_numbers_beside_strings():
    attributes, encoded = learn([[1, "b"], [2.5, "a"]])
    assert [c.categories for c in attributes.columns] == [None, ("a", "b")]
    assert encoded.tolist() == [[1.0, 1.0], [2.5, 0.0]]


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
def test_sparse_is_made_dense(make):
    attributes, encoded = learn(make([[0.0, 2.0], [4.0, 0.0]]))
    assert encoded.tolist() == [[0.0, 2.0], [4.0, 0.0]]
    assert attributes.encode(make([[1.0, 0.0]])).tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("X", [np.zeros(3), [1.0, 2.0], np.zeros((2, 2, 2))])
def test_other_dimensions_are_refused(X):
    with pytest.raises(ValueError, match=r"X must have rows and columns.*reshape"):
        learn(X)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="rows of one length"):
        learn([[1, 2], [3]])


@pytest.mark.parametrize("X", [3, "table", {"a": [1]}, None, iter([[1]])])
def test_other_types_are_refused(X):
    with pytest.raises(TypeError, match=f"X must be .*, got {type(X).__name__}$"):
        learn(X)


def test_a_masked_array_is_refused():
    with pytest.raises(TypeError, match="masked"):
        learn(np.ma.masked_equal([[1.0]], 1.0))


def test_an_empty_table_cannot_be_learned():
    with pytest.raises(ValueError, match=r"X has 0 row\(s\) \(shape=\(0, 3\)\)"):
        learn(np.zeros((0, 3)))
    with pytest.raises(ValueError, match=r"X has 0 feature\(s\) \(shape=\(3, 0\)\)"):
        learn(np.zeros((3, 0)))
    with pytest.raises(ValueError, match=r"0 row\(s\) of positive weight"):
        learn(np.zeros((3, 1)), keep=np.zeros(3, dtype=bool))


def test_no_rows_can_be_encoded():
    attributes, _ = learn([[1, "a"]])
    assert attributes.encode(np.empty((0, 2), dtype=object)).shape == (0, 2)
    assert learn(np.ones((1, 3)))[0].encode(np.empty((0, 3))).shape == (0, 3)


# Fills, weights and the rows to keep


def test_weights_decide_the_fills():
    X = [[1.0, "b"], [2.0, "a"], [None, "a"], [6.0, None]]
    weight = np.array([1.0, 2.0, 3.0, 1.0])
    assert learn(X)[0].fills.tolist() == [3.0, 0.0]
    assert learn(X, sample_weight=weight)[0].fills.tolist() == [11 / 4, 0.0]
    assert learn(X, sample_weight=weight[::-1])[0].fills.tolist() == [13 / 5, 0.0]
    assert learn(X, sample_weight=np.array([9.0, 1, 1, 1]))[0].fills[1] == 1.0


def test_the_first_of_equally_frequent_categories_fills():
    assert column(np.array([["b"], ["a"], ["c"], ["c"], ["b"]]))[0].fill == 1.0


@pytest.mark.parametrize("rows", [1, 3, 50_000])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_means_agree_with_numpy_in_either_order(rows, missing):
    rng = np.random.default_rng(rows)
    X, weight = rng.normal(5.0, 1.0, (rows, 3)), rng.random(rows) + 0.1
    X[1:][rng.random((rows - 1, 3)) < missing] = NAN
    present = ~np.isnan(X)
    expected = (np.where(present, X, 0) * weight[:, None]).sum(0) / (present * weight[:, None]).sum(
        0
    )
    by_row = learn(X, sample_weight=weight)[0].fills
    assert by_row == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(learn(np.asfortranarray(X), sample_weight=weight)[0].fills, by_row)
    assert learn(X)[0].fills == pytest.approx(np.nanmean(X, axis=0), rel=1e-12)


def test_the_mean_of_huge_numbers_does_not_overflow():
    largest = np.finfo(np.float64).max
    assert learn(np.full((1000, 1), largest))[0].fills[0] == pytest.approx(largest, rel=1e-12)
    assert learn(np.array([[largest], [-largest], [largest]]))[0].fills[0] == largest / 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rounded_up, _ = learn(np.full((2, 1), largest), sample_weight=np.array([0.1, 0.5]))
    assert rounded_up.fills[0] == largest


@pytest.mark.parametrize("value", [math.inf, -math.inf])
@pytest.mark.parametrize("other", [0.0, math.inf, -math.inf, NAN])
def test_infinity_is_named(value, other):
    X = np.zeros((30, 2))
    X[17, 1], X[20, 1] = value, other
    with pytest.raises(ValueError, match=r"infinity in attribute 'x1' \(row 17\); replace it or"):
        learn(X)
    keep = np.arange(30) % 2 == 1
    with pytest.raises(ValueError, match=r"\(row 17\)"):
        learn(X, keep=keep)
    assert learn(X[:, :1])[0].encode(X[:, 1:])[17, 0] == value
    if math.isfinite(other):
        learn(X, keep=~keep)


def test_rows_left_out_are_as_if_absent():
    X = [[1.0, "a", 5], [2.0, "b", 6], [4.0, "c", 7]]
    keep = np.array([True, False, True])
    attributes, encoded = learn(X, keep=keep, categorical_features=[2])
    expected, expected_rows = learn([X[0], X[2]], categorical_features=[2])
    assert attributes == expected
    assert [c.categories for c in attributes.columns] == [None, ("a", "c"), (5, 7)]
    assert np.array_equal(encoded, expected_rows)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_numbers_left_out(order):
    X = np.arange(8.0).reshape(4, 2).copy(order)
    keep = np.array([True, False, False, True])
    attributes, encoded = learn(X, keep=keep, sample_weight=np.array([1.0, 3.0]))
    assert encoded.tolist() == [[0.0, 1.0], [6.0, 7.0]] and encoded.flags.f_contiguous
    assert attributes.fills.tolist() == [4.5, 5.5]


def test_memory_stays_small():
    X = np.ones((100_000, 20))
    tracemalloc.start()
    learn(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


# Columns without a value


def test_a_numeric_column_without_values():
    for X in (np.full((2, 1), NAN), objects(None, None)):
        attributes, encoded = learn(X)
        assert attributes.columns == (Attribute("x0", None, 0.0, has_missing=True),)
        assert same(encoded, [[NAN], [NAN]])
        assert same(attributes.encode(objects(3, None)), [[3.0], [NAN]])


def test_a_nominal_column_without_values():
    attributes, encoded = learn(objects(None, None), categorical_features=[0])
    assert attributes.columns == (Attribute("x0", (), 0.0, has_missing=True),)
    assert attributes.n_categories.tolist() == [0]
    assert same(encoded, [[NAN], [NAN]])
    for new in (objects("a", None), objects(3, None), np.array([[True], [False]])):
        assert same(attributes.encode(new), [[NAN], [NAN]])


# Nominal on demand


@pytest.mark.parametrize("features", [[1], [False, True], np.array([False, True]), [np.int64(1)]])
def test_numbers_as_categories(features):
    X = np.array([[1, 30], [2, 10], [3, 30]])
    attributes, encoded = learn(X, categorical_features=features)
    assert [c.categories for c in attributes.columns] == [None, (10, 30)]
    assert all(type(c) is int for c in attributes.columns[1].categories)
    assert encoded[:, 1].tolist() == [1.0, 0.0, 1.0]
    for new in (X, X.astype(float), X.astype(object), X.tolist()):
        assert attributes.encode(new)[:, 1].tolist() == [1.0, 0.0, 1.0]
    unseen = attributes.encode([[1, 99], [1, math.inf], [1, None], [1, 10.5]])[:, 1]
    assert same(unseen, [1.0, 1.0, NAN, 1.0])


def test_fractions_as_categories():
    attribute, encoded = column(np.array([[0.5], [NAN], [-0.0], [0.0]]), categorical_features=[0])
    assert attribute.categories == (0.0, 0.5) and attribute.fill == 0.0
    assert math.copysign(1, attribute.categories[0]) == 1.0
    assert same(encoded, [1.0, NAN, 0.0, 0.0])


@pytest.mark.parametrize("make", [np.array, lambda v: objects(*np.ravel(v).tolist())])
def test_large_integers_stay_apart(make):
    values = make([[2**53], [2**53 + 1]])
    attributes, encoded = learn(values, categorical_features=[0])
    assert attributes.columns[0].categories == (2**53, 2**53 + 1)
    assert np.array_equal(attributes.encode(values), encoded)


def test_infinity_is_no_category():
    with pytest.raises(ValueError, match="infinity among the categories of attribute 'x0'"):
        learn(np.array([[1.0], [math.inf]]), categorical_features=[0])


@pytest.mark.parametrize(
    "features, error, message",
    [
        (["income"], ValueError, "names 'income', which is not a column"),
        ([2], ValueError, "index 2, but X has 2 columns; use 0 to 1"),
        ([-1], ValueError, "index -1"),
        ([True], ValueError, "mask of length 1, but X has 2 columns"),
        ([1.0], TypeError, "got 1.0"),
        ([0, True], TypeError, "got True"),
        ("x1", TypeError, r"must be a list; use \['x1'\]"),
    ],
)
def test_wrong_categorical_features_are_named(features, error, message):
    with pytest.raises(error, match=f"categorical_features .*{message}"):
        learn(np.zeros((3, 2)), categorical_features=features)


def test_an_empty_list_of_categorical_features():
    X = np.zeros((3, 2))
    assert learn(X, categorical_features=[])[1] is X


# New rows


def test_unseen_categories_become_the_most_frequent():
    attributes, _ = learn(objects("a", "c", "c"))
    assert same(attributes.encode(objects("b", "a", None, "c")), [[1.0], [0.0], [NAN], [1.0]])


def test_the_width_must_agree():
    attributes, _ = learn(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"^X has 3 attributes, .* fitted with 4$"):
        attributes.encode(np.ones((2, 3)))


def test_kinds_must_agree():
    numeric, nominal = learn(np.ones((2, 1)))[0], learn(objects("a", "b"))[0]
    numbers = learn(np.ones((2, 1)), categorical_features=[0])[0]
    with pytest.raises(TypeError, match=r"attribute 'x0' of X holds strings, .*with numbers"):
        numeric.encode(objects("1", None))
    with pytest.raises(TypeError, match=r"attribute 'x0' of X holds strings, .*with numbers"):
        numbers.encode(objects("1", None))
    for new in (np.ones((1, 1)), objects(1.0), np.array([[True]])):
        with pytest.raises(TypeError, match=r"attribute 'x0' of X holds numbers, .*with strings"):
            nominal.encode(new)
    for attributes in (numeric, nominal, numbers):
        assert same(attributes.encode(np.full((2, 1), NAN)), [[NAN], [NAN]])


def test_booleans_and_numbers_agree_by_value():
    numeric, boolean = learn(np.array([[2.0], [3.0]]))[0], learn(np.array([[True], [False]]))[0]
    assert numeric.encode(np.array([[True], [False]])).tolist() == [[1.0], [0.0]]
    assert same(boolean.encode(np.array([[1.0], [0.0], [NAN]])), [[1.0], [0.0], [NAN]])


words = st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=20)


@given(words, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    X = objects(*values)
    attributes, encoded = learn(X)
    shuffled_attributes, shuffled = learn(X[order])
    assert shuffled_attributes == attributes
    assert same(shuffled, encoded[order])
    assert same(attributes.encode(X[order]), encoded[order])


# Storage

numbers = st.floats(allow_nan=False, allow_infinity=False)
categories = st.lists(
    st.one_of(st.text(max_size=3), st.integers(), st.booleans(), numbers), unique=True, max_size=5
)


@st.composite
def attribute_tables(draw):
    names = draw(st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True))
    columns = []
    for name in names:
        known = draw(st.one_of(st.none(), categories))
        code = st.integers(0, max(1, len(known or ())) - 1)
        fill = draw(numbers if known is None else code)
        columns.append(
            Attribute(
                name,
                None if known is None else tuple(known),
                float(fill),
                draw(st.booleans()),
            )
        )
    return Attributes(tuple(columns), draw(st.sampled_from([None, tuple(names)])))


@given(attribute_tables())
def test_storage_is_exact(attributes):
    stored = json.dumps(attributes.to_dict(), allow_nan=False)
    restored = Attributes.from_dict(json.loads(stored))
    assert restored == attributes
    assert repr(restored) == repr(attributes)  # equality alone takes 1, 1.0 and True for one


def stored_column(**changes):
    stored = {"name": "a", "categories": ["u", "v"], "fill": 1.0, "has_missing": True}
    return stored | changes


@pytest.mark.parametrize(
    "stored",
    [
        None,
        {},
        {"names": None},
        {"names": None, "columns": []},
        {"names": None, "columns": "a"},
        {"names": None, "columns": [[]]},
        {"names": None, "columns": [{"name": "a"}]},
        {"names": None, "columns": [stored_column(extra=1)]},
        {"names": None, "columns": [stored_column(name=1)]},
        {"names": None, "columns": [stored_column(has_missing=0)]},
        {"names": None, "columns": [stored_column(), stored_column()]},
        {"names": ["b"], "columns": [stored_column()]},
        {"names": "a", "columns": [stored_column()]},
        {"names": ["a", "b"], "columns": [stored_column()]},
        *(
            {"names": ["a"], "columns": [stored_column(categories=bad)]}
            for bad in (
                "uv",
                ["u", "u"],
                [1, 1.0],
                [None, "u"],
                [NAN, 1.0],
                [math.inf, 1.0],
                [[], 1],
            )
        ),
        *(
            {"names": ["a"], "columns": [stored_column(fill=bad)]}
            for bad in (2, -1, 0.5, NAN, math.inf, "0", None, True)
        ),
        {"names": ["a"], "columns": [stored_column(categories=None, fill=NAN)]},
        {"names": ["a"], "columns": [stored_column(categories=[], fill=1)]},
    ],
)
def test_malformed_storage_is_refused(stored):
    with pytest.raises(ValueError, match=r"stored attributes are malformed: .* cannot be"):
        Attributes.from_dict(stored)


def test_well_formed_storage_is_accepted():
    restored = Attributes.from_dict({"names": ["a"], "columns": [stored_column(fill=1)]})
    assert restored == Attributes((Attribute("a", ("u", "v"), 1.0, has_missing=True),), ("a",))
