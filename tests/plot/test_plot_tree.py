"""Drawn trees: complete, true, and readable whatever their size."""

import re
import string

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from caltree import CalibratedClassifier, CalibrationForest, CalibrationTree, PlattScaling
from caltree._fitted.outline import Outline
from caltree.plot import plot_tree
from caltree.plot.boxes import draw_new
from caltree.plot.layout import Box
from tests.support.averaged_trees import averaged_tree
from tests.support.figures import assert_readable, extent_of, no_figure_is_open
from tests.support.trees import fixed_boosted_tree, fixed_tree, make_frame, make_rows

both_engines = pytest.mark.parametrize(
    "make", [fixed_boosted_tree, fixed_tree], ids=["boosted", "shrunken"]
)
both_ways = pytest.mark.parametrize("orientation", ["down", "right"])


def squeezed(text):
    return re.sub(r"\s+", " ", text).strip()


def lines_of(tree, **how):
    """The conditions, formulas and outcomes of the tree as text."""
    lines = tree.to_text(**how).splitlines()
    lines = [re.sub(r"^(\|\s+|\|--- )+", "", line) for line in lines]
    formulas = [squeezed(line) for line in lines if IS_FORMULA.match(line)]
    conditions = [line.partition("  (n=")[0] for line in lines if "  (n=" in line]
    outcomes = [line.partition("): ")[2] for line in lines if "): " in line]
    return conditions, formulas, outcomes


IS_FORMULA = re.compile(r"(logit |ln )?p(\[.*\])? +=")


def is_box(text):
    return text.get_family() == ["monospace"]


def boxes(axes):
    return [text for text in axes.texts if is_box(text)]


def note(axes):
    """The note above the tree."""
    first = axes.texts[0]
    assert not is_box(first)
    return first


def labels(axes):
    return [text for text in axes.texts[1:] if not is_box(text)]


def shown_formulas(axes):
    """The formulas of all boxes, each in one line."""
    found = []
    for box in boxes(axes):
        for line in box.get_text().splitlines():
            if IS_FORMULA.match(line):
                found.append(line)
            elif re.match(r" +[+-] ", line):
                found[-1] += line
    return [squeezed(formula) for formula in found]


def shown_outcomes(axes):
    lines = [box.get_text().splitlines()[0] for box in boxes(axes)]
    return [line for line in lines if " -> " in line]


def many_classes(n_rows=1500, max_depth=2):
    random = np.random.default_rng(0)
    y = random.integers(0, 26, n_rows)
    X = pd.DataFrame({"number": random.normal(size=n_rows) + (y > 12)})
    scores = random.dirichlet(np.ones(26), n_rows)
    letters = np.array(list(string.ascii_uppercase))
    return fixed_tree(max_depth=max_depth).fit(X, letters[y], scores=scores)


def long_names(n_rows=1500):
    random = np.random.default_rng(0)
    words = [f"a category with the number {number}" for number in range(40)]
    group = random.integers(0, 40, n_rows)
    name = "an attribute whose name says $everything$ that is known of it " * 2
    X = pd.DataFrame({name: np.array(words)[group], "short": random.normal(size=n_rows)})
    y = np.where(random.random(n_rows) < 0.2 + 0.6 * (group % 2), "yes", "no")
    y = np.char.add("a class with a very long name indeed, which is ", y)
    return fixed_tree(max_depth=3).fit(X, y, scores=random.random(n_rows))


def without_name(condition):
    """A condition as it stands on a branch below the name of its attribute."""
    interval = re.fullmatch(r"(\S+) < \w+ <= (\S+)( or missing)?", condition)
    if interval:
        return f"> {interval[1]}, <= {interval[2]}{interval[3] or ''}"
    return condition.partition(" ")[2]


@both_engines
@both_ways
@pytest.mark.parametrize("columns", [["number"], ["colour", "number", "size"]], ids=len)
def test_every_condition_and_every_formula_is_drawn(columns, orientation, make):
    X, y, scores = make_frame()
    tree = make(max_depth=3).fit(X[columns], y, scores=scores)
    axes = plot_tree(tree, orientation=orientation)
    conditions, formulas, outcomes = lines_of(tree)
    assert note(axes).get_text() == "p: probability of 1, s: its score"
    assert sorted(shown_formulas(axes)) == sorted(formulas)
    assert sorted(shown_outcomes(axes)) == sorted(outcomes)
    assert len(formulas) == len(outcomes) == tree.get_n_leaves()
    assert len(boxes(axes)) == 1 + len(conditions)
    drawn = [squeezed(label.get_text()) for label in labels(axes)]
    assert sorted(drawn) == sorted(map(without_name, conditions))
    names = [box.get_text().splitlines()[0] for box in boxes(axes)]
    inner = [name for name in names if " -> " not in name]
    assert len(inner) == len(boxes(axes)) - tree.get_n_leaves()
    assert set(inner) <= set(columns)


@both_ways
def test_branches_lead_from_parents_to_children_in_their_order(orientation):
    X, y, scores = make_frame()
    tree = fixed_tree(max_depth=3).fit(X, y, scores=scores)
    outline = Outline.of(tree.model_)
    axes = plot_tree(tree, orientation=orientation)
    place_of = {box.get_position(): box.get_text() for box in boxes(axes)}
    assert len(place_of) == len(boxes(axes))
    children = {}
    for line in axes.get_lines():
        ends = line.get_xydata()
        parent, child = tuple(ends[0]), tuple(ends[-1])
        children.setdefault(parent, []).append(child)
        along = 1 if orientation == "down" else 0
        assert child[along] > parent[along]
    assert sum(map(len, children.values())) == len(boxes(axes)) - 1
    model, pending = tree.model_, [(0, boxes(axes)[0].get_position())]
    while pending:
        node, place = pending.pop()
        assert place_of[place].splitlines()[-1] == f"n={model.n_rows[node]:,.0f}"
        below = children.get(place, [])
        shown = outline.children(node)
        across = 0 if orientation == "down" else 1
        assert below == sorted(below, key=lambda child: child[across])
        pending += zip(shown, below, strict=True)


@both_engines
def test_a_tree_that_is_a_single_leaf_can_be_drawn(make):
    X, y, scores = make_frame()
    tree = make(max_depth=0).fit(X, y, scores=scores)
    axes = plot_tree(tree, counts=False)
    [leaf] = boxes(axes)
    _, formulas, outcomes = lines_of(tree)
    assert shown_formulas(axes) == formulas and shown_outcomes(axes) == outcomes
    assert leaf.get_text().count("\n") in (1, 2)  # a formula may take two lines
    assert_readable(axes.figure, axes.texts)


def test_rows_are_counted_unless_they_are_not_wanted():
    X, y, scores = make_rows(2000)
    tree = fixed_tree(max_depth=1).fit(X, y, scores=scores)
    counts = [box.get_text().splitlines()[-1] for box in boxes(plot_tree(tree))]
    assert counts[0] == "n=2,000"
    assert sum(int(count.removeprefix("n=").replace(",", "")) for count in counts[1:]) == 2000
    assert not any("n=" in box.get_text() for box in boxes(plot_tree(tree, counts=False)))
    weights = np.full(2000, 0.625)
    weights[0] = 0.5
    weighted = fixed_tree(max_depth=0).fit(X, y, scores=scores, sample_weight=weights)
    assert boxes(plot_tree(weighted))[0].get_text().endswith("n=1,249.9")


def test_nodes_with_a_weight_say_so_and_are_darker():
    tree = averaged_tree()
    model = tree.model_
    axes = plot_tree(tree)
    weights = {}
    for box in boxes(axes):
        found = re.search(r"weight (\d\.\d\d)", box.get_text())
        lightness = sum(to_rgb(box.get_bbox_patch().get_facecolor()))
        weight = float(found[1]) if found else 0.0
        assert ("logit p" in box.get_text()) == bool(found)
        weights.setdefault(weight, []).append(lightness)
    expected = sorted(round(weight, 2) for weight in model.weight if weight > 0)
    drawn = sorted(weight for weight, found in weights.items() for _ in found if weight > 0)
    assert drawn == pytest.approx(expected, abs=0.006)
    means = [np.mean(weights[weight]) for weight in sorted(weights)]
    assert (np.diff(means) < 0).all()


def test_a_note_above_the_tree_says_what_the_letters_mean():
    tree = averaged_tree(uncalibrated=0.25)
    axes = plot_tree(tree)
    assert note(axes).get_text().splitlines() == tree.to_text().splitlines()[:2]
    assert "(0.25 for the score itself)" in note(axes).get_text()
    assert_readable(axes.figure, axes.texts)
    assert extent_of(note(axes)).y0 > max(extent_of(box).y1 for box in boxes(axes))


def test_splits_on_one_attribute_are_one_box():
    random = np.random.default_rng(0)
    X = random.permutation(np.repeat([[0.0], [1.0], [2.0]], 200, axis=0))
    y = random.random(600) < np.where(X[:, 0] == 1, 0.9, 0.1)
    tree = fixed_tree(max_depth=2, min_samples_leaf=100).fit(X, y, scores=np.full(600, 0.5))
    assert tree.get_depth() == 2 and tree.get_n_leaves() == 3
    axes = plot_tree(tree)
    assert [label.get_text() for label in labels(axes)] == ["<= 0.5", "> 0.5, <= 1.5", "> 1.5"]
    assert len(boxes(axes)) == 4


def test_scores_that_are_left_uncalibrated():
    random = np.random.default_rng(0)
    scores = random.random(400)
    y = random.random(400) < scores
    tree = CalibrationTree().fit(random.normal(size=(400, 2)), y, scores=scores)
    assert tree.model_.uncalibrated_weight == 1.0
    [box] = plot_tree(tree).texts
    assert box.get_text().splitlines() == ["uncalibrated", "n=400"]


@pytest.mark.parametrize("max_depth", [0, 1, 2])
def test_the_top_of_a_tree_says_how_many_leaves_are_below(max_depth):
    X, y, scores = make_rows(800)
    tree = fixed_tree(max_depth=4).fit(X, y, scores=scores)
    axes = plot_tree(tree, max_depth=max_depth)
    _, formulas, outcomes = lines_of(tree, max_depth=max_depth)
    assert sorted(shown_formulas(axes)) == sorted(formulas)
    assert sorted(shown_outcomes(axes)) == sorted(outcomes)
    n_leaves = 0
    for box in boxes(axes):
        below = re.search(r"… (\d+) leaves below$", box.get_text())
        n_leaves += int(below[1]) if below else " -> " in box.get_text()
    assert n_leaves == tree.get_n_leaves()


@both_ways
@pytest.mark.parametrize(
    "make",
    [
        lambda: fixed_tree(max_depth=2).fit(*make_frame(400)),
        lambda: fixed_tree(max_depth=6, min_samples_leaf=15).fit(*make_frame(1500)),
        lambda: fixed_boosted_tree().fit(*make_frame(1500)),
        averaged_tree,
        many_classes,
        long_names,
    ],
    ids=["small", "large", "boosted", "averaged", "26-classes", "long-names"],
)
def test_nothing_overlaps_and_all_is_on_the_page(make, orientation):
    axes = plot_tree(make(), orientation=orientation)
    assert_readable(axes.figure, axes.texts, smallest=9.0)


def test_a_tree_of_forty_leaves_is_readable_and_no_poster():
    X, y, scores = make_rows(4000)
    tree = fixed_tree(max_depth=6, min_samples_leaf=15).fit(X, y, scores=scores)
    assert tree.get_n_leaves() >= 40
    axes = plot_tree(tree)
    assert_readable(axes.figure, axes.texts, smallest=9.0)
    assert axes.figure.get_size_inches().max() < 0.9 * tree.get_n_leaves()


def test_small_trees_grow_down_and_large_ones_to_the_right():
    X, y, scores = make_rows(2000)
    sizes = []
    for max_depth, is_down in [(1, True), (2, True), (5, False)]:
        axes = plot_tree(fixed_tree(max_depth=max_depth).fit(X, y, scores=scores))
        first, second = (np.array(box.get_position()) for box in boxes(axes)[:2])
        assert (second[0] < first[0]) == is_down
        leaves = [box.get_position() for box in boxes(axes) if " -> " in box.get_text()]
        n_columns = len({round(place[0]) for place in leaves})
        assert (n_columns == len(leaves)) == is_down
        sizes.append(np.prod(axes.figure.get_size_inches()))
    assert sizes == sorted(sizes)


def test_long_conditions_are_wrapped_and_cut():
    axes = plot_tree(long_names())
    lines = [label.get_text().splitlines() for label in labels(axes)]
    assert max(len(each) for each in lines) == 3
    assert max(len(line) for each in lines for line in each) <= 26
    assert any(each[-1].endswith("…") for each in lines)
    root = boxes(axes)[0].get_text().splitlines()
    assert len(root) == 4 and root[2].endswith("…")
    assert note(axes).get_text() == "p: probability of a class with …is yes, s: its score"


def test_of_many_classes_some_formulas_are_shown():
    tree = many_classes(max_depth=1)
    for box in boxes(plot_tree(tree))[1:]:
        lines = box.get_text().splitlines()
        assert len(lines) == 7 and lines[-2] == "… 22 more classes"
        assert max(map(len, lines)) <= 56
        assert lines[0].startswith("0.5 -> ") and lines[0].count(", ") == 4
        assert [line[:7] for line in lines[1:5]] == ["ln p[A]", "ln p[B]", "ln p[C]", "ln p[D]"]
        assert all(line.endswith(" …") for line in lines[1:5])
    lines = boxes(plot_tree(tree, max_formulas=25))[1].get_text().splitlines()
    assert lines[-2] == "… 1 more class"


def test_decimals_of_the_coefficients():
    X, y, scores = make_rows()
    tree = fixed_tree(max_depth=1).fit(X, y, scores=scores)
    assert shown_formulas(plot_tree(tree, decimals=4)) == lines_of(tree, decimals=4)[1]


def test_a_tree_fits_into_given_axes():
    X, y, scores = make_frame(600)
    tree = fixed_tree(max_depth=2).fit(X, y, scores=scores)
    for layout in (None, "constrained"):
        figure, (left, right) = plt.subplots(1, 2, figsize=(16, 5), layout=layout)
        assert plot_tree(tree, ax=right) is right
        assert_readable(figure, right.texts)
        inside = right.get_window_extent()
        for text in right.texts:
            extent = extent_of(text)
            assert inside.x0 <= extent.x0 and extent.x1 <= inside.x1
            assert inside.y0 <= extent.y0 and extent.y1 <= inside.y1
        assert not left.texts
    large = plt.figure(figsize=(30, 20)).add_subplot()
    plot_tree(tree, ax=large)
    assert {text.get_fontsize() for text in large.texts} == {9.0}


def test_text_that_must_be_tiny_is_warned_of():
    X, y, scores = make_rows(2000)
    tree = fixed_tree(max_depth=5).fit(X, y, scores=scores)
    axes = plt.figure(figsize=(4, 3)).add_subplot()
    with pytest.warns(UserWarning, match=r"only with text of \d\.\d points; leave ax out"):
        plot_tree(tree, ax=axes)
    assert len(boxes(axes)) == 1 + len(lines_of(tree)[0])


def test_a_classifier_is_drawn_by_its_calibrator():
    X, y, _ = make_rows()
    model = CalibratedClassifier(GaussianNB(), fixed_tree(max_depth=1)).fit(X, y)
    drawn = [text.get_text() for text in plot_tree(model).texts]
    assert drawn == [text.get_text() for text in plot_tree(model.calibrator_).texts]


def test_a_tree_too_large_for_a_picture_is_refused():
    X, y, scores = make_rows(3000, round_to=6)
    tree = fixed_tree(min_samples_leaf=1, min_samples_split=2).fit(X, y, scores=scores)
    assert tree.get_n_leaves() > 400
    for axes in (None, plt.figure().add_subplot()):
        with pytest.raises(ValueError, match=r"tree has \d+ leaves to draw, .*; draw .*max_depth"):
            plot_tree(tree, ax=axes)
    assert len(plt.get_fignums()) == 1
    plot_tree(tree, max_depth=2)


def test_a_picture_too_large_for_a_file_is_refused():
    leaves = [Box("a line\n" * 80, "> 1", 1.0) for _ in range(20)]
    root = Box("x", "", 0.0, children=leaves)
    with pytest.raises(ValueError, match=r"tree has 20 leaves .* a picture of \d+ by \d{3} inches"):
        draw_new({"right": root}, "")
    assert no_figure_is_open()


@pytest.fixture(scope="module")
def small():
    X, y, scores = make_rows()
    return fixed_tree(max_depth=1).fit(X, y, scores=scores)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"max_depth": -1}, ValueError, "max_depth must be None or a whole number from 0"),
        ({"max_depth": 1.5}, ValueError, "max_depth must be None or a whole number"),
        ({"decimals": -1}, ValueError, "decimals must be a whole number from 0"),
        ({"max_formulas": 0}, ValueError, "max_formulas must be a whole number from 1"),
        ({"counts": None}, ValueError, "counts must be True or False"),
        ({"orientation": "up"}, ValueError, "orientation must be one of 'auto', 'down', 'right'"),
        ({"ax": 3}, TypeError, "ax must be matplotlib axes or None, got 3"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else None,
)
def test_bad_input_is_refused_before_anything_is_drawn(small, change, kind, message):
    with pytest.raises(kind, match=message):
        plot_tree(small, **change)
    assert no_figure_is_open()


def test_what_has_no_tree_is_refused():
    X, y, scores = make_rows()
    platt = PlattScaling().fit(X, y, scores=scores)
    forest = CalibrationForest(2).fit(X, y, scores=scores)
    model = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(X, y)
    for tree, kind, message in [
        (CalibrationTree(), NotFittedError, "CalibrationTree instance is not fitted"),
        (CalibratedClassifier(GaussianNB()), NotFittedError, "is not fitted"),
        (platt, TypeError, "tree is a PlattScaling, which has no tree; give a fitted"),
        (forest, TypeError, "tree is a CalibrationForest, .* with plot_regions"),
        (model, TypeError, "the calibrator of tree is a PlattScaling, which has no tree"),
        (GaussianNB(), TypeError, "tree is a GaussianNB, which has no tree"),
        (None, TypeError, "tree is a NoneType, which has no tree"),
    ]:
        with pytest.raises(kind, match=message):
            plot_tree(tree)
    assert no_figure_is_open()
