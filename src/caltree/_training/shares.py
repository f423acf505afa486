"""What each of several predictions of the same rows shall count for."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]

# What is added to the diagonal, and what a sum of shares other than 1 costs.
_RIDGE = 1e-10
_COST_OF_THE_SUM = 1e4
# Shares below this are rounding.
_SMALLEST_SHARE = 1e-6
_MOST_STEPS = 500
_SMALLEST_PROBABILITY = 1e-15


def best_shares(
    candidates: Floats, labels: npt.NDArray[Any], weights: Floats | None, objective: str
) -> Floats:
    """Shares, not negative and of sum 1, with which candidates lose least.

    Parameters
    ----------
    candidates : ndarray of shape (n_candidates, n_rows, n_classes)
        Probabilities.
    labels : ndarray of shape (n_rows,)
        The classes.
    weights : ndarray of shape (n_rows,), optional
        How many rows each counts for.
    objective : {"rmse", "log_loss"}
        The loss.

    Returns
    -------
    ndarray of shape (n_candidates,)
        One share a candidate.
    """
    find = _likeliest if objective == "log_loss" else _least_squares
    return cleaned(find(candidates, labels, weights))


def _least_squares(candidates: Floats, labels: npt.NDArray[Any], weights: Floats | None) -> Floats:
    n_candidates, n_rows, n_classes = candidates.shape
    root = np.full(n_rows, n_rows**-0.5) if weights is None else np.sqrt(weights / weights.sum())
    columns = (candidates * root[:, np.newaxis]).reshape(n_candidates, -1)
    target = (np.eye(n_classes)[labels] * root[:, np.newaxis]).ravel()
    return simplex_least_squares(columns @ columns.T, columns @ target)


def simplex_least_squares(products: Floats, aims: Floats) -> Floats:
    """Shares s, not negative and of sum 1, for which s'Ps - 2a's is smallest.

    The sum is 1 but for a little, and very small shares are left as they are.
    """
    # Imported here: importing caltree shall not take its time.
    from scipy.optimize import nnls

    n_candidates = len(products)
    factor = np.linalg.cholesky(products + _RIDGE * np.eye(n_candidates))
    aim = np.linalg.solve(factor, aims)
    ones = np.full((1, n_candidates), _COST_OF_THE_SUM)
    shares, _ = nnls(np.vstack([factor.T, ones]), np.append(aim, _COST_OF_THE_SUM))
    return np.asarray(shares)


def cleaned(shares: Floats) -> Floats:
    """Shares of sum 1, without those that are rounding."""
    shares = np.where(shares < _SMALLEST_SHARE * shares.sum(), 0.0, shares)
    return np.asarray(shares / shares.sum())


def _likeliest(candidates: Floats, labels: npt.NDArray[Any], weights: Floats | None) -> Floats:
    """By expectation and maximisation."""
    likely = np.take_along_axis(candidates, labels[np.newaxis, :, np.newaxis].astype(np.intp), 2)
    likely = np.maximum(likely[..., 0], _SMALLEST_PROBABILITY)
    n_candidates, n_rows = likely.shape
    share_of_row = np.full(n_rows, 1.0 / n_rows) if weights is None else weights / weights.sum()
    shares = np.full(n_candidates, 1.0 / n_candidates)
    for _ in range(_MOST_STEPS):
        shares = shares * ((likely / (shares @ likely)) @ share_of_row)
    return shares
