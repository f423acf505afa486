"""Classifiers and a calibrator that tell what they were given, or say what they are told."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.naive_bayes import GaussianNB


class Untrainable(ClassifierMixin, BaseEstimator):
    """Ends the test when it is trained: errors must come before."""

    def fit(self, X, y, sample_weight=None):
        pytest.fail("a classifier was trained before the error")

    def predict_proba(self, X):
        raise AssertionError("nobody asks an unfitted classifier")


class Says(ClassifierMixin, BaseEstimator):
    """Answers with the first columns of X, one per class, as probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return X[:, : len(self.classes_)]


class SaysMargins(ClassifierMixin, BaseEstimator):
    """Answers with the first columns of X as margins; of two classes with the first alone."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0] if len(self.classes_) == 2 else X[:, : len(self.classes_)]


class Told(BaseEstimator):
    """A calibrator that remembers what it was given and changes nothing."""

    def fit(self, X, y, scores, sample_weight=None):
        self.given_ = {"X": X, "y": y, "scores": scores, "sample_weight": sample_weight}
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X, scores):
        return scores


def recorder(base=GaussianNB):
    """A classifier, and the list of what each of its copies was given."""
    calls = []

    class Recorder(base):
        def fit(self, X, y, sample_weight=None, extra=None, **others):
            calls.append({"X": X, "y": y, "weight": sample_weight, "extra": extra, **others})
            return super().fit(X, y, sample_weight)

    return Recorder(), calls
