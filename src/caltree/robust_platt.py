"""Platt scaling in which rows with outlying scores count less."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ._global_base import ScoreTypeOption
from ._inputs.arrays import Floats, Mask
from ._inputs.parameters import check_penalty
from ._training.scaling import fit_sigmoid
from .scaling import PlattScaling


class RobustPlattScaling(PlattScaling):
    """A sigmoid of the log-odds in which rows with outlying scores count less.

    Rüping (2006) shows that single rows with extreme scores can ruin Platt scaling, and combines it
    with robust statistics [1]_. Here, rows farther than `epsilon` robust standard deviations from
    the median of the log-odds count less, in proportion to that distance. So no single row can turn
    the sigmoid, however extreme its score and whatever its label. Weights depend on the scores
    alone: if the sigmoid is the right curve, the fit tends to it with more rows, as Platt scaling
    does.

    Parameters
    ----------
    epsilon : float, default=1.35
        Robust standard deviations up to which a row counts fully. The smaller, the more robust;
        with a large number it is `PlattScaling`.
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
    The aim is that of the paper's abstract. Its formulas were not available, so the method is
    another known one: a Mallows-type estimator of logistic regression, with Huber's weights [2]_. A
    row counts min(1, epsilon / z), where z is the distance of its log-odds from their median,
    divided by 1.4826 times the median of such distances. If that is 0, because more than half of
    the rows have the same score, all rows count fully. Targets, and more than two classes, are
    treated as in `PlattScaling`.

    References
    ----------
    .. [1] S. Rüping, "Robust probabilistic calibration", European Conference on Machine Learning,
       743-750, 2006.
    .. [2] R. J. Carroll and S. Pederson, "On robustness in the logistic regression model", Journal
       of the Royal Statistical Society B 55, 693-706, 1993.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import PlattScaling, RobustPlattScaling
    >>> random = np.random.default_rng(0)
    >>> scores = random.normal(size=2000)
    >>> y = random.random(2000) < 1 / (1 + np.exp(-scores))
    >>> scores[:10], y[:10] = 60.0, False  # ten rows that are far off
    >>> for kind in (PlattScaling, RobustPlattScaling):
    ...     fitted = kind(score_type="logit").fit(None, y, scores=scores)
    ...     print(fitted.slopes_.round(2))
    [0.01]
    [0.97]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.35,
        score_type: ScoreTypeOption = "auto",
        pos_label: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(score_type=score_type, pos_label=pos_label, verbose=verbose)
        self.epsilon = epsilon

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalty(self.epsilon, "epsilon")

    def _fitter(self) -> Callable[[Floats, Mask, Floats | None], tuple[float, float]]:
        return partial(fit_sigmoid, epsilon=float(self.epsilon))
