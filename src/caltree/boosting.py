"""`CalibrationBoosting`: a curve for all rows, and boosted trees that correct it."""

from __future__ import annotations

from typing import Any, Literal

from ._base import FittedRows, take_fingerprint
from ._fitted.boosted import BoostedModel
from ._fitted.selection import SCORINGS
from ._inputs.folds import random_generator
from ._inputs.groups import refuse_one_group
from ._inputs.parameters import (
    check_choice,
    check_flag,
    check_jobs,
    check_monotone,
    check_verbose,
)
from ._inputs.scores import SCORE_TYPES, ScoreKind, resolve_monotone
from ._inputs.training_rows import TrainingRows
from ._model_base import AttributeCalibrator
from ._training.boosting import BoostingSettings, fit_boosting, import_lightgbm
from ._training.thresholds import round_thresholds


class CalibrationBoosting(AttributeCalibrator):
    """A curve for all rows, and boosted trees that correct it.

    The curve is the model of a `CalibrationTree`'s root. LightGBM adds boosted trees, which split
    on attributes and scores, and stops at the lowest loss on held-out rows. These rows also decide
    the weights of the boosted trees, of the curve alone, and of the uncalibrated probabilities.
    Fitting needs LightGBM: ``pip install "caltree[boosting]"``. Prediction does not.

    Parameters
    ----------
    scoring : {"rmse", "log_loss"}, default="rmse"
        The loss that decides all choices.
    monotone : bool or "auto", default="auto"
        True makes sure that, for rows with the same attributes, a higher score never gives a lower
        probability. "auto" is True for one score of two classes, the only case in which this is
        defined.
    do_no_harm : bool, default=True
        Leave the scores uncalibrated unless held-out rows show that calibration helps: by the
        squared error, and by two standard errors of the log loss, or by three if the classifier
        makes fewer than 30 mistakes. If it helps, give the uncalibrated probabilities the largest
        weight that costs no more than half a standard error. Margins, which are not probabilities,
        are always calibrated.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds; logits and margins are used unchanged. "auto" treats
        scores as probabilities if all of them lie in [0, 1] and those of a row sum to 1, and as
        margins if many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as categorical. Columns of strings, booleans and categories always are.
    drop_identifiers : bool, default=True
        Leave out, with a warning, attributes that look like identifiers: strings or categories, if
        nine in ten rows have a value of their own; whole numbers that are all different and close
        together, like row numbers; and whole numbers that are nearly all different, in a column
        whose name contains id or key. Columns of `categorical_features` are kept.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows before they are divided into folds, and is LightGBM's seed. None does not
        shuffle. The same number gives the same trees.
    n_jobs : int, optional
        Threads to use; the result does not depend on it.
    verbose : int, default=0
        1 prints one line for each stage of `fit`, with its time. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.
    score_type_ : str
        The type of the scores, as it was used.
    score_limits_ : ScoreLimits
        The limits that probabilities are clipped to where logarithms are taken.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class of a single column of scores; None with several columns.
    selection_ : Selection
        The candidates that probabilities are averaged over ("uncalibrated", "global" for the curve
        and "boosted"), the held-out loss and the weight of each, and what was chosen.
    feature_importances_ : ndarray
        The share of each attribute in the gain of splits on attributes, on the training rows. All 0
        if no boosted trees are used.
    model_ : BoostedModel
        The curve and the trees as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    See Also
    --------
    CalibrationForest : Many trees of logistic models, averaged: without LightGBM.
    CalibrationTree : One tree, which can be read.

    Notes
    -----
    With fewer than 50,000 rows, each of five folds is held out in turn, and the trees of all five
    are averaged. With more, one fifth is held out, and the trees are grown once more on all rows.

    A category that was not seen in training goes where the most frequent one goes. A missing
    value of a number goes the way that was best for the missing values in training; where a split
    had none, it goes with most rows. A missing category goes with those that a split does not
    single out.

    With more than 30 classes, the trees of a class are grown only on the rows where that class has
    its highest scores: 40 times as many rows as the class has. They split on attributes and on the
    scores of the class, and change nothing for other rows. A fold has at most 300 rounds and 30,000
    trees, which take larger steps. So the time grows more slowly than the number of classes.

    Weights count in the curve, in the gains and values of the trees and in all losses. They do not
    count in LightGBM's minimum number of rows in a leaf, or in its bins. So a row of weight 2 is
    nearly, but not exactly, the same as two rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import CalibrationBoosting
    >>> from caltree.metrics import rmse
    >>> X, y = make_classification(4000, n_informative=5, n_clusters_per_class=4, random_state=0)
    >>> scores = cross_val_predict(GaussianNB(), X, y, method="predict_proba")
    >>> boosting = CalibrationBoosting().fit(X[:2000], y[:2000], scores=scores[:2000])
    >>> calibrated = boosting.predict_proba(X[2000:], scores=scores[2000:])
    >>> rmse(y[2000:], scores[2000:]) > 1.1 * rmse(y[2000:], calibrated)
    True
    """

    title = "Calibration boosting"
    model_: BoostedModel
    _model_type = BoostedModel

    def __init__(
        self,
        *,
        scoring: Literal["rmse", "log_loss"] = "rmse",
        monotone: bool | Literal["auto"] = "auto",
        do_no_harm: bool = True,
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        pos_label: Any = None,
        categorical_features: Any = None,
        drop_identifiers: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.scoring = scoring
        self.monotone = monotone
        self.do_no_harm = do_no_harm
        self.score_type = score_type
        self.pos_label = pos_label
        self.categorical_features = categorical_features
        self.drop_identifiers = drop_identifiers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, rows: TrainingRows) -> None:
        import_lightgbm()
        settings = boosting_settings(self, rows.kind, rows.scores.shape[1])
        dataset = self._make_dataset(X, rows, self.categorical_features)
        refuse_one_group(dataset.groups, "boosting")
        fitted, selection = fit_boosting(dataset, settings, self.n_jobs)
        model = round_thresholds(fitted, dataset.matrix, dataset.scores, rows.kind)
        fitted_rows = FittedRows.of(rows, take_fingerprint(rows, dataset.matrix))
        self._set_fitted(model, selection, fitted_rows)

    def _check_parameters(self) -> None:
        check_choice("scoring", self.scoring, SCORINGS)
        check_monotone(self.monotone)
        check_flag("do_no_harm", self.do_no_harm)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_flag("drop_identifiers", self.drop_identifiers)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        random_generator(self.random_state)


def boosting_settings(
    boosting: CalibrationBoosting, kind: ScoreKind, n_scores: int
) -> BoostingSettings:
    """Return how trees are boosted by such parameters, of so many scores as they are given."""
    return BoostingSettings(
        scoring=boosting.scoring,
        do_no_harm=bool(boosting.do_no_harm),
        monotone=resolve_monotone(boosting.monotone, kind, n_scores),
        random_state=boosting.random_state,
    )
