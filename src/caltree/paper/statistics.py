"""The tests that the paper uses: of two calibrators on one data set, and on all of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import stdtr
from scipy.stats import binomtest

from .._inputs.arrays import Floats
from .._inputs.parameters import check_count


@dataclass(frozen=True)
class TTest:
    """The outcome of a corrected resampled t-test."""

    difference: float
    """The mean of a - b."""
    t: float
    p: float
    """Of a difference at least as large either way, if there were none."""


@dataclass(frozen=True)
class SignTest:
    """The outcome of a sign test."""

    p: float
    """Two-tailed, by the normal approximation, which is what the paper prints."""
    p_exact: float
    """Two-tailed, by the binomial distribution."""


def corrected_resampled_t_test(a: Any, b: Any, n_folds: int = 10) -> TTest:
    """Compare two methods by their results in the same k folds of repeated cross-validation.

    The folds of repeated cross-validation share training rows, so that their results vary less
    than those of fresh data would, and a plain paired t-test finds differences that are none.
    Nadeau and Bengio's correction (Inference for the generalization error, Machine Learning 52,
    2003) multiplies the variance of the k differences by 1 / k + n_test / n_train instead of
    1 / k; with `n_folds` folds, n_test / n_train is 1 / (n_folds - 1).

    The test is two-tailed. Where all differences are the same, p is 1 if they are 0 and 0 if not.
    """
    n_folds = check_count("n_folds", n_folds, 2)
    first, second = _results("a", a), _results("b", b)
    k = len(first)
    if len(second) != k:
        raise ValueError(f"a and b must be results of the same folds, got {k} and {len(second)}")
    if k % n_folds:
        raise ValueError(
            f"a and b have {k} results, which is not a whole number of runs of n_folds={n_folds} "
            "folds; give the result of each fold of each run"
        )
    differences = first - second
    difference = float(differences.mean())
    spread = float(differences.std(ddof=1)) * math.sqrt(1 / k + 1 / (n_folds - 1))
    if np.ptp(differences) == 0:
        t = math.copysign(math.inf, difference) if difference else 0.0
    else:
        t = difference / spread
    return TTest(difference, t, float(2 * stdtr(k - 1, -abs(t))))


def compare(
    a: Any, b: Any, p: float = 0.01, *, n_folds: int = 10
) -> Literal["win", "draw", "loss"]:
    """Whether the errors of `a` are significantly smaller than those of `b`, a win, or larger.

    Both are of the same folds, in the same order; `p` is the level of significance.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must be a level of significance between 0 and 1, got {p!r}")
    test = corrected_resampled_t_test(a, b, n_folds)
    if test.p >= p:
        return "draw"
    return "win" if test.difference < 0 else "loss"


def sign_test(wins: int, losses: int) -> SignTest:
    """Whether there are more wins than losses, or fewer, than chance would have it.

    Draws do not count. With neither wins nor losses there is no evidence, and p is 1. The
    normal approximation has z = (wins - losses) / sqrt(wins + losses).
    """
    wins, losses = check_count("wins", wins, 0), check_count("losses", losses, 0)
    if wins + losses == 0:
        return SignTest(1.0, 1.0)
    z = (wins - losses) / math.sqrt(wins + losses)
    exact = binomtest(wins, wins + losses).pvalue
    return SignTest(math.erfc(abs(z) / math.sqrt(2)), float(exact))


def _results(name: str, values: Any) -> Floats:
    try:
        results = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be numbers, one per fold") from None
    if results.ndim != 1 or len(results) < 2:
        raise ValueError(
            f"{name} must have one result for each of at least 2 folds, got shape {results.shape}"
        )
    if not np.isfinite(results).all():
        fold = int(np.flatnonzero(~np.isfinite(results))[0])
        raise ValueError(
            f"{name} contains {results[fold]} at index {fold}; leave the fold out of both or "
            "run it again"
        )
    return results
