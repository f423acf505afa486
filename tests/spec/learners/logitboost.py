"""LogitBoost, of regression stumps or small regression trees."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from caltree._inputs.arrays import Floats

from .splits import Indices, Presorted
from .stumps import Stump, fit_stump
from .trees import Node, fit_tree

_LARGEST_RESPONSE = 3.0

Fitted = list[list[Stump | Node]]
"""The stumps or trees of each iteration: one per class, of two classes one for both."""


def fit(
    matrix: Floats,
    n_categories: npt.NDArray[np.int32],
    labels: Indices,
    n_classes: int,
    n_iterations: int,
    max_depth: int | None,
) -> Fitted:
    """Boost trees, or stumps if there is no depth."""
    table = Presorted(np.asfortranarray(matrix), n_categories)
    truth = np.eye(n_classes)[labels]
    F = np.zeros(truth.shape)
    fitted: Fitted = []
    for _ in range(n_iterations):
        responses, weights = working(truth, softmax(F, axis=1))
        fitted.append(
            [
                fit_stump(table, responses[:, j], weights[:, j])
                if max_depth is None
                else fit_tree(table, responses[:, j], weights[:, j], max_depth)
                for j in range(1 if n_classes == 2 else n_classes)
            ]
        )
        F += _step(table.matrix, fitted[-1])
    return fitted


def predict(fitted: Fitted, matrix: Floats, n_classes: int) -> Floats:
    """The probabilities of the classes."""
    F = np.zeros((len(matrix), n_classes))
    for trees in fitted:
        F += _step(matrix, trees)
    probabilities: Floats = softmax(F, axis=1)
    return probabilities


def working(truth: Floats, probabilities: Floats) -> tuple[Floats, Floats]:
    """Working responses, and weights of mean 1, of each row and class."""
    with np.errstate(divide="ignore"):
        responses = np.where(truth == 1, 1 / probabilities, -1 / (1 - probabilities))
    responses = np.clip(responses, -_LARGEST_RESPONSE, _LARGEST_RESPONSE)
    weights = (truth - probabilities) / responses
    means = weights.mean(axis=0)
    return responses, np.divide(weights, means, out=np.zeros_like(weights), where=means > 0)


def _step(matrix: Floats, trees: list[Stump | Node]) -> Floats:
    """The increase of F in one iteration."""
    values = np.column_stack([one.predict(matrix) for one in trees])
    if len(trees) == 1:
        values = np.column_stack([values, -values])
    n_classes = values.shape[1]
    centred = values - values.mean(axis=1, keepdims=True)
    step: Floats = centred * ((n_classes - 1) / n_classes)
    return step
