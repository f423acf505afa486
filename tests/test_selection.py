"""Folds and what is chosen with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

from caltree import CalibrationTree
from caltree.selection import _choose_alpha, make_folds

from .helpers import make_frame, make_rows, same_tree

quick = settings(max_examples=50, deadline=None, derandomize=True)


def as_lists(folds):
    return [(train.tolist(), test.tolist()) for train, test in folds]


# Folds


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


# Fitting with folds


def test_folds_can_be_given_in_any_way():
    frame, y, scores = make_frame()
    expected = CalibrationTree(cv=4).fit(frame, y, scores)
    folds = make_folds(4, y.astype(np.uint16), None, None)
    tree = CalibrationTree(cv=folds).fit(frame, y, scores)
    assert same_tree(tree, expected)
    assert np.array_equal(tree.boosting_rmse_, expected.boosting_rmse_)
    other = CalibrationTree(cv=StratifiedKFold(4)).fit(frame, y, scores)
    split = list(StratifiedKFold(4).split(frame, y))
    assert same_tree(other, CalibrationTree(cv=split).fit(frame, y, scores))
    assert not np.array_equal(other.boosting_rmse_, expected.boosting_rmse_)


def test_folds_need_not_cover_the_rows():
    X, y, scores = make_rows()
    tree = CalibrationTree(cv=ShuffleSplit(3, test_size=0.2, random_state=0)).fit(X, y, scores)
    assert tree.boosting_iterations_ == np.argmin(tree.boosting_rmse_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_folds_and_rows_without_weight(n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    kept = np.flatnonzero(weight)
    place = np.full(len(y), -1)
    place[kept] = np.arange(len(kept))
    folds = list(StratifiedKFold(3).split(X, y))
    inner = [tuple(place[part][place[part] >= 0] for part in fold) for fold in folds]
    tree = CalibrationTree(cv=folds).fit(X, y, scores, sample_weight=weight)
    expected = CalibrationTree(cv=inner).fit(X[kept], y[kept], scores[kept], weight[kept])
    assert same_tree(tree, expected)
    assert np.array_equal(tree.boosting_rmse_, expected.boosting_rmse_)


def test_boosting_rmse_is_the_mean_over_folds():
    X, y, scores = make_rows(n_classes=3)
    tree = CalibrationTree(cv=3, max_depth=0).fit(X, y, scores)
    assert tree.boosting_rmse_[0] == pytest.approx(np.sqrt(2) / 3)
    iterations = tree.boosting_iterations_
    rmse = []
    for train, test in make_folds(3, y.astype(np.uint16), None, None):
        part = CalibrationTree(boosting_iterations=iterations, pruning=None, max_depth=0)
        part.fit(X[train], y[train], scores[train])
        difference = part.predict_proba(X[test], scores[test]) - np.eye(3)[y[test]]
        rmse.append(np.sqrt(np.mean(difference**2)))
    assert tree.boosting_rmse_[iterations] == pytest.approx(np.mean(rmse), abs=1e-12)


def test_held_out_rmse_of_the_unpruned_tree():
    X, y, scores = make_rows(500, n_classes=3, seed=1, round_to=1)
    tree = CalibrationTree(cv=3, boosting_iterations=2).fit(X, y, scores)
    rmse = []
    for train, test in make_folds(3, y.astype(np.uint16), None, None):
        part = CalibrationTree(boosting_iterations=2, pruning=0.0)
        part.fit(X[train], y[train], scores[train])
        difference = part.predict_proba(X[test], scores[test]) - np.eye(3)[y[test]]
        rmse.append(np.sqrt(np.mean(difference**2)))
    strengths, found = tree.pruning_path_
    assert strengths[0] == 0.0
    assert found[0] == pytest.approx(np.mean(rmse), abs=1e-12)


# The choice of the pruning strength


def test_strengths_lie_between_the_steps_and_every_fold_answers_with_its_own():
    alphas = np.array([0.0, 0.01, 0.04])
    folds = [
        (np.array([0.0, 0.015, 0.3]), np.array([0.5, 0.4, 0.6])),
        (np.array([0.0, 0.3, 0.02]), np.array([0.5, 0.3, 0.2])),  # a dip: 0.02 comes with 0.3
    ]
    alpha, (strengths, rmse) = _choose_alpha(alphas, folds)
    np.testing.assert_allclose(strengths, [0.0, 0.02, 0.2])
    np.testing.assert_allclose(rmse, [0.5, 0.45, 0.45])
    assert alpha == strengths[2]


def test_of_equal_strengths_the_stronger_is_chosen():
    fold = (np.array([0.0]), np.array([0.5]))
    alpha, _ = _choose_alpha(np.array([0.0, 0.01, 0.04]), [fold])
    assert alpha == pytest.approx(0.2)
    better = (np.array([0.0, 0.03]), np.array([0.4, 0.5]))
    alpha, _ = _choose_alpha(np.array([0.0, 0.01, 0.04]), [better])
    assert alpha == pytest.approx(0.02)
