"""Node models from sums over rows: many nodes at once, each by Newton's method from its parent's.

As in the native core's `shrunken.hpp`, where the rows are at hand; here they answer by sums, so
that all nodes take their steps together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .chunk import Wholes
from .plan import Floats, Plan

Slots: TypeAlias = npt.NDArray[np.intp]
Ask: TypeAlias = Callable[[Slots, Floats], Wholes]

# The native core's.
_MOST_ROOT_STEPS, _MOST_STEPS, _MOST_HALVINGS = 50, 2, 12
_FIRST_DAMPING, _DAMPING_FACTOR = 1e-6, 10.0
_SMALLEST_ROOT_IMPROVEMENT = 1e-12
# A step that promises less in deviance, halved, is not taken after another: chance alone gives
# every parameter as much.
_SMALLEST_PROMISE = 0.5
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Sums:
    """What rows say about node models, a row a node; sums of several chunks add up."""

    weight: Floats
    loss: Floats
    deviance: Floats
    held_out: Floats
    gradient: Floats
    """Nodes x log-odds x parameters of each."""
    hessian: Floats
    """Nodes x log-odds x parameters x parameters."""

    @classmethod
    def of(cls, wholes: Wholes, plan: Plan) -> Sums:
        """The sums that whole numbers stand for."""
        plain, score, squares, loss = plan.units
        n, width, n_states = len(wholes), plan.scale.width, plan.scale.n_states
        rows, columns = np.tril_indices(width)
        with_scores = (rows > 0).astype(int) + (columns > 0)
        states = wholes[:, 4:].reshape(n, n_states, -1).astype(np.float64)
        gradient = states[:, :, :width] / np.array([plain] + [score] * (width - 1))
        hessian = np.empty((n, n_states, width, width))
        lower = states[:, :, width:] / np.array([plain, score, squares])[with_scores]
        hessian[:, :, rows, columns] = hessian[:, :, columns, rows] = lower
        first = wholes[:, :4].astype(np.float64) / np.array([plain, loss, loss, loss])
        weight, losses, deviance, held_out = first.T
        return cls(weight, losses, deviance, held_out, gradient, hessian)

    def put(self, slots: Slots, other: Sums) -> None:
        """Overwrite those of some nodes."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[slots] = getattr(other, name)


def fit_nodes(parents: Floats, is_root: bool, plan: Plan, penalty: float, ask: Ask) -> _Fits:
    """Fit node models that start at their parents' parameters.

    Parameters
    ----------
    parents : ndarray of shape (n_nodes, n_parameters)
        The parents' parameters, or 0 for roots.
    is_root : bool
        Whether they are roots, which have as far to go as the scores are wrong.
    plan : Plan
        What the rows are, and in which units they answer.
    penalty : float
        What leaving the parent costs.
    ask : callable
        Gives the sums of some nodes for parameters of theirs.

    Returns
    -------
    object
        With `parameters`, a row a node, and the `sums` for these.
    """
    fits = _Fits(
        parents, is_root, plan, penalty, Sums.of(ask(np.arange(len(parents)), parents), plan)
    )
    while len(pending := np.flatnonzero(fits.pending)) > 0:
        trial = fits.trial(pending)
        fits.take(pending, trial, Sums.of(ask(pending, trial), plan))
    return fits


class _Fits:
    """Nodes on their way to their parameters."""

    def __init__(
        self, parents: Floats, is_root: bool, plan: Plan, penalty: float, sums: Sums
    ) -> None:
        n = len(parents)
        self.parents, self.parameters, self.sums = parents, parents.copy(), sums
        self.pending = np.ones(n, dtype=bool)
        self._is_root = is_root
        self._scale = plan.scale
        self._penalties = plan.scale.penalties(penalty)
        # Sums of rounded losses are off by about this.
        self._noise = np.sqrt(plan.n_rows) / plan.units[3]
        self._loss = sums.loss.copy()
        self._step = np.zeros_like(parents)
        self._length = np.ones(n)
        self._steps, self._halvings = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
        self._damping = np.zeros(n)
        self._set_steps(np.arange(n))

    def trial(self, slots: Slots) -> Floats:
        """Where the nodes would go next."""
        return self.parameters[slots] + self._length[slots, np.newaxis] * self._step[slots]

    def take(self, slots: Slots, trial: Floats, sums: Sums) -> None:
        """Go there where it helps, and less far where it does not."""
        before = self._loss[slots]
        distance = trial - self.parents[slots]
        loss = sums.loss + 0.5 * (distance**2) @ self._penalties
        helps = loss <= before + np.maximum(_ROUNDING * (np.abs(before) + 1.0), self._noise)
        taken = slots[helps]
        self.parameters[taken] = trial[helps]
        self._loss[taken] = loss[helps]
        self.sums.put(taken, Sums(**{k: v[helps] for k, v in sums.__dict__.items()}))
        failed = slots[~helps]
        self._halvings[failed] += 1
        self._length[failed] /= 2.0
        given_up = failed[self._halvings[failed] == _MOST_HALVINGS]
        for ended, gained in ((taken, (before - loss)[helps]), (given_up, None)):
            if self._is_root:
                self._next_root_step(ended, gained)
            else:
                self._next_step(ended, gained)

    def _next_step(self, slots: Slots, gained: Floats | None) -> None:
        self._steps[slots] += 1
        if gained is None:
            self.pending[slots] = False
            return
        promise = self._set_steps(slots)
        enough = (promise <= _SMALLEST_PROMISE) | (self._steps[slots] == _MOST_STEPS)
        self.pending[slots[enough]] = False

    def _next_root_step(self, slots: Slots, gained: Floats | None) -> None:
        """Scores that are far too sure leave Newton's method nothing to go by.

        Where no step helps, steps are damped, until they do.
        """
        self._steps[slots] += 1
        total, damping = self.sums.weight[slots], self._damping[slots]
        least = _FIRST_DAMPING * total
        if gained is None:
            done = damping >= total
            damping = np.maximum(least, damping * _DAMPING_FACTOR)
        else:
            smallest = _SMALLEST_ROOT_IMPROVEMENT * (np.abs(self._loss[slots]) + 1.0)
            improved = gained > np.maximum(smallest, self._noise)
            done = ~improved & (damping == 0.0)
            eased = damping / _DAMPING_FACTOR
            damping = np.where(improved & (eased >= least), eased, 0.0)
        self._damping[slots] = damping
        done |= self._steps[slots] == _MOST_ROOT_STEPS
        self.pending[slots[done]] = False
        self._set_steps(slots[~done])

    def _set_steps(self, slots: Slots) -> Floats:
        """The steps from where the nodes are; what they promise."""
        shape = (len(slots), self._scale.n_states, self._scale.width)
        distance = self.parameters[slots] - self.parents[slots]
        gradient = self.sums.gradient[slots] - (self._penalties * distance).reshape(shape)
        hessian = self.sums.hessian[slots].copy()
        diagonal = np.arange(self._scale.width)
        hessian[:, :, diagonal, diagonal] += self._penalties.reshape(shape[1:])
        hessian[:, :, diagonal, diagonal] += self._damping[slots, np.newaxis, np.newaxis]
        steps = np.linalg.solve(hessian, gradient[..., np.newaxis])
        self._step[slots] = steps.reshape(len(slots), self._scale.n_parameters)
        self._length[slots], self._halvings[slots] = 1.0, 0
        promise = (gradient * steps[..., 0]).sum(axis=(1, 2)) / 2.0
        return np.asarray(promise)
