"""The base of the calibrators that use the scores alone."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._base import Calibrator, FittedRows, take_fingerprint
from ._inputs.arrays import Floats
from ._inputs.indexing import count_rows
from ._inputs.parameters import check_choice, check_verbose
from ._inputs.scores import SCORE_TYPES, ScoreKind, refuse_missing_scores
from ._inputs.training_rows import TrainingRows
from ._running import progress

ScoreTypeOption = Literal["auto", "probability", "logit", "margin"]


class GlobalCalibrator(Calibrator):
    """A calibrator that ignores the attributes: `X` may be None."""

    def __init__(
        self, *, score_type: ScoreTypeOption = "auto", pos_label: Any = None, verbose: int = 0
    ) -> None:
        self.score_type = score_type
        self.pos_label = pos_label
        self.verbose = verbose

    def fit(self, X: Any, y: Any, scores: Any = None, sample_weight: Any = None) -> Self:
        """Fit the calibrator to labels and the scores of a classifier.

        The scores must come from a classifier that was not trained on these rows, for instance
        out-of-fold predictions; otherwise they look better than they are.

        Parameters
        ----------
        X : table of shape (n, d) or None
            Ignored. It is a parameter so that all calibrators can be used in the same way.
        y : array-like of shape (n,)
            The labels.
        scores : array-like of shape (n,), (n, 1), (n, m) or (n, k * m)
            Must be given. One column for each of the m classes, in sorted order; with two classes
            one column is enough, that of `pos_label`. Columns that are named after the classes,
            such as ``p_yes`` and ``p_no``, may be in any order. The scores of k classifiers side by
            side are averaged.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.

        Returns
        -------
        self
            The fitted calibrator.
        """
        self._check_parameters()
        rows = self._check_rows(X, y, scores, sample_weight, self.score_type)
        with progress.fitting(self, self.verbose), progress.stage(1.0) as fitting:
            fitted = self._fit(rows)
            fitting.say(f"fitted to {len(rows.labels):,} rows")
        self.__dict__.update(fitted)
        self._set_rows(FittedRows.of(rows, take_fingerprint(rows)))
        return self

    def predict_proba(
        self, X: Any, scores: Any = None, *, on_bad_rows: Literal["error", "nan"] = "error"
    ) -> Floats:
        """Calibrated probabilities.

        Parameters
        ----------
        X : table of shape (n, d) or None
            Ignored.
        scores : array-like
            The scores of the classifier, as for `fit`.
        on_bad_rows : {"error", "nan"}, default="error"
            What to do with rows whose score is missing, infinite or, for probabilities, not between
            0 and 1: raise a ValueError, or give NaN for every class.

        Returns
        -------
        ndarray of shape (n, m)
            One column per class, in the order of `classes_`.
        """
        check_is_fitted(self)
        refuse_missing_scores(scores)
        n_rows = None if X is None else count_rows(X, "X")
        matrix, bad = self._read_scores(scores, n_rows, on_bad_rows)
        probabilities = self._calibrate(matrix)
        if bad is not None:
            probabilities[bad] = np.nan
        return probabilities

    def calibrate_scores(self, X: Any, matrix: Floats) -> Floats:
        """Calibrated probabilities of scores that `read_scores` returned."""
        return self._calibrate(matrix)

    def _check_parameters(self) -> None:
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_verbose(self.verbose)

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        """Fit to checked rows; return the fitted attributes."""
        raise NotImplementedError

    def _calibrate(self, matrix: Floats) -> Floats:
        """Calibrated probabilities, one column per class."""
        raise NotImplementedError

    def _state(self) -> dict[str, Any]:
        return self._state_of_scores()

    def _kind(self) -> ScoreKind:
        return ScoreKind(len(self.classes_), self.score_type_, limits=self.score_limits_)

    def _n_columns(self) -> int:
        """The number of maps from a score to a probability."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)
