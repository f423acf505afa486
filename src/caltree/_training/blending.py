"""Forests and boosted trees, averaged with weights from rows that neither has seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._fitted.blended import BlendedModel
from .._fitted.selection import Selection
from .._running import progress
from .bagging import ForestSettings, grow_forest
from .boosting import BoostingSettings, grow_boosting
from .candidates import Candidates
from .dataset import Dataset
from .do_no_harm import choose_weights
from .settings import AVERAGING, GROWING, JUDGING


def fit_ensemble(
    dataset: Dataset,
    of_forest: ForestSettings,
    of_boosting: BoostingSettings,
    n_jobs: int | None,
) -> tuple[BlendedModel, Selection]:
    """Grow a forest and boosted trees on the same rows, and weight all their candidates at once.

    Both settings say the same of the loss and of doing no harm.
    """
    with progress.stage(GROWING / 2) as growing:
        forest = grow_forest(dataset, of_forest, n_jobs, growing)
    with progress.stage(GROWING / 2) as growing:
        boosting = grow_boosting(dataset, of_boosting, n_jobs, growing)
    with progress.stage(JUDGING + AVERAGING) as averaging:
        boosted = boosting.candidates()
        both = _put_together(boosted, forest.candidates)
        held_out = both.held_out(dataset, of_boosting.scoring, of_boosting.do_no_harm)
        weights, selection = choose_weights(held_out, or_global=True)
        averaging.say(f"averaged {len(weights)} candidates (chosen: {selection.chosen})")
    of_both = weights[-len(both) :]
    of_sizes = np.zeros(forest.n_candidates)
    of_sizes[: len(both) - len(boosted)] = of_both[len(boosted) :]
    return BlendedModel(forest.model(of_sizes), boosting.model(of_both[: len(boosted)])), selection


def _put_together(boosted: Candidates, forest: Candidates | None) -> Candidates:
    """Return all candidates; those of boosting alone, if the forest predicts no row of theirs."""
    if forest is None:
        return boosted
    names = tuple(f"{name}, forest" if name in boosted.names else name for name in forest.names)
    both = boosted.beside(replace(forest, names=names))
    return both if len(both.rows) > 0 else boosted
