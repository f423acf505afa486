"""The columns that boosted trees split on: attributes and scores; the weights of their rows."""

from __future__ import annotations

import numpy as np

from .._inputs.arrays import Floats
from .._inputs.attributes import Attributes
from .dataset import Dataset

FEW_SCORES = 30
"""Of more scores, trees tell rows apart by the highest values alone; see `score_floors`."""
SHARES_OF_A_CLASS = 20.0
"""The highest values are those of so many times as many rows as a class has in the mean."""
BINS_OF_A_SCORE = 31
"""The bins of each of many scores: all of them are looked at for every tree."""

_LARGEST_MEAN = 1e6
_SMALLEST_SHARE = 1e-6


def columns_of(dataset: Dataset, floors: Floats | None) -> Floats:
    """Return the columns that trees split on: attributes, and the scores without their bends."""
    scores = dataset.scores[:, : dataset.n_plain_scores]
    return np.hstack([dataset.matrix, scores if floors is None else np.maximum(scores, floors)])


def score_floors(dataset: Dataset) -> Floats | None:
    """Return what each score is raised to where it is lower; None if there are few scores.

    Where classes are many, most rows are out of the question for each of them. LightGBM skips the
    rows of the most frequent value, so that all scores together take it as long as a few, however
    many classes there are. No split is below the floor: it holds for scores that are not raised.
    """
    if dataset.n_plain_scores <= FEW_SCORES:
        return None
    share = min(1.0, SHARES_OF_A_CLASS / dataset.n_classes)
    floors = np.quantile(dataset.scores[:, : dataset.n_plain_scores], 1.0 - share, axis=0)
    return np.asarray(floors)


def nominal_columns(attributes: Attributes) -> list[int]:
    """Return the columns whose numbers are codes of categories."""
    found: list[int] = np.flatnonzero(attributes.n_categories > 0).tolist()
    return found


def count_bins(dataset: Dataset, most: int) -> dict[str, list[int]]:
    """Return LightGBM's parameter for fewer bins of scores; none if there are few scores."""
    n_scores = dataset.n_plain_scores
    if n_scores <= FEW_SCORES:
        return {}
    bins = [most] * dataset.matrix.shape[1] + [min(most, BINS_OF_A_SCORE)] * n_scores
    return {"max_bin_by_feature": bins}


def moderate(weights: Floats, mean: float) -> Floats:
    """Return weights, of some mean, that LightGBM, which rounds them, can add up and subtract.

    Where a row counts for a million, it does not matter for how many; and one that counts for a
    millionth of the mean does not matter.
    """
    least = _SMALLEST_SHARE * mean
    return np.maximum(weights, least) * min(1.0, _LARGEST_MEAN / mean)
