"""Groups: checked, numbered, and dealt into folds as a whole."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import GroupKFold, KFold

from caltree._inputs.folds import make_folds
from caltree._inputs.groups import check_groups, deal_groups, number_groups

quick = settings(max_examples=80, deadline=None, derandomize=True)


@pytest.mark.parametrize(
    "given_groups",
    [
        [3, 1, 3],
        ("c", "a", "c"),
        np.array([[3], [1], [3]]),
        pd.Series(["c", "a", "c"], dtype="category"),
        pd.Series([3, 1, 3], dtype="Int64"),
        pl.Series(["c", "a", "c"]),
        np.array(["2020-01-02", "2020-01-01", "2020-01-02"], dtype="M8[D]"),
    ],
)
def test_groups_of_any_kind_are_numbered(given_groups):
    n_groups, numbers = number_groups(check_groups(given_groups, 3))
    assert n_groups == 2
    assert numbers.tolist() == [1, 0, 1]


def test_groups_without_an_order_are_numbered_as_they_come():
    mixed = np.array(["a", 1, "a", 2.5], dtype=object)
    assert number_groups(mixed)[1].tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([1, 2], "groups must have one group for each of the 3 rows of X, got 2"),
        ([[1, 2]] * 3, r"groups must have one group per row, got shape \(3, 2\)"),
        ([1.0, np.nan, 2.0], "groups contains a missing group in row 1; drop the rows without"),
        (["a", "b", None], "groups contains a missing group in row 2"),
        (pd.Series([pd.NA, 1, 2], dtype="Int64"), "groups contains a missing group in row 0"),
        (np.array(["NaT", "2020", "2020"], dtype="M8[D]"), "missing group in row 0"),
    ],
)
def test_bad_groups(groups, message):
    with pytest.raises(ValueError, match=message):
        check_groups(groups, 3)


def test_the_name_of_a_column_is_not_its_groups():
    with pytest.raises(TypeError, match=r"got the name 'sex'; give the values, such as X\['sex'\]"):
        check_groups("sex", 3)


def test_a_row_that_does_not_count_may_lack_its_group():
    keep = np.array([True, False, True])
    assert check_groups(["a", None, "b"], 3, keep).tolist() == ["a", "a", "b"]


@quick
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=8, max_size=120),
    st.integers(2, 6),
    st.none() | st.integers(0, 99),
)
def test_whole_groups_are_dealt_and_no_fold_is_empty(rows, n_folds, seed):
    groups, labels = np.array(rows).T
    n_groups = len(np.unique(groups))
    random = None if seed is None else np.random.RandomState(seed)
    if n_groups < n_folds:
        with pytest.raises(ValueError, match=f"groups has {n_groups} groups, but cv={n_folds}"):
            deal_groups(groups, labels, n_folds, random)
        return
    folds = deal_groups(groups, labels, n_folds, random)
    for group in np.unique(groups):
        assert len(set(folds[groups == group])) == 1
    assert set(folds) == set(range(n_folds))


def test_folds_of_groups_have_the_sizes_and_classes_of_each_other():
    random = np.random.default_rng(0)
    groups = (300 * random.random(5000) ** 2).astype(int)
    labels = (random.random(5000) < np.where(groups % 5 == 0, 0.9, 0.05)).astype(int)
    folds = deal_groups(groups, labels, 5)
    assert np.ptp(np.bincount(folds)) < np.bincount(groups).max() / 4
    assert np.ptp([labels[folds == fold].mean() for fold in range(5)]) < 0.03
    small = deal_groups(np.arange(5000), labels, 5)
    shares = [labels[small == fold].mean() for fold in range(5)]
    assert np.ptp(np.bincount(small)) <= 2 and np.ptp(shares) < 0.002


def test_folds_of_groups_do_not_depend_on_the_order_of_rows():
    random = np.random.default_rng(1)
    groups, labels = random.integers(0, 40, 300), random.integers(0, 3, 300)
    order = random.permutation(300)
    expected = deal_groups(groups, labels, 4)
    assert np.array_equal(deal_groups(groups[order], labels[order], 4), expected[order])


def test_a_number_of_folds_and_a_splitter_keep_groups_together():
    labels = np.tile([0, 1, 1], 40).astype(np.uint16)
    groups = np.repeat([f"g{i}" for i in range(30)], 4)
    keep = np.arange(150) % 5 > 0
    of_all = np.full(150, "g0")
    of_all[keep] = groups
    for cv in (4, GroupKFold(4)):
        folds = make_folds(cv, labels, keep, None, of_all)
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(120))
        for train, test in folds:
            assert not set(groups[train]) & set(groups[test])


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
@pytest.mark.parametrize("cv", [KFold(2), [([0, 1], [2, 3])]], ids=["KFold", "given"])
def test_folds_that_tear_groups_apart_are_warned_of(cv):
    labels = np.array([0, 1, 0, 1], dtype=np.uint16)
    message = "cv divides groups: fold 0 has rows of group 'b' in its training part and in its test"
    with pytest.warns(UserWarning, match=message):
        make_folds(cv, labels, None, None, np.array(["a", "b", "b", "c"]))
