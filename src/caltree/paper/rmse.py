"""The RMSE of a learner with a calibrator on a data set: over folds, or over all rows."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .protocol import ALONE, n_test_rows
from .store import Store, pair_folds

OWN = ("none", "tree", "forest", "logistic_model_tree")
"""Beside the calibrators of the paper: no calibration, ours, and a classifier alone."""


def by_fold(
    store: Store, learner: str, dataset: str, calibrator: str, measure: str = "rmse"
) -> dict[tuple[int, int], float]:
    """A measure by run and fold, of a calibrator of the paper or one of `OWN`."""
    if calibrator in ALONE:
        return store.results(dataset, calibrator, "none", measure)
    return store.results(dataset, learner, calibrator, measure)


def overall_rmse(
    store: Store, learner: str, dataset: str, calibrator: str, *, pooled: bool = False
) -> float | None:
    """The mean RMSE of all folds that were carried out, or that of their rows together.

    None if there are no results.
    """
    found = by_fold(store, learner, dataset, calibrator)
    if not found:
        return None
    if pooled:
        n_folds = int(store.settings()["folds"])
        return pooled_rmse(found, store.datasets()[dataset].rows, n_folds)
    return math.fsum(found.values()) / len(found)


def mean_pairs(
    store: Store,
    learner: str,
    one: str,
    other: str,
    datasets: tuple[str, ...],
    measure: str = "rmse",
) -> dict[str, tuple[float, float]]:
    """The mean RMSE of two calibrators over all runs that are complete, by data set.

    Or the mean of another measure.
    """
    n_folds = int(store.settings()["folds"])
    found = {}
    for dataset in datasets:
        first = by_fold(store, learner, dataset, one, measure)
        second = by_fold(store, learner, dataset, other, measure)
        ours, theirs = pair_folds(first, second, n_folds)
        if len(ours):
            found[dataset] = (float(ours.mean()), float(theirs.mean()))
    return found


def pooled_rmse(results: Mapping[tuple[int, int], float], n_rows: int, n_folds: int) -> float:
    """Return the RMSE of the test rows of all folds together, from that of each run and fold.

    The rows of the data set and the folds of a run say how much each fold counts.
    """
    sizes = {key: n_test_rows(n_rows, n_folds, key[1]) for key in results}
    squares = math.fsum(size * results[key] ** 2 for key, size in sizes.items())
    return math.sqrt(squares / sum(sizes.values()))
