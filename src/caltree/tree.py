"""`CalibrationTree`: one tree of logistic models, chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Literal

from ._base import FittedRows, take_fingerprint
from ._fitted.json_values import is_number
from ._fitted.selection import SCORINGS
from ._inputs.folds import make_folds
from ._inputs.parameters import (
    check_alpha,
    check_bins,
    check_choice,
    check_count,
    check_cv,
    check_depth,
    check_flag,
    check_jobs,
    check_penalty,
    check_verbose,
)
from ._inputs.scores import SCORE_TYPES
from ._inputs.training_rows import TrainingRows
from ._model_base import TreeCalibrator
from ._running import progress
from ._training.engine import Engine
from ._training.exact import ExactEngine
from ._training.fit_tree import FittedTree, fit_tree
from ._training.settings import READING, Growth, Settings

CRITERIA = ("residual", "gain_ratio")
TREE_METHODS = ("auto", "exact", "hist")
# With more rows, tree_method="auto" grows on histograms.
_MOST_EXACT_ROWS = 200_000


class CalibrationTree(TreeCalibrator):
    """A tree of logistic models that turns a classifier's scores into probabilities.

    The tree splits on the attributes `X`; every leaf has a node model, a small logistic model
    over the scores, which starts from its parent's. What the classifier gets wrong in one region
    is put right there, and only there.

    Parameters
    ----------
    criterion : {"cv", "residual", "gain_ratio"}, default="cv"
        The quality of a split: the gain in deviance over the node's own model ("residual"), or
        C4.5's gain ratio, as published. "residual" divides a node in two, with categories grouped
        and missing values sent where they fit best; "gain_ratio" gives every category a branch
        and takes a missing value for the mean or the most frequent category. "cv" takes the tree
        of the lower cross-validated loss.
    l2_regularization : float, default=0.05
        How strongly node models are held at their parent's, and the root's at the uncalibrated
        probabilities, in units of a row's variance: the squared distance (scores scaled to
        deviation 1) times half of this is added to the deviance.
    scoring : {"rmse", "log_loss"}, default="rmse"
        The loss by which everything is chosen.
    path_averaging : bool, default=True
        Average over all nodes on the way from the root to a leaf, the larger and safer ones and
        the smaller and more special ones: the tree is read with nodes of fewer than 15, 60, 240,
        ... rows left whole, and pruned, and the probabilities are averaged with the weights that
        have the lowest cross-validated loss. Otherwise the leaf alone decides.
    do_no_harm : bool, default=True
        Leave the scores uncalibrated if cross-validation does not show that calibration helps: by
        two standard errors of the squared error and three of the log loss. Calibrate them
        globally, by the root's model, if it does not show by one standard error that the tree
        helps more. Of averages that differ by less than a half, take the one with the larger
        regions and the larger weight of uncalibrated probabilities. Margins, which are no
        probabilities, are always calibrated.
    min_samples_split : int, default=8
        A node with fewer rows is not split.
    min_samples_leaf : int, default=2
        The fewest rows of a branch. "gain_ratio" demands more of larger nodes: a tenth of the
        node's rows divided by the number of classes, up to 25.
    max_depth : int, optional
        The most splits on a way from the root to a leaf; no limit by default.
    max_bins : int, default=255
        "residual" cuts numeric attributes of more distinct values between this many quantiles.
    tree_method : {"auto", "exact", "hist"}, default="auto"
        "exact" looks at every row in every node. "hist" puts the attributes into their bins once,
        one or two bytes each, and grows the tree level by level on sums over bins. No node of
        fewer than one in 4096 rows is split then, and `cv` deals rows out by their numbers alone.
        The result is a little coarser and takes a fraction of the time and memory; of a few
        thousand rows and as many attributes, though, bins take longer than the rows in them.
        "auto" is "hist" beyond 200,000 rows.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of every cross-validation. A number deals the rows out by class, without
        shuffling unless `random_state` is given, and whole groups if `fit` is given groups.
    ccp_alpha : "cv", float or None, default="cv"
        Cost-complexity pruning: strength chosen by cross-validated loss, a fixed strength (the
        gain in mean deviance by which a leaf is kept), or None for the tree as it was grown.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds, logits and margins enter as they are. "auto" takes
        scores for probabilities if they all lie in [0, 1] and those of a row sum to 1, for margins
        if many do not, and refuses what could be either.
    pos_label : label, optional
        The class that a single column of scores is the score of. By default it is the class that
        the column is named after, such as ``p_yes``, or else ``classes_[1]``.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as nominal whatever their type. Columns of strings, booleans and
        categories always are.
    drop_identifiers : bool, default=True
        Leave out, with a warning, attributes that look like identifiers: strings or categories of
        which nine in ten rows have one of their own, whole numbers that are all different though
        they lie close together, as row numbers do, and nearly all different ones of a column
        called an id. Those of `categorical_features` are kept.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows before they are dealt into folds. None does not shuffle.
    n_jobs : int, optional
        Threads to use for the folds, or for chunks of rows with "hist"; the result does not
        depend on it.
    verbose : int, default=0
        1 prints one line a stage of `fit`, with the time it took; the result does not depend on
        it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.
    score_type_ : str
        The kind that the scores were taken for.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class that a single column of scores was taken for; None of several columns.
    selection_ : Selection or None
        The candidates that probabilities are averaged over ("uncalibrated", "global", regions of
        falling size, the pruned tree), the cross-validated loss and the weight of each, and what
        was chosen. None if there was nothing to choose from.
    criterion_ : str
        The criterion of the splits.
    ccp_alpha_ : float or None
        The pruning strength used.
    ccp_path_ : tuple of ndarray or None
        The pruning strengths tried and the cross-validated loss of each.
    feature_importances_ : ndarray
        The share of every attribute in the deviance that the splits gained: which of them carry
        the miscalibration. All 0 if nothing is split, and NaN (not measured) if it is by gain
        ratio.
    model_ : FittedModel
        The fitted tree as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, by which a report knows them again.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.

    See Also
    --------
    PublishedCalibrationTree : The method of the paper, to the digit.
    CalibrationForest : Many trees, averaged: better with few rows, but not to be read.

    Notes
    -----
    A category that was not seen in training goes where the most frequent one goes. A missing
    value goes the way that was best for the missing values in training; where a node had none, it
    goes with most of its rows.

    With weights, a row of weight 2 counts as two rows and one of weight 0 as none, in splits,
    node models, errors and pruning alike.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import CalibrationTree
    >>> X, y = make_classification(2000, random_state=0)
    >>> scores = cross_val_predict(GaussianNB(), X, y, method="predict_proba")
    >>> tree = CalibrationTree().fit(X, y, scores=scores)
    >>> probabilities = tree.predict_proba(X, scores=scores)
    >>> probabilities.shape
    (2000, 2)
    """

    title = "Calibration tree"

    def __init__(
        self,
        *,
        criterion: Literal["cv", "residual", "gain_ratio"] = "cv",
        l2_regularization: float = 0.05,
        scoring: Literal["rmse", "log_loss"] = "rmse",
        path_averaging: bool = True,
        do_no_harm: bool = True,
        min_samples_split: int = 8,
        min_samples_leaf: int = 2,
        max_depth: int | None = None,
        max_bins: int = 255,
        tree_method: Literal["auto", "exact", "hist"] = "auto",
        cv: Any = 5,
        ccp_alpha: float | Literal["cv"] | None = "cv",
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        pos_label: Any = None,
        categorical_features: Any = None,
        drop_identifiers: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.criterion = criterion
        self.l2_regularization = l2_regularization
        self.scoring = scoring
        self.path_averaging = path_averaging
        self.do_no_harm = do_no_harm
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.tree_method = tree_method
        self.cv = cv
        self.ccp_alpha = ccp_alpha
        self.score_type = score_type
        self.pos_label = pos_label
        self.categorical_features = categorical_features
        self.drop_identifiers = drop_identifiers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, rows: TrainingRows) -> None:
        engine, fitted_rows = self._make_engine(X, rows)
        self._set_fitted_tree(fit_tree(engine, self._settings()), fitted_rows)

    def _make_engine(self, X: Any, rows: TrainingRows) -> tuple[Engine, FittedRows]:
        """Return the engine for so many rows, and what is to be remembered of them."""
        settings = self._settings()
        if self._uses_histograms(len(rows.labels)):
            # Imported here: importing caltree shall not take its time.
            from ._histogram.in_process import make_histogram_engine

            with progress.stage(READING) as reading:
                engine, fingerprint = make_histogram_engine(
                    X,
                    rows,
                    self._growth(),
                    settings,
                    cv=self.cv,
                    random_state=self.random_state,
                    categorical_features=self.categorical_features,
                    identifiers=self._identifiers(),
                    n_jobs=self.n_jobs,
                )
                reading.say(f"put {len(rows.labels):,} rows into bins")
            return engine, FittedRows.of(rows, fingerprint)
        dataset = self._make_dataset(X, rows, self.categorical_features)
        folds = []
        if settings.needs_folds:
            folds = make_folds(self.cv, rows.labels, rows.keep, self.random_state, rows.groups)
        exact = ExactEngine(dataset, folds, self._growth(), settings.scoring, self.n_jobs)
        return exact, FittedRows.of(rows, take_fingerprint(rows, dataset.matrix))

    def _uses_histograms(self, n_rows: int) -> bool:
        return self.tree_method == "hist" or (
            self.tree_method == "auto" and n_rows > _MOST_EXACT_ROWS
        )

    def _set_fitted_tree(self, fitted: FittedTree, rows: FittedRows) -> None:
        self.criterion_ = fitted.criterion
        self.ccp_alpha_ = fitted.ccp_alpha
        self.ccp_path_ = fitted.ccp_path
        self._set_fitted(fitted.model, fitted.selection, rows)

    def _check_parameters(self) -> None:
        check_choice("criterion", self.criterion, ("cv", *CRITERIA))
        check_penalty(self.l2_regularization)
        check_choice("scoring", self.scoring, SCORINGS)
        check_flag("path_averaging", self.path_averaging)
        check_flag("do_no_harm", self.do_no_harm)
        check_count("min_samples_split", self.min_samples_split, 2)
        check_count("min_samples_leaf", self.min_samples_leaf, 1)
        check_depth(self.max_depth)
        check_bins(self.max_bins)
        check_choice("tree_method", self.tree_method, TREE_METHODS)
        check_alpha(self.ccp_alpha)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_flag("drop_identifiers", self.drop_identifiers)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        if self._settings().needs_folds:
            check_cv(self.cv)

    def _settings(self) -> Settings:
        return Settings(
            criteria=CRITERIA if self.criterion == "cv" else (self.criterion,),
            scoring=self.scoring,
            ccp_alpha=self.ccp_alpha,
            path_averaging=bool(self.path_averaging),
            do_no_harm=bool(self.do_no_harm),
        )

    def _growth(self) -> Growth:
        return Growth(
            l2_regularization=float(self.l2_regularization),
            min_samples_split=float(self.min_samples_split),
            min_samples_leaf=float(self.min_samples_leaf),
            max_depth=self.max_depth,
            max_bins=int(self.max_bins),
        )

    def _chosen_parameters(self) -> dict[str, Any]:
        return {"criterion": self.criterion_, "ccp_alpha": self.ccp_alpha_}

    def _restore_chosen(self, chosen: dict[str, Any]) -> None:
        if set(chosen) != {"criterion", "ccp_alpha"}:
            raise ValueError("chosen of a stored tree must have the keys criterion and ccp_alpha")
        alpha = chosen["ccp_alpha"]
        if alpha is not None and not is_number(alpha):
            raise ValueError("ccp_alpha of a stored tree must be a number or null")
        self.criterion_ = check_choice("criterion", chosen["criterion"], CRITERIA)
        self.ccp_alpha_ = alpha
        self.ccp_path_ = None
