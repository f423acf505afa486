"""Labels and weights, checked one at a time; bad ones are in test_errors."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree import CalibrationTree, PlattScaling, audit
from caltree._inputs.labels import check_labels, check_weights

labels = (
    st.lists(st.integers(-(2**60), 2**60), min_size=2)
    | st.lists(st.text(), min_size=2)
    | st.lists(st.booleans(), min_size=2)
)


@given(labels.filter(lambda values: len(set(values)) > 1), st.booleans())
def test_classes_and_codes_give_the_labels_back(values, as_objects):
    y = np.array(values, dtype=object) if as_objects else values
    classes, codes = check_labels(y, len(values))
    assert codes.dtype == np.uint16
    expected = sorted(set(values))
    # A numpy string forgets zeros at its end.
    if isinstance(values[0], str) and not as_objects:
        expected = sorted({value.rstrip("\0") for value in values})
        values = [value.rstrip("\0") for value in values]
    assert classes.tolist() == expected
    assert classes[codes].tolist() == values


def test_only_kept_labels_count():
    classes, codes = check_labels(["c", "b", "a", "b"], 4, np.array([True, True, False, True]))
    assert classes.tolist() == ["b", "c"] and codes.tolist() == [1, 0, 0]


def test_a_hundred_thousand_rows_of_many_classes():
    classes, codes = check_labels(np.arange(100_000) % 65_535, 100_000)
    assert len(classes) == 65_535 and codes[65_534] == 65_534 and codes[65_535] == 0


def test_no_weights_stay_none():
    assert check_weights(None, 3) is None


@pytest.mark.parametrize("weights", [[2, 0, 3], (2.0, 0.0, 3.0), np.array([2, 0, 3], dtype=object)])
def test_weights_become_floats(weights):
    checked = check_weights(weights, 3)
    assert checked.dtype == np.float64 and checked.tolist() == [2.0, 0.0, 3.0]


def test_booleans_are_weights():
    assert check_weights([True, False] * 5, 10).sum() == 5


FRAME = pd.DataFrame({"age": np.arange(200) % 50, "left": np.arange(200) % 3 == 0})
LEFT = FRAME["left"] ^ (FRAME.index == 0)  # no copy
SCORES = np.linspace(0.1, 0.9, 200)


@pytest.mark.parametrize("table", [FRAME, pl.from_pandas(FRAME), pa.table(FRAME)])
@pytest.mark.parametrize("use", [CalibrationTree().fit, audit])
def test_a_column_named_as_the_labels_is_warned_of(use, table):
    with pytest.warns(UserWarning, match="X has a column 'left', which is also the name") as caught:
        use(table, LEFT, SCORES)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_labels_without_a_name_or_a_column_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CalibrationTree().fit(FRAME[["age"]], LEFT, SCORES)
        CalibrationTree().fit(FRAME, LEFT.to_numpy(), SCORES)
        CalibrationTree().fit(FRAME[["age"]].to_numpy(), LEFT, SCORES)
        PlattScaling().fit(FRAME, LEFT, SCORES)  # it does not look at the table


def test_scores_in_the_place_of_labels():
    with pytest.raises(
        ValueError, match=r"y contains 0\.25 in row 1, .*; are y and scores swapped"
    ):
        check_labels(np.array([1.0, 0.25, 0.5]), 3)
    with pytest.raises(ValueError, match=r"into classes first$"):
        check_labels(np.array([1.0, 0.25, 7.5]), 3)
