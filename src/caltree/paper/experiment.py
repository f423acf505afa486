"""The whole experiment: every fold once, in parallel, resumed where it was stopped."""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import joblib

from .data import DataSet
from .datasets import check_available, load
from .protocol import Outcome, calibrators_for, run_fold
from .store import Cell, Shape, Store
from .workers import workers


@dataclass(frozen=True)
class Plan:
    """The folds to carry out, and their settings."""

    datasets: tuple[str, ...]
    learners: tuple[str, ...]
    calibrators: tuple[str, ...]
    runs: int = 10
    folds: int = 10
    seed: int = 1
    data_dir: str | None = None
    first_folds: int | None = None
    """The number of folds of each run that are carried out, if not all."""

    def cells(self) -> list[Cell]:
        """Every fold; all data sets and learners before the next run."""
        return [
            Cell(dataset, learner, run, fold)
            for run in range(self.runs)
            for dataset in self.datasets
            for learner in self.learners
            for fold in range(min(self.folds, self.first_folds or self.folds))
        ]

    def settings(self) -> dict[str, str]:
        """The settings that all results of a file must have in common."""
        return {"folds": str(self.folds), "seed": str(self.seed)}


@dataclass(frozen=True)
class Done:
    """A fold that was carried out, or that failed."""

    cell: Cell
    outcome: Outcome | None
    error: str = ""


def remaining(plan: Plan, store: Store) -> list[Cell]:
    """The folds that lack the result of some calibrator."""
    done = store.done()
    return [
        cell
        for cell in plan.cells()
        if not set(calibrators_for(cell.learner, plan.calibrators)) <= done.get(cell, set())
    ]


def carry_out(
    plan: Plan,
    store: Store,
    *,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    report: Callable[[Done], None] = lambda done: None,
) -> list[Done]:
    """Carry out what remains of a plan, and store each fold as soon as it is there.

    With joblib `n_jobs` folds are done at a time, or they are by the workers of a Dask scheduler,
    given its address, which read the data from the same folder. `report` is called with each fold
    when it is done. Those that failed are returned, and tried again next time.
    """
    _check_datasets(plan, store)
    failures = []
    with workers(scheduler):
        run = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        jobs = (
            joblib.delayed(_run_cell)(plan, cell, missing)
            for cell, missing in _claim_cells(plan, store)
        )
        for done in run(jobs):
            if done.outcome is None:
                store.release(done.cell)
                failures.append(done)
            else:
                store.add(done.cell, done.outcome.measures, done.outcome.seconds)
            report(done)
    return failures


def _check_datasets(plan: Plan, store: Store) -> None:
    """Read every data set that is still needed, before any work is done."""
    needed = {cell.dataset for cell in remaining(plan, store)}
    names = [name for name in plan.datasets if name in needed]
    check_available(names, plan.data_dir)
    shapes = {name: shape_of(_load(name, plan.data_dir)) for name in names}
    for name, shape in shapes.items():
        store.add_dataset(name, shape)


def _claim_cells(plan: Plan, store: Store) -> Iterator[tuple[Cell, tuple[str, ...]]]:
    """The folds that nobody else is at, each with the calibrators it lacks."""
    for cell in remaining(plan, store):
        if store.claim(cell):
            # Another process may have finished it since the list was made.
            there = store.calibrators_of(cell)
            wanted = calibrators_for(cell.learner, plan.calibrators)
            missing = tuple(name for name in wanted if name not in there)
            if missing:
                yield cell, missing
            else:
                store.release(cell)


def _run_cell(plan: Plan, cell: Cell, calibrators: Sequence[str]) -> Done:
    given = (cell.learner, cell.run, cell.fold, calibrators)
    try:
        data = _load(cell.dataset, plan.data_dir)
        # A Dask worker would hand the learner's folds to the others, and count their seconds too.
        with joblib.parallel_config(backend="sequential"):
            outcome = run_fold(data, *given, n_folds=plan.folds, seed=plan.seed)
    except Exception:
        return Done(cell, None, traceback.format_exc())
    return Done(cell, outcome)


@lru_cache(maxsize=4)
def _load(name: str, data_dir: str | None) -> DataSet:
    return load(name, data_dir)


def shape_of(data: DataSet) -> Shape:
    """The size of a data set and a fingerprint of all its values."""
    import pandas

    digest = hashlib.sha256()
    for column in data.X:
        values = data.X[column]
        categories = list(getattr(values.dtype, "categories", ()))
        digest.update(repr((column, categories)).encode())
        digest.update(pandas.util.hash_pandas_object(values, index=False).to_numpy().tobytes())
    digest.update("\0".join(data.y).encode())
    n_rows, n_attributes = data.X.shape
    fingerprint = digest.hexdigest()[:16]
    return Shape(n_rows, n_attributes, len(data.classes), fingerprint, " ".join(data.notes))
