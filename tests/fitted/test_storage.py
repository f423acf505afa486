"""Trees as JSON: exact, whole or not at all, and wary of what they read."""

import copy
import json
import os
import stat
import threading

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

from caltree import CalibrationForest, CalibrationTree, PublishedCalibrationTree

from ..support.marks import new_values
from ..support.trees import (
    FIXED,
    FIXED_BOOSTED,
    assert_probabilities,
    boosted_tree,
    fixed_boosted_tree,
    fixed_tree,
    make_frame,
    make_rows,
    same_tree,
)

pytestmark = new_values

every_engine = pytest.mark.parametrize(
    "make", [fixed_tree, fixed_boosted_tree], ids=["shrunken", "boosted"]
)

# There and back


def assert_survives(tree, X, scores):
    text = json.dumps(tree.to_dict(), allow_nan=False)
    again = type(tree).from_dict(json.loads(text))
    assert same_tree(tree, again)
    assert np.array_equal(tree.predict_proba(X, scores), again.predict_proba(X, scores))
    assert again.classes_.tolist() == tree.classes_.tolist()
    assert again.to_text() == tree.to_text()
    assert again.to_dict()["model"] == tree.to_dict()["model"]
    return again


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1, 2]),
        np.array([-5, 0, 2**62]),
        np.array([0.0, 1.0, 1e300]),
        np.array(["", "naïve", "x" * 99]),
        np.array(["a", "b", "c"], dtype=object),
        np.array([False, True]),
    ],
    ids=["int", "large int", "float", "string", "object", "bool"],
)
def test_labels_of_every_type_survive(labels):
    X, y, scores = make_rows(n_classes=len(labels))
    tree = fixed_tree().fit(X, labels[y], scores)
    again = assert_survives(tree, X, scores)
    assert [type(label) for label in again.classes_.tolist()] == [
        type(label) for label in tree.classes_.tolist()
    ]


CATEGORIES = {
    "strings": ["red", "green", "\u2028\ud800\x00"],
    "booleans": [True, False, True],
    "integers": pd.Categorical([3, -(2**60), 7]),
    "floats": pd.Categorical([0.1, 1e300, -2.5]),
    "declared": pd.Categorical(["c", "a", "b"], categories=["z", "c", "b", "a"]),
}


@every_engine
@pytest.mark.parametrize("kind", CATEGORIES)
def test_categories_of_every_type_survive(kind, make):
    values = pd.Series(CATEGORIES[kind], dtype=object if kind == "strings" else None)
    code = np.arange(60) % 3
    frame = pd.DataFrame({"c": values.iloc[code].reset_index(drop=True), "n": np.arange(60.0)})
    frame.loc[50:, "n"] = None
    y = np.where(np.arange(60) % 7 == 0, 0, code == 1).astype(int)
    tree = make().fit(frame, y, np.linspace(0.1, 0.9, 60))
    assert 0 in tree.model_.attribute
    assert_survives(tree, frame, np.linspace(0.1, 0.9, 60))


CHOSEN = {
    CalibrationTree: (),
    PublishedCalibrationTree: ("boosting_iterations_", "ccp_alpha_"),
}


@pytest.mark.parametrize(
    "make",
    [CalibrationTree, boosted_tree, PublishedCalibrationTree],
    ids=["shrunken", "boosted", "published"],
)
def test_everything_at_once_survives(make):
    frame, y, scores = make_frame()
    tree = make(max_depth=5, random_state=3).fit(frame, y, scores)
    assert tree.get_n_leaves() > 1
    again = assert_survives(tree, frame, scores)
    assert again.get_params() == tree.get_params()
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert np.array_equal(again.feature_importances_, tree.feature_importances_, equal_nan=True)
    for name in ("n_features_in_", "score_type_", "n_scores_", "selection_", *CHOSEN[type(tree)]):
        assert getattr(again, name) == getattr(tree, name)
    assert vars(again).keys() == vars(tree).keys()
    other = frame.assign(colour="mauve")
    assert np.array_equal(again.apply(other), tree.apply(other))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
@pytest.mark.parametrize("k", [1, 2])
def test_scores_of_every_kind_survive(n_classes, score_type, k):
    X, y, scores = make_rows(n_classes=n_classes)
    scores = np.hstack([scores, scores[::-1]][:k])
    tree = CalibrationTree(score_type=score_type).fit(X, y, scores)
    again = assert_survives(tree, X, scores)
    has_offset = score_type != "margin" and (n_classes, k) != (2, 1)
    assert again.model_.offset is tree.model_.offset is has_offset


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_that_stay_uncalibrated_survive(n_classes):
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(n_classes), 200)
    y = (scores.cumsum(axis=1) < rng.random((200, 1))).sum(axis=1)
    X = rng.normal(size=(200, 2))
    tree = CalibrationTree(path_averaging=False).fit(X, y, scores)
    assert tree.selection_.chosen == "uncalibrated"
    assert np.array_equal(tree.predict_proba(X, scores), scores)
    assert_survives(tree, X, scores)


def test_a_column_without_values_survives():
    X = pd.DataFrame({"n": [0.0, 1.0] * 20, "empty": pd.Series([None] * 40, dtype="string")})
    scores = np.linspace(0.1, 0.9, 40)
    assert_survives(fixed_tree().fit(X, [0, 1] * 20, scores), X, scores)


def test_parameters_that_cannot_be_written_are_left_at_their_defaults():
    X, y, scores = make_rows()
    tree = CalibrationTree(cv=KFold(3), random_state=np.random.RandomState(0), max_depth=2)
    again = assert_survives(tree.fit(X, y, scores), X, scores)
    assert again.cv == 5 and again.random_state is None and again.max_depth == 2


# Files


def test_a_file_keeps_the_tree(tmp_path):
    frame, y, scores = make_frame()
    tree = fixed_tree().fit(frame, y, scores)
    for path in (tmp_path / "tree.json", str(tmp_path / "tree 2.json")):
        tree.save(path)
        again = CalibrationTree.load(path)
        assert again.to_dict() == tree.to_dict()
        assert np.array_equal(again.predict_proba(frame, scores), tree.predict_proba(frame, scores))


@pytest.fixture
def tree():
    X, y, scores = make_rows()
    return fixed_tree(max_depth=2).fit(X, y, scores)


@pytest.mark.parametrize("before", [None, "precious"])
@pytest.mark.parametrize("where", ["pathlib.Path.write_bytes", "os.replace"])
def test_a_file_appears_whole_or_not_at_all(tree, tmp_path, monkeypatch, before, where):
    path = tmp_path / "tree.json"
    if before is not None:
        path.write_text(before)

    def fail(target, *args):
        if where == "pathlib.Path.write_bytes":
            target.write_text('{"format": ')
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(KeyboardInterrupt):
            tree.save(path)
    assert [item.name for item in tmp_path.iterdir()] == ([] if before is None else ["tree.json"])
    assert before is None or path.read_text() == before
    tree.save(path)
    assert same_tree(CalibrationTree.load(path), tree)


def test_columns_that_the_command_adds_do_not_matter(tree):
    stored = {**tree.to_dict(), "columns": {"scores": ["p"], "attributes": ["a"]}}
    again = CalibrationTree.from_dict(stored)
    assert same_tree(again, tree)
    assert again.to_dict() == tree.to_dict()
    with pytest.raises(ValueError, match="must have exactly the keys"):
        CalibrationTree.from_dict({**stored, "other": 1})


def test_what_is_no_file_is_written_to_directly(tree, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    tree.save(pipe)
    reader.join()
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert type(tree).from_dict(json.loads(found[0])).to_dict() == tree.to_dict()


def test_a_link_to_a_file_stays_a_link(tree, tmp_path):
    (tmp_path / "link.json").symlink_to(tmp_path / "tree.json")
    tree.save(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert same_tree(CalibrationTree.load(tmp_path / "tree.json"), tree)


def test_a_value_that_json_lacks_leaves_no_file(tree, tmp_path):
    tree.set_params(kept_gain=float("nan"))
    with pytest.raises(ValueError, match="JSON"):
        tree.save(tmp_path / "tree.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_file_has_the_usual_permissions(tree, tmp_path, mask):
    before = os.umask(mask)
    try:
        tree.save(tmp_path / "tree.json")
        (tmp_path / "usual").touch()
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {0o666 & ~mask}


BAD_FILES = {
    "empty": b"",
    "truncated": None,
    "no JSON": b"tree: yes",
    "no text": b"\x80\x04\x95\xff",
    "NaN": b'{"format": "caltree.CalibrationTree", "version": NaN}',
    "infinity": b'{"format": "caltree.CalibrationTree", "version": -Infinity}',
    "deep": b"[" * 100_000 + b"]" * 100_000,
    "long number": b"1" * 10_000,
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_file_that_is_no_tree_is_named(tree, tmp_path, kind):
    path = tmp_path / "tree.json"
    content = BAD_FILES[kind]
    if content is None:
        content = json.dumps(tree.to_dict()).encode()[:-100]
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"tree\.json is not a stored calibrator: "):
        CalibrationTree.load(path)


def test_a_pickle_is_not_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "sprung"),))

    import pickle

    (tmp_path / "tree.json").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="is not a stored calibrator"):
        CalibrationTree.load(tmp_path / "tree.json")
    assert not (tmp_path / "sprung").exists()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        CalibrationTree.load(tmp_path / "tree.json")
    with pytest.raises(FileNotFoundError):
        fixed_tree().fit([[0], [1]] * 9, [0, 1] * 9, [0.5] * 18).save(tmp_path / "no" / "tree.json")


# Anything malformed is a ValueError


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


def replaced(stored, path, value):
    """A copy of nested dicts and lists with the item at the end of the path replaced."""
    if not path:
        return value
    changed = copy.copy(stored)
    key, *rest = path
    changed[key] = replaced(stored[key], rest, value) if rest else value
    return changed


def paths(item, start=()):
    """The way to everything inside nested dicts and lists."""
    yield start
    for key in (
        item if isinstance(item, dict) else range(len(item) if isinstance(item, list) else 0)
    ):
        yield from paths(item[key], (*start, key))


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


@pytest.mark.parametrize("name", sorted(FIXED_BOOSTED))
def test_stored_parameters_are_the_parameters(stored, name):
    assert stored["params"][name] == FIXED_BOOSTED[name]


@pytest.mark.parametrize("name", sorted(FIXED))
def test_stored_parameters_of_a_tree_of_shrunken_node_models(name):
    X, y, scores = make_rows()
    assert fixed_tree().fit(X, y, scores).to_dict()["params"][name] == FIXED[name]


def test_lists_of_nominal_columns_are_stored_with_the_other_parameters(tmp_path):
    X = np.arange(40.0).reshape(20, 2) % 3
    tree = CalibrationTree(categorical_features=np.array([0]), max_depth=np.int64(2))
    tree.fit(X, [0, 1] * 10, scores=np.linspace(0.1, 0.9, 20))
    tree.save(tmp_path / "tree.json")
    again = CalibrationTree.load(tmp_path / "tree.json")
    assert again.categorical_features == [0]
    assert again.max_depth == 2
