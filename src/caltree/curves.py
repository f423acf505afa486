"""Global calibrators that are one logistic model of the scores: temperature and beta scaling."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax

from ._fitted import storage
from ._fitted.json_values import SCORE_KEYS, is_number, read_numbers
from ._global_base import GlobalCalibrator, ScoreTypeOption
from ._inputs.arrays import Floats
from ._inputs.parameters import check_penalty
from ._inputs.scores import ScoreKind
from ._inputs.training_rows import TrainingRows
from ._training.curves import fit_root, fit_temperature
from ._training.dataset import scores_per_state
from ._training.scaling import LARGEST_COEFFICIENT


class CurveScaling(GlobalCalibrator):
    """Base of the calibrators that are one logistic model of the scores, like a tree's root."""

    @property
    def parameters_(self) -> Floats:
        """Intercept and slopes of each log-odds, as those of a node.

        With two classes there is one log-odds, with slopes over the log-odds of the second class
        and over ln s(1 - s). With more, each class has one, with slopes over the scores of all
        classes or, if there is only one slope, over its own scores.
        """
        raise NotImplementedError

    def _calibrate(self, matrix: Floats) -> Floats:
        linear = _linear(self.parameters_, _regressors(self._kind(), matrix))
        if len(self.classes_) == 2:
            return np.hstack([expit(-linear), expit(linear)])
        return np.asarray(softmax(linear, axis=1))


class TemperatureScaling(CurveScaling):
    """One slope for the log-probabilities of all classes, which makes them sharper or flatter.

    The probabilities of a row are the softmax of the slope times the logarithms of its scores
    (Guo et al., 2017, whose temperature is 1 divided by the slope). The slope is the most likely
    one. Unless it is negative, no row changes the order of its classes.

    Parameters
    ----------
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        The logarithms of probabilities are used; logits and margins are used unchanged. "auto"
        treats scores as probabilities if all of them lie in [0, 1] and those of a row sum to 1, and
        as margins if many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    verbose : int, default=0
        1 prints what `fit` did, with the time it took; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    slope_ : float
        The slope: below 1 if the scores are too sure, above 1 if they are not sure enough, and
        negative if they rank the classes backwards.
    parameters_ : ndarray
        The same in the form of a tree's node: the intercept and the slopes of each log-odds.
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

    See Also
    --------
    BetaScaling : A more flexible curve, which is held near the temperature.

    Notes
    -----
    Log-odds are clipped at about -36.7 and 36.7, since floats cannot tell probabilities closer to 1
    from 1, and logarithms at -36.7. Rounded probabilities of 0 and 1 are moved inwards by half a
    step of the rounding. The scores of several classifiers are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import softmax
    >>> from caltree import TemperatureScaling
    >>> random = np.random.default_rng(0)
    >>> logits = random.normal(size=(5000, 3))
    >>> y = np.argmax(logits + random.gumbel(size=(5000, 3)), axis=1)
    >>> too_sure = softmax(2 * logits, axis=1)
    >>> temperature = TemperatureScaling().fit(None, y, scores=too_sure)
    >>> round(temperature.slope_, 1)
    0.5
    >>> temperature.predict_proba(None, scores=[[0.8, 0.1, 0.1]]).round(2)
    array([[0.59, 0.21, 0.21]])
    """

    slope_: float

    @property
    def parameters_(self) -> Floats:
        """Intercept and slopes of each log-odds, as those of a node."""
        if len(self.classes_) == 2:
            return np.array([[0.0, self.slope_, 0.0]])
        return np.tile([0.0, self.slope_], (len(self.classes_), 1))

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        regressors = _regressors(rows.kind, rows.scores)
        slope = fit_temperature(regressors, rows.labels, len(rows.classes), rows.weights)
        return {"slope_": slope}

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "slope": self.slope_}

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {*SCORE_KEYS, "slope"})
        self._restore_scores(state)
        slope = state["slope"]
        if not is_number(slope) or abs(slope) > LARGEST_COEFFICIENT:
            raise ValueError("slope of a stored calibrator must be a number that fitting can give")
        self.slope_ = float(slope)


class BetaScaling(CurveScaling):
    """Beta calibration of two classes, structured matrix scaling of more: one curve for all rows.

    With two classes the log-odds are a linear function of ln s and ln(1 - s), where s is the
    probability of the second class (Kull et al., 2017): a sigmoid that may be bent. With more
    classes the log-odds of each are a linear function of the logarithms of all probabilities (Berta
    et al., 2025). Both are fitted by maximum likelihood, with a penalty on the distance from the
    most likely temperature. With few rows the curve stays close to it; with many rows it moves away
    as far as that helps.

    Parameters
    ----------
    l2_regularization : float, default=0.05
        How strongly the curve is held near the temperature, as in the root of a `CalibrationTree`.
        The squared distance (scores scaled to standard deviation 1), times half of this, times 8
        for each class, is added to the negative log-likelihood. The penalty on the bend is 40 times
        as large. The penalty on slopes over another class's scores is multiplied by the number of
        other classes. Margins have no temperature: their slopes are held near 0, with this penalty
        alone.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into logarithms, logits into probabilities first, and margins are
        used unchanged. "auto" treats scores as probabilities if all of them lie in [0, 1] and those
        of a row sum to 1, and as margins if many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    verbose : int, default=0
        1 prints what `fit` did, with the time it took; the result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    intercepts_ : ndarray of shape (1,) or (m,)
        One for two classes, that of the log-odds of the second; otherwise one per class.
    slopes_ : ndarray of shape (1, 2), (m, m) or (m, 1)
        With two classes, over the log-odds of s and over ln s(1 - s). With more, a row per class,
        over the logarithms of the probabilities of all classes; with more than 30 classes, only
        over that of the class itself.
    parameters_ : ndarray
        Both side by side, in the form of a tree's node.
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

    See Also
    --------
    TemperatureScaling : One slope and nothing else.
    PlattScaling : A sigmoid, which cannot be bent.

    Notes
    -----
    Log-odds are clipped at about -36.7 and 36.7, since floats cannot tell probabilities closer to 1
    from 1, and logarithms at -36.7. Rounded probabilities of 0 and 1 are moved inwards by half a
    step of the rounding. The scores of several classifiers are averaged.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import BetaScaling
    >>> random = np.random.default_rng(0)
    >>> scores = random.random(5000)
    >>> y = random.random(5000) < scores**2
    >>> beta = BetaScaling().fit(None, y, scores=scores)
    >>> beta.predict_proba(None, scores=[0.5, 0.9])[:, 1].round(2)
    array([0.25, 0.82])
    """

    intercepts_: Floats
    slopes_: Floats

    def __init__(
        self,
        *,
        l2_regularization: float = 0.05,
        score_type: ScoreTypeOption = "auto",
        pos_label: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(score_type=score_type, pos_label=pos_label, verbose=verbose)
        self.l2_regularization = l2_regularization

    @property
    def parameters_(self) -> Floats:
        """Intercept and slopes of each log-odds, as those of a node."""
        return np.column_stack([self.intercepts_, self.slopes_])

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalty(self.l2_regularization)

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        parameters = fit_root(
            _regressors(rows.kind, rows.scores),
            rows.labels,
            len(rows.classes),
            rows.weights,
            float(self.l2_regularization),
            corrects_scores=rows.score_type != "margin",
        )
        return {"intercepts_": parameters[:, 0], "slopes_": parameters[:, 1:]}

    def _state(self) -> dict[str, Any]:
        curve = {"intercepts": self.intercepts_.tolist(), "slopes": self.slopes_.tolist()}
        return {**super()._state(), **curve}

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {*SCORE_KEYS, "intercepts", "slopes"})
        self._restore_scores(state)
        n_states, n_classes = self._n_columns(), len(self.classes_)
        shapes = {
            "intercepts": (n_states,),
            "slopes": (n_states, scores_per_state(n_classes, n_classes)),
        }
        for name, shape in shapes.items():
            numbers = read_numbers(state, name, np.float64, len(shape))
            if numbers.shape != shape or np.abs(numbers).max() > LARGEST_COEFFICIENT:
                raise ValueError(f"{name} of a stored calibrator do not match its classes")
            setattr(self, f"{name}_", numbers)


def _regressors(kind: ScoreKind, matrix: Floats) -> Floats:
    """The scores as node models see those of one classifier; several are averaged."""
    return kind.regressors(kind.one_score_a_class(matrix))


def _linear(parameters: Floats, regressors: Floats) -> Floats:
    """The log-odds of logistic models, a column each."""
    intercepts, *slopes = parameters.T
    if len(slopes) < regressors.shape[1]:
        return np.asarray(intercepts + slopes[0] * regressors)
    linear = np.tile(intercepts, (len(regressors), 1))
    for slope, column in zip(slopes, regressors.T, strict=True):
        linear += column[:, np.newaxis] * slope
    return linear
