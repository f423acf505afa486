"""Deviations of intervals, from simulated rows and from real ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta

from caltree._fitted.spread import KNOTS, Spread
from caltree._training.spreads import (
    HeldOut,
    Seen,
    Simulated,
    caution,
    excess_variance,
    measure_spread,
    open_variance,
    spread_of_steps,
)


def simulate(n_rows, deviation, n_classes=3):
    """Rows whose log-odds are off by a deviation that depends on probability and rows."""
    random = np.random.default_rng(0)
    predicted = random.random((n_rows, n_classes))
    rows = 10.0 ** random.uniform(1, 4, n_rows)
    errors = random.normal(size=predicted.shape) * deviation(predicted, rows[:, np.newaxis])
    truth = expit(logit(predicted) + errors)
    return Simulated(predicted, truth, rows, np.empty(0))


def cover(spread, simulated, rows):
    ends = spread.interval(simulated.predicted, 0.95, rows)
    return (ends[..., 0] <= simulated.truth) & (simulated.truth <= ends[..., 1])


def test_deviations_cover_their_share_of_known_errors():
    simulated = simulate(20_000, lambda predicted, rows: np.where(predicted < 0.5, 0.2, 1.0))
    low, high = simulated.predicted < 0.4, simulated.predicted > 0.6
    local = cover(measure_spread(simulated, 0.0), simulated, simulated.rows)
    assert 0.94 < local[low].mean() < 0.96 and 0.94 < local[high].mean() < 0.96
    # Half of the variance is that of all rows.
    pooled = cover(measure_spread(simulated, 0.5), simulated, simulated.rows)
    assert pooled[low].mean() > 0.99 and 0.8 < pooled[high].mean() < 0.95


def test_errors_of_high_probabilities_do_not_widen_low_ones():
    simulated = simulate(20_000, lambda predicted, rows: np.where(predicted < 0.5, 0.2, 1.0), 2)
    deviations = measure_spread(simulated, 0.0).deviations
    np.testing.assert_allclose(deviations[KNOTS < 0.4], 0.2, rtol=0.15)
    np.testing.assert_allclose(deviations[KNOTS > 0.6], 1.0, rtol=0.15)


def test_rows_show_probabilities_that_are_off_and_what_they_leave_open():
    def of(probability, events, n_rows):
        predicted = np.tile([1.0 - probability, probability], (n_rows, 1))
        event = np.arange(n_rows) < events
        return open_variance(predicted, np.column_stack([~event, event]) * 1.0, share=0.5)

    # 100 rows of 0.8: log-odds are known to 1 / (100 x 0.16), and half of that is left open.
    right, off = of(0.8, 80, 100), of(0.8, 64, 100)
    at = KNOTS == 0.8
    assert right[at] == pytest.approx(0.5 / 16)
    # 16 events too few: log-odds are off by 1, as far as such rows can tell.
    assert off[at] == pytest.approx(1.0 - 1.0 / 16 + 0.5 / 16)
    # Where there are no rows, most is open; the other end is not known by this one.
    np.testing.assert_allclose(right[~at], 1.0)
    # One event where none was expected says little.
    assert of(1e-9, 1, 50)[0] == pytest.approx(4.0 - 2.0 + 1.0)
    assert of(1e-9, 50, 50)[0] == 4.0


def test_what_all_probabilities_show_counts_everywhere():
    predicted = np.repeat([[0.8, 0.2], [0.5, 0.5]], 100, axis=0)
    event = np.r_[np.arange(100) < 36, np.arange(100) < 75]
    happened = np.column_stack([~event, event]) * 1.0
    alone = open_variance(predicted, happened, share=0.5)
    pooled = open_variance(predicted, happened, share=0.5, pooled=0.5)
    # Log-odds are off by 1 at both; the information is 16 and 25.
    shown = (16 * (1 - 1 / 16) + 25 * (1 - 1 / 25)) / (16 + 25)
    np.testing.assert_allclose(pooled - alone, 0.5 * shown)


@pytest.mark.parametrize("exponent", [0.0, 0.3])
def test_deviations_fall_with_rows_as_fast_as_errors_do(exponent):
    simulated = simulate(20_000, lambda predicted, rows: 0.5 * (300 / rows) ** exponent)
    spread = measure_spread(simulated, 0.5)
    assert spread.exponent == pytest.approx(exponent, abs=0.02)
    covered = cover(spread, simulated, simulated.rows)
    for part in (simulated.rows < 50, simulated.rows > 2_000):
        assert covered[part].mean() == pytest.approx(0.95, abs=0.015)


def test_deviations_never_fall_faster_than_those_of_means():
    simulated = simulate(5_000, lambda predicted, rows: 100 / rows)
    assert measure_spread(simulated, 0.5).exponent == 0.5
    simulated = simulate(5_000, lambda predicted, rows: rows / 1_000)
    assert measure_spread(simulated, 0.5).exponent == 0.0


def test_factors_of_few_and_of_many_rows_are_bounded():
    spread = Spread(np.ones(len(KNOTS)), 0.5, 400.0)
    found = spread.widening(np.array([1.0, 100.0, 400.0, 1_600.0, 1e9]))
    np.testing.assert_allclose(found, [5.0, 2.0, 1.0, 0.5, 0.2])


@pytest.mark.parametrize("ratio", [0.5, 1.0, 4.0])
def test_a_second_opinion_tells_how_much_larger_errors_are_in_reality(ratio):
    """The simulation has errors of 0.1, reality has others; four fifths are found."""
    random = np.random.default_rng(0)
    predicted = np.full((40_000, 2), 0.5)
    errors = 0.1 * random.choice([-1.0, 1.0], size=40_000)[:, np.newaxis] * [1.0, -1.0]
    simulated = Simulated(predicted, predicted + errors, np.ones(40_000), predicted + 0.8 * errors)
    real = np.sqrt(ratio) * errors
    event = random.random(40_000) < predicted[:, 1] + real[:, 1]
    happened = np.column_stack([~event, event]).astype(float)
    held_out = HeldOut(predicted, happened, predicted + 0.8 * real)
    seen = Seen.of(happened, predicted, predicted + 0.8 * real)
    # Log-odds are off by four times as much as probabilities near one half.
    excess = excess_variance(held_out, simulated)
    hidden = 0.5 * seen.standard_error / 0.8
    assert excess - hidden == pytest.approx((ratio - 1.0) * 0.4**2, abs=0.02)


def test_a_second_opinion_by_chance_counts_for_nothing_but_what_it_may_hide():
    predicted = np.full((4, 2), 0.5)
    errors = 0.1 * np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    sees = Simulated(predicted, predicted + errors, np.ones(4), predicted + 0.8 * errors)
    blind = replace(sees, second_opinion=predicted)
    # As much for one row as against another.
    happened = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    other = predicted + np.array([[-0.3, 0.3], [0.3, -0.3], [-0.3, 0.3], [0.3, -0.3]])
    held_out = HeldOut(predicted, happened, other)
    error = Seen.of(happened, predicted, other).standard_error
    assert excess_variance(held_out, sees) == pytest.approx(0.5 * error / 0.8)
    # A second opinion that sees nothing hides more, within bounds.
    assert excess_variance(held_out, blind) == pytest.approx(0.5 * error / 0.1)


def test_caution_falls_with_the_number_of_rows():
    assert caution(1_000) == pytest.approx(1.25)
    assert caution(4_000) == pytest.approx(1.125)


def steps_of(predicted, events):
    """The spread of a curve of two classes whose simulated copies are never off."""
    curve = np.column_stack([1.0 - predicted, predicted])
    exact = Simulated(curve, curve, np.ones(len(curve)), np.empty(0))
    return spread_of_steps(exact, curve, np.column_stack([1.0 - events, events]))


def test_the_start_of_a_rising_function_reaches_the_limit_of_its_first_rows():
    """The first step has four rows, the first fifty have ten events."""
    predicted = np.concatenate([np.zeros(4), np.full(46, 10 / 46), np.full(150, 0.5)])
    events = np.concatenate([np.zeros(40), np.ones(10), np.tile([0.0, 1.0], 75)])
    spread = steps_of(predicted, events)
    limit = beta.ppf(0.975, 11, 40)
    [[_, [_, upper]]] = spread.interval(np.array([[1.0, 0.0]]), 0.95)
    assert upper == pytest.approx(limit)
    # Of the first rows all are at most 0.22, and others are not widened.
    reaches = KNOTS < 0.22
    expected = (logit(limit) - logit(KNOTS[reaches][1:])) / 1.959964
    np.testing.assert_allclose(spread.deviations[reaches][1:], np.maximum(expected, 0.0), rtol=1e-6)
    assert (spread.deviations[(KNOTS > 0.25) & (KNOTS < 0.5)] == 0.0).all()


def test_the_end_of_a_rising_function_is_its_start_turned_round():
    predicted = np.concatenate([np.zeros(4), np.full(46, 10 / 46), np.full(150, 0.5)])
    events = np.concatenate([np.zeros(40), np.ones(10), np.tile([0.0, 1.0], 75)])
    spread, turned = steps_of(predicted, events), steps_of(1.0 - predicted, 1.0 - events)
    np.testing.assert_allclose(turned.deviations, spread.deviations[::-1])


def test_a_long_first_step_counts_whole():
    predicted, events = np.repeat([0.0, 0.5], 200), np.repeat([0.0, 1.0, 0.0], [200, 100, 100])
    [[_, [_, upper]]] = steps_of(predicted, events).interval(np.array([[1.0, 0.0]]), 0.95)
    assert upper == pytest.approx(1.0 - 0.025 ** (1 / 200))
