"""Do no harm: leave scores uncalibrated unless held-out rows show that calibration helps.

Every choice here is between mixtures of the same candidates; see `HeldOut`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._fitted.selection import Candidate, Selection
from .._inputs.arrays import Floats
from .averaging import best_of_each, best_weights, round_weights
from .held_out import Comparison, HeldOut
from .settings import Settings

# By how many standard errors calibrated probabilities must be better than uncalibrated ones, by
# both losses. A classifier that makes few mistakes makes fewer still once trained on all rows,
# so that they prove little: then more is demanded of log loss, of which a few rows have most.
DEMANDED = {"rmse": 0.0, "log_loss": 2.0}
DEMANDED_IF_FEW = {"rmse": 0.0, "log_loss": 3.0}
FEW_MISTAKES = 30
# Where few mistakes leave probabilities uncalibrated, some of these may be certain and wrong: they
# are averaged with so much of the model for all rows, which is next to nothing, but for them.
HEDGE = 0.01
_FEWEST_MISTAKES = 5
# Up to how many standard errors count for nothing: then the simpler is taken. Where one model for
# all rows would do, a tree must show more.
TIE, TIE_WITH_GLOBAL = 0.5, 1.0
# Halvings of the interval that the best weight is in, and how many of them are foreseen.
_BISECTIONS, _FORESEEN = 7, 3


def best_tree(held_out: HeldOut, settings: Settings) -> Floats:
    """Return the weights of the smallest tree that keeps nearly all of what the best one gains.

    The candidates are the levels of a tree, from the root alone to the most leaves, and possibly
    the uncalibrated probabilities before them. A tree is an average over all levels up to some
    number of leaves, or that level alone. Its gain is the loss of the root minus its own loss.
    """
    root, end = int(held_out.has_uncalibrated), len(held_out)
    alone = np.eye(end)
    if settings.path_averaging:
        trees = best_of_each(held_out, [range(last + 1) for last in range(root, end)])
    else:
        trees = [alone[last] for last in range(root, end)]
    if settings.kept_gain is None:
        return trees[-1]
    held_out.foresee(losses=trees)
    losses = np.array([held_out.loss(weights) for weights in trees])
    most, least = held_out.loss(alone[root]), losses.min()
    aim = least + (1.0 - settings.kept_gain) * (most - least)
    return trees[int(np.argmax(losses <= aim))]


def prefer_simpler(held_out: HeldOut, weights: Floats, *, averaging: bool) -> Floats:
    """Return the weights of the root or of the uncalibrated probabilities, unless others help."""
    root = np.eye(len(held_out))[int(held_out.has_uncalibrated)]
    doubts = _doubts(held_out, [weights, root]) if held_out.has_uncalibrated else []
    held_out.foresee(excesses=[(root, weights, held_out.scoring), *doubts])
    if _is_tie(held_out, root, weights, TIE_WITH_GLOBAL):
        weights = root
    if not held_out.has_uncalibrated:
        return weights
    return leave_uncalibrated_if_in_doubt(held_out, [weights, root], averaging=averaging)


def choose_weights(held_out: HeldOut, *, or_global: bool = False) -> tuple[Floats, Selection]:
    """Return the weights of all candidates, and why: the best average, if it shows that it helps.

    With `or_global`, the model for all rows, which comes first of those that calibrate, will do if
    it shows that it helps and the best average does not.
    """
    best = chosen = round_weights(best_weights(held_out))
    if held_out.has_uncalibrated:
        choices = [best, np.eye(len(held_out))[1]] if or_global else [best]
        chosen = round_weights(leave_uncalibrated_if_in_doubt(held_out, choices))
    return chosen, make_selection(held_out, best, chosen)


def leave_uncalibrated_if_in_doubt(
    held_out: HeldOut, choices: Sequence[Floats], *, averaging: bool = True
) -> Floats:
    """Return weights of the candidates: first uncalibrated, then one model for all rows, ...

    The uncalibrated probabilities stay unless one of some averages, of which the first is taken, is
    better by both losses: few mistakes of an almost perfect classifier may sway one of them, but
    not so easily both. If it is better, the uncalibrated ones get the largest weight that costs
    nothing.
    """
    uncalibrated, root = np.eye(len(held_out))[:2]
    mistakes = held_out.mistakes()
    demanded = DEMANDED_IF_FEW if mistakes < FEW_MISTAKES else DEMANDED
    held_out.foresee(excesses=_doubts(held_out, choices))
    for weights in choices:
        if all(
            held_out.excess(uncalibrated, weights, scoring) > least
            for scoring, least in demanded.items()
        ):
            return _with_uncalibrated(held_out, weights) if averaging else weights
    hedged = HEDGE * root + (1.0 - HEDGE) * uncalibrated
    hedges = averaging and _FEWEST_MISTAKES <= mistakes < FEW_MISTAKES
    pays = hedges and held_out.excess(uncalibrated, hedged, "log_loss") > TIE
    return np.asarray(hedged if pays else uncalibrated)


def _doubts(held_out: HeldOut, choices: Sequence[Floats]) -> list[Comparison]:
    """Return the comparisons by which some averages are told from uncalibrated probabilities."""
    uncalibrated = np.eye(len(held_out))[0]
    return [(uncalibrated, weights, scoring) for weights in choices for scoring in DEMANDED]


def _with_uncalibrated(held_out: HeldOut, weights: Floats) -> Floats:
    """Give the uncalibrated probabilities the largest weight that costs nothing."""
    uncalibrated = np.eye(len(held_out))[0]

    def with_share(share: float) -> Floats:
        return np.asarray(share * uncalibrated + (1.0 - share) * weights)

    low, high = 0.0, 1.0
    for done in range(_BISECTIONS):
        if done % _FORESEEN == 0:
            ways = 2 ** min(_FORESEEN, _BISECTIONS - done)
            mixtures = [with_share(low + (high - low) * i / ways) for i in range(1, ways)]
            scoring = held_out.scoring
            held_out.foresee(excesses=[(mixture, weights, scoring) for mixture in mixtures])
        share = (low + high) / 2
        if _is_tie(held_out, with_share(share), weights):
            low = share
        else:
            high = share
    return with_share(low)


def make_selection(held_out: HeldOut, calibrated: Floats, weights: Floats) -> Selection:
    """Describe a choice: the best average, and the weights that were chosen."""
    alone = np.eye(len(held_out))
    held_out.foresee(losses=[*alone, calibrated, weights])
    candidates = tuple(
        Candidate(name, held_out.loss(only), float(weight))
        for name, only, weight in zip(held_out.names, alone, weights, strict=True)
    )
    return Selection(
        held_out.scoring, candidates, held_out.loss(calibrated), held_out.loss(weights)
    )


def _is_tie(held_out: HeldOut, simpler: Floats, other: Floats, margin: float = TIE) -> bool:
    """Whether a simpler mixture is as good as another, but for chance."""
    return held_out.excess(simpler, other, held_out.scoring) <= margin
