"""How wide intervals of probabilities must be: learned from labels whose probabilities are known.

A forest of all rows stands in for the truth. Labels are drawn from its probabilities, the
calibrator is fitted to them, and what it says is compared with what they were drawn from. Errors of
chance and of what the calibrator cannot express or does not find are both in the difference. How
much they grow where regions are small is learned, too.

Reality may differ more, or less, from what the calibrator says than the stand-in does, for example
where both trust scores that are noisy. Extremely randomized trees, which err in other ways, are
asked on rows that they have not seen, in reality and in the simulation. What they see in reality
beyond what they see in the simulation, as far as it is more than chance, is added to the variance,
and so is what chance may hide from them.

At last, held-out rows are compared with what is said about them, by probability. An error that
they show there, for example at the highest probabilities, is added to the variance, and so is half
of what few rows leave open.

A calibrator that sees the scores alone is a curve, which itself stands in for the truth: the
difference is chance. There is no second opinion. What the curve cannot express shows in its own
training rows, by probability.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit, ndtri
from sklearn.base import clone

from ._fitted.spread import KNOTS, LARGEST_EXPONENT, SURE, Spread
from ._inputs.arrays import Floats, Labels, Rows
from ._inputs.indexing import take_rows
from ._inputs.parameters import is_whole
from ._inputs.training_rows import TrainingRows
from ._model_base import AttributeCalibrator
from .forest import CalibrationForest

_MOST_FITS, _ENOUGH_ROWS = 6, 20_000
"""Labels are drawn so often that there are enough rows, but not more often than this."""
_MOST_CURVES, _ENOUGH_ROWS_OF_CURVES = 60, 3_000_000
"""The same of calibrators that see scores alone, whose fits take no time: all rows of a fit lie on
one curve, so that each fit is one observation of an error."""
_N_STAND_IN = 100
"""Trees of the forest that stands in for the truth."""
_RAREST = 1e-3
"""The smallest probability of a curve that stands in for the truth."""
_N_FOLDS = 5
_MANY_ROWS = 20_000
"""With more rows two of the folds are enough, and trees of a second opinion see no more."""
_N_TREES, _ROWS_A_LEAF = 100, 5
"""Of the second opinion on real rows. About a third of the trees have not seen a row, and so many
are grown in a simulation."""
_LEVEL = 0.95
"""Deviations are chosen so that intervals of this confidence cover their share."""
_WINDOW, _FEWEST = 1 / 12, 50
"""The share of the simulated rows that each deviation is taken from, those of probabilities nearby,
and the fewest."""
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
_SMALLEST_DISTANCE = 1e-3
"""Of log-odds; smaller ones count as this one where it is asked how distances depend on rows."""
_TINY = 1e-12


@dataclass(frozen=True)
class Simulated:
    """What replicas of a calibrator say about rows whose probabilities are known."""

    predicted: Floats
    truth: Floats
    rows: Floats
    """The training rows that each row's probabilities rest on."""
    second_opinion: Floats
    """That of the same rows; empty if the calibrator knows no attributes."""


@dataclass(frozen=True)
class HeldOut:
    """What replicas of a calibrator say about rows that they have not seen, and what happened."""

    predicted: Floats
    happened: Floats
    second_opinion: Floats
    """That of the same rows."""


@dataclass(frozen=True)
class Seen:
    """What a second opinion sees of the errors of a calibrator, row by row."""

    products: Floats
    """(y - q) (r - q), where y is what happened or is true, q what the calibrator says and r the
    second opinion. Their mean is that of the squared error of q, less what q and r have in common.
    """
    squares: Floats
    """The squared error of q if its log-odds were off by 1."""

    @classmethod
    def of(cls, happened: Floats, said: Floats, other: Floats) -> Seen:
        """Compare opinions on some rows."""
        products = ((happened - said) * (other - said)).mean(axis=1)
        return cls(products, ((said * (1.0 - said)) ** 2).mean(axis=1))

    @property
    def variance(self) -> float:
        """The variance of true log-odds that is seen."""
        return float(self.products.mean()) / self._unit

    @property
    def standard_error(self) -> float:
        """The standard error of that variance."""
        return float(self.products.std() / np.sqrt(len(self.products)) / self._unit)

    @property
    def _unit(self) -> float:
        return max(float(self.squares.mean()), _TINY)


def learn_spread(calibrator: Any, X: Any, rows: TrainingRows, seed: int) -> Spread:
    """Return how far the truth may be from what a calibrator says that was fitted to some rows."""
    n_rows = len(rows.labels)
    if n_rows < _FEWEST:
        raise ValueError(f"intervals need at least {_FEWEST} rows, got {n_rows}; fit to more rows")
    refits = _Refits(calibrator, X, rows, seed)
    with _silently():
        simulated = refits.simulate()
        held_out = refits.hold_out() if refits.has_attributes else None
    if not refits.has_attributes:
        spread = measure_spread(simulated, _POOLED_OF_CURVES)
        open_ = open_variance(refits.curve, refits.happened, _OPEN_OF_CURVES, _MISFIT)
        return replace(spread, deviations=np.sqrt(spread.deviations**2 + open_))
    spread = measure_spread(simulated, _POOLED)
    variance = (caution(n_rows) * spread.deviations) ** 2
    if held_out is not None:
        variance = np.maximum(
            variance + excess_variance(held_out, simulated), _LEAST * variance
        ) + open_variance(held_out.predicted, held_out.happened, _OPEN)
    return replace(spread, deviations=np.sqrt(variance))


def caution(n_rows: int) -> float:
    """Return the factor of simulated deviations, which falls with the number of rows."""
    return 1.0 + _CAUTION * float(np.sqrt(_ROWS_OF_CAUTION / n_rows))


def excess_variance(held_out: HeldOut, simulated: Simulated) -> float:
    """Return the variance of true log-odds in reality beyond that in the simulation.

    What the second opinion sees of it is shrunk as chance demands, and what chance may hide from
    it is added. Both are divided by the share of the variance that it sees in the simulation.
    """
    seen = Seen.of(held_out.happened, held_out.predicted, held_out.second_opinion)
    foreseen = Seen.of(simulated.truth, simulated.predicted, simulated.second_opinion)
    known = Seen.of(simulated.truth, simulated.predicted, simulated.truth)
    share = float(np.clip(foreseen.variance / max(known.variance, _TINY), _LEAST_HIDDEN, 1.0))
    excess = seen.variance - foreseen.variance
    shrunk = excess * max(0.0, 1.0 - seen.standard_error**2 / max(excess**2, _TINY))
    return shrunk / max(share, _LEAST_SEEN) + _HIDDEN * seen.standard_error / share


def open_variance(predicted: Floats, happened: Floats, share: float, pooled: float = 0.0) -> Floats:
    """Return the variance of true log-odds that rows show or leave open, at each knot.

    The rows near a knot estimate by how much its log-odds are off. The squared estimate, less its
    variance, is shown; a share of the variance is added, since it is left open. What all knots show
    together is added everywhere, times `pooled`.
    """
    predicted, happened = _told(predicted), _told(happened)
    nearest = np.searchsorted((KNOTS[1:] + KNOTS[:-1]) / 2, predicted.ravel())
    information = (predicted * (1.0 - predicted)).ravel()
    weights = np.bincount(nearest, information, minlength=len(KNOTS))
    surprise = np.bincount(nearest, (happened - predicted).ravel(), minlength=len(KNOTS))
    variance = 1.0 / np.maximum(weights, _LEAST_INFORMATION)
    squares = (surprise * variance) ** 2
    shown = np.maximum(squares - variance, 0.0)
    shown += pooled * max(0.0, float(np.average(squares - variance, weights=weights)))
    return np.asarray(np.minimum(shown + share * variance, _MOST_OPEN))


def measure_spread(simulated: Simulated, pooled: float) -> Spread:
    """Return deviations of true log-odds that cover their share of simulated rows.

    They are those of probabilities that rest on a typical number of rows. How they depend on that
    number is a power, found by regressing the logarithm of distances.
    """
    predicted = _told(simulated.predicted)
    log_odds = _log_odds(predicted)
    distances = np.abs(_log_odds(_told(simulated.truth)) - log_odds)
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
    n_window = min(len(order), max(_FEWEST, int(_WINDOW * len(order))))
    middles = np.searchsorted(sorted_probabilities, KNOTS)
    begins = np.clip(middles - n_window // 2, 0, len(order) - n_window)
    local = np.array([np.quantile(sorted_distances[b : b + n_window], _LEVEL) for b in begins])
    overall = np.quantile(sorted_distances, _LEVEL)
    variance = pooled * overall**2 + (1.0 - pooled) * local**2
    return np.asarray(np.sqrt(variance) / ndtri((1.0 + _LEVEL) / 2))


@dataclass(frozen=True)
class _Refits:
    """Fits of a calibrator's replicas to some of its rows, with drawn or true labels."""

    calibrator: Any
    X: Any
    rows: TrainingRows
    seed: int

    @cached_property
    def _table(self) -> Any:
        """The attributes of the rows that are used; scores, for a calibrator that sees no other."""
        if not self.has_attributes:
            return self.rows.scores
        keep = self.rows.keep
        return self.X if keep is None else take_rows(self.X, np.flatnonzero(keep))

    @cached_property
    def _matrix(self) -> Floats:
        """The attributes as numbers, and the scores."""
        encoded = np.asarray(self.calibrator.model_.attributes.encode(self._table))
        return np.column_stack([encoded, self.rows.scores])

    @property
    def has_attributes(self) -> bool:
        return isinstance(self.calibrator, AttributeCalibrator)

    @property
    def _n_rows(self) -> int:
        return len(self.rows.labels)

    @property
    def _n_classes(self) -> int:
        return len(self.rows.classes)

    def simulate(self) -> Simulated:
        """Return what replicas say about rows that they have not seen, and what is true of these.

        Rows are drawn with replacement, as many as there are, and their labels from the stand-in.
        """
        truth, random = self._stand_in(), np.random.default_rng(self.seed)
        most, enough = _MOST_FITS, _ENOUGH_ROWS
        if not self.has_attributes:
            most, enough = _MOST_CURVES, _ENOUGH_ROWS_OF_CURVES
        n_fits = min(most, max(1, enough // self._n_rows))
        found, opinions = [], []
        for _ in range(n_fits):
            drawn = random.integers(0, self._n_rows, self._n_rows)
            others = np.setdiff1d(np.arange(self._n_rows), drawn)
            labels = draw_labels(truth[drawn], random)
            replica = self._fit(drawn, labels)
            table = take_rows(self._table, others)
            given = table, self.rows.scores[others]
            said = np.asarray(replica.predict_proba(*given))
            rests_on = replica.effective_rows(*given)
            found.append((said, truth[others], np.broadcast_to(rests_on, len(others))))
            if self.has_attributes:
                trees = self._second_opinion(drawn, labels, _N_TREES // 3)
                opinions.append(np.asarray(trees.predict(self._matrix[others])))
        predicted, true, rows = (np.concatenate(part) for part in zip(*found, strict=True))
        return Simulated(predicted, true, rows, np.concatenate(opinions or [np.empty(0)]))

    def hold_out(self) -> HeldOut | None:
        """Return what replicas say about rows of other folds; None if each fold lacks a class."""
        fold_of = np.random.default_rng(self.seed).permutation(self._n_rows) % _N_FOLDS
        labels, said, tested = self.rows.labels, [], []
        for number in range(_N_FOLDS if self._n_rows <= _MANY_ROWS else 2):
            train, test = np.flatnonzero(fold_of != number), np.flatnonzero(fold_of == number)
            if len(np.unique(labels[train])) < self._n_classes:
                continue
            replica = self._fit(train, labels[train])
            table = take_rows(self._table, test)
            said.append(np.asarray(replica.predict_proba(table, self.rows.scores[test])))
            tested.append(test)
        if not said:
            return None
        rows = np.concatenate(tested)
        trees = self._second_opinion(np.arange(self._n_rows), labels, _N_TREES)
        other = trees.oob_prediction_.reshape(self._n_rows, -1)[rows]
        return HeldOut(np.concatenate(said), self.happened[rows], other)

    @property
    def happened(self) -> Floats:
        """1 for the class of each row, 0 for the others."""
        return np.eye(self._n_classes)[self.rows.labels]

    @cached_property
    def curve(self) -> Floats:
        """The probabilities of all rows by a calibrator that sees the scores alone."""
        replica = self._fit(np.arange(self._n_rows), self.rows.labels)
        said = np.clip(replica.predict_proba(None, self.rows.scores), _RAREST, 1.0 - _RAREST)
        return np.asarray(said / said.sum(axis=1, keepdims=True))

    def _stand_in(self) -> Floats:
        """Return the probabilities that stand in for the true ones."""
        rows = self.rows
        if not self.has_attributes:
            return self.curve
        forest = CalibrationForest(
            _N_STAND_IN,
            do_no_harm=False,
            score_type=rows.score_type,
            random_state=self.seed,
            n_jobs=self._parameters().get("n_jobs"),
        )
        shared = {
            name: value
            for name, value in self._parameters().items()
            if name in ("categorical_features", "drop_identifiers")
        }
        forest.set_params(**shared)
        forest.fit(self._table, rows.labels, rows.scores, rows.weights)
        return forest.predict_proba(self._table, rows.scores)

    def _fit(self, train: Rows, labels: Labels) -> Any:
        """Fit a replica to some rows."""
        rows = self.rows
        weights = None if rows.weights is None else rows.weights[train]
        table = take_rows(self._table, train)
        return self._replica().fit(table, labels, rows.scores[train], weights)

    def _replica(self) -> Any:
        """Return an unfitted calibrator of the same parameters, for numbered classes."""
        known = self._parameters()
        changed = {"score_type": self.rows.score_type, "pos_label": None, "verbose": 0}
        if "cv" in known and not is_whole(known["cv"]):
            changed["cv"] = _N_FOLDS  # folds of other rows
        return clone(self.calibrator).set_params(**changed)

    def _parameters(self) -> dict[str, Any]:
        known: dict[str, Any] = self.calibrator.get_params()
        return known

    def _second_opinion(self, train: Rows, labels: Labels, n_trees: int) -> Any:
        """Return extremely randomized trees that were grown on some rows."""
        # Imported here: importing caltree shall not take its time.
        from sklearn.ensemble import ExtraTreesRegressor

        return ExtraTreesRegressor(
            n_trees,
            min_samples_leaf=_ROWS_A_LEAF,
            max_features=0.5,
            bootstrap=True,
            oob_score=True,
            max_samples=min(1.0, _MANY_ROWS / len(labels)),
            random_state=self.seed,
            n_jobs=self._parameters().get("n_jobs"),
        ).fit(self._matrix[train], np.eye(self._n_classes)[labels])


def draw_labels(probabilities: Floats, random: np.random.Generator) -> Labels:
    """Draw a label for each row; where a class got none, the likeliest row of it is of it."""
    thresholds = np.cumsum(probabilities, axis=1)[:, :-1]
    drawn = random.random((len(probabilities), 1)) > thresholds
    labels: Labels = drawn.sum(axis=1).astype(np.uint16)
    for absent in np.setdiff1d(np.arange(probabilities.shape[1]), labels):
        counts = np.bincount(labels, minlength=probabilities.shape[1])
        # Not the last row of another class.
        likelihood = np.where(counts[labels] > 1, probabilities[:, absent], -1.0)
        labels[np.argmax(likelihood)] = absent
    return labels


def _told(probabilities: Floats) -> Floats:
    """The columns that tell all: of two classes the second, of more all of them."""
    return probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def _log_odds(probabilities: Floats) -> Floats:
    return np.asarray(logit(np.clip(probabilities, SURE, 1.0 - SURE)))


@contextmanager
def _silently() -> Iterator[None]:
    """Without the warnings of replicas, which the fit itself has given already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
