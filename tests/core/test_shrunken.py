"""Shrunken node models and residual splits: the core and its twin, the specification in NumPy.

First stage by stage, each from what the core itself made of the stage before; then whole trees.
Sums are added up in different orders, so that what is equal but for rounding may be told apart
differently. Wherever core and specification part, a test shows that it is such a tie, and ties
must be few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from caltree import _core

from ..spec import pruning_sequence
from ..spec import shrunken as spec
from ..support.histogram_cases import examples
from ..support.shrunken_cases import (
    NO_LIMIT,
    Case,
    branches,
    cases,
    cases_and_limits,
    core_nodes,
    core_parameters,
    core_tree,
    limits,
    possible_gains,
    scaled_parameters,
)
from ..support.trees import finished

TIE = 1e-9  # times the size of what is compared
SAME_PROBABILITY = 1e-6  # where the last, tiny step of a fit may be taken or not


# -- The splits and predictions of the core -------------------------------------------------------


def core_split(sample: spec.Sample, arrays: dict[str, Any], node: int) -> spec.Split | None:
    """The split of a node, in the words of the specification."""
    attribute = int(arrays["attribute"][node])
    if attribute < 0:
        return None
    column = sample.columns[attribute]
    if column.is_numeric:
        threshold = float(arrays["threshold"][node])
        first = np.flatnonzero(column.upper <= threshold)
    else:
        table = arrays["branches"][arrays["table"][node] :][: column.n_bins]
        first, threshold = np.flatnonzero(table == 0), None
    return spec.Split(
        attribute=attribute,
        gain=float(arrays["gain"][node]),
        first_codes=frozenset(first.tolist()),
        missing_first=bool(arrays["missing"][node] == 0),
        missing_rows=float(arrays["missing_rows"][node]),
        threshold=threshold,
    )


def probability_gap(sample: spec.Sample, rows: np.ndarray, one: Any, other: Any) -> float:
    gap = sample.probabilities(rows, one) - sample.probabilities(rows, other)
    return float(np.abs(gap).max(initial=0.0))


# -- Ties -----------------------------------------------------------------------------------------


def same_split(one: spec.Split | None, other: spec.Split | None) -> bool:
    """Whether two splits send every value the same way; gains may differ by rounding."""
    if one is None or other is None:
        return one is other
    names = ("attribute", "first_codes", "missing_first", "threshold")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def is_tie(
    sample: spec.Sample,
    rows: np.ndarray,
    parameters: np.ndarray,
    limits: spec.Settings,
    found: spec.Split | None,
    expected: spec.Split | None,
) -> bool:
    """Whether another split was found only because of rounding.

    Either both gain the same, as nothing does without a split; or the categories of one of the
    attributes have no order.
    """
    evidence = spec.make_evidence(sample, rows, parameters)
    attributes = [split.attribute for split in (found, expected) if split]
    size = 1.0 + float(np.abs(evidence.residuals).sum())

    gains = possible_gains(sample, rows, evidence, found, limits) if found else [0.0]
    best = expected.gain if expected else 0.0
    if any(abs(gain - best) <= spec.NO_DIFFERENCE + TIE * size for gain in gains):
        return True
    return any(
        has_no_order(sample.columns[attribute], rows, evidence, limits.penalty)
        for attribute in attributes
    )


def has_no_order(
    column: spec.Binned, rows: np.ndarray, evidence: spec.Evidence, penalty: float
) -> bool:
    """Whether two categories ask for the same correction, or two states have as much to gain."""
    if column.is_numeric:
        return False
    codes = column.codes[rows]
    present = np.unique(codes[codes < column.n_bins])
    corrections, gains = spec.corrections_of_categories(present, evidence, codes, penalty)
    to_gain = np.sort(gains)
    if len(to_gain) > 1 and to_gain[-1] - to_gain[-2] <= TIE:
        return True
    return bool((np.diff(np.sort(corrections, axis=0), axis=0) <= TIE).any())


# -- The stages -----------------------------------------------------------------------------------


@examples(60)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 5)), min_size=2, max_size=30),
    st.integers(2, 12),
    st.sampled_from([1.0, 0.1, 1e300, 5e-324]),
    st.booleans(),
)
def test_every_cut_between_bins_is_made_where_it_is_asked_for(values, max_bins, unit, missing):
    x = np.repeat([number * unit for number, _ in values], [count for _, count in values])
    x = np.concatenate([x, [np.nan] * (3 * missing)])
    column = spec.bin_numbers(x, np.ones(len(x)), max_bins)
    assume(column.n_bins > 1)
    for cut in range(column.n_bins - 1):
        y = (column.codes > cut).astype(int)
        limits = spec.Settings(min_samples_split=2, min_samples_leaf=1, max_depth=1)
        arrays = core_tree(one_attribute(x, y, max_bins), limits).arrays
        assert arrays["threshold"][0] == column.threshold(cut)
        assert np.array_equal(x[~np.isnan(x)] > column.threshold(cut), y[~np.isnan(x)] == 1)


def one_attribute(x: np.ndarray, y: np.ndarray, max_bins: int) -> Case:
    """Scores that say nothing, and one attribute."""
    return Case(
        X=x[:, np.newaxis],
        n_categories=np.zeros(1, dtype=np.int32),
        y=y,
        n_classes=2,
        scores=np.zeros((len(x), 2)),
        offset=None,
        all_scores=True,
        weights=None,
        max_bins=max_bins,
        fills=np.zeros(1),
    )


@examples(60)
@given(cases(), st.sampled_from([0.05, 0.001, 30.0]))
def test_the_model_of_the_root(case, penalty):
    sample = case.sample()
    arrays = core_tree(case, spec.Settings(penalty, max_depth=0)).arrays
    assert arrays["attribute"].tolist() == [-1]
    assert np.array_equal(case.shrunken().fit_root(penalty).ravel(), arrays["parameters"][0])
    rows = np.arange(len(case.y))
    for temperature_only in (False, True):
        expected = spec.fit_node_model(
            sample,
            rows,
            sample.no_correction,
            penalty,
            is_root=True,
            temperature_only=temperature_only,
        )
        unscaled = case.shrunken().fit_root(penalty, temperature_only)
        found = scaled_parameters(sample, unscaled)
        assert probability_gap(sample, rows, found, expected) <= SAME_PROBABILITY
        unscaled_expected = sample.regressors.unscaled(expected)
        np.testing.assert_allclose(unscaled, unscaled_expected, rtol=1e-4, atol=1e-4)


@examples(60)
@given(cases_and_limits())
def test_every_other_node_model_from_its_parents(given):
    case, limits = given
    sample = case.sample()
    arrays = core_tree(case, limits).arrays
    for node in core_nodes(case, arrays):
        if node.parent < 0:
            continue
        parent = core_parameters(sample, arrays, node.parent)
        kind = {"is_root": False, "monotone": limits.monotone}
        expected = spec.fit_node_model(sample, node.rows, parent, limits.penalty, **kind)
        found = core_parameters(sample, arrays, node.index)
        assert probability_gap(sample, node.rows, found, expected) <= SAME_PROBABILITY


def test_every_split_from_the_nodes_model():
    outcomes = Counter()

    @examples(200)
    @given(cases(), limits)
    def check(case, limits):
        sample = case.sample()
        arrays = core_tree(case, limits).arrays
        for node in core_nodes(case, arrays):
            weight = sample.weights[node.rows].sum()
            np.testing.assert_allclose(arrays["n_rows"][node.index], weight, rtol=1e-12)
            found = core_split(sample, arrays, node.index)
            if node.depth == limits.max_depth or weight < limits.min_samples_split - 1e-9:
                assert found is None
                continue
            if weight < limits.min_samples_split:
                continue
            parameters = core_parameters(sample, arrays, node.index)
            attributes = range(len(sample.columns))
            expected = spec.find_split(sample, node.rows, parameters, limits, attributes)
            if same_split(found, expected):
                outcomes["the same"] += 1
                if found is not None:
                    assert found.gain == pytest.approx(expected.gain, rel=1e-6, abs=1e-6)
                    assert found.missing_rows == pytest.approx(expected.missing_rows)
                    outcomes.update(kinds_of_split(sample, node.rows, found))
                continue
            outcomes["a tie"] += 1
            assert is_tie(sample, node.rows, parameters, limits, found, expected)

    check()
    assert outcomes["the same"] > 250
    assert outcomes["the same"] > 100 * outcomes["a tie"]
    for kind in ("numeric", "nominal", "missing first", "missing second", "several states"):
        assert outcomes[kind] >= 10, kind
    for kind in ("by code", "by correction"):
        assert outcomes[f"many categories, {kind}"] >= 2, kind
    assert outcomes["only missing"] >= 2


def kinds_of_split(sample: spec.Sample, rows: np.ndarray, split: spec.Split) -> Iterator[str]:
    column = sample.columns[split.attribute]
    yield "numeric" if column.is_numeric else "nominal"
    if len(np.unique(column.codes[rows])) > 7 and not column.is_numeric:
        ascending = split.first_codes == set(range(len(split.first_codes)))
        yield "many categories, by code" if ascending else "many categories, by correction"
    if split.missing_rows > 0:
        yield "missing first" if split.missing_first else "missing second"
    if split.threshold == np.finfo(float).max:
        yield "only missing"
    if sample.n_states > 1:
        yield "several states"


@examples(60)
@given(cases(), limits, st.integers(0, 2**32 - 1))
def test_the_way_of_new_rows(case, limits, seed):
    arrays = core_tree(case, limits).arrays
    rng = np.random.default_rng(seed)
    X = case.X[rng.integers(0, len(case.X), 60)]
    numeric = case.n_categories == 0
    X[:, numeric] += rng.choice([0.0, 0.0, 0.05, -1e300, np.inf, -np.inf], X[:, numeric].shape)
    for column, size in enumerate(case.n_categories):
        if size > 0:
            X[:, column] = rng.integers(0, size, len(X))
    X[rng.random(X.shape) < 0.1] = np.nan
    expected = np.zeros(len(X), dtype=int)
    for row in range(len(X)):
        while arrays["attribute"][expected[row]] >= 0:
            branch = branches(case, arrays, expected[row], X[row : row + 1])[0]
            expected[row] = arrays["first_child"][expected[row]] + branch
    parameters = np.zeros((len(arrays["attribute"]), 1, 2))
    names = ("attribute", "threshold", "first_child", "n_children", "missing", "table", "branches")
    routes = [arrays[name] for name in names]
    root = np.zeros(1, dtype=np.int32)
    weight = arrays["weight"]
    predictor = _core.Predictor(*routes, case.n_categories, weight, parameters, root, 1)
    assert np.array_equal(predictor.apply(X), expected[:, np.newaxis])


def test_errors_and_pruning():
    outcomes = Counter()

    @examples(60)
    @given(cases_and_limits(largest=80), st.booleans())
    def check(given, log_loss):
        case, limits = given
        held_out, rows = case.rows[::4], np.delete(case.rows, np.s_[::4])
        tree = core_tree(case, limits, rows, held_out, log_loss=log_loss)
        alphas, losses = _core.pruning_sequence(tree.structure, tree.models)
        sample = case.sample()
        root = spec.grow(sample, rows.astype(np.intp), limits)
        if not agree(sample, tree.arrays, root, limits):
            outcomes["a tie"] += 1
            return
        of_row = spec.deviance if log_loss else spec.squared_error
        weights = sample.weights[held_out]

        def loss(root: spec.Node) -> float:
            nodes = [root.node_of(sample, row) for row in held_out]
            of_rows = [
                of_row(sample, np.array([row]), node.parameters)[0]
                for row, node in zip(held_out, nodes, strict=True)
            ]
            return float(np.average(of_rows, weights=weights))

        steps = [(alpha, loss(root)) for alpha in pruning_sequence(root, root.n_rows)]
        expected = np.array(steps).T
        found = np.stack([alphas, losses])
        agrees = found.shape == expected.shape and np.allclose(found, expected, 1e-5, 1e-6)
        outcomes["the same" if agrees else "another order"] += 1
        if not agrees:
            # Two subtrees of one strength: where the sequences part, they are as strong.
            first = next(
                step
                for step in range(min(found.shape[1], expected.shape[1]))
                if not np.allclose(found[:, step], expected[:, step], 1e-5, 1e-6)
            )
            assert found[0, first] == pytest.approx(expected[0, first], rel=1e-5, abs=1e-6)

    check()
    assert outcomes["the same"] > 15 * (outcomes.total() - outcomes["the same"])


def test_without_held_out_rows_there_is_nothing_to_judge_by():
    rng = np.random.default_rng(0)
    case = one_attribute(rng.integers(0, 9, 60).astype(float), rng.integers(0, 2, 60), 255)
    tree = core_tree(case, spec.Settings(min_samples_split=2))
    alphas, losses = _core.pruning_sequence(tree.structure, tree.models)
    assert len(alphas) > 1 and len(losses) == 0


# -- The whole ------------------------------------------------------------------------------------


def agree(
    sample: spec.Sample,
    arrays: dict[str, Any],
    node: spec.Node,
    limits: spec.Settings,
    index: int = 0,
    *,
    gains: bool = True,
) -> bool:
    """Whether two trees are the same; where they part, it must be at a tie."""
    assert arrays["n_rows"][index] == pytest.approx(node.n_rows)
    parameters = core_parameters(sample, arrays, index)
    gap = probability_gap(sample, node.rows, parameters, node.parameters)
    assert gap <= SAME_PROBABILITY * (1 + node.depth)
    found = core_split(sample, arrays, index)
    if not same_split(found, node.split):
        assert is_tie(sample, node.rows, node.parameters, limits, found, node.split)
        return False
    if found is None or node.split is None:
        assert arrays["first_child"][index] == -1
        return True
    if gains:
        assert found.gain == pytest.approx(node.split.gain, rel=1e-4, abs=1e-4)
    first = arrays["first_child"][index]
    same = [
        agree(sample, arrays, child, limits, first + branch, gains=gains)
        for branch, child in enumerate(node.children)
    ]
    return all(same)


def test_whole_trees():
    outcomes = Counter()

    @examples(150)
    @given(cases_and_limits(), st.booleans())
    def check(given, on_a_part):
        case, limits = given
        outcomes["monotone"] += limits.monotone
        rows = case.rows[len(case.y) // 4 :] if on_a_part else case.rows
        arrays = core_tree(case, limits, rows).arrays
        root = spec.grow(case.sample(), rows.astype(np.intp), limits)
        same = agree(case.sample(), arrays, root, limits)
        outcomes["the same" if same else "a tie"] += 1
        n_nodes = len(list(root.walk()))
        outcomes["nodes"] += n_nodes
        assert not same or n_nodes == len(arrays["attribute"])

    check()
    assert outcomes["nodes"] > 600 and outcomes["monotone"] > 20
    assert outcomes["the same"] > 30 * outcomes["a tie"]


def test_trees_of_a_forest():
    outcomes = Counter()
    sizes = np.array([np.inf, 60.0, 20.0, 6.0])

    @examples(70)
    @given(
        cases(largest=80),
        limits,
        st.sampled_from([0, 1, 1, 2, 3]),
        st.integers(1, 3),
        st.integers(0, 2**62),
        st.none() | st.integers(2, 8),
    )
    def check(case, limits, n_split_scores, max_features, seed, n_groups):
        groups = None
        if n_groups is not None:
            groups = np.arange(len(case.y), dtype=np.uint32) % min(n_groups, len(case.y))
        depth = NO_LIMIT if limits.max_depth is None else limits.max_depth
        leaf = limits.min_samples_leaf
        structure, models, out_of_bag, predictions = case.shrunken().bagged(
            seed, n_split_scores, limits.penalty, sizes, leaf, depth, max_features, groups
        )
        arrays = finished(structure, models)
        limits = spec.Settings(limits.penalty, sizes[-1], leaf, limits.max_depth, max_features)
        sample = case.sample(with_scores=True)
        n_scores = len(sample.columns) - case.X.shape[1]
        root, drawn = spec.grow_bagged(
            sample, limits, seed, groups, n_scores=n_scores, n_split_scores=n_split_scores
        )
        outcomes["some scores"] += int(0 < n_split_scores < n_scores)
        assert np.array_equal(out_of_bag, np.flatnonzero(drawn.weights == 0))
        same = agree(drawn, arrays, root, limits, gains=False)
        outcomes["the same" if same else "a tie"] += 1
        outcomes["on scores"] += int((arrays["attribute"] >= case.X.shape[1]).sum())
        if not same:
            return
        expected = np.empty((len(sizes), len(out_of_bag), drawn.n_states))
        for place, row in enumerate(out_of_bag):
            for number, smallest in enumerate(sizes):
                parameters = root.node_of(drawn, row, smallest).parameters
                expected[number, place] = drawn.probabilities(np.array([row]), parameters)[0]
        np.testing.assert_allclose(predictions, expected, rtol=0, atol=1e-5)
        weights = np.ones(len(case.y)) if case.weights is None else case.weights
        gains = spec.held_out_gains(root, drawn, out_of_bag, weights)
        core_gains = arrays["gain"][arrays["attribute"] >= 0]
        np.testing.assert_allclose(np.sort(core_gains), np.sort(gains), rtol=0, atol=1e-4)

    check()
    assert outcomes["the same"] > 15 * outcomes["a tie"]
    assert outcomes["on scores"] > 10 and outcomes["some scores"] > 10
