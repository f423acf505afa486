"""Parameters, checked one at a time; bad ones are in test_errors."""

import fractions

import numpy as np
import pytest

from caltree._inputs.parameters import (
    check_choice,
    check_count,
    check_jobs,
    check_share,
    check_size,
)


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers_of_any_kind(value):
    checked = check_count("n", value, 3)
    assert checked == 3 and type(checked) is int


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), fractions.Fraction(2), np.int64(2)])
def test_numbers_of_any_kind(value):
    checked = check_size("n", value, 2)
    assert checked == 2.0 and type(checked) is float


@pytest.mark.parametrize(
    "value", [None, 1, 1.0, 0.5, 1e-300, np.float32(0.9), fractions.Fraction(1, 3)]
)
def test_shares(value):
    check_share("n", value)


@pytest.mark.parametrize("value", [0, 0.0, -0.5, 1.0000001, np.nan, np.inf, True, "0.5", 0.5j])
def test_what_is_no_share(value):
    with pytest.raises(ValueError, match="n must be None or a number above 0 and up to 1, got "):
        check_share("n", value)


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
