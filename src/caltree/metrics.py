"""How good probabilities are: errors and calibration, weighted, for any number of classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ._inputs.arrays import Classes, Floats, Mask
from ._inputs.labels import check_weights
from ._inputs.parameters import check_choice, check_count
from .reliability import Norm, Strategy, calibration_error, reliability_curve

Kind: TypeAlias = Literal["classwise", "top_label"]

_SUM_TOLERANCE = 1e-3


def rmse(y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Root mean squared error of probabilities.

    The squared differences between the probabilities and the truth (1 for a row's class, 0 for
    the others) are summed over the n rows and m classes and divided by n * m; then comes the
    square root. With two classes this is the square root of the Brier score.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The labels.
    y_prob : array-like of shape (n, m) or (n,)
        The probabilities, one column a class; with two classes one column, that of the second
        class, will do.
    sample_weight : array-like of shape (n,), optional
        How many rows each row counts for.
    labels : array-like of shape (m,), optional
        The class of each column, e.g. ``tree.classes_``; by default the sorted labels of
        `y_true`.

    Returns
    -------
    float
        0 for certain and right, 1 for certain and wrong with two classes.

    Examples
    --------
    >>> from caltree.metrics import rmse
    >>> round(rmse(["no", "yes"], [[0.9, 0.1], [0.3, 0.7]]), 4)
    0.2236
    >>> round(rmse(["no", "yes"], [0.1, 0.7]), 4)
    0.2236
    """
    rows = check_rows(y_true, y_prob, sample_weight, labels)
    return float(np.sqrt(_squared_error(rows) / rows.probabilities.shape[1]))


def brier_score(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None
) -> float:
    """Brier score of probabilities.

    The squared differences between the probabilities and the truth (1 for a row's class, 0 for
    the others) are summed over the classes and averaged over the rows; with two classes the sum
    is halved. The scale is that of scikit-learn: from 0 to 1 with two classes, from 0 to 2 with
    more. With two classes the Brier score is the square of `rmse`, with m > 2 classes m times
    its square.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As for `rmse`.

    Returns
    -------
    float
        0 for certain and right; for certain and wrong 1 with two classes and 2 with more.

    Examples
    --------
    >>> from caltree.metrics import brier_score
    >>> round(brier_score(["no", "yes"], [0.1, 0.7]), 4)
    0.05
    """
    return _brier_score(check_rows(y_true, y_prob, sample_weight, labels))


class BrierSplit(NamedTuple):
    """The Brier score as a sum of two parts, neither of them negative.

    Attributes
    ----------
    score : float
        The Brier score.
    calibration : float
        What would be gained if each probability said how often its class happens.
    refinement : float
        What would remain: how poorly the probabilities tell the classes apart.
    """

    score: float
    calibration: float
    refinement: float


def brier_split(
    y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None
) -> BrierSplit:
    """Split the Brier score into calibration and refinement, without bins.

    The probabilities of each class are recalibrated by isotonic regression on the very rows they
    are judged by. The refinement is the Brier score of the recalibrated probabilities, the
    calibration what they gain. This is the CORP decomposition [1]_, one class against the rest
    and summed as in `brier_score`; with more than two classes the recalibrated probabilities of
    a row need not sum to one. The split is in-sample: the isotonic fit follows the noise of
    these rows too, so on few rows the calibration is overstated, and perfect probabilities do
    not reach 0.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As for `rmse`.

    Returns
    -------
    BrierSplit
        ``score``, which is that of `brier_score`, ``calibration`` and ``refinement``. For all
        three less is better.

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
    rows = check_rows(y_true, y_prob, sample_weight, labels)
    if rows.weights is not None:
        present = rows.weights > 0.0
        rows = _Rows(rows.columns[present], rows.probabilities[present], rows.weights[present])
    recalibrated = np.column_stack(
        [
            _recalibrate(rows.columns == column, probability, rows.weights)
            for column, probability in enumerate(rows.probabilities.T)
        ]
    )
    score = _brier_score(rows)
    refinement = min(_brier_score(rows._replace(probabilities=recalibrated)), score)
    return BrierSplit(score, score - refinement, refinement)


def log_loss(y_true: Any, y_prob: Any, *, sample_weight: Any = None, labels: Any = None) -> float:
    """Mean negative natural logarithm of the probability of the true class.

    Probabilities are divided by their sum first, in each row. Those under 2.2e-16 (the precision
    of a float), 0 among them, count as 2.2e-16, so that the loss of a row is at most 36.04 and
    never infinite.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As for `rmse`.

    Returns
    -------
    float
        0 for certain and right, 36.04 for certain and wrong.

    Examples
    --------
    >>> from caltree.metrics import log_loss
    >>> round(log_loss(["no", "yes"], [0.1, 0.7]), 4)
    0.231
    >>> round(log_loss(["no", "yes"], [1.0, 0.0]), 2)
    36.04
    """
    # Here, because scikit-learn's metrics take longer to import than all of this module.
    from sklearn import metrics

    rows = check_rows(y_true, y_prob, sample_weight, labels)
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
) -> float:
    """Mean difference between predicted probability and observed frequency, over bins of rows.

    Parameters
    ----------
    y_true, y_prob, sample_weight, labels
        As for `rmse`.
    n_bins : int, default 15
        The largest number of bins.
    strategy : {"quantile", "uniform"}, default "quantile"
        Bins of equal weight, in which equal probabilities are never separated, or of equal
        width; see `caltree.reliability.bins`.
    norm : {"l1", "l2"}, default "l1"
        The mean of the differences, or the root of the mean of their squares. Each bin counts
        with its weight.
    debiased : bool, default False
        Take off what chance adds, as far as it can be estimated; see the notes.
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
    v = o (1 - o) / (n - 1), so that even perfect probabilities have an error above 0, the more so
    the more bins there are. With ``norm="l2"`` each squared difference is reduced by v [1]_,
    which makes the sum of squares unbiased. With ``norm="l1"`` each difference d becomes
    2 ``|d|`` - E|N(d, v)|, the bootstrap correction in closed form; of the error that perfect
    probabilities have by chance this removes only about two fifths. Either sum is set to 0 where
    it is negative.

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
    if not isinstance(debiased, bool | np.bool_):
        raise ValueError(f"debiased must be True or False, got {debiased!r}")
    rows = check_rows(y_true, y_prob, sample_weight, labels)
    curves = (
        reliability_curve(
            truth, probability, n_bins=n_bins, strategy=strategy, sample_weight=rows.weights
        )
        for truth, probability in events(rows, kind)
    )
    return float(np.mean([calibration_error(curve, norm, bool(debiased)) for curve in curves]))


class _Rows(NamedTuple):
    """Checked rows: the column of the true class, the probabilities and the weights."""

    columns: npt.NDArray[np.intp]
    probabilities: Floats
    weights: Floats | None


def _squared_error(rows: _Rows) -> float:
    """The squared differences, summed over the classes and averaged over the rows."""
    difference = rows.probabilities.copy()
    difference[np.arange(len(difference)), rows.columns] -= 1.0
    return float(np.average(np.square(difference).sum(axis=1), weights=rows.weights))


def _brier_score(rows: _Rows) -> float:
    # Not scikit-learn's, which warns of rows that sum to one in single precision only.
    error = _squared_error(rows)
    return error / 2.0 if rows.probabilities.shape[1] == 2 else error


def _recalibrate(truth: Mask, probability: Floats, weights: Floats | None) -> Floats:
    from sklearn.isotonic import IsotonicRegression

    # Ranks, because scikit-learn takes values that differ by less than 1e-15 for equal.
    ranks = np.unique(probability, return_inverse=True)[1]
    fitted = IsotonicRegression().fit(ranks, truth, sample_weight=weights).predict(ranks)
    return np.asarray(fitted, dtype=np.float64)


def events(rows: _Rows, kind: Kind) -> Iterator[tuple[Mask, Floats]]:
    """What may happen in each row, and its probability."""
    if kind == "top_label":
        top = rows.probabilities.argmax(axis=1)
        yield rows.columns == top, rows.probabilities.max(axis=1)
        return
    n_classes = rows.probabilities.shape[1]
    for column in range(1 if n_classes == 2 else 0, n_classes):
        yield rows.columns == column, rows.probabilities[:, column]


def check_rows(y_true: Any, y_prob: Any, sample_weight: Any, labels: Any) -> _Rows:
    """Labels, probabilities and weights, checked against each other."""
    truth = np.asarray(y_true)
    if truth.ndim != 1 or len(truth) == 0:
        raise ValueError(f"y_true must have one label a row, got shape {truth.shape}")
    classes = check_classes(truth, labels)
    probabilities = _check_probabilities(y_prob, len(truth), len(classes))
    weights = check_weights(sample_weight, len(truth), "y_true")
    return _Rows(columns_of(truth, classes), probabilities, weights)


def check_classes(truth: Classes, labels: Any) -> Classes:
    """The classes that the columns stand for."""
    try:
        classes = np.unique(truth)
    except TypeError:
        raise TypeError(
            "y_true mixes labels of different types or holds missing ones; make all of them strings"
        ) from None
    if classes.dtype.kind == "f" and np.isnan(classes).any():
        raise ValueError("y_true contains NaN; drop the rows without a label")
    if labels is not None:
        classes = np.asarray(labels)
        if classes.ndim != 1 or len(set(classes.tolist())) != len(classes):
            raise ValueError(f"labels must name each class once, got {classes.tolist()}")
    if len(classes) < 2:
        raise ValueError(
            f"y_true contains one class only, {classes.tolist()[0]!r}; give all classes as labels"
            if labels is None
            else f"labels must name at least two classes, got {classes.tolist()}"
        )
    return classes


def _check_probabilities(y_prob: Any, n_rows: int, n_classes: int) -> Floats:
    try:
        matrix = np.asarray(y_prob, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("y_prob must be numbers, one row of one length for each label") from None
    if n_classes == 2 and (matrix.ndim == 1 or matrix.shape[1:] == (1,)):
        second = matrix.reshape(-1)
        matrix = np.column_stack([1.0 - second, second])
    if matrix.ndim != 2 or matrix.shape[1] != n_classes:
        raise ValueError(
            f"y_prob has shape {matrix.shape}, but there are {n_classes} classes; give one column "
            "a class, and labels if y_true lacks one of them"
        )
    if len(matrix) != n_rows:
        raise ValueError(f"y_prob has {len(matrix)} rows, but y_true has {n_rows}")
    valid = (matrix >= 0.0) & (matrix <= 1.0)
    if not valid.all():
        # Of a single column the other follows: name the number that was given.
        row = int(np.flatnonzero(~valid.all(axis=1))[0])
        column = int(np.flatnonzero(~valid[row])[-1])
        raise ValueError(
            f"y_prob contains {matrix[row, column]} in row {row}, which is not a probability"
        )
    sums = matrix.sum(axis=1)
    if np.abs(sums - 1.0).max() > _SUM_TOLERANCE:
        row = int(np.abs(sums - 1.0).argmax())
        raise ValueError(f"y_prob sums to {sums[row]:g} in row {row}; divide each row by its sum")
    return matrix


def columns_of(truth: Classes, classes: Classes) -> npt.NDArray[np.intp]:
    """The column of the class of every row."""
    try:
        order = np.argsort(classes)
        place = np.searchsorted(classes, truth, sorter=order)
    except TypeError:
        raise TypeError(
            f"labels {classes.tolist()} and y_true differ in type; make all of them strings"
        ) from None
    columns = order[np.minimum(place, len(classes) - 1)]
    unknown = classes[columns] != truth
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise ValueError(
            f"y_true contains {truth[row : row + 1].tolist()[0]!r} in row {row}, "
            f"which is not among the labels {classes.tolist()}"
        )
    return columns
