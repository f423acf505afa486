"""Do no harm: losses and standard errors by hand, and what is chosen by them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree.choice import (
    GLOBAL,
    LEAVE_ALONE,
    LOCAL,
    checked_selection,
    choose,
    chosen,
    mean_loss,
    row_losses,
    standard_errors,
)

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
    expected = [-math.log(0.75), math.log(2), 0.0, -math.log(1e-15)]
    np.testing.assert_allclose(losses, expected, rtol=1e-15)


def test_labels_may_be_of_any_whole_type():
    probabilities = np.array([[0.25, 0.75], [0.5, 0.5]])
    for objective in ("rmse", "log_loss"):
        expected = row_losses(probabilities, np.array([1, 0]), objective)
        found = row_losses(probabilities, np.array([1, 0], dtype=np.uint16), objective)
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


# The choice


def losses_apart(errors, n_rows=400, seed=0):
    """Two lists of losses whose means are that many standard errors apart, the second lower."""
    difference = np.random.default_rng(seed).standard_normal(n_rows)
    difference -= difference.mean()
    difference += errors * difference.std() / math.sqrt(n_rows)
    lower = np.full(n_rows, 5.0)
    return lower + difference, lower


@pytest.mark.parametrize(
    ("errors", "expected"), [(-3.0, LEAVE_ALONE), (1.99, LEAVE_ALONE), (2.01, GLOBAL)]
)
def test_leaving_alone_gives_way_to_two_standard_errors(errors, expected):
    worse, better = losses_apart(errors)
    selection = choose({LEAVE_ALONE: worse, GLOBAL: better}, None, "log_loss")
    assert chosen(selection) == expected


@pytest.mark.parametrize("errors", [-3.0, 0.99, 1.01, 1.99])
@pytest.mark.parametrize("left_alone", [False, True])
def test_global_gives_way_to_one_standard_error(errors, left_alone):
    worse, better = losses_apart(errors)
    candidates = {GLOBAL: worse, LOCAL: better}
    if left_alone:
        candidates = {LEAVE_ALONE: worse + 1.0, **candidates}
    expected = LOCAL if errors > 1 else GLOBAL
    assert chosen(choose(candidates, None, "rmse")) == expected


def test_local_may_beat_leaving_alone_where_global_does_not():
    worse, better = losses_apart(2.5)
    selection = choose({LEAVE_ALONE: worse, GLOBAL: worse, LOCAL: better}, None, "log_loss")
    assert chosen(selection) == LOCAL
    worse, better = losses_apart(1.5)
    selection = choose({LEAVE_ALONE: worse, GLOBAL: worse, LOCAL: better}, None, "log_loss")
    assert chosen(selection) == LEAVE_ALONE


def test_of_equals_the_simplest_wins():
    losses = np.linspace(0.0, 1.0, 20)
    for names in ([LEAVE_ALONE, GLOBAL, LOCAL], [GLOBAL, LOCAL]):
        selection = choose(dict.fromkeys(names, losses), None, "rmse")
        assert [row["candidate"] for row in selection] == names
        assert [row["chosen"] for row in selection] == [True] + [False] * (len(names) - 1)
        assert {row["loss"] for row in selection} == {math.sqrt(0.5)}


def test_weights_decide():
    worse, better = np.array([1.0, 1.0, 0.0, 0.0] * 50), np.array([0.0, 0.0, 1.0, 1.0] * 50)
    candidates = {LEAVE_ALONE: worse, GLOBAL: better}
    for weights, expected in (([1, 1, 1, 1], LEAVE_ALONE), ([3, 3, 1, 1], GLOBAL)):
        selection = choose(candidates, np.tile(np.array(weights, dtype=float), 50), "log_loss")
        assert chosen(selection) == expected
    assert selection[0]["loss"] == 0.75 and selection[1]["loss"] == 0.25


@quick
@given(
    st.lists(st.lists(floats, min_size=5, max_size=5), min_size=3, max_size=3),
    st.sampled_from(["rmse", "log_loss"]),
)
def test_one_is_chosen_and_none_with_a_higher_loss_than_leaving_alone(losses, objective):
    names = (LEAVE_ALONE, GLOBAL, LOCAL)
    selection = choose(dict(zip(names, np.array(losses), strict=True)), None, objective)
    assert sum(row["chosen"] for row in selection) == 1
    by_name = {row["candidate"]: row["loss"] for row in selection}
    assert by_name[chosen(selection)] <= by_name[LEAVE_ALONE]
    assert checked_selection(selection) == selection


# Stored


ROW = {"candidate": "global", "loss": 0.25, "chosen": True}


@pytest.mark.parametrize("stored", [[], [ROW], [{**ROW, "share": 0.5, "loss": 1}, ROW]])
def test_what_was_stored_is_read(stored):
    assert checked_selection(stored) == stored


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "global",
        {"candidate": "global"},
        [None],
        [[]],
        [{}],
        [{**ROW, "extra": 1}],
        [{"candidate": "global", "chosen": True}],
        [{**ROW, "candidate": 3}],
        [{**ROW, "chosen": 1}],
        [{**ROW, "loss": "0.25"}],
        [{**ROW, "loss": None}],
        [{**ROW, "loss": True}],
        [{**ROW, "share": None}],
        [{**ROW, "share": [1.0]}],
        [{**ROW, "chosen": False}],
    ],
)
def test_malformed_selections_are_refused(stored):
    with pytest.raises(ValueError, match="selection of a stored calibrator must"):
        checked_selection(stored)
