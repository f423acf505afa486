"""Settings of trees: what is left to held-out rows, and how far trees are grown."""

from __future__ import annotations

from dataclasses import dataclass

# The shares of the time of a fit that its stages take, about; see `_running.progress`.
READING, GROWING, JUDGING, AVERAGING = 0.1, 0.7, 0.15, 0.05

# The depth of a tree without a limit, as the core wants it.
_NO_LIMIT = 2**31


@dataclass(frozen=True)
class Settings:
    """Choices of `fit_tree`, and what it leaves to held-out rows; see `CalibrationTree`."""

    scoring: str
    max_leaf_nodes: int | None = None
    kept_gain: float | None = None
    """The share of the held-out gain that a smaller tree must keep; None does not cut back."""
    path_averaging: bool = False
    do_no_harm: bool = False

    @property
    def has_levels_between(self) -> bool:
        """Whether trees between the root and the largest tree are candidates."""
        return self.path_averaging or self.kept_gain is not None

    @property
    def needs_folds(self) -> bool:
        """Whether predictions of held-out rows are compared and averaged."""
        return self.has_levels_between or self.do_no_harm


@dataclass(frozen=True)
class Growth:
    """How trees of shrunken node models are grown; see `CalibrationTree`."""

    l2_regularization: float
    min_samples_split: float
    min_samples_leaf: float
    max_depth: int | None
    max_bins: int
    monotone: bool = False
    max_leaf_nodes: int | None = None

    @property
    def depth(self) -> int:
        """The greatest depth, as the core wants it."""
        return depth_limit(self.max_depth)


def depth_limit(max_depth: int | None) -> int:
    """Return the greatest depth, as the core wants it."""
    return _NO_LIMIT if max_depth is None else max_depth
