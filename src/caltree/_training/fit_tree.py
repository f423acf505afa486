"""The making of a tree: everything that is chosen is chosen here, by cross-validation.

The native core does the work; the jobs it is given are independent of each other, so that their
number of threads never changes a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from .. import _core
from .._fitted.model import TreeModel
from .._inputs.folds import Fold, Rows
from .averaging import Grown, Levels, held_out_levels, level_sizes
from .do_no_harm import Selection
from .settings import Problem, Recipe

Floats: TypeAlias = npt.NDArray[np.float64]

# How far beyond its own stopping point a fold's boosting runs ahead: the sums over folds may want
# a few iterations more than the fold alone.
_RUN_AHEAD = 12
_NO_ROWS: Rows = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True)
class Made:
    """A tree that was made, and why it was made so."""

    tree: TreeModel
    selection: Selection
    levels: list[dict[str, Any]]
    splits: str
    boosting_iterations: int | None
    alpha: float | None
    iteration_rmse: Floats | None
    """Held-out RMSE after 0, 1, 2, … iterations, mean over folds."""
    pruning_path: tuple[Floats, Floats] | None
    """Pruning strengths and the held-out loss of each."""


def make_tree(problem: Problem, folds: Sequence[Fold], recipe: Recipe, n_jobs: int | None) -> Made:
    """Grow, fit and prune a tree on all rows, as the folds advise."""
    run = Runner(n_jobs)
    everything = np.arange(len(problem.labels), dtype=np.uint32)
    parts: list[Fold] = [(everything, _NO_ROWS)]
    if recipe.needs_trees_of_folds:
        parts += folds
    iterations, sums = None, None
    if recipe.boosts:
        grown, iterations, sums = _boosted(problem, parts, folds, recipe, run)
        tried = [_judged(problem, grown, folds, recipe.splits, recipe, run)]
    else:
        trees = _shrunken(problem, parts, recipe, run)
        tried = [_judged(problem, trees[k], folds, k, recipe, run) for k in trees]
    best = min(tried, key=lambda one: one.loss)
    selection, table, shares = selected(best, recipe)
    arrays = _core.finished_tree(*best.tree, best.pruned.alpha, best.sizes, shares)
    return Made(
        tree=problem.tree(arrays, boosted=recipe.boosts),
        selection=selection,
        levels=table,
        splits=best.splits,
        boosting_iterations=iterations,
        alpha=best.pruned.alpha,
        iteration_rmse=None if sums is None else sums / len(folds),
        pruning_path=best.pruned.path,
    )


@dataclass(frozen=True)
class Judged:
    """A tree on all rows, and what those of the folds tell of it."""

    tree: Grown
    splits: str
    pruned: Pruned
    sizes: Floats
    levels: Levels | None
    """None if no level needs to be chosen."""
    loss: float


def _judged(
    problem: Problem,
    grown: Sequence[Grown],
    folds: Sequence[Fold],
    splits: str,
    recipe: Recipe,
    run: Runner,
) -> Judged:
    pruned = pruned_by_folds(grown, recipe, run)
    n_rows = len(problem.labels) if problem.weights is None else float(problem.weights.sum())
    sizes = level_sizes(n_rows) if recipe.path_averaging else np.array([math.inf])
    if not (recipe.do_no_harm or recipe.path_averaging):
        return Judged(grown[0], splits, pruned, sizes, None, pruned.loss)
    levels = held_out_levels(
        problem,
        grown[1:],
        folds,
        pruned.alpha,
        sizes,
        boosted=recipe.boosts,
        objective=recipe.objective,
        may_leave_alone=recipe.do_no_harm,
    )
    loss = levels.loss(levels.whole_average()) if recipe.path_averaging else pruned.loss
    return Judged(grown[0], splits, pruned, sizes, levels, loss)


def selected(best: Judged, recipe: Recipe) -> tuple[Selection, list[dict[str, Any]], Floats]:
    """What was chosen, the levels, and their shares in the tree."""
    if best.levels is None:
        return [], [], np.array([0.0, 1.0])
    levels = best.levels
    if not recipe.do_no_harm:
        shares = levels.whole_average()
        return [], levels.table(shares), shares
    local, simplest = levels.simplest(averaging=recipe.path_averaging)
    selection, shares = levels.select(local, simplest, may_average=recipe.path_averaging)
    return selection, levels.table(shares), shares[len(shares) - len(best.sizes) - 1 :]


@dataclass(frozen=True)
class Pruned:
    """A pruning strength, and how it was chosen."""

    alpha: float | None
    path: tuple[Floats, Floats] | None
    loss: float
    """Held out; infinite if nothing was."""


def pruned_by_folds(grown: Sequence[Grown], recipe: Recipe, run: Runner) -> Pruned:
    if recipe.pruning != "cv" and recipe.splits != "cv":
        return Pruned(recipe.pruning, None, math.inf)
    (alphas, _), *sequences = run([_sequencing(*tree) for tree in grown])
    if recipe.pruning == "cv":
        alpha, path = _choose_alpha(alphas, sequences, recipe)
        return Pruned(alpha, path, float(path[1].min()))
    strength = 0.0 if recipe.pruning is None else recipe.pruning
    losses = _held_out_losses(np.array([strength]), sequences, recipe)
    return Pruned(recipe.pruning, None, float(losses[0]))


class Runner:
    """Runs jobs in threads."""

    def __init__(self, n_jobs: int | None) -> None:
        self._run = Parallel(n_jobs=n_jobs, require="sharedmem")

    def __call__(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        return list(self._run(delayed(job)() for job in jobs))


def _shrunken(
    problem: Problem, parts: Sequence[Fold], recipe: Recipe, run: Runner
) -> dict[str, list[Grown]]:
    """Trees of shrunken node models on each part, for each kind of splits that is to be tried."""
    local = _core.LocalTraining(
        problem.training, problem.offset, recipe.max_bins, problem.sees_all_scores
    )

    def growing(splits: str, rows: Rows, held_out: Rows) -> Callable[[], Grown]:
        def grow() -> Grown:
            by_class = splits == "gain_ratio"
            return local.grow(
                rows,
                held_out,
                recipe.penalty,
                recipe.min_samples_split,
                recipe.min_samples_leaf,
                recipe.depth,
                recipe.objective == "log_loss",
                _growing(problem.training, rows, recipe)() if by_class else None,
            )

        return grow

    tried = ("residual", "gain_ratio") if recipe.splits == "cv" else (recipe.splits,)
    trees = run([growing(splits, *part) for splits in tried for part in parts])
    n = len(parts)
    return {splits: trees[k * n : (k + 1) * n] for k, splits in enumerate(tried)}


def _boosted(
    problem: Problem,
    parts: Sequence[Fold],
    folds: Sequence[Fold],
    recipe: Recipe,
    run: Runner,
) -> tuple[list[Grown], int, Floats | None]:
    """Trees of LogitBoost's node models on each part, and the number of iterations."""
    training = problem.training
    # The structure does not depend on the number of iterations: both are sought at once.
    chosen_by_cv = recipe.boosting_iterations is None
    paths = [_core.boosting_path(training, *fold) for fold in folds] if chosen_by_cv else []
    first: list[Callable[[], Any]] = [_growing(training, rows, recipe) for rows, _ in parts]
    first += [_running_ahead(path, recipe) for path in paths]
    structures = run(first)[: len(parts)]
    iterations, sums = recipe.boosting_iterations, None
    if iterations is None:
        iterations, sums = _core.choose_iterations(paths, recipe.max_boosting_iterations)
    n_folds = max(len(folds), 2)
    second = [
        _fitting(training, structure, *part, iterations, n_folds, recipe)
        for structure, part in zip(structures, parts, strict=True)
    ]
    return list(zip(structures, run(second), strict=True)), iterations, sums


def _growing(training: _core.Training, rows: Rows, recipe: Recipe) -> Callable[[], _core.Structure]:
    def grow() -> _core.Structure:
        sizes = (recipe.min_samples_split, recipe.min_samples_leaf)
        return _core.grow(training, rows, *sizes, recipe.depth)

    return grow


def _running_ahead(path: _core.BoostingPath, recipe: Recipe) -> Callable[[], None]:
    def run_ahead() -> None:
        path.run_ahead(recipe.max_boosting_iterations, _RUN_AHEAD)

    return run_ahead


def _fitting(
    training: _core.Training,
    structure: _core.Structure,
    rows: Rows,
    held_out: Rows,
    iterations: int,
    n_folds: int,
    recipe: Recipe,
) -> Callable[[], _core.NodeModels]:
    """Node models of one tree; held-out rows make it a fold's."""

    def fit() -> _core.NodeModels:
        return _core.fit_models(
            training,
            structure,
            rows,
            held_out,
            # No iteration at all is no model: then every node chooses for itself.
            iterations if iterations > 0 else None,
            recipe.max_boosting_iterations,
            n_folds,
            recipe.constant_scores_give_frequencies,
            len(held_out) == 0 or recipe.do_no_harm or recipe.path_averaging,
        )

    return fit


def _sequencing(
    structure: _core.Structure, models: _core.NodeModels
) -> Callable[[], tuple[Floats, Floats]]:
    def sequence() -> tuple[Floats, Floats]:
        return _core.pruning_sequence(structure, models)

    return sequence


def _choose_alpha(
    alphas: Floats, sequences: Sequence[tuple[Floats, Floats]], recipe: Recipe
) -> tuple[float, tuple[Floats, Floats]]:
    """The pruning strength with the lowest held-out loss; of equals the stronger."""
    # The published method takes the root alone for a tree of strength 1.
    beyond = 1.0 if recipe.boosts else 4.0 * max(1.0, alphas.max())
    strengths = np.sqrt(alphas * np.append(alphas[1:], beyond))
    losses = _held_out_losses(strengths, sequences, recipe)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    return float(strengths[best]), (strengths, losses)


def _held_out_losses(
    strengths: Floats, sequences: Sequence[tuple[Floats, Floats]], recipe: Recipe
) -> Floats:
    """The held-out loss of each pruning strength, mean over folds."""
    total = np.zeros(len(strengths))
    for fold_alphas, fold_errors in sequences:
        # The alphas of a sequence need not rise: a step is passed once any alpha exceeds.
        highest = np.maximum.accumulate(fold_alphas)
        losses = fold_errors if recipe.objective == "log_loss" else np.sqrt(fold_errors)
        total += losses[np.searchsorted(highest, strengths, side="right") - 1]
    return np.asarray(total / len(sequences))
