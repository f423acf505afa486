"""Trees as JSON: exact, and in files, whole or not at all."""

import json
import os
import stat
import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold

from caltree import CalibrationTree, PublishedCalibrationTree

from ..support.marks import new_values
from ..support.trees import (
    FIXED,
    FIXED_BOOSTED,
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


@pytest.mark.parametrize("name", sorted(FIXED_BOOSTED))
def test_stored_parameters_are_the_parameters(name):
    X, y, scores = make_rows()
    assert fixed_boosted_tree().fit(X, y, scores).to_dict()["params"][name] == FIXED_BOOSTED[name]


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
