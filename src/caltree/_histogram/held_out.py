"""What averages over levels lose on held-out rows, from sums over chunks of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from .._inputs.folds import IN_NO_FOLD
from .._training.do_no_harm import ROUNDING, SMALLEST_PROBABILITY, Chooser, in_standard_errors
from .._training.shares import cleaned, simplex_least_squares
from .chunk import Nodes, Rows, Speakers, Wholes, predictions
from .plan import Plan
from .pool import Pool

Floats: TypeAlias = npt.NDArray[np.float64]
Predictions: TypeAlias = npt.NDArray[np.float32]

_LARGEST_DEVIANCE = -math.log(SMALLEST_PROBABILITY)
# How many times as likely as the average a candidate may make a row; more counts as this.
_LARGEST_RATIO = 1e3
_MOST_STEPS = 30
_SMALLEST_IMPROVEMENT = 1e-9
# Rows whose products are added up at a time: whole numbers of so many bits in all are exact.
_BLOCK, _EXACT_BITS = 2**14, 52


@dataclass(frozen=True)
class _Candidates:
    """What the levels say about some rows, as probabilities: candidates x rows x log-odds."""

    values: Predictions
    labels: npt.NDArray[Any]
    weights: Floats | None

    def average(self, shares: Floats) -> Floats:
        return _mean(shares, self.values)

    def losses(self, shares: Floats, objective: str) -> Floats:
        """The loss of every row, times its weight."""
        p = self.average(shares)
        if objective == "log_loss":
            return np.asarray(-np.log(np.maximum(self.likelihoods(p), SMALLEST_PROBABILITY)))
        residuals = p - self.truth()
        return np.asarray(np.mean(residuals**2, axis=1))

    def likelihoods(self, p: Floats) -> Floats:
        """What was said about the class that a row has."""
        if p.shape[-1] == 1:
            return np.where(self.labels == 1, p[..., 0], 1.0 - p[..., 0])
        return p[..., np.arange(len(self.labels)), self.labels]

    def truth(self) -> npt.NDArray[np.bool_]:
        classes = [1] if self.values.shape[2] == 1 else np.arange(self.values.shape[2])
        return np.asarray(self.labels[:, np.newaxis] == classes)

    def total(self, values: Floats, unit: float) -> int:
        weighted = values if self.weights is None else values * self.weights
        return int(np.rint(weighted * unit).astype(np.int64).sum())


def _mean(shares: Floats, values: npt.NDArray[Any]) -> Floats:
    """One after the other: a product of matrices may round a row by its place among others."""
    result = np.zeros(values.shape[1:])
    for share, value in zip(shares, values, strict=True):
        if share != 0.0:
            result += share * value.astype(np.float64)
    return result


def candidates(plan: Plan, rows: Rows, nodes: Nodes, message: _Said) -> _Candidates:
    """What the raw scores, if they are among the candidates, and the levels say."""
    said = predictions(plan, rows, nodes, message.speakers)
    offset = rows.of_offset(plan)
    if message.has_raw and offset is not None:
        raw = expit(offset) if plan.scale.n_states == 1 else softmax(offset, axis=1)
        said = np.concatenate([raw[np.newaxis].astype(np.float32), said])
    held_out = rows.fold != IN_NO_FOLD
    found = _Candidates(said, rows.labels, rows.weights)
    if held_out.all():
        return found
    weights = None if rows.weights is None else rows.weights[held_out]
    return replace(found, values=said[:, held_out], labels=rows.labels[held_out], weights=weights)


@dataclass(frozen=True)
class _Said:
    speakers: Speakers
    has_raw: bool


def _differ(plan: Plan, rows: Rows, said: _Candidates, message: None) -> Wholes:
    """Of each pair of candidates, in how many rows they differ."""
    n = len(said.values)
    result = np.zeros((n, n), dtype=np.int64)
    for a in range(n):
        for b in range(a):
            result[a, b] = result[b, a] = np.count_nonzero(said.values[a] != said.values[b])
    return result


def _products(plan: Plan, rows: Rows, said: _Candidates, message: None) -> Wholes:
    """The products of the candidates, and of the truth, with each other."""
    scale = _scale_of_products(plan)
    columns = np.concatenate([said.values, said.truth()[np.newaxis]]).astype(np.float64)
    if said.weights is not None:
        columns *= np.sqrt(said.weights / plan.largest_weight)[:, np.newaxis]
    columns = np.rint(columns * scale).reshape(len(columns), -1)
    result = np.zeros((len(columns), len(columns)), dtype=np.int64)
    for begin in range(0, columns.shape[1], _BLOCK):
        block = columns[:, begin : begin + _BLOCK]
        result += (block @ block.T).astype(np.int64)
    return result


def _scale_of_products(plan: Plan) -> float:
    in_all = math.ceil(math.log2(plan.n_rows * plan.scale.n_states))
    bits = min(_EXACT_BITS - int(math.log2(_BLOCK)), 62 - in_all) // 2
    return float(2**bits)


def _losses(
    plan: Plan, rows: Rows, said: _Candidates, message: tuple[Sequence[Floats], str]
) -> Wholes:
    """Weight, losses of some averages, and the difference of the first two and its square."""
    averages, objective = message
    losses = [said.losses(shares, objective) for shares in averages]
    found = [said.total(np.ones(len(said.labels)), plan.unit(1.0))]
    unit, unit_of_squares = _units_of_losses(plan)
    found += [said.total(values, unit) for values in losses]
    if len(losses) == 2:
        difference = losses[0] - losses[1]
        found += [said.total(difference, unit), said.total(difference**2, unit_of_squares)]
    return np.array(found, dtype=np.int64)


def _units_of_losses(plan: Plan) -> tuple[float, float]:
    return plan.unit(_LARGEST_DEVIANCE), plan.unit(_LARGEST_DEVIANCE**2)


def _slopes(plan: Plan, rows: Rows, said: _Candidates, shares: Floats) -> Wholes:
    """Of the likelihood of an average: how it grows with each share, and with each two."""
    likely = said.likelihoods(said.values.astype(np.float64))
    mean = np.maximum(_mean(shares, likely), SMALLEST_PROBABILITY)
    ratios = np.minimum(likely / mean, _LARGEST_RATIO)
    unit = plan.unit(_LARGEST_RATIO**2)
    found = [said.total(ratio, unit) for ratio in ratios]
    found += [said.total(a * b, unit) for a in ratios for b in ratios]
    return np.array(found, dtype=np.int64)


class HeldOutSums:
    """Candidates that are known by sums over held-out rows, wherever these are."""

    def __init__(
        self, pool: Pool, plan: Plan, speakers: Speakers, *, has_raw: bool, n_levels: int
    ) -> None:
        self._pool, self._plan = pool, plan
        self._n = n_levels + has_raw
        self.judge = _Judge(pool, plan)
        pool.update(candidates, _Said(speakers, has_raw))

    def __len__(self) -> int:
        return self._n

    def average(self, shares: Floats) -> Floats:
        """The shares, which are all that the judge needs."""
        return shares

    def are_equal(self, first: int, second: int) -> bool:
        """Whether two of them say the same about every row."""
        return bool(self._differ[first, second] == 0)

    def best_shares(self, used: Sequence[int]) -> Floats:
        """The shares with which some of them lose least."""
        if self._plan.log_loss:
            return self._likeliest(list(used))
        products = self._products[np.ix_(used, used)]
        return cleaned(simplex_least_squares(products, self._products[used, -1]))

    @cached_property
    def _differ(self) -> Wholes:
        found: Wholes = self._pool.total(_differ)
        return found

    @cached_property
    def _products(self) -> Floats:
        """Those of the candidates and, last, of the truth, mean over rows."""
        total = self._pool.total(_products) / _scale_of_products(self._plan) ** 2
        weight = self.judge.total_weight / self._plan.largest_weight
        return np.asarray(total / weight)

    def _likeliest(self, used: list[int]) -> Floats:
        """By Newton's method, each step of which is a problem of least squares."""
        n = len(used)
        shares = np.full(n, 1.0 / n)
        loss = self._loss(used, shares)
        for _ in range(_MOST_STEPS):
            everywhere = self._everywhere(used, shares)
            total = self._pool.total(_slopes, everywhere) / self._plan.unit(_LARGEST_RATIO**2)
            first, second = total[: len(self)], total[len(self) :].reshape(len(self), -1)
            aims = 2.0 * first[used] / self.judge.total_weight
            products = second[np.ix_(used, used)] / self.judge.total_weight
            step = cleaned(simplex_least_squares(products, aims)) - shares
            length, found = 1.0, loss
            while length > 1e-3 and (found := self._loss(used, shares + length * step)) > loss:
                length /= 2.0
            if loss - found <= _SMALLEST_IMPROVEMENT:
                break
            shares, loss = shares + length * step, found
        return cleaned(shares)

    def _everywhere(self, used: list[int], shares: Floats) -> Floats:
        result = np.zeros(len(self))
        result[used] = shares
        return result

    def _loss(self, used: list[int], shares: Floats) -> float:
        return self.judge.loss(self._everywhere(used, shares))


class _Judge(Chooser):
    """A prediction is the shares of the candidates."""

    def __init__(self, pool: Pool, plan: Plan) -> None:
        self._pool, self._plan = pool, plan
        self.objective = plan.objective

    @cached_property
    def total_weight(self) -> float:
        """Of the rows that are held out."""
        found = self._pool.total(_losses, ((), self.objective))
        return float(found[0] / self._plan.unit(1.0))

    def loss(self, predictions: Floats) -> float:
        """RMSE, or log loss."""
        found = self._pool.total(_losses, ((predictions,), self.objective))
        mean = float(found[1] / _units_of_losses(self._plan)[0]) / self.total_weight
        return mean if self.objective == "log_loss" else math.sqrt(mean)

    def excess(self, worse: Floats, better: Floats, objective: str) -> float:
        """By how many standard errors the mean of one row loss exceeds that of the other."""
        found = self._pool.total(_losses, ((worse, better), objective))
        unit, unit_of_squares = _units_of_losses(self._plan)
        total = self.total_weight
        worse_loss, difference = float(found[1]) / unit, float(found[3]) / unit
        mean = difference / total
        if abs(mean) <= ROUNDING * worse_loss / total:
            return 0.0
        squares = float(found[4]) / unit_of_squares - difference * mean
        return in_standard_errors(mean, squares, total)
