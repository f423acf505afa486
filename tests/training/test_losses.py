"""Losses of rows, their means, and standard errors, by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree._training.losses import mean_loss, row_losses, standard_errors

quick = settings(max_examples=100, deadline=None, derandomize=True)

# Losses


def test_squared_errors_by_hand():
    probabilities = np.array([[0.7, 0.2, 0.1], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])
    given = probabilities.copy()
    losses = row_losses(probabilities, np.array([0, 1, 2]), "rmse")
    np.testing.assert_allclose(losses, [(0.09 + 0.04 + 0.01) / 3, 0.0, 2 / 3], rtol=1e-15)
    assert np.array_equal(probabilities, given)


def test_of_two_classes_both_are_equally_far_off():
    losses = row_losses(np.array([[0.3, 0.7], [0.3, 0.7]]), np.array([1, 0]), "rmse")
    np.testing.assert_allclose(losses, [0.09, 0.49], rtol=1e-15)


def test_log_losses_by_hand():
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0], [1.0, 0.0]])
    losses = row_losses(probabilities, np.array([1, 0, 0, 1]), "log_loss")
    expected = [-math.log(0.75), math.log(2), 0.0, -math.log(np.finfo(np.float64).eps)]
    np.testing.assert_allclose(losses, expected, rtol=1e-15)


def test_labels_may_be_of_any_whole_type():
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]])
    for scoring in ("rmse", "log_loss"):
        expected = row_losses(probabilities, np.array([1, 0]), scoring)
        found = row_losses(probabilities, np.array([1, 0], dtype=np.uint16), scoring)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("weights", "mean"), [(None, 0.5), ([1.0, 1.0, 1.0], 0.5), ([2.0, 1.0, 1.0], 0.375)]
)
def test_mean_losses_by_hand(weights, mean):
    losses = np.array([0.0, 0.5, 1.0])
    weights = None if weights is None else np.array(weights)
    assert mean_loss(losses, weights, "log_loss") == mean
    assert mean_loss(losses, weights, "rmse") == math.sqrt(mean)


# Standard errors


def test_standard_errors_by_hand():
    # Differences 0, 1, 2, 5: mean 2, squared deviations 4, 1, 0, 9, of the mean 14 / 16.
    worse, better = np.array([1.0, 2.0, 3.0, 6.0]), np.ones(4)
    assert standard_errors(worse, better, None) == pytest.approx(2 / math.sqrt(14 / 16))
    assert standard_errors(better, worse, None) == pytest.approx(-2 / math.sqrt(14 / 16))


def test_weighted_standard_errors_by_hand():
    # Differences 0, 1, 3, 3: mean 7 / 4, squared deviations 49 / 16, 9 / 16 and twice 25 / 16.
    worse, better = np.array([1.0, 2.0, 4.0]), np.ones(3)
    error = math.sqrt((49 + 9 + 2 * 25) / 16) / 4
    assert standard_errors(worse, better, np.array([1.0, 1.0, 2.0])) == pytest.approx(1.75 / error)


def test_equal_losses_are_no_standard_error_apart():
    losses = np.array([0.1, 0.2, 0.3])
    assert standard_errors(losses, losses, None) == 0.0


def test_what_never_varies_is_certain():
    losses = np.array([0.5, 1.0, 2.0])
    assert standard_errors(losses + 0.5, losses, None) == math.inf
    assert standard_errors(losses, losses + 0.5, None) == -math.inf


floats = st.floats(0.0, 1.0, width=32)


@quick
@given(st.lists(st.tuples(floats, floats, st.integers(1, 4)), min_size=2, max_size=20))
def test_a_row_of_weight_two_is_two_rows(rows):
    worse, better, weights = np.array(rows, dtype=float).T
    times = weights.astype(int)
    repeated = np.repeat(worse, times), np.repeat(better, times)
    found = standard_errors(worse, better, weights)
    assert found == pytest.approx(standard_errors(*repeated, None), rel=1e-6, abs=1e-6)


@quick
@given(st.integers(2, 20), st.integers(1, 5), st.integers(0, 99))
def test_the_rows_of_a_group_count_as_one(n_groups, copies, seed):
    worse, better = losses = np.random.default_rng(seed).random((2, n_groups))
    alone = standard_errors(worse, better, None)
    groups = np.repeat(np.arange(n_groups, dtype=np.uint32), copies)
    repeated = np.repeat(losses, copies, axis=1)
    assert standard_errors(*repeated, None, groups) == pytest.approx(alone, rel=1e-6, abs=1e-9)
    weights = np.full(n_groups, float(copies))
    one_each = np.arange(n_groups, dtype=np.uint32)
    found = standard_errors(worse, better, weights, one_each)
    assert found == pytest.approx(alone, rel=1e-6, abs=1e-9)


def test_standard_errors_of_groups_by_hand():
    worse, better = np.array([3.0, 1.0, 0.0, 2.0]), np.array([1.0, 1.0, 1.0, 1.0])
    # Differences 2, 0, -1, 1 of mean 0.5: the groups are off by 1.5 - 0.5 and by -1.5 + 0.5.
    groups = np.array([0, 0, 1, 1], dtype=np.uint32)
    assert standard_errors(worse, better, None, groups) == pytest.approx(0.5 / (math.sqrt(2) / 4))
