"""LogitBoost, of regression stumps or small regression trees."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np

from ... import _core
from ..._inputs.arrays import Floats
from ..._inputs.parameters import check_choice, check_count
from .base import Learner


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
        The maximum number of splits on a path from the root of a tree to a leaf.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.

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
        max_depth = check_count("max_depth", self.max_depth, 1)
        matrix, labels, _ = self._learn(X, y)
        self._trees = _core.fit_logitboost(
            np.asfortranarray(matrix),
            self._attributes.n_categories,
            labels.astype(np.uint16),
            len(self.classes_),
            n_estimators,
            None if self.base == "stump" else max_depth,
        )
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes, one column per class in the order of `classes_`."""
        return _core.predict_logitboost(
            self._encode(X), self._attributes.n_categories, len(self.classes_), **self._trees
        )
