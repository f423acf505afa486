"""Naive Bayes with rounded normal densities and smoothed frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from ..._inputs.arrays import Floats
from .base import Indices, Learner, sums

_ONLY_VALUE_PRECISION = 0.01
_SMALLEST_DEVIATION = 1 / 6  # in units of the precision
_SMALLEST_FACTOR = 1e-75
_RESCALING = 1e75  # the factor of products that become too small
_TOO_LARGE = 1e200


class NaiveBayes(Learner):
    """The naive Bayes classifier of the paper's experiments.

    A numeric attribute has a normal density in each class. Its values are first rounded to a
    multiple of the precision, the mean gap between neighbouring values in the training rows, and
    the density is the probability of the interval that rounds to the value, divided by the
    precision. Frequencies, of categories and of classes, have Laplace's correction.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    class_prior_ : ndarray of shape (m,)
        The smoothed frequencies of the classes.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.

    Notes
    -----
    The standard deviation is at least a sixth of the precision, and no density is below 1e-75. An
    attribute with a single value has the precision 0.01. A missing value says nothing: in
    training and in prediction its attribute is left out for that row. A category that was not
    seen in training counts as the most frequent one, and a class that has no value of a numeric
    attribute gets the density of all rows.

    The products of densities are kept from underflow only when those of all classes become too
    small. A class much less likely than another has the probability 0, exactly.

    Examples
    --------
    >>> import pandas as pd
    >>> from caltree.paper.learners import NaiveBayes
    >>> X = pd.DataFrame({"outlook": ["sun", "sun", "rain", None], "wind": [1.0, 2.0, 4.0, 5.0]})
    >>> model = NaiveBayes().fit(X, ["yes", "yes", "no", "no"])
    >>> model.predict_proba(X).round(2)
    array([[0.  , 1.  ],
           [0.02, 0.98],
           [0.98, 0.02],
           [1.  , 0.  ]])
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the densities and frequencies; weights say how many rows each row counts for."""
        matrix, labels, weights = self._learn(X, y, sample_weight)
        n_classes = len(self.classes_)
        self.class_prior_ = _smooth(sums(labels, weights, n_classes))
        self._factors: list[_Normal | _Frequencies | None] = []
        for values, attribute in zip(matrix.T, self._attributes.columns, strict=True):
            known = ~np.isnan(values)
            sample = values[known], labels[known], weights[known], n_classes
            if not known.any():
                self._factors.append(None)
            elif attribute.categories is None:
                self._factors.append(_fit_normal(*sample))
            else:
                self._factors.append(_fit_frequencies(len(attribute.categories), *sample))
        return self

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes, one column per class in the order of `classes_`."""
        matrix = self._encode(X)
        product = np.tile(self.class_prior_, (len(matrix), 1))
        for values, factor in zip(matrix.T, self._factors, strict=True):
            known = ~np.isnan(values)
            if factor is not None and known.any():
                product[known] = _rescale(product[known] * factor.of(values[known]))
        probabilities: Floats = product / product.sum(axis=1, keepdims=True)
        return probabilities


@dataclass(frozen=True)
class _Normal:
    """Normal densities of a numeric attribute, one per class, in units of the precision."""

    precision: float
    mean: Floats
    deviation: Floats

    def of(self, values: Floats) -> Floats:
        distance = np.rint(values / self.precision)[:, np.newaxis] - self.mean
        with np.errstate(over="ignore"):
            interval = ndtr((distance + 0.5) / self.deviation) - ndtr(
                (distance - 0.5) / self.deviation
            )
            return np.clip(interval / self.precision, _SMALLEST_FACTOR, 1 / _SMALLEST_FACTOR)


@dataclass(frozen=True)
class _Frequencies:
    """Smoothed frequencies of the categories, one column per class."""

    table: Floats

    def of(self, values: Floats) -> Floats:
        found: Floats = self.table[values.astype(np.intp)]
        return found


def _fit_normal(values: Floats, labels: Indices, weights: Floats, n_classes: int) -> _Normal:
    precision = _precision(values)
    rounded = np.rint(values / precision)
    total = sums(labels, weights, n_classes)
    first = sums(labels, weights * rounded, n_classes)
    second = sums(labels, weights * rounded**2, n_classes)
    empty = total == 0
    total[empty], first[empty], second[empty] = total.sum(), first.sum(), second.sum()
    mean = first / total
    deviation = np.sqrt(np.abs(second - mean * first) / total)
    return _Normal(precision, mean, np.maximum(deviation, _SMALLEST_DEVIATION))


def _precision(values: Floats) -> float:
    distinct = np.unique(values)
    if len(distinct) == 1:
        return _ONLY_VALUE_PRECISION
    # Summed, then divided: a value halfway between two multiples is rounded by the last digit.
    return float(np.diff(distinct).sum() / (len(distinct) - 1))


def _fit_frequencies(
    n_categories: int, values: Floats, labels: Indices, weights: Floats, n_classes: int
) -> _Frequencies:
    cells = values.astype(np.intp) * n_classes + labels
    counts = sums(cells, weights, n_categories * n_classes)
    return _Frequencies(_smooth(counts.reshape(n_categories, n_classes)))


def _smooth(counts: Floats) -> Floats:
    smoothed: Floats = (counts + 1) / (counts.sum(axis=0) + len(counts))
    return smoothed


def _rescale(product: Floats) -> Floats:
    """Keep the largest product of each row within the range of a float."""
    largest = product.max(axis=1)
    product[largest < _SMALLEST_FACTOR] *= _RESCALING
    product[largest > _TOO_LARGE] /= _TOO_LARGE
    return product
