"""A global calibrator of several classifiers: isotonic regression of their vote, smoothed."""

from __future__ import annotations

from typing import Any

from ._global_base import ScoreTypeOption
from ._inputs.parameters import check_penalty
from ._inputs.training_rows import TrainingRows
from ._training.regularized_isotonic import fit_regularized_isotonic
from .scaling import IsotonicScaling


class RegularizedIsotonicScaling(IsotonicScaling):
    """A rising function of the mean score of several classifiers, smoothed over similar rows.

    Zhong and Kwok (2013) calibrate an ensemble of classifiers by isotonic regression [1]_: the
    probability rises with the classifiers' soft vote, and it is similar for similar rows. The
    second condition smooths the function and keeps it from following chance. The alternating
    direction method of multipliers finds the best function under both. It works for a single
    classifier, too. More than two classes are treated as in `IsotonicScaling`.

    Parameters
    ----------
    l2_regularization : float, default=1.0
        How much differences between neighbours count; with a small number it is the isotonic
        regression of groups of rows.
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
        Corners of the functions, mean scores and probabilities: one function, that of the second
        class, for two classes; otherwise one per class.
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
    The order, the regularisation and the method are those that the paper's abstract names. Its
    formulas were not available, so the rest is our own. The vote is the mean of the scores, so all
    classifiers count the same. Rows with the same vote form a group. If there are more than 200
    votes, a group has about half a percent of all rows. The values p of groups g, of n rows with a
    share y of the class, minimise ::

        sum of n_g (p_g - y_g)² + l2_regularization * sum of c_gh (p_g - p_h)²

    among all that rise and lie in [0, 1]. The second sum is over neighbours g and h: their votes
    are next to each other, or one is among the five nearest of the other by the scores of the
    single classifiers. c_gh is their mean number of rows, divided by five. Between the mean votes
    of groups the function is linear, beyond them constant.

    References
    ----------
    .. [1] L. W. Zhong and J. T. Kwok, "Accurate probability calibration for multiple classifiers",
       International Joint Conference on Artificial Intelligence, 1939-1945, 2013.

    Examples
    --------
    >>> from caltree import RegularizedIsotonicScaling
    >>> first, second = [0.1, 0.4, 0.5, 0.7, 0.9], [0.2, 0.3, 0.6, 0.9, 0.8]
    >>> scores = [[1 - a, a, 1 - b, b] for a, b in zip(first, second)]
    >>> smooth = RegularizedIsotonicScaling().fit(None, [0, 1, 0, 1, 1], scores=scores)
    >>> smooth.predict_proba(None, scores=scores)[:, 1].round(2)
    array([0.33, 0.56, 0.56, 0.78, 0.78])
    """

    def __init__(
        self,
        *,
        l2_regularization: float = 1.0,
        score_type: ScoreTypeOption = "auto",
        pos_label: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(score_type=score_type, pos_label=pos_label, verbose=verbose)
        self.l2_regularization = l2_regularization

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_penalty(self.l2_regularization)

    def _fit(self, rows: TrainingRows) -> dict[str, Any]:
        votes = rows.kind.one_score_a_class(rows.scores)
        scores = rows.kind.one_score_a_classifier(rows.scores)
        classes = [1] if votes.shape[1] == 1 else range(votes.shape[1])
        corners = [
            fit_regularized_isotonic(
                votes[:, column],
                scores[:, :, column],
                rows.labels == label,
                rows.weights,
                float(self.l2_regularization),
            )
            for column, label in enumerate(classes)
        ]
        return {
            "thresholds_": [thresholds for thresholds, _ in corners],
            "values_": [values for _, values in corners],
        }
