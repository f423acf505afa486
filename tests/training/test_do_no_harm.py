"""Do no harm: losses and standard errors by hand, and what is chosen by them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree._training.do_no_harm import (
    DEMANDED,
    OBJECTIVES,
    TIE,
    Judge,
    checked_selection,
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


# The judge


def predictions_apart(errors, objective, n_rows=400, seed=0):
    """Two lists of probabilities whose losses are that many standard errors apart."""
    difference = np.random.default_rng(seed).standard_normal(n_rows)
    difference -= difference.mean()
    difference = 1e-3 * (difference + errors * difference.std() / math.sqrt(n_rows))
    lower = np.full(n_rows, 0.2)
    of_class = [
        np.exp(-losses) if objective == "log_loss" else 1.0 - np.sqrt(losses)
        for losses in (lower + difference, lower)
    ]
    return [np.column_stack([p, 1.0 - p]) for p in of_class]


def judge(objective="rmse", n_rows=400, weights=None):
    return Judge(np.zeros(n_rows, dtype=np.uint16), weights, objective)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("errors", [-3.0, 0.0, 0.49, 0.51, 0.99, 1.01])
def test_ties(objective, errors):
    worse, better = predictions_apart(errors, objective)
    assert judge(objective).is_tie(worse, better) == (errors < TIE == 0.5)
    assert judge(objective).is_tie(worse, better, 1.0) == (errors < 1.0)


@pytest.mark.parametrize(("objective", "demanded"), [("rmse", 2.0), ("log_loss", 3.0)])
@pytest.mark.parametrize("judged_by", OBJECTIVES)
def test_scores_are_touched_only_if_it_helps_by_either_loss(objective, demanded, judged_by):
    for errors, helps in ((-4.0, False), (demanded - 0.01, False), (demanded + 0.01, None)):
        worse, better = predictions_apart(errors, objective)
        expected = helps
        if helps is None:
            # All rows have the same loss in the second: what the other loss thinks of it decides.
            other = next(name for name in OBJECTIVES if name != objective)
            losses = [row_losses(p, judge().labels, other) for p in (worse, better)]
            expected = standard_errors(*losses, None) > DEMANDED[other]
        assert judge(judged_by).helps(worse, better) == expected


def test_what_helps_by_both_losses_helps():
    raw = np.tile([0.3, 0.7], (400, 1))
    raw[::2] = [0.7, 0.3]
    better = raw + np.array([0.1, -0.1])
    assert judge().helps(raw, better) and not judge().helps(better, raw)
    # Many mistakes less, but of few rows more certain ones: squared error and log loss disagree.
    sure = better.copy()
    sure[:12] = [1e-12, 1.0]
    losses = [row_losses(p, judge().labels, "rmse") for p in (raw, sure)]
    assert standard_errors(*losses, None) > 2.0 and not judge().helps(raw, sure)


def test_leaning_goes_as_far_as_it_costs_nothing():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    labels = (rng.random(2000) < truth).astype(np.uint16)
    calibrated = np.column_stack([1 - truth, truth])
    shares = []
    for sharper in (1.1, 2.0, 4.0):
        odds = np.power(calibrated, sharper)
        raw = odds / odds.sum(axis=1, keepdims=True)
        of_rows = Judge(labels, None, "rmse")
        share = of_rows.lean(raw, calibrated)
        shares.append(share)
        step = 2.0**-7
        for nearby, tie in ((share, True), (min(share + step, 1.0), share == 1.0 - step)):
            assert of_rows.is_tie(nearby * raw + (1 - nearby) * calibrated, calibrated) == tie
    # The worse the scores, the less is left to them.
    assert shares == sorted(shares, reverse=True) and shares[0] > 0.5 and 0 < shares[-1] < 0.2


def test_what_is_better_than_calibrated_scores_is_taken_whole():
    raw = np.tile([0.9, 0.1], (50, 1))
    assert judge(n_rows=50).lean(raw, np.full((50, 2), 0.5)) == 1.0 - 2.0**-7


def test_weights_decide():
    one, other = np.tile([0.9, 0.1], (200, 1)), np.tile([0.5, 0.5], (200, 1))
    one[:100], other[:100] = other[:100].copy(), one[:100].copy()
    even, uneven = np.ones(200), np.repeat([3.0, 1.0], 100)
    assert judge(n_rows=200, weights=even).is_tie(one, other)
    assert not judge(n_rows=200, weights=uneven).is_tie(one, other)
    assert not judge(n_rows=200, weights=even).helps(one, other)
    assert judge(n_rows=200, weights=uneven).helps(one, other)
    assert judge(n_rows=200, weights=uneven).loss(one) == pytest.approx(
        math.sqrt((0.75 * 0.25) + 0.25 * 0.01)
    )


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
