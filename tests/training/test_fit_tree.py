"""Trees that are grown, pruned, averaged and chosen with the help of folds."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import ShuffleSplit, StratifiedKFold

from caltree import CalibrationTree, PublishedCalibrationTree
from caltree._inputs.folds import make_folds
from caltree._training.exact import ExactEngine
from caltree._training.fit_tree import fit_tree
from caltree._training.held_out import HeldOutRows
from caltree._training.settings import Growth, Settings

from ..support.datasets import make_dataset
from ..support.trees import boosted_tree, fixed_tree, make_frame, make_rows, same_tree

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

    def held_out(self, ccp_alpha, sizes, *, uncalibrated):
        """Candidates that are right with a probability, but for noise."""
        self.asked.append((self.grown.criterion, ccp_alpha, sizes.tolist(), uncalibrated))
        real = self.grown.held_out(ccp_alpha, sizes, uncalibrated=uncalibrated)
        rng = np.random.default_rng(0)
        quality = self.qualities[self.grown.criterion]
        truth = np.eye(2)[real.labels]
        right = [quality.get(name, 0.5) for name in real.names]
        noise = rng.uniform(-0.05, 0.05, (len(right), len(truth), 1)) * [1.0, -1.0]
        told = np.array([p * truth + (1 - p) * (1 - truth) for p in right]) + noise
        return HeldOutRows(real.names, told, real.labels, None, real.scoring, real.has_uncalibrated)


class ToldEngine:
    """Grows real trees, whose held-out predictions are told."""

    strength_of_root = None

    def __init__(self, qualities):
        X, y, scores = make_rows(300)
        folds = make_folds(3, y.astype(np.uint16), None, None)
        self.exact = ExactEngine(make_dataset(X, y, scores), folds, GROWTH, "rmse", None)
        self.n_rows, self.model = self.exact.n_rows, self.exact.model
        self.qualities, self.asked, self.criteria = qualities, [], None

    def grow(self, criteria):
        self.criteria = tuple(criteria)
        for grown in self.exact.grow(criteria):
            yield Told(grown, self.qualities, self.asked)


def make_settings(**changes):
    known = {
        "criteria": ("residual",),
        "scoring": "rmse",
        "ccp_alpha": "cv",
        "path_averaging": True,
        "do_no_harm": True,
    }
    return Settings(**{**known, **changes})


def fit_told(qualities, **changes):
    """A tree whose candidates are as good as told, and what was asked."""
    engine = ToldEngine({"residual": qualities, "gain_ratio": {"global": 0.55}})
    return fit_tree(engine, make_settings(**changes)), engine


@pytest.mark.parametrize(
    ("qualities", "chosen"),
    [
        ({"uncalibrated": 0.9}, "uncalibrated"),
        ({"uncalibrated": 0.9, "global": 0.9, "pruned tree": 0.9}, "uncalibrated"),
        ({"global": 0.9}, "global"),
        ({"regions of 60 rows": 0.9}, "local"),
        ({"pruned tree": 0.9}, "local"),
    ],
)
def test_held_out_rows_choose(qualities, chosen):
    fitted, engine = fit_told(qualities)
    assert fitted.selection.chosen == chosen
    weights = {each.name: each.weight for each in fitted.selection.candidates}
    weight = fitted.model.uncalibrated_weight
    assert weight == pytest.approx(weights["uncalibrated"], abs=1e-12)
    best = max(weights, key=weights.get)
    assert best == {"local": max(qualities, key=qualities.get)}.get(chosen, chosen)
    if chosen == "global":
        assert fitted.model.weight[0] == pytest.approx(1.0 - weight)
        assert not fitted.model.weight[1:].any()
    sizes = [np.inf, 240, 60, 15]
    assert engine.asked == [("residual", fitted.ccp_alpha, sizes, True)]


def test_without_do_no_harm_the_best_average_is_taken():
    fitted, engine = fit_told({"uncalibrated": 0.95, "global": 0.7}, do_no_harm=False)
    names = [each.name for each in fitted.selection.candidates]
    assert names[0] == "global" and "uncalibrated" not in names
    assert fitted.model.uncalibrated_weight == 0.0
    assert fitted.selection.loss == fitted.selection.calibrated_loss
    assert engine.asked[0][-1] is False


def test_without_averages_the_root_the_pruned_tree_or_nothing():
    for qualities, chosen in (
        ({"uncalibrated": 0.9}, "uncalibrated"),
        ({"global": 0.9}, "global"),
        ({"pruned tree": 0.9}, "local"),
    ):
        fitted, engine = fit_told(qualities, path_averaging=False)
        assert fitted.selection.chosen == chosen
        assert sorted({each.weight for each in fitted.selection.candidates}) == [0.0, 1.0]
        assert engine.asked[0][2] == [np.inf]


def test_the_criterion_that_loses_least_is_taken():
    for quality, criterion in ((0.9, "residual"), (0.1, "gain_ratio")):
        fitted, engine = fit_told(
            {"global": quality, "pruned tree": 0.5}, criteria=("residual", "gain_ratio")
        )
        # A candidate that is wrong is as good as none: an average has no negative weights.
        assert fitted.criterion == criterion
        assert engine.criteria == ("residual", "gain_ratio")
        assert [asked[0] for asked in engine.asked] == ["residual", "gain_ratio"]


def test_nothing_is_asked_if_nothing_is_mixed():
    for ccp_alpha in (None, 0.01, "cv"):
        fitted, engine = fit_told({}, path_averaging=False, do_no_harm=False, ccp_alpha=ccp_alpha)
        assert engine.asked == [] and fitted.selection is None
        assert (fitted.ccp_path is None) == (ccp_alpha != "cv")
        assert ccp_alpha == "cv" or fitted.ccp_alpha == ccp_alpha
        leaves = fitted.model.attribute < 0
        assert np.array_equal(fitted.model.weight, leaves.astype(float))


# Fitting with folds

both_engines = pytest.mark.parametrize(
    "make", [CalibrationTree, boosted_tree], ids=["shrunken", "boosted"]
)


def curves(tree):
    """Every loss that the folds gave."""
    boosting = tree.boosting_rmse_.tolist() if isinstance(tree, PublishedCalibrationTree) else []
    return boosting, [part.tolist() for part in tree.ccp_path_], tree.selection_


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
    tree = CalibrationTree(cv=cv).fit(X, y, scores)
    strengths, rmse = tree.ccp_path_
    assert tree.ccp_alpha_ == strengths[rmse == rmse.min()].max()
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


@pytest.mark.parametrize("criterion", ["residual", "gain_ratio"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_held_out_losses_of_trees_of_shrunken_node_models(n_classes, criterion):
    # Values that every fold has, and scores of mean 0 and deviation 1 in each: the bins and scales
    # of all rows are those of any two folds.
    X, y, _ = make_rows(480, n_classes=n_classes, seed=1, round_to=0)
    X = np.clip(X, -1, 1)
    margins = np.random.default_rng(0).choice([-1.0, 1.0], (480, n_classes - (n_classes == 2)))
    folds = []
    for test in np.arange(480).reshape(3, 160):
        margins[test[80:]] = -margins[test[:80]]
        folds.append((np.setdiff1d(np.arange(480), test), test))
    params = {"criterion": criterion, "score_type": "margin"}
    tree = CalibrationTree(cv=folds, path_averaging=False, **params).fit(X, y, margins)

    def held_out(**changes):
        """Predictions minus truth, fold by fold, of trees that are fitted to the others."""
        part = fixed_tree(**params, **changes)
        return [
            part.fit(X[train], y[train], margins[train]).predict_proba(X[test], margins[test])
            - np.eye(n_classes)[y[test]]
            for train, test in folds
        ]

    strengths, found = tree.ccp_path_
    assert len(strengths) > 3
    for strength, loss in zip(strengths, found, strict=True):
        expected = np.mean([np.sqrt(np.mean(part**2)) for part in held_out(ccp_alpha=strength)])
        assert loss == pytest.approx(expected, abs=1e-12)
    expected = {"global": held_out(max_depth=0), "pruned tree": held_out(ccp_alpha=tree.ccp_alpha_)}
    assert [each.name for each in tree.selection_.candidates] == list(expected)
    for each in tree.selection_.candidates:
        together = np.concatenate(expected[each.name])
        assert each.loss == pytest.approx(np.sqrt(np.mean(together**2)), abs=1e-12)


EXTREME = {
    "probability": [0.0, 1e-300, 1e-9, 0.3, 0.5, 0.9, 1.0],
    "logit": [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0],
    "margin": [-200.0, -40.0, -1.0, 0.0, 2.0, 40.0, 200.0],
}


@pytest.mark.parametrize("score_type", EXTREME)
@pytest.mark.parametrize("shape", [(2, 1), (2, 2), (2, 4), (3, 3), (3, 6), (16, 32)])
def test_a_tree_predicts_as_it_was_judged(score_type, shape):
    n_classes, width = shape
    rng = np.random.default_rng(0)
    X, y, _ = make_rows(300, n_classes=n_classes)
    scores = rng.choice(EXTREME[score_type], (300, width))
    fold = np.arange(300) % 3 == 0
    cv = [(np.flatnonzero(~fold), np.flatnonzero(fold))]
    params = {"score_type": score_type, "cv": cv, "criterion": "residual"}
    tree = CalibrationTree(**params).fit(X, y, scores)
    strengths, path = tree.ccp_path_
    losses = {each.name: each.loss for each in tree.selection_.candidates}
    assert losses["global"] == pytest.approx(path[-1], rel=1e-9)
    pruned = pytest.approx(path[strengths == tree.ccp_alpha_][-1], rel=1e-9)
    assert losses["pruned tree"] == pruned
    whole = CalibrationTree(**params, do_no_harm=False).fit(X, y, scores).selection_
    assert whole.loss <= min(each.loss for each in whole.candidates) * (1 + 1e-9)
    tree = CalibrationTree(**params, path_averaging=False).fit(X, y, scores)
    assert tree.selection_.calibrated_loss == pruned
