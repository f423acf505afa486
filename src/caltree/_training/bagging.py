"""How much each way of reading the trees of a forest counts for, by their out-of-bag losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .averaging import size_name
from .do_no_harm import LEAVE_ALONE, Judge, Selection
from .settings import Problem
from .shares import best_shares

Floats: TypeAlias = npt.NDArray[np.float64]

# The numbers of rows below which a node may be left whole; the first leaves the root.
SIZES = np.array([np.inf, 960.0, 240.0, 60.0, 16.0, 4.0])
_KINDS = ("", ", splits on scores too")


@dataclass(frozen=True)
class Blend:
    """Shares of the sizes for both kinds of trees, and why they were chosen."""

    selection: Selection
    shares: Floats
    """Kinds x sizes."""

    def tree_shares(self, n_trees: npt.NDArray[np.intp]) -> Floats:
        """The shares of one tree."""
        return self.shares / np.maximum(n_trees, 1)[:, np.newaxis]


class Blender:
    """Adds up what trees say about the rows they did not see, and weighs it."""

    def __init__(self, problem: Problem, objective: str) -> None:
        self.problem = problem
        self.objective = objective
        n_rows = len(problem.labels)
        n_states = 1 if problem.n_classes == 2 else problem.n_classes
        self.sums = np.zeros((len(_KINDS), len(SIZES), n_rows, n_states))
        self.counts = np.zeros((len(_KINDS), n_rows))

    def add(self, kind: int, rows: npt.NDArray[np.uint32], predictions: Floats) -> None:
        """Add what a tree says about its out-of-bag rows, at each size."""
        self.sums[kind][:, rows] += predictions
        self.counts[kind, rows] += 1

    def finish(self) -> Blend:
        """Weigh the candidates by the rows that some tree of each kind did not see."""
        seen = np.asarray((self.counts > 0).all(axis=0))
        if not seen.any():
            return self._without_rows()
        names, candidates = self._candidates(seen)
        labels = self.problem.labels[seen]
        weights = None if self.problem.weights is None else self.problem.weights[seen]
        judge = Judge(labels, weights, self.objective)
        shares = best_shares(candidates, labels, weights, self.objective)
        has_raw = self.problem.raw is not None
        if has_raw:
            shares = _towards_raw(candidates, shares, judge)
        selection: Selection = [
            {
                "candidate": name,
                "loss": judge.loss(candidate),
                "share": float(share),
                "chosen": bool(share > 0),
            }
            for name, candidate, share in zip(names, candidates, shares, strict=True)
        ]
        of_trees = shares[1:] if has_raw else shares
        return Blend(selection, of_trees.reshape(len(_KINDS), -1))

    def _candidates(self, seen: npt.NDArray[np.bool_]) -> tuple[list[str], Floats]:
        names, found = [], []
        if self.problem.raw is not None:
            names.append(LEAVE_ALONE)
            found.append(self.problem.raw[seen])
        for kind, suffix in enumerate(_KINDS):
            for size, rows in enumerate(SIZES):
                mean = self.sums[kind, size][seen] / self.counts[kind][seen][:, np.newaxis]
                names.append(size_name(rows) + suffix)
                found.append(np.hstack([1.0 - mean, mean]) if mean.shape[1] == 1 else mean)
        return names, np.array(found)

    def _without_rows(self) -> Blend:
        """With too few rows to judge: the scores as they are, or the roots."""
        shares = np.zeros((len(_KINDS), len(SIZES)))
        has_raw = self.problem.raw is not None
        if not has_raw:
            shares[:, 0] = 1.0 / len(_KINDS)
        name = LEAVE_ALONE if has_raw else size_name(SIZES[0])
        row: dict[str, Any] = {"candidate": name, "loss": 0.0, "share": 1.0, "chosen": True}
        return Blend([row], shares)


def _towards_raw(candidates: Floats, shares: Floats, judge: Judge) -> Floats:
    """Shares that leave to the first candidate, the raw scores, whatever is not better without."""
    blend, raw = np.tensordot(shares, candidates, 1), np.eye(len(shares))[0]
    if not judge.helps(candidates[0], blend):
        return np.asarray(raw)
    share = judge.lean(candidates[0], blend)
    return np.asarray(share * raw + (1.0 - share) * shares)
