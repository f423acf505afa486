"""Newton's method for a node model: which steps are taken, and when to stop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The root has as far to go as the scores are wrong, its descendants only a little further.
MOST_ROOT_STEPS = 50
MOST_STEPS = 2
MOST_HALVINGS = 12
FIRST_DAMPING = 1e-6  # in units of the rows
DAMPING_FACTOR = 10.0
# Below the root, a step that lowers the loss by no more is the last one.
SMALLEST_GAIN = 1e-2
SMALLEST_ROOT_IMPROVEMENT = 1e-12  # of the loss
ROUNDING = 1e-12


class PenalisedLoss:
    """A loss (half the deviance) and the cost of every parameter's distance from its parent's.

    Parameters are a matrix of one row a state. ``derivatives`` gives minus the gradient of the
    loss, and for each state the matrix of its second derivatives.
    """

    def __init__(
        self,
        loss: Callable[[Floats], float],
        derivatives: Callable[[Floats], tuple[Floats, Floats]],
        parent: Floats,
        penalties: Floats,
    ) -> None:
        self.loss = loss
        self.derivatives = derivatives
        self.parent = parent
        self.penalties = penalties

    def value(self, parameters: Floats) -> float:
        distance = parameters - self.parent
        return self.loss(parameters) + 0.5 * float((self.penalties * distance**2).sum())

    def step(self, parameters: Floats, damping: float = 0.0) -> Floats:
        """The longest step; the states do not look at each other."""
        gradient, hessian = self.derivatives(parameters)
        gradient = gradient - self.penalties * (parameters - self.parent)
        costs = self.penalties + damping
        return np.array(
            [
                np.linalg.solve(second + np.diag(cost), first)
                for first, second, cost in zip(gradient, hessian, costs, strict=True)
            ]
        )

    def search(self, parameters: Floats, loss: float, step: Floats) -> tuple[Floats, float] | None:
        """The longest part of a step that helps, if any does."""
        better = (
            (candidate, candidate_loss)
            for length in 0.5 ** np.arange(MOST_HALVINGS)
            if (candidate_loss := self.value(candidate := parameters + length * step))
            <= loss + ROUNDING * (abs(loss) + 1.0)
        )
        return next(better, None)


def fit_below_root(penalised: PenalisedLoss) -> Floats:
    """A few steps from the parent's parameters."""
    parameters, loss = penalised.parent, penalised.value(penalised.parent)
    for _ in range(MOST_STEPS):
        found = penalised.search(parameters, loss, penalised.step(parameters))
        if found is None:
            break
        before, (parameters, loss) = loss, found
        if before - loss <= SMALLEST_GAIN:
            break
    return parameters


def fit_root(penalised: PenalisedLoss, total: float) -> Floats:
    """Steps that are damped where none helps: scores may be far too sure to go by.

    ``total`` is the weight of the rows.
    """
    parameters, loss = penalised.parent, penalised.value(penalised.parent)
    damping = 0.0
    for _ in range(MOST_ROOT_STEPS):
        found = penalised.search(parameters, loss, penalised.step(parameters, damping))
        if found is None:
            if damping >= total:
                break
            damping = max(FIRST_DAMPING * total, damping * DAMPING_FACTOR)
            continue
        before, (parameters, loss) = loss, found
        if before - loss > SMALLEST_ROOT_IMPROVEMENT * (abs(before) + 1.0):
            damping = damping / DAMPING_FACTOR
            damping = damping if damping >= FIRST_DAMPING * total else 0.0
        elif damping == 0.0:
            break
        else:
            damping = 0.0
    return parameters
