"""Support vector machines with an RBF kernel, one class against the rest."""

from __future__ import annotations

import math
import reprlib
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils import check_random_state

from ..._inputs.arrays import Floats, Mask
from ..._inputs.attributes import Attributes
from .base import Indices, Learner

_POWERS = tuple(10.0**power for power in range(-2, 3))
_LARGE = 5000  # rows beyond which the search uses less of them
_FEWEST_ROWS = 20  # to search on, as long as there are that many
_BLOCK = 512  # rows predicted at a time
_CACHE = 2000  # megabytes of rows of the kernel at most, taken as needed


class SVM(Learner):
    """The support vector machine of the paper's experiments.

    One machine with an RBF kernel a class tells it from the rest; with two classes one machine
    does. All have the same `C` and `gamma`, those of the highest accuracy in 2-fold
    cross-validation among the powers of ten from 0.01 to 100.

    Parameters
    ----------
    C, gamma : float, optional
        If both are given, nothing is searched.
    search_fraction : "paper" or float, default="paper"
        The part of the rows that the search uses. "paper" uses all with two classes; with more it
        uses a fifth, or a tenth of more than 5000 rows.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of the search, which keep the proportions of the classes, and their halves.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `decision_function`.
    C_, gamma_ : float
        What the search chose: the first of equals, the smallest `C` and then `gamma`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.

    Notes
    -----
    Numbers are brought to the range from 0 to 1 that they have in training, and a category becomes
    an indicator; of two categories one indicator will do. A missing value counts as the mean or
    the most frequent category, and so does a category that was not seen in training. A number
    that is the same in all training rows is left out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from caltree.paper.learners import SVM
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVM(search_fraction=1.0, random_state=0).fit(X, y)
    >>> model.decision_function(X[[0, 50, 100]]).shape
    (3, 3)
    >>> model.predict(X[[0, 50, 100]])
    array([0, 1, 2])
    """

    def __init__(
        self,
        *,
        C: float | None = None,
        gamma: float | None = None,
        search_fraction: float | Literal["paper"] = "paper",
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.search_fraction = search_fraction
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Choose `C` and `gamma`, then fit the machines to all rows."""
        inputs, labels = self._choose(X, y)
        self._machines = _fit_machines(inputs, labels, len(self.classes_), self.C_, self.gamma_)
        return self

    def tune(self, X: Any, y: Any) -> Self:
        """An unfitted copy with the `C` and `gamma` that a search on these rows chooses.

        Machines that are trained on parts of the rows then give margins of one scale.
        """
        searched = clone(self)
        searched._choose(X, y)
        copy: Self = clone(self).set_params(C=searched.C_, gamma=searched.gamma_)
        return copy

    def _choose(self, X: Any, y: Any) -> tuple[Floats, Indices]:
        """Set `C_` and `gamma_`; the inputs of the machines and the labels."""
        given = self._check_given()
        matrix, labels, _ = self._learn(X, y)
        n_classes = len(self.classes_)
        fraction = self._fraction(len(labels), n_classes)
        matrix = _fill(matrix, self._attributes)
        self._low = matrix.min(axis=0)
        spread = matrix.max(axis=0) / 2 - self._low / 2  # halves cannot overflow
        self._half_range = np.where(spread > 0, spread, np.inf)  # a constant tells nothing
        inputs = self._inputs(matrix)
        if given is None:
            rows = _spread_over_classes(labels, fraction, check_random_state(self.random_state))
            given = _search(inputs[rows], labels[rows], n_classes)
        self.C_, self.gamma_ = given
        return inputs, labels

    def decision_function(self, X: Any) -> Floats:
        """The margins.

        With two classes, a positive number stands for ``classes_[1]``; with more there is one
        column per class, in the order of `classes_`.
        """
        margins = self._class_scores(X)
        return margins[:, 1] if len(self.classes_) == 2 else margins

    def _class_scores(self, X: Any) -> Floats:
        inputs = self._inputs(_fill(self._encode(X), self._attributes))
        return _margins(self._machines, inputs)

    def _check_given(self) -> tuple[float, float] | None:
        if self.C is None and self.gamma is None:
            return None
        given = []
        for name, value in (("C", self.C), ("gamma", self.gamma)):
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(
                    f"{name} must be a finite number above 0, or both C and gamma None, "
                    f"got {reprlib.repr(value)}"
                )
            given.append(float(value))
        return given[0], given[1]

    def _fraction(self, n_rows: int, n_classes: int) -> float:
        fraction: Any = self.search_fraction
        if isinstance(fraction, str) and fraction == "paper":
            if n_classes == 2:
                return 1.0
            return 0.1 if n_rows > _LARGE else 0.2
        if not isinstance(fraction, int | float) or not 0 < fraction <= 1:
            raise ValueError(
                "search_fraction must be 'paper' or a number above 0 and up to 1, "
                f"got {reprlib.repr(fraction)}"
            )
        return float(fraction)

    def _inputs(self, filled: Floats) -> Floats:
        """Numbers from 0 to 1 and indicators of categories."""
        scaled = (filled / 2 - self._low / 2) / self._half_range
        columns = []
        for j, attribute in enumerate(self._attributes.columns):
            if attribute.categories is None:
                columns.append(scaled[:, j])
            else:
                first = 1 if len(attribute.categories) == 2 else 0
                for code in range(first, len(attribute.categories)):
                    columns.append((filled[:, j] == code).astype(np.float64))
        return np.column_stack(columns) if columns else np.zeros((len(filled), 1))


def _fill(matrix: Floats, attributes: Attributes) -> Floats:
    filled: Floats = np.where(np.isnan(matrix), attributes.fills, matrix)
    return filled


def _spread_over_classes(
    labels: Indices, fraction: float, random: np.random.RandomState
) -> Indices:
    """A random part of the rows, class by class, evenly spread over the classes."""
    shuffled = random.permutation(len(labels))
    shuffled = shuffled[labels[shuffled].argsort(kind="stable")]
    n_wanted = max(round(fraction * len(labels)), min(_FEWEST_ROWS, len(labels)))
    # Equal steps from a random start take from each class its share.
    steps = (np.arange(n_wanted) + random.uniform()) * (len(labels) / n_wanted)
    chosen: Indices = shuffled[np.minimum(steps.astype(np.intp), len(labels) - 1)]
    return chosen


def _search(inputs: Floats, labels: Indices, n_classes: int) -> tuple[float, float]:
    """The C and gamma of the highest accuracy; the rows are sorted by class."""
    # Every other row is in the other half, so that both have each class's share.
    halves = np.arange(0, len(labels), 2), np.arange(1, len(labels), 2)
    right = np.zeros((len(_POWERS), len(_POWERS)), dtype=np.intp)  # by C and gamma
    for train, test in (halves, halves[::-1]):
        for place, gamma in enumerate(_POWERS):
            kernel = _kernel(inputs[train], inputs[train], gamma)
            np.fill_diagonal(kernel, 1.0)
            machines = [_fit_to_kernel(kernel, labels[train], n_classes, C) for C in _POWERS]
            predicted = _predict(machines, inputs[train], inputs[test], gamma)
            right[:, place] += np.count_nonzero(predicted == labels[test], axis=1)
    best = int(right.argmax())  # the first of equals, C before gamma
    return _POWERS[best // len(_POWERS)], _POWERS[best % len(_POWERS)]


def _kernel(rows: Floats, others: Floats, gamma: float) -> Floats:
    """The RBF kernel, in the memory of one matrix."""
    kernel: Floats = rows @ others.T
    kernel *= -2.0
    kernel += np.square(rows).sum(axis=1)[:, np.newaxis]
    kernel += np.square(others).sum(axis=1)
    np.maximum(kernel, 0.0, out=kernel)  # squared distances, but for rounding
    kernel *= -gamma
    return np.exp(kernel, out=kernel)


def _fit_to_kernel(
    kernel: Floats, labels: Indices, n_classes: int, C: float
) -> tuple[Floats, Floats]:
    """The weights of all rows in the margins, one column a machine, and the intercepts.

    The machines of all `C` and of all classes share a kernel, which is most of the work.
    """
    weights, intercepts = [], []
    for belongs in _problems(labels, n_classes):
        weight, intercept = np.zeros(len(labels)), 1.0 if belongs.all() else -1.0
        if belongs.any() and not belongs.all():
            machine = SVC(C=C, kernel="precomputed", cache_size=_CACHE).fit(kernel, belongs)
            weight[machine.support_] = machine.dual_coef_[0]
            intercept = float(machine.intercept_[0])
        weights.append(weight)
        intercepts.append(intercept)
    return np.column_stack(weights), np.array(intercepts)


def _predict(
    machines: list[tuple[Floats, Floats]], train: Floats, test: Floats, gamma: float
) -> Indices:
    """The predicted class of each row, one line for each set of machines."""
    weights = np.hstack([weights for weights, _ in machines])
    intercepts = np.concatenate([intercepts for _, intercepts in machines])
    predicted = np.empty((len(machines), len(test)), dtype=np.intp)
    for start in range(0, len(test), _BLOCK):
        block = slice(start, start + _BLOCK)
        kernel = _kernel(test[block], train, gamma)
        margins = (kernel @ weights + intercepts).reshape(len(kernel), len(machines), -1)
        best = margins.argmax(axis=2) if margins.shape[2] > 1 else margins[:, :, 0] > 0
        predicted[:, block] = best.T
    return predicted


def _problems(labels: Indices, n_classes: int) -> list[Mask]:
    """Which rows belong to each class; of two classes the second does for both."""
    return [labels == label for label in (range(n_classes) if n_classes > 2 else (1,))]


def _fit_machines(
    inputs: Floats, labels: Indices, n_classes: int, C: float, gamma: float
) -> list[SVC | float]:
    """One machine for two classes, one per class for more; all rows or none have a margin."""
    machines: list[SVC | float] = []
    for belongs in _problems(labels, n_classes):
        if belongs.all() or not belongs.any():
            machines.append(1.0 if belongs.all() else -1.0)
        else:
            machines.append(SVC(C=C, gamma=gamma, cache_size=_CACHE).fit(inputs, belongs))
    return machines


def _margins(machines: list[SVC | float], inputs: Floats) -> Floats:
    """One column per class, of two classes too."""
    columns = [
        np.full(len(inputs), machine)
        if isinstance(machine, float)
        else machine.decision_function(inputs)
        for machine in machines
    ]
    if len(columns) == 1:
        columns = [-columns[0], columns[0]]
    return np.column_stack(columns)
