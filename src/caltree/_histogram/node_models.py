"""Node models from sums over rows: all nodes of a level take their Newton steps together."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from .._inputs.arrays import Floats
from .chunk import Plan
from .pool import Wholes

Slots: TypeAlias = npt.NDArray[np.int64]
Ask: TypeAlias = Callable[[Slots, Floats, bool], Any]
"""Makes the question for the sums of some nodes at parameters of theirs, with derivatives or not.

Its answer is `Wholes`.
"""

# The sums of a node: weight, loss, deviance and held-out error; then for each log-odds the gradient
# and the lower triangle of the Hessian.
_N_FIRST = 4


def n_sums(plan: Plan) -> int:
    """Return the number of sums of a node."""
    width = plan.scale.width
    return _N_FIRST + plan.scale.n_states * (width + width * (width + 1) // 2)


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of each node at some parameters, a row per node."""

    weight: Floats
    loss: Floats
    deviance: Floats
    held_out: Floats
    gradient: Floats
    """Minus the gradient of the loss: nodes x log-odds x parameters of each."""
    hessian: Floats
    """Nodes x log-odds x parameters x parameters."""

    @classmethod
    def of(cls, wholes: Wholes, plan: Plan) -> Sums:
        """Return the sums that whole numbers stand for."""
        plain, score, squares, loss = plan.units
        n, width, n_states = len(wholes), plan.scale.width, plan.scale.n_states
        rows, columns = np.tril_indices(width)
        with_scores = (rows > 0).astype(int) + (columns > 0)
        states = wholes[:, _N_FIRST:].reshape(n, n_states, -1).astype(np.float64)
        gradient = states[:, :, :width] / np.array([plain] + [score] * (width - 1))
        hessian = np.empty((n, n_states, width, width))
        lower = states[:, :, width:] / np.array([plain, score, squares])[with_scores]
        hessian[:, :, rows, columns] = hessian[:, :, columns, rows] = lower
        first = wholes[:, :_N_FIRST].astype(np.float64) / np.array([plain, loss, loss, loss])
        weight, losses, deviance, held_out = np.ascontiguousarray(first.T)
        return cls(weight, losses, deviance, held_out, gradient, hessian)

    def replace(self, slots: Slots, other: Sums, moved: npt.NDArray[np.bool_]) -> None:
        """Overwrite the sums of some nodes, in place, with those that have moved."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[slots[moved]] = getattr(other, name)[moved]


def fit_node_models(
    parents: Floats, plan: Plan, penalty: float, ask: Ask, *, is_root: bool, monotone: bool
) -> Generator[Any, Wholes, tuple[Floats, Sums]]:
    """Fit node models that start at their parents' parameters; return theirs, and the sums there.

    Every question that `ask` makes is yielded, and its answer sent back. Derivatives among the sums
    may be 0, where no further step needed them.
    Parameters are a row per node; roots start at 0 and have as far to go as the scores are wrong.
    """
    sums = Sums.of((yield ask(np.arange(len(parents)), parents, True)), plan)
    fits = _core.NodeFits(
        parents,
        plan.scale.n_states,
        plan.scale.sees_all,
        plan.scale.centre,
        plan.scale.scale,
        plan.has_offset,
        penalty,
        is_root,
        sums.weight,
        sums.loss,
        sums.gradient,
        sums.hessian,
        # Sums of rounded losses are off by about this.
        float(np.sqrt(plan.n_rows) / plan.units[3]),
        monotone,
    )
    while len(pending := fits.pending()) > 0:
        there = Sums.of((yield ask(pending, fits.trials(), fits.wants_derivatives())), plan)
        moved = fits.take(there.loss, there.gradient, there.hessian).astype(bool)
        sums.replace(pending, there, moved)
    return fits.parameters(), sums
