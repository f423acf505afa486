"""The levels of a tree, and the averages over them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import CalibrationTree
from caltree._fitted.model import weight_so_far
from caltree._inputs.folds import make_folds
from caltree._training.averaging import HeldOutRows, Levels, checked_levels, level_sizes, size_name
from caltree._training.do_no_harm import GLOBAL, LEAVE_ALONE, LOCAL, Judge
from caltree.metrics import rmse

from ..support.trees import assert_probabilities, boosted_tree, fixed_tree, make_frame, make_rows

quick = settings(max_examples=30, deadline=None, derandomize=True)


# Sizes


def test_sizes_by_hand():
    assert level_sizes(1).tolist() == level_sizes(15).tolist() == [math.inf]
    assert level_sizes(16).tolist() == [math.inf, 15]
    assert level_sizes(300).tolist() == [math.inf, 240, 60, 15]
    assert level_sizes(1000.5).tolist() == [math.inf, 960, 240, 60, 15]
    assert len(level_sizes(10_000_000)) == 11


@quick
@given(st.floats(0.001, 1e12))
def test_sizes_fall_from_all_rows_to_few(n_rows):
    sizes = level_sizes(n_rows)
    assert sizes[0] == math.inf and (np.diff(sizes) < 0).all()
    assert (sizes[1:] < n_rows).all()
    assert 4 * sizes[1] >= n_rows * (1 - 1e-12) if len(sizes) > 1 else n_rows <= 15


def test_names():
    assert [size_name(size) for size in (math.inf, 960.0)] == ["global", "regions of 960 rows"]


# Averages


def made_levels(qualities, *, raw=0.0, n_rows=600, noise=0.8, seed=0, objective="rmse"):
    """Levels that know that much of the truth, the last of them the pruned tree."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n_rows).astype(np.uint16)
    truth = np.where(labels == 1, 1.0, -1.0)

    def said(quality):
        p = 1 / (1 + np.exp(-(quality * truth + noise * rng.standard_normal(n_rows))))
        return np.column_stack([1 - p, p])

    known = qualities if raw is None else [raw, *qualities]
    return Levels(
        level_sizes(15 * 4.0 ** (len(qualities) - 2)),
        HeldOutRows(np.array([said(quality) for quality in known]), Judge(labels, None, objective)),
        raw is not None,
    )


def test_the_level_that_is_best_counts_most():
    for best in range(4):
        qualities = [0.2] * 4
        qualities[best] = 2.0
        levels = made_levels(qualities)
        shares = levels.whole_average()
        assert shares.sum() == pytest.approx(1.0) and shares.argmax() == 1 + best
        table = levels.table(shares)
        names = ["leave alone", "global", "regions of 60 rows", "regions of 15 rows", "pruned tree"]
        assert [row["level"] for row in table] == names
        assert [row["share"] for row in table] == shares.tolist()
        assert min(table, key=lambda row: row["loss"])["level"] == names[1 + best]
        assert levels.loss(shares) <= min(row["loss"] for row in table)


def test_an_average_is_better_than_its_parts():
    levels = made_levels([1.0, 1.0, 1.0, 1.0])
    whole = levels.whole_average()
    assert levels.loss(whole) < 0.98 * min(levels.loss(levels.only(k)) for k in range(4))
    assert (whole[1:] > 0.05).all()


def test_regions_are_as_large_as_they_can_be():
    # Nothing is gained beyond the second level.
    levels = made_levels([1.0, 2.0, 0.0, 0.5])
    local, best = levels.simplest(averaging=True)
    assert np.array_equal(local, best)
    assert local[3] == 0 and local[2] > 0.5
    assert levels.whole_average()[3] >= 0
    # Where the smallest regions are needed, they are taken.
    local, best = made_levels([0.5, 0.5, 2.0, 0.5]).simplest(averaging=True)
    assert best[3] > 0.5


def test_one_model_for_all_rows_will_do_where_a_tree_knows_no_better():
    levels = made_levels([1.5, 0.0, 0.0, 0.0])
    local, best = levels.simplest(averaging=True)
    assert np.array_equal(best, levels.only(0))
    selection, shares = levels.select(local, best, may_average=True)
    assert [row["candidate"] for row in selection if row["chosen"]] == [GLOBAL]
    assert shares[1] + shares[0] == pytest.approx(1.0) and shares[0] < 0.2


def test_without_averages_it_is_the_pruned_tree_or_the_root():
    for qualities, expected in (([0.5, 0, 0, 2.0], [0, 0, 1]), ([2.0, 0, 0, 1], [0, 1, 0])):
        levels = made_levels(qualities)
        one = Levels(
            levels.sizes[:1],
            HeldOutRows(levels.held_out.candidates[[0, 1, -1]], levels.judge),
            True,
        )
        local, best = one.simplest(averaging=False)
        assert local.tolist() == [0, 0, 1]
        assert best.tolist() == expected
        _, shares = one.select(local, best, may_average=False)
        assert shares.tolist() == best.tolist()


def test_scores_that_are_as_good_are_left_alone():
    levels = made_levels([1.0, 1.0, 1.0, 1.0], raw=4.0, noise=0.3)
    selection, shares = levels.select(*levels.simplest(averaging=True), may_average=True)
    assert [row["candidate"] for row in selection] == [LEAVE_ALONE, GLOBAL, LOCAL]
    assert [row["chosen"] for row in selection] == [True, False, False]
    assert shares.tolist() == [1, 0, 0, 0, 0]
    without = made_levels([1.0, 1.0, 1.0, 1.0], raw=None)
    selection, shares = without.select(*without.simplest(averaging=True), may_average=True)
    assert [row["candidate"] for row in selection] == [GLOBAL, LOCAL]
    assert len(shares) == 4 and shares.sum() == pytest.approx(1.0)


def test_levels_that_say_the_same_share_nothing():
    levels = made_levels([1.0, 1.0, 1.0, 1.0])
    candidates = levels.held_out.candidates.copy()
    candidates[2] = candidates[4] = candidates[1]
    same = Levels(levels.sizes, HeldOutRows(candidates, levels.judge), True)
    shares = same.whole_average()
    assert shares[1] > 0.2 and shares[2] == shares[4] == 0


# Trees


def by_hand(tree, X, scores):
    """What the nodes on the way of each row say, one after the other."""
    model = tree.tree_
    whole = CalibrationTree.from_dict(tree.to_dict())
    parent = np.full(model.n_nodes, -1)
    for node in np.flatnonzero(model.attribute >= 0):
        first = model.first_child[node]
        parent[first : first + model.n_children[node]] = node
    said = []
    for node in range(model.n_nodes):
        stored = whole.to_dict()
        stored["tree"]["coefficients"] = [stored["tree"]["coefficients"][node]] * model.n_nodes
        stored["tree"]["weight"] = (model.attribute < 0).astype(float).tolist()
        said.append(CalibrationTree.from_dict(stored).predict_proba(X, scores))
    total = model.share_of_scores * np.column_stack([1 - scores[:, 1], scores[:, 1]])
    for row, leaf in enumerate(tree.apply(X)):
        node = int(leaf)
        while node >= 0:
            total[row] += model.weight[node] * said[node][row]
            node = parent[node]
    return total


@pytest.mark.parametrize("make", [CalibrationTree, boosted_tree])
def test_a_tree_says_what_its_nodes_say(make):
    frame, y, scores = make_frame(500)
    tree = make(path_averaging=True, do_no_harm=True, max_depth=4).fit(frame, y, scores)
    assert (tree.tree_.weight > 0).sum() > tree.get_n_leaves() / 2
    found = tree.predict_proba(frame, scores)
    assert_probabilities(found)
    np.testing.assert_allclose(found, by_hand(tree, frame, scores), rtol=0, atol=1e-14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_shares_are_those_of_the_levels(n_classes):
    X, y, scores = make_rows(600, n_classes=n_classes)
    tree = CalibrationTree().fit(X, y, scores)
    shares = {row["level"]: row["share"] for row in tree.levels_}
    assert sum(shares.values()) == pytest.approx(1.0)
    model = tree.tree_
    assert model.share_of_scores == pytest.approx(shares["leave alone"], abs=1e-12)
    assert (model.weight[0] >= shares["global"] * (1 - 1e-12)) or model.n_nodes == 1
    ends = weight_so_far(model)[model.attribute < 0]
    np.testing.assert_allclose(ends, 1.0 - shares["leave alone"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [15, 60, 240])
def test_a_level_is_a_tree_whose_smaller_nodes_are_whole(size):
    X, y, scores = make_rows(900)
    folds = make_folds(3, y.astype(np.uint16), None, None)
    tree = CalibrationTree(cv=folds, splits="residual", min_samples_split=2).fit(X, y, scores)
    losses = {row["level"]: row["loss"] for row in tree.levels_}
    held_out = np.empty_like(scores)
    for train, test in folds:
        part = fixed_tree(min_samples_split=size).fit(X[train], y[train], scores[train])
        held_out[test] = part.predict_proba(X[test], scores[test])
    # Bins and scales of the scores are those of all rows.
    expected = rmse(y, held_out)
    assert losses[f"regions of {size} rows"] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_averages_are_better_than_leaves_alone(objective):
    gains = []
    for seed in range(6):
        X, y, scores = make_rows(1500, seed=seed)
        train, test = slice(0, 500), slice(500, None)
        losses = []
        for averaging in (True, False):
            tree = CalibrationTree(objective=objective, path_averaging=averaging)
            tree.fit(X[train], y[train], scores[train])
            losses.append(rmse(y[test], tree.predict_proba(X[test], scores[test])))
        gains.append(math.log(losses[1] / losses[0]))
    assert np.mean(gains) > 0.005


def test_margins_leave_nothing_to_the_scores():
    X, y, scores = make_rows(500)
    margins = np.log(scores[:, 1] / scores[:, 0])
    tree = CalibrationTree(score_type="margin").fit(X, y, margins)
    assert tree.levels_[0]["level"] == "global"
    assert tree.tree_.share_of_scores == 0.0
    assert_probabilities(tree.predict_proba(X, margins))


def test_without_do_no_harm_the_scores_have_no_say():
    X, y, scores = make_rows(500)
    tree = CalibrationTree(do_no_harm=False).fit(X, y, scores)
    assert tree.selection_ == [] and tree.levels_[0]["level"] == "global"
    assert tree.tree_.share_of_scores == 0.0
    fixed = fixed_tree().fit(X, y, scores)
    assert fixed.levels_ == [] and set(fixed.tree_.weight) == {0.0, 1.0}


def test_text_gives_the_shares():
    X, y, scores = make_rows(600)
    tree = CalibrationTree(max_depth=2).fit(X, y, scores)
    lines = tree.to_text().splitlines()
    start = lines.index("Averaged, with the shares:")
    counting = [row for row in tree.levels_ if row["share"] > 0]
    for row, line in zip(counting, lines[start + 1 :], strict=False):
        assert line.split("  ")[-1] == f"{row['share']:.2f}" and row["level"] in line
    shown = [line for line in lines if ", share " in line]
    assert len(shown) == np.count_nonzero(tree.tree_.weight > 0)
    assert len([line for line in lines if "F[1] =" in line]) == len(shown)


def test_importances_count_what_is_below_a_split():
    X, y, scores = make_rows(800)
    tree = CalibrationTree(splits="residual").fit(X, y, scores)
    model = tree.tree_
    total = np.zeros(3)
    for node in np.flatnonzero(model.attribute >= 0):
        above = weight_so_far(model)[node]
        total[model.attribute[node]] += model.gain[node] * (1 - model.share_of_scores - above)
    np.testing.assert_allclose(tree.feature_importances_, total / total.sum(), rtol=1e-9)


# Stored

ROW = {"level": "global", "loss": 0.25, "share": 0.5}


@pytest.mark.parametrize("stored", [[], [ROW], [ROW, {**ROW, "share": 1}]])
def test_what_was_stored_is_read(stored):
    assert checked_levels(stored) == stored


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "global",
        [None],
        [{}],
        [{**ROW, "extra": 1}],
        [{**ROW, "level": 3}],
        [{**ROW, "loss": None}],
        [{**ROW, "loss": True}],
        [{**ROW, "share": -0.1}],
        [{**ROW, "share": 1.1}],
        [{**ROW, "share": "1"}],
    ],
)
def test_malformed_levels_are_refused(stored):
    with pytest.raises(ValueError, match="levels of a stored calibrator must"):
        checked_levels(stored)


@pytest.mark.parametrize("change", ["negative", "unequal", "too much"])
def test_weights_that_make_no_average_are_refused(change):
    X, y, scores = make_rows(400)
    stored = CalibrationTree().fit(X, y, scores).to_dict()
    weight = stored["tree"]["weight"]
    leaf = stored["tree"]["attribute"].index(-1)
    if change == "negative":
        weight[leaf] = -0.1
    elif change == "unequal":
        weight[leaf] += 0.01
    else:
        stored["tree"]["weight"] = [2 * w for w in weight]
    with pytest.raises(ValueError, match="weight of a stored tree must"):
        CalibrationTree.from_dict(stored)
