"""Losses of mixtures on held-out rows, from sums over chunks of them."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from .. import _core
from .._inputs.arrays import Floats, Indices
from .._inputs.folds import IN_NO_FOLD
from .._inputs.groups import GroupNumbers
from .._training.held_out import Comparison, HeldOut, mix
from .._training.losses import ROUNDING, SMALLEST_PROBABILITY, as_score, in_standard_errors
from .chunk import Chunk, Plan
from .pool import Pool, Query, Several, Wholes
from .queries import Nodes

Predictions: TypeAlias = npt.NDArray[np.float32]
_Sums: TypeAlias = "Query[Candidates, Any]"

_LARGEST_DEVIANCE = -math.log(SMALLEST_PROBABILITY)
# How many times as likely as the mixture a candidate may make a row; more counts as this.
_LARGEST_RATIO = 1e3
# Rows whose products are added up at a time: whole numbers of so many bits in all are exact.
_BLOCK, _EXACT_BITS = 2**14, 52


@dataclass(frozen=True)
class Candidates:
    """The state of a chunk: what candidates predict for its held-out rows."""

    probabilities: Predictions
    """Candidates x rows x log-odds."""
    labels: npt.NDArray[Any]
    weights: Floats | None
    groups: GroupNumbers | None = None

    def losses(self, mixture: Floats, scoring: str) -> Floats:
        """Return the loss of every row."""
        p = mix(mixture, self.probabilities)
        if scoring == "log_loss":
            return np.asarray(-np.log(np.maximum(self.likelihoods(p), SMALLEST_PROBABILITY)))
        residuals = p - self.indicators()
        return np.asarray(np.mean(residuals**2, axis=1))

    def likelihoods(self, p: Floats) -> Floats:
        """Return the probabilities of the classes that rows have."""
        if p.shape[-1] == 1:
            return np.where(self.labels == 1, p[..., 0], 1.0 - p[..., 0])
        return p[..., np.arange(len(self.labels)), self.labels]

    def indicators(self) -> npt.NDArray[np.bool_]:
        """Return the labels as ones and zeros, a column per log-odds."""
        n_states = self.probabilities.shape[2]
        classes = [1] if n_states == 1 else np.arange(n_states)
        return np.asarray(self.labels[:, np.newaxis] == classes)

    def total(self, values: Floats, unit: float) -> int:
        """Return the weighted sum of a value per row, in whole numbers."""
        return int(self.in_wholes(values, unit).sum())

    def in_wholes(self, values: Floats, unit: float) -> Wholes:
        """Return weighted values of rows as whole numbers."""
        weighted = values if self.weights is None else values * self.weights
        return np.rint(weighted * unit).astype(np.int64)


@dataclass(frozen=True)
class PredictHeldOut:
    """Predicts the held-out rows by the trees that did not see them, read at several sizes."""

    first: Indices
    """Where the nodes of each tree begin, and where the last end."""
    ancestor: Indices
    """Nodes of all trees x sizes: the node whose model predicts the rows of a node."""
    parameters: Floats
    uncalibrated: bool
    """Whether the uncalibrated probabilities come first."""

    def advance(self, plan: Plan, chunk: Chunk, state: Nodes) -> Candidates:
        scale = plan.scale
        found = _core.predictions(
            chunk.in_core(plan),
            state,
            self.first,
            self.ancestor,
            self.parameters,
            scale.centre,
            scale.scale,
            scale.per_state,
        )
        log_odds = chunk.offset
        if self.uncalibrated and log_odds is not None:
            p = expit(log_odds) if scale.n_states == 1 else softmax(log_odds, axis=1)
            found = np.concatenate([p[np.newaxis].astype(np.float32), found])
        held_out = chunk.fold != IN_NO_FOLD
        if held_out.all():
            return Candidates(found, chunk.labels, chunk.weights, chunk.groups)
        weights = None if chunk.weights is None else chunk.weights[held_out]
        groups = None if chunk.groups is None else chunk.groups[held_out]
        return Candidates(found[:, held_out], chunk.labels[held_out], weights, groups)


@dataclass(frozen=True)
class CountDifferences:
    """Of each pair of candidates, the number of predictions in which they differ."""

    n_candidates: int

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros((self.n_candidates, self.n_candidates), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        p = state.probabilities
        for a in range(self.n_candidates):
            for b in range(a):
                total[[a, b], [b, a]] += np.count_nonzero(p[a] != p[b])

    def finish(self, plan: Plan, total: Wholes) -> Wholes:
        return total


@dataclass(frozen=True)
class CountMistakes:
    """The weight of rows that have another class than the first candidate's most likely one."""

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros(1, dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        p = state.probabilities[0]
        likeliest = p[:, 0] > 0.5 if p.shape[1] == 1 else p.argmax(axis=1)
        total += state.total((likeliest != state.labels).astype(np.float64), plan.unit(1.0))

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        return np.asarray(total / plan.unit(1.0))


@dataclass(frozen=True)
class SumProducts:
    """The products of the candidates, and last of the labels, with each other."""

    n_candidates: int

    def zeros(self, plan: Plan) -> Wholes:
        n = self.n_candidates + 1
        return np.zeros((n, n), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        columns = np.concatenate([state.probabilities, state.indicators()[np.newaxis]])
        columns = columns.astype(np.float64)
        if state.weights is not None:
            columns *= np.sqrt(state.weights / plan.largest_weight)[:, np.newaxis]
        columns = np.rint(columns * self._scale(plan)).reshape(len(columns), -1)
        for begin in range(0, columns.shape[1], _BLOCK):
            block = columns[:, begin : begin + _BLOCK]
            total += (block @ block.T).astype(np.int64)

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        return np.asarray(total / self._scale(plan) ** 2)

    @staticmethod
    def _scale(plan: Plan) -> float:
        in_all = math.ceil(math.log2(plan.n_rows * plan.scale.n_states))
        bits = min(_EXACT_BITS - int(math.log2(_BLOCK)), 62 - in_all) // 2
        return float(2**bits)


@dataclass(frozen=True)
class SumLosses:
    """Weight, and losses of some mixtures."""

    mixtures: tuple[Floats, ...]
    scoring: str

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros(1 + len(self.mixtures), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        weight, loss, _ = _units(plan)
        total[0] += state.total(np.ones(len(state.labels)), weight)
        for i, mixture in enumerate(self.mixtures, 1):
            total[i] += state.total(state.losses(mixture, self.scoring), loss)

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        weight, loss, _ = _units(plan)
        return np.asarray(total / np.array([weight] + [loss] * len(self.mixtures)))


@dataclass(frozen=True)
class SumExcess:
    """Weight, losses of two mixtures, and the difference of these and its square."""

    worse: Floats
    better: Floats
    scoring: str

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros(5, dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        weight, loss, square = _units(plan)
        worse, better = (state.losses(w, self.scoring) for w in (self.worse, self.better))
        difference = worse - better
        found = [state.total(np.ones(len(state.labels)), weight)]
        found += [state.total(values, loss) for values in (worse, better, difference)]
        total += np.array([*found, state.total(difference**2, square)], dtype=np.int64)

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        weight, loss, square = _units(plan)
        return np.asarray(total / np.array([weight, loss, loss, loss, square]))


@dataclass(frozen=True)
class SumByGroup:
    """Of each group, the weight and the difference of the losses of two mixtures."""

    worse: Floats
    better: Floats
    scoring: str

    def zeros(self, plan: Plan) -> Wholes:
        return np.zeros((2, plan.n_groups), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        losses = [state.losses(mixture, self.scoring) for mixture in (self.worse, self.better)]
        both = (np.ones(len(state.labels)), losses[0] - losses[1])
        for sums, values, unit in zip(total, both, _units(plan)[:2], strict=True):
            np.add.at(sums, np.asarray(state.groups), state.in_wholes(values, unit))

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        return np.asarray(total / np.array(_units(plan)[:2])[:, np.newaxis])


@dataclass(frozen=True)
class SumRatios:
    """Ratios of the candidates' likelihoods to a mixture's, and products of two ratios."""

    mixture: Floats

    def zeros(self, plan: Plan) -> Wholes:
        n = len(self.mixture)
        return np.zeros((1 + n, n), dtype=np.int64)

    def add(self, plan: Plan, chunk: Chunk, state: Candidates, total: Wholes) -> None:
        likely = state.likelihoods(state.probabilities.astype(np.float64))
        mixture = np.maximum(mix(self.mixture, likely), SMALLEST_PROBABILITY)
        ratios = np.minimum(likely / mixture, _LARGEST_RATIO)
        unit = plan.unit(_LARGEST_RATIO**2)
        for a, ratio in enumerate(ratios):
            total[0, a] += state.total(ratio, unit)
            total[1 + a] += [state.total(ratio * other, unit) for other in ratios]

    def finish(self, plan: Plan, total: Wholes) -> Floats:
        return np.asarray(total / plan.unit(_LARGEST_RATIO**2))


def _units(plan: Plan) -> tuple[float, float, float]:
    """Of weights, of losses and of their squares."""
    return plan.unit(1.0), plan.unit(_LARGEST_DEVIANCE), plan.unit(_LARGEST_DEVIANCE**2)


class HeldOutSums(HeldOut):
    """Candidates that are known by sums over held-out rows, wherever these are."""

    def __init__(
        self,
        pool: Pool[Candidates],
        plan: Plan,
        names: tuple[str, ...],
        *,
        has_uncalibrated: bool,
    ) -> None:
        self._pool, self._plan = pool, plan
        self.scoring = plan.scoring
        self.names = names
        self.has_uncalibrated = has_uncalibrated
        self._known: dict[Any, Floats] = {}

    def foresee(
        self,
        *,
        losses: Sequence[Floats] = (),
        excesses: Sequence[Comparison] = (),
        ratios: Sequence[Floats] = (),
    ) -> None:
        if not self._pool.is_far:
            return
        queries: list[_Sums] = [SumLosses((weights,), self.scoring) for weights in losses]
        queries += [SumExcess(*compared) for compared in excesses]
        queries += [SumRatios(weights) for weights in ratios]
        unknown = {_key(query): query for query in queries if _key(query) not in self._known}
        if unknown:
            answers = self._pool.total(Several(tuple(unknown.values())))
            self._known.update(zip(unknown, answers, strict=True))

    def loss(self, weights: Floats) -> float:
        total, loss = self._ask(SumLosses((weights,), self.scoring))
        return as_score(float(loss / total), self.scoring)

    def excess(self, worse: Floats, better: Floats, scoring: str) -> float:
        found = self._ask(SumExcess(worse, better, scoring))
        total, worse_loss, _, difference, squares = found.tolist()
        mean = difference / total
        if abs(mean) <= ROUNDING * worse_loss / total:
            return 0.0
        if self._plan.n_groups:
            weight, by_group = self._pool.total(SumByGroup(worse, better, scoring))
            squares = float(((by_group - mean * weight) ** 2).sum())
            return in_standard_errors(mean, squares, total)
        return in_standard_errors(mean, squares - difference * mean, total)

    def mistakes(self) -> float:
        return float(self._ask(CountMistakes())[0])

    def are_equal(self, first: int, second: int) -> bool:
        differences = self._ask(CountDifferences(len(self)))
        return bool(differences[first, second] == 0)

    def products(self) -> tuple[Floats, Floats]:
        total = self._ask(SumProducts(len(self)))
        mean = total / (self._total_weight / self._plan.largest_weight)
        return mean[:-1, :-1], mean[:-1, -1]

    def likelihood_ratios(self, weights: Floats) -> tuple[Floats, Floats]:
        means = self._ask(SumRatios(weights)) / self._total_weight
        return means[0], means[1:]

    @property
    def _total_weight(self) -> float:
        return float(self._ask(SumLosses((), self.scoring))[0])

    def _ask(self, query: _Sums) -> Floats:
        """Return the answer to a query, which is asked once."""
        if self._pool.is_far and not self._known:
            self._ask_the_usual()
        key = _key(query)
        if key not in self._known:
            self._known[key] = self._pool.total(query)
        return self._known[key]

    def _ask_the_usual(self) -> None:
        """Ask at once whatever is wanted of all candidates."""
        n = len(self)
        queries: list[_Sums] = [SumLosses((alone,), self.scoring) for alone in np.eye(n)]
        queries += [SumLosses((), self.scoring), CountDifferences(n), CountMistakes()]
        if self.scoring == "rmse":
            queries.append(SumProducts(n))
        answers = self._pool.total(Several(tuple(queries)))
        self._known.update(zip(map(_key, queries), answers, strict=True))


def _key(query: _Sums) -> Any:
    """Return the query as a key of a dict."""
    return type(query), pickle.dumps(query)
