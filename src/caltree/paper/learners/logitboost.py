"""LogitBoost, of regression stumps or small regression trees."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.special import softmax

from ..._inputs.arrays import Floats
from ..._inputs.parameters import check_choice, check_count
from .base import Learner
from .splits import Presorted
from .stumps import Stump, fit_stump
from .trees import Node, fit_tree

_LARGEST_RESPONSE = 3.0


class LogitBoost(Learner):
    """Boosted stumps or boosted trees, as in the paper's experiments.

    Additive logistic regression after Friedman, Hastie and Tibshirani: in every iteration, each
    class's working response is regressed on the attributes by weighted least squares.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of iterations. There is a stump or a tree for each class in each iteration; with
        two classes one does for both.
    base : {"stump", "tree"}, default="stump"
        The regression that is boosted.
    max_depth : int, default=3
        The most splits on a way from the root of a tree to a leaf.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.
    estimators_ : list of list
        The stumps or trees of each iteration.

    Notes
    -----
    A stump cuts a numeric attribute in two or tells one category from the rest; missing values are
    a branch of their own, with the mean of all rows if there were none in training. A tree splits
    a nominal attribute into all its categories and deals a row without a value out over the
    branches, by their weight. It is not pruned and its leaves may be of any size, but a node with
    less than a thousandth of the variance of all rows is not split. A category that was not seen
    in training counts as the most frequent one.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from caltree.paper.learners import LogitBoost
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LogitBoost(n_estimators=10).fit(X, y)
    >>> model.predict_proba(X.iloc[[0, 50, 100]]).round(2)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        base: Literal["stump", "tree"] = "stump",
        max_depth: int = 3,
    ) -> None:
        self.n_estimators = n_estimators
        self.base = base
        self.max_depth = max_depth

    def fit(self, X: Any, y: Any) -> Self:
        """Boost regressions of a table of attributes with these labels."""
        n_estimators = check_count("n_estimators", self.n_estimators, 1)
        check_choice("base", self.base, ("stump", "tree"))
        check_count("max_depth", self.max_depth, 1)
        matrix, labels, _ = self._learn(X, y)
        table = Presorted(np.asfortranarray(matrix), self._attributes.n_categories)
        truth = np.eye(len(self.classes_))[labels]
        F = np.zeros(truth.shape)
        self.estimators_: list[list[Stump | Node]] = []
        for _ in range(n_estimators):
            responses, weights = _working(truth, softmax(F, axis=1))
            fitted = [
                self._regression(table, responses[:, j], weights[:, j])
                for j in range(_n_regressions(len(self.classes_)))
            ]
            self.estimators_.append(fitted)
            F += self._step(table.matrix, fitted)
        return self

    def _regression(self, table: Presorted, response: Floats, weight: Floats) -> Stump | Node:
        if self.base == "stump":
            return fit_stump(table, response, weight)
        return fit_tree(table, response, weight, self.max_depth)

    def _step(self, matrix: Floats, fitted: list[Stump | Node]) -> Floats:
        """The increase of F in one iteration."""
        values = np.column_stack([one.predict(matrix) for one in fitted])
        if len(fitted) == 1:
            values = np.column_stack([values, -values])
        n_classes = values.shape[1]
        centred = values - values.mean(axis=1, keepdims=True)
        step: Floats = centred * ((n_classes - 1) / n_classes)
        return step

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes, one column a class in the order of `classes_`."""
        matrix = np.asfortranarray(self._encode(X))
        F = np.zeros((len(matrix), len(self.classes_)))
        for fitted in self.estimators_:
            F += self._step(matrix, fitted)
        probabilities: Floats = softmax(F, axis=1)
        return probabilities


def _n_regressions(n_classes: int) -> int:
    """Of two classes, one's working response is the other's with the sign changed."""
    return 1 if n_classes == 2 else n_classes


def _working(truth: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """Working responses, and weights of mean 1, of each row and class."""
    with np.errstate(divide="ignore"):
        responses = np.where(truth == 1, 1 / probabilities, -1 / (1 - probabilities))
    responses = np.clip(responses, -_LARGEST_RESPONSE, _LARGEST_RESPONSE)
    weights = (truth - probabilities) / responses
    means = weights.mean(axis=0)
    return responses, np.divide(weights, means, out=np.zeros_like(weights), where=means > 0)
