"""Metrics of probabilities: errors and calibration, weighted, for any number of classes."""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np

from .._inputs.arrays import Floats, Mask
from .._inputs.parameters import check_choice, check_count, check_flag
from .._inputs.probabilities import Kind, LabeledProbabilities, check_rows, events
from .._training.losses import row_losses
from .._training.scaling import fit_isotonic
from ..reliability import Norm, Strategy, calibration_error, reliability_curve


def rmse(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Root mean squared error of probabilities.

    The squared differences between the probabilities and the truth (1 for a row's class, 0 for the
    others) are summed over the n rows and m classes and divided by n * m. The result is the square
    root of that. With two classes this is the square root of the Brier score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The labels.
    y_prob : array-like of shape (n, m) or (n,)
        The probabilities, with one column for each class. With two classes, the column of
        `pos_label` is enough. Columns that are named after the classes, such as ``p_yes``, may be
        in any order.
    sample_weight : array-like of shape (n,), optional
        How many rows each row counts for.
    labels : array-like of shape (m,), optional
        The class of each column, e.g. ``tree.classes_``; by default the sorted labels of
        `y_true`.
    pos_label : label, optional
        The class of a single column; by default the one after which it is named, else the second.

    Returns
    -------
    float
        0 if certain and right, 1 if certain and wrong (with two classes).

    Examples
    --------
    >>> from caltree.metrics import rmse
    >>> round(rmse(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]]), 4)
    0.2236
    >>> round(rmse(["no", "yes"], [0.1, 0.7]), 4)
    0.2236
    """
    rows = check_rows(y_true, y_prob, sample_weight, labels, pos_label)
    return float(np.sqrt(_mean_squared_error(rows)))


def brier_score(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Brier score of probabilities.

    The squared differences between the probabilities and the truth (1 for a row's class, 0 for
    the others) are summed over the classes and averaged over the rows; with two classes the sum
    is halved. The scale is that of scikit-learn: from 0 to 1 with two classes, from 0 to 2 with
    more. With two classes the Brier score is the square of `rmse`, with m > 2 classes m times
    its square.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As for `rmse`.

    Returns
    -------
    float
        0 if certain and right; if certain and wrong, 1 with two classes and 2 with more.

    Examples
    --------
    >>> from caltree.metrics import brier_score
    >>> round(brier_score(["no", "yes"], [0.1, 0.7]), 4)
    0.05
    """
    return _brier_score(check_rows(y_true, y_prob, sample_weight, labels, pos_label))


class BrierSplit(NamedTuple):
    """The Brier score as a sum of two parts, neither of them negative.

    Attributes
    ----------
    score : float
        The Brier score.
    calibration : float
        The part that would vanish if every probability were the frequency of its class.
    refinement : float
        The part that would remain: how badly the probabilities separate the classes.
    """

    score: float
    calibration: float
    refinement: float


def brier_split(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> BrierSplit:
    """Split the Brier score into calibration and refinement, without bins.

    The probabilities of each class are recalibrated by isotonic regression on the same rows. The
    refinement is the Brier score of the recalibrated probabilities; the calibration is the
    difference. This is the CORP decomposition [1]_, one class against the rest and summed as in
    `brier_score`; with more than two classes the recalibrated probabilities of a row need not sum
    to one. The split is in-sample: the isotonic fit also follows the noise of these rows. With few
    rows the calibration part is therefore too large, and it is above 0 for perfect probabilities.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As for `rmse`.

    Returns
    -------
    BrierSplit
        ``score``, as of `brier_score`, ``calibration`` and ``refinement``. Lower is better for all
        three.

    References
    ----------
    .. [1] T. Dimitriadis, T. Gneiting and A. I. Jordan, "Stable reliability diagrams for
       probabilistic classifiers", PNAS 118(8), 2021.

    Examples
    --------
    Three rows at 0.75 of which one is a "yes": the isotonic fit lowers them to 1/3.

    >>> from caltree.metrics import brier_split
    >>> split = brier_split(["no", "no", "no", "yes", "yes"], [0.0, 0.75, 0.75, 0.75, 1.0])
    >>> [round(part, 4) for part in split]
    [0.2375, 0.1042, 0.1333]
    """
    rows = check_rows(y_true, y_prob, sample_weight, labels, pos_label)
    if rows.weights is not None:
        present = rows.weights > 0.0
        rows = LabeledProbabilities(
            rows.columns[present], rows.probabilities[present], rows.weights[present]
        )
    recalibrated = np.column_stack(
        [
            _recalibrate(rows.columns == column, probability, rows.weights)
            for column, probability in enumerate(rows.probabilities.T)
        ]
    )
    score = _brier_score(rows)
    refinement = min(_brier_score(rows._replace(probabilities=recalibrated)), score)
    return BrierSplit(score, score - refinement, refinement)


def log_loss(
    y_true: Any,
    y_prob: Any,
    *,
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Mean negative natural logarithm of the probability of the true class.

    Probabilities are divided by their sum first, in each row. Those below 2.2e-16 (the precision of
    a float), including 0, count as 2.2e-16. So the loss of a row is at most 36.04 and never
    infinite.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As for `rmse`.

    Returns
    -------
    float
        0 if certain and right, 36.04 if certain and wrong.

    Examples
    --------
    >>> from caltree.metrics import log_loss
    >>> round(log_loss(["no", "yes"], [0.1, 0.7]), 4)
    0.231
    >>> round(log_loss(["no", "yes"], [1.0, 0.0]), 2)
    36.04
    """
    # scikit-learn's by contract, with its floor of the probabilities. Imported here: its metrics
    # take longer to import than all of this module.
    from sklearn import metrics

    rows = check_rows(y_true, y_prob, sample_weight, labels, pos_label)
    total = rows.probabilities.sum(axis=1, keepdims=True)
    # The columns are those of the labels 0, 1, 2, ...: scikit-learn wants them sorted.
    loss = metrics.log_loss(
        rows.columns,
        rows.probabilities / total,
        sample_weight=rows.weights,
        labels=np.arange(rows.probabilities.shape[1]),
    )
    return float(loss)


def expected_calibration_error(
    y_true: Any,
    y_prob: Any,
    *,
    n_bins: int = 15,
    strategy: Strategy = "quantile",
    norm: Norm = "l1",
    debiased: bool = False,
    kind: Kind = "classwise",
    sample_weight: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> float:
    """Mean difference between predicted probability and observed frequency, over bins of rows.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels, pos_label
        As for `rmse`.
    n_bins : int, default 15
        The maximum number of bins.
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equal weight, in which equal probabilities are never separated, or of equal
        width; see `caltree.reliability.bins`.
    norm : {"l1", "l2"}, default "l1"
        The mean of the differences, or the root of the mean of their squares. Each bin counts
        with its weight.
    debiased : bool, default False
        Subtract what chance adds, as far as it can be estimated; see the notes.
    kind : {"classwise", "top_label"}, default "classwise"
        ``"classwise"`` is the mean over the classes of the error of one class against the rest,
        and with two classes the error of the second. ``"top_label"`` compares the largest
        probability of each row with whether its class, the first one if several are as large,
        is the true one.

    Returns
    -------
    float
        From 0 to 1; 0 is perfect.

    Notes
    -----
    The frequency o of a bin of n rows has, by chance alone, a variance of about
    v = o (1 - o) / (n - 1). So even perfect probabilities have an error above 0, and more bins make
    it larger. With ``norm="l2"`` each squared difference is reduced by v [1]_, which makes the sum
    of squares unbiased. With ``norm="l1"`` each difference d becomes 2 ``|d|`` - E|N(d, v)|, the
    bootstrap correction in closed form. This removes only about two fifths of the error that
    perfect probabilities have by chance. Either sum is set to 0 where it is negative.

    A weight is a number of rows: n is the sum of the weights of a bin. A bin of fewer than two
    rows has no v and adds nothing to a debiased error.

    References
    ----------
    .. [1] A. Kumar, P. Liang and T. Ma, "Verified uncertainty calibration", NeurIPS 2019.

    Examples
    --------
    >>> from caltree.metrics import expected_calibration_error
    >>> y_true, y_prob = ["no", "no", "no", "yes"], [0.125, 0.125, 0.75, 0.75]
    >>> expected_calibration_error(y_true, y_prob)
    0.1875
    >>> expected_calibration_error(y_true, y_prob, kind="top_label", n_bins=1)
    0.0625
    """
    check_count("n_bins", n_bins, 1)
    check_choice("strategy", strategy, get_args(Strategy))
    check_choice("norm", norm, get_args(Norm))
    check_choice("kind", kind, get_args(Kind))
    check_flag("debiased", debiased)
    rows = check_rows(y_true, y_prob, sample_weight, labels, pos_label)
    curves = (
        reliability_curve(
            truth, probability, n_bins=n_bins, strategy=strategy, sample_weight=rows.weights
        )
        for truth, probability in events(rows, kind)
    )
    return float(np.mean([calibration_error(curve, norm, bool(debiased)) for curve in curves]))


def _mean_squared_error(rows: LabeledProbabilities) -> float:
    """The squared differences, averaged over classes and rows."""
    losses = row_losses(rows.probabilities, rows.columns, "rmse")
    return float(np.average(losses, weights=rows.weights))


def _brier_score(rows: LabeledProbabilities) -> float:
    # Not scikit-learn's, which warns of rows that sum to one in single precision only.
    n_classes = rows.probabilities.shape[1]
    return _mean_squared_error(rows) * (1 if n_classes == 2 else n_classes)


def _recalibrate(truth: Mask, probability: Floats, weights: Floats | None) -> Floats:
    return np.interp(probability, *fit_isotonic(probability, truth, weights))
