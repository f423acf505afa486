"""Candidate predictions of held-out rows, and mixtures of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats, Labels
from .._inputs.groups import GroupNumbers
from .losses import SMALLEST_PROBABILITY, log_losses, mean_loss, row_losses, standard_errors

# So many numbers of each candidate are worked on at a time: memory shall not be needed twice.
_BLOCK = 2**21

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
    probabilities: Sequence[Floats]
    """Of every candidate, rows x classes."""
    labels: Labels
    weights: Floats | None
    scoring: str
    has_uncalibrated: bool
    groups: GroupNumbers | None = None

    def loss(self, weights: Floats) -> float:
        return mean_loss(self._losses(weights, self.scoring), self.weights, self.scoring)

    def excess(self, worse: Floats, better: Floats, scoring: str) -> float:
        higher, lower = (self._losses(weights, scoring) for weights in (worse, better))
        return standard_errors(higher, lower, self.weights, self.groups)

    def mistakes(self) -> float:
        wrong = self.probabilities[0].argmax(axis=1) != self.labels
        return float(wrong.sum() if self.weights is None else self.weights[wrong].sum())

    def are_equal(self, first: int, second: int) -> bool:
        one, other = self.probabilities[first], self.probabilities[second]
        return all(np.array_equal(one[rows], other[rows]) for rows in self._blocks())

    def products(self) -> tuple[Floats, Floats]:
        return self._products

    @cached_property
    def _products(self) -> tuple[Floats, Floats]:
        n_candidates, n_classes = len(self), self.probabilities[0].shape[1]
        products, aims = np.zeros((n_candidates, n_candidates)), np.zeros(n_candidates)
        for rows in self._blocks():
            root = np.sqrt(self._row_shares[rows])[:, np.newaxis]
            columns = np.array([(p[rows] * root).ravel() for p in self.probabilities])
            labels = (np.eye(n_classes)[self.labels[rows]] * root).ravel()
            products += columns @ columns.T
            aims += columns @ labels
        return products, aims

    def likelihood_ratios(self, weights: Floats) -> tuple[Floats, Floats]:
        mixture = np.maximum(weights @ self._likelihoods, SMALLEST_PROBABILITY)
        ratios = self._likelihoods / mixture
        return ratios @ self._row_shares, (ratios * self._row_shares) @ ratios.T

    @cached_property
    def _likelihoods(self) -> Floats:
        """The probability that each candidate gives to the class of every row."""
        every = np.arange(len(self.labels))
        return np.stack([p[every, self.labels] for p in self.probabilities], axis=1).T

    @cached_property
    def _row_shares(self) -> Floats:
        if self.weights is None:
            return np.full(len(self.labels), 1.0 / len(self.labels))
        return np.asarray(self.weights / self.weights.sum())

    def _losses(self, weights: Floats, scoring: str) -> Floats:
        """Return the loss of every row."""
        if scoring == "log_loss":
            return log_losses(mix(weights, self._likelihoods))
        found = np.empty(len(self.labels))
        for rows in self._blocks():
            mixture = mix(weights, [p[rows] for p in self.probabilities])
            found[rows] = row_losses(mixture, self.labels[rows], scoring)
        return found

    def _blocks(self) -> Iterator[slice]:
        """Return the rows in blocks: the more classes there are, the fewer rows are in each."""
        size = max(1, _BLOCK // self.probabilities[0].shape[1])
        for begin in range(0, len(self.labels), size):
            yield slice(begin, begin + size)


def mix(weights: Floats, values: Sequence[npt.NDArray[Any]] | npt.NDArray[Any]) -> Floats:
    """Average values of candidates.

    One after the other: a product of matrices may round a row by its place, and takes longer.
    """
    result = np.zeros(values[0].shape)
    for weight, value in zip(weights, values, strict=True):
        if weight != 0.0:
            result += weight * value.astype(np.float64, copy=False)
    return result
