"""Cost-complexity pruning: the strength that loses least on held-out rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from .. import _core
from .._inputs.arrays import Floats
from .engine import GrownTrees
from .settings import Settings

Path: TypeAlias = tuple[Floats, Floats]
"""Pruning strengths, and an error or loss of each."""


@dataclass(frozen=True)
class Pruning:
    """A pruning strength, and how it was chosen."""

    alpha: float | None
    path: Path | None
    """Strengths and the held-out loss of each; None if nothing was chosen."""
    loss: float
    """Held-out loss of the pruned trees; infinite if it was not asked for."""


def choose_pruning(
    grown: GrownTrees, settings: Settings, strength_of_root: float | None
) -> Pruning:
    """Choose the pruning strength with the lowest held-out loss; of equals the stronger."""
    if not settings.compares_losses:
        return Pruning(_fixed_strength(settings), None, math.inf)
    sequences = [_core.pruning_sequence(*tree) for tree in grown.of_folds]
    # A fold whose rows have no weight to speak of says nothing.
    paths = [path for path in sequences if len(path[1]) > 0]
    if settings.ccp_alpha != "cv":
        strength = _fixed_strength(settings)
        losses = _held_out_losses(np.array([strength or 0.0]), paths, settings.scoring)
        return Pruning(strength, None, float(losses[0]))
    alphas, _ = _core.pruning_sequence(*grown.whole)
    beyond = 4.0 * max(1.0, alphas.max()) if strength_of_root is None else strength_of_root
    strengths = np.sqrt(alphas * np.append(alphas[1:], beyond))
    losses = _held_out_losses(strengths, paths, settings.scoring)
    best = len(losses) - 1 - int(np.argmin(losses[::-1]))
    return Pruning(float(strengths[best]), (strengths, losses), float(losses.min()))


def _fixed_strength(settings: Settings) -> float | None:
    return None if isinstance(settings.ccp_alpha, str) else settings.ccp_alpha


def _held_out_losses(strengths: Floats, paths: Sequence[Path], scoring: str) -> Floats:
    """Held-out loss of each pruning strength, averaged over folds."""
    total = np.zeros(len(strengths))
    for fold_alphas, fold_errors in paths:
        # The alphas of a sequence need not rise: a step is passed once any alpha exceeds.
        highest = np.maximum.accumulate(fold_alphas)
        losses = fold_errors if scoring == "log_loss" else np.sqrt(fold_errors)
        total += losses[np.searchsorted(highest, strengths, side="right") - 1]
    return np.asarray(total / len(paths))
