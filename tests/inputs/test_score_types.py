"""`score_type="auto"` says what scores are only where they show it."""

import warnings
from functools import reduce

import numpy as np
import pytest

from caltree._inputs.score_types import ScoreSurvey, resolve_score_type

RNG = np.random.default_rng(0)
PROBABILITIES = RNG.random((12_000, 1))
TRIPLES = RNG.dirichlet([1.0, 1.0, 1.0], 1000)
PAIRS = [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]


def with_row(matrix, row, *values):
    matrix = matrix.copy()
    matrix[row] = values
    return matrix


@pytest.mark.parametrize(
    "scores, n_classes, expected",
    [
        ([[0.0], [0.3], [1.0]], 2, "probability"),
        (PROBABILITIES, 2, "probability"),
        (PAIRS, 2, "probability"),
        ([[0.5, 0.5009], [0.5, 0.4991]], 2, "probability"),
        ([[0.2, 0.3, 0.5]], 3, "probability"),
        ([[0.5, 0.5, 0.2, 0.8]], 2, "probability"),
        (TRIPLES, 3, "probability"),
        # Of a few rows, one is many.
        ([[0.5], [0.3], [-0.1]], 2, "margin"),
        ([[0.5, 0.5], [-0.5, 2.0]], 2, "margin"),
        (RNG.normal(size=(1000, 1)), 2, "margin"),
        (RNG.normal(size=(1000, 3)), 3, "margin"),
        (RNG.integers(300, 850, (1000, 1)), 2, "margin"),
        (np.empty((0, 1)), 2, "probability"),
    ],
)
def test_auto(scores, n_classes, expected):
    for order in "CF":
        matrix = np.array(scores, dtype=float, order=order)
        assert resolve_score_type(matrix, n_classes, "auto") == expected


CLASSES = RNG.integers(0, 2, (1000, 1)).astype(float)


@pytest.mark.parametrize("scores", [CLASSES, CLASSES[:20], np.hstack([CLASSES, 1 - CLASSES])])
def test_predicted_classes_are_taken_for_probabilities_with_a_warning(scores):
    with pytest.warns(UserWarning, match=r"^all scores are 0 or 1, .*set score_type='probability'"):
        assert resolve_score_type(scores, 2, "auto") == "probability"
    assert resolve_score_type(scores, 2, "probability") == "probability"
    halves = (ScoreSurvey.of(part, 2) for part in np.array_split(scores, 2))
    assert reduce(ScoreSurvey.merge, halves).score_type().warning is not None


@pytest.mark.parametrize(
    "scores", [CLASSES[:19], with_row(CLASSES, 999, 0.5), 0 * CLASSES, 1 + 0 * CLASSES]
)
def test_other_scores_are_not_taken_for_predicted_classes(scores):
    assert resolve_score_type(scores, 2, "auto") == "probability"


@pytest.mark.parametrize(
    "scores, n_classes, words",
    [
        (with_row(PROBABILITIES, 76, 1.02), 2, r"scores contains 1\.02 in row 76, but the scores"),
        (with_row(PROBABILITIES, 7, -0.01), 2, r"scores contains -0\.01 in row 7, .*11999 rows"),
        (with_row(PROBABILITIES, slice(0, 600), 1.5), 2, r"1\.5 in row 0 \(600 rows are like it\)"),
        (with_row(TRIPLES, 9, 0.5, 0.5, 0.5), 3, r"scores sums to 1\.5 in row 9, but the scores"),
        (with_row(TRIPLES, 9, 0.0, 0.0, 1.5), 3, r"scores contains 1\.5 in row 9"),
    ],
)
def test_a_stray_value_is_refused(scores, n_classes, words):
    with pytest.raises(ValueError, match=f"{words}.*; correct .*score_type='margin' or 'logit'"):
        resolve_score_type(scores, n_classes, "auto")


def test_the_row_is_that_of_the_table():
    keep = np.ones(12_001, dtype=bool)
    keep[3] = False
    with pytest.raises(ValueError, match=r"contains 1\.02 in row 77,"):
        resolve_score_type(with_row(PROBABILITIES, 76, 1.02), 2, "auto", keep)
    with pytest.raises(ValueError, match=r"contains 1\.02 in row 77,"):
        resolve_score_type(with_row(PROBABILITIES, 76, 1.02), 2, "probability", keep)
    with pytest.raises(ValueError, match=r"contains 1\.02 in row 77,"):
        resolve_score_type(with_row(PROBABILITIES, 76, 1.02), 2, "auto", first_row=1)


@pytest.mark.parametrize("scores", [100.0 * PROBABILITIES, 100.0 * TRIPLES, [[0.5], [2.0], [3.0]]])
def test_percentages_are_asked_about(scores):
    matrix = np.array(scores)
    with pytest.raises(ValueError, match=r"divide them by 100 if .*score_type='logit' .*'margin'"):
        resolve_score_type(matrix, max(2, matrix.shape[1]), "auto")


def test_columns_that_do_not_sum_to_one_are_margins_with_a_warning():
    with pytest.warns(UserWarning, match=r"do not sum to 1 \(.* in row 0\), .*If they are margins"):
        assert resolve_score_type(RNG.random((100, 3)), 3, "auto") == "margin"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_score_type(RNG.random((100, 3)), 3, "margin") == "margin"


def test_parts_say_together_what_all_rows_say():
    bad = with_row(PROBABILITIES, 6000, 1.02)
    parts = [
        ScoreSurvey.of(part, 2, where=f" of partition {i}")
        for i, part in enumerate(np.split(bad, 4))
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    with pytest.raises(ValueError, match=r"1\.02 in row 0 of partition 2, .*11999 rows"):
        merged.score_type()
    # Ten rows, one of them outside, may be margins; together with the others they are not.
    few = ScoreSurvey.of(np.vstack([PROBABILITIES[:9], [[-0.02]]]), 2)
    assert few.score_type().score_type == "margin"
    with pytest.raises(ValueError, match="but the scores of the other"):
        few.merge(parts[0]).score_type()
