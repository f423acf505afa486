"""Global calibrators, which use the scores alone: Platt scaling, isotonic regression, none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from scipy.special import expit, log_expit, softmax

from ._fitted import storage
from ._fitted.json_values import SCORE_KEYS, read_numbers
from ._fitted.splines import cubic_pieces, evaluate_pieces
from ._global_base import GlobalCalibrator
from ._inputs.arrays import Floats, Mask
from ._inputs.scores import normalize_rows
from ._inputs.training_rows import TrainingRows
from ._training.scaling import (
    LARGEST_COEFFICIENT,
    SMALLEST_STEP,
    fit_isotonic,
    fit_sigmoid,
    fit_smooth_isotonic,
)

Fitted = TypeVar("Fitted")


class PlattScaling(GlobalCalibrator):
    """A sigmoid of the log-odds: one slope and one intercept for all rows.

    As in Platt (1999), the sigmoid is fitted by maximum likelihood to (N₊ + 1) / (N₊ + 2) for the
    N₊ rows of a class and to 1 / (N₋ + 2) for the N₋ others, not to 1 and 0. With more than two
    classes there is a sigmoid for each class against the others, and the values of a row are
    divided by their sum.

    Parameters
    ----------
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds, logits and margins are not. "auto" treats scores as
        probabilities if all of them lie in [0, 1] and those of a row sum to 1, and as margins if
        many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    verbose : int, default=0
        1 prints what `fit` did, with the time it took; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    slopes_, intercepts_ : ndarray of shape (1,) or (m,)
        The sigmoids: one, that of the second class, for two classes; otherwise one per class.
    score_type_ : str
        The type of the scores.
    score_limits_ : ScoreLimits
        The limits that probabilities are clipped to where logarithms are taken.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class of a single column of scores; None with several columns.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    Notes
    -----
    Log-odds are clipped at about -36.7 and 36.7, since floats cannot tell probabilities closer to 1
    from 1. Rounded probabilities of 0 and 1 are moved inwards by half a step of the rounding. Of
    two columns of logits or margins, the difference is used.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import PlattScaling
    >>> random = np.random.default_rng(0)
    >>> scores = random.random(5000)
    >>> y = random.random(5000) < 0.5 * scores
    >>> platt = PlattScaling().fit(None, y, scores=scores)
    >>> platt.predict_proba(None, scores=[0.8]).round(2)
    array([[0.64, 0.36]])
    """

    slopes_: Floats
    intercepts_: Floats

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        odds = rows.kind.log_odds(rows.kind.one_score_a_class(rows.scores))
        sigmoids = _one_versus_rest(self._fitter(), odds, rows)
        return {
            "slopes_": np.array([slope for slope, _ in sigmoids]),
            "intercepts_": np.array([intercept for _, intercept in sigmoids]),
        }

    def _fitter(self) -> Callable[[Floats, Mask, Floats | None], tuple[float, float]]:
        return fit_sigmoid

    def _calibrate(self, matrix: Floats) -> Floats:
        kind = self._kind()
        odds = kind.log_odds(kind.one_score_a_class(matrix))
        linear = odds * self.slopes_ + self.intercepts_
        if len(self.classes_) == 2:
            return np.hstack([expit(-linear), expit(linear)])
        # Divided by their sum in logarithms, since far from all training rows all may be next to 0.
        return np.asarray(softmax(log_expit(linear), axis=1))

    def _state(self) -> dict[str, Any]:
        sigmoids = {"slopes": self.slopes_.tolist(), "intercepts": self.intercepts_.tolist()}
        return {**super()._state(), **sigmoids}

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {*SCORE_KEYS, "slopes", "intercepts"})
        self._restore_scores(state)
        for name in ("slopes", "intercepts"):
            numbers = read_numbers(state, name, np.float64, 1)
            if len(numbers) != self._n_columns() or np.abs(numbers).max() > LARGEST_COEFFICIENT:
                raise ValueError(f"{name} of a stored calibrator do not match its classes")
            setattr(self, f"{name}_", numbers)


class IsotonicScaling(GlobalCalibrator):
    """A rising function of the score, by isotonic regression (pool-adjacent-violators).

    Of all rising functions it is the one with the lowest squared error. Between the scores of the
    training rows it is linear, beyond them constant. With more than two classes there is a
    function for each class against the others, and the values of a row are divided by their sum.
    If all of them are 0, each class gets the same probability.

    Scores are not transformed, since only their order matters for the fit.

    Parameters
    ----------
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Of two columns of logits or margins, the difference is used. "auto" treats scores as
        probabilities if all of them lie in [0, 1] and those of a row sum to 1, and as margins if
        many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    verbose : int, default=0
        1 prints what `fit` did, with the time it took; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    thresholds_, values_ : list of ndarray
        Corners of the functions, scores and probabilities: one, that of the second class, for two
        classes; otherwise one per class.
    score_type_ : str
        The type of the scores.
    score_limits_ : ScoreLimits
        The limits that probabilities are clipped to where logarithms are taken.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class of a single column of scores; None with several columns.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import IsotonicScaling
    >>> isotonic = IsotonicScaling().fit(None, [0, 1, 0, 1, 1], scores=[0.1, 0.4, 0.5, 0.7, 0.9])
    >>> isotonic.predict_proba(None, scores=[0.0, 0.45, 0.6, 0.8])
    array([[1.  , 0.  ],
           [0.5 , 0.5 ],
           [0.25, 0.75],
           [0.  , 1.  ]])
    """

    _weights_count_rows = False
    thresholds_: list[Floats]
    values_: list[Floats]

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        scores = rows.kind.one_score_a_class(rows.scores)
        corners = _one_versus_rest(self._fit_corners, scores, rows)
        return {
            "thresholds_": [thresholds for thresholds, _ in corners],
            "values_": [values for _, values in corners],
        }

    def _calibrate(self, matrix: Floats) -> Floats:
        scores = self._kind().one_score_a_class(matrix)
        columns = zip(scores.T, self.thresholds_, self.values_, strict=True)
        values = [self._interpolate(*each) for each in columns]
        if len(values) == 1:
            return _second_of_two(values[0][:, np.newaxis])
        return normalize_rows(np.column_stack(values))

    @staticmethod
    def _fit_corners(
        score: Floats, positive: Mask, weights: Floats | None
    ) -> tuple[Floats, Floats]:
        return fit_isotonic(score, positive, weights)

    @staticmethod
    def _interpolate(score: Floats, corners: Floats, heights: Floats) -> Floats:
        return np.interp(score, corners, heights)

    def _state(self) -> dict[str, Any]:
        corners = {"thresholds": self.thresholds_, "values": self.values_}
        lists = {name: [a.tolist() for a in arrays] for name, arrays in corners.items()}
        return {**super()._state(), **lists}

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {*SCORE_KEYS, "thresholds", "values"})
        self._restore_scores(state)
        names = ("thresholds", "values")
        for name in names:
            columns = state[name]
            if not isinstance(columns, list) or len(columns) != self._n_columns():
                raise ValueError(f"{name} of a stored calibrator do not match its classes")
            arrays = [read_numbers({name: c}, name, np.float64, 1) for c in columns]
            setattr(self, f"{name}_", arrays)
        if not all(map(_rise_together, self.thresholds_, self.values_)):
            raise ValueError("thresholds and values of a stored calibrator must rise together")


class SmoothIsotonicScaling(IsotonicScaling):
    """A smooth rising function of the score: a spline through the steps of isotonic regression.

    As in Jiang et al. (2011) [1]_, isotonic regression is fitted first, each of its steps is
    replaced by one point, and a rising cubic spline (PCHIP) goes through these points. So a higher
    score gives a higher probability, even where isotonic regression is flat. Beyond the
    first and the last point the function is constant. More than two classes are treated as in
    `IsotonicScaling`.

    Parameters
    ----------
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Of two columns of logits or margins, the difference is used. "auto" treats scores as
        probabilities if all of them lie in [0, 1] and those of a row sum to 1, and as margins if
        many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    verbose : int, default=0
        1 prints what `fit` did, with the time it took; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    thresholds_, values_ : list of ndarray
        Points of the functions, scores and probabilities: one function, that of the second class,
        for two classes; otherwise one per class.
    score_type_ : str
        The type of the scores.
    score_limits_ : ScoreLimits
        The limits that probabilities are clipped to where logarithms are taken.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class of a single column of scores; None with several columns.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    Notes
    -----
    Here the point of a step is the mean score of its rows, at the height of the step, which is the
    share of the class among these rows. Scores are not transformed.

    References
    ----------
    .. [1] X. Jiang, M. Osl, J. Kim and L. Ohno-Machado, "Smooth isotonic regression: a new method
       to calibrate predictive models", AMIA Summits on Translational Science, 16-20, 2011.

    Examples
    --------
    >>> from caltree import SmoothIsotonicScaling
    >>> scores = [0.1, 0.4, 0.5, 0.7, 0.9]
    >>> smooth = SmoothIsotonicScaling().fit(None, [0, 1, 0, 1, 1], scores=scores)
    >>> smooth.thresholds_[0].round(2), smooth.values_[0]
    (array([0.1 , 0.45, 0.8 ]), array([0. , 0.5, 1. ]))
    >>> smooth.predict_proba(None, scores=[0.0, 0.45, 0.6, 0.8])[:, 1].round(2)
    array([0.  , 0.5 , 0.71, 1.  ])
    """

    @staticmethod
    def _fit_corners(
        score: Floats, positive: Mask, weights: Floats | None
    ) -> tuple[Floats, Floats]:
        return fit_smooth_isotonic(score, positive, weights)

    @staticmethod
    def _interpolate(score: Floats, corners: Floats, heights: Floats) -> Floats:
        return evaluate_pieces(cubic_pieces(corners, heights), score)


class IdentityCalibrator(GlobalCalibrator):
    """No calibration: the scores as probabilities. A search can choose it.

    Probabilities are not changed (those of several classifiers are averaged, and a row that does
    not sum to 1 is divided by its sum). Logits and margins go through the softmax; with two
    classes and one column that is the logistic function.

    Parameters
    ----------
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Whether the scores already are probabilities. "auto" treats scores as probabilities if all
        of them lie in [0, 1] and those of a row sum to 1, and as margins if many do not. Unclear
        cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    verbose : int, default=0
        1 prints what `fit` did, with the time it took; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    score_type_ : str
        The type of the scores.
    score_limits_ : ScoreLimits
        The limits that probabilities are clipped to where logarithms are taken.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class of a single column of scores; None with several columns.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    Examples
    --------
    >>> from caltree import IdentityCalibrator
    >>> identity = IdentityCalibrator().fit(None, ["no", "yes"], scores=[0.2, 0.9])
    >>> identity.predict_proba(None, scores=[0.25])
    array([[0.75, 0.25]])
    """

    _weights_count_rows = False

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        rows.kind.average(rows.scores)
        return {}

    def _calibrate(self, matrix: Floats) -> Floats:
        return self._kind().uncalibrated(matrix)

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, SCORE_KEYS)
        self._restore_scores(state)


def _rise_together(thresholds: Floats, values: Floats) -> bool:
    """Whether these are the corners of a function that `fit_isotonic` could have found."""
    if len(thresholds) != len(values) or np.abs(thresholds).max() > LARGEST_COEFFICIENT:
        return False
    rising = np.diff(thresholds).min(initial=1.0) > SMALLEST_STEP and (np.diff(values) >= 0).all()
    return bool(rising and values[0] >= 0.0 and values[-1] <= 1.0)


def _second_of_two(values: Floats) -> Floats:
    return np.hstack([1.0 - values, values])


def _one_versus_rest(
    fit: Callable[[Floats, Mask, Floats | None], Fitted], scores: Floats, rows: TrainingRows
) -> list[Fitted]:
    """Fit the second of two classes, or each class against the others."""
    classes = [1] if scores.shape[1] == 1 else range(scores.shape[1])
    return [
        fit(column, rows.labels == label, rows.weights)
        for column, label in zip(scores.T, classes, strict=True)
    ]
