"""Results side by side: who is better where, and is it significant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from caltree.paper.statistics import compare, corrected_resampled_t_test
from caltree.paper.store import Store, pair_folds

from .calibrators import ALL

MEASURES = ("rmse", "log_loss", "brier_score", "calibration_error", "auc")
"""Less is better; an AUC, of which more would be, is read as what it lacks to 1."""
SIGNIFICANCE = 0.01

Place: TypeAlias = tuple[str, str]
"""A data set and a learner."""
Results: TypeAlias = Mapping[tuple[int, int], float]
"""A measure by run and fold."""


@dataclass(frozen=True)
class Grid:
    """One measure of every calibrator in every place."""

    results: Mapping[Place, Mapping[str, Results]]
    n_classes: Mapping[str, int]
    """Of each data set."""
    n_rows: Mapping[str, int]
    """Of each data set."""
    n_folds: int

    def where(self, is_wanted: Callable[[str], bool]) -> Grid:
        """The same, of some data sets."""
        some = {place: there for place, there in self.results.items() if is_wanted(place[0])}
        return replace(self, results=some)

    def calibrators(self) -> list[str]:
        """Those that have results."""
        found = {name for there in self.results.values() for name in there}
        return [name for name in ALL if name in found]

    def n_runs(self) -> int:
        """The number of runs that have been begun."""
        runs = [
            run for there in self.results.values() for each in there.values() for run, _ in each
        ]
        return 1 + max(runs, default=-1)


@dataclass(frozen=True)
class Pair:
    """Two calibrators in one place, on the runs of which both have every fold."""

    place: Place
    mine: float
    other: float
    """Means."""
    p: float
    verdict: str
    """"win" if the first is significantly better; "draw", "loss"."""
    n_runs: int

    @property
    def worse_by(self) -> float:
        """By which part of the other's mean the first is worse; negative where it is better."""
        if self.mine == self.other:
            return 0.0
        return self.mine / self.other - 1.0 if self.other else math.inf


def read(store: Store, measure: str, runs: int | None = None) -> Grid:
    """Read a measure from a file of results.

    Parameters
    ----------
    store : Store
        The file.
    measure : str
        One of `MEASURES`.
    runs : int, optional
        Use the first so many runs, and of each place only the calibrators that have all of them.
    """
    n_folds = int(store.settings()["folds"])
    results: dict[Place, dict[str, Results]] = {}
    for dataset, learner, name in _series(store):
        found = store.results(dataset, learner, name, measure)
        if measure == "auc":
            found = {key: 1.0 - value for key, value in found.items()}
        if runs is not None:
            found = {key: value for key, value in found.items() if key[0] < runs}
        if found and (runs is None or len(found) == runs * n_folds):
            results.setdefault((dataset, learner), {})[name] = found
    shapes = store.datasets().items()
    n_classes = {name: shape.classes for name, shape in shapes}
    return Grid(results, n_classes, {name: shape.rows for name, shape in shapes}, n_folds)


def _series(store: Store) -> list[tuple[str, str, str]]:
    done = store.done().items()
    return sorted({(cell.dataset, cell.learner, name) for cell, names in done for name in names})


def compared(grid: Grid, mine: str, other: str) -> list[Pair]:
    """Two calibrators wherever both have a whole run."""
    pairs = []
    for place, there in grid.results.items():
        one, two = pair_folds(there.get(mine, {}), there.get(other, {}), grid.n_folds)
        if len(one):
            test = corrected_resampled_t_test(one, two, grid.n_folds)
            verdict = compare(one, two, SIGNIFICANCE, n_folds=grid.n_folds)
            n_runs = len(one) // grid.n_folds
            pairs.append(Pair(place, mean(one), mean(two), test.p, verdict, n_runs))
    return pairs


def against_best_global(grid: Grid, mine: str) -> list[tuple[str, Pair]]:
    """A calibrator beside the global one it does worst against, by name, wherever there is one."""
    best: dict[Place, tuple[str, Pair]] = {}
    for other in grid.calibrators():
        if other == mine or not ALL[other].is_global:
            continue
        for pair in compared(grid, mine, other):
            if pair.place not in best or pair.worse_by > best[pair.place][1].worse_by:
                best[pair.place] = other, pair
    return list(best.values())


def common_means(grid: Grid, names: Sequence[str]) -> dict[Place, dict[str, float]]:
    """The means of several calibrators wherever all of them have a whole run in common."""
    means = {}
    for place, there in grid.results.items():
        keys = _whole_runs([there.get(name, {}) for name in names], grid.n_folds)
        if keys:
            means[place] = {name: mean(there[name][key] for key in keys) for name in names}
    return means


def _whole_runs(several: Sequence[Results], n_folds: int) -> list[tuple[int, int]]:
    """The folds of those runs in which every fold has all results."""
    shared = set.intersection(*(set(each) for each in several)) if several else set()
    n_done = Counter(run for run, _ in shared)
    return sorted(key for key in shared if n_done[key[0]] == n_folds)


def mean(values: Iterable[float]) -> float:
    """The mean of numbers."""
    numbers = list(values)
    return math.fsum(numbers) / len(numbers)
