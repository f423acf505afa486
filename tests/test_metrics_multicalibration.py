"""Multicalibration error: by hand, and beside MCGrad."""

import math

import numpy as np
import pandas as pd
import pytest

from caltree.metrics import multicalibration, multicalibration_error
from caltree.metrics.multicalibration import range_tail


def make_rows(n_rows=800, seed=0):
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "kind": random.choice(list("abcde"), n_rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "size": random.normal(size=n_rows),
            "few": random.integers(0, 3, n_rows),
        }
    )
    said = random.random(n_rows)
    truth = random.random(n_rows) < np.where(table["kind"] == "a", said**1.6, said)
    return table, truth.astype(int), said, random.random(n_rows) + 0.5


def test_by_hand():
    found = multicalibration_error([[0]] * 4, [0, 1, 0, 1], [0.4, 0.3, 0.2, 0.1], min_rows=1)
    # In ascending order: 1 - 0.1, then - 0.2, then 1 - 0.3, then - 0.4.
    deviation = math.sqrt(0.09 + 0.16 + 0.21 + 0.24) / 4
    assert found.error == pytest.approx((0.9 - 0.2 + 0.7) / 4)
    assert found.standard_deviation == pytest.approx(deviation)
    assert found.sigmas == pytest.approx(1.4 / 4 / deviation)
    assert found.detectable == pytest.approx(5 * deviation)
    assert found.segment == "all rows"


def test_the_tail_is_that_of_the_range_of_a_brownian_motion():
    # Feller (1951): the mean of the range is 2 sqrt(2 / pi).
    at = np.linspace(0.01, 8.0, 4000)
    mean = np.sum([range_tail(x) for x in at]) * (at[1] - at[0])
    assert mean == pytest.approx(2 * math.sqrt(2 / math.pi), abs=0.02)
    assert range_tail(0.0) == 1.0
    assert 0.0 < range_tail(20.0) < 1e-12


def test_the_worst_segment_is_named_and_counted():
    table, truth, said, _ = make_rows(3000)
    found = multicalibration_error(table, truth, said, max_depth=1)
    assert found.segment == "kind = a"
    assert found.n_segments == 1 + 3 + 3 + 3
    assert found.adjusted_p_value == pytest.approx(min(1.0, 10 * found.p_value))
    assert multicalibration_error(table, truth, said, max_segments=4).n_segments == 4


def test_missing_values_are_a_segment_and_classes_are_compared():
    table, truth, said, _ = make_rows()
    table.loc[:200, "size"] = np.nan
    found = multicalibration_error(table[["size"]], truth, said)
    assert found.n_segments == 5
    both = multicalibration_error(
        table, np.array(["a", "b", "c"])[truth], np.column_stack([1 - said, said, 0 * said]),
        labels=["a", "b", "c"],
    )  # fmt: skip
    assert both.sigmas >= multicalibration_error(table, truth, said).sigmas - 1e-9


@pytest.mark.filterwarnings("ignore")  # of pandas, about MCGrad
@pytest.mark.parametrize("weighted", [False, True])
def test_as_mcgrad(weighted):
    metrics = pytest.importorskip("mcgrad.metrics")
    table, truth, said, weights = make_rows()
    expected = metrics.MulticalibrationError(
        table.assign(label=truth, score=said, weight=weights),
        "label",
        "score",
        weight_column="weight" if weighted else None,
        categorical_segment_columns=["kind"],
        numerical_segment_columns=["size", "few"],
        max_n_segments=None,
        precision_dtype="float64",
    )
    found = multicalibration_error(
        table, truth, said, max_segments=10**6, sample_weight=weights if weighted else None
    )
    assert found.n_segments == len(expected.segments_ecce)
    assert found.error == pytest.approx(expected.mce)
    assert found.sigmas == pytest.approx(expected.mce_sigma)
    assert found.p_value == pytest.approx(expected.mce_pvalue, rel=1e-6)
    assert found.detectable == pytest.approx(expected.mde)


def test_other_numbers_of_rows_are_refused():
    with pytest.raises(ValueError, match="X has 3 rows, but y_true has 2"):
        multicalibration_error([[1], [2], [3]], [0, 1], [0.5, 0.5])


def test_the_sorting_of_small_numbers_changes_nothing(monkeypatch):
    table, truth, said, weights = make_rows()
    usual = multicalibration_error(table, truth, said, sample_weight=weights)
    monkeypatch.setattr(multicalibration, "_MOST_SMALL", 0)
    assert multicalibration_error(table, truth, said, sample_weight=weights) == usual
