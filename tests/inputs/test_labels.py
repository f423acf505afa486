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
from caltree._inputs.labels import check_labels, check_weights, warn_of_label_copies

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


LABELS = np.random.default_rng(0).integers(0, 3, 300).astype(np.uint16)


@pytest.mark.parametrize("values", [LABELS, 5.5 - LABELS, np.array([3.0, 1.0, 7.0])[LABELS]])
def test_a_copy_of_the_labels_is_noticed(values):
    matrix = np.column_stack([np.arange(300.0), values])
    with pytest.warns(UserWarning, match="attribute 'b' has one value for each class"):
        warn_of_label_copies(["a", "b"], matrix, LABELS)


@pytest.mark.parametrize("changed", [1.5, np.nan, None])
def test_what_does_not_tell_all_labels_is_no_copy(changed):
    values = LABELS.astype(float)
    if changed is None:
        values[values == 2.0] = 1.0  # one value for two classes
    else:
        values[-1] = changed
    warn_of_label_copies(["a"], values[:, np.newaxis], LABELS)
    few = np.arange(99, dtype=np.uint16) % 3
    warn_of_label_copies(["a"], few[:, np.newaxis].astype(float), few)


def test_copies_of_sorted_labels_are_noticed_by_calibrators_and_audits():
    random = np.random.default_rng(0)
    y, scores = np.sort(random.random(400) < 0.5), random.random(400)
    X = {"kind": np.where(y, "bad", "good"), "x": random.random(400)}
    for call in (CalibrationTree().fit, audit):
        with pytest.warns(UserWarning, match="attribute 'kind' has one value for each class"):
            call(pd.DataFrame(X), y, scores)
