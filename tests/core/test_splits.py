"""Cuts of many rows: what the core leaves out must not change the choice."""

import numpy as np
import pytest

from .. import spec
from .test_published import Case, core_tree


def root_threshold(x: np.ndarray, y: np.ndarray) -> float:
    """Threshold of the root that the core grows on one attribute."""
    n_categories = np.zeros(1, np.int32)
    case = Case(x[:, None], n_categories, y, n_classes=2, scores=np.full((len(y), 1), 0.5))
    tree = core_tree(case, case.rows, 1, max_depth=1)
    return float(tree.arrays["threshold"][0])


@pytest.mark.parametrize("n_rows", [2_000, 100_000])
@pytest.mark.parametrize("seed", range(4))
def test_gains_that_rise_slowly(n_rows: int, seed: int) -> None:
    """Neighbouring cuts of many rows differ by less than the tolerance: their order decides."""
    rng = np.random.default_rng(seed)
    x = rng.permutation(n_rows) * 1.0
    # The share of the second class rises evenly, and so do the gains, to a nearly flat top.
    low, high = rng.uniform(0.2, 0.4), rng.uniform(0.6, 0.8)
    of_second = np.cumsum(np.linspace(low, high, n_rows))
    y = np.diff(np.floor(of_second), prepend=0.0).astype(int)[x.astype(int)]
    expected = spec.find_split(x[:, None], y, [0], 2, x[:, None])
    assert expected is not None
    assert root_threshold(x, y) == expected.threshold
