"""Trees in words."""

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationTree

from ..support.trees import boosted_tree, fixed_boosted_tree, fixed_tree, make_frame, make_rows

every_engine = pytest.mark.parametrize(
    "make", [fixed_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)


def two_leaves(X, y=(0, 1), make=boosted_tree, **params):
    """A tree with constant scores over rows that the first column tells apart."""
    return make(**params).fit(X, list(y) * (len(X) // len(y)), [0.5] * len(X))


def test_numbers():
    tree = two_leaves([[0.125], [2]] * 20)
    assert tree.to_text().splitlines() == [
        "|--- x0 <= 0.125  (n=20)",
        "|   F[0] =  1.52",
        "|   F[1] = -1.52",
        "|--- x0 > 0.125  (n=20)",
        "|   F[0] = -1.52",
        "|   F[1] =  1.52",
    ]


def test_what_was_chosen_stands_before_the_tree():
    tree = two_leaves([[0.125], [2]] * 20, make=CalibrationTree)
    *worse, best = (f"{each.loss:.4f}" for each in tree.selection_.candidates)
    assert worse == ["0.5000", "0.5000", best] and best < "0.5000"
    lines = tree.to_text().splitlines()
    assert lines[:6] == [
        "Held-out RMSE, and weight (chosen: local):",
        "    uncalibrated        0.5000",
        "    global              0.5000",
        f"    regions of 15 rows  {best}",
        f"    pruned tree         {best}  1.00",
        f"    average             {best}",
    ]
    # Between 0.125 and 2 nothing is known: the threshold is halfway. A model that starts from the
    # scores as they are has half of them, and half less.
    assert lines[6:] == [
        "|--- x0 <= 1.0625  (n=20)",
        "|   F[0] =  1.52 - 0.50 S[1]",
        "|   F[1] = -1.52 + 0.50 S[1]",
        "|--- x0 > 1.0625  (n=20)",
        "|   F[0] = -1.52 - 0.50 S[1]",
        "|   F[1] =  1.52 + 0.50 S[1]",
    ]


def test_the_losses_are_those_of_the_scoring():
    tree = two_leaves([[0.125], [2]] * 20, make=CalibrationTree, scoring="log_loss")
    lines = tree.to_text().splitlines()
    assert lines[:2] == [
        "Held-out log loss, and weight (chosen: local):",
        f"    uncalibrated        {np.log(2):.4f}",
    ]


def test_categories_names_and_labels():
    frame = pd.DataFrame({"weather": ["wet", "dry"] * 20})
    tree = two_leaves(frame, ["stay", "go"])
    assert tree.to_text(decimals=0).splitlines() == [
        "|--- weather = dry  (n=20)",
        "|   F[go]   =  2",
        "|   F[stay] = -2",
        "|--- weather = wet  (n=20)",
        "|   F[go]   = -2",
        "|   F[stay] =  2",
    ]


def test_categories_that_share_a_branch_stand_side_by_side():
    frame = pd.DataFrame({"weather": ["wet", "dry", "hot", "cold", None] * 20})
    tree = two_leaves(frame, ["stay", "go", "go", "stay", "stay"], make=fixed_tree)
    conditions = [line for line in tree.to_text().splitlines() if "|--- " in line]
    assert sorted(conditions) == [
        "|--- weather in cold, wet or missing  (n=60)",
        "|--- weather in dry, hot  (n=40)",
    ]


def test_of_many_categories_only_the_first_are_named():
    names = np.array([f"{i:02}" for i in range(24)] * 9)
    frame = pd.DataFrame({"c": names})
    tree = fixed_tree(max_depth=1).fit(frame, (names < "11").astype(int), [0.5] * len(names))
    conditions = [line for line in tree.to_text().splitlines() if "|--- " in line]
    assert sorted(conditions) == [
        "|--- c in 00, 01, 02, 03, 04, 05, 06, 07, 3 more  (n=99)",
        "|--- c in 11, 12, 13, 14, 15, 16, 17, 18, 5 more  (n=117)",
    ]


def test_of_most_categories_the_others_are_named():
    names = np.array(list("abcdefg") * 20)
    frame = pd.DataFrame({"c": names})
    tree = fixed_tree(max_depth=1).fit(frame, (names > "b").astype(int), [0.5] * len(names))
    conditions = [line for line in tree.to_text().splitlines() if "|--- " in line]
    assert sorted(conditions) == ["|--- c in a, b  (n=40)", "|--- c other than a, b  (n=100)"]


def test_long_names_are_whole():
    name, category = "n" * 99, "c" * 99
    text = two_leaves(pd.DataFrame({name: [category, "b"] * 20}), make=fixed_tree).to_text()
    assert f"|--- {name} = {category}  (n=20)" in text.splitlines()


def test_a_missing_value_can_be_all_that_matters():
    frame = pd.DataFrame({"n": [0.0, None, 1.0, None] * 10, "c": ["a", None, "b", None] * 10})
    for column, conditions in {
        "n": ["|--- n is known  (n=20)", "|--- n is missing  (n=20)"],
        "c": ["|--- c in a, b  (n=20)", "|--- c is missing  (n=20)"],
    }.items():
        text = two_leaves(frame[[column]], make=fixed_tree, max_depth=1).to_text()
        assert sorted(line for line in text.splitlines() if "|--- " in line) == sorted(conditions)


def test_a_single_leaf():
    tree = two_leaves([[0], [1]] * 20, max_depth=0)
    assert tree.to_text().splitlines() == ["(n=40)", "F[0] =  0.00", "F[1] =  0.00"]
    tree = two_leaves([[0], [1]] * 20, make=fixed_tree, max_depth=0)
    assert tree.to_text().splitlines() == [
        "(n=40)",
        "F[0] =  0.00 - 0.50 S[1]",
        "F[1] =  0.00 + 0.50 S[1]",
    ]


@every_engine
def test_levels_below_max_depth_are_left_out(make):
    X, y, scores = make_rows(800, n_classes=3, seed=1, round_to=1)
    tree = make().fit(X, y, scores)
    texts = [tree.to_text(max_depth=depth) for depth in range(tree.get_depth() + 2)]
    lengths = [len(text.splitlines()) for text in texts]
    assert texts[0].splitlines()[:2] == ["(n=800)", "..."]
    assert lengths[0] == 5  # and the formulas of three classes
    assert lengths == sorted(lengths) and lengths[1] < lengths[2] < lengths[3]
    assert "..." in texts[-3] and "..." not in texts[-2]
    assert texts[-1] == texts[-2] == tree.to_text()
    assert not any(line.startswith("|   " * 2 + "|---") for line in texts[2].splitlines())


@every_engine
def test_every_condition_and_every_leaf_is_there_once(make):
    frame, y, scores = make_frame()
    tree = make().fit(frame, y, scores)
    lines = tree.to_text().splitlines()
    assert sum("|--- " in line for line in lines) == tree.model_.n_nodes - 1
    assert sum("F[1] =" in line for line in lines) == tree.get_n_leaves()
    for fragment in ("colour = red", "known = True", "number <= ", "number > "):
        assert any(fragment in line for line in lines)
    # The published engine fills missing values in before it looks at them.
    assert any("missing" in line for line in lines) == (make is fixed_tree)


SIGNS = {"+": 1.0, "-": -1.0}


@every_engine
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 2])
def test_formulas_are_the_node_models(make, n_classes, k):
    X, y, scores = make_rows(n_classes=n_classes)
    others = np.random.default_rng(0).dirichlet(np.ones(n_classes), len(X))
    several = np.hstack([scores, others][:k])
    tree = make(max_depth=0).fit(X, y, several)
    has_log_odds = n_classes == 2 or make is fixed_boosted_tree
    seen = np.log(several / (1 - several)) if has_log_odds else np.log(several)
    names = {f"S[{j}]": j for j in range(n_classes)}
    names |= {f"S{1 + i}[{j}]": i * n_classes + j for i in range(k) for j in range(n_classes)}
    correction, raw = np.zeros((len(X), n_classes)), np.zeros((len(X), n_classes))
    for j, line in enumerate(tree.to_text(decimals=12).splitlines()[1:]):
        name, formula = line.split(" = ")
        assert name == f"F[{j}]"
        terms = formula.split()
        correction[:, j] = float(terms.pop(0))
        if terms[-2] == "log":
            assert terms[-3:] == ["+", "log", f"p[{j}]"]
            raw[:, j] = np.log(np.mean([scores, others][:k], axis=0)[:, j])
            terms = terms[:-3]
        for sign, slope, score in zip(terms[::3], terms[1::3], terms[2::3], strict=True):
            correction[:, j] += SIGNS[sign] * float(slope) * seen[:, names[score]]
    # What one classifier says before any correction is its scores: the two are added up.
    assert raw.any() == (make is fixed_tree and k == 2)
    odds = np.exp(correction + raw)
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tree.predict_proba(X, several), expected, atol=1e-9)
    if (make, n_classes, k) != (fixed_tree, 3, 1):
        np.testing.assert_allclose(correction.sum(axis=1), 0, atol=1e-9)


def test_no_formula_where_scores_stay_uncalibrated():
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    tree = CalibrationTree().fit(rng.random((200, 1)), rng.random(200) < scores, scores)
    lines = tree.to_text().splitlines()
    assert "(chosen: uncalibrated)" in lines[0]
    assert lines[1].split()[0] == "uncalibrated" and lines[1].endswith("  1.00")
    leaves = [line for line in lines if line.strip("| ") == "uncalibrated"]
    assert len(leaves) == tree.get_n_leaves() and not any("F[" in line for line in lines)


@pytest.mark.parametrize(
    ("columns", "names"),
    [([1], {"S[1]"}), ([0, 1], {"S[0]", "S[1]"}), ([0, 1, 1, 0], {"S1[0]", "S1[1]", "S2[0]"})],
)
def test_scores_are_named_by_class_and_classifier(columns, names):
    X, y, scores = make_rows()
    several = scores[:, columns] + np.random.default_rng(0).normal(size=(len(X), len(columns)))
    text = fixed_tree(max_depth=2).fit(X, y, several).to_text()
    assert {word for word in text.split() if word.startswith("S")} == names | (
        {"S2[1]"} if len(columns) == 4 else set()
    )
    text = fixed_boosted_tree(boosting_iterations=8).fit(X, y, several).to_text()
    found = {word for word in text.split() if word.startswith("S")}
    assert found & names and found <= names | {"S2[1]"}
    assert ("S2" in text) == (len(columns) == 4)


@every_engine
def test_hostile_names_stay_text(make):
    name, category, label = "a\n|--- b", "\x1b[31mred\r", "no\x00\u202e{0}%s"
    frame = pd.DataFrame({name: [category, "blue"] * 20})
    text = two_leaves(frame, [label, "yes"], make=make).to_text()
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.splitlines()) == 6
    assert "|--- a\\n|--- b = \\x1b[31mred\\r  (n=20)" in text.splitlines()
    assert "F[no\\x00\\u202e{0}%s] = " in text


@every_engine
def test_other_alphabets_stay_as_they_are(make):
    frame = pd.DataFrame({"größe": ["大", "小"] * 20})
    assert "|--- größe = 大  (n=20)" in two_leaves(frame, make=make).to_text()


@every_engine
def test_weights_need_not_be_whole(make):
    tree = make().fit([[0], [1]] * 20, [0, 1] * 20, [0.5] * 40, sample_weight=[0.75] * 40)
    assert "(n=15)" in tree.to_text()
