"""Candidate predictions of held-out rows, and mixtures of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats, Labels
from .._inputs.groups import GroupNumbers
from .losses import SMALLEST_PROBABILITY, mean_loss, row_losses, standard_errors

Comparison: TypeAlias = tuple[Floats, Floats, str]
"""Two mixtures and a scoring: the arguments of `HeldOut.excess`."""


class HeldOut(ABC):
    """Predictions of rows by several candidates, none of which was fitted to these rows.

    A mixture is given by the weights of the candidates, which sum to 1.
    """

    scoring: str
    names: tuple[str, ...]
    """The names of the candidates. The uncalibrated probabilities, if there are any, come first."""
    has_uncalibrated: bool

    def __len__(self) -> int:
        return len(self.names)

    def foresee(  # noqa: B027  # nothing is to be done where rows are at hand
        self,
        *,
        losses: Sequence[Floats] = (),
        excesses: Sequence[Comparison] = (),
        ratios: Sequence[Floats] = (),
    ) -> None:
        """Take notice of questions that may follow: far from the rows they are asked together."""

    @abstractmethod
    def loss(self, weights: Floats) -> float:
        """Return the RMSE, or the log loss, of a mixture."""

    @abstractmethod
    def excess(self, worse: Floats, better: Floats, scoring: str) -> float:
        """By how many standard errors the mean loss of one mixture exceeds that of another."""

    @abstractmethod
    def mistakes(self) -> float:
        """Return how many rows have another class than the first candidate's most likely one."""

    @abstractmethod
    def are_equal(self, first: int, second: int) -> bool:
        """Whether two candidates predict the same for every row."""

    @abstractmethod
    def products(self) -> tuple[Floats, Floats]:
        """Mean products of the candidates with each other, and with the labels as ones and zeros.

        The products of all classes are added up.
        """

    @abstractmethod
    def likelihood_ratios(self, weights: Floats) -> tuple[Floats, Floats]:
        """Mean ratios of the candidates' likelihoods to a mixture's, and mean products of ratios.

        These are the first and second derivatives of the mixture's log-likelihood.
        """


@dataclass(frozen=True)
class HeldOutRows(HeldOut):
    """Candidates whose probabilities are all in memory."""

    names: tuple[str, ...]
    probabilities: Floats
    """Candidates x rows x classes."""
    labels: Labels
    weights: Floats | None
    scoring: str
    has_uncalibrated: bool
    groups: GroupNumbers | None = None

    def loss(self, weights: Floats) -> float:
        losses = row_losses(self._mix(weights), self.labels, self.scoring)
        return mean_loss(losses, self.weights, self.scoring)

    def excess(self, worse: Floats, better: Floats, scoring: str) -> float:
        higher, lower = (row_losses(self._mix(w), self.labels, scoring) for w in (worse, better))
        return standard_errors(higher, lower, self.weights, self.groups)

    def mistakes(self) -> float:
        wrong = self.probabilities[0].argmax(axis=1) != self.labels
        return float(wrong.sum() if self.weights is None else self.weights[wrong].sum())

    def are_equal(self, first: int, second: int) -> bool:
        return np.array_equal(self.probabilities[first], self.probabilities[second])

    def products(self) -> tuple[Floats, Floats]:
        return self._products

    @cached_property
    def _products(self) -> tuple[Floats, Floats]:
        n_candidates, _, n_classes = self.probabilities.shape
        root = np.sqrt(self._row_shares)[:, np.newaxis]
        columns = (self.probabilities * root).reshape(n_candidates, -1)
        labels = (np.eye(n_classes)[self.labels] * root).ravel()
        return columns @ columns.T, columns @ labels

    def likelihood_ratios(self, weights: Floats) -> tuple[Floats, Floats]:
        mixture = np.maximum(weights @ self._likelihoods, SMALLEST_PROBABILITY)
        ratios = self._likelihoods / mixture
        return ratios @ self._row_shares, (ratios * self._row_shares) @ ratios.T

    @cached_property
    def _likelihoods(self) -> Floats:
        """The probability that each candidate gives to the class of every row."""
        return self.probabilities[:, np.arange(len(self.labels)), self.labels]

    @cached_property
    def _row_shares(self) -> Floats:
        if self.weights is None:
            return np.full(len(self.labels), 1.0 / len(self.labels))
        return np.asarray(self.weights / self.weights.sum())

    def _mix(self, weights: Floats) -> Floats:
        return mix(weights, self.probabilities)


def mix(weights: Floats, values: npt.NDArray[Any]) -> Floats:
    """Average values of candidates.

    One after the other: a product of matrices may round a row by its place, and takes longer.
    """
    result = np.zeros(values.shape[1:])
    for weight, value in zip(weights, values, strict=True):
        if weight != 0.0:
            result += weight * value.astype(np.float64, copy=False)
    return result
