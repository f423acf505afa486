"""Scores of every form and kind become one matrix of log-odds, or a clear error."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.naive_bayes import GaussianNB

from caltree._inputs.score_types import resolve_score_type
from caltree._inputs.scores import (
    LARGEST_LOG_ODDS,
    LARGEST_SCORE,
    ScoreKind,
    as_score_matrix,
    bend,
    is_offset,
    log_odds,
)

from ..spec.shrunken import with_bends

PAIRS = [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]


def test_a_vector_becomes_one_column():
    matrix = as_score_matrix([0.25, 0.5, 1.0], 3, 2)
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [[0.25], [0.5], [1.0]]


@pytest.mark.parametrize("n_columns, n_classes", [(1, 2), (2, 2), (4, 2), (3, 3), (9, 3)])
def test_widths_that_fit_the_classes(n_columns, n_classes):
    assert as_score_matrix(np.zeros((5, n_columns)), 5, n_classes).shape == (5, n_columns)


@pytest.mark.parametrize("n_columns, n_classes", [(0, 2), (3, 2), (1, 3), (2, 3), (4, 3)])
def test_widths_that_do_not_fit_the_classes(n_columns, n_classes):
    with pytest.raises(ValueError, match=f"scores has {n_columns} columns.* {n_classes} classes"):
        as_score_matrix(np.zeros((5, n_columns)), 5, n_classes)


@pytest.mark.parametrize("n_classes, offered", [(2, True), (3, False)])
def test_one_column_is_only_offered_for_two_classes(n_classes, offered):
    with pytest.raises(ValueError) as error:
        as_score_matrix(np.zeros((5, 5)), 5, n_classes)
    assert ("second class" in str(error.value)) is offered


def test_float64_is_not_copied():
    scores = np.array(PAIRS)
    assert as_score_matrix(scores, 3, 2) is scores


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.uint8, bool, object])
def test_numbers_of_every_type(dtype):
    matrix = as_score_matrix(np.array([[0, 1], [1, 0]], dtype=dtype), 2, 2)
    assert matrix.dtype == np.float64
    assert matrix.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(PAIRS, columns=["no", "yes"])
    for table in (frame, frame.astype("Float64"), frame.astype({"no": "Float64"})):
        assert as_score_matrix(table, 3, 2).tolist() == PAIRS
    assert as_score_matrix(frame["yes"], 3, 2).tolist() == [[0.75], [0.5], [0.0]]
    frame = pd.DataFrame({"no": pd.array([0.5, None], dtype="Float64"), "yes": [0.5, 0.5]})
    with pytest.raises(ValueError, match="NaN in row 1, column 0"):
        as_score_matrix(frame, 2, 2)


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(PAIRS, schema=["no", "yes"], orient="row")
    assert as_score_matrix(frame, 3, 2).tolist() == PAIRS
    assert as_score_matrix(frame["yes"], 3, 2).tolist() == [[0.75], [0.5], [0.0]]


def test_pyarrow():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"no": [0.25, 0.5], "yes": [0.75, 0.5]})
    assert as_score_matrix(table, 2, 2).tolist() == PAIRS[:2]
    assert as_score_matrix(table["yes"], 2, 2).tolist() == [[0.75], [0.5]]


@pytest.mark.parametrize(
    "scores",
    [["a", "b"], ["0.5", "0.5"], [0.5, "0.5"], np.array(["0.5", 0.5], dtype=object), [b"1", b"0"],
     [1j, 0j], [{}, {}], np.array(["2020", "2021"], dtype="datetime64[Y]")],
)  # fmt: skip
def test_what_is_not_a_number_is_refused(scores):
    with pytest.raises(TypeError, match="scores must be numbers"):
        as_score_matrix(scores, 2, 2)


def test_a_masked_array_is_refused():
    with pytest.raises(TypeError, match="masked"):
        as_score_matrix(np.ma.masked_equal([0.5, 0.25], 0.5), 2, 2)


@pytest.mark.parametrize(
    ("n_columns", "n_classes", "is_told"), [(5, 3, True), (2, 3, False), (3, 2, False)]
)
def test_columns_of_classes_without_rows_are_to_be_left_out(n_columns, n_classes, is_told):
    with pytest.raises(ValueError, match=f"^scores has {n_columns} columns, but y has") as found:
        as_score_matrix(np.zeros((2, n_columns)), 2, n_classes)
    assert ("if the classifier knows classes that y lacks" in str(found.value)) == is_told


def test_other_dimensions_are_refused():
    with pytest.raises(ValueError, match=r"at most one more dimension, got shape \(2, 2, 1\)"):
        as_score_matrix(np.zeros((2, 2, 1)), 2, 2)


@pytest.mark.parametrize(
    ("scores", "shown"),
    [(0.3, "0.3"), ("p", "'p'"), (GaussianNB(), "a GaussianNB"), ({}, "a dict")],
)
def test_what_is_no_list_of_scores_is_refused(scores, shown):
    match = f"^scores must be a list or an array with one score .* per row of X, got {shown}$"
    with pytest.raises(TypeError, match=match):
        as_score_matrix(scores, 2, 2)


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="rows of one length"):
        as_score_matrix([[0.5, 0.5], [1.0]], 2, 2)


def test_the_length_must_agree():
    with pytest.raises(ValueError, match=r"^scores has 90 rows, but X has 100$"):
        as_score_matrix(np.zeros(90), 100, 2)


@pytest.mark.parametrize("n_rows", [2, 100])
def test_missing_scores_are_named(n_rows):
    scores = np.zeros((n_rows, 2))
    scores[n_rows - 1, 1] = math.nan
    with pytest.raises(ValueError, match=f"NaN in row {n_rows - 1}, column 1; drop"):
        as_score_matrix(scores, n_rows, 2)
    with pytest.raises(ValueError, match="NaN in row 1, column 0"):
        as_score_matrix([0.5, None], 2, 2)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_scores_are_named(value):
    with pytest.raises(ValueError, match="infinity in row 1, column 0; replace"):
        as_score_matrix([[0.0, 1.0], [value, 1.0]], 2, 2)


def test_no_rows_at_all():
    matrix = as_score_matrix(np.empty((0, 2)), 0, 2)
    assert resolve_score_type(matrix, 2, "auto") == "probability"
    assert log_odds(matrix, "probability", published=True).shape == (0, 2)


@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
def test_a_given_score_type_is_kept(score_type):
    assert resolve_score_type(np.array([[0.25], [0.75]]), 2, score_type) == score_type


def test_an_unknown_score_type_is_refused():
    with pytest.raises(ValueError, match=r"one of 'auto', 'probability', .* got 'logits'"):
        resolve_score_type(np.zeros((1, 1)), 2, "logits")


@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_log_odds_are_a_new_fortran_matrix(score_type, order):
    scores = np.array([[0.0, 1.0, 0.25], [0.5, 0.5, 0.75]], order=order)
    before = scores.copy()
    result = log_odds(scores, score_type, published=True)
    assert result.flags.f_contiguous and result.dtype == np.float64
    assert not np.shares_memory(result, scores)
    assert np.array_equal(scores, before)


def test_log_odds_of_probabilities():
    p = np.array([[0.25], [0.5], [1e-9], [1 - 1e-9]])
    assert np.array_equal(log_odds(p, "probability", published=True), np.log(p / (1 - p)))


def test_exactly_0_and_1_are_moved_and_nothing_else():
    smallest, below_one = np.nextafter(0, 1), np.nextafter(1, 0)
    result = log_odds(
        np.array([[0.0, 1.0, -0.0, smallest, below_one]]), "probability", published=True
    )[0]
    low, high = math.log(0.00001 / (1 - 0.00001)), math.log(0.99999 / (1 - 0.99999))
    assert result[:3] == pytest.approx([low, high, low], rel=1e-15)
    assert result[3] == pytest.approx(-744.44, abs=0.01)
    assert result[4] == pytest.approx(36.74, abs=0.01)


@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(0.0, 1.0)))
def test_log_odds_are_finite_monotone_and_silent(p):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        result = log_odds(np.sort(p)[:, np.newaxis], "probability", published=True)[:, 0]
    assert np.isfinite(result).all()
    inside = (np.sort(p) > 0) & (np.sort(p) < 1)  # 0 and 1 are moved past their neighbours
    assert (np.diff(result[inside]) >= 0).all()


@pytest.mark.parametrize("value", [-0.25, 1.5])
def test_what_is_not_a_probability_is_named(value):
    scores = np.array([[0.5, 0.5], [0.5, value]])
    with pytest.raises(ValueError, match=f"contains {value} in row 1, column 1, .*score_type="):
        log_odds(scores, "probability", published=True)


@pytest.mark.parametrize("score_type", ["logit", "margin"])
def test_other_scores_stay_but_for_the_largest(score_type):
    scores = np.array([[-1e308, -1e100, -3.5, 0.0, 7.0, 1e100, 1e308]])
    expected = [[-1e100, -1e100, -3.5, 0.0, 7.0, 1e100, 1e100]]
    assert log_odds(scores, score_type, published=True).tolist() == expected


@pytest.mark.parametrize("order", ["C", "F"])
def test_clipped_log_odds_are_those_of_the_probabilities_but_for_the_ends(order):
    smallest = 2.0**-53
    p = np.array([[0.0, 1e-300, smallest, 1e-15], [0.25, 0.5, 1 - smallest, 1.0]], order=order)
    before = p.copy()
    result = log_odds(p, "probability")
    low, high = math.log(smallest), math.log((1 - smallest) / smallest)
    expected = [
        [low, low, low, math.log(1e-15 / (1 - 1e-15))],
        [math.log(0.25 / 0.75), 0.0, high, high],
    ]
    np.testing.assert_allclose(result, expected, rtol=1e-15)
    assert result.flags.f_contiguous and not np.shares_memory(result, p)
    assert np.array_equal(p, before)


@given(hnp.arrays(np.float64, st.integers(1, 20), elements=st.floats(0.0, 1.0)))
def test_clipped_log_odds_never_change_the_order(p):
    with np.errstate(all="raise"):
        result = log_odds(np.sort(p)[:, np.newaxis], "probability")[:, 0]
    assert (np.diff(result) >= 0).all()
    assert np.abs(result).max() <= 53 * math.log(2) + 1e-12


def test_clipping_is_for_probabilities():
    scores = np.array([[-50.0, 0.0, 0.5, 1.0, 50.0]])
    assert log_odds(scores, "logit").tolist() == scores.tolist()
    with pytest.raises(ValueError, match="not a probability"):
        log_odds(scores, "probability")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
def test_the_classes_of_several_classifiers_are_averaged_each(score_type, order):
    three = np.array([[0.0, 0.25, 0.75, 0.5, 0.25, 0.25]], order=order)
    assert ScoreKind(3, score_type).average(three).tolist() == [[0.25, 0.25, 0.5]]
    two = np.array([[0.0, 1.0, 0.5, 0.5, 1.0, 0.0], [0.25, 0.75] * 3], order=order)
    assert ScoreKind(2, score_type).average(two).tolist() == [[0.5, 0.5], [0.25, 0.75]]


@pytest.mark.parametrize("n_columns, n_classes", [(1, 2), (2, 2), (3, 3)])
def test_one_classifier_is_its_own_average(n_columns, n_classes):
    scores = np.arange(2.0 * n_columns).reshape(2, n_columns) / 10
    assert ScoreKind(n_classes, "probability").average(scores).tolist() == scores.tolist()


def test_the_largest_scores_are_cut_off_before_they_are_averaged():
    scores = np.array([[1e308, -1e308, 1e308, 3.0]])
    before = scores.copy()
    assert ScoreKind(2, "margin").average(scores).tolist() == [[1e100, -5e99]]
    assert np.array_equal(scores, before)


@pytest.mark.parametrize("ask", [ScoreKind.average, ScoreKind.one_score_a_class])
def test_what_is_not_a_probability_is_not_averaged(ask):
    with pytest.raises(ValueError, match=r"contains 1.5 in row 1, column 0, .*score_type="):
        ask(ScoreKind(2, "probability"), np.array([[0.5, 0.5], [1.5, 0.5]]))


@pytest.mark.parametrize(
    "scores, n_classes, score_type, expected",
    [
        ([[0.25], [2.0]], 2, "margin", [[0.25], [2.0]]),
        ([[0.25, 0.75]], 2, "probability", [[0.75]]),
        ([[0.25, 0.5]], 2, "margin", [[0.25]]),
        ([[-1.0, 3.0]], 2, "logit", [[4.0]]),
        ([[0.5, 0.5, 0.0, 1.0]], 2, "probability", [[0.75]]),
        ([[-1.0, 3.0, 1.0, 1.0]], 2, "logit", [[2.0]]),
        ([[-1e308, 1e308]], 2, "margin", [[2e100]]),
        ([[0.2, 0.3, 0.5]], 3, "probability", [[0.2, 0.3, 0.5]]),
        ([[1.0, 2.0, 3.0, 3.0, 2.0, 1.0]], 3, "margin", [[2.0, 2.0, 2.0]]),
    ],
)
def test_one_score_a_class(scores, n_classes, score_type, expected):
    assert ScoreKind(n_classes, score_type).one_score_a_class(np.array(scores)).tolist() == expected


@pytest.mark.parametrize(
    "n_columns, n_classes, width", [(1, 2, 1), (2, 2, 1), (6, 2, 1), (6, 3, 3)]
)
def test_no_rows_have_one_score_a_class(n_columns, n_classes, width):
    none = np.empty((0, n_columns))
    assert ScoreKind(n_classes, "probability").one_score_a_class(none).shape == (0, width)


# The regressors of node models


def test_a_bend_is_the_logarithm_of_both_probabilities():
    odds = np.array([[0.0], [1.0], [-1.0], [30.0], [-30.0]])
    p = 1 / (1 + np.exp(-odds))
    np.testing.assert_allclose(bend(odds)[:3], np.log(p * (1 - p))[:3], rtol=1e-14)
    np.testing.assert_allclose(bend(odds), with_bends(odds)[:, 1:], rtol=1e-14)
    # Beyond, it is the size itself, and even the largest score is no trouble.
    far = np.array([[LARGEST_SCORE, -LARGEST_SCORE, 800.0]])
    assert bend(far).tolist() == [[-LARGEST_SCORE, -LARGEST_SCORE, -800.0]]


@pytest.mark.parametrize("n_columns", [1, 2])
@pytest.mark.parametrize("score_type", ["probability", "logit"])
def test_two_classes_have_log_odds_and_a_bend(n_columns, score_type):
    p = np.array([[0.2], [0.5], [0.9]])
    odds = np.log(p / (1 - p))
    scores = p if score_type == "probability" else odds
    if n_columns == 2:
        scores = np.hstack([1 - p, p] if score_type == "probability" else [0 * odds, odds])
    kind = ScoreKind(2, score_type)
    found = kind.regressors(scores)
    assert found.flags.f_contiguous and found.shape == (3, 2) and is_offset(2, 2)
    np.testing.assert_allclose(found, with_bends(odds), rtol=1e-12, atol=1e-12)
    # What is corrected is the first of them.
    assert np.array_equal(kind.offset(scores, found), found[:, :1])


@pytest.mark.parametrize(("score_type", "sure"), [("probability", 1.0), ("logit", 1e9)])
def test_certainties_bend_as_far_as_they_are_from_even(score_type, sure):
    found = ScoreKind(2, score_type).regressors(np.array([[sure]]))
    np.testing.assert_allclose(found, [[LARGEST_LOG_ODDS, -LARGEST_LOG_ODDS]], rtol=1e-12)


def test_several_classifiers_bend_each():
    scores = np.array([[0.2, 0.8, 0.4, 0.6], [0.5, 0.5, 0.1, 0.9]])
    kind = ScoreKind(2, "probability")
    found = kind.regressors(scores)
    np.testing.assert_allclose(found, with_bends(np.log(scores / (1 - scores))), atol=1e-14)
    assert not is_offset(2, found.shape[1])
    mean = np.array([[0.7], [0.7]])
    np.testing.assert_allclose(kind.offset(scores, found), np.log(mean / (1 - mean)), atol=1e-14)


def test_margins_bend_and_have_no_offset():
    margins = np.array([[-3.0], [0.5]])
    kind = ScoreKind(2, "margin")
    np.testing.assert_allclose(kind.regressors(margins), with_bends(margins), rtol=1e-14)
    assert kind.offset(margins, kind.regressors(margins)) is None


def test_more_classes_and_the_published_method_do_not_bend():
    scores = np.array([[0.2, 0.3, 0.5]])
    assert np.array_equal(ScoreKind(3, "probability").regressors(scores), np.log(scores))
    assert not is_offset(3, 3) and not is_offset(3, 2)
    two = np.array([[0.2, 0.8]])
    published = ScoreKind(2, "probability", published=True).regressors(two)
    np.testing.assert_allclose(published, np.log(two / (1 - two)), rtol=1e-14)
