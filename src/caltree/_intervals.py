"""How wide intervals of probabilities must be: learned from labels whose probabilities are known.

A forest fitted to all rows stands in for the truth. Labels are drawn from its probabilities, the
calibrator is fitted to these labels, and its probabilities are compared with those of the forest.
The differences contain errors by chance, and errors because the calibrator cannot express the truth
or does not find it. How much they grow where regions are small is learned, too. The second opinion
on real and simulated rows is that of extremely randomized trees.

A calibrator that uses the scores alone is a curve, which itself stands in for the truth: the
differences are errors by chance. Where the curve has the wrong shape, its own training rows show
it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from ._fitted.fingerprint import calibration_hashes
from ._fitted.spread import Spread
from ._inputs.arrays import Floats, Labels, Rows
from ._inputs.indexing import take_rows
from ._inputs.parameters import is_whole
from ._inputs.training_rows import TrainingRows
from ._model_base import AttributeCalibrator
from ._training.spreads import (
    FEWEST,
    Observed,
    Simulated,
    spread_of_curve,
    spread_of_regions,
    spread_of_steps,
)
from .forest import CalibrationForest
from .scaling import IsotonicScaling

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
_SAME = 0.95
"""Fewer of the rows of a fit would be there again if they were others."""
_N_TREES, _ROWS_A_LEAF = 100, 5
"""Of the second opinion on real rows. About a third of the trees have not seen a row, and so many
are grown in a simulation."""


def learn_spread(calibrator: Any, X: Any, rows: TrainingRows, seed: int) -> Spread:
    """Return how far true probabilities may be from those of a calibrator fitted to some rows."""
    n_rows = len(rows.labels)
    if n_rows < FEWEST:
        raise ValueError(f"intervals need at least {FEWEST} rows, got {n_rows}; fit to more rows")
    refits = _Refits(calibrator, X, rows, seed)
    refits.warn_of_other_rows()
    with _silently():
        simulated = refits.simulate()
        if refits.has_attributes:
            return spread_of_regions(simulated, refits.hold_out(), n_rows)
        by_rows = spread_of_steps if isinstance(calibrator, IsotonicScaling) else spread_of_curve
        return by_rows(simulated, refits.training)


@dataclass(frozen=True)
class _Refits:
    """Fits of a calibrator's replicas to some of its rows, with drawn or true labels."""

    calibrator: Any
    X: Any
    rows: TrainingRows
    seed: int

    def warn_of_other_rows(self) -> None:
        """Warn if rows are not those that the calibrator was fitted to."""
        encoded = self._encoded if self.has_attributes else None
        rows = self.rows
        hashes = calibration_hashes(encoded, rows.labels, rows.scores, rows.kind)
        overlap = self.calibrator.fingerprint_.overlap(hashes)
        if overlap.status != "cannot tell" and overlap.found < _SAME * overlap.checked:
            warnings.warn(
                "fit_intervals got other rows than fit, so the intervals may be too wide or too "
                "narrow; give the attributes, labels and scores that the calibrator was fitted to",
                UserWarning,
                stacklevel=4,
            )

    @cached_property
    def _encoded(self) -> Floats:
        """The attributes as numbers."""
        return np.asarray(self.calibrator.model_.attributes.encode(self._table))

    @cached_property
    def _table(self) -> Any:
        """The attributes of the rows that are used; scores, for a calibrator that sees no other."""
        if not self.has_attributes:
            return self.rows.scores
        keep = self.rows.keep
        return self.X if keep is None else take_rows(self.X, np.flatnonzero(keep))

    @cached_property
    def _matrix(self) -> Floats:
        """The attributes as numbers, and the scores; those of both of two classes are one."""
        scores = self.rows.scores
        return np.column_stack([self._encoded, scores[:, 1:] if scores.shape[1] == 2 else scores])

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
        """Return predictions of replicas for rows they have not seen, and the true probabilities.

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
            rests_on = np.broadcast_to(rests_on, len(others))
            found.append((said, truth[others], rests_on, self._weights[others]))
            if self.has_attributes:
                trees = self._second_opinion(drawn, labels, _N_TREES // 3)
                opinions.append(np.asarray(trees.predict(self._matrix[others])))
        said, true, rows, weights = (np.concatenate(part) for part in zip(*found, strict=True))
        return Simulated(said, true, rows, weights, np.concatenate(opinions or [np.empty(0)]))

    def hold_out(self) -> Observed | None:
        """Return predictions of replicas for held-out rows; None if each fold lacks a class."""
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
        return Observed(np.concatenate(said), self._happened[rows], self._weights[rows], other)

    @property
    def training(self) -> Observed:
        """What a calibrator that sees the scores alone says about its training rows."""
        return Observed(self._curve, self._happened, self._weights, np.empty(0))

    @property
    def _happened(self) -> Floats:
        """1 for the class of each row, 0 for the others."""
        return np.eye(self._n_classes)[self.rows.labels]

    @cached_property
    def _weights(self) -> Floats:
        weights = self.rows.weights
        return np.ones(self._n_rows) if weights is None else weights

    @cached_property
    def _curve(self) -> Floats:
        """The probabilities of all rows by a calibrator that sees the scores alone."""
        replica = self._fit(np.arange(self._n_rows), self.rows.labels)
        said = np.clip(replica.predict_proba(None, self.rows.scores), _RAREST, 1.0 - _RAREST)
        return np.asarray(said / said.sum(axis=1, keepdims=True))

    def _stand_in(self) -> Floats:
        """Return the probabilities that stand in for the true ones."""
        rows = self.rows
        if not self.has_attributes:
            return self._curve
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
        ).fit(self._matrix[train], np.eye(self._n_classes)[labels], self._weights[train])


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


@contextmanager
def _silently() -> Iterator[None]:
    """Without the warnings of replicas, which the fit itself has given already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
