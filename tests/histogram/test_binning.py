"""Bins: exact where values are few, quantiles otherwise; and codes that agree with thresholds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from caltree import _core
from caltree._histogram.binning import (
    Bins,
    as_floats,
    cuts_between,
    few_values,
    quantile_cuts,
    sample_step,
)
from caltree._inputs.parameters import MOST_BINS

from ..support.default_trees import noise, rows_with_shift
from ..support.histogram_cases import chunks_of, examples, fixed_histogram_tree
from ..support.trees import make_rows

finite = {"allow_nan": False, "allow_infinity": False}


def columns(dtype, **kwargs):
    width = dtype.itemsize * 8
    values = st.one_of(
        st.floats(width=width, allow_infinity=False),
        st.sampled_from([0.0, -0.0, 1.0, float(np.nextafter(dtype.type(1), dtype.type(2)))]),
    )
    return hnp.arrays(dtype, st.integers(1, 40), elements=values, **kwargs)


any_column = st.sampled_from([np.dtype(np.float32), np.dtype(np.float64)]).flatmap(columns)


def codes_of(values, cuts, dtype=np.uint8):
    codes = np.empty((len(values), 2), dtype=dtype)
    _core.put_into_bins(values, cuts, len(cuts) + 1, codes[:, 1])
    return codes[:, 1].astype(int)


# Values


@examples(150)
@given(any_column, st.integers(1, 40))
def test_different_values_are_found_if_they_are_few(values, most):
    known = values[~np.isnan(values)].astype(np.float64) + 0.0
    expected = np.unique(known)
    found = few_values(values, most)
    if len(expected) > most:
        assert found is None
    else:
        assert np.array_equal(found, expected)
        assert not np.signbit(found[found == 0.0]).any()


@examples(100)
@given(any_column)
def test_few_values_have_a_bin_each(values):
    distinct = few_values(values, MOST_BINS)
    cuts = cuts_between(distinct)
    assert len(cuts) == max(0, len(distinct) - 1)
    assert (np.diff(cuts) > 0).all()
    codes = codes_of(values, cuts)
    missing = np.isnan(values)
    assert (codes[missing] == len(cuts) + 1).all()
    expected = np.searchsorted(distinct, values[~missing].astype(np.float64))
    assert np.array_equal(codes[~missing], expected)


@examples(100)
@given(any_column, st.integers(2, 8))
def test_codes_agree_with_cuts(values, max_bins):
    """However coarse the bins are, a code is up to a cut if and only if the value is."""
    present = values[~np.isnan(values)].astype(np.float64)
    cuts = quantile_cuts(values.astype(np.float64), None, max_bins)
    assert len(cuts) < max_bins and (np.diff(cuts) > 0).all()
    codes = codes_of(values, cuts)[~np.isnan(values)]
    for number, cut in enumerate(cuts):
        assert np.array_equal(codes <= number, present <= cut)
    # Neighbours of the cuts, which the rows need not have.
    for towards in (-np.inf, np.inf):
        near = np.nextafter(cuts, towards)
        near = near[np.isfinite(near)]
        expected = (near[:, np.newaxis] > cuts).sum(axis=1)
        assert np.array_equal(codes_of(near, cuts), expected)


def test_quantiles_hold_about_as_many_rows():
    values = np.random.default_rng(0).standard_normal(20_000)
    counts = np.bincount(codes_of(values, quantile_cuts(values, None, 50)))
    assert len(counts) == 50 and counts.min() >= 390 and counts.max() <= 410
    weights = np.where(values > 0, 3.0, 1.0)
    codes = codes_of(values, quantile_cuts(values, weights, 50))
    weight = np.bincount(codes, weights)
    assert len(weight) == 50 and weight.min() > 0.97 * weight.mean()
    assert np.bincount(codes).min() < 0.5 * np.bincount(codes).max()


def test_a_frequent_value_has_a_bin_of_its_own():
    values = np.append(np.zeros(5000), np.random.default_rng(0).standard_normal(5000))
    codes = codes_of(values, quantile_cuts(values, None, 20))
    alone = codes[values == 0][0]
    assert np.count_nonzero((codes == alone) & (values != 0)) < 600
    assert len(np.unique(codes)) > 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_of_a_table_are_read_in_place(dtype):
    table = np.random.default_rng(0).standard_normal((50, 4)).astype(dtype)
    cuts = np.array([-0.5, 0.5])
    for column in (table[:, 2], table[::-1, 1], table[10:40:3, 0], np.asfortranarray(table)[:, 3]):
        assert as_floats(column) is column
        expected = np.searchsorted(cuts, column.astype(np.float64), side="left")
        assert np.array_equal(codes_of(column, cuts), expected)
        assert np.array_equal(few_values(column, 60), np.unique(column.astype(np.float64)))
    backwards = table[:, 0].astype(table.dtype.newbyteorder())
    assert np.array_equal(few_values(backwards, 60), np.unique(table[:, 0].astype(np.float64)))


def test_samples_are_of_every_row_until_there_are_enough():
    assert [sample_step(n) for n in (1, 2**16, 2**17 - 1)] == [1, 1, 1]
    assert sample_step(2**17) == 2 and sample_step(10**7) == 10**7 // 2**16


# Bins


def test_codes_have_one_byte_if_that_is_enough():
    for n_bins, width in ((255, 1), (256, 2)):
        bins = Bins.of([np.arange(n_bins - 1.0)], np.zeros(1, dtype=np.int32), np.array([1.0]))
        assert bins.n_bins.tolist() == [n_bins] and bins.fills.tolist() == [1]
        codes = bins.encode(np.array([[-1.0], [1e9], [np.nan]]))
        assert codes.dtype.itemsize == width
        assert codes[:, 0].tolist() == [0, n_bins - 1, n_bins]
        assert bins.threshold(0, 0) == 0.0
        assert bins.threshold(0, n_bins - 1) == np.finfo(np.float64).max
    for count, n_bins in ((255, 255), (256, 256), (MOST_BINS, MOST_BINS), (MOST_BINS + 1, 0)):
        bins = Bins.of([None], np.array([count], dtype=np.int32), np.array([2.0]))
        assert bins.n_bins.tolist() == [n_bins] and bins.numeric.tolist() == [0]
        assert bins.fills.tolist() == [2 if n_bins else 0]
        codes = bins.encode(np.array([[0.0], [count - 1.0], [np.nan]]))
        expected = [0, count - 1, count] if n_bins else [0, 0, 0]
        assert codes[:, 0].tolist() == expected


# Trees


def leaf_rows(tree, X, weights=None):
    """The rows of every leaf as it was grown, and as `apply` deals them out."""
    model = tree.model_
    leaves = np.flatnonzero(model.attribute < 0)
    counts = np.bincount(tree.apply(X), weights, minlength=model.n_nodes)
    return model.n_rows[leaves], counts[leaves]


def neighbours(rng, n_rows):
    """Values next to each other, of which 32 bits can just tell the difference."""
    values = [np.float32(1.0)]
    for _ in range(30):
        values.append(np.nextafter(values[-1], np.float32(2.0)))
    return rng.choice(np.array(values), n_rows)


def with_missing(values, rng):
    return np.where(rng.random(len(values)) < 0.2, np.nan, values)


COLUMNS = {
    "float64": lambda rng, n: rng.standard_normal(n),
    "missing": lambda rng, n: with_missing(rng.standard_normal(n), rng),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0, 1.0, 5e-324, -5e-324], n),
    "neighbours": neighbours,
    "huge and tiny": lambda rng, n: rng.choice([-1.7e308, -1e-308, 0.0, 1e-320, 1e308, 1.7e308], n),
    "huge float32": lambda rng, n: (rng.standard_normal(n) * 3e38 / 5).astype(np.float32),
    "integers": lambda rng, n: rng.integers(-(2**62), 2**62, n),
    "bytes": lambda rng, n: rng.integers(0, 256, n).astype(np.uint8),
    "booleans": lambda rng, n: rng.random(n) < 0.3,
    "half": lambda rng, n: rng.standard_normal(n).astype(np.float16),
}


@pytest.mark.parametrize("max_bins", [255, 16, 1000])
@pytest.mark.parametrize("name", COLUMNS)
def test_training_rows_reach_the_leaves_that_they_were_counted_in(name, max_bins):
    rng = np.random.default_rng(sum(map(ord, name)))
    column = COLUMNS[name](rng, 1500)
    numbers = np.nan_to_num(column.astype(np.float64), nan=0.7)
    region = np.argsort(np.argsort(numbers)) % 500 > 250
    y, scores = rows_with_shift(np.where(region, 2.0, -2.0), 1500)
    tree = fixed_histogram_tree(max_bins=max_bins, min_samples_leaf=1)
    tree.fit(column[:, np.newaxis], y, scores)
    assert tree.get_n_leaves() > 1
    grown, applied = leaf_rows(tree, column[:, np.newaxis])
    assert grown.sum() == 1500 and np.array_equal(grown, applied)


def test_weights_reach_the_leaves_that_they_were_counted_in():
    X, y, scores = make_rows(800)
    weights = np.random.default_rng(0).choice([0.0, 0.25, 1.0, 2.5], 800)
    tree = fixed_histogram_tree().fit(X, y, scores, sample_weight=weights)
    grown, applied = leaf_rows(tree, X, weights)
    assert len(grown) > 3
    np.testing.assert_allclose(grown, applied, rtol=1e-12)


@pytest.mark.parametrize("n_categories", [3, 255, 256, 400])
def test_rows_of_categories_reach_their_leaves(n_categories):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_categories, 4000)
    y, scores = rows_with_shift(np.where(codes % 2, 3.0, -3.0), 4000)
    values = pd.Series([f"c{code}" for code in codes])
    values[rng.random(4000) < 0.1] = None
    frame = pd.DataFrame({"category": values, "noise": noise(4000, 1)[:, 0]})
    with chunks_of(700):
        tree = fixed_histogram_tree().fit(frame, y, scores)
    assert tree.model_.attribute[0] == 0
    grown, applied = leaf_rows(tree, frame)
    assert np.array_equal(grown, applied)
    # The categories were told apart, and not just two bytes of them.
    order = np.array(sorted(range(n_categories), key=lambda code: f"c{code}")) % 2
    sides = tree.model_.branches[tree.model_.table[0] :][:n_categories]
    assert len(sides) == n_categories
    assert np.mean(sides == order) > 0.9 or np.mean(sides != order) > 0.9


def test_more_categories_than_two_bytes_tell_apart_are_not_looked_at():
    n_rows = MOST_BINS + 1
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 2, n_rows)
    y, scores = rows_with_shift(np.where(numbers, 1.0, -1.0), n_rows)
    X = np.column_stack([np.arange(n_rows), numbers])
    params = {"categorical_features": [0], "max_depth": 2, "tree_method": "hist"}
    with pytest.warns(UserWarning, match=r"\['x0'\] have more than 65,534 categories"):
        tree = fixed_histogram_tree(**params).fit(X, y, scores)
    assert tree.model_.attribute.tolist() == [1, -1, -1]
    assert np.array_equal(*leaf_rows(tree, X))
    # One category less, and they are.
    less = X[:-1].copy()
    less[:, 0] %= MOST_BINS - 1
    tree = fixed_histogram_tree(**params).fit(less, y[:-1], scores[:-1])
    assert np.array_equal(*leaf_rows(tree, less))


@pytest.mark.parametrize("max_bins", [40, 255])
def test_every_value_can_be_separated_from_the_next(max_bins):
    """Whether a row is of the second class depends on its value in no order at all."""
    rng = np.random.default_rng(3)
    value = np.repeat(np.arange(40), 50)
    second = rng.random(40) < 0.5
    y = second[value].astype(int)
    X = np.sqrt(value + 2.0)[:, np.newaxis]
    tree = fixed_histogram_tree(max_bins=max_bins, min_samples_split=2, min_samples_leaf=1)
    tree.fit(X, y, np.full(len(y), 0.5))
    model = tree.model_
    thresholds = np.sort(model.threshold[model.attribute >= 0])
    borders = np.flatnonzero(second[1:] != second[:-1])
    for border in borders:
        below, above = np.sqrt(border + 2.0), np.sqrt(border + 3.0)
        assert np.any((thresholds >= below) & (thresholds < above))
    calibrated = tree.predict_proba(X, np.full(len(y), 0.5))[:, 1]
    assert np.array_equal(calibrated > 0.5, y == 1)


def test_fewer_bins_tell_fewer_values_apart():
    value = np.repeat(np.arange(40), 50)
    y, scores = rows_with_shift(np.where(value % 2, 3.0, -3.0), len(value))
    tree = fixed_histogram_tree(max_bins=10).fit(value[:, np.newaxis], y, scores)
    assert len(np.unique(tree.model_.threshold[tree.model_.attribute >= 0])) <= 9


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused(value):
    X, y, scores = make_rows(300)
    X[250, 1] = value
    with chunks_of(100), pytest.raises(ValueError, match="X contains infinity in attribute 'x1'"):
        fixed_histogram_tree().fit(X, y, scores)
    weights = np.ones(300)
    weights[250] = 0.0
    assert fixed_histogram_tree().fit(X, y, scores, sample_weight=weights).get_n_leaves() > 1


def test_infinity_among_categories_is_refused():
    X, y, scores = make_rows(300)
    X[:, 1] = np.arange(300) % 7
    X[5, 1] = np.inf
    with pytest.raises(ValueError, match="infinity among the categories of attribute 'x1'"):
        fixed_histogram_tree(categorical_features=[1]).fit(X, y, scores)
