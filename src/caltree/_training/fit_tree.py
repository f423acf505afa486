"""The one place where a tree is grown, pruned, averaged and possibly left uncalibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import _core
from .._fitted.model import FittedModel
from .._fitted.selection import Selection
from .._inputs.arrays import Floats
from .._running import progress
from .averaging import best_weights, region_sizes
from .do_no_harm import leave_uncalibrated_if_in_doubt, make_selection, simplest_average
from .engine import Engine, GrownTrees, Tree
from .held_out import HeldOut
from .pruning import Pruning, choose_pruning
from .settings import AVERAGING, JUDGING, Settings


@dataclass(frozen=True)
class FittedTree:
    """A fitted tree, and what was chosen on the way."""

    model: FittedModel
    criterion: str
    ccp_alpha: float | None
    ccp_path: tuple[Floats, Floats] | None
    """Pruning strengths and the held-out loss of each, if one was chosen."""
    selection: Selection | None
    """None if there was nothing to choose from."""


def fit_tree(engine: Engine, settings: Settings) -> FittedTree:
    """Grow, prune and average a tree, or leave scores uncalibrated, as held-out rows advise."""
    tried = []
    for grown in engine.grow(settings.criteria):
        with progress.stage(JUDGING / len(settings.criteria)) as judging:
            tried.append(_judge(grown, engine, settings))
            judging.say(f"pruned the trees that split by {grown.criterion}")
    best = min(tried, key=lambda one: one.loss)
    with progress.stage(AVERAGING) as averaging:
        weights, selection = _choose_weights(best.held_out, settings)
        if selection is not None:
            averaging.say(f"averaged {len(weights)} candidates (chosen: {selection.chosen})")
    # The uncalibrated probabilities, which may come first, have no place in the tree.
    of_sizes = weights[len(weights) - len(best.sizes) - 1 :]
    tree = _core.collapse_tree(*best.tree, best.pruning.alpha, best.sizes, of_sizes)
    return FittedTree(
        model=engine.model(tree),
        criterion=best.criterion,
        ccp_alpha=best.pruning.alpha,
        ccp_path=best.pruning.path,
        selection=selection,
    )


@dataclass(frozen=True)
class _Judged:
    """A tree on all rows, and what the trees of the folds tell of it."""

    tree: Tree
    criterion: str
    pruning: Pruning
    sizes: Floats
    held_out: HeldOut | None
    """None if predictions need not be compared."""
    loss: float


def _judge(grown: GrownTrees, engine: Engine, settings: Settings) -> _Judged:
    pruning = choose_pruning(grown, settings, engine.strength_of_root)
    sizes, held_out, loss = np.array([math.inf]), None, pruning.loss
    if settings.path_averaging:
        sizes = region_sizes(engine.n_rows, grown.smallest_region)
    if settings.mixes:
        held_out = grown.held_out(pruning.alpha, sizes, uncalibrated=settings.do_no_harm)
    if settings.path_averaging and held_out is not None:
        loss = held_out.loss(best_weights(held_out))
    return _Judged(grown.whole, grown.criterion, pruning, sizes, held_out, loss)


def _choose_weights(
    held_out: HeldOut | None, settings: Settings
) -> tuple[Floats, Selection | None]:
    """Return the weights of the candidates, and why."""
    if held_out is None:
        return np.array([0.0, 1.0]), None
    averaging = settings.path_averaging
    if not settings.do_no_harm:
        weights = best_weights(held_out)
        return weights, make_selection(held_out, weights, weights)
    local, simplest = simplest_average(held_out, averaging=averaging)
    weights = simplest
    if held_out.has_uncalibrated:
        weights = leave_uncalibrated_if_in_doubt(held_out, simplest, averaging=averaging)
    return weights, make_selection(held_out, local, weights)
