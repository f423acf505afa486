"""Rows whose scores cannot be used: an error, or NaN for every class."""

import numpy as np
import pandas as pd
import pytest

from caltree import (
    BetaScaling,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)

CALIBRATORS = [
    CalibrationTree(),
    PublishedCalibrationTree(),
    CalibrationForest(n_estimators=5, random_state=0),
    PlattScaling(),
    TemperatureScaling(),
    BetaScaling(),
    IsotonicScaling(),
    SmoothIsotonicScaling(),
    RegularizedIsotonicScaling(),
    RobustPlattScaling(),
    IdentityCalibrator(),
]
names = [type(calibrator).__name__ for calibrator in CALIBRATORS]


def make_rows(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n_rows, 2)).astype(float)
    scores = rng.random(n_rows)
    y = rng.random(n_rows) < np.where(X[:, 0] == 2, scores / 2, scores)
    return X, y, scores


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=names)
def test_bad_rows_become_nan_and_the_others_stay(calibrator):
    X, y, scores = make_rows()
    calibrator.fit(X, y, scores)
    right = calibrator.predict_proba(X, scores)
    for value in (np.nan, np.inf, -np.inf, 1.02, -0.1):
        wrong = scores.copy()
        wrong[[3, 7]] = value
        with pytest.raises(ValueError, match=r"scores contains .* in row 3, column 0"):
            calibrator.predict_proba(X, wrong)
        found = calibrator.predict_proba(X, wrong, on_bad_rows="nan")
        assert np.isnan(found[[3, 7]]).all()
        rest = np.delete(np.arange(len(X)), [3, 7])
        np.testing.assert_array_equal(found[rest], right[rest])
        assert np.isfinite(scores).all()
    np.testing.assert_array_equal(calibrator.predict_proba(X, scores, on_bad_rows="nan"), right)


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=names)
def test_rows_may_all_be_bad_or_none_at_all(calibrator):
    X, y, scores = make_rows()
    calibrator.fit(X, y, scores)
    found = calibrator.predict_proba(X[:5], np.full(5, np.nan), on_bad_rows="nan")
    assert found.shape == (5, 2) and np.isnan(found).all()
    assert calibrator.predict_proba(X[:0], scores[:0], on_bad_rows="nan").shape == (0, 2)
    missing = pd.Series([None, 0.5], dtype="Float64")
    found = calibrator.predict_proba(X[:2], missing, on_bad_rows="nan")
    assert np.isnan(found).all(axis=1).tolist() == [True, False]


def test_margins_of_three_classes_need_only_be_finite():
    rng = np.random.default_rng(0)
    X, scores = rng.random((300, 2)), rng.normal(0, 3, (300, 3))
    tree = CalibrationTree().fit(X, scores.argmax(axis=1), scores)
    scores[5, 2] = np.nan
    found = tree.predict_proba(X, scores, on_bad_rows="nan")
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [5]
    assert np.isnan(found[5]).all()


def test_another_word_is_refused():
    X, y, scores = make_rows()
    tree = CalibrationTree().fit(X, y, scores)
    with pytest.raises(ValueError, match="on_bad_rows must be one of 'error', 'nan', got 'drop'"):
        tree.predict_proba(X, scores, on_bad_rows="drop")
