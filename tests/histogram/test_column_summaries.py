"""Summaries of the parts of a table, merged."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from caltree._fitted.fingerprint import Fingerprint
from caltree._histogram.summaries import (
    NominalSummary,
    NumericSummary,
    TableSummary,
    learn_bins,
    merge_summaries,
)
from caltree._inputs.hashing import SIZE, SmallestHashes
from caltree._inputs.indexing import take_rows

from ..support.histogram_cases import chunks_of, examples, histogram_tree
from ..support.trees import make_frame


def summarise(X, max_bins=255, keep=None, weights=None, nominal=None):
    return TableSummary.of(X, keep, weights, nominal, max_bins)


def cut_up(X, n_parts):
    borders = np.linspace(0, len(X), n_parts + 1).astype(int)
    return [take_rows(X, slice(a, b)) for a, b in pairwise(borders)]


# Summaries


@pytest.mark.parametrize("n_parts", [1, 2, 7])
@pytest.mark.parametrize("max_bins", [255, 5])
def test_parts_tell_what_the_whole_tells(n_parts, max_bins):
    frame, _, _ = make_frame(300)
    whole = summarise(frame, max_bins)
    merged = merge_summaries([summarise(part, max_bins) for part in cut_up(frame, n_parts)])
    assert merged.labels == whole.labels == tuple(frame.columns)
    for one, other in zip(merged.columns, whole.columns, strict=True):
        assert type(one) is type(other)
        if isinstance(one, NumericSummary):
            assert (one.values is None) == (other.values is None)
            assert one.values is None or np.array_equal(one.values, other.values)
        else:
            assert one == other
    assert merged.attributes() == whole.attributes()
    kinds = [isinstance(column, NumericSummary) for column in whole.columns]
    assert kinds == [True, False, False, False, True, False]


def test_numbers_are_many_if_all_parts_together_have_many():
    parts = [np.arange(3.0), np.arange(2.0, 5.0)]
    seen = [NumericSummary(part) for part in parts]
    assert seen[0].merge(seen[1], 5).values.tolist() == [0, 1, 2, 3, 4]
    assert seen[0].merge(seen[1], 4).values is None
    assert seen[0].merge(NumericSummary(None), 10).values is None
    assert NumericSummary(np.empty(0)).is_empty and not NumericSummary(None).is_empty


def test_the_weight_of_a_category_is_that_of_its_rows():
    X = pd.DataFrame({"a": ["x", "y", "y", "z", None]})
    keep = np.array([True, True, True, False, True])
    seen = summarise(X, keep=keep, weights=np.array([5.0, 1.0, 2.0, 9.0]))
    assert seen.columns[0].totals == {"x": 5.0, "y": 3.0}
    attributes = seen.attributes().columns[0]
    assert attributes.categories == ("x", "y") and attributes.fill == 0.0
    other = summarise(pd.DataFrame({"a": ["y", "y", "w"]}))
    both = seen.merge(other).attributes().columns[0]
    assert both.categories == ("w", "x", "y") and both.fill == 1.0
    more = seen.merge(other).merge(other).attributes().columns[0]
    assert more.fill == 2.0


def test_declared_categories_count_without_a_row():
    values = pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"])
    one = summarise(pd.DataFrame({"size": values}))
    assert one.merge(one).attributes().columns[0].categories == ("c", "b", "a")
    # Parts that declare others know only what their rows have.
    other = summarise(pd.DataFrame({"size": pd.Categorical(["d", "a"], categories=["d", "a"])}))
    assert one.merge(other).attributes().columns[0].categories == ("a", "b", "d")
    text = summarise(pd.DataFrame({"size": ["a"]}))
    assert one.merge(text).columns[0].declared is None


def test_a_part_without_a_value_goes_with_any():
    """It may look like numbers or like categories."""
    empty = pd.DataFrame({"a": pd.Series([None, None], dtype=object)})
    text = pd.DataFrame({"a": ["x", "y"]})
    numbers = pd.DataFrame({"a": [1.0, 2.0]})
    missing = pd.DataFrame({"a": [np.nan, np.nan]})
    for nothing in (empty, missing):
        for other in (text, numbers):
            for parts in ((nothing, other), (other, nothing)):
                found = merge_summaries([summarise(part) for part in parts]).columns[0]
                if other is numbers:
                    assert found.values.tolist() == [1.0, 2.0]
                else:
                    assert found == NominalSummary({"x": 1.0, "y": 1.0}, None, True, 2)


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (["x", "y"], [1.0, 2.0], "'shade' of X holds numbers in some rows and categories"),
        ([1.0, 2.0], ["x", "y"], "'shade' of X holds numbers in some rows and categories"),
        ([True, False], [1.0, 2.0], "'shade' of X holds numbers in some rows and categories"),
        ([True, False], ["x", "y"], "'shade' of X holds numbers in some rows and strings"),
    ],
)
def test_columns_that_change_their_type_are_refused(one, other, message):
    parts = [pd.DataFrame({"fine": [0.0, 1.0], "shade": values}) for values in (one, other)]
    with pytest.raises(TypeError, match=message):
        merge_summaries([summarise(part) for part in parts]).attributes()


def test_parts_with_other_columns_are_refused():
    one, other = (summarise(pd.DataFrame({name: [1.0]})) for name in ("a", "b"))
    with pytest.raises(ValueError, match=r"X has the attributes \['a'\] in some of its parts and"):
        one.merge(other)
    with pytest.raises(ValueError, match="give all parts the same columns"):
        one.merge(summarise(pd.DataFrame({"a": [1.0], "b": [2.0]})))


def test_objects_that_change_their_type_are_refused_by_name():
    frame, y, scores = make_frame(200)
    frame["shade"] = pd.Series([*["light"] * 100, *[1.5] * 100], dtype=object)
    with chunks_of(50), pytest.raises(TypeError, match="attribute 'shade' of X holds numbers in"):
        histogram_tree().fit(frame, y, scores)


def test_a_column_without_a_value_is_never_split_on():
    frame, y, scores = make_frame(300)
    frame["nothing"] = pd.Series([None] * 300, dtype=object)
    frame["nan"] = np.nan
    with chunks_of(90):
        tree = histogram_tree().fit(frame, y, scores)
    assert tree.get_n_leaves() > 1
    assert not np.isin(tree.model_.attribute, [6, 7]).any()


@pytest.mark.parametrize("max_bins", [255, 4])
def test_bins_and_means_are_learned_from_a_sample(max_bins):
    X = np.array([[1.0, 0.0], [2.0, 1.0], [4.0, np.nan], [8.0, 1.0], [np.nan, 0.0], [16.0, 1.0]])
    seen = summarise(X, max_bins, nominal=[1])
    known = seen.attributes()
    weights = np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0])
    complete, bins = learn_bins(seen, known, known.encode(X), weights)
    assert complete.columns[0].fill == pytest.approx((1 + 2 + 8 + 8 + 16) / 6)
    assert bins.numeric.tolist() == [1, 0]
    if max_bins == 255:
        assert bins.n_bins.tolist() == [5, 2] and bins.cuts[0].tolist() == [1.5, 3, 6, 12]
    else:
        assert bins.n_bins[0] <= 4 and set(bins.cuts[0]) < {1.5, 3, 6, 12}


def test_unions_of_categories_are_sorted():
    one = NominalSummary({"b": 1.0}, None, n_present=1)
    other = NominalSummary({"a": 2.0, "b": 3.0}, None, n_present=5)
    merged = one.merge(other, 255)
    assert merged.totals == {"a": 2.0, "b": 4.0} and merged.categories("x") == ("a", "b")
    assert NominalSummary({}, None).is_empty and not merged.is_empty


# Hashes


@examples(60)
@given(
    hnp.arrays(np.uint64, st.integers(1, 900), elements=st.integers(0, 2000)),
    st.integers(1, 6),
)
def test_the_smallest_of_parts_are_the_smallest_of_all(hashes, n_parts):
    parts = [part for part in np.array_split(hashes, n_parts) if len(part)]
    merged = Fingerprint.of_smallest(reduce(SmallestHashes.merge, map(SmallestHashes.of, parts)))
    distinct, counts = np.unique(hashes, return_counts=True)
    assert np.array_equal(merged.hashes, distinct[:SIZE])
    assert merged.rows == counts[:SIZE].sum()
    assert merged.single == np.count_nonzero(counts[:SIZE] == 1)
    assert merged.to_dict() == Fingerprint.of(hashes).to_dict()


def test_the_smallest_of_many():
    hashes = np.random.default_rng(0).integers(0, 2**64, 20_000, dtype=np.uint64)
    hashes[5000:10_000] = hashes[:5000]
    merged = reduce(SmallestHashes.merge, map(SmallestHashes.of, np.array_split(hashes, 9)))
    assert Fingerprint.of_smallest(merged).to_dict() == Fingerprint.of(hashes).to_dict()
    assert 0 < merged.n_single < SIZE < merged.n_rows


# Rows


FRAME = pd.DataFrame({"a": np.arange(10.0), "b": list("abcdefghij")})
TABLES = {
    "numpy": np.arange(20.0).reshape(10, 2),
    "list": [[i, 2 * i] for i in range(10)],
    "tuple": tuple((i, 2 * i) for i in range(10)),
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "pyarrow": pa.Table.from_pandas(FRAME),
    "csr": sparse.csr_matrix(np.eye(10)),
    "csc": sparse.csc_array(np.eye(10)),
}


def rows_of(table):
    if sparse.issparse(table):
        return table.toarray().tolist()
    if isinstance(table, pa.Table):
        return table.to_pandas().to_numpy().tolist()
    return [list(row) for row in (table if isinstance(table, list | tuple) else table.to_numpy())]


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("begin", "end"), [(0, 10), (3, 7), (9, 10)])
def test_slices_of_any_table_are_tables(name, begin, end):
    table = TABLES[name]
    part = take_rows(table, slice(begin, end))
    if name == "numpy":
        assert np.shares_memory(part, table)
        assert part.tolist() == table.tolist()[begin:end]
        return
    assert rows_of(part) == rows_of(table)[begin:end]
    if name not in ("csc",):
        assert type(part) is type(table)


def test_columns_of_one_name_can_be_sliced():
    frame = pd.DataFrame(np.arange(12).reshape(6, 2), columns=["a", "a"])
    assert take_rows(frame, slice(2, 4)).to_numpy().tolist() == [[4, 5], [6, 7]]


def test_what_can_only_be_made_an_array_of_is_sliced_as_one():
    class Rows:
        def __array__(self, dtype=None, copy=None):
            return np.arange(8.0).reshape(4, 2)

    assert take_rows(Rows(), slice(1, 3)).tolist() == [[2.0, 3.0], [4.0, 5.0]]


@pytest.mark.parametrize("n_parts", [1, 4])
def test_identifiers_are_found_in_the_parts_together(n_parts):
    rng = np.random.default_rng(0)
    number = rng.permutation(1000)
    frame = pd.DataFrame({"name": [f"c{j}" for j in number], "number": number, "a": number % 250})
    # In each part, every pair of rows is one of its own.
    frame["pair"] = [f"p{j % 500}" for j in range(1000)]
    merged = merge_summaries([summarise(part) for part in cut_up(frame, n_parts)])
    with pytest.warns(UserWarning, match="attributes 'name', 'number' look like identifiers"):
        merged.warn("drop")
    assert merged.attributes("drop").used_names == ["a", "pair"]
    assert merged.attributes("keep").used_names == list(frame.columns)


def test_more_categories_than_histograms_hold_take_no_memory():
    names = pd.DataFrame({"a": [f"c{j}" for j in range(40_000)]})
    others = pd.DataFrame({"a": [f"d{j}" for j in range(40_000)]})
    merged = summarise(names).merge(summarise(others))
    assert merged.columns[0].totals is None
    assert merged.merge(summarise(names)).columns[0].totals is None
    [attribute] = merged.attributes().columns
    assert not attribute.is_used
    with pytest.warns(UserWarning, match=r"\['a'\] have more than 65,534 categories, .* left out"):
        merged.warn("keep")


def test_missing_values_of_any_part_are_remembered():
    whole = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": ["u", "v", "u", "v"]})
    gaps = pd.DataFrame({"a": [np.nan], "b": [None]}, dtype=object)
    for parts, expected in (((whole, whole), False), ((whole, gaps), True), ((gaps, whole), True)):
        known = merge_summaries([summarise(part) for part in parts]).attributes()
        assert [column.has_missing for column in known.columns] == [expected, expected]
