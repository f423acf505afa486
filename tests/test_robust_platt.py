"""Platt scaling in which rows with outlying scores count less."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caltree import PlattScaling, RobustPlattScaling
from caltree._training.scaling import count_outliers_less


def make_logits(n_rows, n_outliers, seed=0):
    """Log-odds that are the truth, and some rows that are far off."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=n_rows)
    y = random.random(n_rows) < 1 / (1 + np.exp(-logits))
    logits[:n_outliers], y[:n_outliers] = 60.0, False
    return logits, y


def test_weights_worked_out_by_hand():
    # The median is 3, the distances 2, 1, 0, 1 and 97, and their median 1. So the limit is 2 times
    # 1.4826, beyond which only the last row lies.
    found = count_outliers_less(np.array([1.0, 2.0, 3.0, 4.0, 100.0]), np.ones(5), 2.0)
    assert_allclose(found, [1.0, 1.0, 1.0, 1.0, 2.9652 / 97], rtol=1e-12)


def test_the_median_of_an_even_number_is_between_two_rows():
    # The median is 2.5, the distances 1.5, .5, .5 and 7.5, and their median 1.
    found = count_outliers_less(np.array([1.0, 2.0, 3.0, 10.0]), np.ones(4), 1.0)
    assert_allclose(found, [1.4826 / 1.5, 1.0, 1.0, 1.4826 / 7.5], rtol=1e-12)


def test_a_sigmoid_worked_out_by_hand():
    # Two rows at -1, two at 1 and one at 9. The median is 1, the distances 2, 2, 0, 0 and 8, and
    # their median 2. With epsilon 1 / 1.4826 the limit is 2, so the last row counts a quarter.
    # Platt's targets are 4 / 5 for the three rows of the class and 1 / 4 for the two others. At the
    # most likely sigmoid the residuals, and their products with the scores, sum to 0.
    scores = np.array([-1.0, -1.0, 1.0, 1.0, 9.0])
    y = np.array([0, 1, 1, 1, 0])
    fitted = RobustPlattScaling(epsilon=1 / 1.4826, score_type="logit").fit(None, y, scores)
    target = np.where(y == 1, 4 / 5, 1 / 4)
    counts = np.array([1.0, 1.0, 1.0, 1.0, 0.25])
    residual = counts * (target - fitted.predict_proba(None, scores)[:, 1])
    assert_allclose([residual.sum(), residual @ scores], 0.0, atol=1e-9)


def test_outliers_do_not_turn_it():
    logits, y = make_logits(2000, 10)
    plain = PlattScaling(score_type="logit").fit(None, y, logits).slopes_[0]
    robust = RobustPlattScaling(score_type="logit").fit(None, y, logits).slopes_[0]
    clean = PlattScaling(score_type="logit").fit(None, y[10:], logits[10:]).slopes_[0]
    assert plain < 0.1
    assert abs(robust - clean) < 0.25


def test_how_far_an_outlier_is_hardly_matters():
    slopes = []
    for far in (30.0, 3000.0, 3e9):
        logits, y = make_logits(500, 1)
        logits[0] = far
        slopes.append(RobustPlattScaling(score_type="logit").fit(None, y, logits).slopes_[0])
    assert_allclose(slopes, slopes[-1], rtol=0.05)


def test_it_tends_to_the_truth_without_outliers():
    logits, y = make_logits(200_000, 0)
    fitted = RobustPlattScaling(score_type="logit").fit(None, y, 2.0 * logits + 1.0)
    assert_allclose([fitted.slopes_[0], fitted.intercepts_[0]], [0.5, -0.5], atol=0.02)


def test_with_a_large_epsilon_it_is_platt_scaling():
    logits, y = make_logits(300, 2)
    robust = RobustPlattScaling(epsilon=1e9, score_type="logit").fit(None, y, logits)
    plain = PlattScaling(score_type="logit").fit(None, y, logits)
    assert_allclose(robust.predict_proba(None, logits), plain.predict_proba(None, logits))


def test_all_rows_count_fully_if_most_have_one_score():
    scores, y = np.array([0.5] * 6 + [0.1, 0.9, 0.99]), [0, 1, 0, 1, 0, 1, 0, 1, 1]
    robust = RobustPlattScaling().fit(None, y, scores).predict_proba(None, scores)
    assert_allclose(robust, PlattScaling().fit(None, y, scores).predict_proba(None, scores))


def test_a_weight_of_two_is_two_rows():
    logits, y = make_logits(99, 3)
    weights = np.random.default_rng(1).integers(1, 4, 99)
    weighted = RobustPlattScaling(score_type="logit").fit(None, y, logits, weights)
    repeated = RobustPlattScaling(score_type="logit").fit(
        None, np.repeat(y, weights), np.repeat(logits, weights)
    )
    assert_allclose(weighted.slopes_, repeated.slopes_, rtol=1e-9)


def test_classes_are_fitted_one_by_one():
    random = np.random.default_rng(0)
    scores = random.dirichlet([1, 1, 1], 300)
    y = np.array([random.choice(3, p=row) for row in scores])
    fitted = RobustPlattScaling().fit(None, y, scores)
    alone = RobustPlattScaling().fit(None, y == 2, scores[:, 2])
    assert_allclose(fitted.slopes_[2], alone.slopes_[0])


@pytest.mark.parametrize("epsilon", [0, -1.0, np.inf, np.nan, None, "1", True])
def test_bad_epsilon(epsilon):
    with pytest.raises(ValueError, match="epsilon must be a number from 1e-09 to 1e"):
        RobustPlattScaling(epsilon=epsilon).fit(None, [0, 1], [0.2, 0.8])
