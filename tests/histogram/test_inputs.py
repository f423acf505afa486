"""The same values in other containers give the same tree, and no large copy is made of them."""

from __future__ import annotations

import tracemalloc
from unittest.mock import patch

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from caltree import CalibrationTree
from caltree._histogram import binning, in_process

from ..support.default_trees import rows_with_shift
from ..support.histogram_cases import chunks_of, histogram_tree
from ..support.trees import assert_same, make_frame, make_rows

N_ROWS = 900


@pytest.fixture(scope="module")
def numbers():
    """Numbers of which 32 bits are enough, many of them 0 and some missing."""
    X, y, scores = make_rows(N_ROWS)
    X = X.astype(np.float32).astype(np.float64)
    X[::3, 2] = 0.0
    return X, y, scores, histogram_tree(kept_gain=None).fit(X, y, scores)


NAMES = ["a", "b", "c"]
CONTAINERS = {
    "float32": lambda X: X.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "every other row of a float32 matrix": lambda X: np.repeat(X, 2, axis=0).astype("f4")[::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "other byte order": lambda X: X.astype(">f8"),
    "list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "pandas float32": lambda X: pd.DataFrame(X.astype(np.float32), columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "polars float32": lambda X: pl.DataFrame(X.astype(np.float32), schema=NAMES),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "pyarrow in pieces": lambda X: pa.concat_tables(
        pa.table(dict(zip(NAMES, part.T, strict=True))) for part in np.array_split(X, 5)
    ),
    "pyarrow float32": lambda X: pa.table(dict(zip(NAMES, X.T.astype(np.float32), strict=True))),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_any_container_gives_the_same_tree(name, numbers):
    X, y, scores, expected = numbers
    given = CONTAINERS[name](X)
    with chunks_of(250):
        found = histogram_tree(kept_gain=None).fit(given, y, scores)
    assert expected.get_n_leaves() > 2
    assert_same(expected, found, X, scores, given)
    assert found.fingerprint_.to_dict() == expected.fingerprint_.to_dict()
    assert found.selection_ == expected.selection_


def test_missing_values_are_missing_in_any_table():
    X, y, scores = make_rows(600)
    X[::4, 0] = np.nan
    expected = histogram_tree().fit(X, y, scores)
    nothing = {name: [None if v != v else v for v in X[:, j]] for j, name in enumerate(NAMES)}
    tables = [
        X.astype(object),
        pd.DataFrame(X, columns=NAMES).convert_dtypes(),
        pl.DataFrame(nothing),
        pa.table(nothing),
    ]
    for given in tables:
        found = histogram_tree().fit(given, y, scores)
        assert_same(expected, found, X, scores, given)


def test_categories_are_the_same_in_any_table():
    frame, y, scores = make_frame(700)
    frame = frame.drop(columns=["size"])
    expected = histogram_tree().fit(frame, y, scores)
    assert expected.get_n_leaves() > 2
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    for given in (arrow, pl.from_arrow(arrow), frame.astype(object)):
        with chunks_of(190):
            found = histogram_tree().fit(given, y, scores)
        assert_same(expected, found, frame, scores, given)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16])
def test_whole_numbers_of_any_type(dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, (600, 2))
    y, scores = rows_with_shift(np.where(X[:, 1] > 40, 1.5, -1.5), 600)
    expected, found = (
        histogram_tree().fit(values, y, scores) for values in (X.astype(float), X.astype(dtype))
    )
    assert expected.get_n_leaves() > 1
    assert_same(expected, found, X, scores)


def test_two_columns_of_one_name_are_refused():
    X, y, scores = make_rows(200)
    with pytest.raises(ValueError, match="duplicate column names"):
        histogram_tree().fit(pd.DataFrame(X, columns=["a", "b", "a"]), y, scores)
    with pytest.raises(ValueError, match="X has duplicate column names; rename them"):
        histogram_tree().fit(pa.table(list(X.T), names=["a", "b", "a"]), y, scores)


@pytest.mark.parametrize("table", [np.asarray, pd.DataFrame])
def test_a_table_without_attributes_is_refused(table):
    X, y, scores = make_rows(200)
    with pytest.raises(ValueError, match=r"X has 0 feature\(s\)"):
        histogram_tree().fit(table(X[:, :0]), y, scores)


def test_a_tree_on_the_largest_numbers_can_be_stored():
    _, y, scores = make_rows(52)
    largest = np.finfo(np.float64).max
    # The sum of as many shares of the largest number is larger still.
    X = np.column_stack([np.full(52, largest), np.full(52, -largest), np.where(y, largest, 0.0)])
    tree = histogram_tree().fit(X, y, scores)
    assert 0.99 * largest < tree.model_.attributes.columns[0].fill < np.inf
    assert_same(tree, CalibrationTree.from_dict(tree.to_dict()), X, scores)


# Memory


def peak_of_fit(X, y, scores, **params):
    """The most bytes that are in use while a tree is fitted, beyond what was given."""
    tree = CalibrationTree(max_depth=3, cv=2, **params)
    tracemalloc.start()
    try:
        tree.fit(X, y, scores)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_matrix_of_float32_is_not_copied():
    """The codes are a byte each; of the numbers, a chunk at a time and a sample are copied."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((16_000, 150)).astype(np.float32)
    y, scores = rows_with_shift(np.where(X[:, 0] > 0, 1.0, -1.0), len(X))
    with (
        patch.multiple(in_process, _FEWEST_ROWS=500, _MOST_ROWS=500),
        patch.object(binning, "SAMPLE_ROWS", 500),
    ):
        # Where every bin is a byte, the histograms are small beside the codes.
        found = peak_of_fit(X, y, scores, tree_method="hist", max_bins=16)
    codes = X.size
    assert codes < found < 2.5 * codes  # the matrix itself has four bytes a number


@pytest.mark.parametrize("n_chunks", [1, 5])
def test_a_copy_of_the_label_is_noticed_whatever_the_chunks(n_chunks):
    """Rows of weight 0 do not count; a single other row rules a column out."""
    X, y, scores = make_rows(N_ROWS)
    X[:, 1] = 3.0 - y
    X[0, 1] = 0.0
    weights = np.ones(N_ROWS)
    weights[0] = 0.0
    with chunks_of(-(-N_ROWS // n_chunks)):
        with pytest.warns(UserWarning, match="attribute 'x1' has one value for each class"):
            histogram_tree().fit(X, y, scores, sample_weight=weights)
        histogram_tree().fit(X, y, scores)  # a warning would be an error
