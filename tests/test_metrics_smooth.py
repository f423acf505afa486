"""Smooth calibration error: by hand, by the definition, and beside relplot."""

import numpy as np
import pytest

from caltree.metrics import smooth_calibration_error


def by_definition(truth, said, width):
    """The smoothed error at a width, integrated on a grid, with enough reflections."""
    grid = (np.arange(4000) + 0.5) / 4000
    smoothed = np.zeros(len(grid))
    for shift in range(-6, 7, 2):
        for centre in (said + shift, shift - said):
            kernel = np.exp(-0.5 * ((grid[:, np.newaxis] - centre) / width) ** 2)
            smoothed += (kernel / width / np.sqrt(2 * np.pi)) @ (truth - said)
    return np.abs(smoothed / len(said)).mean()


@pytest.mark.parametrize("power", [1.0, 2.0, 0.3])
def test_it_is_the_width_at_which_error_and_width_agree(power):
    random = np.random.default_rng(0)
    said = random.random(300)
    truth = (random.random(300) < said**power).astype(float)
    found = smooth_calibration_error(truth, said)
    assert by_definition(truth, said, found) == pytest.approx(found, abs=2e-4)


def test_by_hand():
    assert smooth_calibration_error([0, 1, 0, 0], [0.5] * 4) == pytest.approx(0.25)
    assert smooth_calibration_error([0, 0, 1, 1], [0, 0, 1, 1]) == pytest.approx(0, abs=1e-6)


def test_weights_count_rows_and_classes_are_averaged():
    random = np.random.default_rng(1)
    said, truth = random.random(100), random.integers(0, 2, 100)
    weights = random.integers(0, 4, 100)
    repeated = np.repeat(np.arange(100), weights)
    found = smooth_calibration_error(truth, said, sample_weight=weights)
    assert found == pytest.approx(smooth_calibration_error(truth[repeated], said[repeated]))
    many = random.dirichlet([1, 1, 1], 200)
    labels = random.integers(0, 3, 200)
    each = [smooth_calibration_error(labels == c, many[:, c]) for c in range(3)]
    assert smooth_calibration_error(labels, many) == pytest.approx(np.mean(each))


def test_as_relplot():
    relplot = pytest.importorskip("relplot")
    random = np.random.default_rng(2)
    said = random.random(2000)
    truth = (random.random(2000) < said**1.5).astype(float)
    expected = relplot.smECE(said, truth)
    assert smooth_calibration_error(truth, said) == pytest.approx(expected, abs=2e-3)
