"""A chunk of rows in bins, and the facts about all rows that every chunk needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.trees import Arrays
from .._inputs.arrays import Floats, Labels
from .._inputs.groups import GroupNumbers
from .binning import Bins, Codes

_BITS = 62
_LARGEST_EXPONENT = 1022


@dataclass(frozen=True)
class Scale:
    """Centre and deviation of the scores, which node models see scaled to mean 0 and deviation 1.

    In the order in which the log-odds see them; a constant score has the scale 0.
    """

    centre: Floats
    scale: Floats
    per_state: int
    n_states: int

    @classmethod
    def of(cls, scores: Floats, weights: Floats | None, n_states: int, per_state: int) -> Scale:
        """Measure a sample of rows."""
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

    @property
    def sees_all(self) -> bool:
        """Whether each log-odds sees all scores."""
        return self.per_state == len(self.centre)

    def unscale(self, parameters: Floats) -> Floats:
        """Return the parameters of node models, a row each, over scores that are not scaled."""
        result = parameters.reshape(len(parameters), self.n_states, self.width).copy()
        shape = (1, -1) if self.sees_all else (self.n_states, self.per_state)
        centre, scale = self.centre.reshape(shape), self.scale.reshape(shape)
        slopes = result[:, :, 1:]
        np.divide(slopes, scale, out=slopes, where=scale > 0.0)
        slopes *= scale > 0.0
        result[:, :, 0] -= (slopes * centre).sum(axis=2)
        return result.reshape(len(parameters), -1)


@dataclass(frozen=True)
class Plan:
    """Facts about all rows that every chunk needs: bins, scales, units."""

    bins: Bins
    scale: Scale
    n_classes: int
    n_folds: int
    n_rows: int
    """Of all chunks together."""
    largest_weight: float
    scoring: str
    has_offset: bool
    """Whether the scores say something before any correction: margins do not."""
    n_groups: int = 0
    """How many groups the rows are in; 0 if there are none."""

    @property
    def n_trees(self) -> int:
        """One on all rows, and one for every fold."""
        return 1 + self.n_folds

    def unit(self, largest: float) -> float:
        """Return the factor of numbers up to `largest` before rounding, so that sums stay exact.

        It is a power of two, which changes no digit.
        """
        most = math.log2(self.n_rows) + math.log2(self.largest_weight) + math.log2(largest)
        return 2.0 ** min(max(math.floor(_BITS - most), -_LARGEST_EXPONENT), _LARGEST_EXPONENT)

    @property
    def units(self) -> Floats:
        """Of weights and residuals, of these times one score, times two, and of losses."""
        largest = (1.0, _core.farthest_score, _core.farthest_score**2, _core.largest_loss)
        return np.array([self.unit(value) for value in largest])


@dataclass(frozen=True, eq=False)
class Chunk(Arrays):
    """Some rows: codes of attributes, classes, scores, and the fold that holds each row out."""

    codes: Codes
    labels: Labels
    scores: Floats
    """The scores as node models see them, a row each."""
    offset: Floats | None
    """The uncalibrated log-odds; None of margins."""
    weights: Floats | None
    fold: npt.NDArray[np.uint8]
    groups: GroupNumbers | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def in_core(self, plan: Plan) -> _core.Chunk:
        """Return the rows in the core, which checks them once."""
        if "_in_core" not in self.__dict__:
            self.__dict__["_in_core"] = _core.Chunk(
                self.codes,
                plan.bins.n_bins,
                self.labels,
                plan.n_classes,
                self.scores,
                self.offset,
                self.weights,
                self.fold,
            )
        chunk: _core.Chunk = self.__dict__["_in_core"]
        return chunk
