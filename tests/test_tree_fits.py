"""The default CalibrationTree: shrunken node models, splits where they are wrong, no harm done."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from caltree import CalibrationTree
from caltree._inputs.folds import make_folds
from caltree.metrics import log_loss, rmse

from .support.default_trees import CANDIDATES, chosen, fitted, noise, rows_with_shift, squared_error
from .support.trees import assert_probabilities, fixed_tree, make_frame, make_rows

# Do no harm


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_scores_that_are_right_are_left_alone(seed, objective):
    X = noise(600)
    y, scores = rows_with_shift(0.0, 600, seed)
    tree = CalibrationTree(objective=objective).fit(X, y, scores)
    assert chosen(tree) == ["leave alone"]
    assert np.array_equal(tree.predict_proba(X, scores), np.column_stack([1 - scores, scores]))
    new = np.array([0.0, 1e-300, 0.3, 1.0])
    assert np.array_equal(tree.predict_proba(X[:4], new), np.column_stack([1 - new, new]))
    assert tree.get_n_leaves() == 1 and not tree.feature_importances_.any()
    assert tree.tree_.share_of_scores == tree.levels_[0]["share"] == 1.0
    assert tree.to_text().splitlines()[-2:] == ["(n=600)", "the scores as they are"]


def test_three_classes_that_are_right_are_left_alone():
    rng = np.random.default_rng(0)
    scores = softmax(1.5 * rng.standard_normal((900, 3)), axis=1)
    y = np.minimum((rng.random((900, 1)) > np.cumsum(scores, axis=1)).sum(axis=1), 2)
    tree = CalibrationTree().fit(noise(900), y, scores)
    assert chosen(tree) == ["leave alone"]
    assert np.array_equal(tree.predict_proba(noise(900), scores), scores)
    logits = np.log(scores) + 5.0
    tree = CalibrationTree(score_type="logit").fit(noise(900), y, logits)
    assert chosen(tree) == ["leave alone"]
    assert np.array_equal(tree.predict_proba(noise(900), logits), softmax(logits, axis=1))


def wrong_everywhere(seed):
    y, scores = rows_with_shift(0.0, 600, seed)
    return noise(600), y, expit(2.5 * np.log(scores / (1 - scores)) + 1)


def test_noise_seldom_makes_a_tree():
    trees = [CalibrationTree().fit(*wrong_everywhere(seed)) for seed in range(20)]
    assert sum(chosen(tree) == ["global"] for tree in trees) >= 16


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_scores_that_are_wrong_everywhere_are_calibrated_globally(seed):
    X, y, wrong = wrong_everywhere(seed)
    tree = CalibrationTree().fit(X, y, wrong)
    assert chosen(tree) == ["global"]
    assert tree.get_n_leaves() == 1 and (tree.apply(X) == 0).all()
    calibrated = tree.predict_proba(X, wrong)
    assert rmse(y, calibrated) < rmse(y, wrong) - 0.01
    root = fixed_tree(max_depth=0).fit(X, y, wrong).predict_proba(X, wrong)
    odds = np.log(root[:, 1] / root[:, 0])
    slope, intercept = np.polyfit(np.log(wrong / (1 - wrong)), odds, 1)
    assert slope == pytest.approx(0.4, abs=0.15) and intercept == pytest.approx(-0.4, abs=0.4)
    share = tree.tree_.share_of_scores
    raw = np.column_stack([1 - wrong, wrong])
    assert 0 < share < 0.5 and tree.tree_.weight.tolist() == pytest.approx([1 - share])
    np.testing.assert_allclose(calibrated, share * raw + (1 - share) * root, rtol=0, atol=1e-15)
    # Without averages it is the one or the other.
    tree = CalibrationTree(path_averaging=False).fit(X, y, wrong)
    assert chosen(tree) == ["global"]
    assert np.array_equal(root, tree.predict_proba(X, wrong))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_are_wrong_in_a_region_are_calibrated_there(n_classes):
    X, y, scores = make_rows(800, n_classes, seed=1)
    X_new, y_new, scores_new = make_rows(2000, n_classes, seed=2)
    tree = CalibrationTree().fit(X, y, scores)
    assert chosen(tree) == ["local"] and tree.get_n_leaves() > 1
    calibrated = tree.predict_proba(X_new, scores_new)
    assert_probabilities(calibrated)
    root = fixed_tree(max_depth=0).fit(X, y, scores).predict_proba(X_new, scores_new)
    assert squared_error(calibrated, y_new) < 0.75 * squared_error(root, y_new)
    assert squared_error(root, y_new) < 0.9 * squared_error(scores_new, y_new)


def test_the_text_says_what_was_chosen():
    X, y, scores = make_rows(400)
    tree = CalibrationTree().fit(X, y, scores)
    lines = tree.to_text().splitlines()
    assert lines[0] == "Cross-validated RMSE:"
    for line, row in zip(lines[1:4], tree.selection_, strict=True):
        mark = "  (chosen)" if row["chosen"] else ""
        assert line == f"    {row['candidate']:<11}  {row['loss']:.4f}{mark}"
    assert lines[4].startswith("|--- x")
    by_log_loss = CalibrationTree(objective="log_loss").fit(X, y, scores)
    assert by_log_loss.to_text().startswith("Cross-validated log loss:\n    leave alone  ")
    assert CalibrationTree(do_no_harm=False).fit(X, y, scores).to_text().startswith("|--- x")


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_the_losses_that_were_compared(objective):
    X, y, scores = make_rows(400)
    tree = CalibrationTree(objective=objective).fit(X, y, scores)
    assert [row["candidate"] for row in tree.selection_] == CANDIDATES
    found = {row["candidate"]: row["loss"] for row in tree.selection_}
    loss = {"rmse": rmse, "log_loss": log_loss}[objective]
    assert found["leave alone"] == pytest.approx(loss(y, scores))
    held_out = np.empty(scores.shape)
    for train, test in make_folds(5, y.astype(np.uint16), None, None):
        root = fixed_tree(max_depth=0).fit(X[train], y[train], scores[train])
        held_out[test] = root.predict_proba(X[test], scores[test])
    # Scores are scaled by those of all rows, and the penalty with them.
    assert found["global"] == pytest.approx(loss(y, held_out), rel=1e-3)
    assert found["local"] < 0.9 * found["global"]


def test_without_do_no_harm_nothing_is_compared():
    X = noise(600)
    y, scores = rows_with_shift(0.0, 600)
    tree = CalibrationTree(do_no_harm=False).fit(X, y, scores)
    assert tree.selection_ == []
    assert not np.array_equal(tree.predict_proba(X, scores)[:, 1], scores)
    assert "leave alone" not in tree.to_text()
    grown = fixed_tree(min_samples_leaf=1).fit(X, y, scores)
    assert grown.get_n_leaves() > 100 and grown.pruning_alpha_ is None


@pytest.mark.parametrize("pruning", [None, 0.01, "cv"])
@pytest.mark.parametrize("splits", ["residual", "cv"])
def test_harm_is_avoided_however_the_tree_is_pruned(pruning, splits):
    params = {"pruning": pruning, "splits": splits}
    X = noise(600)
    y, scores = rows_with_shift(0.0, 600)
    tree = CalibrationTree(**params).fit(X, y, scores)
    assert chosen(tree) == ["leave alone"] and tree.get_n_leaves() == 1
    assert fixed_tree(splits="residual").fit(X, y, scores).get_n_leaves() > 20
    tree = CalibrationTree(**params).fit(X, y, scores**3)
    assert chosen(tree) == ["global"] and tree.get_n_leaves() == 1
    X, y, scores = make_rows(400)
    tree = CalibrationTree(**params).fit(X, y, scores)
    assert chosen(tree) == ["local"] and tree.get_n_leaves() > 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_never_left_alone(n_classes):
    rng = np.random.default_rng(0)
    margins = 3 * rng.standard_normal((600, n_classes))
    y = np.argmax(margins + rng.gumbel(size=margins.shape), axis=1)
    tree = CalibrationTree(score_type="margin").fit(noise(600), y, margins)
    assert [row["candidate"] for row in tree.selection_] == ["global", "local"]
    assert chosen(tree) == ["global"]
    calibrated = tree.predict_proba(noise(600), margins)
    assert np.abs(calibrated - softmax(margins, axis=1)).mean() < 0.05
    stored = tree.to_dict()
    stored["tree"]["weight"] = [0.9]
    with pytest.raises(ValueError, match="cannot be left alone"):
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
    tree = CalibrationTree(splits="residual").fit(X, y, scores)
    model = tree.tree_
    assert chosen(tree) == ["local"] and tree.splits_ == "residual"
    assert model.attribute[0] == 1 and model.missing_rows[0] == missing.sum()
    assert model.n_rows[1:3].tolist() == [(~missing).sum(), missing.sum()]
    assert "|--- x1 is known  (n=" in tree.to_text()
    assert "|--- x1 is missing  (n=" in tree.to_text()
    calibrated = tree.predict_proba(X, scores)[:, 1]
    for part in (missing, ~missing):
        assert calibrated[part].mean() == pytest.approx(y[part].mean(), abs=0.02)
    leaves = tree.apply([[0.0, -1e300, 0.0], [0.0, 1e300, 0.0], [0.0, np.nan, 0.0]])
    assert leaves.tolist() == [1, 1, 2]


def test_infinity_is_not_missing():
    rng = np.random.default_rng(0)
    missing = rng.random(800) < 0.3
    y, scores = rows_with_shift(np.where(missing, 2.5, -0.5), 800)
    X = np.where(missing, np.nan, rng.integers(0, 5, 800))[:, None]
    tree = CalibrationTree(splits="residual").fit(X, y, scores)
    known, infinite, unknown = tree.apply([[1e300], [np.inf], [np.nan]])
    assert known != unknown
    assert infinite == known


def test_missing_categories_may_be_the_region():
    rng = np.random.default_rng(1)
    colour = rng.choice(np.array(["red", "green", "blue", None], dtype=object), 800)
    missing = pd.isna(colour)
    y, scores = rows_with_shift(np.where(missing, 2.5, -0.5), 800)
    tree = CalibrationTree(splits="residual").fit(pd.DataFrame({"colour": colour}), y, scores)
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
    tree = CalibrationTree(splits="residual", max_depth=1).fit(x[:, None], y, scores)
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
        tree = CalibrationTree(splits="residual").fit(values[:, None], y, scores)
        assert tree.get_n_leaves() == 2 and "missing" not in tree.to_text()
        leaves = tree.apply([[np.nan], [values[-1]]])
        assert leaves[0] == leaves[1]


def test_an_attribute_whose_values_are_all_missing_is_never_split_on():
    X, y, scores = make_rows(400)
    X[:, 1] = np.nan
    tree = fixed_tree().fit(X, y, scores)
    assert set(tree.tree_.attribute) == {-1, 0, 2}


# Categories


def test_categories_are_grouped_in_two():
    rng = np.random.default_rng(0)
    names = np.array(["a", "b", "c", "d", "e"])
    code = rng.integers(0, 5, 1000)
    y, scores = rows_with_shift(np.where(np.isin(code, [1, 3]), 2.0, -1.0), 1000)
    frame = pd.DataFrame({"letter": names[code]})
    tree = CalibrationTree(splits="residual").fit(frame, y, scores)
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
    assert chosen(CalibrationTree().fit(frame, y, scores)) == ["leave alone"]


def test_many_categories_that_say_something_are():
    codes, frame = categories_of(300, 3000, 0)
    y, scores = rows_with_shift(np.where(codes % 2, 2.0, -2.0), 3000)
    tree = CalibrationTree(splits="residual").fit(frame, y, scores)
    assert chosen(tree) == ["local"] and tree.tree_.n_children[0] == 2
    branches = tree.tree_.branches[:300]
    assert abs(np.mean(branches == np.arange(300) % 2) - 0.5) > 0.47
    assert " more  (n=" in tree.to_text()
    calibrated = tree.predict_proba(frame, scores)
    assert rmse(y, calibrated) < 0.85 * rmse(y, scores)


def test_a_category_that_training_did_not_have_goes_with_the_most_frequent():
    frame, y, scores = make_frame()
    tree = CalibrationTree(splits="residual").fit(frame.drop(columns="number"), y, scores)
    most = frame["colour"].mode()[0]
    unknown, known = (frame.drop(columns="number").assign(colour=c) for c in ("mauve", most))
    assert np.array_equal(tree.apply(unknown), tree.apply(known))


# What can be chosen


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_splits_by_gain_ratio_with_shrunken_models(objective):
    frame, y, scores = make_frame(500)
    tree = CalibrationTree(splits="gain_ratio", objective=objective).fit(frame, y, scores)
    assert chosen(tree) == ["local"] and tree.splits_ == "gain_ratio"
    assert tree.boosting_iterations_ is None and tree.boosting_rmse_ is None
    assert_probabilities(tree.predict_proba(frame, scores))
    assert not tree.feature_importances_.any()
    leaves, counts = np.unique(tree.apply(frame), return_counts=True)
    assert np.array_equal(tree.tree_.n_rows[leaves], counts)
    grown = fixed_tree(splits="gain_ratio").fit(frame, y, scores)
    colour = list(frame.columns).index("colour")
    on_colour = grown.tree_.n_children[grown.tree_.attribute == colour]
    assert len(on_colour) > 0 and (on_colour == 3).all()


@pytest.mark.parametrize("pruning", ["cv", None, 1e-3])
@pytest.mark.parametrize("do_no_harm", [False, True])
def test_the_splits_that_do_better_are_taken(pruning, do_no_harm):
    X, y, scores = make_rows(400)
    params = {"pruning": pruning, "do_no_harm": do_no_harm}
    trees = {
        splits: CalibrationTree(splits=splits, **params).fit(X, y, scores)
        for splits in ("cv", "residual", "gain_ratio")
    }
    best = trees.pop("cv")
    assert best.splits_ in trees
    assert fitted(best) == fitted(trees[best.splits_])
    if do_no_harm:
        losses = {splits: tree.selection_[-1]["loss"] for splits, tree in trees.items()}
        # One is compared fold by fold, the other row by row.
        assert losses[best.splits_] <= 1.02 * min(losses.values())


@pytest.mark.parametrize("splits", ["residual", "cv"])
def test_boosted_node_models_need_splits_by_gain_ratio(splits):
    X, y, scores = make_rows(50)
    tree = CalibrationTree(node_models="logitboost", splits=splits)
    message = (
        f"node_models='logitboost' needs splits='gain_ratio', got '{splits}'; use "
        r"node_models='shrunken' or CalibrationTree.published\(\)"
    )
    for refuse in (tree._check_parameters, lambda: tree.fit(X, y, scores)):
        with pytest.raises(ValueError, match=message):
            refuse()


def test_boosted_node_models_need_the_rmse():
    X, y, scores = make_rows(50)
    tree = CalibrationTree(node_models="logitboost", splits="gain_ratio", objective="log_loss")
    message = r"node_models='logitboost' needs objective='rmse', got 'log_loss'; use"
    for refuse in (tree._check_parameters, lambda: tree.fit(X, y, scores)):
        with pytest.raises(ValueError, match=message):
            refuse()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("splits", "entropy"),
        ("splits", None),
        ("node_models", "linear"),
        ("objective", "brier"),
        ("penalty", 0),
        ("penalty", -1),
        ("penalty", 1e-10),
        ("penalty", 1e10),
        pytest.param("penalty", 10**400, id="penalty-huge"),
        ("penalty", "strong"),
        ("penalty", float("nan")),
        ("max_bins", 1),
        ("max_bins", 65_535),
        ("max_bins", 8.0),
        ("do_no_harm", "yes"),
        ("do_no_harm", 1),
        ("min_samples_split", 1),
        ("min_samples_leaf", 0.5),
        ("max_depth", -1),
        ("pruning", -0.1),
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


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_larger_penalty_moves_node_models_towards_the_scores(n_classes):
    X, y, scores = make_rows(400, n_classes)
    distances = []
    for penalty in (1e-3, 1.0, 30.0, 1e3, 1e5, 1e9):
        tree = fixed_tree(max_depth=1, penalty=penalty).fit(X, y, scores)
        distances.append(np.abs(tree.predict_proba(X, scores) - scores).max())
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.3 and distances[-1] < 1e-6


def test_a_larger_penalty_moves_node_models_of_margins_towards_nothing():
    X, y, scores = make_rows(400, 3)
    tree = fixed_tree(max_depth=1, penalty=1e9, score_type="margin").fit(X, y, scores)
    np.testing.assert_allclose(tree.predict_proba(X, scores), 1 / 3, rtol=0, atol=1e-6)


@pytest.mark.parametrize("max_bins", [2, 3, 10])
def test_cuts_are_made_between_bins(max_bins):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 1))
    y, scores = rows_with_shift(2 * np.sin(4 * X[:, 0]), 600)
    model = fixed_tree(max_bins=max_bins).fit(X, y, scores).tree_
    cuts = np.unique(model.threshold[model.attribute == 0])
    assert 1 <= len(cuts) <= max_bins - 1
    # Each bin has its share of the rows.
    expected = np.quantile(X, np.arange(1, max_bins) / max_bins)
    for cut in cuts:
        assert np.abs(expected - cut).min() < 0.02
    fine = fixed_tree().fit(X, y, scores)
    assert len(np.unique(fine.tree_.threshold)) > 2 * max_bins


def test_a_value_that_many_rows_have_is_a_bin_of_its_own():
    rng = np.random.default_rng(0)
    x = np.concatenate([-rng.uniform(0.1, 1, 70), np.zeros(20_000), rng.uniform(0.1, 1, 400)])
    y, scores = rows_with_shift(np.where(x < 0, 5.0, 0.0), len(x))
    tree = CalibrationTree(splits="residual").fit(x[:, None], y, scores)
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
    for least in (2, 50, 100.5, 501):
        model = fixed_tree(min_samples_split=least).fit(X, y, scores).tree_
        assert (model.n_rows[model.attribute >= 0] >= least).all()
    for least in (1, 40, 80.5):
        model = fixed_tree(min_samples_leaf=least).fit(X, y, scores).tree_
        assert model.n_rows[model.attribute < 0].min() >= least and model.n_nodes > 1
    assert model.n_children[model.attribute >= 0].tolist() == [2] * (model.n_leaves - 1)


def test_stronger_pruning_leaves_fewer_leaves():
    X, y, scores = make_rows(500)
    leaves = [
        fixed_tree(pruning=pruning).fit(X, y, scores).get_n_leaves()
        for pruning in (0.0, 1e-3, 3e-3, 1e-2, 3e-2, 1.0)
    ]
    assert leaves == sorted(leaves, reverse=True)
    assert len(set(leaves)) > 3 and leaves[-1] == 1


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_the_best_strength_is_chosen(objective):
    X, y, scores = make_rows(500)
    tree = CalibrationTree(objective=objective).fit(X, y, scores)
    strengths, losses = tree.pruning_path_
    assert len(strengths) == len(losses) > 2
    assert tree.pruning_alpha_ == strengths[losses == losses.min()].max()
    # The root alone, which is pruned most, is the global candidate.
    found = {row["candidate"]: row["loss"] for row in tree.selection_}
    assert losses[-1] == pytest.approx(found["global"], rel=0.02)
    assert losses.min() == pytest.approx(found["local"], rel=0.05)


# Importances


@pytest.mark.parametrize("carrier", [0, 2])
def test_importances_point_to_the_attribute_that_carries_the_miscalibration(carrier):
    X = noise(800, 4)
    y, scores = rows_with_shift(2 * np.sign(X[:, carrier]), 800)
    tree = CalibrationTree(splits="residual").fit(X, y, scores)
    importances = tree.feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances.min() >= 0
    assert importances[carrier] > 0.8
    grown = fixed_tree().fit(X, y, scores)
    sums = np.bincount(
        grown.tree_.attribute[grown.tree_.attribute >= 0],
        grown.tree_.gain[grown.tree_.attribute >= 0],
        minlength=4,
    )
    np.testing.assert_allclose(grown.feature_importances_, sums / sums.sum(), rtol=1e-12)
    assert (grown.tree_.gain[grown.tree_.attribute >= 0] > 0).all()
