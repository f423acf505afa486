"""Smooth isotonic regression: a case by hand, scipy's spline, and extreme scores."""

import json

import numpy as np
import pytest
from scipy.interpolate import PchipInterpolator

import caltree
from caltree import IsotonicScaling, SmoothIsotonicScaling
from caltree._fitted.splines import cubic_pieces, evaluate_pieces

# Three flat regions: none of four, one of four at a mean of 0.4, four of four.
SCORES = np.repeat([0.2, 0.35, 0.45, 0.6], [4, 2, 2, 4])
LABELS = np.array([0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1])


def second(model, scores):
    return model.predict_proba(None, scores)[:, 1]


def test_by_hand():
    """In units of 0.2 the lines have the slopes 1/4 and 3/4.

    Their harmonic mean is 3/8. At the first point (3 * 1/4 - 3/4) / 2 is 0, and at the last one
    (3 * 3/4 - 1/4) / 2 is 1. Half way, a cubic has the mean of the heights at both ends and an
    eighth of the difference of its slopes.
    """
    model = SmoothIsotonicScaling().fit(None, LABELS, SCORES)
    assert model.thresholds_[0] == pytest.approx([0.2, 0.4, 0.6])
    assert model.values_[0].tolist() == [0.0, 0.25, 1.0]
    halfway = [1 / 8 + (0 - 3 / 8) / 8, 5 / 8 + (3 / 8 - 1) / 8]
    assert second(model, [0.3, 0.5]) == pytest.approx(halfway)
    assert second(model, [0.0, 0.2, 0.6, 1.0]) == pytest.approx([0, 0, 1, 1], abs=1e-12)


def test_weights_count_rows():
    weights = np.array([1, 2, 0, 3, 1, 1, 2, 0, 1, 2, 1, 1])
    weighted = SmoothIsotonicScaling().fit(None, LABELS, SCORES, weights)
    repeated = SmoothIsotonicScaling().fit(
        None, np.repeat(LABELS, weights), np.repeat(SCORES, weights)
    )
    assert weighted.thresholds_[0] == pytest.approx(repeated.thresholds_[0])
    assert weighted.values_[0] == pytest.approx(repeated.values_[0])


@pytest.mark.parametrize("n_corners", [1, 2, 3, 4, 30])
def test_the_spline_is_that_of_scipy(n_corners):
    random = np.random.default_rng(n_corners)
    corners, heights = np.sort(random.random((2, n_corners)))
    x = np.sort(np.append(random.uniform(corners[0], corners[-1], 300), corners))
    found = evaluate_pieces(cubic_pieces(corners, heights), x)
    expected = PchipInterpolator(corners, heights)(x) if n_corners > 1 else heights[0]
    assert found == pytest.approx(expected, abs=1e-12)
    assert (np.diff(found) >= -1e-15).all()
    beyond = evaluate_pieces(cubic_pieces(corners, heights), np.array([-1.0, 2.0]))
    assert beyond.tolist() == [heights[0], heights[-1]]


def test_a_higher_score_has_a_higher_probability_within_the_points():
    random = np.random.default_rng(0)
    scores = random.random(500)
    labels = random.random(500) < scores**2
    model = SmoothIsotonicScaling().fit(None, labels, scores)
    ends = model.thresholds_[0][[0, -1]]
    assert (np.diff(second(model, np.linspace(*ends, 400))) > 0).all()
    steps = IsotonicScaling().fit(None, labels, scores)
    assert (np.diff(second(steps, np.linspace(*ends, 400))) == 0).any()


@pytest.mark.parametrize("unit", [1e-280, 1e-150, 1e90])
def test_the_unit_of_margins_does_not_matter(unit):
    plain = SmoothIsotonicScaling(score_type="margin").fit(None, LABELS, SCORES)
    scaled = SmoothIsotonicScaling(score_type="margin").fit(None, LABELS, SCORES * unit)
    x = np.linspace(0.1, 0.7, 50)
    assert second(scaled, x * unit) == pytest.approx(second(plain, x), abs=1e-9)


def test_corners_next_to_each_other_and_flat_files():
    corners = np.array([0.0, 1e-300, 1.0, 1e100])
    values = evaluate_pieces(cubic_pieces(corners, np.array([0.0, 0.5, 0.5, 1.0])), corners)
    assert values.tolist() == [0.0, 0.5, 0.5, 1.0]
    x = np.array([5e-301, 0.5, 1e50, 9e99])
    found = evaluate_pieces(cubic_pieces(corners, np.array([0.0, 0.5, 0.5, 1.0])), x)
    assert (np.diff(found) >= 0).all() and found[1] == 0.5


def test_there_and_back(tmp_path):
    model = SmoothIsotonicScaling().fit(None, LABELS, SCORES)
    model.save(tmp_path / "model.json")
    again = caltree.load(tmp_path / "model.json")
    assert type(again) is SmoothIsotonicScaling
    x = np.linspace(0, 1, 40)
    assert np.array_equal(second(again, x), second(model, x))
    stored = json.loads((tmp_path / "model.json").read_text())
    with pytest.raises(ValueError, match="this is a stored SmoothIsotonicScaling"):
        IsotonicScaling.from_dict(stored)
    stored["values"] = [[0.5, 0.2, 0.1]]
    with pytest.raises(ValueError, match="must rise together"):
        SmoothIsotonicScaling.from_dict(stored)
