"""ONNX models say what `predict_proba` says."""

import numpy as np
import pytest

from caltree import CalibrationForest, IdentityCalibrator
from caltree.export.onnx import to_onnx

from ..support.export_cases import CASES, fitted, hostile_rows
from ..support.forests import few
from ..support.marks import new_values
from ..support.onnx_cases import MISSING, feeds, probabilities, session, single
from ..support.trees import fixed_tree, make_frame, make_rows

pytestmark = new_values

LARGE = {"averaged", "averaged, ten classes", "published, ten classes", "forest"}


@pytest.mark.parametrize("name", CASES)
def test_double_precision_loses_nothing(name):
    calibrator = fitted(name)
    table, scores = hostile_rows(name, 5000)
    model = to_onnx(calibrator, dtype="float64", missing_text=MISSING)
    found = probabilities(model, table, scores, np.float64)
    expected = calibrator.predict_proba(table, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert found.min() >= 0.0 and found.max() <= 1.0


@pytest.mark.parametrize("name", CASES)
def test_single_precision_loses_the_last_digits(name):
    calibrator, table, scores = single(name, 100_000 if name in LARGE else 5000)
    model = to_onnx(calibrator, missing_text=MISSING)
    found = probabilities(model, table, scores, np.float32)
    expected = calibrator.predict_proba(table, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["averaged", "platt", "uncalibrated"])
def test_small_probabilities_keep_their_digits(name):
    calibrator = fitted(name)
    table, _ = hostile_rows(name, 2000)
    scores = np.logspace(-16, -3, 2000)
    for given in (scores, 1.0 - scores):
        model = to_onnx(calibrator, dtype="float64", missing_text=MISSING)
        found = probabilities(model, table, given, np.float64)
        expected = calibrator.predict_proba(table, given)
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_forest_of_a_hundred_trees_that_split_on_scores(n_classes):
    X, y, scores = make_rows(2000, n_classes)
    forest = CalibrationForest(random_state=0, max_depth=8).fit(X[:500], y[:500], scores[:500])
    assert forest.model_.n_trees == 100
    assert (forest.model_.attribute >= X.shape[1]).any()
    found = probabilities(to_onnx(forest, dtype="float64"), X, scores, np.float64)
    np.testing.assert_allclose(found, forest.predict_proba(X, scores), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 10])
@pytest.mark.parametrize("make", [fixed_tree, few], ids=["tree", "forest"])
def test_nothing_is_split(make, n_classes):
    X, y, scores = make_rows(500, n_classes)
    calibrator = make(max_depth=0).fit(X, y, scores)
    found = probabilities(to_onnx(calibrator, dtype="float64"), X, scores, np.float64)
    np.testing.assert_allclose(found, calibrator.predict_proba(X, scores), rtol=0, atol=1e-12)


def test_probabilities_that_sum_to_one_but_for_rounding_stay_as_they_are():
    scores = np.array([[0.25, 0.25, 0.5 + 5e-13], [0.25, 0.25, 0.5 + 2e-12], [0.0, 0.0, 0.0]])
    identity = IdentityCalibrator(score_type="probability").fit(None, [0, 1, 2], scores)
    found = probabilities(to_onnx(identity, dtype="float64"), None, scores, np.float64)
    assert np.array_equal(found, identity.predict_proba(None, scores))
    assert np.array_equal(found[0], scores[0])


@pytest.mark.parametrize("name", ["averaged", "forest, ten classes", "uncalibrated", "isotonic"])
@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_few_rows(name, n_rows):
    calibrator = fitted(name)
    table, scores = hostile_rows(name, 2)
    model = to_onnx(calibrator, dtype="float64", missing_text=MISSING)
    found = probabilities(model, table[:n_rows], scores[:n_rows], np.float64)
    expected = calibrator.predict_proba(table, scores)[:n_rows]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_blocks_of_rows_are_computed_one_after_the_other():
    name = "forest, ten classes"
    calibrator = fitted(name)
    model = to_onnx(calibrator, dtype="float64", missing_text=MISSING)
    running = session(model)
    assert "Scan" in [node.op_type for node in model.graph.node]
    table, scores = hostile_rows(name, 3000)
    whole = running.run(None, feeds(running, table, scores, np.float64))[0]
    for n_rows in (1, 7, 1024, 1025):
        part = running.run(None, feeds(running, table[:n_rows], scores[:n_rows], np.float64))[0]
        np.testing.assert_allclose(part, whole[:n_rows], rtol=0, atol=1e-15)


def test_the_model_of_a_tree_has_no_loop():
    model = to_onnx(fitted("averaged"), dtype="float64", missing_text=MISSING)
    assert {"Scan", "Loop", "If"}.isdisjoint(node.op_type for node in model.graph.node)


def with_identifiers(frame):
    return frame.assign(customer=[f"c{j}" for j in range(len(frame))], row=np.arange(len(frame)))


@pytest.mark.parametrize("kinds", [["number", "count"], ["colour", "number"]], ids=["X", "columns"])
def test_identifiers_need_not_go_in(kinds):
    frame, y, scores = make_frame(300)
    frame = with_identifiers(frame[kinds])[["row", *kinds, "customer"]]
    with pytest.warns(UserWarning, match="'row', 'customer' look like identifiers"):
        tree = fixed_tree().fit(frame, y, scores)
    assert tree.get_n_leaves() > 1
    model = to_onnx(tree, dtype="float64", missing_text=MISSING)
    names = {given.name for given in model.graph.input}
    assert names == ({"X", "scores"} if "colour" not in kinds else {*kinds, "scores"})
    given = frame[kinds].astype({"count": float} if "count" in kinds else {})
    found = probabilities(model, given, scores, np.float64)
    np.testing.assert_allclose(found, tree.predict_proba(frame, scores), rtol=0, atol=1e-12)


def test_identifiers_of_arrays_keep_their_places():
    X, y, scores = make_rows(300)
    X = np.column_stack([np.arange(300.0), X])
    with pytest.warns(UserWarning, match="'x0' looks like an identifier"):
        tree = fixed_tree().fit(X, y, scores)
    found = probabilities(to_onnx(tree, dtype="float64"), X, scores, np.float64)
    np.testing.assert_allclose(found, tree.predict_proba(X, scores), rtol=0, atol=1e-12)
