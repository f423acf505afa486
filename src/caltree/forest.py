"""`CalibrationForest`: bagged calibration trees."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from . import _core
from ._attribute_base import AttributeCalibrator
from ._fitted import storage
from ._fitted.fingerprint import Fingerprint
from ._fitted.forest_model import ForestModel
from ._inputs.attributes import Attributes
from ._inputs.folds import random_generator
from ._inputs.parameters import (
    check_bins,
    check_choice,
    check_count,
    check_jobs,
    check_penalty,
    check_size,
)
from ._inputs.scores import SCORE_TYPES, ScoreKind, as_score_matrix
from ._training.bagging import SIZES, Blend, Blender
from ._training.do_no_harm import LEAVE_ALONE, OBJECTIVES, Selection, checked_selection
from ._training.settings import Problem

Floats: TypeAlias = npt.NDArray[np.float64]

_ROWS_A_JOB = 20_000
_ROUNDING = 1e-9


class CalibrationForest(AttributeCalibrator):
    """Bagged calibration trees, their probabilities blended.

    Every tree is grown on a bootstrap sample; every other tree may split on the scores, too. How
    small the regions should be is not asked: each tree is read at several sizes, from the root
    alone down to a few rows, and the rows it did not see say how much each size counts for. So do
    the scores as they are, which keep the largest share that costs nothing; and unless the forest
    is better than these without much doubt, by two standard errors of the squared error and three
    of the log loss, they are left alone.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    max_features : float or int, default=1.0
        How many attributes a split may choose from: a share of them, or a number.
    penalty : float, default=0.05
        How strongly node models are held at their parent's; see `CalibrationTree`.
    objective : {"rmse", "log_loss"}, default="rmse"
        The loss by which the sizes are weighed and the scores left alone or not.
    min_samples_leaf : int or float, default=2
        The fewest rows of a branch.
    max_depth : int, optional
        The most splits on a way from the root to a leaf; no limit by default.
    max_bins : int, default=255
        Numeric attributes of more distinct values are cut between this many quantiles.
    score_type : {"auto", "probability", "logit", "margin"}, default="auto"
        Probabilities are turned into log-odds, logits and margins enter as they are. "auto" takes
        scores for probabilities if they all lie in [0, 1] and those of a row sum to 1.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as nominal whatever their type. Columns of strings, booleans and
        categories always are.
    random_state : int, RandomState instance or None, default=None
        Draws the samples. The same number gives the same forest, bit for bit.
    n_jobs : int, optional
        Threads to use for the trees; the result does not depend on it.

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
    selection_ : list of dict
        The candidates: leaving the scores alone, and the trees read at each size, with and without
        splits on scores; the out-of-bag loss of each, its share in the probabilities, and whether
        it has any.
    feature_importances_ : ndarray
        The share of every attribute in what splits on attributes gained, in squared error and on
        the rows that a tree had not seen: which of them carry the miscalibration. All 0 if the
        scores are left alone.
    forest_ : ForestModel
        The fitted trees as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows, by which a report knows them again.

    See Also
    --------
    CalibrationTree : One tree, which can be read.

    Notes
    -----
    Time grows with the number of trees, attributes, classes and n log n of the rows; memory with
    the number of nodes, which is in proportion to trees and rows, and smaller if the blend needs
    no small regions.

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

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_features: float = 1.0,
        penalty: float = 0.05,
        objective: Literal["rmse", "log_loss"] = "rmse",
        min_samples_leaf: float = 2,
        max_depth: int | None = None,
        max_bins: int = 255,
        score_type: Literal["auto", "probability", "logit", "margin"] = "auto",
        categorical_features: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.penalty = penalty
        self.objective = objective
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.score_type = score_type
        self.categorical_features = categorical_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, scores: Any, sample_weight: Any = None) -> Self:
        """Fit the forest to attributes, labels and the scores of a classifier.

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
            How many rows each row counts for, once it is drawn.

        Returns
        -------
        CalibrationForest
            The forest itself.
        """
        self._check_parameters()
        rows = self._check_training(X, y, scores, sample_weight, self.score_type)
        problem = self._problem(X, rows, "clip", self.categorical_features)
        trees, blend = self._grow(problem)
        n_trees = np.bincount([kind for kind, _ in trees], minlength=2)
        shares = np.hstack([blend.tree_shares(n_trees), np.zeros((2, 1))])
        finished = [
            _core.finished_tree(structure, models, None, SIZES, shares[kind])
            for kind, (structure, models) in trees
        ]
        n_states = 1 if problem.n_classes == 2 else problem.n_classes
        model = ForestModel.of_trees(problem.known, finished, n_states)
        self.forest_ = model
        self.classes_ = rows.classes
        self.score_type_ = rows.score_type
        self.n_scores_ = rows.scores.shape[1]
        self.selection_: Selection = blend.selection
        self.fingerprint_ = Fingerprint.of(rows.hashes(problem.matrix))
        self._set_features(model.attributes)
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
        matrix = self.forest_.attributes.encode(X)
        score_matrix = as_score_matrix(scores, len(matrix), len(self.classes_))
        self._check_width(score_matrix, one_column_will_do=True)
        kind = ScoreKind(len(self.classes_), self.score_type_)

        def of_nodes() -> Floats:
            odds = kind.regressors(score_matrix)
            raw = kind.offset(score_matrix, odds)
            jobs = (
                delayed(self.forest_.probabilities)(
                    matrix[start : start + _ROWS_A_JOB],
                    np.asfortranarray(odds[start : start + _ROWS_A_JOB]),
                    None if raw is None else np.asfortranarray(raw[start : start + _ROWS_A_JOB]),
                )
                for start in range(0, max(len(matrix), 1), _ROWS_A_JOB)
            )
            run = Parallel(n_jobs=self.n_jobs, require="sharedmem")
            return np.concatenate(run(jobs))

        return self._together(score_matrix, self.forest_.share_of_scores, of_nodes)

    @property
    def feature_importances_(self) -> Floats:
        """The share of every attribute in what the splits gained on out-of-bag rows."""
        check_is_fitted(self)
        return self.forest_.importances

    def _check_parameters(self) -> None:
        """Refuse parameters that `fit` would refuse, before there are any data."""
        check_count("n_estimators", self.n_estimators, 2)
        check_penalty(self.penalty)
        check_size("min_samples_leaf", self.min_samples_leaf, 1)
        if self.max_depth is not None:
            check_count("max_depth", self.max_depth, 0, "None or ")
        check_bins(self.max_bins)
        check_jobs(self.n_jobs)
        check_choice("objective", self.objective, OBJECTIVES)
        check_choice("score_type", self.score_type, SCORE_TYPES)
        _check_max_features(self.max_features)
        random_generator(self.random_state)

    def _grow(self, problem: Problem) -> tuple[list[tuple[int, Any]], Blend]:
        """The trees, each with its kind, and the blend their out-of-bag rows ask for."""
        local = _core.LocalTraining(problem.training, problem.offset, self.max_bins, False)
        n_columns = problem.matrix.shape[1]
        seeds = random_generator(self.random_state).randint(0, 2**31, (self.n_estimators, 2))
        depth = 2**31 if self.max_depth is None else self.max_depth

        def grow(kind: int, seed: int) -> Any:
            width = n_columns + (problem.odds.shape[1] if kind == 1 else 0)
            return local.bagged(
                seed,
                kind == 1,
                float(self.penalty),
                SIZES,
                float(self.min_samples_leaf),
                depth,
                n_chosen(self.max_features, width),
            )

        run = Parallel(n_jobs=self.n_jobs, require="sharedmem", return_as="generator")
        jobs = (
            delayed(grow)(number % 2, int(high) << 31 | int(low))
            for number, (high, low) in enumerate(seeds)
        )
        blender = Blender(problem, self.objective)
        trees = []
        # In their order, whoever is done first, so that sums do not depend on the threads.
        for number, (structure, models, rows, predictions) in enumerate(run(jobs)):
            blender.add(number % 2, rows, predictions)
            trees.append((number % 2, (structure, models)))
        return trees, blender.finish()

    def _attributes(self) -> Attributes:
        return self.forest_.attributes

    def _state(self) -> dict[str, Any]:
        return {
            "score_type": self.score_type_,
            "n_scores": self.n_scores_,
            "selection": self.selection_,
            "forest": self.forest_.to_dict(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {"score_type", "n_scores", "selection", "forest"})
        forest = ForestModel.from_dict(state["forest"])
        n_classes = len(self.classes_)
        if forest.n_states != (1 if n_classes == 2 else n_classes):
            raise ValueError(f"a stored calibrator has {n_classes} classes, but other node models")
        storage.check_width(state["n_scores"], n_classes)
        self.n_scores_ = state["n_scores"]
        self.score_type_ = storage.checked_score_type(state)
        given = np.zeros((1, self.n_scores_))
        if ScoreKind(n_classes, self.score_type_).regressors(given).shape[1] != forest.n_scores:
            raise ValueError(
                f"a stored calibrator takes {self.n_scores_} scores, "
                f"but has node models of {forest.n_scores}"
            )
        self.selection_ = checked_selection(state["selection"])
        if not self.selection_ or not all("share" in row for row in self.selection_):
            raise ValueError("selection of a stored forest must give shares")
        has_raw = self.selection_[0]["candidate"] == LEAVE_ALONE
        if has_raw == (self.score_type_ == "margin"):
            raise ValueError("selection of a stored forest: only probabilities can be left alone")
        left = float(self.selection_[0]["share"]) if has_raw else 0.0
        if abs(left - forest.share_of_scores) > _ROUNDING:
            raise ValueError(
                f"a stored forest leaves {forest.share_of_scores:g} to the scores, but selection "
                f"says {left:g}"
            )
        self.forest_ = forest
        self._set_features(forest.attributes)


def n_chosen(max_features: float, n_columns: int) -> int:
    """How many of some columns a split may choose from."""
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
