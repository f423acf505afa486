"""Deviations of intervals, from simulated rows and from real ones."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta

from caltree._fitted.spread import KNOTS, Spread
from caltree._training.spreads import (
    Observed,
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
    return Simulated(predicted, truth, rows, np.ones(n_rows), np.empty(0))


def observe(predicted, event, weights=None, second_opinion=None):
    """Rows of two classes, and which of them had an event."""
    happened = np.column_stack([~event, event]).astype(float)
    other = np.empty(0) if second_opinion is None else second_opinion
    return Observed(predicted, happened, np.ones(len(event)) if weights is None else weights, other)


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
        return open_variance(observe(predicted, event), share=0.5)

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
    alone = open_variance(observe(predicted, event), share=0.5)
    pooled = open_variance(observe(predicted, event), share=0.5, pooled=0.5)
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
    ones = np.ones(40_000)
    simulated = Simulated(predicted, predicted + errors, ones, ones, predicted + 0.8 * errors)
    real = np.sqrt(ratio) * errors
    event = random.random(40_000) < predicted[:, 1] + real[:, 1]
    held_out = observe(predicted, event, second_opinion=predicted + 0.8 * real)
    seen = Seen.of(held_out.happened, predicted, predicted + 0.8 * real, ones)
    # Log-odds are off by four times as much as probabilities near one half.
    excess = excess_variance(held_out, simulated)
    hidden = 0.5 * seen.standard_error / 0.8
    assert excess - hidden == pytest.approx((ratio - 1.0) * 0.4**2, abs=0.02)


def test_a_second_opinion_by_chance_counts_for_nothing_but_what_it_may_hide():
    predicted = np.full((4, 2), 0.5)
    errors = 0.1 * np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]])
    ones = np.ones(4)
    sees = Simulated(predicted, predicted + errors, ones, ones, predicted + 0.8 * errors)
    blind = replace(sees, second_opinion=predicted)
    # As much for one row as against another.
    happened = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    other = predicted + np.array([[-0.3, 0.3], [0.3, -0.3], [-0.3, 0.3], [0.3, -0.3]])
    held_out = Observed(predicted, happened, ones, other)
    error = Seen.of(happened, predicted, other, ones).standard_error
    assert excess_variance(held_out, sees) == pytest.approx(0.5 * error / 0.8)
    # A second opinion that sees nothing hides more, within bounds.
    assert excess_variance(held_out, blind) == pytest.approx(0.5 * error / 0.1)


def test_caution_falls_with_the_number_of_rows():
    assert caution(1_000) == pytest.approx(1.25)
    assert caution(4_000) == pytest.approx(1.125)


def steps_of(predicted, events, weights=None):
    """The spread of a curve of two classes whose simulated copies are never off."""
    curve = np.column_stack([1.0 - predicted, predicted])
    exact = Simulated(curve, curve, np.ones(len(curve)), np.ones(len(curve)), np.empty(0))
    return spread_of_steps(exact, observe(curve, events == 1.0, weights))


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


def test_deviations_between_knots_are_linear_in_log_odds():
    """Else probabilities just above 0 would get intervals nearly as wide as that of 0."""
    spread = Spread(np.where(KNOTS == 0.0, 3.0, 0.5))
    middle = expit((logit(1e-4) + logit(0.05)) / 2)
    [[_, [_, upper]]] = spread.interval(np.array([[1.0 - middle, middle]]), 0.95)
    assert logit(upper) == pytest.approx(logit(middle) + 1.959964 * 1.75)


def test_upper_ends_of_a_long_first_step_and_of_the_next_rise():
    """The limit of the first rows is that of all probabilities up to theirs."""
    predicted, events = np.repeat([0.0, 0.4], 200), np.repeat([0.0, 1.0, 0.0], [200, 80, 120])
    spread = steps_of(predicted, events)
    asked = np.linspace(0.0, 0.05, 51)
    upper = spread.interval(np.column_stack([1.0 - asked, asked]), 0.95)[:, 1, 1]
    assert (upper < 0.2).all()


@pytest.mark.parametrize("scale", [1.0, 0.1, 7.0])
def test_the_scale_of_weights_does_not_matter(scale):
    random = np.random.default_rng(0)
    predicted = np.column_stack([1.0 - (p := random.random(500)), p])
    event = random.random(500) < p**2
    weights = np.full(500, scale)
    expected = open_variance(observe(predicted, event), 0.5, 0.5)
    found = open_variance(observe(predicted, event, weights), 0.5, 0.5)
    np.testing.assert_allclose(found, expected)
    expected = steps_of(p, event * 1.0).deviations
    np.testing.assert_allclose(steps_of(p, event * 1.0, weights).deviations, expected)
    other = 0.5 * predicted + 0.25
    alike = observe(predicted, event, weights, other)
    seen = Seen.of(alike.happened, predicted, other, weights)
    plain = Seen.of(alike.happened, predicted, other, np.ones(500))
    assert seen.standard_error == pytest.approx(plain.standard_error)


def test_weights_that_go_with_labels_are_no_misfit():
    """Events count ten times: of 40 % events the weighted share is 20 / 23."""
    event = np.arange(1_000) % 5 < 2
    weights = np.where(event, 10.0, 1.0)
    predicted = np.full((1_000, 2), [3 / 23, 20 / 23])
    variance = open_variance(observe(predicted, event, weights), share=0.5)
    assert variance[np.searchsorted(KNOTS, 0.9)] < 0.05
    assert open_variance(observe(predicted, event), share=0.5).max() == 4.0
    seen = Seen.of(np.column_stack([~event, event]), predicted, np.full((1_000, 2), 0.5), weights)
    assert seen.variance == pytest.approx(0.0, abs=1e-9)


def test_events_of_large_weight_may_be_missing_at_the_start():
    predicted, events = np.repeat([0.0, 0.5], 200), np.repeat([0.0, 1.0, 0.0], [200, 100, 100])
    spread = steps_of(predicted, events, np.where(events == 1.0, 10.0, 1.0))
    [[_, [_, upper]]] = spread.interval(np.array([[1.0, 0.0]]), 0.95)
    limit = 1.0 - 0.025 ** (1 / 200)
    assert upper == pytest.approx(10.0 * limit / (10.0 * limit + 1.0 - limit))
