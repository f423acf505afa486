"""`PublishedCalibrationTree`: the method of the paper, to the digit."""

from __future__ import annotations

from typing import Any, Literal

from ._base import FittedRows, take_fingerprint
from ._inputs.attributes import Identifiers
from ._inputs.parameters import check_choice
from ._inputs.scores import SCORE_TYPES
from ._inputs.training_rows import TrainingRows
from ._model_base import TreeCalibrator
from ._published_base import PublishedMethod


class PublishedCalibrationTree(PublishedMethod, TreeCalibrator):
    """The calibration tree as its authors published it, to the digit.

    It is a C4.5 tree over the attributes. Each node has a logistic model over the scores, which
    LogitBoost continues from the model of its parent. The number of iterations and the pruning
    strength are chosen by cross-validated RMSE.

    Parameters
    ----------
    boosting_iterations : "cv" or int, default="cv"
        LogitBoost iterations of a node model, beyond its parent's. "cv" chooses the number that
        has the lowest cross-validated RMSE at the root; if that is 0, every node chooses its own.
    max_boosting_iterations : int, default=200
        The maximum number of iterations that "cv" tries.
    constant_scores : {"ignore", "frequencies"}, default="ignore"
        Where no score varies within a node, keep the parent's model, as published, or predict the
        node's class frequencies (with Laplace's correction).
    min_samples_split : int, default=16
        A node with fewer rows is not split.
    min_samples_leaf : int, default=2
        The minimum number of rows in a branch. It is higher in larger nodes: a tenth of the node's
        rows divided by the number of classes, up to 25.
    max_depth : int, optional
        The maximum number of splits on a path from the root to a leaf; no limit by default.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of every cross-validation. A number makes stratified folds, without shuffling
        unless `random_state` is given. If `fit` gets groups, they stay together.
    ccp_alpha : "cv", float or None, default="cv"
        Cost-complexity pruning: strength chosen by cross-validated RMSE, a fixed strength (the
        gain in mean squared error by which a leaf is kept), or None for no pruning.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds; logits and margins are used unchanged. "auto" treats
        scores as probabilities if all of them lie in [0, 1] and those of a row sum to 1, and as
        margins if many do not. Unclear cases are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else ``classes_[1]``.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as categorical. Columns of strings, booleans and categories always are.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows before they are divided into folds. None does not shuffle.
    n_jobs : int, optional
        Threads to use for the folds; the result does not depend on it.
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
        Limits as for other calibrators. This method has its own; see the notes.
    n_scores_ : int
        The number of columns of the scores.
    pos_label_ : label or None
        The class of a single column of scores; None with several columns.
    boosting_iterations_ : int
        The number of iterations used; 0 if every node chose for itself.
    boosting_rmse_ : ndarray or None
        Cross-validated RMSE after 0, 1, 2, ... iterations at the root, if that was chosen.
    ccp_alpha_ : float or None
        The pruning strength used.
    ccp_path_ : tuple of ndarray or None
        The pruning strengths tried and the cross-validated RMSE of each.
    selection_ : None
        The method always calibrates, so nothing is selected.
    feature_importances_ : ndarray
        The share of each attribute in the gain of all splits on held-out rows. All 0 if nothing is
        split. NaN (not measured) if the tree is not pruned by cross-validation, because no rows are
        held out then.
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
    CalibrationTree : The same idea, more accurate; it leaves good scores uncalibrated.

    Notes
    -----
    A probability of exactly 0 or 1 counts as 0.00001 or 0.99999. Other probabilities are not
    changed, even if they are closer to 0 or 1. With two classes, node models use both columns of
    scores. Missing values count as the mean or the most frequent category of the training rows.
    Where every node chooses its own number of iterations, it does so on folds of its rows, without
    regard to groups.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import cross_val_predict
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import PublishedCalibrationTree
    >>> X, y = make_classification(1000, random_state=0)
    >>> scores = cross_val_predict(GaussianNB(), X, y, method="predict_proba")
    >>> tree = PublishedCalibrationTree().fit(X, y, scores=scores)
    >>> tree.predict_proba(X, scores=scores).shape
    (1000, 2)
    """

    title = "Published calibration tree"
    scores_are_published = True

    def __init__(
        self,
        *,
        boosting_iterations: int | Literal["cv"] = "cv",
        max_boosting_iterations: int = 200,
        constant_scores: Literal["ignore", "frequencies"] = "ignore",
        min_samples_split: int = 16,
        min_samples_leaf: int = 2,
        max_depth: int | None = None,
        cv: Any = 5,
        ccp_alpha: float | Literal["cv"] | None = "cv",
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        pos_label: Any = None,
        categorical_features: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.boosting_iterations = boosting_iterations
        self.max_boosting_iterations = max_boosting_iterations
        self.constant_scores = constant_scores
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.cv = cv
        self.ccp_alpha = ccp_alpha
        self.score_type = score_type
        self.pos_label = pos_label
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, X: Any, rows: TrainingRows) -> None:
        dataset = self._make_dataset(X, rows, self.categorical_features)
        frequencies = self.constant_scores == "frequencies"
        model, self.boosting_rmse_ = self._fit_tree(
            dataset, rows.keep, rows.groups, frequencies=frequencies
        )
        fitted_rows = FittedRows.of(rows, take_fingerprint(rows, dataset.matrix))
        self._set_fitted(model, None, fitted_rows)

    def _check_parameters(self) -> None:
        self._check_growth()
        check_choice("constant_scores", self.constant_scores, ("ignore", "frequencies"))
        check_choice("score_type", self.score_type, SCORE_TYPES)

    def _identifiers(self) -> Identifiers:
        return "warn"  # the published method uses every attribute

    def _restore_chosen(self, chosen: dict[str, Any]) -> None:
        super()._restore_chosen(chosen)
        self.boosting_rmse_ = None
