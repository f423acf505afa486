"""Rows of which boosted trees learn more than a curve can say."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import softmax

from caltree._training import boosting


@contextmanager
def few_rounds(rounds: int = 4, leaves: int = 7) -> Iterator[None]:
    """Trees are few and small meanwhile."""
    small = mock.patch.dict(boosting.PARAMETERS, num_leaves=leaves)
    with small, mock.patch.object(boosting, "MOST_ROUNDS", rounds):
        yield


def make_rows(
    n_rows: int, n_classes: int = 2, seed: int = 0, missing: float = 0.05
) -> tuple[pd.DataFrame, Any, Any]:
    """Make attributes (numbers and categories, some missing), labels and probabilities.

    The scores are too sure where "a" is positive, and too low for class 0 by "b" and the category.
    """
    random = np.random.default_rng(seed)
    numbers = random.normal(size=(n_rows, 4))
    category = random.integers(0, 12, n_rows)
    odds = 1.5 * random.normal(size=(n_rows, n_classes))
    true = odds * np.where(numbers[:, :1] > 0, 0.4, 1.2)
    true[:, 0] += np.sin(2 * numbers[:, 1]) + 1.5 * (category % 4 == 1)
    chosen = softmax(true, axis=1).cumsum(axis=1) < random.random((n_rows, 1))
    labels = np.minimum(chosen.sum(axis=1), n_classes - 1)
    numbers[random.random(numbers.shape) < missing] = np.nan
    X = pd.DataFrame(numbers, columns=list("abcd"))
    names = np.array([f"c{code:02}" for code in range(12)], dtype=object)[category]
    X["category"] = np.where(random.random(n_rows) < missing, None, names)
    return X, labels, softmax(odds, axis=1)


def log_odds_of_curve(parameters: Any, regressors: Any) -> Any:
    """What a curve that sees all scores says: a column per log-odds."""
    return parameters[:, 0] + regressors @ parameters[:, 1:].T
