"""The tree of shrunken node models once more, in plain NumPy, written to be read.

This is the executable specification of the default tree, and of the trees of a forest. It reads
from top to bottom: bins, node models, splits, growing, samples. The fit of a node model is in
``newton.py``, and how a tree is cut back in ``pruning.py`` and ``levels.py``.

A *state* is one of the log-odds that a node model gives a row. Two classes have one, that of the
second against the first; more classes have one each. Parameters are a matrix of one row a state:
the intercept, then a slope for each of the scores that the state sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .newton import PenalisedLoss, RisingSlopes, fit_below_root, fit_root

Floats = NDArray[np.float64]
Classes = NDArray[np.integer]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

# The scores of other classes are held back more than a class's own, and so are bends.
PENALTY_OF_OTHERS = 40.0
# How strongly the root is held at the temperature, a class.
PENALTY_OF_ROOT = 8.0
SMALLEST_LIKELIHOOD = float(np.finfo(np.float64).eps)

NO_DIFFERENCE = 1e-9  # between the gains of two splits
FREE_CATEGORIES = 4.0
COST_OF_A_CATEGORY = 1.3  # for each beyond
COST_OF_A_BAGGED_CATEGORY = 1.8  # in the trees of a forest
COST_OF_SPREAD = 2.5  # times the root of how many are beyond
PRIOR_ROWS = 20.0  # which hold what a category asks for at nothing
COST_OF_CODE_ORDER = 5.0  # where categories are cut in the order of their codes
COST_OF_MORE_STATES = 1.5  # times either


# -- Bins -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Binned:
    """An attribute: the bin or category of every row, ``n_bins`` where the value is missing."""

    codes: Rows
    n_bins: int
    lower: Floats | None = None  # numeric: the smallest value of each bin
    upper: Floats | None = None  # and the largest

    @property
    def is_numeric(self) -> bool:
        return self.lower is not None

    @property
    def is_missing(self) -> Mask:
        return self.codes == self.n_bins

    def threshold(self, cut: int) -> float:
        """The value that rows of bins up to ``cut`` do not exceed, and all others do."""
        assert self.lower is not None and self.upper is not None
        if cut + 1 == self.n_bins:
            return float(np.finfo(np.float64).max)  # only missing values are left
        return threshold_between(self.upper[cut], self.lower[cut + 1])


def threshold_between(below: float, above: float) -> float:
    """About halfway between two values, so that single precision divides all numbers alike."""
    halfway = below / 2 + above / 2
    # Between neighbouring floating-point numbers there is nothing.
    halfway = float(halfway if below <= halfway < above else below)
    if max(abs(below), abs(above)) >= np.finfo(np.float32).max:
        return halfway
    first, last, middle = np.array([below, above, halfway]).astype(np.float32)
    if first == last or (first == below and last == above):
        return halfway
    single = min(middle, np.nextafter(last, first))
    edge = (float(single) + float(np.nextafter(single, np.float32(np.inf)))) / 2
    # The end of the numbers that are rounded to it, which is rounded to the even one itself.
    return edge if np.float32(edge) == single else float(np.nextafter(edge, -np.inf))


def bin_numbers(values: Floats, weights: Floats, max_bins: int) -> Binned:
    """Bins that are the distinct values, if these are few, or else quantiles of them."""
    missing = np.isnan(values)
    distinct, which = np.unique(values[~missing] + 0.0, return_inverse=True)  # there is no -0
    counts = np.bincount(which.ravel(), weights[~missing])
    bin_of_value = deal_values(counts.tolist(), max_bins)
    n_bins = int(bin_of_value.max(initial=-1)) + 1
    codes = np.full(len(values), n_bins, dtype=np.intp)
    codes[~missing] = bin_of_value[which.ravel()]
    parts = [distinct[bin_of_value == number] for number in range(n_bins)]
    lower, upper = (np.array([part[end] for part in parts]) for end in (0, -1))
    return Binned(codes, n_bins, lower, upper)


def deal_values(counts: list[float], max_bins: int) -> Rows:
    """The bins of distinct values, ascending, of which value i has ``counts[i]`` rows.

    A bin is full if another value would give it more than its share of the rows that earlier bins
    left; the last takes all.
    """
    if len(counts) <= max_bins:
        return np.arange(len(counts))
    bins, number, held, rows_left = [], 0, 0.0, sum(counts)
    for count in counts:
        bins_left = max_bins - number
        overfull = (held + count) * bins_left > rows_left
        if held > 0.0 and overfull and bins_left > 1:
            number, rows_left, held = number + 1, rows_left - held, 0.0
        held += count
        bins.append(number)
    return np.array(bins, dtype=np.intp)


def bin_categories(values: Floats, n_categories: int) -> Binned:
    return Binned(np.where(np.isnan(values), n_categories, values).astype(np.intp), n_categories)


# -- Node models ----------------------------------------------------------------------------------


def with_bends(log_odds: Floats) -> Floats:
    """The scores of two classes: log-odds, and ln p + ln (1 - p) of each, which bend the model."""
    logs_of_second, logs_of_first = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
    return np.hstack([log_odds, logs_of_second + logs_of_first])


@dataclass(frozen=True)
class Regressors:
    """The rows as the node models see them."""

    x: Floats  # (n, states, 1 + k): 1, then what the state sees, of mean 0 and deviation 1
    offset: Floats  # (n, states): what the scores say before any correction
    centre: Floats  # (states, k)
    scale: Floats  # (states, k), 0 where a score is constant
    is_own: Mask  # (states, k): whether a score is that of the state's own class, and no bend
    corrects_probabilities: bool  # margins say nothing before any correction

    @property
    def temperature(self) -> Floats | None:
        """(states, 1 + k) where one slope for the log-probabilities of all classes leads.

        Only the scores of one classifier have a temperature, and only if they are probabilities.
        """
        if not self.corrects_probabilities or (self.is_own.sum(axis=1) != 1).any():
            return None
        slopes = np.where(self.is_own, self.scale, 0.0)
        return np.column_stack([self.centre[self.is_own], slopes])

    def penalties(self, penalty: float, *, of_root: bool = False) -> Floats:
        """(states, 1 + k) how strongly each parameter is held."""
        own, others = penalty, PENALTY_OF_OTHERS * penalty
        n_states = len(self.is_own)
        if of_root and self.temperature is not None:
            own = PENALTY_OF_ROOT * max(2, n_states) * penalty
            others = own * (PENALTY_OF_OTHERS if n_states == 1 else n_states - 1)
        return np.column_stack([np.full(n_states, own), np.where(self.is_own, own, others)])

    @property
    def rising(self) -> RisingSlopes | None:
        """Where a higher score does not give a lower probability; None if the score is constant."""
        scale, bend = self.scale[0]
        if scale == 0.0:
            return None
        return RisingSlopes(float(scale), float(bend), self.corrects_probabilities)

    def unscaled(self, parameters: Floats) -> Floats:
        """Parameters for the scores as they are."""
        varies = self.scale > 0
        slopes = np.where(varies, parameters[:, 1:] / np.where(varies, self.scale, 1.0), 0.0)
        return np.column_stack([parameters[:, 0] - (slopes * self.centre).sum(axis=1), slopes])

    def log_odds(self, rows: Rows, parameters: Floats) -> Floats:
        return self.offset[rows] + (self.x[rows] * parameters).sum(axis=2)


def make_regressors(
    scores: Floats, offset: Floats | None, n_classes: int, weights: Floats, *, all_scores: bool
) -> Regressors:
    """Scale the scores by their weighted mean and deviation over all rows."""
    seen, is_own = seen_by_states(scores, n_classes, all_scores=all_scores)
    centre = np.average(seen, axis=0, weights=weights)
    scale = np.sqrt(np.average((seen - centre) ** 2, axis=0, weights=weights))
    varies = (seen.max(axis=0) > seen.min(axis=0)) & (scale > 0)
    scaled = np.where(varies, (seen - centre) / np.where(varies, scale, 1.0), 0.0)
    return Regressors(
        x=np.concatenate([np.ones((*seen.shape[:2], 1)), scaled], axis=2),
        offset=np.zeros(seen.shape[:2]) if offset is None else offset,
        centre=centre,
        scale=np.where(varies, scale, 0.0),
        is_own=is_own,
        corrects_probabilities=offset is not None,
    )


def seen_by_states(scores: Floats, n_classes: int, *, all_scores: bool) -> tuple[Floats, Mask]:
    """(n, states, k) what each state sees, and (states, k) which of that is its own."""
    n_scores = scores.shape[1]
    if n_classes == 2:
        # The log-odds of each classifier, then what bends them.
        return scores[:, np.newaxis, :], np.arange(n_scores)[np.newaxis] < n_scores // 2
    # Of several classifiers side by side each has a score a class.
    if all_scores:
        seen = np.tile(scores[:, np.newaxis, :], (1, n_classes, 1))
        return seen, np.arange(n_scores) % n_classes == np.arange(n_classes)[:, np.newaxis]
    seen = scores.reshape(len(scores), -1, n_classes).transpose(0, 2, 1)
    return seen, np.ones(seen.shape[1:], dtype=bool)


def probabilities(F: Floats) -> Floats:
    """Probabilities (n, states) of log-odds."""
    if F.shape[1] == 1:
        e = np.exp(-np.abs(F))
        return np.where(F >= 0, 1.0, e) / (1.0 + e)
    e = np.exp(F - F.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def log_of_sum(F: Floats) -> Floats:
    """The logarithm of what norms the probabilities."""
    if F.shape[1] == 1:
        return np.logaddexp(0.0, F[:, 0])
    return np.asarray(np.logaddexp.reduce(F, axis=1))


def class_indicators(y: Classes, n_states: int) -> Floats:
    """(n, states) 1 where a row is of the state's class."""
    if n_states == 1:
        return (y == 1).astype(float)[:, np.newaxis]
    return np.eye(n_states)[y]


@dataclass(frozen=True)
class Sample:
    """The training rows, and how much each counts."""

    columns: Sequence[Binned]
    regressors: Regressors
    y: Classes
    weights: Floats

    @property
    def n_states(self) -> int:
        return self.regressors.x.shape[1]

    @property
    def indicators(self) -> Floats:
        return class_indicators(self.y, self.n_states)

    @property
    def no_correction(self) -> Floats:
        return np.zeros(self.regressors.x.shape[1:])

    def probabilities(self, rows: Rows, parameters: Floats) -> Floats:
        return probabilities(self.regressors.log_odds(rows, parameters))


def losses(sample: Sample, rows: Rows, parameters: Floats) -> Floats:
    """Minus the log-likelihood of each row."""
    F = sample.regressors.log_odds(rows, parameters)
    return np.asarray(log_of_sum(F) - (F * sample.indicators[rows]).sum(axis=1))


def derivatives(sample: Sample, rows: Rows, parameters: Floats) -> tuple[Floats, Floats]:
    """Of the sum of the losses: minus its gradient, and each state's second derivatives."""
    p, weights = sample.probabilities(rows, parameters), sample.weights[rows]
    x = sample.regressors.x[rows]  # (n, states, width)
    residuals = weights[:, np.newaxis] * (sample.indicators[rows] - p)
    variances = weights[:, np.newaxis] * p * (1.0 - p)
    gradient = np.einsum("ns,nsa->sa", residuals, x)
    return gradient, np.einsum("ns,nsa,nsb->sab", variances, x, x)


def fit_node_model(
    sample: Sample,
    rows: Rows,
    parent: Floats,
    penalty: float,
    *,
    is_root: bool,
    temperature_only: bool = False,
    monotone: bool = False,
) -> Floats:
    """Newton's method on the deviance, penalised by the distance from the parent's parameters.

    The root has no parent, and is held where the temperature leads it, if there is one. Only the
    one score of two classes can be monotone.
    """
    weights, regressors = sample.weights[rows], sample.regressors
    penalised = PenalisedLoss(
        lambda parameters: float(weights @ losses(sample, rows, parameters)),
        lambda parameters: derivatives(sample, rows, parameters),
        parent,
        regressors.penalties(penalty, of_root=is_root),
        regressors.rising if monotone else None,
    )
    if not is_root:
        return fit_below_root(penalised)
    total, line = float(weights.sum()), regressors.temperature
    return fit_root(penalised, total, line, line_only=temperature_only)


def deviance(sample: Sample, rows: Rows, parameters: Floats) -> Floats:
    """Minus the log-likelihood of each row."""
    p = sample.probabilities(rows, parameters)
    of_class = (p * sample.indicators[rows]).sum(axis=1)
    if sample.n_states == 1:
        of_class = np.where(sample.y[rows] == 1, p[:, 0], 1.0 - p[:, 0])
    return np.asarray(-np.log(np.maximum(of_class, SMALLEST_LIKELIHOOD)))


def squared_error(sample: Sample, rows: Rows, parameters: Floats) -> Floats:
    """Of each row, mean over classes: with two classes both are equally far off."""
    residuals = sample.indicators[rows] - sample.probabilities(rows, parameters)
    return np.asarray((residuals**2).mean(axis=1))


# -- Splits ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """The sums by which a correction of the rows' log-odds is judged, row by row."""

    weights: Floats  # (n,)
    residuals: Floats  # (n, states), weighted
    variances: Floats  # (n, states), weighted

    def corrections(self, part: Mask, penalty: float | Floats) -> Floats:
        """The penalised Newton step of each state's intercept on part of the rows."""
        return np.asarray(
            self.residuals[part].sum(axis=0) / (self.variances[part].sum(axis=0) + penalty)
        )

    def gain(self, part: Mask, penalty: float) -> float:
        """Twice the deviance that these steps would gain."""
        return float(self.residuals[part].sum(axis=0) @ self.corrections(part, penalty))


def make_evidence(sample: Sample, rows: Rows, parameters: Floats) -> Evidence:
    p, weights = sample.probabilities(rows, parameters), sample.weights[rows]
    residuals = weights[:, np.newaxis] * (sample.indicators[rows] - p)
    return Evidence(weights, residuals, weights[:, np.newaxis] * p * (1.0 - p))


@dataclass(frozen=True)
class Settings:
    penalty: float = 0.1
    min_samples_split: float = 16.0
    min_samples_leaf: float = 2.0
    max_depth: int | None = None
    max_features: int | None = None
    monotone: bool = False
    cost_of_a_category: float = COST_OF_A_CATEGORY
    share_of_rows: float = 1.0  # of the rows of the tree that is asked for


@dataclass(frozen=True)
class Split:
    """A test on one attribute that sends rows to one of two children."""

    attribute: int
    gain: float
    first_codes: frozenset[int]  # the bins or categories that go to the first child
    missing_first: bool  # and whether missing values do
    missing_rows: float  # weight of the rows of which that was learned
    threshold: float | None  # numeric: rows not above it go to the first child

    def goes_second(self, column: Binned) -> Mask:
        goes_first = np.isin(column.codes, list(self.first_codes))
        return ~np.where(column.is_missing, self.missing_first, goes_first)


def find_split(
    sample: Sample, rows: Rows, parameters: Floats, settings: Settings, attributes: Sequence[int]
) -> Split | None:
    """The first split that gains clearly more than those before it, and more than nothing."""
    evidence = make_evidence(sample, rows, parameters)
    best = None
    for attribute in attributes:
        for split in possible_splits(sample, rows, evidence, attribute, settings):
            if split.gain > (best.gain if best else 0.0) + NO_DIFFERENCE:
                best = split
    return best


def possible_splits(
    sample: Sample, rows: Rows, evidence: Evidence, attribute: int, settings: Settings
) -> Iterator[Split]:
    """Every cut between neighbours, missing values going either way."""
    column = sample.columns[attribute]
    codes, missing = column.codes[rows], column.is_missing[rows]
    for order in possible_orders(column, codes, evidence, settings):
        for missing_first in [False, True] if missing.any() else [False]:
            for n_first in range(1, len(order.codes) + 1):
                first = np.isin(codes, order.codes[:n_first]) | (missing & missing_first)
                smaller = min(evidence.weights[first].sum(), evidence.weights[~first].sum())
                if first.all() or smaller < settings.min_samples_leaf:
                    continue
                split = Split(
                    attribute,
                    gain_of_split(evidence, first, settings.penalty) - order.chance,
                    frozenset(order.codes[:n_first]),
                    missing_first,
                    float(evidence.weights[missing].sum()),
                    None,
                )
                yield with_codes_of_others(split, column, order, n_first, evidence, first, missing)


@dataclass(frozen=True)
class Order:
    """The codes among the rows of a node, in an order in which they may be cut."""

    codes: list[int]
    ascending: bool
    chance: float = 0.0  # what the best cut gains by chance


def possible_orders(
    column: Binned, codes: Rows, evidence: Evidence, settings: Settings
) -> Iterator[Order]:
    """Bins ascend; categories ascend, too, if they are many, and by the correction they ask for."""
    present = [int(code) for code in np.unique(codes[codes < column.n_bins])]
    if column.is_numeric or not present:
        yield Order(present, ascending=True)
        return
    times = COST_OF_MORE_STATES if evidence.residuals.shape[1] > 1 else 1.0
    times *= settings.share_of_rows
    rows = np.array([evidence.weights[codes == code].sum() for code in present])
    beyond = max(0.0, effective_number(rows) - FREE_CATEGORIES)
    chance = settings.cost_of_a_category * beyond + COST_OF_SPREAD * float(np.sqrt(beyond))
    if chance > COST_OF_CODE_ORDER:
        yield Order(present, ascending=True, chance=times * COST_OF_CODE_ORDER)
    by_correction = ordered_by_correction(present, evidence, codes, settings.penalty)
    yield Order(by_correction, ascending=False, chance=times * chance)


def effective_number(rows: Floats) -> float:
    """How many categories of as many rows each would gain as much by chance.

    The residuals of K useless categories are about as large as the roots of their variances. The
    positive ones make one side and the negative ones the other, each of half the variance, so that
    both together gain 2 / pi times the squared sum of these roots, over the sum of the variances.
    """
    return float(np.sqrt(rows).sum() ** 2 / rows.sum())


def ordered_by_correction(
    present: list[int], evidence: Evidence, codes: Rows, penalty: float
) -> list[int]:
    """Categories by the correction of the state with most to gain from one of each on its own.

    But for the prior, the best division of categories in two, as far as this state goes, is then
    one of neighbours.
    """
    corrections, gains = corrections_of_categories(present, evidence, codes, penalty)
    return [present[i] for i in np.argsort(corrections[:, np.argmax(gains)], kind="stable")]


def corrections_of_categories(
    present: Sequence[int], evidence: Evidence, codes: Rows, penalty: float
) -> tuple[Floats, Floats]:
    """(categories, states) corrections, which a few rows do not prove, and each state's gain."""
    prior = PRIOR_ROWS * evidence.variances.sum(axis=0) / evidence.weights.sum()
    parts = [codes == code for code in present]
    corrections = np.array([evidence.corrections(part, penalty + prior) for part in parts])
    residuals = np.array([evidence.residuals[part].sum(axis=0) for part in parts])
    return corrections, np.abs(residuals * corrections).sum(axis=0)


def gain_of_split(evidence: Evidence, first: Mask, penalty: float) -> float:
    """The gain of two corrections over one."""
    everything = np.ones(len(first), dtype=bool)
    parts = [evidence.gain(part, penalty) for part in (first, ~first)]
    return sum(parts) - evidence.gain(everything, penalty)


def with_codes_of_others(
    split: Split,
    column: Binned,
    order: Order,
    n_first: int,
    evidence: Evidence,
    first: Mask,
    missing: Mask,
) -> Split:
    """Say where values go that no row of the node has, so that every value goes somewhere."""
    if not missing.any():
        # Missing values go with most rows.
        more_first = evidence.weights[first].sum() >= evidence.weights[~first].sum()
        split = replace(split, missing_first=bool(more_first))
    if not order.ascending:
        # Other categories go where missing values go.
        others = set(range(column.n_bins)) - set(order.codes) if split.missing_first else set()
        return replace(split, first_codes=split.first_codes | others)
    # The cut is halfway through the bins that no row is in.
    cut = order.codes[n_first - 1]
    if n_first < len(order.codes):
        cut += (order.codes[n_first] - cut - 1) // 2
    threshold = column.threshold(cut) if column.is_numeric else None
    return replace(split, first_codes=frozenset(range(cut + 1)), threshold=threshold)


# -- Growing --------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node: its training rows, its node model and its split (None in a leaf)."""

    rows: Rows
    n_rows: float  # their weight
    parameters: Floats
    error: float  # their deviance
    depth: int
    split: Split | None = None
    children: list[Node] = field(default_factory=list)
    iterations_run: int = 1  # every node has a model of its own

    @property
    def is_leaf(self) -> bool:
        return self.split is None

    def make_leaf(self) -> None:
        self.split, self.children = None, []

    def walk(self) -> Iterator[Node]:
        """The node and all below it, in pre-order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def node_of(self, sample: Sample, row: int, smallest: float = 0.0) -> Node:
        """Where a row ends, if nodes of fewer rows than ``smallest`` are not split."""
        if self.split is None or self.n_rows < smallest:
            return self
        column = sample.columns[self.split.attribute]
        branch = int(self.split.goes_second(column)[row])
        return self.children[branch].node_of(sample, row, smallest)


def grow(sample: Sample, rows: Rows, settings: Settings, random: SplitMix | None = None) -> Node:
    """Grow a tree on some of the rows; ``random`` draws the attributes that a split may be on."""

    def grow_node(rows: Rows, parent: Floats, depth: int) -> Node:
        kind = {"is_root": depth == 0, "monotone": settings.monotone}
        parameters = fit_node_model(sample, rows, parent, settings.penalty, **kind)
        weights = sample.weights[rows]
        error = float(weights @ deviance(sample, rows, parameters))
        node = Node(rows, float(weights.sum()), parameters, error, depth)
        if node.n_rows >= settings.min_samples_split and depth != settings.max_depth:
            attributes = drawn_attributes(len(sample.columns), settings.max_features, random)
            node.split = find_split(sample, rows, parameters, settings, attributes)
        if node.split is not None:
            second = node.split.goes_second(sample.columns[node.split.attribute])[rows]
            node.children = [
                grow_node(part, parameters, depth + 1) for part in (rows[~second], rows[second])
            ]
        return node

    return grow_node(rows, sample.no_correction, 0)


# -- The samples of a forest ----------------------------------------------------------------------


class SplitMix:
    """SplitMix64, after its authors' description."""

    def __init__(self, seed: int) -> None:
        self.state = seed

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) % 2**64
        z = self.state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    def below(self, limit: int) -> int:
        return (self.next() >> 32) * limit >> 32


def draw_rows(n_rows: int, random: SplitMix) -> Rows:
    """How often each row is drawn when as many are drawn as there are, with replacement."""
    drawn = [random.below(n_rows) for _ in range(n_rows)]
    return np.bincount(drawn, minlength=n_rows)


def drawn_attributes(
    n_attributes: int, max_features: int | None, random: SplitMix | None
) -> list[int]:
    """The attributes that a split may be on, in the order in which they are looked at."""
    attributes = list(range(n_attributes))
    if random is None or max_features is None or max_features >= n_attributes:
        return attributes
    for i in range(max_features):
        other = i + random.below(n_attributes - i)
        attributes[i], attributes[other] = attributes[other], attributes[i]
    return attributes[:max_features]


def grow_bagged(
    sample: Sample,
    settings: Settings,
    seed: int,
    groups: Rows | None = None,
    *,
    n_scores: int = 0,
    n_split_scores: int = 0,
) -> tuple[Node, Sample]:
    """A tree on rows that were drawn, and the sample in which the others have weight 0.

    With groups, which are numbered, whole groups are drawn. The last columns are scores: the tree
    looks at some of them, which are drawn, too.
    """
    random = SplitMix(seed)
    if groups is None:
        times = draw_rows(len(sample.y), random)
    else:
        times = draw_rows(int(groups.max()) + 1, random)[groups]
    drawn = replace(sample, weights=sample.weights * times)
    settings = replace(settings, cost_of_a_category=COST_OF_A_BAGGED_CATEGORY)
    of_growth = SplitMix(random.next())
    n_attributes = len(sample.columns) - n_scores
    scores = sorted(drawn_attributes(n_scores, n_split_scores, random))
    seen = [*range(n_attributes), *(n_attributes + score for score in scores)]
    some = replace(drawn, columns=[sample.columns[column] for column in seen])
    root = grow(some, np.flatnonzero(times), settings, of_growth)
    for node in root.walk():
        if node.split is not None:
            node.split = replace(node.split, attribute=seen[node.split.attribute])
    return root, drawn


def held_out_gains(node: Node, sample: Sample, rows: Rows, weights: Floats) -> list[float]:
    """By how much each split lessens the squared error of rows that the tree has not seen."""
    if node.split is None:
        return []
    second = node.split.goes_second(sample.columns[node.split.attribute])[rows]
    parts = (rows[~second], rows[second])
    gain = float(weights[rows] @ squared_error(sample, rows, node.parameters))
    gains = []
    for child, part in zip(node.children, parts, strict=True):
        gain -= float(weights[part] @ squared_error(sample, part, child.parameters))
        gains += held_out_gains(child, sample, part, weights)
    return [gain, *gains]
