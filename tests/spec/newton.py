"""Newton's method for a node model: which steps are taken, and when to stop."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The root has as far to go as the scores are wrong, its descendants only a little further.
MOST_ROOT_STEPS = 50
MOST_STEPS = 4
SMALLEST_LINE_LOSS = 1.0
MOST_HALVINGS = 12
FIRST_DAMPING = 1e-6  # in units of the rows
DAMPING_FACTOR = 10.0
# Below the root, a step that lowers the loss by no more is the last one.
SMALLEST_GAIN = 1e-2
SMALLEST_ROOT_IMPROVEMENT = 1e-12  # of the loss
ROUNDING = 1e-12


@dataclass(frozen=True)
class RisingSlopes:
    """Models of two classes that never fall with the log-odds f.

    Their log-odds are intercept + own f + bending b(f), plus f itself where that is corrected. As b
    rises or falls by at most 1, it is enough that |bending| is not above own, or own + 1.
    """

    scale: float  # of f, and
    bend: float  # of b: parameters are slopes times these
    is_corrected: bool

    def hold(self, parameters: Floats) -> bool:
        _, own, bending = parameters[0]
        slope = bending / self.bend if self.bend > 0.0 else 0.0
        return bool(abs(slope) <= own / self.scale + self.is_corrected)

    def edges(self, parameters: Floats) -> list[tuple[Floats, Floats]]:
        """The step to where the edges begin, and where an intercept and a slope lead on each."""
        _, own, bending = parameters[0]
        start = np.array([0.0, -self.scale * self.is_corrected - own, -bending])
        ways = [np.array([[1, 0, 0], [0, self.scale, sign * self.bend]]) for sign in (1, -1)]
        return [(start, way) for way in ways]


def best_step(gradient: Floats, hessian: Floats, start: Floats, ways: Floats) -> Floats:
    """The best step to ``start`` and on along some ways, of which the last must not go back.

    The best as far as the derivatives tell.
    """
    bends, slopes = ways @ hessian @ ways.T, ways @ (gradient - hessian @ start)
    lengths = np.linalg.solve(bends, slopes)
    if lengths[-1] < 0.0:
        lengths = np.append(np.linalg.solve(bends[:-1, :-1], slopes[:-1]), 0.0)
    return np.asarray(start + lengths @ ways)


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
        rising: RisingSlopes | None = None,
    ) -> None:
        self.loss = loss
        self.derivatives = derivatives
        self.parent = parent
        self.penalties = penalties
        self.rising = rising

    def held_at(self, parameters: Floats) -> PenalisedLoss:
        return PenalisedLoss(self.loss, self.derivatives, parameters, self.penalties, self.rising)

    def value(self, parameters: Floats) -> float:
        distance = parameters - self.parent
        return self.loss(parameters) + 0.5 * float((self.penalties * distance**2).sum())

    def step(self, parameters: Floats, damping: float = 0.0) -> Floats:
        """The longest step; the states do not look at each other."""
        gradient, hessian = self.derivatives(parameters)
        gradient = gradient - self.penalties * (parameters - self.parent)
        hessian = hessian + np.array([np.diag(cost) for cost in self.penalties + damping])
        step = np.array([np.linalg.solve(*each) for each in zip(hessian, gradient, strict=True)])
        if self.rising is None or self.rising.hold(parameters + step):
            return step
        steps = [
            best_step(gradient[0], hessian[0], *edge) for edge in self.rising.edges(parameters)
        ]
        costs = [0.5 * step @ hessian[0] @ step - step @ gradient[0] for step in steps]
        return np.array([steps[int(np.argmin(costs))]])


class LossOnLine:
    """A loss along a line from where it begins, at no cost: there is only one way to go.

    From the second point on, the change of the slope tells how the loss bends. The second
    derivatives, in which the states do not know of each other, only give the first step.
    """

    def __init__(self, penalised: PenalisedLoss, line: Floats) -> None:
        self.value = penalised.loss
        self.derivatives = penalised.derivatives
        self.parent = penalised.parent
        self.rises = penalised.rising is not None
        self.line = line
        self.last = (math.nan, math.nan)  # the last point, and the slope there

    def step(self, parameters: Floats, damping: float = 0.0) -> Floats:
        """The longest step along the line."""
        gradient, hessian = self.derivatives(parameters)
        square = float((self.line**2).sum())
        at = float(((parameters - self.parent) * self.line).sum()) / square
        slope = float((gradient * self.line).sum())
        curvature = float(np.einsum("sa,sab,sb->", self.line, hessian, self.line))
        last_at, last_slope = self.last
        if at != last_at:
            change = (last_slope - slope) / (at - last_at)
            curvature = change if change > 0.0 else curvature
        self.last = (at, slope)
        bend = curvature + damping * square
        if bend <= 0.0:
            return np.full(self.line.shape, math.inf)
        # What must rise does not turn round: at -1, probabilities are all the same.
        length = max(slope / bend, -1.0 - at) if self.rises else slope / bend
        return length * self.line


class Loss(Protocol):
    """What a step is judged by, and where it may go."""

    parent: Floats

    def value(self, parameters: Floats) -> float: ...
    def step(self, parameters: Floats, damping: float = 0.0) -> Floats: ...


def search(
    loss: Loss, parameters: Floats, before: float, step: Floats
) -> tuple[Floats, float] | None:
    """The longest part of a step that helps, if any does."""
    if not np.isfinite(step).all():
        return None
    better = (
        (candidate, value)
        for length in 0.5 ** np.arange(MOST_HALVINGS)
        if (value := loss.value(candidate := parameters + length * step))
        <= before + ROUNDING * (abs(before) + 1.0)
    )
    return next(better, None)


def fit_below_root(penalised: PenalisedLoss) -> Floats:
    """A few steps from the parent's parameters."""
    parameters, loss = penalised.parent, penalised.value(penalised.parent)
    for _ in range(MOST_STEPS):
        found = search(penalised, parameters, loss, penalised.step(parameters))
        if found is None:
            break
        before, (parameters, loss) = loss, found
        if before - loss <= SMALLEST_GAIN:
            break
    return parameters


def fit_root(
    penalised: PenalisedLoss, total: float, line: Floats | None, *, line_only: bool = False
) -> Floats:
    """Steps along the line of the temperature, if there is one; then free ones, held there.

    ``total`` is the weight of the rows.
    """
    if line is None:
        return descend(penalised, total)
    # Where all scores say the same of all classes, no temperature changes anything.
    on_line = penalised.parent
    if line.any():
        on_line = descend(LossOnLine(penalised, line), total, SMALLEST_LINE_LOSS)
    if line_only:
        return on_line
    return descend(penalised.held_at(on_line), total)


def descend(loss: Loss, total: float, enough: float = -math.inf) -> Floats:
    """Steps that are damped where none helps: scores may be far too sure to go by.

    A loss below ``enough`` ends them.
    """
    parameters, value = loss.parent, loss.value(loss.parent)
    damping = 0.0
    for _ in range(MOST_ROOT_STEPS):
        found = search(loss, parameters, value, loss.step(parameters, damping))
        if found is None:
            if damping >= total or value < enough:
                break
            damping = max(FIRST_DAMPING * total, damping * DAMPING_FACTOR)
            continue
        before, (parameters, value) = value, found
        if value < enough:
            break
        if before - value > SMALLEST_ROOT_IMPROVEMENT * (abs(before) + 1.0):
            damping = damping / DAMPING_FACTOR
            damping = damping if damping >= FIRST_DAMPING * total else 0.0
        elif damping == 0.0:
            break
        else:
            damping = 0.0
    return parameters
