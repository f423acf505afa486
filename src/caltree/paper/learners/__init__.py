"""The base learners of the paper, as scikit-learn classifiers."""

from .logitboost import LogitBoost
from .naive_bayes import NaiveBayes
from .svm import SVM

__all__ = ["SVM", "LogitBoost", "NaiveBayes"]
