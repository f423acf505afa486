"""The native core and its twin, the specification in plain NumPy, on random data.

Stage by stage, since long boosting of nodes that are nearly pure is chaotic: there the last bit
decides, and two right implementations part. Wherever core and specification differ, a test shows
that it is such a case, by making the specification differ from itself: either two candidates are
equal but for rounding, or scores changed by one part in 1e13 change its result likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from caltree import _core
from caltree._inputs.attributes import Attribute, Attributes
from caltree._inputs.folds import make_folds
from caltree._training import pruning as pruning_module
from caltree._training.dataset import Dataset
from caltree._training.pruning import choose_pruning
from caltree._training.published import (
    Boosting,
    PrunedTree,
    PublishedEngine,
    fit_published_tree,
)
from caltree._training.settings import depth_limit

from .. import spec
from ..spec.boosting import rmse, softmax
from ..spec.tree import (
    SpecTree,
    best_strength,
    fill_missing,
    missing_value_replacements,
    strengths_tried,
)
from ..support.histogram_cases import examples
from ..support.trees import finished

NONE = np.empty(0, dtype=np.uint32)


# -- Random cases ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Training data, encoded: category codes for nominal attributes, NaN where missing."""

    X: np.ndarray
    n_categories: np.ndarray
    y: np.ndarray
    n_classes: int
    scores: np.ndarray

    @property
    def fills(self) -> np.ndarray:
        return missing_value_replacements(self.X, self.n_categories)

    @property
    def filled(self) -> np.ndarray:
        return fill_missing(self.X, self.fills)

    @property
    def no_model(self) -> np.ndarray:
        return np.zeros((self.n_classes, 1 + self.scores.shape[1]))

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self.y), dtype=np.uint32)

    def training(self, weights: np.ndarray | None = None) -> _core.Training:
        return _core.Training(
            self.X,
            self.n_categories,
            self.fills,
            self.y.astype(np.uint16),
            self.n_classes,
            np.asfortranarray(self.scores),
            weights,
        )

    def dataset(self) -> Dataset:
        known = [
            Attribute(f"x{a}", tuple(range(count)) if count else None, fill)
            for a, (count, fill) in enumerate(zip(self.n_categories, self.fills, strict=True))
        ]
        return Dataset(
            attributes=Attributes(tuple(known), None),
            matrix=self.X,
            labels=self.y.astype(np.uint16),
            n_classes=self.n_classes,
            scores=np.asfortranarray(self.scores),
            offset=None,
            uncalibrated=None,
            weights=None,
        )

    def folds(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return make_folds(5, self.y.astype(np.uint16), None, None)

    def shaken(self, seed: int) -> Case:
        """The same with other roundings."""
        noise = np.random.default_rng(seed).standard_normal(self.scores.shape)
        return replace(self, scores=self.scores * (1 + 1e-13 * noise))


ATTRIBUTES = ["continuous", "rounded", "dense", "constant", "few categories", "many categories"]
SCORES = ["margins", "rounded", "probabilities", "certain"]
EXTRA_SCORES = ["duplicated", "negated", "constant", "none"]


@st.composite
def cases(draw: Callable[..., Any], largest: int = 300, most_classes: int = 6) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.one_of(st.integers(5, 40), st.integers(5, largest), st.just(largest)))
    m = draw(st.one_of(st.just(2), st.integers(2, most_classes)))
    kinds = draw(st.lists(st.sampled_from(ATTRIBUTES), min_size=1, max_size=5))
    missing = draw(st.sampled_from([0.0, 0.0, 0.2]))
    columns, n_categories = zip(*[attribute(rng, kind, n) for kind in kinds], strict=True)
    X = np.column_stack(columns)
    # Classes depend on the first attribute, so that there is something to split on.
    strength = draw(st.sampled_from([0.0, 1.0, 4.0]))
    rank = np.argsort(np.argsort(X[:, 0], kind="stable")) / n
    y = np.floor((rank * strength + rng.random(n)) / (strength + 1) * m).astype(int)
    X[rng.random(X.shape) < missing] = np.nan
    scores = base_scores(rng, draw(st.sampled_from(SCORES)), y, m)
    scores = scores[:, : draw(st.one_of(st.just(m), st.integers(1, m)))]
    extra = draw(st.sampled_from(EXTRA_SCORES))
    scores = with_extra_scores(rng, extra, scores)
    return Case(X, np.array(n_categories, dtype=np.int32), y, m, scores)


def attribute(rng: np.random.Generator, kind: str, n: int) -> tuple[np.ndarray, int]:
    """Values and the number of categories, 0 if numeric."""
    if kind == "few categories":
        size = int(rng.integers(2, 6))
        return rng.integers(0, max(size - 1, 1), n).astype(float), size  # the last has no rows
    if kind == "many categories":
        size = max(2, int(np.ceil(n * rng.choice([0.1, 0.2, 0.25, 0.28, 0.3, 0.6]))))
        return rng.integers(0, size, n).astype(float), size
    values = {
        "continuous": rng.standard_normal(n),
        "rounded": np.round(rng.standard_normal(n), 1),
        "dense": rng.integers(0, 30, n) * 4e-6,  # neighbours may be too close for a cut
        "constant": np.full(n, 7.0),
    }
    return values[kind], 0


def base_scores(rng: np.random.Generator, kind: str, y: np.ndarray, m: int) -> np.ndarray:
    """One column per class that says something about the class."""
    margins = rng.standard_normal((len(y), m)) + rng.uniform(0, 2) * np.eye(m)[y]
    if kind == "margins":
        return margins
    if kind == "rounded":
        return np.round(margins)
    probabilities = softmax(2 * margins)
    if kind == "certain":
        probabilities = np.round(probabilities, 1)  # many are exactly 0 or 1
    return spec.log_odds(probabilities)


def with_extra_scores(rng: np.random.Generator, kind: str, scores: np.ndarray) -> np.ndarray:
    """Columns that tie with others exactly, or can never be used; in any order."""
    extra = {
        "duplicated": scores,
        "negated": -scores,
        "constant": np.tile(rng.choice([0.0, 0.5, 2.0], scores.shape[1]), (len(scores), 1)),
        "none": scores[:, :0],
    }[kind]
    both = np.hstack([scores, extra])
    return both[:, rng.permutation(both.shape[1])]


# -- Side by side ---------------------------------------------------------------------------------


def spec_tree(case: Case, rows: np.ndarray, iterations: int | None, **limits: Any) -> spec.Node:
    root = spec.grow(
        case.filled, case.y, case.n_categories, case.n_classes, rows.astype(np.intp), **limits
    )
    spec.fit_node_models(root, case.no_model, case.scores, case.y, iterations)
    return root


@dataclass(frozen=True)
class CoreTree:
    structure: _core.Structure
    models: _core.FittedNodes
    arrays: dict[str, Any]


def core_tree(
    case: Case,
    rows: np.ndarray,
    iterations: int | None,
    *,
    min_samples_split: int = 16,
    min_samples_leaf: int = 2,
    max_depth: int | None = None,
    held_out: np.ndarray = NONE,
) -> CoreTree:
    training = case.training()
    depth = 2**31 if max_depth is None else max_depth
    structure = _core.grow(training, rows, min_samples_split, min_samples_leaf, depth)
    settings = (iterations, 200, 5, False, True)
    fitter = _core.ModelFitter(training, structure, rows, held_out, *settings)
    fitter.fit_top(0)
    models = fitter.take()
    arrays = finished(structure, models)
    shape = (len(structure), case.n_classes, -1)
    arrays["coefficients"] = arrays.pop("parameters").reshape(shape)
    return CoreTree(structure, models, arrays)


def side_by_side(
    arrays: dict[str, Any], node: spec.Node, index: int = 0
) -> Iterator[tuple[int, spec.Node]]:
    """Nodes of a core tree and of a specified one, having checked that the two have one shape."""
    assert arrays["n_rows"][index] == node.n
    assert arrays["attribute"][index] == (-1 if node.is_leaf else node.attribute)
    yield index, node
    assert arrays["n_children"][index] == len(node.children)
    if node.is_leaf:
        assert arrays["first_child"][index] == -1
        return
    if node.threshold is not None:
        assert arrays["threshold"][index] == node.threshold
    for branch, child in enumerate(node.children):
        yield from side_by_side(arrays, child, arrays["first_child"][index] + branch)


def node_probabilities(coefficients: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return softmax(coefficients[:, 0] + scores @ coefficients[:, 1:].T)


def is_shaky(result: Callable[[Case], np.ndarray], case: Case, difference: float) -> bool:
    """Whether other roundings change a result of the specification about as much."""
    known = result(case)
    for seed in range(8):
        shaken = result(case.shaken(seed))
        if shaken.shape != known.shape or np.abs(shaken - known).max() >= 0.01 * difference:
            return True
    return False


limits = st.fixed_dictionaries(
    {
        "min_samples_split": st.sampled_from([2, 5, 16, 16, 40]),
        "min_samples_leaf": st.sampled_from([1, 2, 2, 8]),
        "max_depth": st.sampled_from([None, None, 0, 1, 3]),
    }
)


# -- The stages -----------------------------------------------------------------------------------


@examples(100)
@given(cases(), limits)
def test_the_same_structure_is_grown(case, limits):
    arrays = core_tree(case, case.rows, 1, **limits).arrays
    root = spec.grow(case.filled, case.y, case.n_categories, case.n_classes, **limits)
    assert len(list(side_by_side(arrays, root))) == len(arrays["n_rows"])


@examples(60)
@given(cases(), limits)
def test_the_same_structure_is_grown_on_a_fold(case, limits):
    for rows, _ in case.folds()[:2]:
        arrays = core_tree(case, rows, 1, **limits).arrays
        root = spec.grow(
            case.filled, case.y, case.n_categories, case.n_classes, rows.astype(np.intp), **limits
        )
        assert len(list(side_by_side(arrays, root))) == len(arrays["n_rows"])


def test_held_out_errors_of_every_number_of_iterations():
    outcomes = Counter()

    @examples(70)
    @given(cases(), st.integers(1, 60))
    def check(case, most):
        training = case.training()
        paths = [_core.boosting_path(training, *fold) for fold in case.folds()]
        best, sums = _core.choose_iterations(paths, most)
        assert sums[best] <= sums.min() + 1e-12

        def spec_sums(case):
            return spec.choose_iterations(case.no_model, case.scores, case.y, most)[1]

        expected = spec_sums(case)
        difference = np.inf
        if len(sums) == len(expected):
            difference = np.abs(sums - expected).max()
        outcomes[difference <= 1e-9] += 1
        if difference > 1e-9:
            assert is_shaky(spec_sums, case, min(difference, 1e-3))

    check()
    assert outcomes[True] > 20 * outcomes[False]


def test_node_models_of_a_fixed_number_of_iterations():
    outcomes = Counter()

    @examples(70)
    @given(cases(largest=200), st.one_of(st.integers(1, 5), st.integers(1, 60)))
    def check(case, iterations):
        arrays = core_tree(case, case.rows, iterations).arrays

        def spec_nodes(case):
            return list(spec_tree(case, case.rows, iterations).walk())

        nodes = spec_nodes(case)
        indices = [index for index, _ in side_by_side(arrays, nodes[0])]
        for place, (index, node) in enumerate(zip(indices, nodes, strict=True)):

            def probabilities(case, place=place, rows=node.rows):
                return node_probabilities(spec_nodes(case)[place].coef, case.scores[rows])

            if node.n == 0:
                continue
            scores = case.scores[node.rows]
            difference = np.abs(
                node_probabilities(arrays["coefficients"][index], scores)
                - node_probabilities(node.coef, scores)
            ).max()
            outcomes[difference <= 1e-7] += 1
            if difference > 1e-7:
                assert is_shaky(probabilities, case, difference)

    check()
    assert outcomes[True] > 20 * outcomes[False]


def test_pruning_sequences_of_the_same_tree():
    outcomes = Counter()

    @examples(80)
    @given(cases(largest=200), st.integers(1, 4), st.sampled_from([2, 5, 16]))
    def check(case, iterations, min_samples_split):
        rows, held_out = case.folds()[0]
        tree = core_tree(
            case, rows, iterations, min_samples_split=min_samples_split, held_out=held_out
        )
        alphas, errors = _core.pruning_sequence(tree.structure, tree.models)

        def spec_sequence(case):
            root = spec_tree(case, rows, iterations, min_samples_split=min_samples_split)
            steps = [
                (alpha, rmse(root.predict_proba(case.filled[held_out], case.scores[held_out]), y))
                for y in [case.y[held_out]]
                for alpha in spec.pruning_sequence(root, root.n)
            ]
            return np.array(steps).T

        expected = spec_sequence(case)
        difference = np.inf
        if expected.shape == (2, len(alphas)):
            difference = np.abs(np.stack([alphas, np.sqrt(errors)]) - expected).max()
        outcomes[difference <= 1e-9] += 1
        if difference > 1e-9:
            assert is_shaky(spec_sequence, case, min(difference, 1e-3))
            return
        root = spec_tree(case, rows, iterations, min_samples_split=min_samples_split)
        order = np.array(spec.pruning_order(root, root.n))
        found = np.column_stack(_core.pruning_order(tree.structure, tree.models))
        for numbers, others in zip(order.T, found.T, strict=True):
            np.testing.assert_allclose(np.sort(others), np.sort(numbers), rtol=0, atol=1e-9)

    check()
    assert outcomes[True] > 20 * outcomes[False]


# Few different numbers, all with exact sums: ties, and alphas that fall, are the rule.
alphas = st.lists(st.integers(1, 6).map(lambda k: k / 64), max_size=6).map(lambda a: [0.0, *a])
curves = alphas.flatmap(
    lambda a: st.tuples(
        st.just(a),
        st.lists(st.integers(1, 4).map(lambda k: k / 8), min_size=len(a), max_size=len(a)),
    )
)


@examples(200)
@given(alphas, st.lists(curves, min_size=1, max_size=3))
def test_the_choice_of_the_pruning_strength(alphas, curves):
    sequences = [(np.array(a), np.square(e)) for a, e in curves]
    # A tree of which nothing counts but its sequence.
    trees: Any = SimpleNamespace(whole=(np.array(alphas), None), of_folds=sequences)
    core = SimpleNamespace(pruning_sequence=lambda alphas, errors: (alphas, errors))
    with patch.object(pruning_module, "_core", core):
        pruning = choose_pruning(trees, "cv")
    strengths, errors = pruning.path
    expected = strengths_tried(alphas, curves)
    np.testing.assert_allclose(strengths, expected[0], rtol=1e-15)
    np.testing.assert_allclose(errors * len(curves), expected[1], rtol=1e-15)
    assert pruning.alpha == pytest.approx(best_strength(*expected), rel=1e-15)


# -- The whole ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """A tree of the core, and the number of iterations that was chosen."""

    fitted: PrunedTree
    boosting_iterations: int


def core_made(case: Case, iterations: int | None, pruning: Any, limits: dict[str, Any]) -> Made:
    boosting = Boosting(
        min_samples_split=limits["min_samples_split"],
        min_samples_leaf=limits["min_samples_leaf"],
        max_depth=depth_limit(limits["max_depth"]),
        iterations=iterations,
        max_iterations=60,
        frequencies=False,
    )
    engine = PublishedEngine(
        case.dataset(), case.folds(), boosting, prunes=pruning == "cv", n_jobs=None
    )
    return Made(fit_published_tree(engine, pruning), engine.iterations)


def spec_made(case: Case, iterations: int | None, pruning: Any, limits: dict[str, Any]) -> SpecTree:
    return spec.published_tree(
        case.X,
        case.y,
        case.scores,
        case.n_categories,
        case.n_classes,
        boosting_iterations=iterations,
        max_boosting_iterations=60,
        pruning=pruning,
        **limits,
    )


def test_the_whole_tree():
    outcomes = Counter()

    @examples(70)
    @given(
        cases(largest=120, most_classes=4),
        st.one_of(st.none(), st.integers(1, 4), st.integers(1, 30)),
        st.sampled_from(["cv", "cv", "cv", None, 0.0, 0.003, 0.1]),
        limits,
    )
    def check(case, iterations, pruning, limits):
        made = core_made(case, iterations, pruning, limits)
        probabilities = made.fitted.model.probabilities(case.X, np.asfortranarray(case.scores))
        expected = spec_made(case, iterations, pruning, limits)

        def agrees(tree):
            return np.abs(tree.predict_proba(case.X, case.scores) - probabilities).max() <= 1e-6

        if agrees(expected):
            outcomes["agrees"] += 1
            return
        if made.boosting_iterations != expected.boosting_iterations:
            outcomes["another number of iterations"] += 1
            sums = expected.iteration_error
            chosen = [made.boosting_iterations, expected.boosting_iterations]
            if abs(np.diff(sums[chosen])) <= 1e-9:
                iterations = made.boosting_iterations
                expected = spec_made(case, iterations, pruning, limits)
        if not agrees(expected) and pruning == "cv" and is_tie(made, expected):
            outcomes["another pruning strength"] += 1
            pruning = made.fitted.pruning.alpha
            expected = spec_made(case, iterations, pruning, limits)
        if not agrees(expected):
            outcomes["shaky"] += 1
            assert is_shaky(
                lambda case: spec_made(case, iterations, pruning, limits).predict_proba(
                    case.X, case.scores
                ),
                case,
                1e-3,
            )

    check()
    assert outcomes["agrees"] > 8 * (outcomes.total() - outcomes["agrees"])


def is_tie(made: Made, expected: SpecTree) -> bool:
    """Whether two pruning strengths are as good as each other but for rounding."""
    strengths, sums = expected.pruning_path
    return sums[np.abs(strengths - made.fitted.pruning.alpha).argmin()] - sums.min() <= 1e-9


# -- Ties between columns -------------------------------------------------------------------------


@examples(40)
@given(cases(largest=100), st.sampled_from([1.0, -1.0, 2.0, -0.5]), st.integers(1, 20))
def test_of_score_columns_that_tie_exactly_the_first_is_used(case, factor, iterations):
    width = case.scores.shape[1]
    twice = replace(case, scores=np.hstack([case.scores, factor * case.scores]))
    once = core_tree(case, case.rows, iterations).arrays["coefficients"]
    both = core_tree(twice, case.rows, iterations).arrays["coefficients"]
    assert not both[:, :, 1 + width :].any()
    np.testing.assert_array_equal(both[:, :, : 1 + width], once)


@examples(40)
@given(cases(largest=100), st.sampled_from([0.0, 0.25, -8.0]), st.integers(1, 20))
def test_a_constant_score_column_is_never_used(case, value, iterations):
    width = case.scores.shape[1]
    wider = replace(case, scores=np.insert(case.scores, 0, value, axis=1))
    once = core_tree(case, case.rows, iterations).arrays["coefficients"]
    both = core_tree(wider, case.rows, iterations).arrays["coefficients"]
    assert not both[:, :, 1].any()
    assert both.shape[2] == width + 2
    np.testing.assert_array_equal(np.delete(both, 1, axis=2), once)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_constant_scores_leave_every_class_equally_likely(n_classes):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 60)
    case = Case(
        X=(y + rng.random(60))[:, None],
        n_categories=np.zeros(1, dtype=np.int32),
        y=y,
        n_classes=n_classes,
        scores=np.full((60, n_classes), 0.5),
    )
    published = {"min_samples_split": 16, "min_samples_leaf": 2, "max_depth": None}
    made = core_made(case, None, "cv", published)
    expected = spec_made(case, None, "cv", published)
    assert (made.boosting_iterations, made.fitted.model.n_nodes) == (0, 1)
    assert (expected.boosting_iterations, expected.root.is_leaf) == (0, True)
    np.testing.assert_array_equal(made.fitted.model.parameters, 0.0)
