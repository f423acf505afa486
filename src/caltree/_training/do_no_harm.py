"""Do no harm: leave scores uncalibrated unless held-out rows show that calibration helps.

Every choice here is between mixtures of the same candidates; see `HeldOut`.
"""

from __future__ import annotations

import numpy as np

from .._fitted.selection import Candidate, Selection
from .._inputs.arrays import Floats
from .averaging import best_weights
from .held_out import HeldOut

# By how many standard errors calibrated probabilities must be better than uncalibrated ones: by
# both losses, and by more of log loss, of which a few rows may have most.
DEMANDED = {"rmse": 2.0, "log_loss": 3.0}
# Up to how many standard errors count for nothing: then the simpler is taken. Where one model for
# all rows would do, a tree must show more.
TIE, TIE_WITH_GLOBAL = 0.5, 1.0
_BISECTIONS = 7


def simplest_average(held_out: HeldOut, *, averaging: bool) -> tuple[Floats, Floats]:
    """Return the weights of a tree's simplest average that is as good as that of all its sizes.

    The candidates are the sizes, from the root alone to the smallest regions, and the pruned tree.
    Twice, for the root alone may do: the simplest of more than the root, and of all. Without
    averaging it is the pruned tree or the root.
    """
    first, last = int(held_out.has_uncalibrated), len(held_out) - 1
    alone = np.eye(len(held_out))
    aim = best_weights(held_out) if averaging else alone[last]
    averages = (best_weights(held_out, [*range(end), last]) for end in range(first + 1, last))
    local = next((weights for weights in averages if _is_tie(held_out, weights, aim)), aim)
    root = alone[first]
    return local, root if _is_tie(held_out, root, aim, TIE_WITH_GLOBAL) else local


def leave_uncalibrated_if_in_doubt(
    held_out: HeldOut, weights: Floats, *, averaging: bool = True
) -> Floats:
    """Return weights of the candidates, of which the first is uncalibrated.

    All weight goes to the uncalibrated probabilities unless the given average is better by both
    losses: few mistakes of an almost perfect classifier may sway one of them, but not so easily
    both. If it is better, the uncalibrated ones get the largest weight that costs nothing.
    """
    uncalibrated = np.eye(len(weights))[0]
    helps = all(
        held_out.excess(uncalibrated, weights, scoring) > demanded
        for scoring, demanded in DEMANDED.items()
    )
    if not helps:
        return np.asarray(uncalibrated)
    if not averaging:
        return weights
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        share = (low + high) / 2
        if _is_tie(held_out, share * uncalibrated + (1.0 - share) * weights, weights):
            low = share
        else:
            high = share
    return np.asarray(low * uncalibrated + (1.0 - low) * weights)


def make_selection(held_out: HeldOut, calibrated: Floats, weights: Floats) -> Selection:
    """Describe a choice: the best average, and the weights that were chosen."""
    alone = np.eye(len(held_out))
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
