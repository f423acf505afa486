"""The default CalibrationTree: shrunken node models, splits where they are wrong, no harm done."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax

from caltree import CalibrationTree
from caltree._inputs.folds import make_folds
from caltree.metrics import log_loss, rmse

from .support.default_trees import (
    assert_uncalibrated,
    fitted,
    noise,
    rows_with_shift,
)
from .support.trees import assert_probabilities, fixed_tree, make_frame, make_rows, squared_error

# Do no harm


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_scores_that_are_right_stay_uncalibrated(seed, scoring):
    X = noise(600)
    y, scores = rows_with_shift(0.0, 600, seed)
    tree = CalibrationTree(scoring=scoring).fit(X, y, scores)
    assert tree.selection_.chosen == "uncalibrated"
    assert np.array_equal(tree.predict_proba(X, scores), np.column_stack([1 - scores, scores]))
    new = np.array([0.0, 1e-300, 0.3, 1.0])
    assert np.array_equal(tree.predict_proba(X[:4], new), np.column_stack([1 - new, new]))
    assert tree.get_n_leaves() == 1 and not tree.feature_importances_.any()
    assert tree.model_.uncalibrated_weight == tree.selection_.uncalibrated_weight == 1.0
    assert tree.to_text().splitlines()[-1] == "all rows  (n=600): uncalibrated"


def test_three_classes_that_are_right_stay_uncalibrated():
    rng = np.random.default_rng(0)
    scores = softmax(1.5 * rng.standard_normal((900, 3)), axis=1)
    y = np.minimum((rng.random((900, 1)) > np.cumsum(scores, axis=1)).sum(axis=1), 2)
    tree = CalibrationTree().fit(noise(900), y, scores)
    assert_uncalibrated(tree, noise(900), scores, scores)
    logits = np.log(scores) + 5.0
    tree = CalibrationTree(score_type="logit").fit(noise(900), y, logits)
    assert_uncalibrated(tree, noise(900), logits, softmax(logits, axis=1))


def wrong_everywhere(seed):
    y, scores = rows_with_shift(0.0, 600, seed)
    return noise(600), y, expit(2.5 * np.log(scores / (1 - scores)) + 1)


def test_noise_seldom_makes_a_tree():
    trees = [CalibrationTree().fit(*wrong_everywhere(seed)) for seed in range(20)]
    assert sum(tree.selection_.chosen == "global" for tree in trees) >= 16


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_scores_that_are_wrong_everywhere_are_calibrated_globally(seed):
    X, y, wrong = wrong_everywhere(seed)
    tree = CalibrationTree().fit(X, y, wrong)
    assert tree.selection_.chosen == "global"
    assert tree.get_n_leaves() == 1 and (tree.apply(X) == 0).all()
    calibrated = tree.predict_proba(X, wrong)
    assert rmse(y, calibrated) < rmse(y, wrong) - 0.01
    root = fixed_tree(max_depth=0).fit(X, y, wrong).predict_proba(X, wrong)
    odds = np.log(root[:, 1] / root[:, 0])
    slope, intercept = np.polyfit(np.log(wrong / (1 - wrong)), odds, 1)
    assert slope == pytest.approx(0.4, abs=0.15) and intercept == pytest.approx(-0.4, abs=0.4)
    weight = tree.model_.uncalibrated_weight
    given = np.column_stack([1 - wrong, wrong])
    assert 0 < weight < 0.5 and tree.model_.weight.tolist() == pytest.approx([1 - weight])
    np.testing.assert_allclose(calibrated, weight * given + (1 - weight) * root, rtol=0, atol=1e-15)
    # Without averages it is the one or the other.
    tree = CalibrationTree(path_averaging=False).fit(X, y, wrong)
    assert tree.selection_.chosen == "global"
    assert np.array_equal(root, tree.predict_proba(X, wrong))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_are_wrong_in_a_region_are_calibrated_there(n_classes):
    X, y, scores = make_rows(800, n_classes, seed=1)
    X_new, y_new, scores_new = make_rows(2000, n_classes, seed=2)
    tree = CalibrationTree().fit(X, y, scores)
    assert tree.selection_.chosen == "local" and tree.get_n_leaves() > 1
    calibrated = tree.predict_proba(X_new, scores_new)
    assert_probabilities(calibrated)
    root = fixed_tree(max_depth=0).fit(X, y, scores).predict_proba(X_new, scores_new)
    assert squared_error(calibrated, y_new) < 0.75 * squared_error(root, y_new)
    assert squared_error(root, y_new) < 0.9 * squared_error(scores_new, y_new)


def test_the_text_says_what_was_chosen():
    X, y, scores = make_rows(400)
    tree = CalibrationTree().fit(X, y, scores)
    lines = tree.to_text().splitlines()
    assert lines[0] == "Held-out RMSE, and weight (chosen: local, a model for each region):"
    candidates = tree.selection_.candidates
    table, average = lines[1 : 1 + len(candidates)], lines[1 + len(candidates)]
    for line, candidate in zip(table, candidates, strict=True):
        weight = f"  {candidate.weight:.2f}" if candidate.weight > 0 else ""
        assert re.fullmatch(f"    {candidate.name} +{candidate.loss:.4f}{weight}", line)
    assert re.fullmatch(f"    average +{tree.selection_.calibrated_loss:.4f}", average)
    assert "\n".join(lines[: 2 + len(candidates)]) == tree.selection_.to_text()
    assert lines[2 + len(candidates)] == "p: probability of 1, s: its score"
    by_log_loss = CalibrationTree(scoring="log_loss").fit(X, y, scores)
    title, first = by_log_loss.to_text().splitlines()[:2]
    assert title == "Held-out log loss, and weight (chosen: local, a model for each region):"
    assert first.startswith("    uncalibrated ")
    assert fixed_tree().fit(X, y, scores).to_text().startswith("p: probability of 1")


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_the_losses_that_were_compared(scoring):
    X, y, scores = make_rows(400)
    tree = CalibrationTree(scoring=scoring).fit(X, y, scores)
    names = [candidate.name for candidate in tree.selection_.candidates]
    grown = fixed_tree().fit(X, y, scores).get_n_leaves()
    assert 32 < grown < 64
    levels = ["2 regions", "4 regions", "8 regions", "16 regions", "32 regions"]
    assert names == ["uncalibrated", "global", *levels, f"{grown} regions"]
    found = losses(tree)
    loss = {"rmse": rmse, "log_loss": log_loss}[scoring]
    assert found["uncalibrated"] == pytest.approx(loss(y, scores))
    held_out = np.empty(scores.shape)
    for train, test in make_folds(5, y.astype(np.uint16), None, None):
        root = fixed_tree(max_depth=0).fit(X[train], y[train], scores[train])
        held_out[test] = root.predict_proba(X[test], scores[test])
    # Scores are scaled by those of all rows, and the penalty with them.
    assert found["global"] == pytest.approx(loss(y, held_out), rel=1e-3)
    assert tree.selection_.scoring == scoring
    assert tree.selection_.loss == pytest.approx(tree.selection_.calibrated_loss, rel=0.01)
    assert tree.selection_.calibrated_loss <= min(found.values()) * 1.02
    assert tree.selection_.calibrated_loss < 0.9 * found["global"]


def losses(tree):
    return {candidate.name: candidate.loss for candidate in tree.selection_.candidates}


def test_without_do_no_harm_uncalibrated_probabilities_are_no_candidate():
    X = noise(600)
    y, scores = rows_with_shift(0.0, 600)
    tree = CalibrationTree(do_no_harm=False).fit(X, y, scores)
    assert "uncalibrated" not in losses(tree) and tree.selection_.uncalibrated_weight == 0.0
    assert tree.model_.uncalibrated_weight == 0.0
    assert not np.array_equal(tree.predict_proba(X, scores)[:, 1], scores)
    assert "uncalibrated" not in tree.to_text()
    grown = fixed_tree(min_samples_leaf=1).fit(X, y, scores)
    assert grown.selection_ is None
    assert grown.get_n_leaves() > 100


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"kept_gain": None},
        {"kept_gain": None, "max_leaf_nodes": None},
        {"path_averaging": False},
        {"path_averaging": False, "max_leaf_nodes": None},
        {"path_averaging": False, "kept_gain": None, "max_leaf_nodes": 4},
    ],
    ids=str,
)
def test_harm_is_avoided_however_the_tree_is_cut_back(params):
    X = noise(600)
    y, scores = rows_with_shift(0.0, 600)
    tree = CalibrationTree(**params).fit(X, y, scores)
    assert tree.selection_.chosen == "uncalibrated" and tree.get_n_leaves() == 1
    assert fixed_tree().fit(X, y, scores).get_n_leaves() > 20
    tree = CalibrationTree(**params).fit(X, y, scores**3)
    assert tree.selection_.chosen == "global" and tree.get_n_leaves() == 1
    X, y, scores = make_rows(400)
    tree = CalibrationTree(**params).fit(X, y, scores)
    assert tree.selection_.chosen == "local" and tree.get_n_leaves() > 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_always_calibrated(n_classes):
    rng = np.random.default_rng(0)
    margins = 3 * rng.standard_normal((600, n_classes))
    y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)
    tree = CalibrationTree(score_type="margin").fit(noise(600), y, margins)
    assert tree.selection_.candidates[0].name == "global"
    assert tree.selection_.chosen == "global"
    calibrated = tree.predict_proba(noise(600), margins)
    assert np.abs(calibrated - softmax(margins, axis=1)).mean() < 0.05
    stored = tree.to_dict()
    stored["model"]["tree_weight"] = [0.9]
    with pytest.raises(ValueError, match=r"margins .* cannot be left uncalibrated"):
        CalibrationTree.from_dict(stored)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("sharper", [3, 30])
def test_scores_that_are_far_too_sure_are_made_less_so(n_classes, sharper):
    rng = np.random.default_rng(n_classes)
    logits = rng.normal(0, 1.5, (1500, n_classes))
    y = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    scores = softmax(sharper * logits, axis=1)
    right = log_loss(y, softmax(logits, axis=1))
    assert log_loss(y, scores) > 1.3 * right
    tree = fixed_tree(max_depth=0).fit(np.zeros((1500, 1)), y, scores)
    # Of the scores that are cut off something is lost for good.
    assert log_loss(y, tree.predict_proba(np.zeros((1500, 1)), scores)) < 1.1 * right


# Missing values that mean something


def test_missing_numbers_may_be_the_region():
    rng = np.random.default_rng(0)
    missing = rng.random(800) < 0.3
    y, scores = rows_with_shift(np.where(missing, 2.5, -0.5), 800)
    X = noise(800)
    X[:, 1] = np.where(missing, np.nan, rng.integers(0, 5, 800))
    tree = CalibrationTree().fit(X, y, scores)
    model = tree.model_
    assert tree.selection_.chosen == "local"
    assert model.attribute[0] == 1 and model.missing_rows[0] == missing.sum()
    assert model.n_rows[1:3].tolist() == [(~missing).sum(), missing.sum()]
    assert "|--- x1 is known  (n=" in tree.to_text()
    assert "|--- x1 is missing  (n=" in tree.to_text()
    # With do_no_harm, as much is left to the scores as costs next to nothing.
    bold = CalibrationTree(do_no_harm=False).fit(X, y, scores)
    calibrated = bold.predict_proba(X, scores)[:, 1]
    for part in (missing, ~missing):
        assert calibrated[part].mean() == pytest.approx(y[part].mean(), abs=0.02)
    leaves = tree.apply([[0.0, -1e300, 0.0], [0.0, 1e300, 0.0], [0.0, np.nan, 0.0]])
    assert leaves.tolist() == [1, 1, 2]


def test_infinity_is_not_missing():
    rng = np.random.default_rng(0)
    missing = rng.random(800) < 0.3
    y, scores = rows_with_shift(np.where(missing, 2.5, -0.5), 800)
    X = np.where(missing, np.nan, rng.integers(0, 5, 800))[:, None]
    tree = CalibrationTree().fit(X, y, scores)
    known, infinite, unknown = tree.apply([[1e300], [np.inf], [np.nan]])
    assert known != unknown
    assert infinite == known


def test_missing_categories_may_be_the_region():
    rng = np.random.default_rng(1)
    colour = rng.choice(np.array(["red", "green", "blue", None], dtype=object), 800)
    missing = pd.isna(colour)
    y, scores = rows_with_shift(np.where(missing, 2.5, -0.5), 800)
    tree = CalibrationTree().fit(pd.DataFrame({"colour": colour}), y, scores)
    text = tree.to_text()
    assert "|--- colour in blue, green, red  (n=" in text
    assert "|--- colour is missing  (n=" in text
    new = pd.DataFrame({"colour": pd.Series(["red", None, "mauve"], dtype=object)})
    leaves = tree.apply(new)
    assert leaves[0] == leaves[2] != leaves[1]


@pytest.mark.parametrize("above", [False, True])
def test_missing_values_go_with_those_they_are_like(above):
    rng = np.random.default_rng(2)
    x = np.round(rng.uniform(-1, 1, 800), 1)
    region = (x > 0.2) == above
    y, scores = rows_with_shift(np.where(region, 2.5, -1.0), 800)
    x[region & (rng.random(800) < 0.5)] = np.nan
    tree = CalibrationTree(max_depth=1).fit(x[:, None], y, scores)
    first, second = [line.split("  (")[0] for line in tree.to_text().splitlines() if "|--" in line]
    assert [first, second] == (
        ["|--- x0 <= 0.25", "|--- x0 > 0.25 or missing"]
        if above
        else ["|--- x0 <= 0.25 or missing", "|--- x0 > 0.25"]
    )
    leaves = tree.apply([[0.2], [0.3], [np.nan]])
    assert leaves[0] != leaves[1] and leaves[2] == leaves[1 if above else 0]


def test_missing_values_that_training_did_not_have_go_with_most_rows():
    x = np.repeat([0.0, 1.0], [300, 500])
    y, scores = rows_with_shift(np.where(x == 1, 2.0, -2.0), 800)
    for values in (x, 1 - x):
        tree = CalibrationTree().fit(values[:, None], y, scores)
        assert tree.get_n_leaves() == 2 and "missing" not in tree.to_text()
        leaves = tree.apply([[np.nan], [values[-1]]])
        assert leaves[0] == leaves[1]


def test_an_attribute_whose_values_are_all_missing_is_never_split_on():
    X, y, scores = make_rows(400)
    X[:, 1] = np.nan
    tree = fixed_tree().fit(X, y, scores)
    assert set(tree.model_.attribute) == {-1, 0, 2}


# Categories


def test_categories_are_grouped_in_two():
    rng = np.random.default_rng(0)
    names = np.array(["a", "b", "c", "d", "e"])
    code = rng.integers(0, 5, 1000)
    y, scores = rows_with_shift(np.where(np.isin(code, [1, 3]), 2.0, -1.0), 1000)
    frame = pd.DataFrame({"letter": names[code]})
    tree = CalibrationTree().fit(frame, y, scores)
    assert tree.get_n_leaves() == 2
    text = tree.to_text()
    assert "|--- letter in a, c, e  (n=" in text and "|--- letter in b, d  (n=" in text


def categories_of(n_categories, n_rows, seed):
    codes = np.random.default_rng(seed).integers(0, n_categories, n_rows)
    return codes, pd.DataFrame({"code": pd.Categorical(codes, categories=range(n_categories))})


@pytest.mark.parametrize("seed", range(3))
def test_many_categories_that_say_nothing_are_not_split_on(seed):
    _, frame = categories_of(300, 3000, seed)
    y, scores = rows_with_shift(0.0, 3000, seed)
    assert fixed_tree().fit(frame, y, scores).get_n_leaves() == 1
    assert CalibrationTree().fit(frame, y, scores).selection_.chosen == "uncalibrated"


def test_many_categories_that_say_something_are():
    codes, frame = categories_of(300, 3000, 0)
    y, scores = rows_with_shift(np.where(codes % 2, 2.0, -2.0), 3000)
    tree = CalibrationTree().fit(frame, y, scores)
    assert tree.selection_.chosen == "local" and tree.model_.n_children[0] == 2
    branches = tree.model_.branches[:300]
    assert abs(np.mean(branches == np.arange(300) % 2) - 0.5) > 0.47
    assert " more  (n=" in tree.to_text()
    calibrated = tree.predict_proba(frame, scores)
    assert rmse(y, calibrated) < 0.85 * rmse(y, scores)


def test_a_category_that_training_did_not_have_goes_with_the_most_frequent():
    frame, y, scores = make_frame()
    tree = CalibrationTree().fit(frame.drop(columns="number"), y, scores)
    most = frame["colour"].mode()[0]
    unknown, known = (frame.drop(columns="number").assign(colour=c) for c in ("mauve", most))
    assert np.array_equal(tree.apply(unknown), tree.apply(known))


# What can be chosen


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scoring", "brier"),
        ("l2_regularization", 0),
        ("l2_regularization", -1),
        ("l2_regularization", 1e-10),
        ("l2_regularization", 1e10),
        pytest.param("l2_regularization", 10**400, id="l2_regularization-huge"),
        ("l2_regularization", "strong"),
        ("l2_regularization", float("nan")),
        ("max_bins", 1),
        ("max_bins", 65_535),
        ("max_bins", 8.0),
        ("do_no_harm", "yes"),
        ("do_no_harm", 1),
        ("min_samples_split", 1),
        ("min_samples_split", 8.0),
        ("min_samples_leaf", 0.5),
        ("min_samples_leaf", 2.0),
        ("max_depth", -1),
        ("max_leaf_nodes", 1),
        ("max_leaf_nodes", 8.0),
        ("kept_gain", 0),
        ("kept_gain", 1.01),
        ("cv", 1),
    ],
)
def test_bad_parameters_are_named(name, value):
    X, y, scores = make_rows(50)
    tree = CalibrationTree(**{name: value})
    with pytest.raises(ValueError, match=name):
        tree._check_parameters()
    with pytest.raises(ValueError, match=name):
        tree.fit(X, y, scores)


def at_best_temperature(y, scores):
    """The scores to the power that has the least log loss, divided by their sums."""

    def sharpened(power):
        return softmax(power * np.log(scores), axis=1)

    best = minimize_scalar(lambda power: log_loss(y, sharpened(power)), options={"xtol": 1e-12})
    return sharpened(best.x)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_larger_penalty_moves_node_models_towards_the_temperature(n_classes):
    X, y, scores = make_rows(400, n_classes)
    scores = softmax(3.0 * np.log(scores), axis=1)
    expected = at_best_temperature(y, scores)
    assert np.abs(expected - scores).max() > 0.2
    distances = []
    for penalty in (1e-3, 1.0, 30.0, 1e3, 1e5, 1e9):
        tree = fixed_tree(max_depth=1, l2_regularization=penalty, monotone=False)
        tree.fit(X, y, scores)
        distances.append(np.abs(tree.predict_proba(X, scores) - expected).mean())
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.1 and distances[-1] < 1e-6


def test_a_larger_penalty_moves_node_models_of_margins_towards_nothing():
    X, y, scores = make_rows(400, 3)
    tree = fixed_tree(max_depth=1, l2_regularization=1e9, score_type="margin").fit(X, y, scores)
    np.testing.assert_allclose(tree.predict_proba(X, scores), 1 / 3, rtol=0, atol=1e-6)


@pytest.mark.parametrize("max_bins", [2, 3, 10])
def test_cuts_are_made_between_bins(max_bins):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 1))
    y, scores = rows_with_shift(2 * np.sin(4 * X[:, 0]), 600)
    model = fixed_tree(max_bins=max_bins).fit(X, y, scores).model_
    cuts = np.unique(model.threshold[model.attribute == 0])
    assert 1 <= len(cuts) <= max_bins - 1
    # Each bin has its share of the rows.
    expected = np.quantile(X, np.arange(1, max_bins) / max_bins)
    for cut in cuts:
        assert np.abs(expected - cut).min() < 0.02
    fine = fixed_tree().fit(X, y, scores)
    assert len(np.unique(fine.model_.threshold)) > 2 * max_bins


def test_a_value_that_many_rows_have_is_a_bin_of_its_own():
    rng = np.random.default_rng(0)
    x = np.concatenate([-rng.uniform(0.1, 1, 70), np.zeros(20_000), rng.uniform(0.1, 1, 400)])
    y, scores = rows_with_shift(np.where(x < 0, 5.0, 0.0), len(x))
    tree = CalibrationTree().fit(x[:, None], y, scores)
    assert tree.get_n_leaves() == 2
    assert np.bincount(tree.apply(x[:, None]))[1:].tolist() == [70, 20_400]


def test_few_distinct_values_are_their_own_bins():
    X, y, scores = make_rows(400, round_to=1)
    n_values = max(len(np.unique(column)) for column in X.T)
    expected = fitted(fixed_tree(max_bins=n_values).fit(X, y, scores))
    for max_bins in (n_values + 1, 255, 65_534):
        assert fitted(fixed_tree(max_bins=max_bins).fit(X, y, scores)) == expected


def test_limits_of_growth_are_obeyed():
    X, y, scores = make_rows(500, round_to=1)
    for depth in range(4):
        assert fixed_tree(max_depth=depth).fit(X, y, scores).get_depth() == depth
    for least in (2, 50, 101, 501):
        model = fixed_tree(min_samples_split=least).fit(X, y, scores).model_
        assert (model.n_rows[model.attribute >= 0] >= least).all()
    for least in (1, 40, 81):
        model = fixed_tree(min_samples_leaf=least).fit(X, y, scores).model_
        assert model.n_rows[model.attribute < 0].min() >= least and model.n_nodes > 1
    assert model.n_children[model.attribute >= 0].tolist() == [2] * (model.n_leaves - 1)


# Importances


@pytest.mark.parametrize("carrier", [0, 2])
def test_importances_point_to_the_attribute_that_carries_the_miscalibration(carrier):
    X = noise(800, 4)
    y, scores = rows_with_shift(2 * np.sign(X[:, carrier]), 800)
    tree = CalibrationTree().fit(X, y, scores)
    importances = tree.feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances.min() >= 0
    assert importances[carrier] > 0.8
    grown = fixed_tree().fit(X, y, scores)
    sums = np.bincount(
        grown.model_.attribute[grown.model_.attribute >= 0],
        grown.model_.gain[grown.model_.attribute >= 0],
        minlength=4,
    )
    np.testing.assert_allclose(grown.feature_importances_, sums / sums.sum(), rtol=1e-12)
    assert (grown.model_.gain[grown.model_.attribute >= 0] > 0).all()
