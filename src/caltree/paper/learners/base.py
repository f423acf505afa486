"""The base of the learners: reads tables and labels, and predicts the likeliest class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..._inputs import attributes
from ..._inputs.arrays import Floats
from ..._inputs.labels import check_labels, check_weights
from ..._inputs.tables import read_table

Indices = npt.NDArray[np.intp]


class Learner(ClassifierMixin, BaseEstimator):
    """A classifier of tables with numeric and nominal attributes and missing values."""

    _attributes: attributes.Attributes
    classes_: npt.NDArray[Any]
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]

    def _learn(self, X: Any, y: Any, sample_weight: Any = None) -> tuple[Floats, Indices, Floats]:
        """The encoded rows of positive weight, their class indices and their weights."""
        table = read_table(X, "X")
        n_rows = table.shape[0]
        weights = check_weights(sample_weight, n_rows)
        keep = None if weights is None or weights.all() else weights > 0
        if weights is None:
            weights = np.ones(n_rows)
        if keep is not None:
            weights = weights[keep]
        classes, labels = check_labels(y, n_rows, keep)
        known, matrix = attributes.learn(table, keep=keep, sample_weight=weights)
        self._attributes, self.classes_ = known, classes
        self.n_features_in_ = len(known.columns)
        if known.names is not None:
            self.feature_names_in_ = np.array(known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return matrix, labels.astype(np.intp), weights

    def _encode(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._attributes.encode(X)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likeliest class of each row, the first of equally likely ones."""
        best = self._class_scores(X).argmax(axis=1)
        predicted: npt.NDArray[Any] = self.classes_[best]
        return predicted

    def _class_scores(self, X: Any) -> Floats:
        """One column per class; the class of the largest number is predicted."""
        probabilities: Floats = self.predict_proba(X)
        return probabilities


def sums(codes: Indices, weights: Floats, n_codes: int) -> Floats:
    """The sum of the weights of each code."""
    return np.bincount(codes, weights, minlength=n_codes).astype(np.float64, copy=False)
