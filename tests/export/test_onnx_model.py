"""What an ONNX model takes, gives and says of itself, and what cannot become one."""

import json
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import caltree
from caltree import CalibrationTree, IsotonicScaling, PlattScaling
from caltree.export.onnx import checks as onnx_checks
from caltree.export.onnx import to_onnx

from ..support.classifiers import Told
from ..support.forests import few
from ..support.onnx_cases import MISSING, feeds, probabilities, session
from ..support.trees import fixed_tree, make_frame, make_rows

HOSTILE = ["scores", "", "probabilities", "scores_", "Cast_0", "two\nlines \"'`;", "Ünicode 😀"]


def hostile_frame(n_rows=300):
    X, y, scores = make_rows(n_rows)
    rng = np.random.default_rng(3)
    columns = [X[:, 0], rng.choice(["a", "b"], n_rows), X[:, 1], *rng.normal(size=(3, n_rows))]
    columns.append(np.where(X[:, 0] > 0.3, "high", "low"))
    return pd.DataFrame(dict(zip(HOSTILE, columns, strict=True))), y, scores[:, 1]


def with_categories(tree, categories):
    """A tree whose first attribute has other categories."""
    columns = tree.model_.attributes.columns
    first = replace(columns[0], categories=categories)
    known = replace(tree.model_.attributes, columns=(first, *columns[1:]))
    tree.model_ = replace(tree.model_, attributes=known)
    return tree


def test_a_table_of_numbers_is_one_matrix():
    X, y, scores = make_rows()
    X[:, 2] = X[:, 2] > 0
    frame = pd.DataFrame(X, columns=["b", "a", "flag"]).astype({"flag": bool})
    for table in (X, frame):
        tree = fixed_tree().fit(table, y, scores)
        model = tree.to_onnx(dtype="float64")
        assert [each.name for each in model.graph.input] == ["X", "scores"]
        found = probabilities(model, X, scores, np.float64)
        expected = tree.predict_proba(table, scores)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_columns_of_hostile_names_are_inputs_of_their_own():
    frame, y, scores = hostile_frame()
    tree = fixed_tree().fit(frame, y, scores)
    model = tree.to_onnx(dtype="float64")
    names = [each.name for each in model.graph.input]
    assert names == ["scores__", "_", "probabilities_", *HOSTILE[3:], "scores"]
    assert [each.name for each in model.graph.output] == ["probabilities"]
    found = probabilities(model, frame, scores, np.float64)
    np.testing.assert_allclose(found, tree.predict_proba(frame, scores), rtol=0, atol=1e-12)


def test_one_or_two_columns_of_scores_as_in_training():
    X, y, scores = make_rows()
    for given, width in ((scores, 2), (scores[:, 1], 1)):
        model = fixed_tree().fit(X, y, given).to_onnx()
        assert session(model).get_inputs()[-1].shape == ["rows", width]


def test_global_calibrators_take_scores_alone():
    _, y, scores = make_rows()
    model = to_onnx(PlattScaling().fit(None, y, scores))
    assert [each.name for each in model.graph.input] == ["scores"]


def test_the_method_and_the_function_are_the_same():
    X, y, scores = make_rows()
    for calibrator in (CalibrationTree(), few()):
        calibrator.fit(X, y, scores)
        one, other = calibrator.to_onnx(dtype="float64"), to_onnx(calibrator, dtype="float64")
        assert one.SerializeToString() == other.SerializeToString()


def test_a_model_says_what_it_is():
    frame, y, scores = hostile_frame()
    tree = fixed_tree().fit(frame, np.array(["no", "yes"])[y], scores)
    model = tree.to_onnx(missing_text=MISSING)
    assert (model.producer_name, model.producer_version) == ("caltree", caltree.__version__)
    said = session(model).get_modelmeta().custom_metadata_map
    assert json.loads(said["classes"]) == ["no", "yes"]
    assert json.loads(said["attributes"]) == HOSTILE
    assert said["caltree_version"] == caltree.__version__
    assert said["calibrator"] == "CalibrationTree"
    assert said["score_type"] == "probability"
    assert said["missing_text"] == MISSING


def test_columns_that_split_nothing_are_not_read():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.zeros(400), np.arange(400) % 2, np.zeros(400)])
    y = rng.random(400) < np.where(X[:, 1] > 0, 0.9, 0.2)
    tree = fixed_tree(max_depth=1).fit(X, y, np.full(400, 0.5))
    running = session(tree.to_onnx())
    given = feeds(running, X.copy(), np.full(400, 0.5), np.float64)
    given["X"][:, [0, 2]] = np.nan
    np.testing.assert_allclose(
        running.run(None, given)[0], tree.predict_proba(X, np.full(400, 0.5)), atol=1e-7
    )


def test_a_missing_string_is_what_missing_text_says():
    frame, y, scores = make_frame()
    tree = fixed_tree().fit(frame[["colour", "number"]], y, scores[:, 1])
    gap = frame[["colour", "number"]].assign(colour=None)
    expected = tree.predict_proba(gap, scores[:, 1])
    for text in ("", MISSING):
        running = session(tree.to_onnx(dtype="float64", missing_text=text))
        given = feeds(running, gap, scores[:, 1], np.float64)
        given["colour"] = np.full((len(gap), 1), text, dtype=object)
        np.testing.assert_allclose(running.run(None, given)[0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"dtype": "float16"}, ValueError, "dtype must be one of 'float32', 'float64', got"),
        ({"missing_text": None}, TypeError, "missing_text must be a string, got None"),
        ({"missing_text": "\ud800"}, ValueError, "missing_text is '\\\\ud800'"),
        ({"missing_text": "red"}, ValueError, "'red' is a category of attribute 'colour'; choose"),
    ],
)
def test_wrong_arguments(changed, error, message):
    frame, y, scores = make_frame()
    tree = fixed_tree().fit(frame, y, scores)
    with pytest.raises(error, match=message):
        tree.to_onnx(**changed)


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        (("a", 1), "'x0' has strings and numbers among its categories"),
        (("a", "\udcff"), "'x0' has '\\\\udcff', which is not valid Unicode"),
        ((0.5, 0.1), "'x0' has the category 0.1, which float32 cannot hold; use dtype='float64'"),
        ((0, 2**24 + 1), "has the category 16777217, which float32 cannot hold"),
        ((0, 1e300), "has the category 1e[+]300, which float32 cannot hold"),
    ],
)
def test_categories_that_no_tensor_holds(categories, message):
    X, y, scores = make_rows()
    tree = with_categories(fixed_tree(max_depth=0).fit(X, y, scores), categories)
    with pytest.raises(ValueError, match=message):
        tree.to_onnx(dtype="float32")


def test_integers_beyond_double_precision():
    X, y, scores = make_rows()
    tree = with_categories(fixed_tree(max_depth=0).fit(X, y, scores), (0, 2**53 + 1))
    with pytest.raises(ValueError, match=r"float64 cannot hold; use strings$"):
        tree.to_onnx(dtype="float64")


def test_what_is_not_fitted_or_not_ours():
    with pytest.raises(NotFittedError):
        CalibrationTree().to_onnx()
    with pytest.raises(NotFittedError):
        to_onnx(IsotonicScaling())
    with pytest.raises(TypeError, match=r"Told cannot be written .*register_converter\(\)"):
        to_onnx(Told())


def test_more_nodes_than_a_model_holds(monkeypatch):
    X, y, scores = make_rows()
    forest = few().fit(X, y, scores)
    monkeypatch.setattr(onnx_checks, "_MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"nodes need about .* fit fewer trees"):
        forest.to_onnx()


def test_how_to_install_what_is_missing(monkeypatch):
    X, y, scores = make_rows()
    tree = fixed_tree().fit(X, y, scores)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"ONNX needs onnx: pip install caltree\[onnx\]$"):
        tree.to_onnx()
