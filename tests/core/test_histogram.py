"""Sums over a chunk of rows: the core and its twin, the specification in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from caltree import CalibrationTree
from caltree._histogram.binning import Bins
from caltree._histogram.chunk import Chunk, Plan, Scale
from caltree._histogram.held_out import PredictHeldOut
from caltree._histogram.node_models import Sums, fit_node_models
from caltree._histogram.pool import add_up
from caltree._histogram.queries import AskedNodes, BestSplits, Limits, NodeSums, RouteRows

from ..spec import histogram as spec
from ..spec import shrunken
from ..support.histogram_cases import examples
from ..support.shrunken_cases import possible_gains
from ..support.trees import FIXED, make_frame, make_rows

N_FOLDS = 2
SAME = {"rtol": 1e-9, "atol": 1e-9}


# -- Random cases ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A chunk, the plan for it, where its rows are in three trees, and node models of these."""

    plan: Plan
    chunk: Chunk
    nodes: np.ndarray
    first: np.ndarray
    parameters: np.ndarray  # of all nodes of all trees

    @property
    def sample(self) -> shrunken.Sample:
        n_bins, numeric = self.plan.bins.n_bins, self.plan.bins.numeric
        columns = [
            shrunken.Binned(
                codes.astype(np.intp),
                int(size),
                np.arange(size) if is_number else None,
                np.arange(size) if is_number else None,
            )
            for codes, size, is_number in zip(self.chunk.codes.T, n_bins, numeric, strict=True)
        ]
        scale = self.plan.scale
        regressors = spec.see(
            self.chunk.scores,
            self.chunk.offset,
            self.plan.n_classes,
            scale.centre,
            scale.scale,
            scale.width,
        )
        weights = self.chunk.weights
        weights = np.ones(len(self.chunk)) if weights is None else weights
        return shrunken.Sample(columns, regressors, self.chunk.labels.astype(np.intp), weights)

    @property
    def places(self) -> list[tuple[int, int]]:
        """Tree and node of every slot."""
        sizes = np.diff(self.first)
        return [(tree, node) for tree, size in enumerate(sizes) for node in range(size)]

    def matrix(self, slot: int) -> np.ndarray:
        return self.parameters[slot].reshape(self.plan.scale.n_states, -1)

    def rows_of(self, slot: int) -> tuple[np.ndarray, np.ndarray]:
        fold = self.chunk.fold.astype(np.intp)
        return spec.rows_of_node(self.nodes, fold, *self.places[slot])

    def asked(self, slots: list[int] | None = None) -> AskedNodes:
        """Every node has the slot of its place; or some of them, in another order."""
        if slots is None:
            slots = list(range(len(self.parameters)))
        slot = np.full(self.first[-1], -1, dtype=np.int32)
        slot[slots] = np.arange(len(slots))
        return AskedNodes(self.first, slot, self.parameters[slots])


@st.composite
def cases(draw: Callable[..., Any]) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([1, 5, 60, 150, 280]))
    n_classes = draw(st.sampled_from([2, 2, 3, 5]))
    n_states = 1 if n_classes == 2 else n_classes
    sees_all = draw(st.booleans()) or n_classes == 2
    n_classifiers = draw(st.sampled_from([1, 2]))
    n_plain = n_classifiers if n_classes == 2 else n_classifiers * n_classes
    wide = draw(st.booleans())
    n_bins = np.array([draw(st.sampled_from([1, 3, 12, 300 if wide else 40])) for _ in range(3)])
    numeric = np.array([True, draw(st.booleans()), False])
    codes = np.column_stack([rng.integers(0, size + 1, n) for size in n_bins])
    labels = rng.integers(0, n_classes, n).astype(np.uint16)
    scores = rng.standard_normal((n, n_plain)) * rng.choice([0.5, 3.0])
    if draw(st.booleans()):
        scores[:, -1] = 0.25
    has_offset = draw(st.booleans())
    offset = None
    if has_offset:
        # What one classifier says, or what several say together.
        others = rng.standard_normal((n, n_states)) * 2
        offset = np.ascontiguousarray(scores) if n_classifiers == 1 else others
    if draw(st.booleans()) and not (has_offset and n_classifiers == 1):
        scores[rng.random(n) < 0.1] *= 1e6  # beyond all others
    if n_classes == 2:
        scores = shrunken.with_bends(scores)
    n_scores = scores.shape[1]
    weights = rng.choice([0.25, 1.0, np.e], n) if draw(st.booleans()) else None
    per_state = n_scores if sees_all else n_scores // n_states
    plan = Plan(
        bins=Bins(
            n_bins.astype(np.int32),
            numeric.astype(np.uint8),
            tuple(np.arange(size - 1) + 0.5 for size in n_bins),
            fills=np.zeros(3, dtype=np.int32),
        ),
        scale=Scale.of(scores[: max(1, n // 2)], None, n_states, per_state),
        n_classes=n_classes,
        n_folds=N_FOLDS,
        n_rows=n + 50,
        largest_weight=1.0 if weights is None else 3.0,
        scoring=draw(st.sampled_from(["rmse", "log_loss"])),
        has_offset=has_offset,
    )
    first = np.array([0, 3, 4, 6], dtype=np.int32)
    chunk = Chunk(
        codes=np.ascontiguousarray(codes, dtype=np.uint16 if wide else np.uint8),
        labels=labels,
        scores=scores,
        offset=offset,
        weights=weights,
        fold=rng.choice([0, 1, spec.IN_NO_FOLD], n).astype(np.uint8),
    )
    return Case(
        plan,
        chunk,
        nodes=np.array([rng.integers(0, size, n) for size in np.diff(first)], dtype=np.uint16),
        first=first,
        parameters=rng.standard_normal((6, plan.scale.n_parameters)) * rng.choice([0.1, 1.0]),
    )


def node_sums(case: Case, asked: AskedNodes, derivatives: bool = True) -> np.ndarray:
    return add_up(NodeSums(asked, derivatives), case.plan, [(case.chunk, case.nodes)])


def search(
    asked: AskedNodes, *, penalty: float = 0.05, leaf: float = 1.0, share: float = 1.0
) -> BestSplits:
    shares = np.full(len(asked.parameters), share)
    return BestSplits(asked, Limits(penalty, 2.0, leaf, 10), shares)


def histograms(case: Case, asked: AskedNodes) -> np.ndarray:
    return add_up(search(asked), case.plan, [(case.chunk, case.nodes)])


# -- Sums -----------------------------------------------------------------------------------------


@examples(60)
@given(cases())
def test_sums_are_those_of_the_specification(case):
    found = Sums.of(node_sums(case, case.asked()), case.plan)
    for slot in range(len(case.parameters)):
        rows, held_out = case.rows_of(slot)
        log_loss = case.plan.scoring == "log_loss"
        expected = spec.sums_of_node(
            case.sample, rows, held_out, case.matrix(slot), log_loss=log_loss
        )
        for name in ("weight", "loss", "deviance", "held_out", "gradient", "hessian"):
            np.testing.assert_allclose(
                getattr(found, name)[slot], getattr(expected, name), **SAME, err_msg=name
            )


@examples(30)
@given(cases(), st.permutations(range(6)), st.integers(0, 6))
def test_only_what_is_asked_is_answered(case, order, count):
    """Sums and histograms of some nodes, in any order, are those of all."""
    for ask in (node_sums, histograms):
        every = ask(case, case.asked())
        some = ask(case, case.asked(order[:count]))
        assert np.array_equal(some, every[order[:count]])


@examples(30)
@given(cases(), st.floats(0.0, 1.0))
def test_sums_of_parts_add_up_to_the_bit(case, share):
    cut = round(share * len(case.chunk))
    for ask in (node_sums, histograms):
        whole = ask(case, case.asked())
        total = np.zeros_like(whole)
        for part in (slice(0, cut), slice(cut, None)):
            arrays = {
                name: None if values is None else values[part]
                for name, values in case.chunk.__getstate__().items()
            }
            nodes = np.ascontiguousarray(case.nodes[:, part])
            total += ask(replace(case, chunk=Chunk(**arrays), nodes=nodes), case.asked())
        assert np.array_equal(total, whole)


# -- Histograms and splits ------------------------------------------------------------------------


@examples(60)
@given(cases())
def test_histograms_are_those_of_the_specification(case):
    wholes = histograms(case, case.asked())
    found = wholes / case.plan.unit(1.0)
    width = 1 + 2 * case.plan.scale.n_states
    for slot, row in enumerate(found):
        begin = 0
        rows, _ = case.rows_of(slot)
        for attribute, size in enumerate(case.plan.bins.n_bins + 1):
            part = row[begin : begin + size * width].reshape(size, width)
            expected = spec.histogram_of_node(case.sample, rows, case.matrix(slot), attribute)
            np.testing.assert_allclose(part, expected, **SAME)
            begin += size * width
        assert begin == len(row)
    twice = wholes.copy()
    search(case.asked()).add(case.plan, case.chunk, case.nodes, twice)
    assert np.array_equal(twice, 2 * wholes)


def best_splits(case, **settings):
    query = search(case.asked(), **settings)
    return query.finish(case.plan, add_up(query, case.plan, [(case.chunk, case.nodes)]))


@examples(60)
@given(cases(), st.sampled_from([0.05, 1.0]), st.sampled_from([1.0, 2.5]), st.floats(0.2, 1.0))
def test_splits_of_rows_at_hand_are_those_of_histograms(case, penalty, leaf, share):
    query = search(case.asked(), penalty=penalty, leaf=leaf, share=share)
    expected = best_splits(case, penalty=penalty, leaf=leaf, share=share)
    assert query.answer(case.plan, case.chunk, case.nodes) == expected


def first_codes(case, found):
    """The bins or categories that go to the first child."""
    if case.plan.bins.numeric[found.attribute]:
        return range(found.cut + 1)
    return np.flatnonzero(np.array(found.branches) == 0)


@examples(50)
@given(
    cases(),
    st.sampled_from([0.05, 1.0]),
    st.sampled_from([1.0, 2.5, 20.0]),
    st.sampled_from([1.0, 0.8, 0.1]),
)
def test_the_best_split_is_the_best_of_all(case, penalty, leaf, share):
    settings = shrunken.Settings(penalty=penalty, min_samples_leaf=leaf, share_of_rows=share)
    sample = case.sample
    for slot, found in enumerate(best_splits(case, penalty=penalty, leaf=leaf, share=share)):
        rows, _ = case.rows_of(slot)
        best = shrunken.find_split(sample, rows, case.matrix(slot), settings, range(3))
        assert (found is None) == (best is None)
        if found is None:
            continue
        assert found.gain == pytest.approx(best.gain, rel=1e-9, abs=1e-7)
        column = sample.columns[found.attribute]
        split = shrunken.Split(
            found.attribute,
            found.gain,
            frozenset(first_codes(case, found)),
            found.missing == 0,
            found.missing_rows,
            None,
        )
        # Of splits that tie either is right; but it is what it says.
        second = split.goes_second(column)[rows]
        evidence = shrunken.make_evidence(sample, rows, case.matrix(slot))
        gains = possible_gains(sample, rows, evidence, split, settings)
        assert any(found.gain == pytest.approx(gain, rel=1e-9, abs=1e-7) for gain in gains)
        sides = evidence.weights[second].sum(), evidence.weights[~second].sum()
        assert min(sides) >= leaf - 1e-9
        missing = column.is_missing[rows]
        assert found.missing_rows == pytest.approx(evidence.weights[missing].sum(), abs=1e-9)
        same = (best.attribute, best.first_codes) == (split.attribute, split.first_codes)
        # Without missing values it is the heavier side, unless both weigh the same.
        if same and (missing.any() or sides[0] != pytest.approx(sides[1], rel=1e-12)):
            assert found.missing == (0 if best.missing_first else 1)


@examples(60)
@given(cases())
def test_rows_go_where_the_splits_say(case):
    """Every node without children is split, in turn with nodes that are not."""
    found = best_splits(case)
    sizes = np.diff(case.first)
    first = np.cumsum([0, *(sizes + 2)]).astype(np.int32)
    names = ("attribute", "cut", "missing", "first_child", "n_children", "table")
    tables = {name: np.full(first[-1], -1, dtype=np.int32) for name in names}
    branches: list[int] = []
    chosen = {}
    for slot, (tree, node) in enumerate(case.places):
        if node > 0 or found[slot] is None:
            continue
        split, at = found[slot], first[tree] + node
        chosen[tree] = split
        tables["attribute"][at], tables["cut"][at] = split.attribute, split.cut
        tables["missing"][at], tables["first_child"][at] = split.missing, sizes[tree]
        tables["n_children"][at] = split.n_children
        if split.branches:
            tables["table"][at] = len(branches)
            branches += split.branches
    route = RouteRows(first, **tables, branches=np.array(branches, dtype=np.int32))
    gone = route.advance(case.plan, case.chunk, case.nodes)
    sample = case.sample
    for tree in range(3):
        expected = case.nodes[tree].astype(np.intp)
        if tree in chosen:
            split = chosen[tree]
            column = sample.columns[split.attribute]
            first_bins = np.isin(column.codes, list(first_codes(case, split)))
            goes_first = np.where(column.is_missing, split.missing == 0, first_bins)
            children = sizes[tree] + np.where(goes_first, 0, 1)
            expected = np.where(case.nodes[tree] == 0, children, expected)
        assert np.array_equal(gone[tree], expected)


# -- Predictions ----------------------------------------------------------------------------------


@examples(40)
@given(cases(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_held_out_predictions_are_those_of_the_specification(case, n_sizes, random):
    ancestor = np.array(
        [[random.randrange(6) for _ in range(n_sizes)] for _ in range(6)], dtype=np.int32
    )
    step = PredictHeldOut(case.first, ancestor, case.parameters, uncalibrated=False)
    candidates = step.advance(case.plan, case.chunk, case.nodes)
    found = candidates.probabilities
    matrices = np.array([case.matrix(slot) for slot in range(6)])
    expected = spec.held_out_predictions(
        case.sample, case.nodes, case.chunk.fold.astype(np.intp), case.first, ancestor, matrices
    )
    held_out = case.chunk.fold != spec.IN_NO_FOLD
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected[:, held_out], rtol=1e-6, atol=1e-30)
    assert np.array_equal(candidates.labels, case.chunk.labels[held_out])
    if case.chunk.weights is not None:
        assert np.array_equal(candidates.weights, case.chunk.weights[held_out])
    # The uncalibrated probabilities, if there are any, come first.
    with_them = replace(step, uncalibrated=True).advance(case.plan, case.chunk, case.nodes)
    assert np.array_equal(with_them.probabilities[-n_sizes:], found)
    assert len(with_them.probabilities) == n_sizes + case.plan.has_offset
    if case.plan.has_offset:
        offset = case.chunk.offset[held_out]
        np.testing.assert_allclose(
            with_them.probabilities[0], shrunken.probabilities(offset), rtol=1e-6, atol=1e-30
        )


# -- Node models ----------------------------------------------------------------------------------


def least_penalised_deviance(value, start):
    """By another method than Newton's."""

    def loss(flat):
        loss, slope = value(flat.reshape(start.shape))
        return loss, slope.ravel()

    return minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 500}).fun


def at_temperature(sample, rows):
    """Where one slope for all log-probabilities has the least deviance; nowhere without one."""
    line = sample.regressors.temperature
    if line is None or not line.any():
        return sample.no_correction
    weights = sample.weights[rows]
    found = minimize_scalar(lambda slope: weights @ shrunken.losses(sample, rows, slope * line))
    return found.x * line


def answered(program):
    """The result of a program whose questions are their own answers."""
    answer = None
    while True:
        try:
            answer = program.send(answer)
        except StopIteration as end:
            return end.value


def fitted_to_trees(case, penalty):
    """Of every node, the parameters of the root of its tree: nodes of a tree share a slot."""

    def ask(slots, parameters, derivatives):
        slot = np.full(case.first[-1], -1, dtype=np.int32)
        for number, tree in enumerate(slots):
            slot[case.first[tree] : case.first[tree + 1]] = number
        return node_sums(case, AskedNodes(case.first, slot, parameters), derivatives)

    nothing = np.zeros((3, case.plan.scale.n_parameters))
    kind = {"is_root": True, "monotone": False}
    roots, _ = answered(fit_node_models(nothing, case.plan, penalty, ask, **kind))
    return roots[[tree for tree, _ in case.places]]


@examples(12)
@given(cases())
def test_sums_without_derivatives_are_otherwise_the_same(case):
    asked = case.asked([0, 3, 5])
    full, short = (Sums.of(node_sums(case, asked, wanted), case.plan) for wanted in (True, False))
    for name in ("weight", "loss", "deviance", "held_out"):
        assert np.array_equal(getattr(full, name), getattr(short, name)), name
    assert full.hessian.any() or not full.weight.any()
    assert not short.gradient.any()
    assert not short.hessian.any()


@examples(12)
@given(cases(), st.sampled_from([0.05, 1.0]), st.booleans())
def test_node_models_have_the_least_penalised_deviance(case, penalty, is_root):
    sample = case.sample
    parents = np.zeros_like(case.parameters) if is_root else fitted_to_trees(case, penalty)

    def ask(slots, parameters, derivatives):
        asked = replace(case.asked(slots.tolist()), parameters=parameters)
        return node_sums(case, asked, derivatives)

    kind = {"is_root": is_root, "monotone": False}
    fits, sums = answered(fit_node_models(parents, case.plan, penalty, ask, **kind))
    again = Sums.of(ask(np.arange(6), fits, False), case.plan)
    for name in ("weight", "loss", "deviance", "held_out"):
        found, expected = getattr(sums, name), getattr(again, name)
        np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=name)
    for slot in (0, 3, 5):
        rows, _ = case.rows_of(slot)
        held_at = parents[slot].reshape(case.plan.scale.n_states, -1)
        parameters = fits[slot].reshape(held_at.shape)
        if is_root:
            held_at = at_temperature(sample, rows)
            if shrunken.losses(sample, rows, held_at).max(initial=0.0) < 1e-6:
                # Classes that a temperature tells apart: the sharper the better.
                assert shrunken.losses(sample, rows, parameters).max(initial=0.0) < 1e-6
                continue
        check_fit(sample, rows, held_at, penalty, parameters, is_root=is_root)


def check_fit(sample, rows, held_at, penalty, parameters, *, is_root):
    """Whether parameters are as good as they can be, for what they cost."""

    def value(parameters):
        return spec.penalised_deviance(sample, rows, held_at, penalty, parameters, of_root=is_root)

    before, after = value(held_at)[0], value(parameters)[0]
    least = least_penalised_deviance(value, held_at)
    assert after <= before * (1 + 1e-9) + 1e-9
    # Of more than one log-odds each goes its way with the others held fast, which takes longer.
    alone = len(held_at) == 1
    if is_root and alone:
        assert after <= least + 1e-6 * (1.0 + abs(least))
    elif is_root:
        assert before - after >= 0.98 * (before - least) - 1e-6
    else:
        # A few steps go most of the way.
        assert before - after >= (0.8 if alone else 0.3) * (before - least) - 1.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_first_split_is_that_of_a_tree_on_rows(n_classes, weighted):
    """Bins, scales, the root's model and the search are those of `tree_method="exact"`."""
    X, y, scores = make_rows(700, n_classes=n_classes, round_to=1)
    X[::9, 0] = np.nan
    weights = np.random.default_rng(0).choice([0.0, 0.5, 2.0], 700) if weighted else None
    rows, bins = (
        CalibrationTree(tree_method=mode, max_depth=1, **FIXED).fit(X, y, scores, weights)
        for mode in ("exact", "hist")
    )
    one, other = rows.model_, bins.model_
    for name in ("attribute", "threshold", "missing", "missing_rows", "n_rows"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    np.testing.assert_allclose(one.gain, other.gain, rtol=1e-6)
    np.testing.assert_allclose(one.parameters[0], other.parameters[0], rtol=0, atol=1e-5)
    # The children's models are close, but not every last step is taken.
    np.testing.assert_allclose(
        rows.predict_proba(X, scores), bins.predict_proba(X, scores), rtol=0, atol=0.05
    )


def test_categories_are_divided_as_in_a_tree_on_rows():
    frame, y, scores = make_frame(600)
    frame = frame[["colour", "size", "known", "flag"]]
    rows, bins = (
        CalibrationTree(tree_method=mode, max_depth=1, **FIXED).fit(frame, y, scores)
        for mode in ("exact", "hist")
    )
    assert rows.model_.attribute[0] == bins.model_.attribute[0] >= 0
    assert np.array_equal(rows.model_.branches, bins.model_.branches)
    assert np.array_equal(rows.model_.n_rows, bins.model_.n_rows)
    assert np.array_equal(rows.apply(frame), bins.apply(frame))
