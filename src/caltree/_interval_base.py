"""Intervals for probabilities, as every calibrator has them once they are fitted."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._fitted.made import Made
from ._fitted.spread import Spread
from ._inputs.arrays import Floats
from ._inputs.folds import random_generator
from ._inputs.parameters import check_confidence
from ._inputs.scores import ScoreType
from ._inputs.training_rows import TrainingRows


class WithIntervals:
    """The part of a calibrator that makes intervals."""

    classes_: npt.NDArray[Any]
    score_type_: ScoreType
    made_: Made
    spread_: Spread | None

    def fit_intervals(
        self,
        X: Any,
        y: Any,
        scores: Any = None,
        sample_weight: Any = None,
        *,
        random_state: Any = 0,
    ) -> Self:
        """Learn from the training rows how wide the intervals of `predict_interval` must be.

        The fitted calibrator does not change. Copies of it are fitted to labels that are drawn from
        known probabilities, and to parts of the rows: this takes 10 to 20 times as long as `fit`,
        and 40 times for a tree of 1,000 rows.

        Parameters
        ----------
        X : table of shape (n, d) or None
            The attributes that the calibrator was fitted to.
        y : array-like of shape (n,)
            The labels that it was fitted to.
        scores : array-like
            The scores that it was fitted to.
        sample_weight : array-like of shape (n,), optional
            The weights that it was fitted with.
        random_state : int, RandomState instance or None, default=0
            Draws the labels. The same number gives the same intervals.

        Returns
        -------
        self
            The calibrator, with `spread_`.
        """
        # Imported here: it fits forests, which are calibrators, too.
        from ._intervals import learn_spread

        check_is_fitted(self)
        rows = self._check_rows(X, y, scores, sample_weight, self.score_type_)
        if len(rows.labels) != self.made_.n_rows or not np.array_equal(rows.classes, self.classes_):
            raise ValueError(
                f"fit_intervals got {len(rows.labels):,} rows of {len(rows.classes)} classes, but "
                f"the calibrator was fitted to {self.made_.n_rows:,} of {len(self.classes_)}; "
                "give the rows that it was fitted to"
            )
        seed = int(random_generator(random_state).randint(2**31 - 1))
        self.spread_ = learn_spread(self, X, rows, seed)
        return self

    def predict_interval(
        self,
        X: Any,
        scores: Any = None,
        confidence: float = 0.95,
        *,
        on_bad_rows: Literal["error", "nan"] = "error",
    ) -> Floats:
        """Intervals for the true probabilities, which `fit_intervals` makes possible.

        The interval contains the true probability of a class, given what the calibrator sees, for
        about the share `confidence` of all rows; not of the rows of each region. It is wider where
        a probability is based on fewer training rows, as far as that matters.

        Parameters
        ----------
        X : table of shape (n, d) or None
            As for `predict_proba`.
        scores : array-like
            As for `predict_proba`.
        confidence : float, default=0.95
            The share of the rows whose interval should contain the true probability, between 0 and
            1.
        on_bad_rows : {"error", "nan"}, default="error"
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n, m, 2)
            For each row and class, in the order of `classes_`, the lower and the upper end. The
            result of `predict_proba` lies between them.

        Examples
        --------
        >>> import numpy as np
        >>> from caltree import PlattScaling
        >>> random = np.random.default_rng(0)
        >>> scores = random.random(1000)
        >>> y = random.random(1000) < 0.5 * scores
        >>> platt = PlattScaling().fit(None, y, scores).fit_intervals(None, y, scores)
        >>> interval = platt.predict_interval(None, [0.8])
        >>> lower, upper = interval[0, 1]
        >>> bool(lower < 0.4 < upper)
        True
        """
        check_is_fitted(self)
        check_confidence(confidence)
        self._known_spread()
        probabilities = self.predict_proba(X, scores, on_bad_rows=on_bad_rows)
        return self.interval_around(probabilities, X, scores, confidence)

    def interval_around(
        self, probabilities: Floats, X: Any, scores: Any, confidence: float
    ) -> Floats:
        """Intervals around results of `predict_proba`, if `fit_intervals` was called."""
        spread = self._known_spread()
        if spread.exponent == 0.0:
            return spread.interval(probabilities, confidence)
        rows = self.effective_rows(X, scores, on_bad_rows="nan")
        return spread.interval(probabilities, confidence, rows)

    def _known_spread(self) -> Spread:
        if self.spread_ is None:
            raise ValueError(
                "predict_interval needs to know how far off probabilities may be; call "
                "fit_intervals with the training rows first"
            )
        return self.spread_

    def effective_rows(
        self, X: Any, scores: Any, *, on_bad_rows: Literal["error", "nan"] = "error"
    ) -> Any:
        """The number of training rows that the probabilities of each row are based on: all."""
        del X, scores, on_bad_rows
        return float(self.made_.n_rows)

    def predict_proba(
        self, X: Any, scores: Any, *, on_bad_rows: Literal["error", "nan"] = "error"
    ) -> Floats:
        """Predict calibrated probabilities."""
        raise NotImplementedError

    def _check_rows(
        self,
        X: Any,
        y: Any,
        scores: Any,
        sample_weight: Any,
        score_type: str,
        groups: Any = None,
    ) -> TrainingRows:
        """Check training rows."""
        raise NotImplementedError
