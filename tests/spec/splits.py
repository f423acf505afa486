"""Splits: gain ratio on the attributes and the class, as in C4.5; the scores play no part."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Classes = NDArray[np.integer]

TOLERANCE = 1e-6  # in comparisons of counts, gains and gain ratios
SMALLEST_GAP = 1e-5  # between neighbouring values that a cut can separate
GAIN_SLACK = 1e-3  # below the average gain
MANY_CATEGORIES = 0.3  # of the training rows


@dataclass(frozen=True)
class Split:
    """A test on one attribute: ``<= threshold`` if numeric, else one branch a category."""

    attribute: int
    threshold: float | None
    n_branches: int
    gain: float
    gain_ratio: float

    def branch(self, X: Floats) -> NDArray[np.intp]:
        """Index of the branch that each row takes."""
        values = X[:, self.attribute]
        return (values if self.threshold is None else values > self.threshold).astype(np.intp)


def find_split(
    X: Floats,
    y: Classes,
    n_categories: Sequence[int],
    n_classes: int,
    X_all: Floats,
    min_samples_leaf: int = 2,
) -> Split | None:
    """Find the split of a node.

    Parameters
    ----------
    X : (n, d) attributes of the node's rows, without missing values
    y : (n,) class indices
    n_categories : for each attribute its number of categories, 0 if numeric
    n_classes : number of classes
    X_all : (N, d) attributes of all rows the tree was given, held-out folds included
    min_samples_leaf : smallest branch that counts
    """
    if len(y) < 2 * min_samples_leaf or len(np.unique(y)) < 2:
        return None
    is_class = np.eye(n_classes)[y]
    splits = []
    for attribute, size in enumerate(n_categories):
        values = X[:, attribute]
        if size == 0:
            split = _numeric_split(attribute, values, is_class, min_samples_leaf)
        else:
            split = _nominal_split(attribute, values, is_class, min_samples_leaf, size)
        if split is not None:
            splits.append(split)
    best = _choose(splits, n_categories, len(X_all))
    if best is None or best.threshold is None:
        return best
    # The threshold moves to a value that occurs: the largest, of all rows, not above the midpoint.
    values = X_all[:, best.attribute]
    return replace(best, threshold=float(values[values <= best.threshold].max()))


def _numeric_split(
    attribute: int, values: Floats, is_class: Floats, min_samples_leaf: int
) -> Split | None:
    """The cut of largest gain; of equals the lowest."""
    n, n_classes = is_class.shape
    smallest_branch = max(min_samples_leaf, min(25.0, 0.1 * n / n_classes)) - TOLERANCE
    order = np.argsort(values, kind="stable")
    values, is_class = values[order], is_class[order]
    left_size = np.arange(1, n)
    cuts = np.flatnonzero(
        (values[:-1] + SMALLEST_GAP < values[1:])
        & (left_size >= smallest_branch)
        & (n - left_size >= smallest_branch)
    )
    if len(cuts) == 0:
        return None

    left = np.cumsum(is_class, axis=0)[cuts]
    gains, split_information = _information(np.stack([left, is_class.sum(axis=0) - left], axis=1))
    best = _first_clearly_largest(gains)
    if best is None:
        return None
    gain = gains[best] - np.log2(len(cuts)) / n
    if gain <= TOLERANCE:
        return None
    midpoint = (values[cuts[best]] + values[cuts[best] + 1]) / 2
    return Split(attribute, midpoint, 2, gain, gain / split_information[best])


def _nominal_split(
    attribute: int, values: Floats, is_class: Floats, min_samples_leaf: int, size: int
) -> Split | None:
    """One branch for each category, also for those without rows here."""
    counts = np.zeros((size, is_class.shape[1]))
    np.add.at(counts, values.astype(np.intp), is_class)
    if (counts.sum(axis=1) >= min_samples_leaf).sum() < 2:
        return None
    gain, split_information = _information(counts)
    return Split(attribute, None, size, float(gain), float(gain / split_information))


def _information(counts: Floats) -> tuple[Floats, Floats]:
    """Information gain and split information, in bits a row, of counts (..., branch, class)."""
    n = counts.sum(axis=(-2, -1))
    by_class = _n_log_n(counts.sum(axis=-2)).sum(axis=-1)
    by_branch = _n_log_n(counts.sum(axis=-1)).sum(axis=-1)
    by_both = _n_log_n(counts).sum(axis=(-2, -1))
    return (_n_log_n(n) - by_class - by_branch + by_both) / n, (_n_log_n(n) - by_branch) / n


def _n_log_n(counts: Floats) -> Floats:
    return counts * np.log2(np.where(counts == 0, 1.0, counts))


def _first_clearly_largest(values: Floats) -> int | None:
    """Walk through values from a best of 0; whichever beats the best by the tolerance replaces it.

    Not the same as the maximum: a slow rise goes unseen.
    """
    best, largest = None, 0.0
    for position in np.flatnonzero(values > TOLERANCE):
        if values[position] > largest + TOLERANCE:
            best, largest = int(position), values[position]
    return best


def _choose(splits: list[Split], n_categories: Sequence[int], n_all: int) -> Split | None:
    """Largest gain ratio among the splits of at least average gain."""
    has_few = [size < MANY_CATEGORIES * n_all for size in n_categories]
    gains = [split.gain for split in splits if has_few[split.attribute] or not any(has_few)]
    # Nothing to average over: nothing to ask of a gain.
    enough = sum(gains) / max(len(gains), 1) - GAIN_SLACK
    candidates = [split for split in splits if split.gain >= enough]
    best = _first_clearly_largest(np.array([split.gain_ratio for split in candidates]))
    return None if best is None else candidates[best]
