"""How much each way of reading the trees of a forest counts for, by their out-of-bag losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .choice import DEMANDED, GLOBAL, LEAVE_ALONE, Selection, mean_loss, row_losses, standard_errors
from .selection import Problem

Floats: TypeAlias = npt.NDArray[np.float64]

# The numbers of rows below which a node may be left whole; the first leaves the root.
SIZES = np.array([np.inf, 960.0, 240.0, 60.0, 16.0, 4.0])
_KINDS = ("", ", splits on scores too")
# What is added to the diagonal, and what a sum of shares other than 1 costs.
_RIDGE = 1e-10
_COST_OF_THE_SUM = 1e4
# Shares below this are rounding.
_SMALLEST_SHARE = 1e-6
_MOST_STEPS = 500
_SMALLEST_PROBABILITY = 1e-15


@dataclass(frozen=True)
class Blend:
    """Shares of the sizes for both kinds of trees, and why they were chosen."""

    selection: Selection
    shares: Floats
    """Kinds x sizes."""

    def smallest_size(self, kind: int) -> float:
        """Nodes of fewer rows need not be split."""
        used = np.flatnonzero(self.shares[kind] > 0)
        return float(SIZES[used[-1]]) if len(used) else float("inf")

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
        find = _likeliest_shares if self.objective == "log_loss" else _least_squares_shares
        shares = find(candidates, labels, weights)
        losses = [row_losses(candidate, labels, self.objective) for candidate in candidates]
        blend = row_losses(np.tensordot(shares, candidates, 1), labels, self.objective)
        has_raw = self.problem.raw is not None
        if has_raw and standard_errors(losses[0], blend, weights) <= DEMANDED:
            shares = np.eye(len(shares))[0]
        selection: Selection = [
            {
                "candidate": name,
                "loss": mean_loss(loss, weights, self.objective),
                "share": float(share),
                "chosen": bool(share > 0),
            }
            for name, loss, share in zip(names, losses, shares, strict=True)
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
                names.append(_size_name(rows) + suffix)
                found.append(np.hstack([1.0 - mean, mean]) if mean.shape[1] == 1 else mean)
        return names, np.array(found)

    def _without_rows(self) -> Blend:
        """With too few rows to judge: the scores as they are, or the roots."""
        shares = np.zeros((len(_KINDS), len(SIZES)))
        has_raw = self.problem.raw is not None
        if not has_raw:
            shares[:, 0] = 1.0 / len(_KINDS)
        name = LEAVE_ALONE if has_raw else _size_name(SIZES[0])
        row: dict[str, Any] = {"candidate": name, "loss": 0.0, "share": 1.0, "chosen": True}
        return Blend([row], shares)


def _least_squares_shares(
    candidates: Floats, labels: npt.NDArray[Any], weights: Floats | None
) -> Floats:
    """Shares of the least squared error: not negative, of sum 1."""
    # Imported here: importing caltree shall not take its time.
    from scipy.optimize import nnls

    n_candidates, n_rows, n_classes = candidates.shape
    root = np.full(n_rows, n_rows**-0.5) if weights is None else np.sqrt(weights / weights.sum())
    columns = (candidates * root[:, np.newaxis]).reshape(n_candidates, -1)
    target = (np.eye(n_classes)[labels] * root[:, np.newaxis]).ravel()
    products = columns @ columns.T + _RIDGE * np.eye(n_candidates)
    factor = np.linalg.cholesky(products)
    aim = np.linalg.solve(factor, columns @ target)
    ones = np.full((1, n_candidates), _COST_OF_THE_SUM)
    shares, _ = nnls(np.vstack([factor.T, ones]), np.append(aim, _COST_OF_THE_SUM))
    return _tidy(shares)


def _likeliest_shares(
    candidates: Floats, labels: npt.NDArray[Any], weights: Floats | None
) -> Floats:
    """Shares of the highest likelihood, by expectation and maximisation."""
    likely = np.take_along_axis(candidates, labels[np.newaxis, :, np.newaxis].astype(np.intp), 2)
    likely = np.maximum(likely[..., 0], _SMALLEST_PROBABILITY)
    n_candidates, n_rows = likely.shape
    share_of_row = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()
    shares = np.full(n_candidates, 1.0 / n_candidates)
    for _ in range(_MOST_STEPS):
        shares = shares * ((likely / (shares @ likely)) @ share_of_row)
    return _tidy(shares)


def _tidy(shares: Floats) -> Floats:
    shares = np.where(shares < _SMALLEST_SHARE * shares.sum(), 0.0, shares)
    return np.asarray(shares / shares.sum())


def _size_name(size: float) -> str:
    return GLOBAL if size == np.inf else f"regions of {size:g} rows"
