"""The tests of significance, against hand-worked cases, scipy and the figures of the paper."""

import math

import numpy as np
import pytest
from scipy import stats

from caltree.paper import published
from caltree.paper.statistics import (
    SignTest,
    TTest,
    compare,
    corrected_resampled_t_test,
    sign_test,
)


def test_t_test_of_a_case_worked_by_hand():
    # Differences 1, 2, 3, 4 of two runs of two folds: the mean is 5/2, the variance 5/3, and
    # t = (5/2) / sqrt(5/3 * (1/4 + 1/1)) = sqrt(3). With three degrees of freedom the probability
    # of a larger t either way is 1 - 2/pi * (x / (1 + x**2) + arctan(x)) with x = t / sqrt(3) = 1.
    test = corrected_resampled_t_test([2, 4, 6, 8], [1, 2, 3, 4], n_folds=2)
    assert test.difference == 2.5
    assert test.t == pytest.approx(math.sqrt(3), rel=1e-14)
    assert test.p == pytest.approx(1 - 2 / math.pi * (1 / 2 + math.pi / 4), rel=1e-12)


def test_the_paper_multiplies_the_variance_by_100_folds_and_a_ninth():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 100))
    test = corrected_resampled_t_test(a, b)
    variance = np.var(a - b, ddof=1)
    expected = np.mean(a - b) / math.sqrt(variance * (1 / 100 + 1 / 9))
    assert test.t == pytest.approx(expected, rel=1e-12)
    assert test.p == pytest.approx(2 * stats.t.sf(abs(expected), 99), rel=1e-12)


@pytest.mark.parametrize("n_folds", [2, 5, 10])
def test_without_the_correction_it_is_the_paired_t_test(n_folds):
    rng = np.random.default_rng(n_folds)
    a = rng.normal(size=40)
    b = a + rng.normal(0.2, 1, size=40)
    plain = stats.ttest_rel(a, b)
    test = corrected_resampled_t_test(a, b, n_folds)
    assert test.t * math.sqrt(1 + 40 / (n_folds - 1)) == pytest.approx(plain.statistic, rel=1e-12)
    assert test.p > plain.pvalue
    # n_test / n_train is next to nothing with a great many folds in a single run.
    many = 200_000
    a, b = rng.normal(size=(2, many))
    plain = stats.ttest_rel(a, b)
    uncorrected = corrected_resampled_t_test(a, b, many).t * math.sqrt(1 + many / (many - 1))
    assert uncorrected == pytest.approx(plain.statistic, rel=1e-9)


def test_the_order_of_a_and_b_turns_the_sign_only():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 20))
    one, other = corrected_resampled_t_test(a, b), corrected_resampled_t_test(b, a)
    assert (one.difference, one.t, one.p) == (-other.difference, -other.t, other.p)


def test_differences_without_variance():
    same = [0.1, 0.2, 0.3, 0.4]
    assert corrected_resampled_t_test(same, same, 2) == TTest(0.0, 0.0, 1.0)
    # 0.3 is no binary number: the mean of ten of them is not exactly 0.3.
    larger = corrected_resampled_t_test([0.3] * 10, [0.0] * 10)
    assert (larger.t, larger.p) == (math.inf, 0.0)
    smaller = corrected_resampled_t_test([0.0] * 10, [0.3] * 10)
    assert (smaller.t, smaller.p) == (-math.inf, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "n_folds", "error", "message"),
    [
        ([0.1, math.nan], [0.1, 0.2], 2, ValueError, "a contains nan at index 1"),
        ([0.1, 0.2], [math.inf, 0.2], 2, ValueError, "b contains inf at index 0"),
        ([0.1, 0.2], [0.1, 0.2, 0.3], 2, ValueError, "same folds, got 2 and 3"),
        ([0.1] * 15, [0.2] * 15, 10, ValueError, "15 results.*n_folds=10"),
        ([0.1], [0.2], 2, ValueError, r"a must have one result.*got shape \(1,\)"),
        ([[0.1, 0.2]] * 2, [[0.1, 0.2]] * 2, 2, ValueError, r"a .* got shape \(2, 2\)"),
        (["low", "high"], [0.1, 0.2], 2, TypeError, "a must be numbers"),
        ([0.1, 0.2], [0.1, 0.2], 1, ValueError, "n_folds must be a whole number from 2"),
    ],
)
def test_t_test_refuses(a, b, n_folds, error, message):
    with pytest.raises(error, match=message):
        corrected_resampled_t_test(a, b, n_folds)


def test_compare_takes_smaller_errors_for_a_win():
    rng = np.random.default_rng(0)
    b = rng.normal(0.3, 0.01, 100)
    much_smaller, hardly_smaller = b - rng.normal(0.1, 0.01, 100), b - rng.normal(0, 0.01, 100)
    assert compare(much_smaller, b) == "win"
    assert compare(b, much_smaller) == "loss"
    assert compare(hardly_smaller, b) == compare(b, hardly_smaller) == compare(b, b) == "draw"


def test_compare_uses_the_level_and_the_folds_that_it_is_given():
    a, b = [1, 2, 3, 4], [2, 4, 6, 8]
    p = corrected_resampled_t_test(a, b, 2).p
    assert compare(a, b, p, n_folds=2) == "draw"
    assert compare(a, b, np.nextafter(p, 1), n_folds=2) == "win"
    assert compare(a, b, p, n_folds=4) == "win"


@pytest.mark.parametrize("p", [0, 1, -0.1, math.nan])
def test_compare_refuses_what_is_no_level(p):
    with pytest.raises(ValueError, match="p must be a level of significance"):
        compare([1, 2], [3, 4], p, n_folds=2)


def test_sign_test_worked_by_hand():
    # Two of five: 1/32 * (1 + 5 + 10) either way, which is 1; nine of nine: 2 / 512.
    assert sign_test(2, 3).p_exact == 1.0
    nine = sign_test(9, 0)
    assert nine.p == pytest.approx(0.0026997960632601866, rel=1e-12)
    assert nine.p_exact == pytest.approx(2 / 512, rel=1e-12)
    assert sign_test(0, 9) == nine
    assert sign_test(0, 0) == SignTest(1.0, 1.0)
    assert sign_test(4, 4).p == sign_test(4, 4).p_exact == 1.0


def test_sign_test_gives_the_p_values_that_the_paper_prints():
    for learner in published.LEARNERS:
        for versus in published.RIVALS:
            printed = published.sign_test(learner, versus)
            p = sign_test(printed.counts.wins, printed.counts.losses).p
            if printed.p.startswith("<"):
                assert p < float(printed.p[1:])
            else:
                digits = len(printed.p) - len("0.")
                assert f"{p:.{digits}f}" == printed.p


def test_sign_test_refuses_what_is_no_count():
    with pytest.raises(ValueError, match="wins must be a whole number from 0"):
        sign_test(-1, 2)
    with pytest.raises(ValueError, match="losses must be a whole number from 0"):
        sign_test(1, 2.5)
