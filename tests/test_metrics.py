"""RMSE by hand, weighted, for two classes and more, and what it refuses."""

import math

import numpy as np
import pytest
from sklearn.metrics import brier_score_loss

from caltree.metrics import rmse


def test_two_classes_by_hand():
    # The errors are 0.1, 0.1, 0.3 and 0.3: sqrt((0.01 + 0.01 + 0.09 + 0.09) / 4).
    assert rmse([0, 1], [[0.9, 0.1], [0.3, 0.7]]) == pytest.approx(math.sqrt(0.05), rel=1e-15)


def test_three_classes_by_hand():
    # (0.25 + 0.25 + 0) + (0.04 + 0.16 + 0.36), over 2 rows and 3 classes.
    y_prob = [[0.5, 0.5, 0.0], [0.2, 0.4, 0.4]]
    assert rmse(["a", "c"], y_prob, labels=["a", "b", "c"]) == pytest.approx(math.sqrt(1.06 / 6))


@pytest.mark.parametrize(("y_prob", "expected"), [([0, 1], 0.0), ([1, 0], 1.0), ([0.5, 0.5], 0.5)])
def test_the_ends_of_the_scale(y_prob, expected):
    assert rmse(["no", "yes"], y_prob) == expected


@pytest.mark.parametrize("shape", [(50,), (50, 1)])
def test_one_column_is_that_of_the_second_class(shape):
    random = np.random.default_rng(0)
    y, p = random.integers(0, 2, 50), random.random(50)
    assert rmse(y, p.reshape(shape)) == pytest.approx(rmse(y, np.column_stack([1 - p, p])))
    assert rmse(y, p) == pytest.approx(math.sqrt(brier_score_loss(y, p)))


def test_a_weight_is_a_number_of_rows():
    random = np.random.default_rng(1)
    y, p = random.integers(0, 3, 40), random.dirichlet(np.ones(3), 40)
    y[:3] = [0, 1, 2]
    weights = random.integers(0, 4, 40)
    weights[:3] = 1
    repeated = rmse(np.repeat(y, weights), np.repeat(p, weights, axis=0))
    assert rmse(y, p, sample_weight=weights) == pytest.approx(repeated, rel=1e-14)
    assert rmse(y, p, sample_weight=weights / 7) == pytest.approx(repeated, rel=1e-14)
    assert rmse(y, p) != pytest.approx(repeated, rel=1e-6)


def test_labels_say_what_the_columns_are():
    y, p = ["b", "a", "b"], np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]])
    assert rmse(y, p, labels=["b", "a"]) == rmse(y, p[:, ::-1])
    assert rmse(y, p, labels=["b", "a"]) != rmse(y, p)


def test_a_class_may_be_absent_from_the_rows():
    assert rmse([1, 1], [[0.0, 1.0], [0.5, 0.5]], labels=[0, 1]) == pytest.approx(math.sqrt(0.125))


def test_float32_and_tables_are_welcome():
    pandas = pytest.importorskip("pandas")
    p = np.array([[0.1, 0.9], [0.7, 0.3]])
    table = pandas.DataFrame(p, columns=["no", "yes"])
    assert rmse(pandas.Series(["yes", "no"]), table) == rmse(["yes", "no"], p)
    assert rmse(["yes", "no"], p.astype(np.float32)) == pytest.approx(rmse(["yes", "no"], p))


def test_the_probabilities_are_left_alone():
    p = np.array([[0.1, 0.9], [0.7, 0.3]])
    rmse([1, 0], p)
    assert p.tolist() == [[0.1, 0.9], [0.7, 0.3]]


@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        ([], [], {}, r"y_true must have one label a row, got shape \(0,\)"),
        ([[0, 1]], [0.5, 0.5], {}, r"y_true must have one label a row, got shape \(1, 2\)"),
        ([0.0, math.nan], [0.5, 0.5], {}, "y_true contains NaN"),
        ([1, 1], [0.5, 0.5], {}, "y_true contains one class only, 1; give all classes as labels"),
        ([1, 1], [0.5, 0.5], {"labels": [1]}, r"labels must name at least two classes, got \[1\]"),
        ([1, 0], [0.5, 0.5], {"labels": [1, 1]}, r"labels must name each class once, got \[1, 1\]"),
        (["a", "c"], [0.5, 0.5], {"labels": ["a", "b"]}, "y_true contains 'c' in row 1"),
        (["a", "A"], [0.5, 0.5], {"labels": ["a", "b"]}, "y_true contains 'A' in row 1"),
        ([0, 1], [0.5, 0.5, 0.5], {}, "y_prob has 3 rows, but y_true has 2"),
        ([0, 1], [[0.2, 0.3, 0.5]] * 2, {}, r"y_prob has shape \(2, 3\), but there are 2 classes"),
        ([0, 1, 2], [0.5, 0.5, 0.5], {}, r"y_prob has shape \(3,\), but there are 3 classes"),
        ([0, 1], [0.5, 1.5], {}, "not a probability"),
        ([0, 1], [0.5, math.nan], {}, "y_prob contains nan in row 1"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.6]], {}, r"y_prob sums to 1\.1 in row 1"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1]}, r"one weight for each of the 2 labels"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1, -1]}, "never negative"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [1, math.inf]}, "finite"),
        ([0, 1], [0.5, 0.5], {"sample_weight": [0, 0]}, "positive somewhere"),
    ],
)
def test_what_cannot_be_is_refused(y_true, y_prob, options, message):
    with pytest.raises(ValueError, match=message):
        rmse(y_true, y_prob, **options)


@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        (np.array([0, None], dtype=object), [0.5, 0.5], {}, "y_true mixes labels"),
        ([0, 1], [[0.5, 0.5], [1.0]], {}, "y_prob must be numbers"),
        ([0, 1], ["x", "y"], {}, "y_prob must be numbers"),
        ([0, 1], [0.5, 0.5], {"sample_weight": ["x", "y"]}, "sample_weight must be numbers"),
    ],
)
def test_what_is_no_number_is_refused(y_true, y_prob, options, message):
    with pytest.raises(TypeError, match=message):
        rmse(y_true, y_prob, **options)
