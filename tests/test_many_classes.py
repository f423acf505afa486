"""Dozens of classes and more: work and memory grow with their number, not with its square."""

import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import softmax

from caltree import CalibrationBoosting, CalibrationForest
from caltree._training import boosting, boosting_by_class, boosting_columns, held_out
from caltree._training.bagging import SIZES, sizes_for
from caltree._training.boosting_columns import columns_of, count_bins, score_floors
from caltree._training.dataset import Dataset
from caltree._training.do_no_harm import choose_weights
from caltree._training.losses import mean_loss, row_losses

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


def far_off_rows(n_rows, n_classes, seed=0):
    """Scores that are wrong in half of the rows by one class, and nearly certain."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    y = rng.integers(n_classes, size=n_rows)
    y[:n_classes] = np.arange(n_classes)
    likely = (y - (X[:, 0] > 0)) % n_classes
    scores = softmax(rng.standard_normal((n_rows, n_classes)) + 5 * np.eye(n_classes)[likely], 1)
    return X, y, scores


@pytest.fixture
def by_class(monkeypatch):
    """Eight classes are many, with two folds of few rounds: the boosters of each fold."""
    made, of_class = [], boosting_by_class.ClassBoosters
    monkeypatch.setattr(boosting, "N_FOLDS", 2)
    monkeypatch.setattr(boosting, "MANY_CLASSES", 8)
    monkeypatch.setattr(boosting, "MANY_CELLS", 1000)
    monkeypatch.setattr(boosting_by_class, "SHARES_OF_A_CLASS", 3.0)
    monkeypatch.setattr(boosting_by_class, "MOST_ROUNDS", 5)
    monkeypatch.setattr(
        boosting, "ClassBoosters", lambda *given: made.append(of_class(*given)) or made[-1]
    )
    return made


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_of_classes_are_those_of_their_boosters(by_class, dataset, weighted):
    X, y, scores = far_off_rows(1500, 8)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 1500) if weighted else None
    fitted = CalibrationBoosting(do_no_harm=False).fit(X, y, scores, sample_weight=weights)
    model, rows = fitted.model_, dataset()
    assert model.boosted_weight > 0.9 and len(by_class) == 2
    added = np.zeros((1500, 8))
    for boosters in by_class:
        for gate, booster in zip(boosters._gates, boosters._boosters, strict=True):
            assert 4 <= booster.num_trees() <= 5
            seen = rows.scores[:, gate.score] > gate.floor
            assert gate.score == gate.state and 0.2 < seen.mean() < 0.5
            columns = np.hstack([X, rows.scores[:, [gate.state]]])
            found = booster.predict(columns, raw_score=True)
            added[seen, gate.state] += found[seen] / 2
    curve = model.parameters[:, 0] + rows.scores @ model.dense_parameters(model.parameters)[:, 1:].T
    log_odds = curve + (rows.offset if model.offset else 0.0)
    expected = model.curve_weight * softmax(log_odds, axis=1)
    expected += model.boosted_weight * softmax(log_odds + added, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(X, scores), expected, atol=1e-9)
    assert np.sqrt(np.mean((expected - np.eye(8)[y]) ** 2)) < 0.7 * np.sqrt(
        np.mean((scores - np.eye(8)[y]) ** 2)
    )


def pairs_of(rows, n_rows=300):
    start = rows.scores[:n_rows] * 0.7
    numbers = np.arange(n_rows, dtype=np.uint32)
    gates = boosting_by_class.make_gates(rows, np.arange(len(rows.labels), dtype=np.uint32))
    return boosting_by_class.Pairs(rows, numbers, start, gates), gates, start


@pytest.mark.parametrize("weighted", [False, True])
def test_losses_and_gradients_of_pairs_are_those_of_all_classes(by_class, dataset, weighted):
    X, y, scores = far_off_rows(500, 12)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 500) if weighted else None
    CalibrationForest(2, max_depth=1).fit(X, y, scores, sample_weight=weights)
    rows = dataset()
    pairs, gates, log_odds = pairs_of(rows)
    rng, added = np.random.default_rng(2), np.zeros((300, 12))
    for number, gate in enumerate(gates):
        own = pairs.row[pairs.of(number)]
        assert np.array_equal(own, np.flatnonzero(rows.scores[:300, gate.score] > gate.floor))
        added[own, gate.state] = rng.standard_normal(len(own))
        pairs.add(number, added[own, gate.state])
    expected, truth = softmax(log_odds + added, axis=1), np.eye(12)[y[:300]]
    weight = np.ones(300) if weights is None else weights[:300]
    for scoring in ("rmse", "log_loss"):
        known = mean_loss(row_losses(expected, y[:300], scoring), weight, scoring)
        assert pairs.loss(scoring) == pytest.approx(known, rel=1e-12)
    first, second = pairs.gradients()
    for number, gate in enumerate(gates):
        own = pairs.row[pairs.of(number)]
        p = expected[own, gate.state]
        slope = weight[own] * (p - truth[own, gate.state])
        np.testing.assert_allclose(first[pairs.of(number)], slope, rtol=1e-6, atol=1e-7)
        curvature = weight[own] * 12 / 11 * p * (1 - p)
        np.testing.assert_allclose(second[pairs.of(number)], curvature, rtol=1e-6, atol=1e-7)


def test_a_class_is_in_question_for_as_many_more_rows_as_it_has(dataset, monkeypatch):
    monkeypatch.setattr(boosting_by_class, "SHARES_OF_A_CLASS", 3.0)
    X, _, scores = make_rows(1200, 12)
    y = np.where(np.arange(1200) < 300, 0, np.arange(1200) % 11)
    y[-1], scores[-1] = 11, softmax(np.eye(12)[11])
    CalibrationForest(2, max_depth=1).fit(X, y, scores=scores)
    pairs, gates, _ = pairs_of(dataset(), 1200)
    shares = np.bincount([g.state for g in gates], np.diff(pairs.bounds) / 1200, minlength=12)
    expected = 3 * np.maximum(np.bincount(y) / 1200, 1 / 12)
    assert 0.9 < expected[0] < 1.0
    np.testing.assert_allclose(shares, expected, atol=0.002)


def test_each_class_takes_the_classifier_that_knows_it(dataset, monkeypatch):
    monkeypatch.setattr(boosting_by_class, "SHARES_OF_A_CLASS", 3.0)
    X, y, scores = far_off_rows(1200, 12)
    noise = softmax(np.random.default_rng(5).standard_normal((1200, 12)), axis=1)
    both = np.hstack([noise, scores])
    CalibrationForest(2, max_depth=1).fit(X, y, scores=both)
    rows = dataset()
    gates = boosting_by_class.make_gates(rows, np.arange(1200, dtype=np.uint32))
    assert [gate.score - gate.state for gate in gates] == [12] * 12


def test_boosting_of_many_classes_is_the_same_again_and_after_storing(by_class):
    X, y, scores = far_off_rows(600, 8)
    fitted = CalibrationBoosting(random_state=3, do_no_harm=False)
    first = fitted.fit(X, y, scores).predict_proba(X, scores)
    stored = CalibrationBoosting.from_dict(fitted.to_dict())
    np.testing.assert_array_equal(stored.predict_proba(X, scores), first)
    np.testing.assert_array_equal(fitted.fit(X, y, scores).predict_proba(X, scores), first)
    assert fitted.model_.boosted_weight > 0
    other = CalibrationBoosting(random_state=4, do_no_harm=False).fit(X, y, scores)
    assert not np.array_equal(other.predict_proba(X, scores), first)


def test_few_rows_of_many_classes_are_boosted_all_together(by_class, monkeypatch):
    X, y, scores = far_off_rows(600, 8)
    monkeypatch.setattr(boosting, "MANY_CELLS", 4800)
    CalibrationBoosting(do_no_harm=False).fit(X, y, scores)
    assert not by_class
    monkeypatch.setattr(boosting, "MANY_CELLS", 4799)
    CalibrationBoosting(do_no_harm=False).fit(X, y, scores)
    assert by_class


def test_many_rows_of_many_classes_are_boosted_once_more(by_class, monkeypatch):
    monkeypatch.setattr(boosting, "MANY_ROWS", 1000)
    X, y, scores = far_off_rows(1500, 8)
    model = CalibrationBoosting(do_no_harm=False).fit(X, y, scores).model_
    first, last = by_class
    assert len(first._rows) < len(last._rows) == 1500
    assert max(booster.num_trees() for booster in last._boosters) == 7  # 1.25 times 5
    assert model.n_rows[0] == 1500 and 48 <= model.n_trees <= 56


def test_a_class_of_few_rows_that_no_held_out_row_is_like(by_class):
    X, y, scores = far_off_rows(600, 9)
    y[y == 8] = 0
    y[:2], scores[:, 8] = 8, 1e-9
    scores[:2] = softmax(5 * np.eye(9)[8])
    scores /= scores.sum(axis=1, keepdims=True)
    fitted = CalibrationBoosting(do_no_harm=False).fit(X, y, scores)
    assert np.isfinite(fitted.predict_proba(X, scores)).all()
    assert any(len(boosters._gates) == 9 for boosters in by_class)


def test_scores_that_say_nothing_put_no_class_in_question(by_class):
    X, y, scores = far_off_rows(600, 8)
    fitted = CalibrationBoosting(do_no_harm=False).fit(X, y, np.full_like(scores, 1 / 8))
    assert all(not boosters._gates for boosters in by_class) and fitted.model_.boosted_weight == 0
    share = np.bincount(y) / 600
    probabilities = fitted.predict_proba(X, np.full_like(scores, 1 / 8))
    np.testing.assert_allclose(probabilities, np.tile(share, (600, 1)), atol=0.02)
