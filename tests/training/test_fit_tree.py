"""Trees that are grown, pruned, averaged and chosen with the help of folds."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from caltree import CalibrationTree, PublishedCalibrationTree
from caltree._inputs.folds import make_folds
from caltree._training.do_no_harm import best_tree
from caltree._training.exact import ExactEngine
from caltree._training.fit_tree import fit_tree
from caltree._training.held_out import HeldOutRows
from caltree._training.levels import leaf_levels
from caltree._training.settings import Growth, Settings

from ..support.datasets import make_dataset
from ..support.histogram_cases import histogram_tree
from ..support.trees import FIXED, boosted_tree, fixed_tree, make_frame, make_rows, same_tree

# An engine whose held-out predictions are told

GROWTH = Growth(0.05, 8.0, 2.0, 3, 255)


@dataclass
class Told:
    """Trees whose candidates are as good as told, each a probability of the truth."""

    grown: Any
    qualities: Any
    asked: list

    def __getattr__(self, name):
        return getattr(self.grown, name)

    def held_out(self, levels, *, uncalibrated):
        """Candidates that are right with a probability, but for noise."""
        self.asked.append((levels.names, uncalibrated))
        real = self.grown.held_out(levels, uncalibrated=uncalibrated)
        rng = np.random.default_rng(0)
        truth = np.eye(2)[real.labels]
        right = [self.qualities.get(name, 0.5) for name in real.names]
        noise = rng.uniform(-0.05, 0.05, (len(right), len(truth), 1)) * [1.0, -1.0]
        told = np.array([p * truth + (1 - p) * (1 - truth) for p in right]) + noise
        return HeldOutRows(real.names, told, real.labels, None, real.scoring, real.has_uncalibrated)


class ToldEngine:
    """Grows real trees, whose held-out predictions are told."""

    def __init__(self, qualities):
        X, y, scores = make_rows(300)
        folds = make_folds(3, y.astype(np.uint16), None, None)
        self.exact = ExactEngine(make_dataset(X, y, scores), folds, GROWTH, "rmse", None)
        self.model = self.exact.model
        self.qualities, self.asked = qualities, []

    def grow(self):
        return Told(self.exact.grow(), self.qualities, self.asked)


def fit_told(qualities, **changes):
    """A tree whose candidates are as good as told, how it was chosen, and what was asked."""
    engine = ToldEngine(qualities)
    known = {"scoring": "rmse", "kept_gain": 0.95, "path_averaging": True, "do_no_harm": True}
    model, selection = fit_tree(engine, Settings(**{**known, **changes}))
    return model, selection, engine.asked


ALL_LEVELS = ("global", "2 regions", "4 regions", "8 regions")


@pytest.mark.parametrize(
    ("qualities", "chosen"),
    [
        ({"uncalibrated": 0.9}, "uncalibrated"),
        ({"uncalibrated": 0.9, "global": 0.9, "8 regions": 0.9}, "uncalibrated"),
        ({"global": 0.9}, "global"),
        ({"4 regions": 0.9}, "local"),
        ({"8 regions": 0.9}, "local"),
    ],
)
def test_held_out_rows_choose(qualities, chosen):
    model, selection, asked = fit_told(qualities)
    assert selection.chosen == chosen
    weights = {each.name: each.weight for each in selection.candidates}
    weight = model.uncalibrated_weight
    assert weight == pytest.approx(weights["uncalibrated"], abs=1e-12)
    best = max(weights, key=weights.get)
    assert best == {"local": max(qualities, key=qualities.get)}.get(chosen, chosen)
    if chosen == "global":
        assert model.weight.tolist() == [pytest.approx(1.0 - weight)]
    assert asked == [(ALL_LEVELS, True)]


def test_a_tree_is_cut_back_to_what_it_needs():
    for kept_gain, n_leaves in ((0.95, 8), (0.9, 4), (None, 8)):
        model, selection, _ = fit_told({"4 regions": 0.85, "8 regions": 0.88}, kept_gain=kept_gain)
        assert model.n_leaves <= n_leaves
        weights = {each.name: each.weight for each in selection.candidates}
        assert weights[f"{n_leaves} regions"] > 0.5
        assert (weights["8 regions"] > 0.0) == (n_leaves == 8)


def test_no_more_leaves_are_asked_for_than_are_allowed():
    model, selection, asked = fit_told({"3 regions": 0.9}, max_leaf_nodes=3)
    assert asked == [(("global", "2 regions", "3 regions"), True)]
    assert selection.chosen == "local" and model.n_leaves == 3


def test_without_do_no_harm_the_best_tree_is_taken():
    model, selection, asked = fit_told({"uncalibrated": 0.95, "global": 0.7}, do_no_harm=False)
    names = [each.name for each in selection.candidates]
    assert names[0] == "global" and "uncalibrated" not in names
    assert model.uncalibrated_weight == 0.0
    assert selection.loss == selection.calibrated_loss
    assert asked == [(ALL_LEVELS, False)]


@pytest.mark.parametrize("kept_gain", [None, 0.95])
def test_without_averages_one_level_or_nothing(kept_gain):
    for qualities, chosen in (
        ({"uncalibrated": 0.9}, "uncalibrated"),
        ({"global": 0.9}, "global"),
        ({"8 regions": 0.9}, "local"),
    ):
        _, selection, asked = fit_told(qualities, path_averaging=False, kept_gain=kept_gain)
        assert selection.chosen == chosen
        assert sorted({each.weight for each in selection.candidates}) == [0.0, 1.0]
        # Those between are of use only if the tree may be cut back.
        assert asked[0][0] == (ALL_LEVELS if kept_gain else ("global", "8 regions"))


def test_nothing_is_asked_if_nothing_is_chosen():
    for max_leaf_nodes, n_leaves in ((None, 8), (3, 3)):
        free = {"path_averaging": False, "do_no_harm": False, "kept_gain": None}
        model, selection, asked = fit_told({}, **free, max_leaf_nodes=max_leaf_nodes)
        assert asked == [] and selection is None
        leaves = model.attribute < 0
        assert np.array_equal(model.weight, leaves.astype(float))
        assert leaves.sum() == n_leaves


# Fitting with folds

both_engines = pytest.mark.parametrize(
    "make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"]
)


def curves(tree):
    """Every loss that the folds gave."""
    if isinstance(tree, PublishedCalibrationTree):
        return tree.boosting_rmse_.tolist(), [part.tolist() for part in tree.ccp_path_]
    return tree.selection_


@both_engines
def test_folds_can_be_given_in_any_way(make):
    frame, y, scores = make_frame()
    expected = make(cv=4).fit(frame, y, scores)
    folds = make_folds(4, y.astype(np.uint16), None, None)
    tree = make(cv=folds).fit(frame, y, scores)
    assert same_tree(tree, expected)
    assert curves(tree) == curves(expected)
    other = make(cv=StratifiedKFold(4)).fit(frame, y, scores)
    split = list(StratifiedKFold(4).split(frame, y))
    assert same_tree(other, make(cv=split).fit(frame, y, scores))
    assert curves(other) != curves(expected)


def test_folds_need_not_cover_the_rows():
    X, y, scores = make_rows()
    cv = ShuffleSplit(3, test_size=0.2, random_state=0)
    tree = boosted_tree(cv=cv).fit(X, y, scores)
    assert tree.boosting_iterations_ == np.argmin(tree.boosting_rmse_)
    strengths, rmse = tree.ccp_path_
    assert tree.ccp_alpha_ == strengths[rmse == rmse.min()].max()
    tree = CalibrationTree(cv=cv).fit(X, y, scores)
    # Rows that are held out twice are judged twice.
    held_out = np.concatenate([test for _, test in cv.split(X)])
    assert len(np.unique(held_out)) < len(held_out)
    uncalibrated = np.sqrt(np.mean((scores - np.eye(2)[y])[held_out] ** 2))
    assert tree.selection_.candidates[0].loss == pytest.approx(uncalibrated, abs=1e-12)


@both_engines
@pytest.mark.parametrize("n_classes", [2, 3])
def test_given_folds_and_rows_without_weight(n_classes, make):
    X, y, scores = make_rows(n_classes=n_classes)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    kept = np.flatnonzero(weight)
    place = np.full(len(y), -1)
    place[kept] = np.arange(len(kept))
    folds = list(StratifiedKFold(3).split(X, y))
    inner = [tuple(place[part][place[part] >= 0] for part in fold) for fold in folds]
    tree = make(cv=folds).fit(X, y, scores, sample_weight=weight)
    expected = make(cv=inner).fit(X[kept], y[kept], scores[kept], weight[kept])
    assert same_tree(tree, expected)
    assert curves(tree) == curves(expected)


def held_out_rmse(tree, X, y, scores, n_folds):
    """The RMSE in each of the published folds of a tree that is fitted to the others."""
    rmse = []
    for train, test in make_folds(n_folds, y.astype(np.uint16), None, None):
        tree.fit(X[train], y[train], scores[train])
        difference = tree.predict_proba(X[test], scores[test]) - np.eye(len(tree.classes_))[y[test]]
        rmse.append(np.sqrt(np.mean(difference**2)))
    return rmse


def test_boosting_rmse_is_the_mean_over_folds():
    X, y, scores = make_rows(n_classes=3)
    tree = boosted_tree(cv=3, max_depth=0).fit(X, y, scores)
    assert tree.boosting_rmse_[0] == pytest.approx(np.sqrt(2) / 3)
    iterations = tree.boosting_iterations_
    part = boosted_tree(boosting_iterations=iterations, ccp_alpha=None, max_depth=0)
    rmse = held_out_rmse(part, X, y, scores, 3)
    assert tree.boosting_rmse_[iterations] == pytest.approx(np.mean(rmse), abs=1e-12)


def test_held_out_rmse_of_the_unpruned_tree():
    X, y, scores = make_rows(500, n_classes=3, seed=1, round_to=1)
    tree = boosted_tree(cv=3, boosting_iterations=2).fit(X, y, scores)
    rmse = held_out_rmse(boosted_tree(boosting_iterations=2, ccp_alpha=0.0), X, y, scores, 3)
    strengths, found = tree.ccp_path_
    assert strengths[0] == 0.0
    assert found[0] == pytest.approx(np.mean(rmse), abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_losses_are_those_of_trees_that_are_fitted_to_the_others(n_classes):
    # Values that every fold has, and scores of mean 0 and deviation 1 in each: the bins and scales
    # of all rows are those of any two folds.
    X, y, _ = make_rows(480, n_classes=n_classes, seed=1, round_to=0)
    X = np.clip(X, -1, 1)
    margins = np.random.default_rng(0).choice([-1.0, 1.0], (480, n_classes - (n_classes == 2)))
    folds = []
    for test in np.arange(480).reshape(3, 160):
        margins[test[80:]] = -margins[test[:80]]
        folds.append((np.setdiff1d(np.arange(480), test), test))
    tree = CalibrationTree(cv=folds, score_type="margin").fit(X, y, margins)

    def held_out_loss(max_leaf_nodes):
        """Of trees of so many leaves that are fitted to the other folds."""
        limit = {"max_depth": 0} if max_leaf_nodes == 1 else {"max_leaf_nodes": max_leaf_nodes}
        part = fixed_tree(score_type="margin", **limit)
        errors = [
            part.fit(X[train], y[train], margins[train]).predict_proba(X[test], margins[test])
            - np.eye(n_classes)[y[test]]
            for train, test in folds
        ]
        return np.sqrt(np.mean(np.concatenate(errors) ** 2))

    names = [each.name for each in tree.selection_.candidates]
    limits = [1, *(int(name.removesuffix(" regions")) for name in names[1:])]
    assert names[0] == "global" and limits[:4] == [1, 2, 4, 8]
    for each, limit in zip(tree.selection_.candidates, limits, strict=True):
        assert each.loss == pytest.approx(held_out_loss(limit), abs=1e-12)


EXTREME = {
    "probability": [0.0, 1e-300, 1e-9, 0.3, 0.5, 0.9, 1.0],
    "logit": [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0],
    "margin": [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0],
}


# By log loss, a wrong probability of 1 - 1e-15 differs from itself in its last bits.
MILD = {
    "probability": [0.05, 0.3, 0.5, 0.9],
    "logit": [-3.0, -1.0, 0.0, 2.0],
    "margin": [-3.0, -1.0, 0.0, 2.0],
}


@pytest.mark.parametrize(
    ("scoring", "values"), [("rmse", EXTREME), ("rmse", MILD), ("log_loss", MILD)]
)
@pytest.mark.parametrize("score_type", EXTREME)
@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (2, 4), (3, 3), (3, 6), (16, 32)])
def test_a_tree_predicts_as_it_was_judged(score_type, shape, scoring, values):
    """What the splits of a fold's tree gain is what its levels lose less than the root."""
    n_classes, width = shape
    rng = np.random.default_rng(0)
    X, y, _ = make_rows(300, n_classes=n_classes)
    scores = rng.choice(values[score_type], (300, width))
    fold = np.arange(300) % 3 == 0
    folds = [(np.flatnonzero(~fold).astype(np.uint32), np.flatnonzero(fold).astype(np.uint32))]
    dataset = make_dataset(X, y, scores, score_type=score_type)
    grown = ExactEngine(dataset, folds, replace(GROWTH, max_depth=None), scoring, None).grow()
    levels = leaf_levels(grown.whole, None, between=True)
    held_out = grown.held_out(levels, uncalibrated=False)
    alone = np.eye(len(levels))
    losses = np.array([held_out.loss(only) for only in alone])
    totals = 100 * (losses if scoring == "log_loss" else losses**2)
    gains = [levels.held_out_gains(grown.of_folds[0], only, 3).sum() for only in alone]
    np.testing.assert_allclose(totals[0] - totals, gains, rtol=1e-9, atol=1e-9)
    whole = best_tree(held_out, Settings(scoring, path_averaging=True))
    assert held_out.loss(whole) <= losses.min() * (1 + 1e-9)


# Importances


def rows_with_an_idle_column(n_rows=1500, seed=0):
    """The scores are wrong by the first attribute, somewhat by the second, not by the third."""
    rng = np.random.default_rng(seed)
    X, odds = rng.normal(size=(n_rows, 3)), rng.normal(size=n_rows)
    y = rng.random(n_rows) < expit(odds + 2.0 * (X[:, 0] > 0) - 1.0 + 0.8 * (X[:, 1] > 0) - 0.4)
    return X, y.astype(int), expit(odds)


@pytest.mark.parametrize("make", [CalibrationTree, histogram_tree, PublishedCalibrationTree])
def test_importances_are_gains_on_held_out_rows(make):
    X, y, scores = rows_with_an_idle_column()
    tree = make().fit(X, y, scores)
    found = tree.feature_importances_
    assert found.sum() == pytest.approx(1.0)
    assert found[0] > 0.6 > found[1] > found[2]
    if make is not PublishedCalibrationTree:
        # Splits that only seem to help gain nothing on rows that they have not seen.
        assert found[2] < 0.02
        seen = make(**FIXED).fit(X, y, scores).feature_importances_
        assert seen[2] > 3 * found[2] + 0.02


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_importances_count_what_each_split_gains_as_far_as_it_counts(averaging, scoring):
    X, y, scores = rows_with_an_idle_column()
    folds = make_folds(5, y.astype(np.uint16), None, None)
    dataset = make_dataset(X, y, scores[:, np.newaxis])
    engine = ExactEngine(dataset, folds, GROWTH, scoring, None)
    wanted = Settings(scoring, kept_gain=0.95, path_averaging=averaging, do_no_harm=True)
    model, selection = fit_tree(engine, wanted)
    grown = engine.grow()
    levels = leaf_levels(grown.whole, None, between=True)
    shares = np.array([each.weight for each in selection.candidates[-len(levels) :]])
    assert np.count_nonzero(shares) > 1 if averaging else np.count_nonzero(shares) == 1
    gains = sum(levels.held_out_gains(tree, shares, 3) for tree in grown.of_folds)
    used = np.isin(np.arange(3), model.attribute)
    gains = np.where(used, np.maximum(gains, 0.0), 0.0)
    np.testing.assert_allclose(model.importances, gains / gains.sum(), rtol=0, atol=1e-9)
