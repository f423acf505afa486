"""How wide intervals of probabilities must be: learned from labels whose probabilities are known.

A forest of all rows stands in for the truth. Labels are drawn from its probabilities, the
calibrator is fitted to them, and what it says is compared with what they were drawn from. Errors of
chance and of what the calibrator cannot express or does not find are both in the difference.

That leaves out what the forest does not see either: noise in the scores, say. A random forest of
the attributes alone, which errs in other ways, gives a lower bound of the error on held-out rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import logit, ndtri
from sklearn.base import clone

from ._fitted.spread import KNOTS, SURE, Spread
from ._inputs.arrays import Floats, Labels, Rows
from ._inputs.indexing import take_rows
from ._inputs.parameters import is_whole
from ._inputs.training_rows import TrainingRows
from ._model_base import AttributeCalibrator
from .forest import CalibrationForest

_MOST_FITS, _ENOUGH_ROWS = 6, 12_000
"""Labels are drawn so often that there are enough rows, but not more often than this."""
_N_STAND_IN = 100
"""Trees of the forest that stands in for the truth."""
_N_FOLDS = 5
_MANY_ROWS = 20_000
"""With more rows two of the folds are enough to bound the error, and random forests see no more."""
_N_TREES, _ROWS_A_LEAF = 60, 3
"""Of the random forests: what matters is that they are not biased, not that they are smooth."""
_LEVEL = 0.9
"""Deviations are chosen so that intervals of this confidence cover their share."""
_WINDOW, _FEWEST = 1 / 12, 50
"""The share of the simulated rows that each deviation is taken from, those of probabilities nearby,
and the fewest."""
_POOLED = 0.5
"""The weight of all rows in the variance at a knot."""
_CAUTION = 1.2
"""The stand-in is smoother than the truth."""
_DOUBT = 0.5
"""So many standard errors of the bound are not believed."""


def learn_spread(calibrator: Any, X: Any, rows: TrainingRows, seed: int) -> Spread:
    """Return how far the truth may be from what a calibrator says that was fitted to some rows."""
    n_rows = len(rows.labels)
    if n_rows < _FEWEST:
        raise ValueError(
            f"intervals need {_FEWEST} rows at least, got {n_rows}; fit to more rows, or do without"
        )
    refits = _Refits(calibrator, X, rows, seed)
    with _silently():
        predicted, truth = refits.simulate()
        bound = refits.bound_error()
    simulated = float(np.mean((predicted - truth) ** 2))
    factor = np.sqrt(max(1.0, bound / max(simulated, 1e-12)))
    return Spread(_CAUTION * factor * measure_deviations(predicted, truth))


def measure_deviations(predicted: Floats, truth: Floats) -> Floats:
    """Return the deviation of true log-odds at each knot, from the quantile of their distances."""
    distances = np.abs(_log_odds(truth) - _log_odds(predicted)).ravel()
    order = np.argsort(predicted, axis=None, kind="stable")
    sorted_probabilities, distances = predicted.ravel()[order], distances[order]
    n_window = min(len(order), max(_FEWEST, int(_WINDOW * len(order))))
    middles = np.searchsorted(sorted_probabilities, KNOTS)
    begins = np.clip(middles - n_window // 2, 0, len(order) - n_window)
    local = np.array([np.quantile(distances[b : b + n_window], _LEVEL) for b in begins])
    pooled = np.quantile(distances, _LEVEL)
    variance = _POOLED * pooled**2 + (1.0 - _POOLED) * local**2
    if predicted.ndim == 2 and predicted.shape[1] == 2:
        variance = (variance + variance[::-1]) / 2  # what holds for one class holds for the other
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
        if not isinstance(self.calibrator, AttributeCalibrator):
            return self.rows.scores
        keep = self.rows.keep
        return self.X if keep is None else take_rows(self.X, np.flatnonzero(keep))

    @property
    def _n_rows(self) -> int:
        return len(self.rows.labels)

    @property
    def _n_classes(self) -> int:
        return len(self.rows.classes)

    def simulate(self) -> tuple[Floats, Floats]:
        """Return what replicas say about rows that they have not seen, and what is true of these.

        Rows are drawn with replacement, as many as there are, and their labels from the stand-in.
        """
        truth, random = self._stand_in(), np.random.default_rng(self.seed)
        n_fits = min(_MOST_FITS, max(1, _ENOUGH_ROWS // self._n_rows))
        found = []
        for _ in range(n_fits):
            drawn = random.integers(0, self._n_rows, self._n_rows)
            others = np.setdiff1d(np.arange(self._n_rows), drawn)
            labels = draw_labels(truth[drawn], random)
            found.append((self._fit_and_predict(drawn, labels, others), truth[others]))
        predicted, true = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return predicted, true

    def bound_error(self) -> float:
        """Return a lower bound of the mean squared error, less half a standard error.

        With p the truth, q what the calibrator says and r what the random forest says, the mean of
        (y - q) (r - q) over held-out rows is that of (p - q) (r - q): the squared error of q, less
        what the errors of q and r have in common.
        """
        if not isinstance(self.calibrator, AttributeCalibrator):
            return 0.0
        fold_of = np.random.default_rng(self.seed).permutation(self._n_rows) % _N_FOLDS
        matrix, labels = self.calibrator.model_.attributes.encode(self._table), self.rows.labels
        products = []
        for number in range(_N_FOLDS if self._n_rows <= _MANY_ROWS else 2):
            train, test = np.flatnonzero(fold_of != number), np.flatnonzero(fold_of == number)
            if len(np.unique(labels[train])) < self._n_classes:
                continue
            said = self._fit_and_predict(train, labels[train], test)
            other = self._second_opinion(matrix[train], labels[train])(matrix[test])
            happened = np.eye(self._n_classes)[labels[test]]
            products.append(((happened - said) * (other - said)).mean(axis=1))
        if not products:
            return 0.0
        each = np.concatenate(products)
        return float(each.mean() - _DOUBT * each.std() / np.sqrt(len(each)))

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

    def _fit_and_predict(self, train: Rows, labels: Labels, test: Rows) -> Floats:
        """Fit a replica to some rows, and predict others."""
        replica, rows = self._replica(), self.rows
        weights = None if rows.weights is None else rows.weights[train]
        replica.fit(take_rows(self._table, train), labels, rows.scores[train], weights)
        return np.asarray(replica.predict_proba(take_rows(self._table, test), rows.scores[test]))

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

    def _second_opinion(self, matrix: Floats, labels: Labels) -> Callable[[Floats], Floats]:
        """Return the probabilities of a random forest of the attributes alone."""
        # Imported here: importing caltree shall not take its time.
        from sklearn.ensemble import RandomForestClassifier

        forest = RandomForestClassifier(
            _N_TREES,
            min_samples_leaf=_ROWS_A_LEAF,
            max_features=0.5,
            max_samples=min(1.0, _MANY_ROWS / len(labels)),
            random_state=self.seed,
            n_jobs=self._parameters().get("n_jobs"),
        )
        predict: Callable[[Floats], Floats] = forest.fit(matrix, labels).predict_proba
        return predict


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
