"""ONNX models say what `predict_proba` says."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from caltree import (
    CalibrationBoosting,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    PlattScaling,
)
from caltree._inputs.scores import ScoreKind
from caltree.export.onnx import to_onnx

from ..support.boosting_cases import make_rows as boosting_rows
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
    calibrator, table, scores = single(name, 20_000 if name in LARGE else 5000)
    model = to_onnx(calibrator, dtype="float32", missing_text=MISSING)
    found = probabilities(model, table, scores, np.float32)
    expected = calibrator.predict_proba(table, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_scores_near_one_keep_their_digits_unless_asked():
    random = np.random.default_rng(0)
    odds = random.normal(0, 15, 4000)
    scores = 1 / (1 + np.exp(-odds))
    y = random.random(4000) < 1 / (1 + np.exp(-odds / 10))
    platt = PlattScaling().fit(None, y, scores)
    expected = platt.predict_proba(None, scores)
    found = probabilities(to_onnx(platt), None, scores, np.float64)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    rounded = probabilities(to_onnx(platt, dtype="float32"), None, scores, np.float32)
    assert abs(rounded - expected).max() > 0.01


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


@pytest.mark.parametrize("name", ["boosting", "boosting of two classifiers, three classes"])
@pytest.mark.parametrize("weights", [(0.25, 0.5), (1.0, 0.0), (0.5, 0.5)])
def test_the_curve_of_boosted_trees_has_a_weight_of_its_own(name, weights):
    calibrator = copy(fitted(name))
    names = {"curve_weight": weights[0], "boosted_weight": weights[1]}
    calibrator.model_ = replace(calibrator.model_, **names)
    table, scores = hostile_rows(name, 3000)
    model = to_onnx(calibrator, dtype="float64", missing_text=MISSING)
    found = probabilities(model, table, scores, np.float64)
    expected = calibrator.predict_proba(table, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_boosted_trees_at_their_full_size(n_classes):
    X, y, scores = boosting_rows(2000, n_classes)
    fitted = CalibrationBoosting().fit(X, y, scores)
    assert fitted.model_.n_trees > 30 and fitted.model_.boosted_weight > 0.0
    model = to_onnx(fitted, dtype="float64", missing_text=MISSING)
    found = probabilities(model, X, scores, np.float64)
    np.testing.assert_allclose(found, fitted.predict_proba(X, scores), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 10])
def test_a_forest_of_a_hundred_trees_that_split_on_scores(n_classes):
    X, y, scores = make_rows(2000, n_classes)
    # What no curve of the scores can say.
    y = np.where(np.abs(scores[:, 1] - 0.5) < 0.2, n_classes - 1 - y, y)
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


# Rows of double precision, rounded to single precision


def steps(n_rows, n_steps, seed):
    """Numbers of steps, a few different ones between 0 and `n_steps`, and no two of one step."""
    rng = np.random.default_rng(seed)
    different = np.arange(n_steps) + rng.uniform(0.0, 0.4, n_steps)
    return rng.choice(different, n_rows), rng


@pytest.mark.parametrize(
    "calibrator",
    [
        CalibrationTree(tree_method="exact"),
        CalibrationTree(tree_method="hist", max_bins=30),
        CalibrationForest(10, random_state=0),
    ],
    ids=["exact", "hist", "forest"],
)
def test_rounded_attributes_take_the_same_branch(calibrator):
    number, rng = steps(600, 40, 0)
    y = rng.random(600) < np.where(number > 17, 0.9, 0.1)
    X = (1.0 + number * 2.0**-23)[:, np.newaxis]
    calibrator = clone(calibrator).fit(X, y, scores=np.full(600, 0.5))
    assert (calibrator.model_.attribute >= 0).any()
    new = 1.0 + rng.uniform(0, 40, (5000, 1)) * 2.0**-23
    scores = np.full((5000, 1), 0.5)
    found = probabilities(calibrator.to_onnx(dtype="float32"), new, scores, np.float32)
    np.testing.assert_allclose(found, calibrator.predict_proba(new, scores), atol=1e-6)
    rounded = calibrator.predict_proba(new.astype(np.float32), scores)
    np.testing.assert_allclose(found, rounded, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("low", [0.25, 1.0 - 2.0**-19])
def test_rounded_scores_take_the_same_branch(n_classes, low):
    def make_scores(number, rng):
        first = low + number * 2.0**-24
        shares = rng.dirichlet(np.ones(n_classes - 1), len(number))
        columns = np.column_stack([first, (1.0 - first)[:, np.newaxis] * shares])
        return columns[:, ::-1] if n_classes == 2 else columns

    number, rng = steps(500, 25, 0)
    scores = make_scores(number, rng)
    high, low_class = (1, 0) if n_classes == 2 else (0, 1)
    y = np.where(rng.random(500) < np.where(number > 11, 0.9, 0.1), high, low_class)
    y[:n_classes] = np.arange(n_classes)
    forest = CalibrationForest(10, max_bins=2000, do_no_harm=False, random_state=0)
    forest.fit(np.zeros((500, 1)), y, scores=scores)
    model, kind = forest.model_, ScoreKind(n_classes, "probability")
    new = make_scores(rng.uniform(0, 25, 5000), rng)
    seen, rounded = (kind.regressors(each.astype(float)) for each in (new, new.astype(np.float32)))
    for column in range(seen.shape[1]):
        thresholds = model.threshold[model.attribute == 1 + column]
        for threshold in thresholds[thresholds < 1e300]:
            assert np.array_equal(seen[:, column] > threshold, rounded[:, column] > threshold)
    assert np.isin(model.attribute, 1 + np.arange(seen.shape[1])).any()
