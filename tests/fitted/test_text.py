"""Trees in words."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from caltree import CalibrationTree

from ..support.averaged_trees import averaged_tree, with_weights
from ..support.trees import boosted_tree, fixed_boosted_tree, fixed_tree, make_frame, make_rows

every_engine = pytest.mark.parametrize(
    "make", [fixed_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)


def two_leaves(X, y=(0, 1), make=boosted_tree, **params):
    """A tree with constant scores over rows that the first column tells apart."""
    return make(**params).fit(X, list(y) * (len(X) // len(y)), [0.5] * len(X))


def conditions_of(tree):
    """The conditions, without numbers of rows and all that follows."""
    lines = tree.to_text().splitlines()
    return [line.partition("|--- ")[2].partition("  (")[0] for line in lines if "|--- " in line]


def test_numbers():
    tree = two_leaves([[0.125], [2]] * 20)
    assert tree.to_text().splitlines() == [
        "p: probability of 1, s: its score",
        "|--- x0 <= 0.125  (n=20): 0.2 -> 0.05, 0.5 -> 0.05, 0.8 -> 0.05",
        "|   logit p = -3.04",
        "|--- x0 > 0.125  (n=20): 0.2 -> 0.95, 0.5 -> 0.95, 0.8 -> 0.95",
        "|   logit p = 3.04",
    ]


def test_what_was_chosen_stands_before_the_tree():
    tree = two_leaves([[0.125], [2]] * 20, make=CalibrationTree)
    *worse, best = (f"{each.loss:.4f}" for each in tree.selection_.candidates)
    assert worse == ["0.5000", "0.5000"] and best < "0.5000"
    lines = tree.to_text().splitlines()
    assert lines[:5] == [
        "Held-out RMSE, and weight (chosen: local, a model for each region):",
        "    uncalibrated  0.5000",
        "    global        0.5000",
        f"    2 regions     {best}  1.00",
        f"    average       {best}",
    ]
    # Between 0.125 and 2 nothing is known: the threshold is halfway. Of scores that do not vary,
    # the slope stays as it is.
    intercept = tree.model_.parameters[2, 0, 0]
    low, middle, high = expit(intercept + logit([0.2, 0.5, 0.8]))
    assert lines[5:] == [
        "p: probability of 1, s: its score",
        f"|--- x0 <= 1.0625  (n=20): 0.2 -> {1 - high:.2f}, 0.5 -> {1 - middle:.2f}, "
        f"0.8 -> {1 - low:.2f}",
        f"|   logit p = -{intercept:.2f} + logit s",
        f"|--- x0 > 1.0625  (n=20): 0.2 -> {low:.2f}, 0.5 -> {middle:.2f}, 0.8 -> {high:.2f}",
        f"|   logit p = {intercept:.2f} + logit s",
    ]
    # The least penalised loss of 20 pure rows is at 4.5; four steps come close.
    assert 4.2 < intercept < 4.6


def test_the_losses_are_those_of_the_scoring():
    tree = two_leaves([[0.125], [2]] * 20, make=CalibrationTree, scoring="log_loss")
    lines = tree.to_text().splitlines()
    assert lines[:2] == [
        "Held-out log loss, and weight (chosen: local, a model for each region):",
        f"    uncalibrated  {np.log(2):.4f}",
    ]


def test_categories_names_and_labels():
    frame = pd.DataFrame({"weather": ["wet", "dry"] * 20})
    tree = two_leaves(frame, ["stay", "go"])
    assert tree.to_text(decimals=0).splitlines() == [
        "p: probability of stay, s: its score",
        "|--- weather = dry  (n=20): 0.2 -> 0.05, 0.5 -> 0.05, 0.8 -> 0.05",
        "|   logit p = -3",
        "|--- weather = wet  (n=20): 0.2 -> 0.95, 0.5 -> 0.95, 0.8 -> 0.95",
        "|   logit p = 3",
    ]


def test_categories_that_share_a_branch_stand_side_by_side():
    frame = pd.DataFrame({"weather": ["wet", "dry", "hot", "cold", None] * 20})
    tree = two_leaves(frame, ["stay", "go", "go", "stay", "stay"], make=fixed_tree)
    assert sorted(conditions_of(tree)) == [
        "weather in cold, wet or missing",
        "weather in dry, hot",
    ]


def test_of_many_categories_only_the_first_are_named():
    names = np.array([f"{i:02}" for i in range(24)] * 9)
    frame = pd.DataFrame({"c": names})
    tree = fixed_tree(max_depth=1).fit(frame, (names < "11").astype(int), [0.5] * len(names))
    assert sorted(conditions_of(tree)) == [
        "c in 00, 01, 02, 03 and 7 more",
        "c in 11, 12, 13, 14 and 9 more",
    ]


def test_of_most_categories_the_others_are_named():
    names = np.array(list("abcdefg") * 20)
    frame = pd.DataFrame({"c": names})
    tree = fixed_tree(max_depth=1).fit(frame, (names > "b").astype(int), [0.5] * len(names))
    assert sorted(conditions_of(tree)) == ["c in a, b", "c other than a, b"]


def test_long_names_are_whole():
    name, category = "n" * 99, "c" * 99
    tree = two_leaves(pd.DataFrame({name: [category, "b"] * 20}), make=fixed_tree)
    assert f"{name} = {category}" in conditions_of(tree)


def test_a_missing_value_can_be_all_that_matters():
    frame = pd.DataFrame({"n": [0.0, None, 1.0, None] * 10, "c": ["a", None, "b", None] * 10})
    for column, conditions in {
        "n": ["n is known", "n is missing"],
        "c": ["c in a, b", "c is missing"],
    }.items():
        tree = two_leaves(frame[[column]], make=fixed_tree, max_depth=1)
        assert sorted(conditions_of(tree)) == sorted(conditions)


def three_steps(make, **params):
    """A tree that is split twice by its one attribute, since rows in the middle differ."""
    X = np.repeat([[0.0], [1.0], [2.0]], 40, axis=0)
    y = np.repeat([0, 1, 0], 40)
    return make(**params).fit(X, y, scores=[0.5] * 120)


@every_engine
def test_splits_on_one_attribute_are_taken_together(make):
    tree = three_steps(make)
    assert (tree.get_n_leaves(), tree.get_depth()) == (3, 2)
    low, _, high = conditions_of(tree)
    low, high = float(low.removeprefix("x0 <= ")), float(high.removeprefix("x0 > "))
    assert conditions_of(tree) == [f"x0 <= {low:g}", f"{low:g} < x0 <= {high:g}", f"x0 > {high:g}"]
    # All three stand at one level, so that one is all there is to see.
    assert tree.to_text(max_depth=1) == tree.to_text()
    assert all(
        line.startswith(("|--- ", "|   logit", "p: ")) for line in tree.to_text().split("\n")
    )


def test_a_node_with_a_weight_keeps_its_line():
    tree = with_weights(three_steps(fixed_tree), [0.0, 0.25])
    assert len(conditions_of(tree)) == 4
    nested = [line for line in tree.to_text().splitlines() if line.startswith("|   |--- ")]
    assert len(nested) == 2 and all("weight 0.75" in line for line in nested)
    # The condition of the inner node is merged into those of its children.
    assert sum(" < x0 <= " in line for line in nested) == 1


def test_a_single_leaf():
    tree = two_leaves([[0], [1]] * 20, max_depth=0)
    assert tree.to_text().splitlines() == [
        "p: probability of 1, s: its score",
        "all rows  (n=40): 0.2 -> 0.50, 0.5 -> 0.50, 0.8 -> 0.50",
        "logit p = 0.00",
    ]
    tree = two_leaves([[0], [1]] * 20, make=fixed_tree, max_depth=0)
    assert tree.to_text().splitlines() == [
        "p: probability of 1, s: its score",
        "all rows  (n=40): 0.2 -> 0.20, 0.5 -> 0.50, 0.8 -> 0.80",
        "p = s",
    ]


@every_engine
def test_levels_below_max_depth_are_left_out(make):
    X, y, scores = make_rows(800, n_classes=3, seed=1, round_to=1)
    tree = make().fit(X, y, scores)
    whole = tree.to_text()
    n_levels = 1 + max(line.count("|   ") for line in whole.splitlines() if "|--- " in line)
    assert n_levels <= tree.get_depth()
    texts = [tree.to_text(max_depth=depth) for depth in range(n_levels + 2)]
    lengths = [len(text.splitlines()) for text in texts]
    _, legend, first, *formulas, last = texts[0].splitlines()
    assert legend.startswith("0.5 -> p (c): ")
    assert (first, last) == ("all rows  (n=800)", f"... {tree.get_n_leaves()} leaves below")
    assert len(formulas) == 3
    assert lengths == sorted(lengths) and lengths[1] < lengths[2] < lengths[3]
    assert "leaves below" in texts[-3] and "leaves below" not in texts[-2]
    assert texts[-1] == texts[-2] == whole
    assert not any(line.startswith("|   " * 2 + "|---") for line in texts[2].splitlines())


@every_engine
def test_every_leaf_is_there_once(make):
    frame, y, scores = make_frame()
    tree = make().fit(frame, y, scores)
    lines = tree.to_text().splitlines()
    assert sum("logit p =" in line for line in lines) == tree.get_n_leaves()
    assert sum(": 0.2 -> " in line for line in lines) == tree.get_n_leaves()
    for fragment in ("colour = red", "known = True", "number <= ", "number > "):
        assert any(fragment in line for line in lines)
    # The published engine fills missing values in before it looks at them.
    assert any("missing" in line for line in lines) == (make is fixed_tree)


def test_nodes_without_weight_have_no_model():
    tree = averaged_tree(uncalibrated=0.25)
    weight = tree.model_.weight
    assert weight[0] == 0.0 and len(set(weight)) > 3
    legend, first, *lines = tree.to_text().splitlines()
    assert legend == "p: probability of 1, s: its score"
    assert first == (
        "s -> p: what a score becomes in a leaf, averaged over its path by weight "
        "(0.25 for the score itself)"
    )
    assert sum("logit p =" in line for line in lines) == (weight > 0).sum()
    shown = [float(line.partition("weight ")[2][:4]) for line in lines if ", weight " in line]
    assert sorted(shown) == pytest.approx(sorted(weight[weight > 0]), abs=0.005001)
    for above, line in pairwise(lines):
        assert ("logit p =" in line) == ("weight" in above)


def test_the_score_itself_is_told_of_if_it_has_a_weight():
    assert "for the score itself" not in averaged_tree(uncalibrated=0.0).to_text()


def test_no_formula_where_scores_stay_uncalibrated():
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    tree = CalibrationTree().fit(rng.random((200, 1)), rng.random(200) < scores, scores)
    lines = tree.to_text().splitlines()
    assert "(chosen: uncalibrated, since calibration did not clearly help)" in lines[0]
    assert lines[1].split()[0] == "uncalibrated" and lines[1].endswith("  1.00")
    assert lines[-1] == "all rows  (n=200): uncalibrated"
    assert len(lines) == len(tree.selection_.candidates) + 3


@every_engine
def test_hostile_names_stay_text(make):
    name, category, label = "a\n|--- b", "\x1b[31mred\r", "no\x00\u202e{0}%s"
    frame = pd.DataFrame({name: [category, "blue"] * 20})
    text = two_leaves(frame, ["maybe", label], make=make).to_text()
    assert all(character.isprintable() or character == "\n" for character in text)
    lines = text.splitlines()
    assert len(lines) == 5
    assert lines[0] == "p: probability of no\\x00\\u202e{0}%s, s: its score"
    assert any(line.startswith("|--- a\\n|--- b = \\x1b[31mred\\r  (n=20)") for line in lines)


@every_engine
def test_other_alphabets_stay_as_they_are(make):
    frame = pd.DataFrame({"größe": ["大", "小"] * 20})
    assert "|--- größe = 大  (n=20)" in two_leaves(frame, make=make).to_text()


@every_engine
def test_rows_are_counted_by_weight(make):
    tree = make().fit([[0], [1]] * 20, [0, 1] * 20, [0.5] * 40, sample_weight=[0.75] * 40)
    assert "(n=15)" in tree.to_text()
    tree = make().fit([[0], [1]] * 20, [0, 1] * 20, [0.5] * 40, sample_weight=[1e5] * 40)
    assert "(n=2,000,000)" in tree.to_text()
