"""Whether scores rank a class backwards: lower where the class is, beyond chance."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Mask
from .scores import ScoreKind

# An AUC this many standard errors below one half is not chance: with useless scores, fewer than one
# fit in 10,000 would be.
_STANDARD_ERRORS = 4.0
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Backwards:
    """A class that the scores rank backwards."""

    column: int
    """The index of the class."""
    classifier: int | None
    """Which of several classifiers side by side; None of one."""
    standard_errors: float
    """How far beyond no relation at all this is."""
    auc: float | None = None
    """Of the rows of this class; None if it is not the labels that show it."""
    correlation: float | None = None
    """Of the ranks of scores and calibrated probabilities, if it is these that show it."""


def find_backwards(
    scores: Floats,
    kind: ScoreKind,
    labels: npt.NDArray[Any],
    weights: Floats | None,
    calibrated: Floats | None = None,
) -> list[Backwards]:
    """Find the classes that scores rank backwards, one class against the rest.

    A single column is the score of the second class; `labels` are class indices. Where labels are
    too few to tell, `calibrated` probabilities may: low where scores are high, they show that the
    calibrator has turned the scores round.
    """
    width = 1 if scores.shape[1] == 1 else kind.n_classes
    starts = range(0, scores.shape[1], width)
    found = []
    for number, start in enumerate(starts):
        block = scores[:, start : start + width]
        for column, values in _one_versus_rest(block, kind):
            classifier = number if len(starts) > 1 else None
            auc, error = rank_auc(values, labels == column, weights)
            if auc < 0.5 - max(_STANDARD_ERRORS * error, _ROUNDING):
                found.append(Backwards(column, classifier, (0.5 - auc) / error, auc=auc))
            elif calibrated is not None:
                r, error = rank_correlation(values, calibrated[:, column], weights)
                if r < -_STANDARD_ERRORS * error:
                    found.append(Backwards(column, classifier, -r / error, correlation=r))
    return found


def _one_versus_rest(block: Floats, kind: ScoreKind) -> Iterator[tuple[int, Floats]]:
    """Yield the classes with their scores; of two classes the second says it all."""
    if kind.n_classes > 2 and kind.score_type == "logit":
        # A constant added to all logits of a row says nothing.
        yield from enumerate(kind.uncalibrated(block).T)
    elif kind.n_classes > 2:
        yield from enumerate(block.T)
    else:
        yield 1, kind.one_score_a_class(block)[:, 0]


def rank_auc(values: Floats, truth: Mask, weights: Floats | None) -> tuple[float, float]:
    """The area under the ROC curve, and its standard error if the values say nothing.

    The error is that of the Wilcoxon test with ties, for as many rows of equal weight in each class
    as carry the same information (Kish). Rows of one class have no AUC: 0.5, infinity.
    """
    ranked = _Ranked.of(values, truth, weights)
    rows = _effective_rows(ranked.positive), _effective_rows(ranked.negative)
    if min(rows) == 0.0:
        return 0.5, math.inf
    # The places of values that say nothing do not depend on the weights.
    ties = np.diff(np.append(ranked.starts, len(values)))
    places = (np.cumsum(ties) - ties / 2) / len(values)
    variance = float((ties * (places - 0.5) ** 2).sum() / len(values))
    return ranked.auc, math.sqrt(variance * (1.0 / rows[0] + 1.0 / rows[1]))


def auc_deviations(values: Floats, truth: Mask, weights: Floats | None) -> tuple[float, Floats]:
    """The area under the ROC curve, and what every row adds to its deviation from the truth.

    The sum of their squares is the variance of DeLong et al. (1988), and that of differences the
    variance of the difference of two areas on the same rows. There must be rows of both classes.
    """
    ranked = _Ranked.of(values, truth, weights)
    auc, hits, misses = ranked.auc, ranked.hits, ranked.misses
    below = (np.cumsum(misses) - misses / 2) / misses.sum()
    above = (hits.sum() - np.cumsum(hits) + hits / 2) / hits.sum()
    tie = np.repeat(np.arange(len(hits)), np.diff(np.append(ranked.starts, len(values))))
    deviations = np.empty(len(values))
    deviations[ranked.order] = ranked.positive * (below[tie] - auc) / hits.sum()
    deviations[ranked.order] += ranked.negative * (above[tie] - auc) / misses.sum()
    return auc, deviations


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Rows in the order of their values, and the weights of both classes."""

    order: npt.NDArray[np.intp]
    positive: Floats
    """The weight of each row in this order, 0 in those of the other class."""
    negative: Floats
    starts: npt.NDArray[np.intp]
    """Where each of the different values begins."""
    hits: Floats
    """The weight of the class at each of these values, and of the other."""
    misses: Floats

    @classmethod
    def of(cls, values: Floats, truth: Mask, weights: Floats | None) -> _Ranked:
        order = np.argsort(values)
        weight = np.ones(len(values)) if weights is None else weights[order] / weights.max()
        # One by one, since small weights are lost in the difference of large ones.
        positive, negative = (np.where(side, weight, 0.0) for side in (truth[order], ~truth[order]))
        ordered = values[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        hits, misses = np.add.reduceat(positive, starts), np.add.reduceat(negative, starts)
        return cls(order, positive, negative, starts, hits, misses)

    @property
    def auc(self) -> float:
        """How often a row of the class has the larger value; a tie is half."""
        below = np.cumsum(self.misses) - self.misses / 2
        return float((self.hits * below).sum() / (self.hits.sum() * self.misses.sum()))


def rank_correlation(a: Floats, b: Floats, weights: Floats | None) -> tuple[float, float]:
    """Spearman's rank correlation, and its standard error if there is no relation."""
    weight = np.ones(len(a)) if weights is None else weights / weights.max()
    x, y = (ranks - np.average(ranks, weights=weight) for ranks in map(_ranks, (a, b)))
    variances = (weight * x * x).sum() * (weight * y * y).sum()
    if variances == 0.0:
        return 0.0, math.inf
    r = float((weight * x * y).sum() / math.sqrt(variances))
    return r, 1.0 / math.sqrt(max(1.0, _effective_rows(weight) - 1.0))


def _ranks(values: Floats) -> Floats:
    """Ranks from 0 to 1; equal values share one."""
    _, place, ties = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = ((np.cumsum(ties) - ties / 2) / len(values))[place]
    return ranks


def _effective_rows(weight: Floats) -> float:
    squares = float((weight * weight).sum())
    return float(weight.sum()) ** 2 / squares if squares > 0.0 else 0.0


def describe_backwards(
    found: Sequence[Backwards], classes: Sequence[Any], positive: int | None
) -> str:
    """Say what is backwards, the likely cause and the remedy.

    `positive` is the class of a single column; None if there are several.
    """
    worst = max(found, key=lambda each: each.standard_errors)
    column = worst.column if positive is None else positive
    label = classes[column]
    of = "" if worst.classifier is None else f" of classifier {worst.classifier + 1}"
    far = f"{worst.standard_errors:.0f} standard errors below"
    evidence = (
        f"rows of {label!r} have lower scores than the others (AUC {worst.auc:.2f}, {far} 0.5)"
        if worst.auc is not None
        else "calibrated probabilities are low where the scores are high (correlation of ranks "
        f"{worst.correlation:.2f}, {far} 0)"
    )
    text = f"the scores{of} rank {label!r} backwards: {evidence}. "
    if positive is not None:
        other = classes[1 - column]
        return (
            f"{text}Most likely they are the scores of {other!r}; if so, use "
            f"pos_label={other!r} (in the command, --positive {other})."
        )
    if len(found) > 1 and len(classes) > 2:
        several = ", ".join(repr(classes[j]) for j in sorted({each.column for each in found}))
        text += f"The classes that are ranked backwards are {several}. "
    return (
        f"{text}Most likely the columns are not in the order of the classes, or the classifier "
        "was trained with other labels; give the columns in the order of the classes, or name them "
        "after the classes."
    )


def warn_of_backwards(
    found: Sequence[Backwards], classes: Sequence[Any], positive: int | None, stacklevel: int
) -> None:
    """Warn once of all classes that are ranked backwards, if any."""
    if found:
        message = describe_backwards(found, classes, positive)
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
