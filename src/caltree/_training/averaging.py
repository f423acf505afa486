"""The levels of a tree, from its root to its leaves, and what each of them counts for.

A level is the tree with its small nodes left whole, or with its weak splits pruned. Averaged over
levels, a row's probability comes from all nodes on its way, the large and safe and the small and
special ones, each as far as held-out rows speak for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.folds import Fold
from .do_no_harm import (
    GLOBAL,
    LEAVE_ALONE,
    LOCAL,
    TIE_WITH_GLOBAL,
    Chooser,
    Judge,
    Selection,
    is_number,
)
from .settings import Problem
from .shares import best_shares

Floats: TypeAlias = npt.NDArray[np.float64]
Grown: TypeAlias = tuple[_core.Structure, _core.NodeModels]

PRUNED = "pruned tree"
# The sizes of the regions: this, and so many times as much, up to all rows.
SMALLEST_SIZE = 15.0
_RATIO_OF_SIZES = 4.0


def level_sizes(n_rows: float, smallest: float = SMALLEST_SIZE) -> Floats:
    """The fewest rows of a node that is split, level by level; the first splits nothing."""
    n_sizes = max(0, math.ceil(math.log(n_rows / smallest, _RATIO_OF_SIZES)))
    sizes = smallest * _RATIO_OF_SIZES ** np.arange(n_sizes, dtype=np.float64)
    return np.append(sizes, math.inf)[::-1]


def size_name(size: float) -> str:
    """What a level is called."""
    return GLOBAL if size == math.inf else f"regions of {size:g} rows"


class HeldOut(Protocol):
    """What the levels of the folds' trees say about the rows held out from them: candidates."""

    @property
    def judge(self) -> Chooser:
        """Who compares averages of them."""

    def __len__(self) -> int:
        """How many candidates there are."""

    def average(self, shares: Floats) -> Floats:
        """An average of them, as the judge wants it."""

    def are_equal(self, first: int, second: int) -> bool:
        """Whether two of them say the same about every row."""

    def best_shares(self, used: Sequence[int]) -> Floats:
        """The shares with which some of them lose least."""


@dataclass(frozen=True)
class HeldOutRows:
    """Candidates that are all at hand: candidates x rows x classes."""

    candidates: Floats
    judge: Judge

    def __len__(self) -> int:
        return len(self.candidates)

    def average(self, shares: Floats) -> Floats:
        return np.asarray(np.tensordot(shares, self.candidates, 1))

    def are_equal(self, first: int, second: int) -> bool:
        return np.array_equal(self.candidates[first], self.candidates[second])

    def best_shares(self, used: Sequence[int]) -> Floats:
        judge = self.judge
        return best_shares(self.candidates[used], judge.labels, judge.weights, judge.objective)


@dataclass(frozen=True)
class Levels:
    """The levels, and what held-out rows tell of them."""

    sizes: Floats
    held_out: HeldOut
    """What each size says, and the pruned tree; first of all, the raw scores."""
    has_raw: bool
    """Whether they are there: only if they may be left alone."""

    @property
    def judge(self) -> Chooser:
        """Who compares averages."""
        return self.held_out.judge

    def whole_average(self) -> Floats:
        """The shares of all levels, after that of the raw scores, if there are any."""
        return self._shares(range(len(self.sizes)))

    def loss(self, shares: Floats) -> float:
        """The loss of an average."""
        return self.judge.loss(self._mean(shares))

    def simplest(self, *, averaging: bool) -> tuple[Floats, Floats]:
        """The shares of the simplest average that is as good as that of all levels.

        Twice, for the root alone may do: the simplest of more than the root, and of all. Without
        averaging it is the pruned tree or the root.
        """
        whole = self.whole_average() if averaging else self.only(-1)
        aim = self._mean(whole)
        averages = (self._shares(range(1 + n)) for n in range(len(self.sizes) - 1))
        ties = (shares for shares in averages if self.judge.is_tie(self._mean(shares), aim))
        local = next(ties, whole)
        root = self.only(0)
        is_enough = self.judge.is_tie(self._mean(root), aim, TIE_WITH_GLOBAL)
        return local, root if is_enough else local

    def only(self, level: int) -> Floats:
        """The shares if one level is to count; the last is the pruned tree."""
        n_levels = len(self.sizes) + 1
        return np.asarray(np.eye(self.has_raw + n_levels)[self.has_raw + level % n_levels])

    def select(self, local: Floats, best: Floats, *, may_average: bool) -> tuple[Selection, Floats]:
        """Leave the scores alone, or take the best average: what was chosen, and its shares."""
        shares, name = best, LOCAL if best[self.has_raw + 1 :].any() else GLOBAL
        candidates = {GLOBAL: self._mean(self.only(0)), LOCAL: self._mean(local)}
        if self.has_raw:
            alone = np.eye(len(best))[0]
            raw, average = self._mean(alone), self._mean(best)
            candidates = {LEAVE_ALONE: raw, **candidates}
            if not self.judge.helps(raw, average):
                shares, name = alone, LEAVE_ALONE
            elif may_average:
                share = self.judge.lean(raw, average)
                shares = share * alone + (1.0 - share) * best
        selection = [
            {"candidate": key, "loss": self.judge.loss(value), "chosen": key == name}
            for key, value in candidates.items()
        ]
        return selection, shares

    def table(self, shares: Floats) -> list[dict[str, Any]]:
        """The levels, the loss of each, and what it counts for."""
        names = [LEAVE_ALONE] * self.has_raw + [*map(size_name, self.sizes), PRUNED]
        alone = np.eye(len(names))
        return [
            {"level": name, "loss": self.loss(only), "share": float(share)}
            for name, only, share in zip(names, alone, shares, strict=True)
        ]

    def _mean(self, shares: Floats) -> Floats:
        return self.held_out.average(shares)

    def _shares(self, sizes: Sequence[int]) -> Floats:
        """The shares of some sizes, together with the pruned tree and the raw scores."""
        used: list[int] = []
        first, last = int(self.has_raw), len(self.held_out) - 1
        for level in [*range(first), *(first + size for size in sizes), last]:
            # Of levels that say the same the simplest is enough.
            if not any(self.held_out.are_equal(level, other) for other in used):
                used.append(level)
        shares = np.zeros(len(self.held_out))
        shares[used] = self.held_out.best_shares(used)
        return shares


def held_out_levels(
    problem: Problem,
    grown: Sequence[Grown],
    folds: Sequence[Fold],
    alpha: float | None,
    sizes: Floats,
    *,
    boosted: bool,
    objective: str,
    may_leave_alone: bool,
) -> Levels:
    """What the trees of the folds say, level by level, about the rows they did not see."""
    held_out = np.concatenate([test for _, test in folds])
    raw = problem.raw if may_leave_alone else None
    has_raw = raw is not None
    candidates = np.empty((has_raw + len(sizes) + 1, len(held_out), problem.n_classes))
    if raw is not None:
        candidates[0] = raw[held_out]
    begin = 0
    for tree, (_, test) in zip(grown, folds, strict=True):
        end = begin + len(test)
        odds = np.asfortranarray(problem.odds[test])
        offset = None if problem.offset is None else np.asfortranarray(problem.offset[test])
        matrix = problem.matrix[test]
        for level, shares in enumerate(np.eye(len(sizes) + 1), start=int(has_raw)):
            arrays = _core.finished_tree(*tree, alpha, sizes, shares)
            model = problem.tree(arrays, boosted=boosted)
            candidates[level, begin:end] = model.probabilities(matrix, odds, offset)
        begin = end
    weights = None if problem.weights is None else problem.weights[held_out]
    judge = Judge(problem.labels[held_out], weights, objective)
    return Levels(sizes, HeldOutRows(candidates, judge), has_raw)


def checked_levels(stored: Any) -> list[dict[str, Any]]:
    """Stored levels, or a ValueError."""
    rows: list[Any] = stored if isinstance(stored, list) else [None]
    for row in rows:
        if (
            not isinstance(row, dict)
            or set(row) != {"level", "loss", "share"}
            or not isinstance(row["level"], str)
            or not is_number(row["loss"])
            or not (is_number(row["share"]) and 0.0 <= row["share"] <= 1.0)
        ):
            raise ValueError(
                "levels of a stored calibrator must list levels, losses and shares from 0 to 1"
            )
    return rows
