"""`CalibrationTree`: parameters, validation, orchestration."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any, Literal, Self, TypeGuard

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from . import _core, attributes, storage
from .calibrator import Calibrator
from .model import TreeModel
from .scores import (
    EXTREMES,
    SCORE_TYPES,
    ScoreType,
    as_score_matrix,
    check_probabilities,
    log_odds,
)
from .selection import Recipe, make_folds, make_tree
from .tables import read_table
from .text import tree_text
from .validation import check_choice, check_count, check_jobs, check_size

Floats = npt.NDArray[np.float64]


class CalibrationTree(Calibrator):
    """A tree of logistic models that turns a classifier's scores into probabilities.

    The tree splits on the attributes `X`; every leaf has a node model, a small logistic model
    over the scores, which starts from its parent's. What the classifier gets wrong in one region
    is put right there, and only there.

    Parameters
    ----------
    min_samples_split : int or float, default=16
        A node with fewer rows is not split.
    min_samples_leaf : int or float, default=2
        The fewest rows of a branch. A numeric split demands more of larger nodes: a tenth of the
        node's rows divided by the number of classes, up to 25.
    max_depth : int, optional
        The most splits on a way from the root to a leaf; no limit by default.
    boosting_iterations : "cv" or int, default="cv"
        LogitBoost iterations of a node model, beyond its parent's. "cv" chooses the number that
        has the lowest cross-validated RMSE at the root; if that is none, every node chooses.
    max_boosting_iterations : int, default=200
        The most iterations that "cv" tries.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of every cross-validation. A number deals the rows out by class, without
        shuffling unless `random_state` is given.
    pruning : "cv", float or None, default="cv"
        Cost-complexity pruning: strength chosen by cross-validated RMSE, a fixed strength (what a
        leaf must gain in mean squared error to be kept), or the tree as it was grown.
    constant_scores : {"frequencies", "ignore"}, default="frequencies"
        Where no score varies within a node, answer the node's class frequencies (with Laplace's
        correction), or leave the parent's model as it is.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds, logits and margins enter as they are. "auto" takes
        scores for probabilities if they all lie in [0, 1] and those of a row sum to 1.
    extremes : {"clip", "published"}, default="clip"
        The log-odds of very small and large probabilities. "clip" cuts them off at about -36.7 and
        36.7, and needs one column for the probabilities of two classes. "published" takes both
        columns and gives only 0 and 1 finite log-odds, those of 0.00001 and 0.99999; a smaller
        probability than 0.00001 then counts for less than 0.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as nominal whatever their type. Columns of strings, booleans and
        categories always are.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows before they are dealt into folds. None does not shuffle.
    n_jobs : int, optional
        Threads to use for the folds; the result does not depend on it.

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
    boosting_iterations_ : int
        The number of iterations used; 0 if every node chose for itself.
    boosting_rmse_ : ndarray or None
        Cross-validated RMSE after 0, 1, 2, ... iterations at the root, if that was chosen.
    pruning_alpha_ : float or None
        The pruning strength used.
    pruning_path_ : tuple of ndarray or None
        The pruning strengths tried and the cross-validated RMSE of each.
    tree_ : TreeModel
        The fitted tree as plain arrays.

    See Also
    --------
    CalibrationTree.published : The method of the paper, to the digit.

    Notes
    -----
    A missing value counts as the attribute's mean or most frequent category in the training
    rows. A category that was not seen in training goes where the most frequent one goes.

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
        min_samples_split: float = 16,
        min_samples_leaf: float = 2,
        max_depth: int | None = None,
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
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
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
        CalibrationTree(constant_scores='ignore', extremes='published', n_jobs=2)
        """
        return cls(
            **{
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
        self.check_parameters()
        recipe = self._recipe()
        rows = self._check_training(X, y, scores, sample_weight, self.score_type)
        odds = _log_odds(rows.scores, len(rows.classes), rows.score_type, self.extremes)
        folds = []
        if recipe.needs_folds:
            folds = make_folds(self.cv, rows.labels, rows.keep, self.random_state)
        known, matrix = attributes.learn(
            X,
            categorical_features=self.categorical_features,
            keep=rows.keep,
            sample_weight=rows.weights,
        )
        n_classes = len(rows.classes)
        training = _core.Training(
            matrix,
            known.n_categories,
            known.fills,
            rows.labels,
            n_classes,
            odds,
            rows.weights,
        )
        made = make_tree(training, len(rows.labels), n_classes, folds, recipe, self.n_jobs)

        self.tree_ = TreeModel(known, **made.arrays)
        self.classes_ = rows.classes
        self.score_type_ = rows.score_type
        self.n_scores_ = rows.scores.shape[1]
        self.extremes_: str = self.extremes
        self.boosting_iterations_ = made.boosting_iterations
        self.boosting_rmse_ = made.iteration_rmse
        self.pruning_alpha_ = made.alpha
        self.pruning_path_ = made.pruning_path
        self._set_features()
        return self

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
        odds = _log_odds(score_matrix, len(self.classes_), self.score_type_, self.extremes_)
        return self.tree_.probabilities(matrix, odds)

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

        ``F[a] = 0.28 - 0.61 S[a]`` says that the log-odds score of class a enters with the slope
        -0.61; the probabilities are the softmax of the F.

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
        |--- x0 <= 0  (n=30)
        |   F[0] =  0.32
        |   F[1] = -0.32
        |--- x0 > 0  (n=30)
        |   F[0] = -1.72
        |   F[1] =  1.72
        """
        check_is_fitted(self)
        if max_depth is not None:
            check_count("max_depth", max_depth, 0, "None or ")
        check_count("decimals", decimals, 0)
        return tree_text(self.tree_, self.classes_.tolist(), max_depth, decimals)

    def check_parameters(self) -> None:
        """Refuse parameters that `fit` would refuse, before there are any data."""
        recipe = self._recipe()
        check_jobs(self.n_jobs)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        check_choice("extremes", self.extremes, EXTREMES)
        if _is_number(self.cv) and recipe.needs_folds:
            check_count("cv", self.cv, 2)

    def check_table(self, X: Any) -> None:
        """Refuse what is no table of attributes."""
        read_table(X, "X")

    def _state(self) -> dict[str, Any]:
        return {
            "score_type": self.score_type_,
            "n_scores": self.n_scores_,
            "extremes": self.extremes_,
            "chosen": {
                "boosting_iterations": self.boosting_iterations_,
                "pruning_alpha": self.pruning_alpha_,
            },
            "tree": self.tree_.to_dict(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        keys = {"score_type", "n_scores", "extremes", "chosen", "tree"}
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
        odds = _log_odds(given, tree.n_classes, self.score_type_, self.extremes_)
        if odds.shape[1] != tree.n_scores:
            raise ValueError(
                f"a stored calibrator takes {self.n_scores_} scores, "
                f"but has node models of {tree.n_scores}"
            )
        self.boosting_iterations_, self.pruning_alpha_ = _checked_chosen(state["chosen"])
        self.boosting_rmse_ = None
        self.pruning_path_ = None
        self._set_features()

    def _recipe(self) -> Recipe:
        iterations, pruning, depth = self.boosting_iterations, self.pruning, self.max_depth
        constant = check_choice("constant_scores", self.constant_scores, ("frequencies", "ignore"))
        most = check_count("max_boosting_iterations", self.max_boosting_iterations, 1)
        return Recipe(
            min_samples_split=check_size("min_samples_split", self.min_samples_split, 2),
            min_samples_leaf=check_size("min_samples_leaf", self.min_samples_leaf, 1),
            max_depth=None if depth is None else check_count("max_depth", depth, 0, "None or "),
            boosting_iterations=None
            if _is_cv(iterations)
            else check_count("boosting_iterations", iterations, 1, "'cv' or "),
            max_boosting_iterations=most,
            pruning=pruning
            if pruning is None or _is_cv(pruning)
            else check_size("pruning", pruning, 0, "'cv', None or "),
            constant_scores_give_frequencies=constant == "frequencies",
        )

    def _set_features(self) -> None:
        known = self.tree_.attributes
        self.n_features_in_ = len(known.columns)
        if known.names is not None:
            self.feature_names_in_ = np.array(known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _log_odds(matrix: Floats, n_classes: int, score_type: ScoreType, extremes: str) -> Floats:
    """The scores of the node models: one column will do for the probabilities of two classes."""
    two = score_type == "probability" and matrix.shape[1] == n_classes == 2
    if two and extremes == "clip":
        check_probabilities(matrix)
        matrix = matrix[:, 1:]
    return log_odds(matrix, score_type, extremes)


def _is_number(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_cv(value: Any) -> TypeGuard[Literal["cv"]]:
    return isinstance(value, str) and value == "cv"


def _checked_chosen(stored: Any) -> tuple[int, float | None]:
    if not isinstance(stored, dict) or set(stored) != {"boosting_iterations", "pruning_alpha"}:
        raise ValueError("a stored calibration tree must say what was chosen")
    iterations, alpha = stored["boosting_iterations"], stored["pruning_alpha"]
    finite = type(alpha) in (int, float) and math.isfinite(alpha)
    if type(iterations) is not int or not (alpha is None or finite):
        raise ValueError("what a stored calibration tree says was chosen must be numbers")
    return iterations, alpha
