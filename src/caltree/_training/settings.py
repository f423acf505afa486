"""Settings of trees: what is left to held-out rows, and how far trees are grown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# The shares of the time of a fit that its stages take, about; see `_running.progress`.
READING, GROWING, JUDGING, AVERAGING = 0.1, 0.7, 0.15, 0.05

# The depth of a tree without a limit, as the core wants it.
_NO_LIMIT = 2**31


@dataclass(frozen=True)
class Settings:
    """Choices of `fit_tree`, and what it leaves to held-out rows; see `CalibrationTree`."""

    criteria: tuple[str, ...]
    """The criteria of splits to try."""
    scoring: str
    ccp_alpha: float | Literal["cv"] | None
    path_averaging: bool
    do_no_harm: bool

    @property
    def compares_losses(self) -> bool:
        """Whether the loss of pruned trees on held-out rows is needed."""
        return self.ccp_alpha == "cv" or len(self.criteria) > 1

    @property
    def mixes(self) -> bool:
        """Whether predictions of held-out rows are compared and averaged."""
        return self.path_averaging or self.do_no_harm

    @property
    def needs_folds(self) -> bool:
        """Whether trees of folds are needed."""
        return self.compares_losses or self.mixes


@dataclass(frozen=True)
class Growth:
    """How trees of shrunken node models are grown; see `CalibrationTree`."""

    l2_regularization: float
    min_samples_split: float
    min_samples_leaf: float
    max_depth: int | None
    max_bins: int

    @property
    def depth(self) -> int:
        """The greatest depth, as the core wants it."""
        return depth_limit(self.max_depth)


def depth_limit(max_depth: int | None) -> int:
    """Return the greatest depth, as the core wants it."""
    return _NO_LIMIT if max_depth is None else max_depth
