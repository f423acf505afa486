"""Labels, weights and parameters, checked one at a time; bad ones are in test_errors."""

import fractions

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree._inputs.parameters import (
    check_choice,
    check_count,
    check_jobs,
    check_labels,
    check_size,
    check_weights,
)

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


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers_of_any_kind(value):
    checked = check_count("n", value, 3)
    assert checked == 3 and type(checked) is int


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), fractions.Fraction(2), np.int64(2)])
def test_numbers_of_any_kind(value):
    checked = check_size("n", value, 2)
    assert checked == 2.0 and type(checked) is float


def test_choices():
    assert check_choice("n", "b", ("a", "b")) == "b"
    with pytest.raises(ValueError, match="n must be one of 'a', 'b', got 'c'"):
        check_choice("n", "c", ("a", "b"))


@pytest.mark.parametrize("n_jobs", [None, 1, 8, -1, np.int64(2)])
def test_jobs(n_jobs):
    check_jobs(n_jobs)


def test_a_long_value_is_cut_short_in_a_message():
    with pytest.raises(ValueError) as caught:
        check_count("n", list(range(10_000)), 0)
    assert len(str(caught.value)) < 120
