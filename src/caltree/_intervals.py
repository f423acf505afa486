"""How wide intervals of probabilities must be: learned from labels whose probabilities are known.

A forest of all rows stands in for the truth. Labels are drawn from its probabilities, the
calibrator is fitted to them, and what it says is compared with what they were drawn from. Errors of
chance and of what the calibrator cannot express or does not find are both in the difference. How
much they grow where regions are small is learned, too.

Reality may differ more, or less, from what the calibrator says than the stand-in does. Both times a
random forest of the attributes alone, which errs in other ways, is asked on rows that it has not
seen. The more it sees in reality, compared with what it sees in the simulation, the wider intervals
become. What it could not see, since chance hides it, is allowed for.
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

_MOST_FITS, _ENOUGH_ROWS = 6, 12_000
"""Labels are drawn so often that there are enough rows, but not more often than this."""
_MOST_CURVES, _ENOUGH_ROWS_OF_CURVES = 60, 3_000_000
"""The same of calibrators that see scores alone, whose fits take no time: all rows of a fit lie on
one curve, so that each fit is one observation of an error."""
_N_STAND_IN = 100
"""Trees of the forest that stands in for the truth."""
_N_FOLDS = 5
_MANY_ROWS = 20_000
"""With more rows two of the folds are enough to bound the error, and random forests see no more."""
_N_TREES, _ROWS_A_LEAF = 60, 3
"""Of the random forests: what matters is that they are not biased, not that they are smooth."""
_LEVEL = 0.95
"""Deviations are chosen so that intervals of this confidence cover their share."""
_WINDOW, _FEWEST = 1 / 12, 50
"""The share of the simulated rows that each deviation is taken from, those of probabilities nearby,
and the fewest."""
_POOLED, _POOLED_OF_CURVES = 0.5, 0.1
"""The weight of all rows in the variance at a knot; less if the probability decides the error."""
_CAUTION = 1.2
"""The stand-in is smoother than the truth in attributes."""
_SMALLEST_DISTANCE = 1e-3
"""Of log-odds; smaller ones count as this one where it is asked how distances depend on rows."""
_RATIOS = np.exp(np.linspace(-2.5, 3.0, 400))
"""Squared errors in reality that are thought of, in those of the simulation."""
_TINY = 1e-12
_DEVIATION_OF_RATIOS = 0.35
"""Of their logarithm, before anything is seen."""
_UNSEEN = 2.0
"""A mean squared error of so many standard errors of what was seen may have stayed unseen."""
_SURELY = 0.5
"""The share of what was seen that is an error at least, whatever the simulation says."""


@dataclass(frozen=True)
class Simulated:
    """What replicas of a calibrator say about rows whose probabilities are known."""

    predicted: Floats
    truth: Floats
    rows: Floats
    """The training rows that each row's probabilities rest on."""
    second_opinion: Floats | None
    """What random forests say about the same rows; None if the calibrator knows no attributes."""


def learn_spread(calibrator: Any, X: Any, rows: TrainingRows, seed: int) -> Spread:
    """Return how far the truth may be from what a calibrator says that was fitted to some rows."""
    n_rows = len(rows.labels)
    if n_rows < _FEWEST:
        raise ValueError(
            f"intervals need {_FEWEST} rows at least, got {n_rows}; fit to more rows, or do without"
        )
    refits = _Refits(calibrator, X, rows, seed)
    with _silently():
        simulated = refits.simulate()
        seen = refits.compare_opinions()
    if simulated.second_opinion is None or seen is None:
        return measure_spread(simulated, _POOLED_OF_CURVES)
    ratio = compare_errors(simulated, simulated.second_opinion, seen)
    spread = measure_spread(simulated, _POOLED)
    return replace(spread, deviations=_CAUTION * np.sqrt(ratio) * spread.deviations)


def measure_spread(simulated: Simulated, pooled: float) -> Spread:
    """Return deviations of true log-odds that cover their share of simulated rows.

    They are those of probabilities that rest on a typical number of rows. How they depend on that
    number is a power, found by regressing the logarithm of distances.
    """
    predicted, n_classes = simulated.predicted, simulated.predicted.shape[1]
    log_odds = _log_odds(predicted)
    distances = np.abs(_log_odds(simulated.truth) - log_odds)
    logarithms = np.log(simulated.rows)
    typical, exponent = float(np.exp(logarithms.mean())), 0.0
    if np.ptp(logarithms) > 0.0:
        regressors = np.column_stack(
            [
                np.ones(predicted.size),
                np.repeat(logarithms, n_classes),
                np.abs(log_odds).ravel(),
            ]
        )
        aims = np.log(np.maximum(distances, _SMALLEST_DISTANCE)).ravel()
        slope = float(np.linalg.lstsq(regressors, aims)[0][1])
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
    if predicted.shape[1] == 2:
        variance = (variance + variance[::-1]) / 2  # what holds for one class holds for the other
    return np.asarray(np.sqrt(variance) / ndtri((1.0 + _LEVEL) / 2))


def compare_errors(simulated: Simulated, second_opinion: Floats, seen: Floats) -> float:
    """Return the mean squared error in reality, divided by that in the simulation.

    Parameters
    ----------
    simulated : Simulated
        The simulation.
    second_opinion : ndarray
        That in the simulation.
    seen : ndarray
        Of each held-out row in reality, (y - q) (r - q), where y is what happened, q what the
        calibrator says and r the second opinion. Its mean is that of (p - q) (r - q) with p the
        truth: the squared error of q, less what the errors of q and r have in common. The same mean
        is known in the simulation, and the ratio of both is that of the errors if r finds the
        same share of them.
    """
    error = max(float(np.mean((simulated.truth - simulated.predicted) ** 2)), _TINY)
    distance = second_opinion - simulated.predicted
    expected = float(np.mean((simulated.truth - simulated.predicted) * distance))
    standard_error = max(float(seen.std()) / np.sqrt(len(seen)), _TINY)
    logarithms = np.log(_RATIOS)
    # Minus the logarithm of the posterior: the prior is normal, and so is what is seen.
    cost = ((seen.mean() - _RATIOS * max(expected, _TINY)) / standard_error) ** 2 / 2
    cost += (logarithms / _DEVIATION_OF_RATIOS) ** 2 / 2
    ratio = np.exp(np.average(logarithms, weights=np.exp(cost.min() - cost)))
    least = max(_UNSEEN * standard_error, _SURELY * float(seen.mean()))
    return float(max(ratio, least / error))


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
        if not self._has_attributes:
            return self.rows.scores
        keep = self.rows.keep
        return self.X if keep is None else take_rows(self.X, np.flatnonzero(keep))

    @cached_property
    def _matrix(self) -> Floats:
        """The attributes as numbers."""
        return np.asarray(self.calibrator.model_.attributes.encode(self._table))

    @property
    def _has_attributes(self) -> bool:
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
        if not self._has_attributes:
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
            if self._has_attributes:
                opinions.append(self._second_opinion(drawn, labels, others))
        predicted, true, rows = (np.concatenate(part) for part in zip(*found, strict=True))
        return Simulated(predicted, true, rows, np.concatenate(opinions) if opinions else None)

    def compare_opinions(self) -> Floats | None:
        """Return what `compare_errors` is to know of the true labels, from held-out rows."""
        if not self._has_attributes:
            return None
        fold_of = np.random.default_rng(self.seed).permutation(self._n_rows) % _N_FOLDS
        labels, products = self.rows.labels, []
        for number in range(_N_FOLDS if self._n_rows <= _MANY_ROWS else 2):
            train, test = np.flatnonzero(fold_of != number), np.flatnonzero(fold_of == number)
            if len(np.unique(labels[train])) < self._n_classes:
                continue
            replica = self._fit(train, labels[train])
            table = take_rows(self._table, test)
            said = np.asarray(replica.predict_proba(table, self.rows.scores[test]))
            other = self._second_opinion(train, labels[train], test)
            happened = np.eye(self._n_classes)[labels[test]]
            products.append(((happened - said) * (other - said)).mean(axis=1))
        return np.concatenate(products) if products else None

    def _stand_in(self) -> Floats:
        """Return the probabilities that stand in for the true ones."""
        forest = CalibrationForest(
            _N_STAND_IN,
            do_no_harm=False,
            score_type=self.rows.score_type,
            random_state=self.seed,
            n_jobs=self._parameters().get("n_jobs"),
        )
        shared = {
            name: value
            for name, value in self._parameters().items()
            if name in ("categorical_features", "drop_identifiers")
        }
        forest.set_params(**shared)
        rows = self.rows
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

    def _second_opinion(self, train: Rows, labels: Labels, test: Rows) -> Floats:
        """Return the probabilities of a random forest of the attributes alone, for other rows."""
        # Imported here: importing caltree shall not take its time.
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(
            _N_TREES,
            min_samples_leaf=_ROWS_A_LEAF,
            max_features=0.5,
            max_samples=min(1.0, _MANY_ROWS / len(labels)),
            random_state=self.seed,
            n_jobs=self._parameters().get("n_jobs"),
        ).fit(self._matrix[train], labels)
        return np.asarray(forest.predict_proba(self._matrix[test]))


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


def _log_odds(probabilities: Floats) -> Floats:
    return np.asarray(logit(np.clip(probabilities, SURE, 1.0 - SURE)))


@contextmanager
def _silently() -> Iterator[None]:
    """Without the warnings of replicas, which the fit itself has given already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
