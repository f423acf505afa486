"""The engine of the published method: C4.5's structure, LogitBoost's node models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core
from .._fitted.model import FittedModel
from .._inputs.arrays import Floats
from .._inputs.folds import Fold
from .._running import progress
from .._running.threads import count_threads, run_in_threads
from .dataset import Dataset
from .engine import trees_grown
from .exact import TreesOnRows, all_and_folds
from .fit_tree import with_held_out_gains
from .levels import pruned_level
from .pruning import Pruning, choose_pruning
from .settings import AVERAGING, GROWING, JUDGING

# How far beyond its own stopping point a fold's boosting runs ahead: the sums over folds may want
# a few iterations more than the fold alone.
_RUN_AHEAD = 12
# With threads, subtrees of at most this part of the rows are fitted side by side, unless there are
# so few rows that sharing them out would take longer.
_SUBTREES = 4
_FEWEST_ROWS_TO_DIVIDE = 2_000
# Of the time that node models take, about that of the nodes above these subtrees.
_SHARE_OF_TOP = 0.2


@dataclass(frozen=True)
class Boosting:
    """How trees of the published method are grown; see `PublishedCalibrationTree`."""

    min_samples_split: float
    min_samples_leaf: float
    max_depth: int
    iterations: int | None
    """None if they are chosen by cross-validation."""
    max_iterations: int
    frequencies: bool
    """Whether a node in which no score varies answers its class frequencies."""
    scoring: Literal["rmse", "accuracy"] = "rmse"
    """What iterations and pruning are chosen by."""

    @property
    def counts_wrong_rows(self) -> bool:
        """Whether errors are rows of another class than the most probable, not squared."""
        return self.scoring == "accuracy"


@dataclass(frozen=True)
class PrunedTree:
    """A fitted tree of the published method."""

    model: FittedModel
    pruning: Pruning


def fit_published_tree(
    engine: PublishedEngine, ccp_alpha: float | Literal["cv"] | None
) -> PrunedTree:
    """Grow a tree and prune it, at a given strength or at that of the lowest held-out error."""
    grown = engine.grow()
    with progress.stage(JUDGING + AVERAGING) as judging:
        pruning = choose_pruning(grown, ccp_alpha, squared=not engine.counts_wrong_rows)
        judging.say("pruned the tree")
    level, all_of_it = pruned_level(pruning.alpha), np.ones(1)
    model = engine.model(level.collapse(grown.whole, all_of_it))
    if grown.of_folds:
        model = with_held_out_gains(model, grown, level, all_of_it)
    return PrunedTree(model, pruning)


class PublishedEngine:
    """Grows the trees of the published method.

    The folds are those of the number of iterations and of pruning; `prunes` says whether trees of
    the folds are needed.
    """

    def __init__(
        self,
        dataset: Dataset,
        folds: Sequence[Fold],
        boosting: Boosting,
        *,
        prunes: bool,
        n_jobs: int | None,
    ) -> None:
        self._dataset = dataset
        self._folds = folds
        self._boosting = boosting
        self._prunes = prunes
        self._n_threads = count_threads(n_jobs)
        self.iterations = 0
        """Once trees are grown, their number of iterations; 0 if every node chose for itself."""
        self.counts_wrong_rows = boosting.counts_wrong_rows
        self.iteration_errors: Floats | None = None
        """Held-out error after 0, 1, 2, ... iterations, averaged over folds, if it was chosen."""

    def model(self, tree: dict[str, Any]) -> FittedModel:
        """Make a fitted model of a tree that the core has finished."""
        return self._dataset.model([tree], corrects_scores=False)

    def grow(self) -> TreesOnRows:
        """Grow a tree on all rows, and one for each fold."""
        of_folds = self._folds if self._prunes else []
        parts = all_and_folds(len(self._dataset.labels), of_folds)
        structures = self._grow_structures_and_choose_iterations([rows for rows, _ in parts])
        with progress.stage(GROWING / 2) as fitting:
            models = self._fit_models(structures, parts, fitting.reach)
            fitting.say(f"fitted their node models by {self.iterations} iterations")
        whole, *others = zip(structures, models, strict=True)
        return TreesOnRows(whole, others, self._dataset, of_folds, self._boosting.scoring)

    def _fit_models(
        self,
        structures: Sequence[_core.Structure],
        parts: Sequence[Fold],
        tell: Callable[[float], None],
    ) -> list[_core.FittedNodes]:
        """Fit the node models of each tree: the largest nodes, then the subtrees below them.

        There are more subtrees than trees, so that all threads are at work until the end.
        """
        fitters = [
            self._model_fitter(structure, part)
            for structure, part in zip(structures, parts, strict=True)
        ]
        n_rows = len(self._dataset.labels)
        divides = self._n_threads > 1 and n_rows >= _FEWEST_ROWS_TO_DIVIDE
        most_rows = n_rows // _SUBTREES if divides else 0
        sizes = run_in_threads(
            lambda fitter: fitter.fit_top(most_rows),
            fitters,
            self._n_threads,
            lambda done: tell(done * (_SHARE_OF_TOP if divides else 1.0)),
        )
        subtrees = [
            (size, fitter, part)
            for fitter, of_tree in zip(fitters, sizes, strict=True)
            for part, size in enumerate(of_tree)
        ]
        subtrees.sort(key=lambda subtree: -subtree[0])
        run_in_threads(
            lambda subtree: subtree[1].fit_part(subtree[2]),
            subtrees,
            self._n_threads,
            lambda done: tell(_SHARE_OF_TOP + done * (1.0 - _SHARE_OF_TOP)),
        )
        return [fitter.take() for fitter in fitters]

    def _model_fitter(self, structure: _core.Structure, part: Fold) -> _core.ModelFitter:
        boosting = self._boosting
        return _core.ModelFitter(
            self._dataset.core,
            structure,
            *part,
            # Without any iteration there is no model: then every node chooses for itself.
            self.iterations if self.iterations > 0 else None,
            boosting.max_iterations,
            max(len(self._folds), 2),
            boosting.frequencies,
            len(part[1]) == 0,  # the trees of the folds predict nothing
            boosting.counts_wrong_rows,
        )

    def _grow_structures_and_choose_iterations(
        self, rows: Sequence[npt.NDArray[np.uint32]]
    ) -> list[_core.Structure]:
        """Grow a structure on each set of rows, and choose the number of iterations.

        The structure does not depend on the number of iterations: both are sought at once.
        """
        boosting, core = self._boosting, self._dataset.core
        chooses = boosting.iterations is None
        folds, wrong = self._folds if chooses else [], boosting.counts_wrong_rows
        paths = [_core.boosting_path(core, *fold, wrong) for fold in folds]
        sizes = (boosting.min_samples_split, boosting.min_samples_leaf, boosting.max_depth)
        boost_first, *boost_others = _run_ahead(paths, boosting.max_iterations) or [lambda: None]
        jobs: list[Callable[[], Any]] = [boost_first]
        jobs += [partial(_core.grow, core, some, *sizes) for some in rows]
        jobs += boost_others
        with progress.stage(GROWING / 2) as growing:
            done = run_in_threads(lambda job: job(), jobs, self._n_threads, growing.reach)
            structures = done[1 : 1 + len(rows)]
            growing.say(trees_grown(structures))
        if boosting.iterations is not None:
            self.iterations = boosting.iterations
        else:
            self.iterations, sums = _core.choose_iterations(paths, boosting.max_iterations)
            self.iteration_errors = sums / len(paths)
        return structures


def _run_ahead(paths: Sequence[_core.BoostingPath], most: int) -> list[Callable[[], Any]]:
    """Return a job for each fold's boosting; no fold counts further than the first one goes."""
    limit = most

    def run_first() -> None:
        nonlocal limit
        limit = paths[0].run_ahead(most, 0)

    others = [lambda path=path: path.run_ahead(limit, _RUN_AHEAD) for path in paths[1:]]
    return [run_first, *others] if paths else []
