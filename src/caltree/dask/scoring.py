"""Scores of classifiers, a partition at a time: of any rows, or out of fold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._classifier.out_of_fold import TRAINING
from .._classifier.response import Method, check_scores, class_scores
from .._inputs.arrays import Classes, Floats
from .._inputs.folds import hashed_folds
from .._inputs.indexing import count_rows, take_rows
from .._running import progress
from .collections import partitions, rebuild
from .tasks import Tasks

Parts: TypeAlias = list[Delayed]

# Packages whose classifiers would turn a Dask collection into an array of this machine.
_ORDINARY = ("sklearn", "lightgbm.sklearn", "xgboost.sklearn", "catboost", "imblearn", "caltree")


def refuse_ordinary(estimator: Any) -> None:
    """Refuse a classifier that does not take Dask collections, as far as one can tell."""
    writers = (each.__module__ for each in type(estimator).__mro__ if "fit" in vars(each))
    module = next(writers, "")
    if any(module == name or module.startswith(name + ".") for name in _ORDINARY):
        raise TypeError(
            f"estimator {type(estimator).__name__} cannot be fitted to Dask collections; use one "
            "that can, e.g. lightgbm.DaskLGBMClassifier, or fit it elsewhere and give "
            f"FrozenEstimator({type(estimator).__name__}(...))"
        )


def local_classifier(estimator: Any) -> Any:
    """A classifier for plain rows; None for one that wants Dask collections."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    if hasattr(inner, "to_local"):
        return inner.to_local()
    wants_dask = any("dask" in name for name in type(inner).__module__.split("."))
    return estimator if isinstance(estimator, FrozenEstimator) and not wants_dask else None


def lazy_scores(estimator: Any, X: Any, classes: Classes, method: Method) -> Parts:
    """The scores of every partition of `X`, one column for each of `classes`."""
    local = local_classifier(estimator)
    if local is None:
        inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
        X, known = getattr(inner, method)(X), np.asarray(getattr(inner, "classes_", classes))
        name = type(inner).__name__
        score = partial(check_scores, known=known, classes=classes, method=method, name=name)
    else:
        score = partial(class_scores, local, classes=classes, method=method)
    shared = dask.delayed(score)
    ask = dask.delayed(_scores)
    return [ask(i, shared, x, len(classes)) for i, x in enumerate(partitions(X=X)["X"])]


def _scores(partition: int, score: Callable[[Any], Floats], X: Any, n_classes: int) -> Floats:
    if count_rows(X, "X") == 0:
        return np.empty((0, n_classes))
    try:
        return score(X)
    except ValueError as error:
        raise ValueError(f"{error} (in partition {partition})") from error


@dataclass(frozen=True)
class FoldedRows:
    """Rows of Dask collections, dealt into folds by their numbers."""

    tasks: Tasks
    X: Any
    y: Any
    weights: dict[str, Any]
    """As the classifier's `fit` calls them, if it takes any."""
    counts: Sequence[int]
    """The rows of each partition."""
    n_folds: int

    def scores(self, estimator: Any, classes: Classes, method: Method) -> Parts:
        """Lazy scores of every row by a classifier that was fitted to the rows of other folds."""
        firsts = np.cumsum([0, *self.counts])[:-1].tolist()
        deal = [
            dask.delayed(hashed_folds)(first, count, self.n_folds, self.n_folds, 0)
            for first, count in zip(firsts, self.counts, strict=True)
        ]
        counted = self.tasks.compute([dask.delayed(_sizes)(fold, self.n_folds) for fold in deal])
        sizes = np.array(self.tasks.client.gather(counted))
        by_fold = []
        with progress.stage(TRAINING) as training:
            for number in np.flatnonzero(sizes.sum(axis=0)).tolist():
                held = sizes[:, number]
                fitted = self._fit(estimator, deal, number, np.subtract(self.counts, held))
                held_out = self._some(self.X, deal, number, True, held)
                by_fold.append(lazy_scores(fitted, held_out, classes, method))
                training.say(
                    f"fitted fold {number + 1} of {self.n_folds} by {type(estimator).__name__}"
                )
        put = dask.delayed(_in_order)
        return [put(fold, list(parts)) for fold, *parts in zip(deal, *by_fold, strict=True)]

    def _fit(self, estimator: Any, deal: Parts, number: int, sizes: Any) -> Any:
        given = {"X": self.X, "y": self.y, **self.weights}
        training = {
            name: self._some(value, deal, number, False, sizes) for name, value in given.items()
        }
        return clone(estimator).fit(training.pop("X"), training.pop("y"), **training)

    def _some(self, values: Any, deal: Parts, number: int, held_out: bool, sizes: Any) -> Any:
        """The rows that a fold holds out, or those it does not."""
        pairs = zip(partitions(values=values)["values"], deal, strict=True)
        take = dask.delayed(_of_fold)
        parts = [take(part, fold, number, held_out) for part, fold in pairs]
        return rebuild(values, parts, sizes.tolist())


def _sizes(fold: npt.NDArray[np.uint8], n_folds: int) -> npt.NDArray[np.intp]:
    return np.bincount(fold, minlength=n_folds)


def _of_fold(part: Any, fold: npt.NDArray[np.uint8], number: int, held_out: bool) -> Any:
    return take_rows(part, np.flatnonzero((fold == number) == held_out))


def _in_order(fold: npt.NDArray[np.uint8], parts: list[Floats]) -> Floats:
    """The scores of held-out rows, each in the place of its row."""
    width = max((part.shape[1] for part in parts if len(part)), default=1)
    scores = np.full((len(fold), width), np.nan)
    for number, part in zip(np.unique(fold), filter(len, parts), strict=True):
        scores[fold == number] = part
    return scores
