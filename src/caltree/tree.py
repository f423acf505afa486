"""`CalibrationTree`: one tree of logistic models, chosen by cross-validation."""

from __future__ import annotations

from typing import Any, Literal

from ._base import FittedRows, take_fingerprint
from ._fitted.selection import SCORINGS
from ._inputs.folds import make_folds
from ._inputs.parameters import (
    check_bins,
    check_choice,
    check_count,
    check_cv,
    check_depth,
    check_flag,
    check_jobs,
    check_monotone,
    check_penalty,
    check_share,
    check_verbose,
)
from ._inputs.scores import SCORE_TYPES, ScoreKind, resolve_monotone
from ._inputs.training_rows import TrainingRows
from ._model_base import TreeCalibrator
from ._running import progress
from ._training.engine import Engine
from ._training.exact import ExactEngine
from ._training.fit_tree import fit_tree
from ._training.settings import READING, Growth, Settings

TREE_METHODS = ("auto", "exact", "hist")
# With more rows, tree_method="auto" grows on histograms.
_MOST_EXACT_ROWS = 200_000


class CalibrationTree(TreeCalibrator):
    """A small tree of logistic models that turns a classifier's scores into probabilities.

    The tree splits on the attributes `X`. Every node has a small logistic model of the scores,
    which starts from its parent's model. An error of the classifier in one region is corrected in
    that region only. If regions do not help, only the model of the root is left: one curve for all
    rows.

    Parameters
    ----------
    l2_regularization : float, default=0.05
        How strongly node models are held near their parent's: half of this times the squared
        distance from the parent's model (with scores scaled to standard deviation 1) is added to
        the deviance. The penalty is 40 times as large for the slopes of other classes' scores, and
        for the bend of a model of two classes. The root is held near the best temperature; there
        the penalty is multiplied by 8 times the number of classes.
    scoring : {"rmse", "log_loss"}, default="rmse"
        The loss that decides all choices.
    path_averaging : bool, default=True
        Average over all nodes on the path from the root to a leaf. The tree is used at several
        sizes, cut back to 1, 2, 4, 8, ... leaves, and their probabilities are averaged with the
        weights that have the lowest cross-validated loss. With False, only the leaf counts.
    monotone : bool or "auto", default="auto"
        True makes sure that in every region a higher score never gives a lower probability, also
        after averaging. "auto" is True for one score of two classes, the only case in which this is
        defined. With False, a region may reverse the order of the scores.
    do_no_harm : bool, default=True
        Leave the scores uncalibrated unless cross-validation shows that calibration helps: by the
        squared error, and by two standard errors of the log loss, or by three if the classifier
        makes fewer than 30 mistakes. Calibrate them globally, by the root's model, unless the tree
        is better by one standard error. Give uncalibrated probabilities the largest weight that
        costs no more than half a standard error. Margins, which are not probabilities, are always
        calibrated.
    max_leaf_nodes : int or None, default=64
        The maximum number of leaves. None sets no limit.
    kept_gain : float or None, default=0.95
        Take the smallest tree that keeps this share of what the best one gains over the root in
        cross-validated loss, where trees are averaged with all of their smaller sizes. None takes
        all leaves that are allowed.
        ``max_leaf_nodes=None, kept_gain=1.0`` gives a large tree that is a little more accurate and
        not meant to be read.
    min_samples_split : int, default=8
        A node with fewer rows is not split.
    min_samples_leaf : int, default=5
        The minimum number of rows in a branch.
    max_depth : int, optional
        The maximum number of splits on a path from the root to a leaf; no limit by default.
    max_bins : int, default=255
        The maximum number of bins. Numeric attributes with more distinct values are cut between
        quantiles.
    tree_method : {"auto", "exact", "hist"}, default="auto"
        "exact" looks at every row in every node. "hist" puts the attributes into bins once, with
        one or two bytes for each value, and grows the tree level by level on sums over bins. A node
        with fewer than one in 1024 rows (16 times `max_leaf_nodes`; without a limit of leaves, one
        in 4096) is then not split, and the folds of `cv` depend only on the numbers of the rows.
        The result is a little coarser, and takes a fraction of the time and memory. With a few
        thousand rows and as many attributes, however, "hist" is slower. "auto" is "hist" beyond
        200,000 rows.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of every cross-validation. A number makes stratified folds, without shuffling
        unless `random_state` is given. If `fit` gets groups, they stay together.
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
        Shuffles the rows before they are divided into folds. None does not shuffle.
    n_jobs : int, optional
        Threads to use for the folds, or for chunks of rows with "hist"; the result does not
        depend on it.
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
        The candidates that probabilities are averaged over ("uncalibrated", "global", "2 regions",
        "4 regions", ...), the cross-validated loss and the weight of each, and what was chosen.
        None if there was nothing to choose from.
    feature_importances_ : ndarray
        The share of each attribute in the gain of all splits, measured in the chosen loss on
        held-out rows. It shows which attributes explain the miscalibration. All 0 if nothing is
        split; measured in training deviance if there were no folds.
    model_ : FittedModel
        The fitted tree as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, with which a report recognizes them.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.
    spread_ : Spread or None
        How wide intervals are; None before `fit_intervals`.

    See Also
    --------
    PublishedCalibrationTree : The method of the paper.
    CalibrationForest : Many trees, averaged: better with few rows, but not readable.

    Notes
    -----
    A category that was not seen in training goes where the most frequent one goes. A missing
    value goes the way that was best for the missing values in training; where a node had none, it
    goes with most of its rows. Categories are put into two groups: by the correction that each of
    them needs or, if there are many, in their order (alphabetical, for strings). The more there
    are, the more a split on them must gain. A split that would change probabilities by less than
    0.002 is not made.

    With two classes, node models are those of beta calibration: a slope for ln s and another for
    ln(1 - s) of the score s, held close to each other. With more classes, the log-odds of each
    class use the logarithms of the scores of all classes, up to 30.

    A row of weight 2 counts as two rows and a row of weight 0 is ignored, in splits, node models,
    errors and pruning.

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
        l2_regularization: float = 0.05,
        scoring: Literal["rmse", "log_loss"] = "rmse",
        path_averaging: bool = True,
        monotone: bool | Literal["auto"] = "auto",
        do_no_harm: bool = True,
        max_leaf_nodes: int | None = 64,
        kept_gain: float | None = 0.95,
        min_samples_split: int = 8,
        min_samples_leaf: int = 5,
        max_depth: int | None = None,
        max_bins: int = 255,
        tree_method: Literal["auto", "exact", "hist"] = "auto",
        cv: Any = 5,
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        pos_label: Any = None,
        categorical_features: Any = None,
        drop_identifiers: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.l2_regularization = l2_regularization
        self.scoring = scoring
        self.path_averaging = path_averaging
        self.monotone = monotone
        self.do_no_harm = do_no_harm
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.kept_gain = kept_gain
        self.max_bins = max_bins
        self.tree_method = tree_method
        self.cv = cv
        self.score_type = score_type
        self.pos_label = pos_label
        self.categorical_features = categorical_features
        self.drop_identifiers = drop_identifiers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, rows: TrainingRows) -> None:
        engine, fitted_rows = self._make_engine(X, rows)
        self._set_fitted(*fit_tree(engine, self._settings()), fitted_rows)

    def _make_engine(self, X: Any, rows: TrainingRows) -> tuple[Engine, FittedRows]:
        """Return the engine for so many rows, and what is to be remembered of them."""
        settings = self._settings()
        growth = self._growth(rows.kind, rows.scores.shape[1])
        if self._uses_histograms(len(rows.labels)):
            # Imported here: importing caltree shall not take its time.
            from ._histogram.in_process import make_histogram_engine

            with progress.stage(READING) as reading:
                engine, fingerprint = make_histogram_engine(
                    X,
                    rows,
                    growth,
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
        exact = ExactEngine(dataset, folds, growth, settings.scoring, self.n_jobs)
        return exact, FittedRows.of(rows, take_fingerprint(rows, dataset.matrix))

    def _uses_histograms(self, n_rows: int) -> bool:
        return self.tree_method == "hist" or (
            self.tree_method == "auto" and n_rows > _MOST_EXACT_ROWS
        )

    def _check_parameters(self) -> None:
        check_penalty(self.l2_regularization)
        check_choice("scoring", self.scoring, SCORINGS)
        check_flag("path_averaging", self.path_averaging)
        check_monotone(self.monotone)
        check_flag("do_no_harm", self.do_no_harm)
        check_count("min_samples_split", self.min_samples_split, 2)
        check_count("min_samples_leaf", self.min_samples_leaf, 1)
        check_depth(self.max_depth)
        if self.max_leaf_nodes is not None:
            check_count("max_leaf_nodes", self.max_leaf_nodes, 2, "None or ")
        check_share("kept_gain", self.kept_gain)
        check_bins(self.max_bins)
        check_choice("tree_method", self.tree_method, TREE_METHODS)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_flag("drop_identifiers", self.drop_identifiers)
        check_jobs(self.n_jobs)
        check_verbose(self.verbose)
        if self._settings().needs_folds:
            check_cv(self.cv)

    def _settings(self) -> Settings:
        return Settings(
            scoring=self.scoring,
            max_leaf_nodes=self._most_leaves(),
            kept_gain=None if self.kept_gain is None else float(self.kept_gain),
            path_averaging=bool(self.path_averaging),
            do_no_harm=bool(self.do_no_harm),
        )

    def _most_leaves(self) -> int | None:
        return None if self.max_leaf_nodes is None else int(self.max_leaf_nodes)

    def _growth(self, kind: ScoreKind, n_columns: int) -> Growth:
        return Growth(
            l2_regularization=float(self.l2_regularization),
            min_samples_split=float(self.min_samples_split),
            min_samples_leaf=float(self.min_samples_leaf),
            max_depth=self.max_depth,
            max_bins=int(self.max_bins),
            monotone=resolve_monotone(self.monotone, kind, n_columns),
            max_leaf_nodes=self._most_leaves(),
        )
