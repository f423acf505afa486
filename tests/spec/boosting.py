"""Node models: logistic regression on the scores, fitted by LogitBoost.

A model is a matrix ``lines`` (m, 1 + c): for each of m classes an intercept and one slope for each
of c score columns, summed over boosting iterations and not yet multiplied by (m - 1) / m.

Sums run strictly in order, where ``np.sum`` and ``@`` would regroup them. On real scores that is
immaterial, but a pure node soon regresses on nothing but rounding errors, and long boosting then
makes other, equally meaningless, models of other roundings.
"""

import math

import numpy as np
from numpy.typing import NDArray

from .folds import deal_folds

Floats = NDArray[np.float64]
Classes = NDArray[np.integer]

LARGEST_RESPONSE = 3.0
# A fold gives up at the 51st iteration in a row without a new minimum, noticed one iteration late.
PATIENCE = 52
# By which shares of wrong rows may differ though they are equal.
ROUNDING = 1e-13


def log_odds(probabilities: Floats) -> Floats:
    """Turn probabilities into scores, class by class; only exact 0 and 1 are moved."""
    p = np.asarray(probabilities, dtype=np.float64)
    p = np.where(p == 0.0, 0.00001, np.where(p == 1.0, 0.99999, p))
    return np.log(p / (1.0 - p))


def predict(lines: Floats, scores: Floats) -> Floats:
    """Class probabilities (n, m) of a model."""
    return softmax(margins(lines, scores))


def margins(lines: Floats, scores: Floats) -> Floats:
    """The F (n, m) of a model, or what the lines of one more iteration add to it."""
    m = len(lines)
    f = np.tile(lines[:, 0], (len(scores), 1))
    for column in range(scores.shape[1]):
        f += np.outer(scores[:, column], lines[:, 1 + column])
    # Centring over classes changes no probability, only the rounding.
    return (f - in_order_sum(f.T)[:, None] / m) * (m - 1) / m


def softmax(F: Floats) -> Floats:
    odds: Floats = np.exp(F - F.max(axis=1, keepdims=True))
    return odds / in_order_sum(odds.T)[:, None]


def in_order_sum(values: Floats) -> Floats:
    """Sum along the first axis, one addition after the other; undefined for no values."""
    return np.asarray(np.cumsum(values, axis=0)[-1])


def squared_error(probabilities: Floats, y: Classes) -> float:
    """Squared differences to the 0/1 class indicators, summed over rows and classes."""
    indicators = np.eye(probabilities.shape[1])[y]
    return float(((probabilities - indicators) ** 2).sum())


def rmse(probabilities: Floats, y: Classes) -> float:
    """Root mean squared error over rows and classes; 0 when there are no rows."""
    return float(np.sqrt(squared_error(probabilities, y) / max(probabilities.size, 1)))


def wrong_rows(probabilities: Floats, y: Classes) -> int:
    """Rows whose class is not the most probable one, the first of equals."""
    return int((probabilities.argmax(axis=1) != y).sum())


def mean_error(probabilities: Floats, y: Classes, by_wrong_rows: bool) -> float:
    """The error that is chosen by: RMSE or, in logistic model trees, the share of wrong rows."""
    if by_wrong_rows:
        return wrong_rows(probabilities, y) / max(len(y), 1)
    return rmse(probabilities, y)


def boost(lines: Floats, scores: Floats, y: Classes, iterations: int) -> tuple[Floats, int]:
    """Run LogitBoost from a given model.

    Parameters
    ----------
    lines : (m, 1 + c) the model to start from
    scores : (n, c)
    y : (n,) class indices
    iterations : number of iterations to run

    Returns
    -------
    The new model, and how many iterations ran: fewer if no further one was possible.
    """
    F = margins(lines, scores)
    for iterations_run in range(iterations):
        step = fit_lines(F, scores, y)
        if step is None:
            return lines, iterations_run
        lines = lines + step
        F = F + margins(step, scores)
    return lines, iterations


def fit_lines(F: Floats, scores: Floats, y: Classes) -> Floats | None:
    """The lines (m, 1 + c) of one iteration; None if for any class no column can be used."""
    p = softmax(F)
    lines = []
    for j in range(F.shape[1]):
        line = _fit_line(p[:, j], y == j, scores)
        if line is None:
            return None
        lines.append(line)
    return np.array(lines)


def _fit_line(p: Floats, is_class: NDArray[np.bool_], scores: Floats) -> Floats | None:
    """Fit one class's working response by a weighted line on the best single score column."""
    with np.errstate(divide="ignore", over="ignore"):
        z = np.where(is_class, 1.0 / p, -1.0 / (1.0 - p))
    z = np.clip(z, -LARGEST_RESPONSE, LARGEST_RESPONSE)
    w = (is_class - p) / z
    if in_order_sum(w) == 0.0:
        return None
    w = w * len(w) / in_order_sum(w)

    total = in_order_sum(w)  # n but for rounding
    x_mean = in_order_sum(w[:, None] * scores) / total
    z_mean = in_order_sum(w * z) / total
    dx, dz = scores - x_mean, z - z_mean
    sum_xx = in_order_sum(w[:, None] * dx * dx)
    sum_xz = in_order_sum(dx * (w * dz)[:, None])
    sum_zz = in_order_sum(w * dz * dz)
    usable = sum_xx != 0.0
    if not usable.any():
        return None
    slopes = np.divide(sum_xz, sum_xx, out=np.zeros_like(sum_xx), where=usable)
    errors = np.where(usable, sum_zz - slopes * sum_xz, np.inf)
    best = int(np.argmin(errors))

    line = np.zeros(1 + scores.shape[1])
    line[0] = z_mean - slopes[best] * x_mean[best]
    line[1 + best] = slopes[best]
    return line


def choose_iterations(
    lines: Floats,
    scores: Floats,
    y: Classes,
    max_iterations: int = 200,
    n_folds: int = 5,
    by_wrong_rows: bool = False,
) -> tuple[int, Floats]:
    """Choose the number of boosting iterations by cross-validation.

    By wrong rows, all numbers are as good whose error is at most a standard error above the lowest
    from 1 on (without any iteration the first class is right by its place alone); of these, the one
    of the lowest RMSE is the best.

    Returns
    -------
    The best number, and the held-out error summed over folds for each number of iterations from 0
    (the model given) to the last that every fold reached.
    """
    sums, sums_of_rmse = np.zeros((2, max_iterations + 1))
    last = max_iterations
    for train, test in deal_folds(y, n_folds):
        F_train, F_test = margins(lines, scores[train]), margins(lines, scores[test])
        sums[0] += mean_error(softmax(F_test), y[test], by_wrong_rows)
        sums_of_rmse[0] += rmse(softmax(F_test), y[test])
        iteration = lowest = 0
        while iteration < min(last, lowest + PATIENCE):
            step = fit_lines(F_train, scores[train], y[train])
            if step is None:
                break
            F_train = F_train + margins(step, scores[train])
            F_test = F_test + margins(step, scores[test])
            iteration += 1
            sums[iteration] += mean_error(softmax(F_test), y[test], by_wrong_rows)
            sums_of_rmse[iteration] += rmse(softmax(F_test), y[test])
            # A minimum of the running sum, this fold and those before, not of this fold alone.
            if sums[iteration] < sums[lowest]:
                lowest = iteration
        last = iteration
    sums, sums_of_rmse = sums[: last + 1], sums_of_rmse[: last + 1]
    if not by_wrong_rows:
        return int(np.argmin(sums)), sums
    lowest = (sums[1:] if last > 0 else sums).min() / n_folds
    error = math.sqrt(lowest * (1.0 - lowest) / len(y))
    as_good = sums <= n_folds * (lowest + error) + ROUNDING
    return int(np.argmin(np.where(as_good, sums_of_rmse, np.inf))), sums
