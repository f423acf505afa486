"""Random rows for trees of shrunken node models, and the trees of the core on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from caltree import _core

from ..spec import shrunken as spec
from .trees import finished

NONE = np.empty(0, dtype=np.uint32)
NO_LIMIT = 2**31


# -- Random cases ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """Training data, encoded: category codes for nominal attributes, NaN where missing."""

    X: np.ndarray
    n_categories: np.ndarray
    y: np.ndarray
    n_classes: int
    scores: np.ndarray
    offset: np.ndarray | None
    all_scores: bool
    weights: np.ndarray | None
    max_bins: int
    fills: np.ndarray

    @property
    def can_be_monotone(self) -> bool:
        """Whether there is one score of two classes, and what bends it."""
        return self.n_classes == 2 and self.scores.shape[1] == 2

    @property
    def rows(self) -> np.ndarray:
        return np.arange(len(self.y), dtype=np.uint32)

    def training(self) -> _core.Training:
        return _core.Training(
            self.X,
            self.n_categories,
            self.fills,
            self.y.astype(np.uint16),
            self.n_classes,
            np.asfortranarray(self.scores),
            self.weights,
        )

    def shrunken(self) -> _core.ShrunkenTraining:
        offset = None if self.offset is None else np.asfortranarray(self.offset)
        return _core.ShrunkenTraining(self.training(), offset, self.max_bins, self.all_scores)

    def sample(self, *, with_scores: bool = False) -> spec.Sample:
        weights = np.ones(len(self.y)) if self.weights is None else self.weights

        def bin_numbers(values: np.ndarray) -> spec.Binned:
            return spec.bin_numbers(values, weights, self.max_bins)

        columns = [
            spec.bin_categories(values, size) if size else bin_numbers(values)
            for values, size in zip(self.X.T, self.n_categories, strict=True)
        ]
        if with_scores:
            # Of two classes, the second half of them bends the first.
            n_plain = self.scores.shape[1] // (2 if self.n_classes == 2 else 1)
            columns += [bin_numbers(values) for values in self.scores.T[:n_plain]]
        regressors = spec.make_regressors(
            self.scores, self.offset, self.n_classes, weights, all_scores=self.all_scores
        )
        return spec.Sample(columns, regressors, self.y, weights)


ATTRIBUTES = ["continuous", "rounded", "few categories", "many categories", "constant", "empty"]


@st.composite
def cases(draw: Callable[..., Any], largest: int = 100) -> Case:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([3, 10, 40, largest // 2, largest, largest]))
    m = draw(st.sampled_from([2, 2, 2, 3, 5]))
    # The first attribute carries the signal.
    kinds = [draw(st.sampled_from(ATTRIBUTES[:4]))]
    kinds += draw(st.lists(st.sampled_from(ATTRIBUTES), max_size=3))
    columns, sizes = zip(*[attribute(rng, kind, n) for kind in kinds], strict=True)
    X = np.column_stack(columns)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2, 0.4]))] = np.nan
    if draw(st.booleans()):
        # What ties exactly.
        X = np.column_stack([X, X[:, :1] if sizes[0] else -X[:, :1]])
        sizes = (*sizes, sizes[0])
    evidence = np.round(1.5 * rng.standard_normal((n, m)), draw(st.sampled_from([1, 12])))
    strength = draw(st.sampled_from([0.0, 3.0, 6.0]))
    signal = X[:, 0].copy()
    if sizes[0] and draw(st.booleans()):  # the order of the codes means nothing
        known = ~np.isnan(signal)
        signal[known] = rng.permutation(sizes[0])[signal[known].astype(int)]
    region = np.nan_to_num(signal, nan=rng.choice([-9.0, 9.0])) > np.nanmedian([0, *signal])
    truth = np.where(region[:, np.newaxis], 1.0, rng.uniform(-1, 1)) * evidence
    truth[:, 0] += strength * region
    y = np.argmax(truth + rng.gumbel(size=truth.shape), axis=1)
    scores, offset = scores_and_offset(rng, evidence, draw(st.sampled_from(SCORES)))
    return Case(
        X=X,
        n_categories=np.array(sizes, dtype=np.int32),
        y=y,
        n_classes=m,
        scores=scores,
        offset=offset,
        all_scores=draw(st.booleans()),
        weights=draw(st.sampled_from([None, None, "dyadic", "any"]).map(weights_of(rng, n))),
        max_bins=draw(st.sampled_from([255, 255, 8, 3, 2])),
        fills=np.array([float(rng.integers(0, size or 3)) for size in sizes]),
    )


def attribute(rng: np.random.Generator, kind: str, n: int) -> tuple[np.ndarray, int]:
    """Values and the number of categories, 0 if numeric."""
    if kind == "few categories":
        size = int(rng.integers(1, 6))
        return rng.integers(0, max(size - 1, 1), n).astype(float), size  # the last has no rows
    if kind == "many categories":
        size = int(rng.integers(6, 20))
        return rng.integers(0, size, n).astype(float), size
    values = {
        "continuous": rng.standard_normal(n),
        "rounded": np.round(rng.standard_normal(n), 1),
        "constant": np.full(n, 7.0),
        "empty": np.full(n, np.nan),
    }
    return values[kind], 0


SCORES = ["one classifier"] * 3 + ["margins", "two classifiers"]
SCORES += ["a constant classifier", "a constant class"]


def scores_and_offset(
    rng: np.random.Generator, evidence: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scores and what they say before any correction, as the calibrators hand them on."""
    n, m = evidence.shape
    logs = evidence - np.logaddexp.reduce(evidence, axis=1, keepdims=True)
    odds = evidence[:, 1:] - evidence[:, :1]
    offset = odds if m == 2 else logs
    plain = odds if m == 2 else logs
    if kind == "margins" and m > 2:
        plain = 3.0 * evidence - 7.0
    if kind == "two classifiers":
        plain = np.hstack([plain, plain + rng.standard_normal(plain.shape)])
    if kind == "a constant classifier":
        plain = np.hstack([plain, np.full(plain.shape, 0.3)])
    if kind == "a constant class":
        plain = offset = np.hstack([plain[:, 1:], np.full((n, 1), -0.3)])
    scores = spec.with_bends(plain) if m == 2 else plain
    return scores, None if kind == "margins" else offset


def weights_of(rng: np.random.Generator, n: int) -> Callable[[str | None], np.ndarray | None]:
    """Of dyadic weights every sum is exact, so that sizes of branches cannot differ by rounding."""
    kinds = {
        None: None,
        "dyadic": rng.choice([0.25, 0.5, 1.0, 2.0, 3.0], n),
        "any": rng.gamma(1.0, size=n) + 1e-3,
    }
    return kinds.__getitem__


limits = st.builds(
    spec.Settings,
    penalty=st.sampled_from([0.05, 0.05, 0.001, 1.0, 10.0]),
    min_samples_split=st.sampled_from([2.0, 4.0, 4.0, 8.0, 40.0]),
    min_samples_leaf=st.sampled_from([1.0, 2.0, 2.0, 7.5]),
    max_depth=st.sampled_from([None, None, None, None, 0, 1, 3]),
    share_of_rows=st.sampled_from([1.0, 1.0, 0.8, 0.25]),
)


@st.composite
def cases_and_limits(draw: Callable[..., Any], **sizes: int) -> tuple[Case, spec.Settings]:
    """Cases, with limits that suit them: where models can be monotone, about half of them are."""
    case, wanted = draw(cases(**sizes)), draw(limits)
    return case, replace(wanted, monotone=case.can_be_monotone and draw(st.booleans()))


# -- The core, and its nodes ----------------------------------------------------------------------


@dataclass(frozen=True)
class CoreTree:
    structure: _core.Structure
    models: _core.FittedNodes
    arrays: dict[str, Any]


def core_tree(
    case: Case,
    limits: spec.Settings,
    rows: np.ndarray | None = None,
    held_out: np.ndarray = NONE,
    *,
    log_loss: bool = False,
) -> CoreTree:
    structure, models = case.shrunken().grow(
        case.rows if rows is None else rows,
        held_out,
        limits.penalty,
        limits.min_samples_split,
        limits.min_samples_leaf,
        NO_LIMIT if limits.max_depth is None else limits.max_depth,
        log_loss,
        limits.monotone,
        limits.share_of_rows,
    )
    return CoreTree(structure, models, finished(structure, models))


@dataclass(frozen=True)
class CoreNode:
    """A node of the core with the rows that reach it, found by following its arrays."""

    index: int
    parent: int
    depth: int
    rows: np.ndarray


def core_nodes(case: Case, arrays: dict[str, Any]) -> Iterator[CoreNode]:
    pending = [CoreNode(0, -1, 0, np.arange(len(case.y)))]
    while pending:
        node = pending.pop()
        yield node
        if arrays["attribute"][node.index] < 0:
            continue
        branch = branches(case, arrays, node.index, case.X[node.rows])
        first = arrays["first_child"][node.index]
        for child in range(arrays["n_children"][node.index]):
            part = node.rows[branch == child]
            pending.append(CoreNode(first + child, node.index, node.depth + 1, part))


def branches(case: Case, arrays: dict[str, Any], node: int, X: np.ndarray) -> np.ndarray:
    """The child to which each row goes, read from the arrays of a tree."""
    attribute = arrays["attribute"][node]
    values, size = X[:, attribute], case.n_categories[attribute]
    missing = np.isnan(values)
    if size == 0:
        threshold = arrays["threshold"][node]
        # The largest number stands for infinity: the second child is that of missing values alone.
        all_known = threshold == np.finfo(float).max
        branch = (values > (np.inf if all_known else threshold)).astype(int)
    else:
        table = arrays["branches"][arrays["table"][node] :][:size]
        branch = table[np.where(missing, 0, values).astype(int)]
    return np.where(missing, arrays["missing"][node], branch)


def core_parameters(sample: spec.Sample, arrays: dict[str, Any], node: int) -> np.ndarray:
    """The parameters of a node for scaled scores."""
    return scaled_parameters(sample, arrays["parameters"][node])


def scaled_parameters(sample: spec.Sample, parameters: np.ndarray) -> np.ndarray:
    """Parameters for the scores as they are, for scaled scores."""
    unscaled = parameters.reshape(sample.no_correction.shape)
    slopes = unscaled[:, 1:] * sample.regressors.scale
    centred = (unscaled[:, 1:] * sample.regressors.centre).sum(axis=1)
    return np.column_stack([unscaled[:, 0] + centred, slopes])


def possible_gains(
    sample: spec.Sample,
    rows: np.ndarray,
    evidence: spec.Evidence,
    split: spec.Split,
    settings: spec.Settings,
) -> list[float]:
    """The gains of a split, by each of the orders in which its attribute may be cut."""
    column = sample.columns[split.attribute]
    first = ~split.goes_second(column)[rows]
    gain = spec.gain_of_split(evidence, first, settings.penalty)
    orders = spec.possible_orders(column, column.codes[rows], evidence, settings)
    return [gain - order.chance for order in orders]
