"""Trees in words."""

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationTree

from .helpers import fixed_tree, make_frame, make_rows


def two_leaves(X, y=(0, 1), **params):
    """A tree with constant scores over rows that the first column tells apart."""
    return CalibrationTree(**params).fit(X, list(y) * (len(X) // len(y)), [0.5] * len(X))


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


def test_a_single_leaf():
    tree = two_leaves([[0], [1]] * 20, max_depth=0)
    assert tree.to_text().splitlines() == ["(n=40)", "F[0] =  0.00", "F[1] =  0.00"]


def test_levels_below_max_depth_are_left_out():
    X, y, scores = make_rows(800, n_classes=3, seed=1, round_to=1)
    tree = fixed_tree().fit(X, y, scores)
    texts = [tree.to_text(max_depth=depth) for depth in range(tree.get_depth() + 2)]
    lengths = [len(text.splitlines()) for text in texts]
    assert texts[0].splitlines()[:2] == ["(n=800)", "..."]
    assert lengths[0] == 5  # and the formulas of three classes
    assert lengths == sorted(lengths) and lengths[1] < lengths[2] < lengths[3]
    assert "..." in texts[-3] and "..." not in texts[-2]
    assert texts[-1] == texts[-2] == tree.to_text()
    assert not any(line.startswith("|   " * 2 + "|---") for line in texts[2].splitlines())


def test_every_condition_and_every_leaf_is_there_once():
    frame, y, scores = make_frame()
    tree = fixed_tree().fit(frame, y, scores)
    lines = tree.to_text().splitlines()
    assert sum("|--- " in line for line in lines) == tree.tree_.n_nodes - 1
    assert sum("F[1]" in line for line in lines) == tree.get_n_leaves()
    for fragment in ("colour = red", "known = True", "number <= ", "number > "):
        assert any(fragment in line for line in lines)


def test_formulas_are_the_node_models():
    X, y, scores = make_rows(n_classes=3)
    tree = fixed_tree(max_depth=0).fit(X, y, scores)
    log_odds = np.log(scores / (1 - scores))
    evidence = np.zeros((len(X), 3))
    for j, line in enumerate(tree.to_text(decimals=12).splitlines()[1:]):
        name, formula = line.split(" = ")
        assert name == f"F[{j}]"
        terms = formula.split()
        evidence[:, j] = float(terms.pop(0))
        for sign, slope, score in zip(terms[::3], terms[1::3], terms[2::3], strict=True):
            evidence[:, j] += float(sign + slope) * log_odds[:, int(score[2])]
    odds = np.exp(evidence)
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(tree.predict_proba(X, scores), expected, atol=1e-9)
    np.testing.assert_allclose(evidence.sum(axis=1), 0, atol=1e-9)


@pytest.mark.parametrize(
    ("columns", "names"),
    [([1], {"S[1]"}), ([0, 1], {"S[0]", "S[1]"}), ([0, 1, 1, 0], {"S1[0]", "S1[1]", "S2[0]"})],
)
def test_scores_are_named_by_class_and_classifier(columns, names):
    X, y, scores = make_rows()
    several = scores[:, columns] + np.random.default_rng(0).normal(size=(len(X), len(columns)))
    text = fixed_tree(boosting_iterations=8).fit(X, y, several).to_text()
    found = {word for word in text.split() if word.startswith("S")}
    assert found & names and found <= names | {"S2[1]"}
    assert ("S2" in text) == (len(columns) == 4)


def test_hostile_names_stay_text():
    name, category, label = "a\n|--- b", "\x1b[31mred\r", "no\x00\u202e{0}%s"
    frame = pd.DataFrame({name: [category, "blue"] * 20})
    text = two_leaves(frame, [label, "yes"]).to_text()
    assert all(character.isprintable() or character == "\n" for character in text)
    assert len(text.splitlines()) == 6
    assert "|--- a\\n|--- b = \\x1b[31mred\\r  (n=20)" in text.splitlines()
    assert "F[no\\x00\\u202e{0}%s] = " in text


def test_other_alphabets_are_left_alone():
    frame = pd.DataFrame({"größe": ["大", "小"] * 20})
    assert "|--- größe = 大  (n=20)" in two_leaves(frame).to_text()


def test_weights_need_not_be_whole():
    tree = fixed_tree().fit([[0], [1]] * 20, [0, 1] * 20, [0.5] * 40, sample_weight=[0.75] * 40)
    assert "(n=15)" in tree.to_text()
