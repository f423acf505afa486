"""All folds once, resumed where they were left; several processes may share the work."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from caltree.paper.datasets import check_available
from caltree.paper.experiment import Done, Plan, shape_of
from caltree.paper.protocol import Outcome, calibrate, measures, seed_of
from caltree.paper.store import Cell, Shape, Store
from caltree.paper.workers import workers

from .calibrators import ALL, applicable
from .data import LEARNERS, MOST_ROWS, MOST_ROWS_OF_SVM, prepared, scores_file, scores_of


@dataclass(frozen=True)
class Comparison(Plan):
    """What to compare, and where scores are kept."""

    runs: int = 3
    folds: int = 5
    scores: str = "scores"
    only_cached: bool = False

    def cells(self) -> list[Cell]:
        """Every fold, or those whose scores are there."""
        cells = super().cells()
        if not self.only_cached:
            return cells
        return [cell for cell in cells if scores_file(self.scores, cell).exists()]

    def settings(self) -> dict[str, str]:
        """What all results of a file must have in common."""
        rows = {"most_rows": str(MOST_ROWS), "most_rows_of_svm": str(MOST_ROWS_OF_SVM)}
        return {**super().settings(), **rows}


class Results(Store):
    """A file of results of which some can be forgotten."""

    def forget(self, calibrators: Sequence[str]) -> int:
        """Remove all results of some calibrators; returns how many folds had any."""
        with self._transaction() as db:
            cells = "SELECT DISTINCT dataset, learner, run, fold FROM result WHERE calibrator = ?"
            found = {row for name in calibrators for row in db.execute(cells, (name,))}
            for name in calibrators:
                db.execute("DELETE FROM result WHERE calibrator = ?", (name,))
                db.execute("DELETE FROM cost WHERE step = ?", (_step(name),))
        return len(found)


def remaining(plan: Comparison, store: Store) -> dict[Cell, tuple[str, ...]]:
    """The folds that lack results, each with the calibrators it lacks."""
    done, shapes = store.done(), store.datasets()
    lacking = {
        cell: _lacking(plan, shapes.get(cell.dataset), done.get(cell, set()))
        for cell in plan.cells()
    }
    return {cell: names for cell, names in lacking.items() if names}


def carry_out(
    plan: Comparison,
    store: Store,
    *,
    n_jobs: int | None = None,
    scheduler: str | None = None,
    report: Callable[[Done], None] = lambda done: None,
) -> list[Done]:
    """Carry out what remains, and store each fold as soon as it is there.

    Parameters
    ----------
    plan : Comparison
        What to carry out.
    store : Store
        Where the results go.
    n_jobs : int, optional
        How many folds at a time, with joblib.
    scheduler : str, optional
        The address of a Dask scheduler; its workers do the work, and share the folders of data
        and scores.
    report : callable
        Called with each fold.

    Returns
    -------
    list of Done
        The folds in which something failed, which is tried again next time.
    """
    _note_datasets(plan, store)
    failures = []
    with workers(scheduler, package=Path(__file__).parent):
        run = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
        for done in run(joblib.delayed(_one)(plan, *job) for job in _claimed(plan, store)):
            outcome = done.outcome or Outcome()
            store.add(done.cell, outcome.measures, outcome.seconds)
            if done.error:
                failures.append(done)
            report(done)
    return failures


def _note_datasets(plan: Comparison, store: Store) -> None:
    """Read every data set that is still needed, before any work is done."""
    needed = {cell.dataset for cell in remaining(plan, store)}
    names = [name for name in plan.datasets if name in needed]
    check_available(names, plan.data_dir)
    for name in names:
        store.add_dataset(name, shape_of(prepared(name, str(plan.data_dir))))


def _claimed(plan: Comparison, store: Store) -> Iterator[tuple[Cell, Shape, tuple[str, ...]]]:
    """The folds that nobody else is at."""
    shapes: Mapping[str, Shape] = store.datasets()
    for cell in remaining(plan, store):
        if store.claim(cell):
            # Another process may have finished it since the list was made.
            names = _lacking(plan, shapes[cell.dataset], store.calibrators_of(cell))
            if names:
                yield cell, shapes[cell.dataset], names
            else:
                store.release(cell)


def _lacking(plan: Comparison, shape: Shape | None, there: set[str]) -> tuple[str, ...]:
    """The calibrators of the plan that apply to a fold and have no results."""
    wanted = plan.calibrators if shape is None else applicable(plan.calibrators, shape.classes)
    return tuple(name for name in wanted if name not in there)


def _one(plan: Comparison, cell: Cell, shape: Shape, calibrators: Sequence[str]) -> Done:
    """One fold, on one thread; a calibrator that fails does not take the others along."""
    outcome, errors = Outcome(), []
    seed = seed_of(cell.dataset, cell.run, cell.fold, plan.seed)
    with threadpool_limits(1), joblib.parallel_config(backend="sequential"):
        try:
            cached = scores_of(
                cell, shape, plan.scores, str(plan.data_dir), n_folds=plan.folds, seed=plan.seed
            )
        except Exception:
            return Done(cell, None, traceback.format_exc())
        outcome.seconds[cell.learner] = cached.seconds
        for name in calibrators:
            start = time.process_time()  # others may use the machine too
            try:
                made = _make(name, cell, seed)
                probabilities = calibrate(cached.scored, made, cached.classes)
                seconds = time.process_time() - start
                worth = measures(cached.scored.y_test, probabilities, cached.classes)
            except Exception:
                errors.append(f"{name}: {traceback.format_exc()}")
            else:
                outcome.measures[name] = worth
                outcome.seconds[_step(name)] = seconds
    return Done(cell, outcome, "\n".join(errors))


def _make(name: str, cell: Cell, seed: int) -> Any:
    """A calibrator, with a learner that is not trained yet if it needs one."""
    entry = ALL[name]
    made = entry.make(seed)
    return made.set_params(learner=LEARNERS[cell.learner](seed)) if entry.needs_learner else made


def _step(calibrator: str) -> str:
    return f"calibrator {calibrator}"
