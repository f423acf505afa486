"""Cost-complexity pruning as published: the strength that loses least on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from .. import _core
from .._inputs.arrays import Floats
from .engine import GrownTrees

Path: TypeAlias = tuple[Floats, Floats]
"""Pruning strengths, and the error of each."""

# The published method takes the root alone for a tree of this strength.
_STRENGTH_OF_ROOT = 1.0


@dataclass(frozen=True)
class Pruning:
    """A pruning strength, and how it was chosen."""

    alpha: float | None
    path: Path | None
    """Strengths and the held-out error of each; None if nothing was chosen."""


def choose_pruning(
    grown: GrownTrees, ccp_alpha: float | Literal["cv"] | None, *, squared: bool = True
) -> Pruning:
    """Choose the pruning strength with the lowest held-out error; of equals the stronger.

    The errors of the trees are squared, and compared by their roots, or shares of wrong rows.
    """
    if ccp_alpha is None or not isinstance(ccp_alpha, str):
        return Pruning(ccp_alpha, None)
    sequences = [_core.pruning_sequence(*tree) for tree in grown.of_folds]
    # A fold whose rows have no weight to speak of says nothing.
    paths = [
        (steps, np.sqrt(errors) if squared else errors)
        for steps, errors in sequences
        if len(errors) > 0
    ]
    alphas, _ = _core.pruning_sequence(*grown.whole)
    strengths = np.sqrt(alphas * np.append(alphas[1:], _STRENGTH_OF_ROOT))
    errors = _held_out_errors(strengths, paths)
    best = len(errors) - 1 - int(np.argmin(errors[::-1]))
    return Pruning(float(strengths[best]), (strengths, errors))


def _held_out_errors(strengths: Floats, paths: Sequence[Path]) -> Floats:
    """Held-out error of each pruning strength, averaged over folds."""
    total = np.zeros(len(strengths))
    for fold_alphas, fold_errors in paths:
        # The alphas of a sequence need not rise: a step is passed once any alpha exceeds.
        highest = np.maximum.accumulate(fold_alphas)
        total += fold_errors[np.searchsorted(highest, strengths, side="right") - 1]
    return np.asarray(total / len(paths))
