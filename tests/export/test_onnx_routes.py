"""Rows of an ONNX model go where the tree sends them, whatever the tree looks like."""

import math

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationTree
from caltree._fitted.model import FittedModel
from caltree._inputs.attributes import Attribute, Attributes
from caltree.export.onnx import to_onnx

from ..support.marks import new_values
from ..support.onnx_cases import MISSING, probabilities
from ..support.trees import both_engines, fixed_tree

pytestmark = new_values

GRID = [-1.5, -0.0, 0.1, 2.0**-24, 7.0]
TOWNS = [f"town {number}" for number in range(12)]
CODES = [-3, 0, 2**53, 7]
COLUMNS = (
    Attribute("number", None, 0.0),
    Attribute("town", tuple(TOWNS), 4.0),
    Attribute("code", tuple(CODES), 1.0),
    Attribute("flag", (False, True), 1.0),
)


def random_tree(seed, n_classes):
    """A tree no fit would find: children without categories, pieces without end, empty nodes."""
    rng = np.random.default_rng(seed)
    nodes, branches, pending = {}, [], [(0, 1.0 if seed % 3 else 0.75)]
    n_nodes, most = 1, int(rng.integers(1, 60))
    while pending:
        node, left = pending.pop()
        if n_nodes >= most:
            nodes[node] = [-1, 0.0, -1, 0, 0, -1, left]
            continue
        attribute = int(rng.integers(len(COLUMNS)))
        categories = COLUMNS[attribute].categories
        n_children = 2 if categories is None else int(rng.integers(2, 5))
        to = rng.integers(0, n_children, len(categories or ())).tolist()
        # Some row can go to the last child, or there would be fewer.
        free = categories is None or n_children - 1 in to
        missing = int(rng.integers(n_children)) if free else n_children - 1
        own = left * rng.choice([0.0, 0.3])
        threshold = rng.choice([*GRID, np.finfo(float).max])
        table = -1 if categories is None else len(branches)
        nodes[node] = [attribute, threshold, n_nodes, n_children, missing, table, own]
        branches += to
        # Depth first: all nodes below the first child come before those below the second.
        pending += [(n_nodes + child, left - own) for child in reversed(range(n_children))]
        n_nodes += n_children
    nodes = [nodes[node] for node in range(n_nodes)]
    columns = map(np.array, zip(*nodes, strict=True))
    attribute, threshold, first, count, missing, table, weight = columns
    whole = {"attribute": attribute, "first_child": first, "n_children": count, "table": table}
    zeros = np.zeros(n_nodes)
    n_states, n_scores = (1, 2) if n_classes == 2 else (n_classes, n_classes)
    return FittedModel(
        Attributes(COLUMNS, tuple(column.name for column in COLUMNS)),
        **{name: values.astype(np.int32) for name, values in whole.items()},
        threshold=threshold.astype(float),
        missing=missing.astype(np.int32),
        branches=np.array(branches, dtype=np.int32),
        weight=weight.astype(float),
        missing_rows=zeros,
        n_rows=zeros,
        gain=zeros,
        parameters=rng.normal(size=(n_nodes, n_states, 1 + n_scores)),
        step=np.ones(1 + n_scores),
        roots=np.zeros(1, dtype=np.int32),
        n_scores=n_scores,
        offset=False,
    )


def random_rows(n_rows, seed):
    """Values at, just above and just below every cut, missing and unseen ones."""
    rng = np.random.default_rng(seed)
    near = [math.nextafter(cut, way) for cut in GRID for way in (-math.inf, math.inf)]
    numbers = [*GRID, *near, math.nan, math.inf, -math.inf, 1e308]
    codes = [*CODES, 1.0, -2.9999999999999996, 2.0**53 - 1, math.nan]
    return pd.DataFrame(
        {
            "number": rng.choice(numbers, n_rows),
            "town": pd.Series(rng.choice([*TOWNS, "unseen", None], n_rows), dtype=object),
            "code": rng.choice(np.array(codes, dtype=float), n_rows),
            "flag": pd.Series(rng.choice([True, False, None], n_rows), dtype="boolean"),
        }
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_any_tree(n_classes):
    table = random_rows(400, seed=1)
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(n_classes), 400)
    calibrator = CalibrationTree(score_type="probability", do_no_harm=False)
    calibrator.fit(np.zeros((40, 1)), np.arange(40) % n_classes, scores[:40])
    n_shared = 0
    for seed in range(60):
        calibrator.model_ = FittedModel.from_dict(random_tree(seed, n_classes).to_dict())
        model = to_onnx(calibrator, dtype="float64", missing_text=MISSING)
        found = probabilities(model, table, scores, np.float64)
        expected = calibrator.predict_proba(table, scores)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
        n_shared += has_shared_node(model)
    assert n_shared > 10


def has_shared_node(model):
    """Whether several tests of an ensemble lead to one node."""
    for node in model.graph.node:
        if node.op_type == "TreeEnsembleRegressor":
            lists = {each.name: list(each.ints) for each in node.attribute}
            modes = next(each.strings for each in node.attribute if each.name == "nodes_modes")
            ways = lists["nodes_truenodeids"], lists["nodes_falsenodeids"]
            targets = [way[i] for i, mode in enumerate(modes) if mode != b"LEAF" for way in ways]
            return len(set(targets)) < len(targets)
    return False


@both_engines
def test_many_categories(make):
    rng = np.random.default_rng(0)
    towns = rng.integers(0, 400, 8000)
    X = pd.DataFrame({"town": [f"t{town}" for town in towns], "size": rng.random(8000)})
    scores = rng.random(8000)
    shift = rng.normal(scale=2.0, size=400)[towns] * (X["size"].to_numpy() > 0.5)
    y = rng.random(8000) < 1 / (1 + np.exp(-np.log(scores / (1 - scores)) - shift))
    tree = make(min_samples_split=50).fit(X, y, scores)
    assert tree.get_n_leaves() > 20
    found = probabilities(to_onnx(tree, dtype="float64"), X, scores, np.float64)
    np.testing.assert_allclose(found, tree.predict_proba(X, scores), rtol=0, atol=1e-12)


def test_numbers_of_single_precision_at_the_cuts():
    X = np.array([[0.1], [0.1], [0.3], [0.3]] * 20)
    y = np.array([0, 1, 1, 1] * 20)
    tree = fixed_tree().fit(X, y, scores=[0.5] * 80)
    cut = tree.model_.threshold[0]
    near = np.float32([cut, np.nextafter(np.float32(cut), np.float32(1))])
    near = np.append(near, np.nextafter(np.float32(cut), np.float32(-1)))[:, np.newaxis]
    found = probabilities(to_onnx(tree, dtype="float32"), near, [0.5] * 3, np.float32)
    np.testing.assert_allclose(found, tree.predict_proba(near, [0.5] * 3), rtol=0, atol=1e-7)
    assert np.ptp(found[:, 0]) > 0.1
