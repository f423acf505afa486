"""`CalibrationEnsemble`: a forest and boosted trees, averaged."""

from __future__ import annotations

from typing import Any, Literal

from ._base import FittedRows, take_fingerprint
from ._fitted.blended import BlendedModel
from ._fitted.selection import SCORINGS
from ._inputs.folds import random_generator
from ._inputs.groups import refuse_one_group
from ._inputs.parameters import (
    check_choice,
    check_count,
    check_flag,
    check_jobs,
    check_verbose,
)
from ._inputs.scores import SCORE_TYPES
from ._inputs.training_rows import TrainingRows
from ._model_base import AttributeCalibrator
from ._training.blending import fit_ensemble
from ._training.boosting import import_lightgbm
from ._training.thresholds import round_score_thresholds, round_thresholds
from .boosting import CalibrationBoosting, boosting_settings
from .forest import CalibrationForest, forest_settings


class CalibrationEnsemble(AttributeCalibrator):
    """A calibration forest and boosted trees whose probabilities are averaged.

    A `CalibrationForest` and a `CalibrationBoosting` are grown on the same rows. Rows that neither
    has seen decide the weights of the forest's sizes, of the boosted trees, of the curve from which
    these start, and of the uncalibrated probabilities. Both make different errors, so together they
    are usually better than either. Fitting needs LightGBM: ``pip install "caltree[boosting]"``.
    Prediction does not.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees of the forest.
    scoring : {"rmse", "log_loss"}, default="rmse"
        The loss that decides all choices.
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
        Draws the samples of the forest, shuffles the rows before they are divided into the folds of
        boosting, and is LightGBM's seed. The same number gives the same ensemble.
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
        The candidates that probabilities are averaged over ("uncalibrated", "global" for the curve,
        "boosted", and the forest's trees read at each size), the held-out loss and the weight of
        each, and what was chosen.
    feature_importances_ : ndarray
        The share of each attribute in the gain of splits on attributes, in the forest and in the
        boosted trees, averaged by the weights of both. All 0 if no trees are used.
    model_ : BlendedModel
        The forest, the curve and the boosted trees as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    See Also
    --------
    CalibrationForest : The forest alone: without LightGBM.
    CalibrationBoosting : The boosted trees alone: for many rows, and monotone.
    CalibrationTree : One tree, which can be read.

    Notes
    -----
    An ensemble takes the time and the memory of both. All other parameters of the two have their
    defaults.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import CalibrationEnsemble
    >>> from caltree.metrics import rmse
    >>> X, y = make_classification(2000, n_informative=5, n_clusters_per_class=4, random_state=0)
    >>> scores = cross_val_predict(GaussianNB(), X, y, method="predict_proba")
    >>> ensemble = CalibrationEnsemble(random_state=0).fit(X[:1000], y[:1000], scores[:1000])
    >>> calibrated = ensemble.predict_proba(X[1000:], scores=scores[1000:])
    >>> rmse(y[1000:], scores[1000:]) > 1.1 * rmse(y[1000:], calibrated)
    True
    """

    title = "Calibration ensemble"
    model_: BlendedModel
    _model_type = BlendedModel

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        scoring: Literal["rmse", "log_loss"] = "rmse",
        do_no_harm: bool = True,
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        pos_label: Any = None,
        categorical_features: Any = None,
        drop_identifiers: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.scoring = scoring
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
        dataset = self._make_dataset(X, rows, self.categorical_features)
        refuse_one_group(dataset.groups, "an ensemble")
        shared: dict[str, Any] = {
            name: getattr(self, name) for name in ("scoring", "do_no_harm", "random_state")
        }
        forest = CalibrationForest(self.n_estimators, **shared)
        boosting = CalibrationBoosting(**shared)
        fitted, selection = fit_ensemble(
            dataset,
            forest_settings(forest, dataset),
            boosting_settings(boosting, rows.kind, rows.scores.shape[1]),
            self.n_jobs,
        )
        model = BlendedModel(
            round_score_thresholds(fitted.forest, dataset.scores, rows.kind),
            round_thresholds(fitted.boosted, dataset.matrix, dataset.scores, rows.kind),
        )
        fitted_rows = FittedRows.of(rows, take_fingerprint(rows, dataset.matrix))
        self._set_fitted(model, selection, fitted_rows)

    def _check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators, 2)
        check_choice("scoring", self.scoring, SCORINGS)
        check_flag("do_no_harm", self.do_no_harm)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_flag("drop_identifiers", self.drop_identifiers)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        random_generator(self.random_state)
