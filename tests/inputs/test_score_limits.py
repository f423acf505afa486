"""Probabilities of 0 and 1 count as half a step, where scores are rounded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_predict

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationForest,
    CalibrationTree,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)
from caltree._inputs.score_limits import USUAL_LIMITS, ScoreEdges, ScoreLimits

rounded = st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=30)


def limits_of(scores, **options):
    options = {"score_type": "probability", "is_turned": False, **options}
    return ScoreEdges.of(np.reshape(scores, (-1, 1))).limits(**options)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([0.0, 0.02, 0.5, 1.0], (0.01, 0.75)),
        ([0.0, 0.25, 0.5], (0.125, USUAL_LIMITS.highest)),
        ([0.5, 0.75, 1.0], (USUAL_LIMITS.lowest, 0.875)),
        ([0.25, 0.75], None),
        ([0.0, 1.0], None),
        ([], None),
        # A classifier that gives such a small probability does not round it to 0.
        ([0.0, 1e-12, 0.5], None),
        ([0.5, 1.0 - 1e-12, 1.0], None),
        ([0.0, 1e-6, 1.0 - 1e-12, 1.0], None),
        ([0.0, 1e-12, 0.75, 1.0], None),
        # A sum of shares may miss 1 by its last bits.
        ([0.0, 0.25, 0.75, 1.0 - 2.0**-53], (0.125, 0.875)),
        ([0.25, 0.75, 1.0 - 2.0**-53], (USUAL_LIMITS.lowest, 0.875)),
    ],
)
def test_half_a_step_from_certainty(scores, expected):
    assert limits_of(scores) == (USUAL_LIMITS if expected is None else ScoreLimits(*expected))


def test_scores_that_are_no_probabilities_have_the_usual_limits():
    assert limits_of([0.0, 0.25, 1.0], score_type="margin") == USUAL_LIMITS
    assert limits_of([-1.0, 0.0, 0.25, 1.0]) == USUAL_LIMITS


@given(rounded, rounded)
def test_parts_merge_and_turn(first, second):
    parts = [ScoreEdges.of(np.reshape(part, (-1, 1))) for part in (first, second)]
    whole = np.reshape(first + second, (-1, 1))
    assert parts[0].merge(parts[1]) == ScoreEdges.of(whole)
    turned = ScoreEdges.of(whole).limits("probability", is_turned=True)
    there = ScoreEdges.of(1.0 - whole).limits("probability", is_turned=False)
    np.testing.assert_allclose(
        [turned.lowest, turned.highest], [there.lowest, there.highest], rtol=1e-12
    )


def rounded_scores(n_rows, seed):
    """Scores that are too sure, of two decimals, and rows of two kinds."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 2))
    odds = 3.0 * random.normal(size=n_rows)
    y = random.random(n_rows) < 1 / (1 + np.exp(-odds - (X[:, 0] > 0.5)))
    return X, y, np.round(1 / (1 + np.exp(-1.5 * odds)), 2)


@pytest.mark.parametrize(
    "calibrator",
    [
        PlattScaling(),
        TemperatureScaling(),
        BetaScaling(),
        CalibrationTree(),
        CalibrationTree(scoring="log_loss"),
        CalibrationForest(10, random_state=0),
        CalibrationBoosting(random_state=0),
    ],
    ids=str,
)
def test_rounded_scores_are_calibrated_as_well_as_others(calibrator):
    X, y, scores = rounded_scores(4000, 0)
    X_new, y_new, new = rounded_scores(4000, 1)
    assert np.mean((scores == 0.0) | (scores == 1.0)) > 0.2
    calibrator.fit(X, y, scores)
    assert calibrator.score_limits_ == ScoreLimits(0.005, 0.995)
    as_they_are = log_loss(y_new, calibrator.predict_proba(X_new, new))
    clipped = calibrator.fit(X, y, scores.clip(0.005, 0.995))
    assert calibrator.score_limits_ == USUAL_LIMITS
    assert as_they_are <= 1.02 * log_loss(
        y_new, clipped.predict_proba(X_new, new.clip(0.005, 0.995))
    )


@pytest.mark.parametrize(
    "calibrator", [PlattScaling(), TemperatureScaling(), BetaScaling()], ids=str
)
def test_votes_of_a_random_forest(calibrator):
    random = np.random.default_rng(0)
    X = random.normal(size=(3000, 5))
    y = random.integers(0, 3, 3000)
    X[np.arange(3000), y] += 2.5
    model = RandomForestClassifier(50, random_state=0)
    votes = cross_val_predict(model, X[:2000], y[:2000], method="predict_proba")
    new = model.fit(X[:2000], y[:2000]).predict_proba(X[2000:])
    calibrated = calibrator.fit(None, y[:2000], votes).predict_proba(None, new)
    assert calibrator.score_limits_.lowest == 0.01
    clipped = calibrator.fit(None, y[:2000], without_certainty(votes))
    expected = clipped.predict_proba(None, without_certainty(new))
    assert log_loss(y[2000:], calibrated) < 1.02 * log_loss(y[2000:], expected)


def without_certainty(votes):
    clipped = votes.clip(0.01)
    return clipped / clipped.sum(axis=1, keepdims=True)


def test_the_score_of_the_first_class():
    _, y, scores = rounded_scores(1000, 0)
    scores = scores[:, np.newaxis]
    scores[scores > 0.9] = 0.9  # none is 1
    second = PlattScaling(pos_label=True).fit(None, y, scores)
    first = PlattScaling(pos_label=False).fit(None, ~y, scores)
    assert second.score_limits_ == ScoreLimits(0.005, USUAL_LIMITS.highest)
    assert first.score_limits_ == ScoreLimits(USUAL_LIMITS.lowest, 0.995)
    np.testing.assert_allclose(
        first.predict_proba(None, scores)[:, 0], second.predict_proba(None, scores)[:, 1], atol=1e-6
    )


def test_uncalibrated_scores_are_untouched():
    X, y, scores = rounded_scores(1000, 0)
    tree = CalibrationTree().fit(X, y, scores)
    assert tree.uncalibrated(tree.read_scores([0.0, 1.0])).tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_text_says_what_certain_scores_count_as():
    X, y, scores = rounded_scores(1000, 0)
    said = "in formulas, a score below 0.005 counts as 0.005, and one above 0.995 counts as 0.995"
    assert said in CalibrationTree().fit(X, y, scores).to_text().splitlines()
    below = "in formulas, a score below 0.005 counts as 0.005"
    for pos_label in (False, True):
        tree = CalibrationTree(pos_label=pos_label).fit(X, y == pos_label, scores.clip(0.0, 0.99))
        assert below in tree.to_text().splitlines()
    usual = CalibrationTree().fit(X, y, scores.clip(0.005, 0.995))
    published = PublishedCalibrationTree().fit(X, y, scores)
    assert "in formulas" not in usual.to_text() + published.to_text()
