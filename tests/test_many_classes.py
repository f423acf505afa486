"""Dozens of classes and more: work and memory grow with their number, not with its square."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from caltree import CalibrationBoosting, CalibrationForest
from caltree._training import boosting_columns, held_out
from caltree._training.bagging import SIZES, sizes_for
from caltree._training.boosting_columns import columns_of, count_bins, score_floors
from caltree._training.dataset import Dataset
from caltree._training.do_no_harm import choose_weights

from .support.held_out import random_candidates, rows_of


def make_rows(n_rows, n_classes, seed=0):
    """Scores that are wrong in half of the rows, by one class."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    scores = softmax(3 * rng.standard_normal((n_rows, n_classes)), axis=1)
    y = (rng.random((n_rows, 1)) > np.cumsum(scores, axis=1)).sum(axis=1) + (X[:, 0] > 0)
    y = y % n_classes
    y[:n_classes] = np.arange(n_classes)
    return X, y, scores


@pytest.fixture
def dataset(monkeypatch):
    """The dataset of the last fit."""
    kept = []
    of = Dataset.of.__func__
    monkeypatch.setattr(
        Dataset, "of", classmethod(lambda *given: kept.append(of(*given)) or kept[-1])
    )
    return lambda: kept[-1]


# Judging


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_blocks_of_rows_change_nothing(monkeypatch, scoring):
    candidates, labels = random_candidates(0, n_candidates=4, n_classes=3)
    whole, parts = (rows_of(candidates, labels, None, scoring) for _ in range(2))
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    expected = whole.loss(weights), whole.excess(weights, np.eye(4)[0], "rmse"), whole.products()
    monkeypatch.setattr(held_out, "_BLOCK", 21)  # 7 rows
    assert (parts.loss(weights), parts.excess(weights, np.eye(4)[0], "rmse")) == expected[:2]
    for found, of_whole in zip(parts.products(), expected[2], strict=True):
        np.testing.assert_allclose(found, of_whole, rtol=1e-13)
    assert parts.are_equal(1, 1) and not parts.are_equal(1, 2)


def test_a_difference_in_the_last_block_is_seen(monkeypatch):
    candidates, labels = random_candidates(0, n_candidates=2, n_classes=3)
    other = candidates[0].copy()
    other[-1] = other[-1, [1, 2, 0]]
    monkeypatch.setattr(held_out, "_BLOCK", 21)
    assert not rows_of(np.array([candidates[0], other]), labels).are_equal(0, 1)


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_judging_needs_less_memory_than_one_candidate(monkeypatch, scoring):
    rng = np.random.default_rng(0)
    n_rows, n_classes = 2000, 200
    candidates = softmax(rng.standard_normal((5, n_rows, n_classes)), axis=2)
    rows = rows_of(list(candidates), rng.integers(n_classes, size=n_rows), None, scoring)
    monkeypatch.setattr(held_out, "_BLOCK", n_classes * 50)
    choose_weights(rows)  # what is imported on the way does not count
    rows = rows_of(list(candidates), rows.labels, None, scoring)
    tracemalloc.start()
    choose_weights(rows)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < candidates[0].nbytes


# Forests


@pytest.mark.parametrize(("n_classes", "smallest"), [(2, 4), (32, 4), (33, 16), (1000, 240)])
def test_sizes_of_a_forest(n_classes, smallest):
    sizes = sizes_for(SimpleNamespace(n_classes=n_classes))
    assert sizes[-1] == smallest and np.array_equal(sizes, SIZES[: len(sizes)])


def test_no_node_of_few_rows_for_each_class_is_split():
    X, y, scores = make_rows(1500, 160)
    forest = CalibrationForest(4, do_no_harm=False, random_state=0).fit(X, y, scores=scores)
    model = forest.model_
    assert model.n_rows[model.attribute >= 0].min() >= 60
    assert model.n_leaves > 4
    assert len(forest.selection_.candidates) == 2 * 4


@pytest.mark.parametrize("n_classes", [5, 40])
def test_scores_that_a_tree_of_a_forest_looks_at(dataset, n_classes):
    X, y, scores = make_rows(600, n_classes)
    forest = CalibrationForest(6, do_no_harm=False, random_state=0).fit(0.0 * X, y, scores=scores)
    model = forest.model_
    assert dataset().n_split_scores == min(n_classes, 10)
    split, tree = model.attribute[model.attribute >= 0], model.tree_of_nodes[model.attribute >= 0]
    assert (split >= X.shape[1]).all() and split.max() < X.shape[1] + n_classes
    scores_of_trees = [set(split[tree == number]) for number in np.unique(tree)]
    assert 1 < max(map(len, scores_of_trees)) <= 10
    # Each tree draws its own.
    assert n_classes == 5 or len(set.union(*scores_of_trees)) > 10


# Boosting


def test_few_scores_have_no_floor(dataset):
    X, y, scores = make_rows(200, 30)
    CalibrationForest(2, max_depth=1).fit(X, y, scores=scores)
    assert score_floors(dataset()) is None
    assert np.array_equal(columns_of(dataset(), None), np.hstack([X, dataset().scores]))


def test_scores_above_their_floors(dataset):
    X, y, scores = make_rows(500, 100)
    CalibrationForest(2, max_depth=1).fit(X, y, scores=scores)
    columns = columns_of(dataset(), score_floors(dataset()))
    seen, given = columns[:, X.shape[1] :], dataset().scores
    assert np.array_equal(columns[:, : X.shape[1]], X)
    raised = seen > given
    # 20 of 100 classes' shares of the rows are left.
    assert raised.mean() == pytest.approx(0.8, abs=0.01)
    assert np.array_equal(seen[~raised], given[~raised])
    for column in seen.T:
        assert (column == column.min()).mean() == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("n_classes", [30, 31])
def test_bins_of_scores(dataset, n_classes):
    X, y, scores = make_rows(200, n_classes)
    CalibrationForest(2, max_depth=1).fit(X, y, scores=scores)
    expected = {} if n_classes == 30 else {"max_bin_by_feature": [255] * 3 + [31] * 31}
    assert count_bins(dataset(), 255) == expected


def test_no_split_is_below_a_floor(dataset, monkeypatch):
    monkeypatch.setattr(boosting_columns, "FEW_SCORES", 5)
    monkeypatch.setattr(boosting_columns, "SHARES_OF_A_CLASS", 3.0)
    X, y, scores = make_rows(1500, 8)
    model = CalibrationBoosting(do_no_harm=False).fit(0.0 * X, y, scores=scores).model_
    floors = score_floors(dataset())
    is_split = model.attribute >= X.shape[1]
    assert is_split.sum() > 100
    assert (model.threshold[is_split] >= floors[model.attribute[is_split] - X.shape[1]]).all()
