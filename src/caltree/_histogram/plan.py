"""What every chunk of rows needs to know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from .binning import Bins

Floats: TypeAlias = npt.NDArray[np.float64]

# The native core's: how far a score, and how large a loss, may be.
_FARTHEST_SCORE = 100.0
_LARGEST_LOSS = 1e3
# The scores of other classes are held back more than a class's own.
_PENALTY_OF_OTHERS = 40.0
_BITS = 62
_LARGEST_EXPONENT = 1022


@dataclass(frozen=True)
class Scale:
    """How the node models see the scores: of mean 0 and deviation 1, or thereabouts.

    In the order in which the log-odds see them; a scale of 0 is that of a constant score.
    """

    centre: Floats
    scale: Floats
    per_state: int
    n_states: int

    @classmethod
    def of(cls, scores: Floats, weights: Floats | None, n_states: int, per_state: int) -> Scale:
        """The scale of a sample of rows."""
        n_scores = scores.shape[1]
        order = np.arange(n_scores)
        if per_state < n_scores:
            # Those of one log-odds stand side by side.
            order = order.reshape(per_state, n_states).T.ravel()
        seen = scores[:, order]
        centre = np.average(seen, axis=0, weights=weights)
        squares = np.average((seen - centre) ** 2, axis=0, weights=weights)
        scale = np.where(seen.min(axis=0) < seen.max(axis=0), np.sqrt(squares), 0.0)
        return cls(centre, scale, per_state, n_states)

    @property
    def width(self) -> int:
        """Parameters of each log-odds."""
        return self.per_state + 1

    @property
    def n_parameters(self) -> int:
        """Parameters of a node model."""
        return self.n_states * self.width

    def penalties(self, penalty: float) -> Floats:
        """What a step of each parameter away from the parent's costs."""
        result = np.full((self.n_states, self.width), penalty)
        if self.n_states > 1 and self.per_state == len(self.centre):
            own = np.arange(self.per_state) % self.n_states == np.arange(self.n_states)[:, None]
            result[:, 1:][~own] *= _PENALTY_OF_OTHERS
        return result.ravel()

    def unscaled(self, parameters: Floats) -> Floats:
        """The parameters of node models, a row each, for the scores as they are."""
        result = parameters.reshape(len(parameters), self.n_states, self.width).copy()
        sees_all = self.per_state == len(self.centre)
        shape = (1, -1) if sees_all else (self.n_states, self.per_state)
        centre, scale = self.centre.reshape(shape), self.scale.reshape(shape)
        slopes = result[:, :, 1:]
        np.divide(slopes, scale, out=slopes, where=scale > 0.0)
        slopes *= scale > 0.0
        result[:, :, 0] -= (slopes * centre).sum(axis=2)
        return result.reshape(len(parameters), -1)


@dataclass(frozen=True)
class Plan:
    """What every chunk of rows needs to know."""

    bins: Bins
    scale: Scale
    n_classes: int
    n_folds: int
    n_rows: int
    """Of all chunks together."""
    largest_weight: float
    objective: str
    has_offset: bool
    """Whether the scores say something before any correction: margins do not."""

    @property
    def log_loss(self) -> bool:
        """Whether held-out rows are judged by their log loss."""
        return self.objective == "log_loss"

    def histogram_size(self, *, by_class: bool) -> int:
        """How many numbers the histograms of a node have."""
        cells = int((self.bins.n_bins + 1).sum())
        return cells * (self.n_classes if by_class else 1 + 2 * self.scale.n_states)

    @property
    def n_trees(self) -> int:
        """One on all rows, and one for every fold."""
        return 1 + self.n_folds

    def unit(self, largest: float) -> float:
        """What to multiply numbers up to `largest` by before rounding, so that sums stay exact.

        A power of two, which changes no digit.
        """
        most = math.log2(self.n_rows) + math.log2(self.largest_weight) + math.log2(largest)
        return 2.0 ** min(max(math.floor(_BITS - most), -_LARGEST_EXPONENT), _LARGEST_EXPONENT)

    @property
    def units(self) -> Floats:
        """Of weights and residuals, of these times one score, times two, and of losses."""
        largest = (1.0, _FARTHEST_SCORE, _FARTHEST_SCORE**2, _LARGEST_LOSS)
        return np.array([self.unit(value) for value in largest])
