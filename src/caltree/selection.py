"""The making of a tree: everything that is chosen is chosen here, by cross-validation.

The native core does the work; the jobs it is given are independent of each other, so that their
number of threads never changes a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from . import _core
from .attributes import Attributes
from .choice import GLOBAL, LEAVE_ALONE, LOCAL, Selection, choose, chosen, row_losses
from .folds import Fold, Rows
from .model import TreeModel
from .scores import is_offset
from .validation import Labels

Floats: TypeAlias = npt.NDArray[np.float64]
Grown: TypeAlias = tuple[_core.Structure, _core.NodeModels]

# How far beyond its own stopping point a fold's boosting runs ahead: the sums over folds may want
# a few iterations more than the fold alone.
_RUN_AHEAD = 12
# The work of a node model grows with the square of the scores each log-odds sees.
_MOST_SCORES = 30
_NO_ROWS: Rows = np.empty(0, dtype=np.uint32)


@dataclass(frozen=True)
class Recipe:
    """How a tree is to be made."""

    splits: str
    node_models: str
    min_samples_split: float
    min_samples_leaf: float
    max_depth: int | None
    penalty: float
    max_bins: int
    boosting_iterations: int | None
    """None: chosen by cross-validation."""
    max_boosting_iterations: int
    pruning: float | Literal["cv"] | None
    constant_scores_give_frequencies: bool
    objective: str
    do_no_harm: bool

    @property
    def boosts(self) -> bool:
        """Whether the node models are those of LogitBoost."""
        return self.node_models == "logitboost"

    @property
    def needs_folds(self) -> bool:
        """Whether anything is left to choose."""
        chooses_iterations = self.boosts and self.boosting_iterations is None
        return chooses_iterations or "cv" in (self.pruning, self.splits) or self.do_no_harm

    @property
    def depth(self) -> int:
        """The greatest depth, as the core wants it."""
        return 2**31 if self.max_depth is None else self.max_depth


@dataclass(frozen=True)
class Problem:
    """The training rows: encoded attributes, labels, and the scores in three forms."""

    known: Attributes
    matrix: Floats
    labels: Labels
    n_classes: int
    odds: Floats
    """What the node models see."""
    offset: Floats | None
    """What the scores say before any correction; None where they are no probabilities."""
    raw: Floats | None
    """The uncalibrated probabilities, likewise."""
    weights: Floats | None

    @cached_property
    def training(self) -> _core.Training:
        """The rows in the core."""
        return _core.Training(
            self.matrix,
            self.known.n_categories,
            self.known.fills,
            self.labels,
            self.n_classes,
            self.odds,
            self.weights,
        )

    @property
    def sees_all_scores(self) -> bool:
        """Whether the log-odds of a class see the scores of the others: not if these are many."""
        return self.n_classes == 2 or self.odds.shape[1] <= _MOST_SCORES

    @property
    def per_state(self) -> int:
        """How many scores each log-odds sees."""
        n_scores = int(self.odds.shape[1])
        return n_scores if self.sees_all_scores else n_scores // self.n_classes

    def tree(self, arrays: dict[str, Any], *, boosted: bool) -> TreeModel:
        """A tree model of what the core finished."""
        coefficients = arrays.pop("coefficients")
        if boosted:
            shape = (len(coefficients), self.n_classes, -1)
            return TreeModel(self.known, **arrays, coefficients=coefficients.reshape(shape))
        has_offset = self.offset is not None
        is_score = has_offset and is_offset(self.n_classes, self.odds.shape[1])
        dense = dense_coefficients(coefficients, self.n_classes, self.odds.shape[1])
        if is_score:
            dense[:, :, 1] += [-0.5, 0.5]
        offset = has_offset and not is_score
        return TreeModel(self.known, **arrays, coefficients=dense, offset=offset)


@dataclass(frozen=True)
class Made:
    """A tree that was made, and why it was made so."""

    tree: TreeModel
    selection: Selection
    splits: str
    boosting_iterations: int | None
    alpha: float | None
    iteration_rmse: Floats | None
    """Held-out RMSE after 0, 1, 2, … iterations, mean over folds."""
    pruning_path: tuple[Floats, Floats] | None
    """Pruning strengths and the held-out loss of each."""


def dense_coefficients(parameters: Floats, n_classes: int, n_scores: int) -> Floats:
    """Coefficients of every class over every score, from those of each log-odds over its own."""
    n_states = 1 if n_classes == 2 else n_classes
    compact = parameters.reshape(len(parameters), n_states, -1)
    if n_states > 1 and compact.shape[2] == 1 + n_scores:
        return compact
    dense = np.zeros((len(parameters), n_classes, 1 + n_scores))
    if n_states == 1:
        dense[:, 1] = compact[:, 0] / 2
        dense[:, 0] = 0.0 - dense[:, 1]
        return dense
    dense[:, :, 0] = compact[:, :, 0]
    classes = np.arange(n_classes)
    for k in range(n_scores // n_classes):
        dense[:, classes, 1 + k * n_classes + classes] = compact[:, :, 1 + k]
    return dense


def make_tree(problem: Problem, folds: Sequence[Fold], recipe: Recipe, n_jobs: int | None) -> Made:
    """Grow, fit and prune a tree on all rows, as the folds advise."""
    run = _Runner(n_jobs)
    everything = np.arange(len(problem.labels), dtype=np.uint32)
    parts: list[Fold] = [(everything, _NO_ROWS)]
    if recipe.pruning == "cv" or recipe.do_no_harm or recipe.splits == "cv":
        parts += folds
    iterations, sums = None, None
    if recipe.boosts:
        grown, iterations, sums = _boosted(problem, parts, folds, recipe, run)
        splits, pruned = recipe.splits, _pruned(grown, recipe, run)
    else:
        grown, splits, pruned = _shrunken(problem, parts, recipe, run)
    selection = _select(problem, grown[1:], parts[1:], pruned.alpha, recipe)
    is_local = not selection or chosen(selection) == LOCAL
    arrays = _core.finished_tree(*grown[0], pruned.alpha if is_local else math.inf)
    boosted = recipe.boosts
    if selection and chosen(selection) == LEAVE_ALONE:
        n_states = 1 if problem.n_classes == 2 else problem.n_classes
        boosted, arrays["coefficients"] = False, np.zeros((1, n_states * (1 + problem.per_state)))
    return Made(
        tree=problem.tree(arrays, boosted=boosted),
        selection=selection,
        splits=splits,
        boosting_iterations=iterations,
        alpha=pruned.alpha,
        iteration_rmse=None if sums is None else sums / len(folds),
        pruning_path=pruned.path,
    )


@dataclass(frozen=True)
class _Pruned:
    """A pruning strength, and how it was chosen."""

    alpha: float | None
    path: tuple[Floats, Floats] | None
    loss: float
    """Held out; infinite if nothing was."""


def _pruned(grown: Sequence[Grown], recipe: Recipe, run: _Runner) -> _Pruned:
    if recipe.pruning != "cv" and recipe.splits != "cv":
        return _Pruned(recipe.pruning, None, math.inf)
    (alphas, _), *sequences = run([_sequencing(*tree) for tree in grown])
    if recipe.pruning == "cv":
        alpha, path = _choose_alpha(alphas, sequences, recipe)
        return _Pruned(alpha, path, float(path[1].min()))
    strength = 0.0 if recipe.pruning is None else recipe.pruning
    losses = _held_out_losses(np.array([strength]), sequences, recipe)
    return _Pruned(recipe.pruning, None, float(losses[0]))


class _Runner:
    """Runs jobs in threads."""

    def __init__(self, n_jobs: int | None) -> None:
        self._run = Parallel(n_jobs=n_jobs, require="sharedmem")

    def __call__(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        return list(self._run(delayed(job)() for job in jobs))


def _shrunken(
    problem: Problem, parts: Sequence[Fold], recipe: Recipe, run: _Runner
) -> tuple[list[Grown], str, _Pruned]:
    """Trees of shrunken node models on each part, with the splits that do better."""
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
    found = [
        (trees[k * n : (k + 1) * n], splits, _pruned(trees[k * n : (k + 1) * n], recipe, run))
        for k, splits in enumerate(tried)
    ]
    return min(found, key=lambda one: one[2].loss)


def _boosted(
    problem: Problem,
    parts: Sequence[Fold],
    folds: Sequence[Fold],
    recipe: Recipe,
    run: _Runner,
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
            len(held_out) == 0 or recipe.do_no_harm,
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


def _select(
    problem: Problem,
    grown: Sequence[Grown],
    folds: Sequence[Fold],
    alpha: float | None,
    recipe: Recipe,
) -> Selection:
    """Judge leaving the scores alone, the root's model and the tree on the held-out rows."""
    if not recipe.do_no_harm:
        return []
    strengths = {GLOBAL: math.inf, LOCAL: alpha}
    losses: dict[str, list[Floats]] = {name: [] for name in strengths}
    for tree, (_, test) in zip(grown, folds, strict=True):
        for name, strength in strengths.items():
            arrays = _core.finished_tree(*tree, strength)
            model = problem.tree(arrays, boosted=recipe.boosts)
            offset = None if problem.offset is None else np.asfortranarray(problem.offset[test])
            odds = np.asfortranarray(problem.odds[test])
            calibrated = model.probabilities(problem.matrix[test], odds, offset)
            losses[name].append(row_losses(calibrated, problem.labels[test], recipe.objective))
    held_out = np.concatenate([test for _, test in folds])
    found = {name: np.concatenate(parts) for name, parts in losses.items()}
    if problem.raw is not None:
        uncalibrated = row_losses(problem.raw[held_out], problem.labels[held_out], recipe.objective)
        found = {LEAVE_ALONE: uncalibrated, **found}
    weights = None if problem.weights is None else problem.weights[held_out]
    return choose(found, weights, recipe.objective)
