"""CalibrationForest: files and copies of it."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from caltree import CalibrationForest, CalibrationTree

from ..support.forests import assert_survives, calibrated_rows, few, same_forest
from ..support.marks import new_values
from ..support.nested import paths, replaced
from ..support.trees import assert_probabilities, make_frame, make_rows

pytestmark = new_values

# Storage


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("score_type", ["probability", "margin"])
def test_a_file_keeps_the_forest(tmp_path, n_classes, score_type):
    frame, *_ = make_frame()
    _, y, scores = make_rows(n_classes=n_classes)
    forest = few(score_type=score_type, max_depth=4).fit(frame, np.array([3, 5, 7])[y], scores)
    path = tmp_path / "forest.json"
    forest.save(path)
    again = CalibrationForest.load(path)
    assert again.to_dict() == forest.to_dict()
    assert again.get_params() == forest.get_params()
    other = frame.assign(colour="mauve", number=None)
    for table in (frame, other):
        expected = forest.predict_proba(table, scores)
        assert np.array_equal(again.predict_proba(table, scores), expected)
    assert np.array_equal(again.feature_importances_, forest.feature_importances_)
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert vars(again).keys() == vars(forest).keys()


def test_a_forest_that_stays_uncalibrated_survives():
    X, y, scores = calibrated_rows(400, 3, 0)
    forest = few().fit(X, y, scores)
    assert forest.selection_.chosen == "uncalibrated"
    assert_survives(forest, X, scores)


def test_copies_predict_the_same():
    frame, y, scores = make_frame()
    forest = few().fit(frame, y, scores)
    before = pickle.dumps(forest)
    expected = forest.predict_proba(frame, scores)
    copies = [pickle.loads(before), pickle.loads(pickle.dumps(forest))]
    for other in (*copies, copy.deepcopy(forest), copy.copy(forest)):
        assert np.array_equal(other.predict_proba(frame, scores), expected)
        assert same_forest(other, forest) and other.get_params() == forest.get_params()


@pytest.fixture(scope="module")
def stored():
    """A small forest; its first tree splits on a number at the root, and somewhere on a colour."""
    rng = np.random.default_rng(0)
    number = np.repeat([0.0, 1.0], 400)
    colour = np.tile(["red", "green"], 400)
    odds = rng.standard_normal(800)
    shift = 3 * number - 1.5 + 1.5 * (colour == "red")
    y = (rng.random(800) < expit(odds + shift)).astype(int)
    frame = pd.DataFrame({"number": number, "colour": colour})
    forest = CalibrationForest(2, random_state=2, max_depth=2).fit(frame, y, expit(odds))
    assert forest.model_.attribute[0] == 0 and 1 in forest.model_.attribute
    assert forest.selection_.chosen == "local"
    return forest.to_dict()


MALFORMED = [
    ((), None, "format"),
    (("format",), "caltree.CalibrationTree", "read it with caltree.CalibrationTree"),
    (("version",), 1, "version 1"),
    (("extra",), 1, "keys"),
    (("params", "depth"), 3, "parameters"),
    (("score_type",), "auto", "score_type"),
    (("classes",), [0, 1, 2], "classes"),
    (("classes",), [1, 0], "sorted"),
    (("n_scores",), 3, "3 scores for 2 classes"),
    (("n_scores",), 4, "pos_label of a stored calibrator of 4 scores cannot be 1"),
    (("chosen",), {"ccp_alpha": None}, "chosen of a stored calibrator must be empty"),
    (("chosen",), None, "chosen of a stored calibrator must be a dict"),
    (("selection",), [], "selection"),
    (("selection", "candidates", 0), {"name": "global", "loss": 0.1}, "weights from 0 to 1"),
    (("selection", "candidates", 0, "weight"), "half", "weights from 0 to 1"),
    (("model",), None, "keys"),
    (("model", "extra"), 1, "keys"),
    (("model", "attribute"), [], "attribute"),
    (("model", "attribute", 0), 4, "score that does not exist"),
    (("model", "attribute", 0), -2, "score that does not exist"),
    (("model", "attribute", 0), -1, "splits, but"),
    (("model", "attribute", 0), 0.0, None),
    (("model", "attribute", 0), 2**40, "out of range"),
    (("model", "cut", 0), 10**9, "node 0 of a stored model has cut 1000000000, but cuts has"),
    (("model", "missing", 0), 2, "child that does not exist"),
    (("model", "missing", 0), -1, "child that does not exist"),
    (("model", "cuts"), [[0.0]], "must be 4 lists"),
    (("model", "cuts", 0, 0), float("inf"), "not finite"),
    (("model", "n_rows", 0), float("nan"), "not finite"),
    (("model", "cuts", 1, 0), [0], "one for each of the 2 categories"),
    (("model", "cuts", 1, 0, 0), 5, "ends in the middle of tree 0: node 9 lacks children"),
    (("model", "parameters", 0, 0, 0), 1e250, "beyond any"),
    (("model", "parameters", 0, 0, 0), float("nan"), "not finite"),
    (("model", "parameters"), [[[0.0], [1.0], [0.0]]], "but 1 entries in parameters"),
    (("model", "step", 1), -0.1, "step of a stored model must be above 0"),
    (("model", "tree_weight"), [0.5], "2 trees, but 1 entries in tree_weight"),
    (("model", "tree_weight"), [0.9, 0.9], "no more than 1 in all"),
    (("model", "weight"), [0.0] * 99, "entries"),
    (("model", "weight", 0), -0.5, "from 0 to 1"),
    (("model", "weight", 0), 7.0, "from 0 to 1"),
    (("model", "weight", 0), 0.9, "on the path to node . than tree_weight"),
    (("model", "attributes", "columns"), [], "attributes"),
]


@pytest.mark.parametrize(("path", "value", "message"), MALFORMED)
def test_malformed_forests_are_refused(stored, path, value, message):
    with pytest.raises(ValueError, match=message) as caught:
        CalibrationForest.from_dict(replaced(stored, path, value))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("parameters", [1, 2])
def test_node_models_of_another_shape_are_refused(stored, parameters):
    lists = [[0.0] * len(stored["model"]["attribute"])]
    shape = {1: [lists * 2], 2: [lists * 3] * 2}[parameters]
    changed = replaced(stored, ("model", "parameters"), shape)
    changed = replaced(changed, ("model", "step"), [1.0] * len(shape[0]))
    with pytest.raises(ValueError, match="no known shape"):
        CalibrationForest.from_dict(changed)


def test_another_file_is_refused(tmp_path):
    X, y, scores = make_rows(100)
    few().fit(X, y, scores).save(tmp_path / "forest.json")
    with pytest.raises(ValueError, match=r"read it with caltree\.CalibrationForest"):
        CalibrationTree.load(tmp_path / "forest.json")


whole = st.sampled_from([0, 1, -1, 2, 5, 6, 7, -7, 2**31, -(2**31), 2**63, 10**400])
numbers = whole | st.sampled_from([0.5, -0.0, 1e-320, 1e200, -1e308, float("nan"), float("inf")])
junk = st.recursive(
    st.none() | st.booleans() | numbers | st.sampled_from(["", "red", "logit", "number"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["name", "fill", "weight", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.filterwarnings("ignore:X has feature names:UserWarning")
@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_mutated_forest_is_refused_or_predicts(stored, data):
    changed = copy.deepcopy(stored)
    for _ in range(data.draw(st.integers(1, 2))):
        *way, key = data.draw(st.sampled_from(list(paths(changed))[1:] or [("x",)]))
        inner = changed
        for step in way:
            inner = inner[step]
        if data.draw(st.integers(0, 4)) == 0 and key != "x":
            del inner[key]
        else:
            inner[key] = data.draw(numbers | junk)
    frame = pd.DataFrame({"number": [0.0, 1.0, None] * 2, "colour": ["red", "mauve"] * 3})
    scores = np.array([0.0, 0.3, 0.5, 1.0, 1e-320, 0.9])
    try:
        forest = CalibrationForest.from_dict(changed)
    except ValueError:
        return
    given_scores = np.column_stack([scores] * forest.n_scores_)
    try:
        probabilities = forest.predict_proba(frame, given_scores)
    except (ValueError, TypeError) as error:
        # Another, valid forest: its columns may have other names or types.
        assert "attribute" in str(error)
        return
    assert_probabilities(probabilities)
    assert np.isfinite(forest.feature_importances_).all()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("selection", "candidates", 0, "weight"), 0.5),
        (("selection", "candidates", 0, "weight"), 2),
        (("selection", "candidates", 0, "weight"), -1.0),
        (("selection", "candidates", 0, "weight"), float("nan")),
        pytest.param(("selection", "candidates", 0, "weight"), 10**400, id="huge"),
        (("selection", "candidates", 0, "loss"), float("nan")),
        (("selection", "loss"), float("nan")),
    ],
)
def test_weights_that_do_not_add_up_are_refused(stored, path, value):
    with pytest.raises(ValueError, match=r"weights|losses"):
        CalibrationForest.from_dict(replaced(stored, path, value))


def test_another_weight_of_the_uncalibrated_probabilities_is_refused(stored):
    halved = {**stored["model"], **halve_weights(stored["model"])}
    with pytest.raises(ValueError, match="but selection says"):
        CalibrationForest.from_dict({**stored, "model": halved})


def halve_weights(model):
    """The weights of a stored model, halved."""
    names = ("weight", "tree_weight")
    return {name: [weight / 2 for weight in model[name]] for name in names}


def test_margins_are_neither_uncalibrated_nor_probabilities_to_correct():
    X, y, scores = make_rows(100)
    margins = 3 * np.log(scores[:, 1] / scores[:, 0])
    forest = few(score_type="logit").fit(X, y, margins)
    stored = forest.to_dict()
    for change in (halve_weights(stored["model"]), {"offset": True}):
        changed = {**stored, "selection": None, "model": {**stored["model"], **change}}
        CalibrationForest.from_dict(changed)
        with pytest.raises(ValueError, match=r"margins of .* cannot be left uncalibrated"):
            CalibrationForest.from_dict({**changed, "score_type": "margin"})
