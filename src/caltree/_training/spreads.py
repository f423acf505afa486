"""Deviations of true log-odds from predicted ones: from simulated rows and from real ones.

Simulated rows, whose probabilities are known, give the deviation at each probability, and how it
falls with the number of rows that a probability is based on.

The real errors of a calibrator may be larger, or smaller, than those in the simulation, for example
where the calibrator and the forest both trust noisy scores. A second opinion, which makes other
errors, predicts rows that it has not seen, real and simulated ones. If it shows larger errors on
the real rows, the difference, as far as it is more than chance, is added to the variance.
Something is also added for the errors that it may have missed.

Finally, the labels of real rows are compared with their probabilities, near each probability. An
error that they show there, for example at the highest probabilities, is added to the variance, and
so is a share of the variance with which few rows estimate it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv, ndtri

from .._fitted.spread import KNOTS, LARGEST_EXPONENT, Spread, sure_log_odds
from .._inputs.arrays import Floats

FEWEST = 50
"""The fewest rows that a deviation is taken from."""
_LEVEL = 0.95
"""Deviations are chosen so that intervals of this confidence cover their share."""
_WINDOW = 1 / 12
"""The share of simulated rows, those of nearby probabilities, that a deviation is taken from."""
_POOLED, _POOLED_OF_CURVES = 0.5, 0.1
"""The weight of all rows in the variance at a knot; less if the probability decides the error."""
_CAUTION, _ROWS_OF_CAUTION = 0.25, 1_000
"""The stand-in is smoother than the truth, and deviations are not known exactly: with so many rows
they are widened by this share, and by half of it with four times as many."""
_LEAST = 0.5
"""The share of the simulated variance that is left at least, whatever the second opinion says."""
_LEAST_SEEN, _LEAST_HIDDEN = 0.5, 0.1
"""The share of the variance that the second opinion is thought to see at least: where it sees an
excess, and where it is asked what it may have missed."""
_HIDDEN = 0.5
"""An excess of so many standard errors may have stayed unseen."""
_OPEN, _OPEN_OF_CURVES = 0.5, 0.15
"""The share of the variance that rows leave open near a probability and that is added; less of a
curve, which few numbers decide."""
_MISFIT = 0.5
"""The share of the variance that all rows show of a curve and that is added at each probability."""
_LEAST_INFORMATION, _MOST_OPEN = 0.5, 4.0
"""The information (the sum of p (1 - p)) that is assumed at least near a probability, and the most
variance that is added there."""
_ROWS_OF_ENDS = 50
"""The rows at each end of a rising function that bound it there; all of its first step, if more."""
_SMALLEST_DISTANCE = 1e-3
"""Of log-odds; smaller ones count as this one where it is asked how distances depend on rows."""
_TINY = 1e-12


@dataclass(frozen=True)
class Simulated:
    """Predictions of replicas of a calibrator for rows whose probabilities are known."""

    predicted: Floats
    truth: Floats
    rows: Floats
    """The training rows that each row's probabilities are based on."""
    weights: Floats
    second_opinion: Floats
    """That of the same rows; empty if the calibrator knows no attributes."""


@dataclass(frozen=True)
class Observed:
    """Predictions for rows whose labels are known.

    Of calibrators that know attributes they are those of replicas that have not seen the rows.
    """

    predicted: Floats
    happened: Floats
    weights: Floats
    second_opinion: Floats
    """That of the same rows; empty if the calibrator knows no attributes."""


@dataclass(frozen=True)
class Seen:
    """What a second opinion sees of the errors of a calibrator, row by row."""

    products: Floats
    """(y - q) (r - q), where y is what happened or is true, q what the calibrator says and r the
    second opinion. Their mean is that of the squared error of q, less what q and r have in common.
    """
    squares: Floats
    """The squared error of q if its log-odds were off by 1."""
    weights: Floats

    @classmethod
    def of(cls, happened: Floats, said: Floats, other: Floats, weights: Floats) -> Seen:
        """Compare opinions on some rows."""
        products = ((happened - said) * (other - said)).mean(axis=1)
        return cls(products, ((said * (1.0 - said)) ** 2).mean(axis=1), weights)

    @property
    def variance(self) -> float:
        """The variance of true log-odds that is seen."""
        return self._mean(self.products) / self._unit

    @property
    def standard_error(self) -> float:
        """The standard error of that variance."""
        errors = self.weights * (self.products - self._mean(self.products))
        return float(np.linalg.norm(errors) / self.weights.sum() / self._unit)

    @property
    def _unit(self) -> float:
        return max(self._mean(self.squares), _TINY)

    def _mean(self, values: Floats) -> float:
        return float(np.average(values, weights=self.weights))


def spread_of_curve(simulated: Simulated, training: Observed) -> Spread:
    """Return the spread of a calibrator that sees the scores alone, from its training rows."""
    spread = measure_spread(simulated, _POOLED_OF_CURVES)
    open_ = open_variance(training, _OPEN_OF_CURVES, _MISFIT)
    return replace(spread, deviations=np.sqrt(spread.deviations**2 + open_))


def spread_of_steps(simulated: Simulated, training: Observed) -> Spread:
    """Return the spread of a rising function without a shape, as isotonic regression finds it.

    Its steps are the means of their rows, so that no row shows it to be off. But few rows decide
    its ends: the first step ends before the first event, however likely events are. Since the
    function only rises, it is not above its mean over the first rows at its start, and enough of
    these bound that mean. The end is the same the other way round.
    """
    spread = measure_spread(simulated, 0.0)
    columns = list(zip(_told(training.predicted).T, _told(training.happened).T, strict=True))
    starts = [_deviations_at_start(p, y, training.weights) for p, y in columns]
    ends = [_deviations_at_start(1.0 - p, 1.0 - y, training.weights)[::-1] for p, y in columns]
    return replace(spread, deviations=np.max([spread.deviations, *starts, *ends], axis=0))


def _deviations_at_start(predicted: Floats, happened: Floats, weights: Floats) -> Floats:
    """Return the deviations that reach the limit of Clopper and Pearson for the first rows.

    It is that of as many rows of equal weight as know their mean as well. Events may have other
    weights than the rest, even where there is none among the first rows.
    """
    order = np.argsort(predicted, kind="stable")
    in_first_step = int(np.searchsorted(predicted[order], predicted[order[0]], side="right"))
    first = order[: max(in_first_step, min(_ROWS_OF_ENDS, len(order) // 2))]
    event = happened == 1.0
    of_event, of_other = weights[event].mean(), weights[~event].mean()
    relative = (weights / np.where(event, of_event, of_other))[first]
    n_effective = relative.sum() ** 2 / (relative**2).sum()
    events = n_effective * np.average(happened[first], weights=relative)
    limit = betaincinv(events + 1.0, max(n_effective - events, _TINY), (1.0 + _LEVEL) / 2)
    distances = sure_log_odds(limit) + np.log(of_event / of_other) - sure_log_odds(KNOTS)
    distances = np.where(predicted[first[-1]] >= KNOTS, distances, 0.0)
    return np.asarray(np.maximum(distances, 0.0) / ndtri((1.0 + _LEVEL) / 2))


def spread_of_regions(simulated: Simulated, held_out: Observed | None, n_rows: int) -> Spread:
    """Return the spread of a calibrator that sees attributes and was fitted to `n_rows`."""
    spread = measure_spread(simulated, _POOLED)
    variance = (caution(n_rows) * spread.deviations) ** 2
    if held_out is not None:
        variance = np.maximum(variance + excess_variance(held_out, simulated), _LEAST * variance)
        variance += open_variance(held_out, _OPEN)
    return replace(spread, deviations=np.sqrt(variance))


def caution(n_rows: int) -> float:
    """Return the factor of simulated deviations, which falls with the number of rows."""
    return 1.0 + _CAUTION * float(np.sqrt(_ROWS_OF_CAUTION / n_rows))


def excess_variance(held_out: Observed, simulated: Simulated) -> float:
    """Return the variance of true log-odds in reality beyond that in the simulation.

    What the second opinion sees of it is shrunk as chance demands, and what chance may hide from
    it is added. Both are divided by the share of the variance that it sees in the simulation.
    """
    said, truth = simulated.predicted, simulated.truth
    seen = Seen.of(held_out.happened, held_out.predicted, held_out.second_opinion, held_out.weights)
    foreseen = Seen.of(truth, said, simulated.second_opinion, simulated.weights)
    known = Seen.of(truth, said, truth, simulated.weights)
    share = float(np.clip(foreseen.variance / max(known.variance, _TINY), _LEAST_HIDDEN, 1.0))
    excess = seen.variance - foreseen.variance
    shrunk = excess * max(0.0, 1.0 - seen.standard_error**2 / max(excess**2, _TINY))
    return shrunk / max(share, _LEAST_SEEN) + _HIDDEN * seen.standard_error / share


def open_variance(observed: Observed, share: float, pooled: float = 0.0) -> Floats:
    """Return the variance of true log-odds that rows show or leave open, at each knot.

    The rows near a knot estimate by how much its log-odds are off. The squared estimate, less its
    variance, is shown; a share of the variance is added, since it is left open. What all knots show
    together is added everywhere, times `pooled`. Weighted rows count as so many as are as certain.
    """
    predicted, happened = _told(observed.predicted), _told(observed.happened)
    weights = observed.weights[:, np.newaxis]
    nearest = np.searchsorted((KNOTS[1:] + KNOTS[:-1]) / 2, predicted.ravel())

    def sums(values: Floats) -> Floats:
        return np.asarray(np.bincount(nearest, values.ravel(), len(KNOTS)), np.float64)

    information = sums(weights * predicted * (1.0 - predicted))
    noise = np.maximum(sums(weights**2 * predicted * (1.0 - predicted)), _TINY)
    rows = information / noise
    variance = 1.0 / np.maximum(rows * information, _LEAST_INFORMATION)
    squares = (rows * sums(weights * (happened - predicted)) * variance) ** 2
    shown = np.maximum(squares - variance, 0.0)
    shown += pooled * max(0.0, float(np.average(squares - variance, weights=rows * information)))
    return np.asarray(np.minimum(shown + share * variance, _MOST_OPEN))


def measure_spread(simulated: Simulated, pooled: float) -> Spread:
    """Return deviations of true log-odds that cover their share of simulated rows.

    They are those of probabilities that are based on a typical number of rows. How they depend on
    that number is a power, found by regressing the logarithm of distances.
    """
    predicted = _told(simulated.predicted)
    log_odds = sure_log_odds(predicted)
    distances = np.abs(sure_log_odds(_told(simulated.truth)) - log_odds)
    logarithms = np.log(simulated.rows)
    typical, exponent = float(np.exp(logarithms.mean())), 0.0
    if np.ptp(logarithms) > 0.0:
        regressors = np.column_stack(
            [
                np.ones(predicted.size),
                np.repeat(logarithms, predicted.shape[1]),
                np.abs(log_odds).ravel(),
            ]
        )
        aims = np.log(np.maximum(distances, _SMALLEST_DISTANCE)).ravel()
        slope = float(np.linalg.lstsq(regressors, aims, rcond=None)[0][1])
        exponent = float(np.clip(-slope, 0.0, LARGEST_EXPONENT))
    spread = Spread(np.ones(len(KNOTS)), exponent, typical)
    relative = distances / spread.widening(simulated.rows)[:, np.newaxis]
    return replace(spread, deviations=_deviations_at_knots(predicted, relative, pooled))


def _deviations_at_knots(predicted: Floats, distances: Floats, pooled: float) -> Floats:
    """Return the deviation of true log-odds at each knot, from the quantile of their distances."""
    order = np.argsort(predicted, axis=None, kind="stable")
    sorted_probabilities, sorted_distances = predicted.ravel()[order], distances.ravel()[order]
    n_window = min(len(order), max(FEWEST, int(_WINDOW * len(order))))
    middles = np.searchsorted(sorted_probabilities, KNOTS)
    begins = np.clip(middles - n_window // 2, 0, len(order) - n_window)
    local = np.array([np.quantile(sorted_distances[b : b + n_window], _LEVEL) for b in begins])
    overall = np.quantile(sorted_distances, _LEVEL)
    variance = pooled * overall**2 + (1.0 - pooled) * local**2
    return np.asarray(np.sqrt(variance) / ndtri((1.0 + _LEVEL) / 2))


def _told(probabilities: Floats) -> Floats:
    """The columns that tell all: of two classes the second, of more all of them."""
    return probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities
