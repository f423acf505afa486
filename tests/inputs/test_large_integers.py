"""Integers that a float cannot hold to the digit, in tables of every kind."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from caltree._inputs.tables import read_table

BEYOND = [2**53 + 1, 2**53 + 3, -(2**62) - 1, 7]


@pytest.mark.parametrize("nominal", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.DataFrame({"id": pd.array(values, dtype="Int64")}),
        lambda values: pd.DataFrame({"id": pd.array(values, dtype="int64[pyarrow]")}),
        lambda values: pd.DataFrame({"id": pd.array(values, dtype=object)}),
        lambda values: pl.DataFrame({"id": pl.Series(values, dtype=pl.Int64)}),
        lambda values: pa.table({"id": pa.array(values, pa.int64())}),
    ],
)
def test_integers_beyond_the_digits_of_a_float_are_alike_everywhere(make, nominal):
    expected = read_table(np.array(BEYOND)[:, np.newaxis], "X").column(0, nominal=nominal)
    found = read_table(make(BEYOND), "X").column(0, nominal=nominal)
    assert decoded(found) == decoded(expected)
    assert decoded(read_table(make([*BEYOND, None]), "X").column(0, nominal=nominal)) == [
        *decoded(expected),
        None,
    ]


def decoded(column):
    """The values of a column, None for missing ones."""
    if column.categories is not None:
        return [column.categories[code] if code >= 0 else None for code in column.values]
    numbers = np.asarray(column.values, dtype=np.float64).tolist()
    return [None if number != number else number for number in numbers]


@pytest.mark.parametrize("nominal", [False, True])
def test_an_integer_beyond_all_floats_names_the_attribute(nominal):
    frame = pd.DataFrame({"id": pd.Series([10**400, 1], dtype=object)})
    with pytest.raises(ValueError, match="attribute 'id' of X has an integer beyond the largest"):
        read_table(frame, "X").column(0, nominal=nominal)
