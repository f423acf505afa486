"""The one place where a tree is grown, cut back, averaged and possibly left uncalibrated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._fitted.model import DECIMALS_OF_A_WEIGHT, FittedModel
from .._fitted.selection import Selection
from .._inputs.arrays import Floats
from .._running import progress
from .averaging import round_weights
from .do_no_harm import best_tree, make_selection, prefer_simpler
from .engine import Engine, GrownTrees
from .levels import Levels, leaf_levels
from .settings import AVERAGING, JUDGING, Settings


def fit_tree(engine: Engine, settings: Settings) -> tuple[FittedModel, Selection | None]:
    """Grow, cut back and average a tree, or leave scores uncalibrated, as held-out rows advise.

    The selection is None if there was nothing to choose from.
    """
    grown = engine.grow()
    between = settings.has_levels_between
    levels = leaf_levels(grown.whole, settings.max_leaf_nodes, between=between)
    if not settings.needs_folds:
        with progress.stage(JUDGING + AVERAGING):
            largest = np.eye(len(levels))[-1]
            return engine.model(levels.collapse(grown.whole, largest)), None
    with progress.stage(JUDGING) as judging:
        held_out = grown.held_out(levels, uncalibrated=settings.do_no_harm)
        judging.say(f"predicted held-out rows at {len(levels)} levels")
    with progress.stage(AVERAGING) as averaging:
        best = weights = best_tree(held_out, settings)
        if settings.do_no_harm:
            weights = prefer_simpler(held_out, best, averaging=settings.path_averaging)
        selection = make_selection(held_out, best, weights)
        averaging.say(f"averaged {len(weights)} candidates (chosen: {selection.chosen})")
    # Nodes have sums of rounded weights, and a file leaves out what is a difference of these.
    rounded = round_weights(weights, 10.0**DECIMALS_OF_A_WEIGHT)
    # The uncalibrated probabilities, which may come first, have no place in the tree.
    shares = rounded[len(weights) - len(levels) :]
    model = engine.model(levels.collapse(grown.whole, shares))
    return with_held_out_gains(model, grown, levels, shares), selection


def with_held_out_gains(
    model: FittedModel, grown: GrownTrees, levels: Levels, shares: Floats
) -> FittedModel:
    """Return a model whose splits gain what those of the folds' trees gain on held-out rows.

    The folds' trees have other splits. So the gain is that of all splits on an attribute, and is
    shared out to these by the rows that they divide.
    """
    n_attributes = len(model.attributes.columns)
    gains = [levels.held_out_gains(tree, shares, n_attributes) for tree in grown.of_folds]
    is_split = model.attribute >= 0
    attribute, n_rows = model.attribute[is_split], model.n_rows[is_split]
    # A split counts for as much as is below it, in the gains as in the importances.
    rows = np.bincount(attribute, n_rows * model.weight_below[is_split], minlength=n_attributes)
    gain = np.zeros(model.n_nodes)
    gain[is_split] = np.sum(gains, axis=0)[attribute] * n_rows / rows[attribute]
    return replace(model, gain=gain)
