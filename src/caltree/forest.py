"""`CalibrationForest`: bagged calibration trees."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from ._base import FittedRows, take_fingerprint
from ._fitted.selection import SCORINGS
from ._inputs.folds import random_generator
from ._inputs.groups import refuse_one_group
from ._inputs.parameters import (
    check_bins,
    check_choice,
    check_count,
    check_depth,
    check_flag,
    check_jobs,
    check_penalty,
    check_verbose,
)
from ._inputs.scores import SCORE_TYPES
from ._inputs.training_rows import TrainingRows
from ._model_base import AttributeCalibrator
from ._training.bagging import ForestSettings, fit_forest
from ._training.dataset import Dataset
from ._training.thresholds import round_score_thresholds


class CalibrationForest(AttributeCalibrator):
    """Bagged calibration trees whose probabilities are averaged.

    Every tree is grown on a bootstrap sample of the rows (or of whole groups, if `fit` gets
    groups). Every second tree may also split on the scores. Each tree is used at several sizes of
    regions, from the root alone down to a few rows. The rows that a tree has not seen decide the
    weight of each size, and of the uncalibrated probabilities. A size with a small weight is used
    in few of the trees, and numbers are rounded to the digits that matter.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    max_features : float or int, default=1.0
        How many attributes a split may choose from: a fraction of them, or a number.
    l2_regularization : float, default=0.05
        How strongly node models are held near their parent's; see `CalibrationTree`.
    scoring : {"rmse", "log_loss"}, default="rmse"
        The loss that decides all choices.
    do_no_harm : bool, default=True
        Leave the scores uncalibrated unless out-of-bag rows show that the forest is better, by two
        standard errors of the squared error and three of the log loss. If it is better, give the
        uncalibrated probabilities the largest weight that costs nothing. Margins, which are not
        probabilities, are always calibrated.
    min_samples_leaf : int, default=2
        The minimum number of rows in a branch.
    max_depth : int, optional
        The maximum number of splits on a path from the root to a leaf; no limit by default.
    max_bins : int, default=255
        The maximum number of bins. Numeric attributes with more distinct values are cut between
        quantiles.
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
        Draws the samples. The same number gives exactly the same forest.
    n_jobs : int, optional
        Threads to use for the trees; the result does not depend on it.
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
    selection_ : Selection or None
        The candidates that probabilities are averaged over ("uncalibrated", and the trees read at
        each size, with and without splits on scores), the out-of-bag loss and the weight of each,
        and what was chosen. None if no row was out of bag.
    feature_importances_ : ndarray
        The share of each attribute in the gain of splits on attributes, in squared error and on the
        rows that a tree had not seen. It shows which attributes explain the miscalibration. All 0
        if the scores are left uncalibrated.
    model_ : FittedModel
        The fitted trees as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    See Also
    --------
    CalibrationTree : One tree, which can be read.

    Notes
    -----
    Time grows with the number of trees, attributes and classes, and with n log n of the rows.
    Memory grows with the number of nodes, which is in proportion to trees and rows. It is far
    smaller if small regions have little weight: then, with many rows, only the first 20 trees are
    grown down to a few rows. A node with fewer rows than an eighth of the number of classes is not
    split. With more than 30 scores, each tree looks at ten of them, drawn at random.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import CalibrationForest
    >>> from caltree.metrics import rmse
    >>> X, y = make_classification(2000, n_informative=5, n_clusters_per_class=4, random_state=0)
    >>> scores = cross_val_predict(GaussianNB(), X, y, method="predict_proba")
    >>> forest = CalibrationForest(random_state=0).fit(X[:1000], y[:1000], scores=scores[:1000])
    >>> calibrated = forest.predict_proba(X[1000:], scores=scores[1000:])
    >>> rmse(y[1000:], scores[1000:]) > 1.1 * rmse(y[1000:], calibrated)
    True
    """

    title = "Calibration forest"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: float = 1.0,
        l2_regularization: float = 0.05,
        scoring: Literal["rmse", "log_loss"] = "rmse",
        do_no_harm: bool = True,
        min_samples_leaf: int = 2,
        max_depth: int | None = None,
        max_bins: int = 255,
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        pos_label: Any = None,
        categorical_features: Any = None,
        drop_identifiers: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.l2_regularization = l2_regularization
        self.scoring = scoring
        self.do_no_harm = do_no_harm
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.score_type = score_type
        self.pos_label = pos_label
        self.categorical_features = categorical_features
        self.drop_identifiers = drop_identifiers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, rows: TrainingRows) -> None:
        dataset = self._make_dataset(X, rows, self.categorical_features)
        refuse_one_group(dataset.groups, "a forest")
        fitted = fit_forest(dataset, forest_settings(self, dataset), self.n_jobs)
        model = round_score_thresholds(fitted.model, dataset.scores, rows.kind)
        fitted_rows = FittedRows.of(rows, take_fingerprint(rows, dataset.matrix))
        self._set_fitted(model, fitted.selection, fitted_rows)

    def _check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators, 2)
        check_penalty(self.l2_regularization)
        check_count("min_samples_leaf", self.min_samples_leaf, 1)
        check_depth(self.max_depth)
        check_bins(self.max_bins)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        check_choice("scoring", self.scoring, SCORINGS)
        check_flag("do_no_harm", self.do_no_harm)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_flag("drop_identifiers", self.drop_identifiers)
        _check_max_features(self.max_features)
        random_generator(self.random_state)


def forest_settings(forest: CalibrationForest, dataset: Dataset) -> ForestSettings:
    """Return how a forest of such parameters is grown on some rows."""
    n_attributes, n_scores = dataset.matrix.shape[1], dataset.n_split_scores
    halves = random_generator(forest.random_state).randint(0, 2**31, (forest.n_estimators, 2))
    high, low = halves.astype(np.int64).T
    return ForestSettings(
        seeds=high << 31 | low,
        max_features=(
            count_columns(forest.max_features, n_attributes),
            count_columns(forest.max_features, n_attributes + n_scores),
        ),
        l2_regularization=float(forest.l2_regularization),
        min_samples_leaf=float(forest.min_samples_leaf),
        max_depth=forest.max_depth,
        max_bins=int(forest.max_bins),
        scoring=forest.scoring,
        do_no_harm=bool(forest.do_no_harm),
    )


def count_columns(max_features: float, n_columns: int) -> int:
    """Return how many of some columns a split may choose from."""
    if isinstance(max_features, Integral):
        return min(int(max_features), n_columns)
    return max(1, math.ceil(float(max_features) * n_columns))


def _check_max_features(value: Any) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    most = math.inf if isinstance(value, Integral) else 1
    if not is_number or not (0 < value <= most):
        raise ValueError(
            "max_features must be a share above 0 and up to 1.0, or a whole number of attributes, "
            f"got {value!r}"
        )
