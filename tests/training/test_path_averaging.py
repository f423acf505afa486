"""Trees whose probabilities are averages over the nodes on the way to a leaf."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit

from caltree import CalibrationTree
from caltree._inputs.folds import make_folds
from caltree.metrics import rmse

from ..support.trees import assert_probabilities, fixed_tree, make_frame, make_rows


def weights_down_to(model):
    """The weight of every node, together with those of all nodes above it."""
    total = model.weight.copy()
    for node in np.flatnonzero(model.parent >= 0):
        total[node] += total[model.parent[node]]
    return total


def by_hand(tree, X, scores, uncalibrated):
    """The predictions of the nodes on the way of each row, added up one after the other."""
    model = tree.model_
    predictions = []
    for node in range(model.n_nodes):
        stored = {**tree.to_dict(), "selection": None}
        lists = np.repeat(model.parameters[node][:, :, np.newaxis], model.n_nodes, axis=2)
        stored["model"]["parameters"] = lists.tolist()
        stored["model"]["weight"] = [0.0] * (model.n_nodes - model.n_leaves)
        stored["model"]["tree_weight"] = [1.0]
        predictions.append(CalibrationTree.from_dict(stored).predict_proba(X, scores))
    total = model.uncalibrated_weight * uncalibrated
    for row, leaf in enumerate(tree.apply(X)):
        node = int(leaf)
        while node >= 0:
            total[row] += model.weight[node] * predictions[node][row]
            node = int(model.parent[node])
    return total


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_tree_predicts_the_average_of_its_nodes(n_classes):
    frame, *_ = make_frame(500)
    _, y, scores = make_rows(500, n_classes=n_classes)
    tree = CalibrationTree(max_depth=4).fit(frame, y, scores)
    assert (tree.model_.weight > 0).sum() > tree.get_n_leaves() / 2
    found = tree.predict_proba(frame, scores)
    assert_probabilities(found)
    expected = by_hand(tree, frame, scores, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_weights_are_those_of_the_candidates(n_classes):
    X, y, scores = make_rows(600, n_classes=n_classes)
    tree = CalibrationTree().fit(X, y, scores)
    weights = {each.name: each.weight for each in tree.selection_.candidates}
    assert sum(weights.values()) == pytest.approx(1.0)
    model = tree.model_
    assert model.uncalibrated_weight == pytest.approx(weights["uncalibrated"], abs=1e-12)
    assert model.weight[0] >= weights["global"] - 1e-12 or model.n_nodes == 1
    ends = weights_down_to(model)[model.attribute < 0]
    np.testing.assert_allclose(ends, 1.0 - weights["uncalibrated"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_regions", [2, 4, 8])
def test_a_level_is_a_tree_of_so_many_leaves(n_regions):
    X, y, scores = make_rows(900)
    folds = make_folds(3, y.astype(np.uint16), None, None)
    tree = CalibrationTree(cv=folds).fit(X, y, scores)
    losses = {each.name: each.loss for each in tree.selection_.candidates}
    held_out = np.empty_like(scores)
    for train, test in folds:
        part = fixed_tree(max_leaf_nodes=n_regions).fit(X[train], y[train], scores[train])
        held_out[test] = part.predict_proba(X[test], scores[test])
    # Bins and scales of the scores are those of all rows.
    expected = rmse(y, held_out)
    assert losses[f"{n_regions} regions"] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_averages_are_better_than_leaves_alone(scoring):
    gains = []
    for seed in range(6):
        # What is wrong with the scores changes gradually, as no leaf can say.
        random = np.random.default_rng(seed)
        X, scores = random.normal(size=(1500, 3)), random.uniform(0.05, 0.95, 1500)
        y = random.random(1500) < expit(logit(scores) + X[:, 0] + X[:, 1])
        train, test = slice(0, 500), slice(500, None)
        losses = []
        for averaging in (True, False):
            tree = CalibrationTree(scoring=scoring, path_averaging=averaging)
            tree.fit(X[train], y[train], scores[train])
            losses.append(rmse(y[test], tree.predict_proba(X[test], scores[test])))
        gains.append(math.log(losses[1] / losses[0]))
    assert np.mean(gains) > 0.01


def test_margins_are_never_uncalibrated():
    X, y, scores = make_rows(500)
    margins = np.log(scores[:, 1] / scores[:, 0])
    tree = CalibrationTree(score_type="margin").fit(X, y, margins)
    assert tree.selection_.candidates[0].name == "global"
    assert tree.model_.uncalibrated_weight == 0.0
    assert_probabilities(tree.predict_proba(X, margins))


def test_without_do_no_harm_the_scores_have_no_weight():
    X, y, scores = make_rows(500)
    tree = CalibrationTree(do_no_harm=False).fit(X, y, scores)
    assert tree.selection_.candidates[0].name == "global"
    assert tree.model_.uncalibrated_weight == 0.0
    fixed = fixed_tree().fit(X, y, scores)
    assert fixed.selection_ is None and set(fixed.model_.weight) == {0.0, 1.0}


def test_text_gives_the_weights():
    X, y, scores = make_rows(600)
    tree = CalibrationTree(max_depth=2).fit(X, y, scores)
    lines = tree.to_text().splitlines()
    for each, line in zip(tree.selection_.candidates, lines[1:], strict=False):
        assert line.split()[-1] == (f"{each.weight:.2f}" if each.weight else f"{each.loss:.4f}")
        assert line.startswith(f"    {each.name} ")
    shown = [line for line in lines if ", weight " in line]
    assert len(shown) == np.count_nonzero(tree.model_.weight > 0)
    assert len([line for line in lines if "logit p =" in line]) == len(shown)


def test_importances_count_what_is_below_a_split():
    X, y, scores = make_rows(800)
    tree = CalibrationTree().fit(X, y, scores)
    model = tree.model_
    total = np.zeros(3)
    for node in np.flatnonzero(model.attribute >= 0):
        above = weights_down_to(model)[node]
        total[model.attribute[node]] += model.gain[node] * (1 - model.uncalibrated_weight - above)
    np.testing.assert_allclose(tree.feature_importances_, total / total.sum(), rtol=1e-9)
