"""`CalibrationTree`: parameters, validation, orchestration."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self, TypeGuard

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._attribute_base import AttributeCalibrator
from ._fitted import storage
from ._fitted.fingerprint import Fingerprint
from ._fitted.model import TreeModel
from ._fitted.text import levels_text, selection_text, tree_text
from ._histogram.local import make_tree_here
from ._inputs.attributes import Attributes
from ._inputs.folds import make_folds
from ._inputs.parameters import (
    check_bins,
    check_choice,
    check_count,
    check_flag,
    check_histograms,
    check_jobs,
    check_penalty,
    check_size,
)
from ._inputs.scores import EXTREMES, SCORE_TYPES, ScoreKind, ScoreType, as_score_matrix
from ._training.averaging import checked_levels
from ._training.do_no_harm import OBJECTIVES, Selection, checked_selection, is_number
from ._training.fit_tree import Made, make_tree
from ._training.settings import Recipe

Floats = npt.NDArray[np.float64]


class CalibrationTree(AttributeCalibrator):
    """A tree of logistic models that turns a classifier's scores into probabilities.

    The tree splits on the attributes `X`; every leaf has a node model, a small logistic model
    over the scores, which starts from its parent's. What the classifier gets wrong in one region
    is put right there, and only there.

    Parameters
    ----------
    splits : {"cv", "residual", "gain_ratio"}, default="cv"
        What a split looks for: where the node's own model is wrong (the gain in deviance over
        it), or classes (C4.5's gain ratio, as published). "residual" divides a node in two, with
        categories grouped and missing values sent where they fit best; "gain_ratio" gives every
        category a branch and takes a missing value for the mean or the most frequent category.
        "cv" takes the tree of the lower cross-validated loss.
    node_models : {"shrunken", "logitboost"}, default="shrunken"
        Logistic models that are penalised for leaving their parent's, the root's for leaving the
        scores as they are; or those of LogitBoost, as published, which only "gain_ratio" can use.
    penalty : float, default=0.05
        How strongly shrunken node models are held, in units of a row's variance: the squared
        distance (scores scaled to deviation 1) times half of this is added to the deviance.
    objective : {"rmse", "log_loss"}, default="rmse"
        The loss by which everything is chosen.
    path_averaging : bool, default=True
        Let all nodes on the way from the root to a leaf have a say, the larger and safer ones and
        the smaller and more special ones: the tree is read with nodes of fewer than 15, 60, 240,
        ... rows left whole, and pruned, and the probabilities are averaged, by the shares that
        have the lowest cross-validated loss. Otherwise the leaf alone decides.
    do_no_harm : bool, default=True
        Leave the scores alone if cross-validation does not show that calibrating them helps: by
        two standard errors of the squared error and three of the log loss. Calibrate them
        globally, by the root's model, if it does not show by one standard error that the tree
        helps more. Of averages that differ by less than a half, take the one with the larger
        regions and the larger share of raw scores. Margins, which are no probabilities, cannot
        be left alone.
    min_samples_split : int or float, default=8
        A node with fewer rows is not split.
    min_samples_leaf : int or float, default=2
        The fewest rows of a branch. "gain_ratio" demands more of larger nodes: a tenth of the
        node's rows divided by the number of classes, up to 25.
    max_depth : int, optional
        The most splits on a way from the root to a leaf; no limit by default.
    max_bins : int, default=255
        "residual" cuts numeric attributes of more distinct values between this many quantiles.
    histograms : bool or "auto", default="auto"
        Grow on histograms: the attributes are put into their bins once, one or two bytes each,
        and the tree grows level by level on sums over bins. No node of fewer than one in 4096
        rows is split, and `cv` deals rows out by their numbers alone. The result is a little
        coarser and takes a fraction of the time and memory. "auto" does so beyond 200,000 rows;
        "logitboost" never does.
    boosting_iterations : "cv" or int, default="cv"
        LogitBoost iterations of a node model, beyond its parent's. "cv" chooses the number that
        has the lowest cross-validated RMSE at the root; if that is none, every node chooses.
    max_boosting_iterations : int, default=200
        The most iterations that "cv" tries.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of every cross-validation. A number deals the rows out by class, without
        shuffling unless `random_state` is given.
    pruning : "cv", float or None, default="cv"
        Cost-complexity pruning: strength chosen by cross-validated loss, a fixed strength (what a
        leaf must gain in mean deviance, or with "logitboost" in mean squared error, to be kept),
        or the tree as it was grown.
    constant_scores : {"frequencies", "ignore"}, default="frequencies"
        Where no score varies within a node of "logitboost", answer the node's class frequencies
        (with Laplace's correction), or leave the parent's model as it is.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds, logits and margins enter as they are. "auto" takes
        scores for probabilities if they all lie in [0, 1] and those of a row sum to 1.
    extremes : {"clip", "published"}, default="clip"
        The log-odds of very small and large probabilities. "clip" cuts them off at about -36.7 and
        36.7, needs one column for the probabilities of two classes, and takes the logarithms of
        those of more. "published" takes both
        columns and gives only 0 and 1 finite log-odds, those of 0.00001 and 0.99999; a smaller
        probability than 0.00001 then counts for less than 0.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as nominal whatever their type. Columns of strings, booleans and
        categories always are.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows before they are dealt into folds. None does not shuffle.
    n_jobs : int, optional
        Threads to use for the folds, or for chunks of rows with `histograms`; the result does not
        depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.
    score_type_ : str
        What the scores were taken for.
    n_scores_ : int
        The number of columns of the scores.
    extremes_ : str
        How log-odds were taken of them.
    selection_ : list of dict
        The candidates ("leave alone", "global", "local"), the cross-validated loss of each, and
        which was chosen; empty with ``do_no_harm=False``.
    levels_ : list of dict
        What the probabilities are averaged over (the scores as they are, "global", regions of
        falling size, the pruned tree), the cross-validated loss and the share of each; empty if
        there was nothing to choose from.
    splits_ : str
        What the splits look for.
    objective_ : str
        The loss by which everything was chosen.
    feature_importances_ : ndarray
        The share of every attribute in the deviance that the splits gained: which of them carry
        the miscalibration. All 0 if nothing is split, or by gain ratio.
    boosting_iterations_ : int or None
        The number of iterations used; 0 if every node chose for itself, None without boosting.
    boosting_rmse_ : ndarray or None
        Cross-validated RMSE after 0, 1, 2, ... iterations at the root, if that was chosen.
    pruning_alpha_ : float or None
        The pruning strength used.
    pruning_path_ : tuple of ndarray or None
        The pruning strengths tried and the cross-validated loss of each.
    tree_ : TreeModel
        The fitted tree as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, by which a report knows them again.

    See Also
    --------
    CalibrationTree.published : The method of the paper, to the digit.

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

    def __init__(
        self,
        *,
        splits: Literal["cv", "residual", "gain_ratio"] = "cv",
        node_models: Literal["shrunken", "logitboost"] = "shrunken",
        penalty: float = 0.05,
        objective: Literal["rmse", "log_loss"] = "rmse",
        path_averaging: bool = True,
        do_no_harm: bool = True,
        min_samples_split: float = 8,
        min_samples_leaf: float = 2,
        max_depth: int | None = None,
        max_bins: int = 255,
        histograms: bool | Literal["auto"] = "auto",
        boosting_iterations: int | Literal["cv"] = "cv",
        max_boosting_iterations: int = 200,
        cv: Any = 5,
        pruning: float | Literal["cv"] | None = "cv",
        constant_scores: Literal["frequencies", "ignore"] = "frequencies",
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        extremes: Literal["clip", "published"] = "clip",
        categorical_features: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.splits = splits
        self.node_models = node_models
        self.penalty = penalty
        self.objective = objective
        self.path_averaging = path_averaging
        self.do_no_harm = do_no_harm
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.histograms = histograms
        self.boosting_iterations = boosting_iterations
        self.max_boosting_iterations = max_boosting_iterations
        self.cv = cv
        self.pruning = pruning
        self.constant_scores = constant_scores
        self.score_type = score_type
        self.extremes = extremes
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    @classmethod
    def published(cls, **params: Any) -> Self:
        """The method as its authors published it, to the digit.

        Parameters
        ----------
        **params
            Anything to change, e.g. ``boosting_iterations=3`` or ``n_jobs=2``.

        Returns
        -------
        CalibrationTree
            An unfitted tree.

        Examples
        --------
        >>> from caltree import CalibrationTree
        >>> CalibrationTree.published(n_jobs=2)
        CalibrationTree(constant_scores='ignore', do_no_harm=False, extremes='published',
                        min_samples_split=16, n_jobs=2, node_models='logitboost',
                        path_averaging=False, splits='gain_ratio')
        """
        return cls(
            **{
                "splits": "gain_ratio",
                "node_models": "logitboost",
                "objective": "rmse",
                "path_averaging": False,
                "do_no_harm": False,
                "min_samples_split": 16,
                "min_samples_leaf": 2,
                "max_depth": None,
                "boosting_iterations": "cv",
                "max_boosting_iterations": 200,
                "cv": 5,
                "pruning": "cv",
                "constant_scores": "ignore",
                "extremes": "published",
                **params,
            }
        )

    def fit(self, X: Any, y: Any, scores: Any, sample_weight: Any = None) -> Self:
        """Fit the tree to attributes, labels and the scores of a classifier.

        The scores must come from a classifier that was not trained on these rows, for instance
        out-of-fold predictions; otherwise they look better than they are.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes: a numpy array, a pandas, polars or pyarrow table, or a scipy sparse
            matrix.
        y : array-like of shape (n,)
            The labels.
        scores : array-like of shape (n,), (n, 1), (n, m) or (n, k * m)
            One column for each of the m classes, in sorted order, of each of k classifiers; with
            two classes one column, that of ``classes_[1]``, will do.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.

        Returns
        -------
        CalibrationTree
            The tree itself.
        """
        self._check_parameters()
        recipe = self._recipe()
        rows = self._check_training(X, y, scores, sample_weight, self.score_type)
        if recipe.uses_histograms(len(rows.labels)):
            made, fingerprint = make_tree_here(
                X,
                rows,
                recipe,
                cv=self.cv,
                random_state=self.random_state,
                extremes=self.extremes,
                categorical_features=self.categorical_features,
                n_jobs=self.n_jobs,
            )
        else:
            problem = self._problem(X, rows, self.extremes, self.categorical_features)
            folds = []
            if recipe.needs_folds:
                folds = make_folds(self.cv, rows.labels, rows.keep, self.random_state)
            made = make_tree(problem, folds, recipe, self.n_jobs)
            fingerprint = Fingerprint.of(rows.hashes(problem.matrix))
        self._take(made, rows.classes, rows.score_type, rows.scores.shape[1], fingerprint)
        return self

    def _take(
        self,
        made: Made,
        classes: npt.NDArray[Any],
        score_type: ScoreType,
        n_scores: int,
        fingerprint: Fingerprint,
    ) -> None:
        self.tree_ = made.tree
        self.classes_ = classes
        self.score_type_ = score_type
        self.n_scores_ = n_scores
        self.extremes_: str = self.extremes
        self.selection_: Selection = made.selection
        self.levels_ = made.levels
        self.splits_ = made.splits
        self.objective_: str = self.objective
        self.boosting_iterations_ = made.boosting_iterations
        self.boosting_rmse_ = made.iteration_rmse
        self.pruning_alpha_ = made.alpha
        self.pruning_path_ = made.pruning_path
        self.fingerprint_ = fingerprint
        self._set_features(self.tree_.attributes)

    def predict_proba(self, X: Any, scores: Any) -> Floats:
        """Calibrated probabilities.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.
        scores : array-like
            The scores of the classifier for these rows, as for `fit`.

        Returns
        -------
        ndarray of shape (n, m)
            One column a class, in the order of `classes_`.
        """
        check_is_fitted(self)
        matrix = self.tree_.attributes.encode(X)
        score_matrix = as_score_matrix(scores, len(matrix), len(self.classes_))
        self._check_width(score_matrix, one_column_will_do=self.extremes_ == "clip")
        kind = ScoreKind(len(self.classes_), self.score_type_, self.extremes_ == "published")

        def of_nodes() -> Floats:
            odds = kind.regressors(score_matrix)
            raw = kind.offset(score_matrix, odds) if self.tree_.offset else None
            return self.tree_.probabilities(matrix, odds, raw)

        return self._together(score_matrix, self.tree_.share_of_scores, of_nodes)

    def apply(self, X: Any) -> npt.NDArray[np.int32]:
        """The leaf that each row falls into.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.

        Returns
        -------
        ndarray of shape (n,)
            The number of the leaf, an index into the arrays of `tree_`.
        """
        check_is_fitted(self)
        return self.tree_.apply(self.tree_.attributes.encode(X))

    @property
    def feature_importances_(self) -> Floats:
        """The share of every attribute in the deviance that the splits gained."""
        check_is_fitted(self)
        return self.tree_.importances

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def get_depth(self) -> int:
        """The number of splits on the longest way from the root to a leaf."""
        check_is_fitted(self)
        return self.tree_.depth

    def to_text(self, *, max_depth: int | None = None, decimals: int = 2) -> str:
        """The tree in words, with the formulas of the node models in the leaves.

        ``F[a] = 0.28 - 0.61 S[a]`` says that the score of class a enters with the slope -0.61; the
        probabilities are the softmax of the F. The one score of two classes is its log-odds, and
        slopes of -0.5 and 0.5 without intercepts leave it as it is. With more classes a score is
        the logarithm of the probability (with "logitboost" and ``extremes="published"`` its
        log-odds), and a slope of 1 on a class's own leaves it; what several classifiers say
        together is ``log p[a]``, and the rest corrects it. A node with a share has that say in
        the average over the way from the root to a leaf. What could have been done, and what each
        would have cost, comes first.

        Parameters
        ----------
        max_depth : int, optional
            Show this many levels of splits.
        decimals : int, default=2
            Decimals of the coefficients.

        Returns
        -------
        str
            One line a condition.

        Examples
        --------
        >>> from caltree import CalibrationTree
        >>> X = [[0], [0], [0], [1], [1], [1]] * 10
        >>> y = [0, 1, 0, 1, 1, 1] * 10
        >>> tree = CalibrationTree().fit(X, y, scores=[0.5] * 60)
        >>> print(tree.to_text())
        Cross-validated RMSE:
            leave alone  0.5000
            global       0.4714
            local        0.3365  (chosen)
        |--- x0 <= 0.5  (n=30)
        |   F[0] =  0.34 - 0.50 S[1]
        |   F[1] = -0.34 + 0.50 S[1]
        |--- x0 > 0.5  (n=30)
        |   F[0] = -1.62 - 0.50 S[1]
        |   F[1] =  1.62 + 0.50 S[1]
        """
        check_is_fitted(self)
        if max_depth is not None:
            check_count("max_depth", max_depth, 0, "None or ")
        check_count("decimals", decimals, 0)
        lines = selection_text(self.selection_, self.objective_) + levels_text(self.levels_)
        lines.append(tree_text(self.tree_, self.classes_.tolist(), max_depth, decimals))
        return "\n".join(lines)

    def _check_parameters(self) -> None:
        """Refuse parameters that `fit` would refuse, before there are any data."""
        recipe = self._recipe()
        check_jobs(self.n_jobs)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_choice("extremes", self.extremes, EXTREMES)
        if _is_number(self.cv) and recipe.needs_folds:
            check_count("cv", self.cv, 2)

    def _attributes(self) -> Attributes:
        return self.tree_.attributes

    def _state(self) -> dict[str, Any]:
        return {
            "score_type": self.score_type_,
            "n_scores": self.n_scores_,
            "extremes": self.extremes_,
            "chosen": {
                "splits": self.splits_,
                "objective": self.objective_,
                "boosting_iterations": self.boosting_iterations_,
                "pruning_alpha": self.pruning_alpha_,
            },
            "selection": self.selection_,
            "levels": self.levels_,
            "tree": self.tree_.to_dict(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        keys = {"score_type", "n_scores", "extremes", "chosen", "selection", "levels", "tree"}
        storage.check_state(state, keys)
        tree = TreeModel.from_dict(state["tree"])
        if tree.n_classes != len(self.classes_):
            raise ValueError(
                f"a stored calibrator has {len(self.classes_)} classes, "
                f"but node models of {tree.n_classes}"
            )
        storage.check_width(state["n_scores"], tree.n_classes)
        self.tree_, self.n_scores_ = tree, state["n_scores"]
        self.score_type_ = storage.checked_score_type(state)
        self.extremes_ = check_choice("extremes", state["extremes"], EXTREMES)
        given = np.zeros((1, self.n_scores_))
        kind = ScoreKind(tree.n_classes, self.score_type_, self.extremes_ == "published")
        odds = kind.regressors(given)
        if odds.shape[1] != tree.n_scores:
            raise ValueError(
                f"a stored calibrator takes {self.n_scores_} scores, "
                f"but has node models of {tree.n_scores}"
            )
        self.selection_ = checked_selection(state["selection"])
        self.levels_ = checked_levels(state["levels"])
        if self.score_type_ == "margin" and (tree.offset or tree.share_of_scores > 0.0):
            raise ValueError("margins of a stored calibrator cannot be left alone")
        was_chosen = _checked_chosen(state["chosen"])
        self.splits_, self.objective_ = was_chosen["splits"], was_chosen["objective"]
        self.boosting_iterations_ = was_chosen["boosting_iterations"]
        self.pruning_alpha_ = was_chosen["pruning_alpha"]
        self.boosting_rmse_ = None
        self.pruning_path_ = None
        self._set_features(self.tree_.attributes)

    def _recipe(self) -> Recipe:
        iterations, pruning, depth = self.boosting_iterations, self.pruning, self.max_depth
        constant = check_choice("constant_scores", self.constant_scores, ("frequencies", "ignore"))
        most = check_count("max_boosting_iterations", self.max_boosting_iterations, 1)
        splits = check_choice("splits", self.splits, ("cv", "residual", "gain_ratio"))
        node_models = check_choice("node_models", self.node_models, ("shrunken", "logitboost"))
        objective = check_choice("objective", self.objective, OBJECTIVES)
        if node_models == "logitboost":
            _check_published(splits, objective)
        return Recipe(
            splits=splits,
            node_models=node_models,
            min_samples_split=check_size("min_samples_split", self.min_samples_split, 2),
            min_samples_leaf=check_size("min_samples_leaf", self.min_samples_leaf, 1),
            max_depth=None if depth is None else check_count("max_depth", depth, 0, "None or "),
            penalty=check_penalty(self.penalty),
            max_bins=check_bins(self.max_bins),
            histograms=check_histograms(self.histograms, node_models),
            boosting_iterations=None
            if _is_cv(iterations)
            else check_count("boosting_iterations", iterations, 1, "'cv' or "),
            max_boosting_iterations=most,
            pruning=pruning
            if pruning is None or _is_cv(pruning)
            else check_size("pruning", pruning, 0, "'cv', None or "),
            constant_scores_give_frequencies=constant == "frequencies",
            objective=objective,
            do_no_harm=check_flag("do_no_harm", self.do_no_harm),
            path_averaging=check_flag("path_averaging", self.path_averaging),
        )


def _check_published(splits: str, objective: str) -> None:
    """Refuse what the node models of LogitBoost cannot do."""
    for name, value, needed in (
        ("splits", splits, "gain_ratio"),
        ("objective", objective, "rmse"),
    ):
        if value != needed:
            raise ValueError(
                f"node_models='logitboost' needs {name}={needed!r}, got {value!r}; use "
                "node_models='shrunken' or CalibrationTree.published()"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_cv(value: Any) -> TypeGuard[Literal["cv"]]:
    return isinstance(value, str) and value == "cv"


def _checked_chosen(stored: Any) -> dict[str, Any]:
    keys = {"splits", "objective", "boosting_iterations", "pruning_alpha"}
    if not isinstance(stored, dict) or set(stored) != keys:
        raise ValueError("a stored calibration tree must say what was chosen")
    iterations, alpha = stored["boosting_iterations"], stored["pruning_alpha"]
    known = alpha is None or is_number(alpha)
    if type(iterations) not in (int, type(None)) or not known:
        raise ValueError("what a stored calibration tree says was chosen must be numbers")
    check_choice("splits", stored["splits"], ("residual", "gain_ratio"))
    check_choice("objective", stored["objective"], OBJECTIVES)
    return stored
