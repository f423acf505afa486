"""Short numbers of a forest: shorter, and next to the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import CalibrationForest
from caltree._training.averaging import WEIGHT_UNITS, round_weights
from caltree._training.rounding import _round_steps, shorten_numbers

from ..support.trees import make_rows

quick = settings(max_examples=100, deadline=None, derandomize=True)


@quick
@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=14).filter(any))
def test_weights_become_whole_units_of_the_same_sum(given_weights):
    weights = np.array(given_weights) / sum(given_weights)
    rounded = round_weights(weights)
    units = rounded * WEIGHT_UNITS
    np.testing.assert_allclose(units, np.rint(units), rtol=0, atol=1e-6)
    assert np.rint(units).sum() == WEIGHT_UNITS
    assert np.abs(rounded - weights).max() <= 1.0 / WEIGHT_UNITS
    assert rounded.min() >= 0.0 and not rounded[weights == 0.0].any()


def test_rounded_weights_stay_as_they_are():
    weights = np.array([0.25, 0.0, 0.5, 0.125, 0.125])
    assert np.array_equal(round_weights(weights), weights)
    assert np.array_equal(round_weights(np.zeros(3)), np.zeros(3))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([1.0, 2.0, 5.0, 9.9], [1.0, 2.0, 5.0, 5.0]),
        ([0.0499, 0.0017, 0.015], [0.02, 0.001, 0.01]),
        ([3e-102, 7e98], [2e-102, 5e98]),
    ],
)
def test_steps_have_one_digit(steps, expected):
    assert _round_steps(np.array(steps)).tolist() == expected


def fit(n_classes):
    X, y, scores = make_rows(400, n_classes)
    return CalibrationForest(8, random_state=0, score_type="margin").fit(X, y, np.log(scores))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_numbers_of_a_forest_are_short(n_classes):
    model = fit(n_classes).model_
    counts = model.weight > 0.0
    in_steps = model.parameters[counts] / model.step
    assert np.array_equal(np.rint(in_steps) * model.step, model.parameters[counts])
    assert 5.0 < np.abs(in_steps).mean() < 500.0
    assert np.array_equal(model.gain, np.rint(model.gain)) and np.abs(model.gain).max() == 500.0
    assert not model.parameters[~counts].any() and model.parameters[counts].any(axis=(1, 2)).all()
    assert max(len(f"{weight:.12g}") for weight in model.weight.tolist()) <= 8


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_short_numbers_say_next_to_the_same(n_classes, shift):
    """Also where scores are large, and differ by little."""
    fitted = fit(n_classes).model_
    rng = np.random.default_rng(0)
    scores = np.asfortranarray(rng.standard_normal((200, fitted.n_scores)) + shift)
    parameters = rng.standard_normal(fitted.parameters.shape)
    parameters[:, :, 0] -= shift * parameters[:, :, 1:].sum(axis=2)
    counts = (fitted.weight > 0.0)[:, np.newaxis, np.newaxis]
    model = replace(fitted, parameters=np.where(counts, parameters, 0.0))
    short = shorten_numbers(model, scores)
    assert not np.array_equal(short.parameters, model.parameters)
    matrix = np.asfortranarray(make_rows(200, n_classes)[0])
    before, after = (each.probabilities(matrix, scores) for each in (model, short))
    # By half a step of 0.005 times the root of eight trees, for each of the parameters.
    n_seen = model.parameters.shape[2]
    log_odds = 0.5 * 0.005 * np.sqrt(8) * (1.0 + (n_seen - 1) * (4.0 if shift == 0.0 else 1.0))
    assert 0 < np.abs(before - after).max() < 0.25 * log_odds
    assert np.sqrt(np.mean(np.square(before - after))) < 0.002
    again = shorten_numbers(short, scores)
    assert np.array_equal(again.parameters, short.parameters)
    assert np.array_equal(again.weight, short.weight) and np.array_equal(again.gain, short.gain)
