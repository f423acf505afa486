"""Stored trees that are malformed: a ValueError names what is wrong, or they predict."""

import copy

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree import CalibrationForest, CalibrationTree, PublishedCalibrationTree

from ..support.marks import new_values
from ..support.nested import paths, replaced
from ..support.trees import assert_probabilities, fixed_boosted_tree

pytestmark = new_values


def deep_list(depth):
    nested = []
    for _ in range(depth):
        nested = [nested]
    return nested


def small_table():
    """Attributes, labels and scores of which a number and three colours say all."""
    number = np.repeat([0.0, 1.0], 60)
    colour = np.tile(["red", "green", "blue"], 40)
    y = (number == 1) | (colour == "red")
    y[:10] = ~y[:10]
    frame = pd.DataFrame({"number": number, "colour": colour})
    return frame, y.astype(int), np.linspace(0.1, 0.9, 120)


@pytest.fixture(scope="module")
def stored():
    """The root splits on a number, its first child (node 1) on three colours."""
    tree = fixed_boosted_tree().fit(*small_table())
    assert tree.model_.attribute.tolist() == [0, 1, -1, -1, -1, -1]
    assert tree.model_.branches.tolist() == [0, 1, 2]
    return tree.to_dict()


@pytest.fixture(scope="module")
def stored_local():
    """The root divides the colours in two, both of its children split on a number."""
    rng = np.random.default_rng(0)
    number, colour = np.repeat([0.0, 1.0], 300), np.tile(["red", "green", "blue"], 200)
    shares = np.where(colour == "red", 0.75, 0.25) + np.where(number == 1, 0.15, -0.15)
    frame = pd.DataFrame({"number": number, "colour": colour})
    y, scores = (rng.random(600) < shares).astype(int), rng.random(600)
    tree = CalibrationTree(max_depth=2).fit(frame, y, scores)
    assert tree.model_.attribute.tolist() == [1, 0, 0, -1, -1, -1, -1]
    assert tree.model_.branches.tolist() == [0, 0, 1]
    assert tree.selection_.chosen == "local"
    return tree.to_dict()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((), None, "format"),
        ((), [], "format"),
        ((), {}, "format"),
        (("format",), "sklearn.Tree", "format"),
        (("version",), 1, "version 1"),
        (("version",), None, "version None"),
        (("version",), deep_list(2000), "version"),
        (("extra",), 1, "keys"),
        (("params",), [], "parameters"),
        (("params", "depth"), 3, "parameters"),
        (("params", "cv"), {"a": 1}, "parameters"),
        (("params", "cv"), deep_list(2000), "parameters"),
        (("score_type",), "auto", "score_type"),
        (("score_type",), ["logit"], "score_type"),
        (("score_type",), deep_list(2000), "score_type"),
        (("classes",), [0], "classes"),
        (("classes",), [0, 1, 2], "classes"),
        (("classes",), [1, 0], "sorted"),
        (("classes",), [1, 1], "distinct"),
        (("classes",), [0, "1"], "one type"),
        (("classes",), [None, None], "one type"),
        (("classes",), [0, 10**30], "classes"),
        (("classes",), [0.0, float("nan")], "classes"),
        (("classes",), [float("nan"), 0.0], "classes"),
        (("classes",), "ab", "classes"),
        (("chosen",), {}, "chosen"),
        (("chosen",), [], "chosen"),
        (("chosen", "extra"), 1, "chosen"),
        (("selection",), {}, "selection"),
        (("chosen", "boosting_iterations"), 1.5, "numbers"),
        (("chosen", "ccp_alpha"), "cv", "numbers"),
        (("chosen", "ccp_alpha"), float("nan"), "numbers"),
        (("chosen", "ccp_alpha"), 10**400, "numbers"),
        (("model", "extra"), 1, "keys"),
        (("model", "attribute"), [], "attribute"),
        (("model", "attribute"), [-1], "entries"),
        (("model", "attribute"), [0, 1, -1, -1, -1, -2], "score that does not exist"),
        (("model", "attribute"), [0, 1, -1, -1, -1, -99], "score that does not exist"),
        (("model", "attribute"), [3, 1, -1, -1, -1, -1], "score that does not exist"),
        (("model", "attribute"), [2, 1, -1, -1, -1, -1], "node 0 .* cut 0, but cuts has 0"),
        (("model", "attribute"), [2**40, 1, -1, -1, -1, -1], "out of range"),
        (("model", "attribute"), [10**30, 1, -1, -1, -1, -1], "attribute"),
        (("model", "attribute"), [0.0, 1, -1, -1, -1, -1], "attribute"),
        (("model", "attribute"), [True, False, True, True, True, True], "attribute"),
        (("model", "attribute"), [-1, -1, -1, -1, -1, -1], "0 splits, but 2 entries in missing"),
        (("model", "attribute"), [0, -1, 1, -1, -1], "ends in the middle of tree 0: node 2 lacks"),
        (("model", "attribute"), deep_list(2000), "attribute"),
        (("model", "cut"), [0], "2 splits, but 1 entries in cut"),
        (("model", "cut", 0), 1, "node 0 of a stored model has cut 1, but cuts has 1 of attribute"),
        (("model", "cut", 1), -1, "node 1 of a stored model has cut -1"),
        (("model", "cut", 1), 2**31 - 1, "node 1 of a stored model has cut"),
        (("model", "cut", 1), 0.5, "cut of a stored calibrator must be"),
        (("model", "missing"), [0], "2 splits, but 1 entries in missing"),
        (("model", "missing", 0), 2, "node 0 .* a child that does not exist"),
        (("model", "missing", 1), 3, "ends in the middle of tree 0: node 1 lacks children"),
        (("model", "missing", 1), -1, "node 1 .* a child that does not exist"),
        (("model", "missing", 1), 0.5, "missing"),
        (("model", "missing_rows"), [0.0], "2 splits, but 1 entries in missing_rows"),
        (("model", "missing_rows"), None, "missing_rows"),
        (("model", "missing_rows"), [0.0, float("nan")], "not finite"),
        (("model", "cuts"), None, "cuts of a stored model must be 3 lists"),
        (("model", "cuts"), [[0.0], [[0, 1, 2]]], "cuts of a stored model must be 3 lists"),
        (("model", "cuts", 0), [], "node 0 of a stored model has cut 0, but cuts has 0"),
        (("model", "cuts", 0), 0.5, "cuts of attribute 0 of a stored calibrator must be"),
        (("model", "cuts", 0), [[0, 1]], "cuts of attribute 0 of a stored calibrator must be"),
        (("model", "cuts", 0, 0), float("inf"), "cuts of attribute 0 .* not finite"),
        (("model", "cuts", 0, 0), "0", "cuts of attribute 0"),
        (("model", "cuts", 0, 0), None, "cuts of attribute 0"),
        (("model", "cuts", 1), [0.5], "cuts of attribute 1"),
        (("model", "cuts", 1), [[0, 1]], "cuts of attribute 1 .* each of the 3 categories"),
        (("model", "cuts", 1), [[0, 1, -1]], "cuts of attribute 1 .* lists of children"),
        (("model", "cuts", 1), [[0, 0, 0]], "node 1 .* a child that does not exist"),
        (("model", "cuts", 1), [[0, 1, 1]], "2 trees, but 1 entries in tree_weight"),
        (("model", "cuts", 1), [[0, 1, 3]], "ends in the middle of tree 0: node 1 lacks children"),
        (("model", "cuts", 1), [[0, 1, 2**31 - 1]], "node 1 .* has 2147483648 children"),
        (("model", "cuts", 1), [[True, False, True]], "cuts of attribute 1"),
        (("model", "gain"), [0.0], "entries"),
        (("model", "gain", 0), float("inf"), "not finite"),
        (("model", "offset"), 1, "offset of a stored model must be true or false"),
        (("model", "offset"), None, "offset of a stored model must be true or false"),
        (("model", "n_rows"), [1.0] * 6, "4 leaves, but 6 entries in n_rows"),
        (("model", "n_rows", 2), float("nan"), "not finite"),
        (("model", "weight"), [], "weight of a stored calibrator must be"),
        (("model", "weight", 1), -0.1, "weight of a stored model must be from 0 to 1"),
        (("model", "weight", 1), 1.1, "weight of a stored model must be from 0 to 1"),
        (("model", "tree_weight"), [0.5, 0.5], "1 trees, but 2 entries in tree_weight"),
        (("model", "step"), [1], "1 entries in step, but 2 lists"),
        (("model", "step", 0), 0, "step of a stored model must be above 0"),
        (("model", "step", 0), 1e308, "beyond any"),
        (("model", "parameters", 0, 1), [], "parameters"),
        (("model", "parameters", 0, 1, 0), 1e201, "beyond any"),
        (("model", "parameters", 0, 1, 0), -1e308, "beyond any"),
        (("model", "parameters", 0, 1, 0), float("nan"), "not finite"),
        (("model", "parameters"), [[[0.0] * 6, [1.0] * 6]] * 2, "no known shape"),
        (("model", "parameters"), [[[0.0] * 6, [1.0] * 6]] * 3, "3"),
        (("model", "parameters"), [[[0.0] * 5, [1.0] * 5]], "6 nodes, .* but 5 entries in param"),
        (("model", "parameters"), [[[0.0] * 6]], "2 entries in step, but 1 lists"),
        (("model", "parameters"), [[[0.0] * 6] * 4], "2 entries in step, but 4 lists"),
        (("model", "parameters"), [[[]]], "parameters"),
        (("model", "n_scores"), 3, "cuts of a stored model must be 5 lists"),
        (("model", "n_scores"), 0, "n_scores of a stored model must be a positive whole number"),
        (("model", "n_scores"), True, "n_scores of a stored model must be a positive"),
        (("n_scores",), 3, "3 scores for 2 classes"),
        (("n_scores",), 4, "pos_label of a stored calibrator of 4 scores cannot be 1"),
        (("n_scores",), "two", "'two' scores for 2 classes"),
        (("model", "attributes"), deep_list(2000), "attributes"),
        (("model", "attributes", "columns"), deep_list(2000), "attributes"),
        (("model", "attributes", "columns", 0, "fill"), 10**400, "fill"),
        (("model", "attributes", "columns", 1, "fill"), 3, "fill"),
        (
            ("model", "attributes", "columns", 1, "categories"),
            ["red", "blue", "a", "b"],
            "cuts of attribute 1 .* each of the 4 categories",
        ),
    ],
)
def test_malformed_trees_are_refused(stored, path, value, message):
    assert_refused(stored, path, value, message)


def class_of(stored):
    """The class that reads a stored tree."""
    published = stored["format"] == "caltree.PublishedCalibrationTree"
    return PublishedCalibrationTree if published else CalibrationTree


def assert_refused(stored, path, value, message):
    with pytest.raises(ValueError, match=message) as caught:
        class_of(stored).from_dict(replaced(stored, path, value))
    assert len(str(caught.value)) < 400


def test_published_trees_split_on_attributes_alone(stored):
    cuts = [*stored["model"]["cuts"][:2], [0.5]]
    changed = replaced(stored, ("model", "cuts"), cuts)
    assert_refused(changed, ("model", "attribute", 0), 2, "split on attributes alone")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("selection",), {}, "selection must have exactly the keys"),
        (("selection",), [None], "selection must have exactly the keys"),
        (("selection",), deep_list(2000), "selection must have exactly the keys"),
        (("selection", "extra"), 1, "selection must have exactly the keys"),
        (("selection", "scoring"), "auc", "scoring of a stored selection must be one of"),
        (("selection", "scoring"), deep_list(2000), "scoring of a stored selection must be"),
        (("selection", "loss"), "0.5", "losses of a stored selection must be numbers"),
        (("selection", "calibrated_loss"), None, "losses of a stored selection must be numbers"),
        (("selection", "candidates"), [], "must list candidates"),
        (("selection", "candidates"), {}, "must list candidates"),
        (("selection", "candidates"), deep_list(2000), "must list candidates"),
        (("selection", "candidates", 0), {"name": "global"}, "must list candidates"),
        (("selection", "candidates", 0, "extra"), 1, "must list candidates"),
        (("selection", "candidates", 0, "name"), 1, "must list candidates"),
        (("selection", "candidates", 0, "loss"), "0.5", "must list candidates"),
        (("selection", "candidates", 0, "loss"), True, "must list candidates"),
        (("selection", "candidates", 0, "loss"), 10**400, "must list candidates"),
        (("selection", "candidates", 0, "weight"), -0.1, "weights from 0 to 1"),
        (("selection", "candidates", 0, "weight"), 1.1, "weights from 0 to 1"),
        (("selection", "candidates", 0, "weight"), 0.5, "must sum to 1"),
        (("chosen", "ccp_alpha"), None, "chosen of a stored calibrator must be empty"),
        (("model", "weight", 0), -0.1, "weight of a stored model must be from 0 to 1"),
        (("model", "weight", 1), 0.99, "on the path to node 1 than tree_weight of its tree"),
        (("model", "tree_weight", 0), -0.1, "tree_weight of a stored model must be from 0 to 1"),
        (("model", "tree_weight", 0), 2.0, "tree_weight of a stored model must be from 0 to 1"),
        (("model", "tree_weight", 0), 0.001, "than tree_weight of its tree"),
    ],
)
def test_malformed_trees_of_shrunken_node_models_are_refused(stored_local, path, value, message):
    assert_refused(stored_local, path, value, message)


def test_a_forest_is_no_tree():
    forest = CalibrationForest(2, random_state=0).fit(*small_table()).to_dict()
    stored = {**forest, "format": "caltree.CalibrationTree", "params": {}}
    with pytest.raises(ValueError, match="a stored tree must have one root"):
        CalibrationTree.from_dict(stored)


def test_margins_are_neither_uncalibrated_nor_probabilities_to_correct(stored_local):
    message = "margins of a stored calibrator cannot be left uncalibrated"
    stored = {**stored_local, "selection": None}
    model = stored["model"]
    halved = {**model, **halve_weights(model)}
    assert_refused({**stored, "model": halved}, ("score_type",), "margin", message)
    whole = {"weight": [0.0] * len(model["weight"]), "tree_weight": [1.0]}
    leaves = {**stored, "score_type": "margin", "model": {**model, **whole}}
    CalibrationTree.from_dict(leaves)
    assert_refused(leaves, ("model", "offset"), True, message)


def test_the_weight_of_the_uncalibrated_probabilities_is_that_of_the_selection(stored_local):
    halved = {**stored_local["model"], **halve_weights(stored_local["model"])}
    message = "gives uncalibrated probabilities the weight .*, but selection says"
    assert_refused(stored_local, ("model",), halved, message)


def halve_weights(model):
    """The weights of a stored model, halved."""
    names = ("weight", "tree_weight")
    return {name: [weight / 2 for weight in model[name]] for name in names}


whole = st.sampled_from([0, 1, -1, 2, 5, 6, 7, -7, 2**31, -(2**31), 2**63, 10**400])
numbers = whole | st.sampled_from([0.5, -0.0, 1e-320, 1e200, -1e308, float("nan"), float("inf")])
junk = st.recursive(
    st.none() | st.booleans() | numbers | st.sampled_from(["", "red", "cv", "logit", "number"]),
    lambda inner: (
        st.lists(inner, max_size=7)
        | st.dictionaries(st.sampled_from(["name", "fill", "cv", ""]), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("fixture", ["stored", "stored_local"])
@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@settings(max_examples=300, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_mutated_tree_is_refused_or_predicts(request, fixture, data):
    changed = copy.deepcopy(request.getfixturevalue(fixture))
    for _ in range(data.draw(st.integers(1, 2))):
        *way, key = data.draw(st.sampled_from(list(paths(changed))[1:] or [("x",)]))
        inner = changed
        for step in way:
            inner = inner[step]
        if data.draw(st.integers(0, 4)) == 0 and key != "x":
            del inner[key]
        elif data.draw(st.booleans()):
            inner[key] = data.draw(numbers)
        else:
            inner[key] = data.draw(junk)
    frame = pd.DataFrame({"number": [0.0, 1.0, None] * 2, "colour": ["red", "mauve"] * 3})
    scores = np.array([0.0, 0.3, 0.5, 1.0, 1e-320, 0.9])
    try:
        tree = class_of(request.getfixturevalue(fixture)).from_dict(changed)
    except ValueError:
        return
    width = tree.n_scores_
    given_scores = np.column_stack([scores] * width)
    try:
        probabilities = tree.predict_proba(frame, given_scores)
    except (ValueError, TypeError) as error:
        # Another, valid tree: its columns may have other names or types.
        assert "attribute" in str(error)
        return
    assert_probabilities(probabilities)
    assert tree.to_text() and tree.get_depth() >= 0
    assert len(tree.feature_importances_) == 2
