"""Folds: dealt by number, by a splitter, or given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, StratifiedKFold

from caltree._inputs.folds import make_folds

quick = settings(max_examples=50, deadline=None, derandomize=True)


def as_lists(folds):
    return [(train.tolist(), test.tolist()) for train, test in folds]


@quick
@given(
    labels=st.lists(st.integers(0, 2), min_size=10, max_size=60),
    n_folds=st.integers(2, 10),
    seed=st.none() | st.integers(0, 99),
)
def test_a_number_of_folds_deals_the_rows_out_by_class(labels, n_folds, seed):
    labels = np.array(labels, dtype=np.uint16)
    folds = make_folds(n_folds, labels, None, seed)
    assert len(folds) == n_folds
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(len(labels)))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(labels)))
    for label in range(3):
        dealt = [np.count_nonzero(labels[test] == label) for _, test in folds]
        assert max(dealt) - min(dealt) <= 2
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


def test_published_folds():
    labels = np.array([0, 0, 1, 1, 0, 1, 0], dtype=np.uint16)
    folds = make_folds(2, labels, None, None)
    # By class 0 1 4 6 2 5 3, where a row that makes room takes the place of the one that came;
    # dealt to two players 0 4 2 3 and 1 6 5.
    assert as_lists(folds) == [([1, 6, 5], [0, 4, 2, 3]), ([0, 4, 2, 3], [1, 6, 5])]


def test_chance_shuffles_the_rows_first():
    labels = np.zeros(20, dtype=np.uint16)
    published = as_lists(make_folds(4, labels, None, None))
    assert published == as_lists(make_folds(4, labels, None, None))
    shuffled = as_lists(make_folds(4, labels, None, 0))
    assert shuffled == as_lists(make_folds(4, labels, None, np.random.RandomState(0)))
    assert shuffled != published and shuffled != as_lists(make_folds(4, labels, None, 1))


def test_a_splitter_sees_all_rows_and_the_folds_only_the_kept():
    labels = np.array([0, 1, 0, 1], dtype=np.uint16)
    keep = np.array([True, False, True, True, False, True])
    # Of rows 0 to 5 the rows 0 2 3 5 are kept, as 0 1 2 3.
    assert as_lists(make_folds(KFold(2), labels, keep, None)) == [
        ([2, 3], [0, 1]),
        ([0, 1], [2, 3]),
    ]
    given = [([0, 1, 2], np.array([3, 4])), ((5, 4, 3), np.array([2, 1], dtype=np.uint8))]
    assert as_lists(make_folds(given, labels, keep, None)) == [([0, 1], [2]), ([3, 2], [1])]
    assert as_lists(make_folds(iter(given), labels, keep, None)) == [([0, 1], [2]), ([3, 2], [1])]


def test_a_splitter_sees_the_labels():
    labels = np.repeat(np.array([0, 1, 2], dtype=np.uint16), [30, 20, 10])
    for _, test in make_folds(StratifiedKFold(5), labels, None, None):
        assert np.bincount(labels[test]).tolist() == [6, 4, 2]


def test_a_fold_that_keeps_no_row_is_refused():
    labels = np.array([0, 1, 0], dtype=np.uint16)
    keep = np.array([True, True, True, False])
    with pytest.raises(ValueError, match="fold 1 of cv has no row of positive weight"):
        make_folds([([0, 1], [2]), ([0, 1], [3])], labels, keep, None)
