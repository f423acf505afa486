"""The making of a tree: folds, the number of boosting iterations, the pruning strength.

Everything that is chosen is chosen here, by cross-validated RMSE. The native core does the work;
the jobs it is given are independent of each other, so that their number of threads never changes
a result.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from . import _core
from .validation import check_count

Rows = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.uint16]
Mask = npt.NDArray[np.bool_]
Fold = tuple[Rows, Rows]

# How far beyond its own stopping point a fold's boosting runs ahead: the sums over folds may want
# a few iterations more than the fold alone.
_RUN_AHEAD = 12


@dataclass(frozen=True)
class Recipe:
    """How a tree is to be made."""

    min_samples_split: float
    min_samples_leaf: float
    max_depth: int | None
    boosting_iterations: int | None
    """None: chosen by cross-validation."""
    max_boosting_iterations: int
    pruning: float | Literal["cv"] | None
    constant_scores_give_frequencies: bool

    @property
    def needs_folds(self) -> bool:
        """Whether anything is left to choose."""
        return self.boosting_iterations is None or self.pruning == "cv"


@dataclass(frozen=True)
class Made:
    """A tree that was made, and why it was made so."""

    arrays: dict[str, Any]
    boosting_iterations: int
    alpha: float | None
    iteration_rmse: Floats | None
    """Held-out RMSE after 0, 1, 2, … iterations, mean over folds."""
    pruning_path: tuple[Floats, Floats] | None
    """Pruning strengths and the held-out RMSE of each, mean over folds."""


def make_folds(cv: Any, labels: Labels, keep: Mask | None, random_state: Any) -> list[Fold]:
    """The folds of the kept rows.

    A number means the published, stratified deal, of the rows as they come or shuffled; anything
    else is a splitter of all rows, or the (train, test) index arrays themselves.
    """
    n_rows = len(labels)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        n_folds = check_count("cv", cv, 2)
        if n_rows < n_folds:
            raise ValueError(
                f"cv={n_folds} needs at least {n_folds} rows, got {n_rows}; use fewer folds, or "
                "give boosting_iterations and pruning as numbers"
            )
        rows = np.arange(n_rows, dtype=np.uint32)
        if random_state is not None:
            _generator(random_state).shuffle(rows)
        return _core.folds(labels, rows, n_folds)
    return _split(cv, labels, np.ones(n_rows, dtype=bool) if keep is None else keep)


def _generator(random_state: Any) -> np.random.RandomState:
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be None, a whole number or a RandomState: {error}"
        ) from None
    return generator


def _split(cv: Any, labels: Labels, keep: Mask) -> list[Fold]:
    # Rows that are left out keep their place in the splitter's count, with any label.
    all_labels = np.zeros(len(keep), dtype=np.intp)
    all_labels[keep] = labels
    place = np.cumsum(keep) - 1
    folds = []
    for number, parts in enumerate(split_rows(cv, np.zeros((len(keep), 1)), all_labels)):
        train, test = (place[part[keep[part]]].astype(np.uint32) for part in parts)
        if len(train) == 0 or len(test) == 0:
            raise ValueError(f"fold {number} of cv has no row of positive weight in one part")
        folds.append((train, test))
    return folds


def split_rows(
    cv: Any, X: Any, labels: npt.NDArray[Any], **groups: Any
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """The row numbers of every fold of a splitter or an iterable, checked."""
    folds = _row_numbers(cv, X, labels, groups)
    for number, parts in enumerate(folds):
        for part in parts:
            valid = part.ndim == 1 and part.dtype.kind in "iu" and part.size > 0
            if not valid or part.min() < 0 or part.max() >= len(labels):
                raise ValueError(
                    f"cv gives no valid row numbers for fold {number}; train and test must be "
                    f"arrays of numbers from 0 to {len(labels) - 1}"
                )
    if not folds:
        raise ValueError("cv gives no folds; use a number of folds, e.g. cv=5")
    return folds


def _row_numbers(
    cv: Any, X: Any, labels: npt.NDArray[Any], groups: dict[str, Any]
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    # Imported here: it would be half of the time that importing caltree takes.
    from sklearn.model_selection import check_cv

    try:
        if cv is None:
            raise TypeError("None is no splitter")
        splits = check_cv(cv).split(X, labels, **groups)
        return [(np.asarray(train), np.asarray(test)) for train, test in splits]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "cv must be a number of folds, a splitter or (train, test) index arrays; "
            f"{reprlib.repr(cv)} cannot split {len(labels)} rows: {error}"
        ) from None


def make_tree(
    training: _core.Training,
    n_rows: int,
    n_classes: int,
    folds: Sequence[Fold],
    recipe: Recipe,
    n_jobs: int | None,
) -> Made:
    """Grow, boost and prune a tree on all rows, as the folds advise."""
    everything = np.arange(n_rows, dtype=np.uint32)
    none = np.empty(0, dtype=np.uint32)
    run = Parallel(n_jobs=n_jobs, require="sharedmem")

    # The structure does not depend on the number of iterations: both are sought at once.
    grown = folds if recipe.pruning == "cv" else ()
    chosen_by_cv = recipe.boosting_iterations is None
    paths = [_core.boosting_path(training, *fold) for fold in folds] if chosen_by_cv else []
    first: list[Callable[[], Any]] = [_growing(training, everything, recipe)]
    first += [_growing(training, train, recipe) for train, _ in grown]
    first += [_running_ahead(path, recipe) for path in paths]
    structure, *fold_structures = _results(run, first)[: 1 + len(grown)]
    iterations, sums = recipe.boosting_iterations, None
    if iterations is None:
        iterations, sums = _core.choose_iterations(paths, recipe.max_boosting_iterations)

    n_folds = max(len(folds), 2)
    second = [_fitting(training, structure, everything, none, iterations, n_folds, recipe)]
    second += [
        _fitting(training, tree, *fold, iterations, n_folds, recipe)
        for tree, fold in zip(fold_structures, grown, strict=True)
    ]
    (models, alphas, _), *sequences = _results(run, second)
    alpha, path = recipe.pruning, None
    if alpha == "cv":
        alpha, path = _choose_alpha(alphas, [(fold[1], fold[2]) for fold in sequences])
    return Made(
        arrays=_core.finished_tree(structure, models, alpha, n_classes),
        boosting_iterations=iterations,
        alpha=alpha,
        iteration_rmse=None if sums is None else sums / len(folds),
        pruning_path=path,
    )


def _results(run: Parallel, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    return list(run(delayed(job)() for job in jobs))


def _growing(training: _core.Training, rows: Rows, recipe: Recipe) -> Callable[[], Any]:
    depth = 2**31 if recipe.max_depth is None else recipe.max_depth

    def grow() -> _core.Structure:
        return _core.grow(training, rows, recipe.min_samples_split, recipe.min_samples_leaf, depth)

    return grow


def _running_ahead(path: _core.BoostingPath, recipe: Recipe) -> Callable[[], Any]:
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
) -> Callable[[], Any]:
    """Node models and the pruning sequence of one tree; held-out rows make it a fold's."""

    def fit() -> tuple[_core.NodeModels | None, Floats, Floats]:
        is_fold = len(held_out) > 0
        models = _core.fit_models(
            training,
            structure,
            rows,
            held_out,
            # No iteration at all is no model: then every node chooses for itself.
            iterations if iterations > 0 else None,
            recipe.max_boosting_iterations,
            n_folds,
            recipe.constant_scores_give_frequencies,
            not is_fold,
        )
        alphas, rmse = _core.pruning_sequence(structure, models)
        return None if is_fold else models, alphas, rmse

    return fit


def _choose_alpha(
    alphas: Floats, sequences: Sequence[tuple[Floats, Floats]]
) -> tuple[float, tuple[Floats, Floats]]:
    """The pruning strength with the lowest held-out RMSE; of equals the stronger."""
    strengths = np.sqrt(alphas * np.append(alphas[1:], 1.0))
    total = np.zeros(len(strengths))
    for fold_alphas, fold_rmse in sequences:
        # The alphas of a sequence need not rise: a step is passed once any alpha exceeds.
        highest = np.maximum.accumulate(fold_alphas)
        total += fold_rmse[np.searchsorted(highest, strengths, side="right") - 1]
    best = len(total) - 1 - int(np.argmin(total[::-1]))
    return float(strengths[best]), (strengths, total / len(sequences))
