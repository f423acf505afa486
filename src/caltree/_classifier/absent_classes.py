"""Classes that no calibration row has: the calibrator does not see them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Classes, Floats
from .._inputs.scores import ScoreType

Indices = npt.NDArray[np.intp]


def all_classes(labels: Classes, fitted: Iterable[Any]) -> Classes:
    """The classes of the labels and of classifiers that were fitted before, sorted."""
    classes = labels
    for estimator in fitted:
        known = getattr(estimator, "classes_", labels)
        if isinstance(known, list) and np.ndim(known[0]) > 0:
            raise ValueError(
                f"estimator {type(estimator).__name__} was fitted to several outputs; "
                "calibrate one label at a time"
            )
        known = np.asarray(known)
        if not _comparable(known, labels) or not np.isin(labels, known).any():
            raise ValueError(
                f"y has the classes {labels.tolist()}, but the fitted "
                f"{type(estimator).__name__} knows {known.tolist()}; use the same labels"
            )
        classes = np.union1d(classes, known)
    return classes


def _comparable(one: Classes, other: Classes) -> bool:
    # numpy would turn numbers beside strings into strings.
    return all(isinstance(label, str) for label in one) == all(
        isinstance(label, str) for label in other
    )


def present_classes(classes: Classes, labels: Classes) -> Indices:
    """The indices of the classes that the labels have, with a warning of those they lack."""
    present = np.flatnonzero(np.isin(classes, labels))
    if len(present) < 2:
        raise ValueError(
            f"the calibration rows have one class only, {classes[present].tolist()[0]!r}; a "
            "calibrator needs rows of at least two classes: use other folds (cv) or more rows"
        )
    if len(present) < len(classes):
        absent = np.delete(classes, present).tolist()
        warnings.warn(
            f"no calibration row has the classes {absent}; they keep the probabilities that the "
            "classifier gives them, and get 0 where it gives margins",
            UserWarning,
            stacklevel=3,
        )
    return present


def take_classes(scores: Floats, present: Indices, n_classes: int, score_type: ScoreType) -> Floats:
    """The scores of the present classes; probabilities are made to sum to 1 over these."""
    if len(present) == n_classes:
        return scores
    by_classifier = scores.reshape(len(scores), -1, n_classes)[:, :, present]
    if score_type == "probability":
        sums = by_classifier.sum(axis=2, keepdims=True)
        even = np.full_like(by_classifier, 1.0 / len(present))
        by_classifier = np.divide(by_classifier, sums, out=even, where=sums > 0)
    return by_classifier.reshape(len(scores), -1)


def add_absent_classes(
    probabilities: Floats, scores: Floats, present: Indices, n_classes: int, score_type: ScoreType
) -> Floats:
    """Add the absent classes to calibrated probabilities, with what the classifier gave them."""
    if len(present) == n_classes:
        return probabilities
    every = np.zeros((len(scores), n_classes))
    if score_type == "probability":
        every[:] = scores.reshape(len(scores), -1, n_classes).mean(axis=1)
    every[:, present] = 0.0
    every[:, present] = probabilities * (1.0 - every.sum(axis=1, keepdims=True))
    return every
