"""The weights of the ways of reading the trees of a forest."""

import math
from dataclasses import replace

import numpy as np
import pytest

from caltree import CalibrationForest, _core
from caltree._running import progress
from caltree._training import bagging
from caltree._training.averaging import WEIGHT_UNITS
from caltree._training.bagging import (
    SIZES,
    ForestSettings,
    count_trees,
    fit_forest,
    grow_forest,
)
from caltree.metrics import rmse

from ..support.datasets import make_dataset
from ..support.trees import make_rows

EVERY_SIZE = len(SIZES)
UNIT = 1 / WEIGHT_UNITS


def make_noise(n_rows=200, n_classes=2, *, margin=False, weights=None):
    """Labels, and scores that say nothing about them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n_rows)
    scores = rng.dirichlet(np.ones(n_classes), n_rows)
    X = rng.standard_normal((n_rows, 2))
    score_type = "margin" if margin else "probability"
    options = {"n_classes": n_classes, "score_type": score_type, "weights": weights}
    return make_dataset(X, labels, scores, **options)


def make_settings(n_trees=6, *, scoring="rmse", do_no_harm=True, max_depth=0):
    return ForestSettings(
        seeds=np.arange(n_trees),
        max_features=(2, 3),
        l2_regularization=0.05,
        min_samples_leaf=2.0,
        max_depth=max_depth,
        max_bins=255,
        scoring=scoring,
        do_no_harm=do_no_harm,
    )


@pytest.fixture
def fit(monkeypatch):
    """Fits a forest of trees without splits that predict as told."""

    def fit(dataset, predictions, settings=None):
        settings = make_settings() if settings is None else settings
        settings = replace(settings, seeds=np.arange(len(predictions)))
        training = _core.ShrunkenTraining(dataset.core, dataset.offset, 255, False)
        structure, models, *_ = training.bagged(0, 0, 0.05, SIZES, 2.0, 0, 2)
        trees = [(structure, models, rows, predicted) for rows, predicted in predictions]
        monkeypatch.setattr(bagging, "_grower", lambda *_: lambda numbered: trees[numbered[0]])
        return fit_forest(dataset, settings, None)

    return fit


def states(probabilities):
    """As the trees give them: of two classes the second alone."""
    return probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def at_every_size(dataset, probabilities):
    """All rows, and the same prediction at every size."""
    rows = np.arange(len(dataset.labels), dtype=np.uint32)
    return rows, np.tile(states(probabilities), (EVERY_SIZE, 1, 1))


def truth_and_nothing(dataset):
    right = np.eye(dataset.n_classes)[dataset.labels] * 0.8 + 0.2 / dataset.n_classes
    return right, np.full(right.shape, 1 / dataset.n_classes)


def weights_of(selection):
    """The weights of the trees, by kind and size, and that of the uncalibrated probabilities."""
    found = [each.weight for each in selection.candidates if each.name != "uncalibrated"]
    return np.array(found).reshape(2, EVERY_SIZE), selection.uncalibrated_weight


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("margin", [False, True])
def test_the_kind_and_size_that_is_right_counts(fit, scoring, n_classes, margin):
    dataset = make_noise(n_classes=n_classes, margin=margin)
    right, nothing = truth_and_nothing(dataset)
    plain = at_every_size(dataset, nothing)
    rows, on_scores = at_every_size(dataset, nothing)
    on_scores[3] = states(right)
    fitted = fit(dataset, [plain, (rows, on_scores)] * 3, make_settings(scoring=scoring))
    weights, uncalibrated = weights_of(fitted.selection)
    # Some is left to the scores: as much as makes no difference that could not be chance.
    assert 0.0 <= uncalibrated < (0.1 if not margin else 1e-12)
    assert weights[1, 3] == pytest.approx(1.0 - uncalibrated, abs=1e-3)
    names = [each.name for each in fitted.selection.candidates]
    assert (names[0] == "uncalibrated") != margin
    assert len(names) == len(set(names)) == 12 + (not margin)
    best = fitted.selection.candidates[-3]
    assert best.name == "regions of 60 rows, splits on scores too"
    expected = 0.2 * math.sqrt((1 - 1 / n_classes) / n_classes)
    if scoring == "log_loss":
        expected = -math.log(0.8 + 0.2 / n_classes)
    assert best.loss == pytest.approx(expected)
    assert fitted.selection.chosen == "local"
    # Six trees of one node each, three of a kind.
    of_kinds = np.tile(weights.sum(axis=1) / 3, 3)
    np.testing.assert_allclose(fitted.model.weight, of_kinds, rtol=0, atol=UNIT)
    assert fitted.model.uncalibrated_weight == pytest.approx(uncalibrated, abs=1e-12)


def test_scores_stay_uncalibrated_unless_trees_are_clearly_better(fit):
    dataset = make_noise()
    better = dataset.uncalibrated * 0.9 + 0.1 * np.eye(2)[dataset.labels]
    for trees, stays in ((dataset.uncalibrated, True), (better, False)):
        fitted = fit(dataset, [at_every_size(dataset, trees)] * 2)
        weights, uncalibrated = weights_of(fitted.selection)
        assert uncalibrated == 1.0 if stays else uncalibrated < 0.2
        assert (fitted.selection.chosen == "uncalibrated") == stays
        assert weights.sum() == pytest.approx(1.0 - uncalibrated)
        assert fitted.model.uncalibrated_weight == pytest.approx(uncalibrated, abs=1e-12)


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_without_do_no_harm_the_scores_have_no_weight(fit, scoring):
    dataset = make_noise()
    # The scores are right, and the trees are not.
    right, nothing = truth_and_nothing(dataset)
    told = replace(dataset, uncalibrated=right)
    predictions = [at_every_size(dataset, nothing)] * 2
    asked = fit(told, predictions, make_settings(scoring=scoring))
    assert asked.selection.chosen == "uncalibrated"
    fitted = fit(told, predictions, make_settings(scoring=scoring, do_no_harm=False))
    names = [each.name for each in fitted.selection.candidates]
    assert len(names) == 12 and "uncalibrated" not in names
    weights, uncalibrated = weights_of(fitted.selection)
    assert uncalibrated == fitted.model.uncalibrated_weight == 0.0
    assert weights.sum() == pytest.approx(1.0)
    assert fitted.selection.loss == fitted.selection.calibrated_loss


def test_a_candidate_is_the_mean_over_trees_that_did_not_see_the_row(fit):
    dataset = make_noise(4, margin=True)
    one = np.tile(np.array([[0.2], [0.4]]), (EVERY_SIZE, 1, 1))
    two = np.tile(np.array([[0.6], [0.8]]), (EVERY_SIZE, 1, 1))
    rows = [np.array(some, dtype=np.uint32) for some in ([0, 1], [1, 2], [1, 2], [1, 3])]
    # The trees of the first kind are the first and the third.
    predictions = [(rows[0], one), (rows[2], two), (rows[1], two), (rows[3], one)]
    selection = fit(dataset, predictions).selection
    # Rows 1 and 2 were left out by trees of both kinds.
    second = [[(0.4 + 0.6) / 2, 0.8], [(0.6 + 0.2) / 2, 0.8]]
    for kind, means in enumerate(second):
        residuals = np.array(means) - dataset.labels[1:3]
        loss = selection.candidates[kind * EVERY_SIZE].loss
        assert loss == pytest.approx(math.sqrt(np.mean(residuals**2)))


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_weights_are_numbers_of_rows(fit, scoring):
    times = np.random.default_rng(5).integers(1, 4, 200)
    place = np.repeat(np.arange(200), times)
    dataset = make_noise(weights=times.astype(float), margin=True)
    repeated = replace(
        dataset,
        weights=None,
        labels=dataset.labels[place],
        matrix=np.asfortranarray(dataset.matrix[place]),
        scores=np.asfortranarray(dataset.scores[place]),
    )
    right, nothing = truth_and_nothing(dataset)
    rng = np.random.default_rng(1)
    trees = np.array(
        [np.clip(states(right) + 0.2 * rng.standard_normal((200, 1)), 0.01, 0.99) for _ in SIZES]
    )
    found = []
    for which, rows in ((dataset, np.arange(200)), (repeated, place)):
        all_rows, plain = at_every_size(which, nothing[rows])
        predictions = [(all_rows, trees[:, rows]), (all_rows, plain)]
        found.append(fit(which, predictions, make_settings(scoring=scoring)).selection)
    one, other = found
    np.testing.assert_allclose(weights_of(one)[0], weights_of(other)[0], rtol=0, atol=1e-6)
    losses = [[each.loss for each in selection.candidates] for selection in found]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-12)


@pytest.mark.parametrize("do_no_harm", [False, True])
@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("rows", [[], [0, 1]])
def test_where_no_row_was_left_out_by_both_kinds(fit, margin, rows, do_no_harm):
    dataset = make_noise(4, margin=margin)
    predictions = [
        (np.array(some, dtype=np.uint32), np.full((EVERY_SIZE, len(some), 1), 0.5))
        for some in (rows, [2, 3])
    ]
    fitted = fit(dataset, predictions, make_settings(do_no_harm=do_no_harm))
    assert fitted.selection is None
    # Uncalibrated if that is allowed, otherwise the roots.
    if do_no_harm and not margin:
        assert fitted.model.uncalibrated_weight == 1.0
    else:
        assert fitted.model.weight.tolist() == [0.5, 0.5]


def weights_of_trees(model):
    """The weight of every tree, summed up on the way to its last leaf."""
    ends = np.append(model.roots[1:], model.n_nodes) - 1
    found = []
    for node in ends.tolist():
        total = 0.0
        while node >= 0:
            total += model.weight[node]
            node = int(model.parent[node])
        found.append(total)
    return found


@pytest.mark.parametrize("do_no_harm", [False, True])
def test_real_trees_of_a_kind_have_the_same_weight(do_no_harm):
    # The truth jumps up and down with the score.
    rng = np.random.default_rng(0)
    X, scores = rng.standard_normal((400, 2)), rng.random((400, 1))
    y = rng.random(400) < np.where(np.abs(scores[:, 0] - 0.5) < 0.2, 0.9, 0.1)
    settings = make_settings(8, do_no_harm=do_no_harm, max_depth=None)
    fitted = fit_forest(make_dataset(X, y, scores), settings, None)
    weights, uncalibrated = weights_of(fitted.selection)
    expected = np.tile(weights.sum(axis=1) / 4, 4)
    # Each size of each tree is rounded.
    atol = EVERY_SIZE * UNIT
    np.testing.assert_allclose(weights_of_trees(fitted.model), expected, rtol=0, atol=atol)
    assert fitted.model.uncalibrated_weight == pytest.approx(uncalibrated, abs=1e-12)
    # Every other tree may split on the scores, too.
    on_scores = fitted.model.tree_of_nodes[fitted.model.attribute >= X.shape[1]]
    assert len(on_scores) and (on_scores % 2 == 1).all()


def test_the_threads_do_not_matter():
    X, y, scores = make_rows(300)
    dataset, settings = make_dataset(X, y, scores), make_settings(4, max_depth=None)
    one, two = (fit_forest(dataset, settings, n_jobs) for n_jobs in (None, 2))
    assert one.model.to_dict() == two.model.to_dict() and one.selection == two.selection


def test_a_forest_that_always_calibrates():
    rng = np.random.default_rng(0)
    X, scores = rng.standard_normal((400, 2)), rng.random(400)
    y = rng.random(400) < scores
    careful = CalibrationForest(8, random_state=0).fit(X, y, scores)
    bold = CalibrationForest(8, random_state=0, do_no_harm=False).fit(X, y, scores)
    assert careful.selection_.chosen == "uncalibrated"
    assert bold.selection_.uncalibrated_weight == bold.model_.uncalibrated_weight == 0.0
    assert not np.array_equal(bold.predict_proba(X, scores)[:, 1], scores)


def test_sizes_fall_and_the_first_leaves_the_root_whole():
    assert SIZES[0] == np.inf and (np.diff(SIZES) < 0).all()


# Fewer trees where that makes no difference


@pytest.fixture
def large(monkeypatch):
    """Takes any number of rows for a large one."""
    monkeypatch.setattr(bagging, "_SMALL_FOREST", 0)


def grow(n_trees=30, n_jobs=None, n_classes=2):
    X, y, scores = make_rows(400, n_classes)
    dataset = make_dataset(X, y, scores, n_classes=n_classes)
    settings = make_settings(n_trees, max_depth=None)
    with progress.stage(1.0) as stage:
        return grow_forest(dataset, settings, n_jobs, stage)


def test_a_small_forest_is_grown_in_full():
    assert (grow(31).n_grown == [[16], [15]]).all()


def test_a_large_forest_is_grown_as_deep_as_it_needs_to_be(large):
    grown = grow()
    assert grown.n_grown.shape == (2, EVERY_SIZE)
    assert (np.diff(grown.n_grown) <= 0).all()
    assert (grown.n_grown[:, 0] == 15).all() and (grown.n_grown >= 10).all()
    assert grown.n_grown[0, -1] < 15
    for number, (structure, _) in enumerate(grown.trees):
        rows = _core.row_counts(structure)
        for_sizes = grown.n_grown[number % 2] > number // 2
        whole = _core.collapse_tree(*grown.trees[number], rows, SIZES, for_sizes.astype(float))
        # Nothing smaller was split.
        assert len(whole["attribute"]) == len(structure)
        if not for_sizes.all():
            assert whole["n_rows"][whole["attribute"] >= 0].min() >= SIZES[for_sizes][-1]


def test_a_large_forest_of_right_scores_has_all_its_roots(large):
    rng = np.random.default_rng(0)
    right = rng.random(2000)
    y = (rng.random(2000) < right).astype(int)
    dataset = make_dataset(rng.standard_normal((2000, 2)), y, np.column_stack([1 - right, right]))
    with progress.stage(1.0) as stage:
        grown = grow_forest(dataset, make_settings(40, max_depth=None), None, stage)
    # Nothing is to be gained, so that no tree beyond the first has to be deep.
    assert grown.n_grown[:, 0].tolist() == [20, 20] and grown.n_grown[:, 1:].max() < 20
    assert [len(structure) for structure, _ in grown.trees[-2:]] == [1, 1]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_thinned_forest_says_what_its_sizes_say(large, n_classes, monkeypatch):
    monkeypatch.setattr(bagging, "shorten_numbers", lambda model, scores: model)
    grown = grow(n_classes=n_classes)
    weights = np.array([0.0, 0.3, 0.01, 0.0, 0.15, 0.04, 0.05, 0.0, 0.0, 0.1, 0.05, 0.001])
    model = grown.model(weights)
    n_read = np.minimum(count_trees(weights.reshape(2, -1), np.array([[15]]), 3), grown.n_grown)
    assert n_read.min() == 3 and n_read.max() == 15
    dataset = grown.dataset
    rows = (dataset.matrix, dataset.scores, dataset.offset)
    expected = np.zeros((400, n_classes))
    for kind in range(2):
        for size, weight in enumerate(weights.reshape(2, -1)[kind]):
            read = grown.trees[kind::2][: n_read[kind, size]]
            only = np.eye(EVERY_SIZE)[size] / len(read)
            trees = [_core.collapse_tree(*t, _core.row_counts(t[0]), SIZES, only) for t in read]
            expected += weight * dataset.model(trees).probabilities(*rows)
    found = model.probabilities(*rows)
    assert model.uncalibrated_weight == pytest.approx(1.0 - weights.sum())
    # What is left of a division goes to the first trees.
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    alike = replace(grown, n_grown=np.full((2, EVERY_SIZE), 15))
    assert model.n_nodes < 0.6 * alike.model(np.full(12, 0.25)).n_nodes


def test_a_size_is_read_in_as_many_trees_as_its_weight_calls_for():
    weights = np.array([[0.0, 0.002, 0.02, 0.1, 0.2, 0.6]])
    assert count_trees(weights, np.array([[50]]), 3).tolist() == [[3, 3, 5, 25, 50, 50]]
    assert count_trees(weights, np.array([[2]]), 3).tolist() == [[2] * 6]


def test_sizes_of_few_trees_are_judged_by_the_rows_these_did_not_see(large):
    grown = grow()
    assert len(grown.candidates) == 2 * EVERY_SIZE
    # Ten trees of a kind leave out all but a few rows.
    assert 0.9 * 400 < len(grown.candidates.rows) <= 400


def test_threads_do_not_matter_to_a_large_forest(large):
    weights = np.full(12, 0.05)
    one, two = (grow(24, n_jobs) for n_jobs in (None, 2))
    assert np.array_equal(one.n_grown, two.n_grown)
    assert np.array_equal(one.candidates.probabilities, two.candidates.probabilities)
    assert one.model(weights).to_dict() == two.model(weights).to_dict()


@pytest.mark.parametrize("do_no_harm", [False, True])
def test_a_large_forest_calibrates_as_well(large, monkeypatch, do_no_harm):
    X, y, scores = make_rows(1200)
    errors, nodes = [], []
    for limit in (0, 200_000):
        monkeypatch.setattr(bagging, "_SMALL_FOREST", limit)
        forest = CalibrationForest(40, random_state=0, do_no_harm=do_no_harm)
        forest.fit(X[:600], y[:600], scores[:600])
        errors.append(rmse(y[600:], forest.predict_proba(X[600:], scores[600:])))
        nodes.append(forest.model_.n_nodes)
    assert errors[0] == pytest.approx(errors[1], abs=2e-3)
    assert nodes[0] < 0.8 * nodes[1]
