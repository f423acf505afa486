"""Residuals as they would be if the scores were right everywhere."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats
from .rows import Rows

Residuals = npt.NDArray[np.float32]
"""Rows x simulations."""


class Null(Protocol):
    """Simulated residuals, times the weights of the rows."""

    def residuals(self, channel: int) -> Residuals:
        """Return the residuals of a class; those of all classes belong together."""


def residuals(rows: Rows, channel: int) -> Floats:
    """Observed less predicted, times the weights."""
    return np.asarray(rows.row_weights * (rows.observed(channel) - rows.predicted(channel)))


def variances(rows: Rows, channel: int) -> Floats:
    """The variances of the residuals if the scores are right.

    A row is one observation, whatever its weight: so they hold for weights of any meaning.
    """
    predicted = rows.predicted(channel)
    return np.asarray(rows.row_weights**2 * predicted * (1.0 - predicted))


def make_null(rows: Rows, n_simulations: int, random: np.random.Generator, *, few: bool) -> Null:
    """Labels drawn from the scores, exactly if rows are `few`; with groups, flipped signs."""
    if rows.groups is not None:
        return FlippedSigns(rows, n_simulations, random)
    if few:
        return DrawnLabels(rows, n_simulations, random)
    return NormalResiduals(rows, n_simulations, random)


class DrawnLabels:
    """Labels that are drawn from the scores."""

    def __init__(self, rows: Rows, n_simulations: int, random: np.random.Generator) -> None:
        self._rows = rows
        below = np.cumsum(rows.probabilities, axis=1)[:, :-1]
        below /= rows.probabilities.sum(axis=1, keepdims=True)
        drawn = random.random((len(rows), n_simulations), dtype=np.float32)
        self._labels = np.zeros(drawn.shape, dtype=np.uint16)
        for edge in below.T:
            self._labels += drawn >= edge[:, np.newaxis]

    def residuals(self, channel: int) -> Residuals:
        """Return the residuals of a class."""
        predicted, weights = self._rows.predicted(channel), self._rows.row_weights
        found: Residuals = (self._labels == channel).astype(np.float32)
        found -= predicted[:, np.newaxis].astype(np.float32)
        found *= weights[:, np.newaxis].astype(np.float32)
        return found


class NormalResiduals:
    """Normal residuals with the covariance of labels: of many rows, sums are normal anyway."""

    def __init__(self, rows: Rows, n_simulations: int, random: np.random.Generator) -> None:
        self._rows = rows
        self._seeds = random.integers(2**63, size=len(rows.classes))
        self._shape = (len(rows), n_simulations)
        self._common = np.zeros(self._shape, dtype=np.float32)
        for channel in range(len(rows.classes)):
            self._common += self._own(channel)

    def residuals(self, channel: int) -> Residuals:
        """Return the residuals of a class."""
        predicted = self._rows.probabilities[:, [channel]].astype(np.float32)
        found = self._own(channel) - predicted * self._common
        return np.asarray(found * self._rows.row_weights[:, np.newaxis].astype(np.float32))

    def _own(self, channel: int) -> Residuals:
        random = np.random.default_rng(self._seeds[channel])
        normal = random.standard_normal(self._shape, dtype=np.float32)
        root = np.sqrt(self._rows.probabilities[:, [channel]]).astype(np.float32)
        return np.asarray(root * normal)


class FlippedSigns:
    """The residuals themselves, with the signs of whole groups flipped at random.

    Errors of rows of one group may depend on each other, which drawing single labels would miss.
    """

    def __init__(self, rows: Rows, n_simulations: int, random: np.random.Generator) -> None:
        assert rows.groups is not None
        self._rows = rows
        shape = (int(rows.groups.max()) + 1, n_simulations)
        signs = random.integers(0, 2, shape, dtype=np.int8) * 2 - 1
        self._signs = signs[rows.groups].astype(np.float32)

    def residuals(self, channel: int) -> Residuals:
        """Return the residuals of a class."""
        return np.asarray(self._signs * residuals(self._rows, channel)[:, np.newaxis], np.float32)
