"""`audit`: are scores calibrated, overall and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from .._inputs.parameters import check_choice, check_flag, check_jobs
from .._inputs.scores import SCORE_TYPES
from .._inputs.warning import rows_checked_before
from ..metrics import MulticalibrationError, smooth_calibration_error
from ..metrics.multicalibration import SegmentLimits, worst_segment
from .adjust import Adjustment, adjust
from .axes import attribute_axes
from .groups import Named, check_by, examine_groups
from .parts import split_losses
from .regions import Found, are_same, deal_halves, find_regions, first_of_alike
from .result import Audit, Finding
from .rows import Rows, check_rows
from .whole import examine_whole


def audit(
    X: Any,
    y: Any,
    scores: Any,
    *,
    by: Sequence[str | int] | str | None = None,
    pairs: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    adjustment: Adjustment = "holm",
    alpha: float = 0.05,
    score_type: Literal["auto", "probability", "logit"] = "auto",
    pos_label: Any = None,
    categorical_features: Any = None,
    drop_identifiers: bool = True,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Audit:
    """Say whether scores are calibrated, overall and for whom.

    No calibrator is needed. Give rows that the classifier has not seen: on others it looks better
    than it is.

    Parameters
    ----------
    X : table of shape (n, d)
        The attributes by which rows may differ; they need not be those of the classifier.
    y : array-like of shape (n,)
        The labels.
    scores : array-like of shape (n,), (n, 1) or (n, m)
        Scores of the classifier: probabilities or log-odds, one column per class; with two classes
        one column is enough.
    by : str, or list of names or indices, optional
        Columns of `X` whose groups are to be tested, such as ``["sex", "education"]``. Whole
        numbers of at most 20 values may be codes, and each value is a group; other numbers are
        divided into five parts.
    pairs : bool, default=False
        Also test the groups of every pair of these columns.
    sample_weight : array-like of shape (n,), optional
        How much each row counts. A row is one observation, whatever its weight, so tests and
        intervals hold for weights of any meaning. If a weight stands for many equal rows, repeat
        the rows instead; otherwise the intervals are wider than necessary.
    groups : array-like of shape (n,), optional
        Which rows belong together, such as those of one customer: their labels may depend on each
        other. They stay together in halves and folds, and each group counts as one observation.
    adjustment : {"holm", "benjamini-hochberg"}, default="holm"
        How p-values of groups and regions are adjusted for all that were tested. With Holm, at most
        a share `alpha` of audits of calibrated scores make a false claim. With Benjamini-Hochberg,
        at most about that share of all claims are false.
    alpha : float, default=0.05
        The level at which errors are claimed.
    score_type : {"auto", "probability", "logit"}, default="auto"
        As for `CalibrationTree`. Margins are not probabilities and are refused.
    pos_label : label, optional
        The class of a single column of scores. By default it is the class after which the column is
        named, such as ``p_yes``, or else the second.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as categorical.
    drop_identifiers : bool, default=True
        Leave out, with a warning, attributes that look like identifiers.
    random_state : int, default=0
        Decides how rows are divided into halves and which labels are drawn.
    n_jobs : int, optional
        Threads to grow trees with; the result does not depend on it.

    Returns
    -------
    Audit
        Prints as text, and as a table in a notebook.

    See Also
    --------
    caltree.report.report : What a calibrator does about it.

    Notes
    -----
    If scores are calibrated everywhere, each label is as good as drawn from its score. So the test
    of the whole compares a statistic of the labels with the same statistic of labels drawn from the
    scores. It is a mean of likelihood ratios: of a curve for all rows, and of thousands of regions
    of one or two conditions. With `groups`, the signs of residuals are flipped instead, group by
    group.

    The three parts of the loss are those of Perez-Lebel et al. (2023) [1]_, on rows that were held
    out: a curve is the root of a `CalibrationTree`, averaged with the scores, and regions are the
    whole tree. A part may be a little below 0 where there is nothing to correct.

    Regions are found on one half of the rows and tested on the other, and the other way around.
    The test asks for an error in the direction that the first half shows: if scores are too low
    there, they must be too low in the other half, too. Regions have one condition or two, at least
    50 rows and 2 % of the weight. Where a half suggests several alternatives, these share one test
    in proportion to the evidence for them, and their intervals are wider, so that those of all
    alternatives hold together.

    References
    ----------
    .. [1] A. Perez-Lebel, M. Le Morvan and G. Varoquaux, "Beyond calibration: estimating the
       grouping loss of modern neural networks", ICLR 2023 (arXiv 2210.16315).

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import audit
    >>> random = np.random.default_rng(0)
    >>> X = random.integers(0, 3, (3000, 1))
    >>> scores = random.random(3000)
    >>> y = random.random(3000) < np.where(X[:, 0] == 2, scores / 2, scores)
    >>> found = audit(X, y, scores, by=[0])
    >>> found.p_value < 0.001
    True
    >>> for group in found.groups:
    ...     print(group.name, round(group.predicted, 2), round(group.observed, 2), group.is_off)
    all rows 0.49 0.42 True
    x0 = 0 0.48 0.5 False
    x0 = 1 0.5 0.5 False
    x0 = 2 0.5 0.25 True
    >>> found.regions[0].conditions[0]
    'x0 > 1.5'
    """
    _check_parameters(pairs, adjustment, alpha, score_type, drop_identifiers, random_state, n_jobs)
    rows = check_rows(
        X,
        y,
        scores,
        sample_weight=sample_weight,
        groups=groups,
        score_type=score_type,
        pos_label=pos_label,
        categorical_features=categorical_features,
        drop_identifiers=drop_identifiers,
    )
    columns = check_by(by, X, rows)
    random = np.random.default_rng(random_state)
    axes = attribute_axes(rows)
    whole = examine_whole(rows, axes, random)
    halves = deal_halves(rows, random)
    named = examine_groups(rows, columns, halves, pairs=pairs)
    with rows_checked_before():
        found = find_regions(rows, axes, halves, random)
    every: list[Named | Found] = [*named, *found]
    tested = [each for each in every if each.effect.p_value is not None]
    findings = _adjust(rows, every, tested, adjustment, alpha)
    return Audit(
        p_value=whole.p_value,
        whole=whole,
        parts=split_losses(rows, random, n_jobs),
        groups=findings[: len(named)],
        regions=_without_alike(findings[len(named) :], found),
        mce=_multicalibration_error(rows),
        smooth_ece=_smooth_error(rows),
        n_rows=len(rows),
        classes=rows.classes,
        event=None if rows.event is None else rows.classes[rows.event],
        n_tests=len(tested),
        alpha=float(alpha),
        adjustment=adjustment,
        weighted=rows.weights is not None,
        grouped=rows.groups is not None,
    )


def _check_parameters(
    pairs: Any,
    adjustment: Any,
    alpha: Any,
    score_type: Any,
    drop_identifiers: Any,
    random_state: Any,
    n_jobs: Any,
) -> None:
    check_flag("pairs", pairs)
    check_choice("adjustment", adjustment, get_args(Adjustment))
    check_choice("score_type", score_type, SCORE_TYPES)
    check_flag("drop_identifiers", drop_identifiers)
    check_jobs(n_jobs)
    if isinstance(alpha, bool) or not isinstance(alpha, float) or not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be a number between 0 and 1, got {alpha!r}; use e.g. 0.05")
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError(f"random_state must be a whole number, got {random_state!r}")


def _adjust(
    rows: Rows,
    every: Sequence[Named | Found],
    tested: Sequence[Named | Found],
    adjustment: Adjustment,
    alpha: float,
) -> list[Finding]:
    """Adjust the p-values of all groups and regions together."""
    p_values = [each.effect.p_value or 0.0 for each in tested]
    adjusted: dict[int, float] = dict(
        zip(map(id, tested), adjust(p_values, adjustment), strict=True)
    )
    findings = []
    for each in every:
        shifts = each.parts and (each.parts[0].shift, each.parts[1].shift)
        findings.append(
            Finding.of(
                each.conditions,
                rows.classes[each.channel],
                each.direction if isinstance(each, Found) else 0,
                each.effect,
                adjusted.get(id(each)),
                alpha,
                shifts,
                are_same(each.parts),
            )
        )
    return findings


def _rank(finding: Finding) -> float:
    return 2.0 if finding.p_value is None else finding.p_value


def _without_alike(findings: Sequence[Finding], found: Sequence[Found]) -> list[Finding]:
    """The regions by p-value; of those that are nearly the same, the first."""
    order = sorted(range(len(findings)), key=lambda place: _rank(findings[place]))
    kept = first_of_alike([(findings[k].label, found[k].everywhere) for k in order])
    return [findings[order[place]] for place in kept]


def _multicalibration_error(rows: Rows) -> MulticalibrationError:
    cases = [(rows.labels == channel, rows.predicted(channel)) for channel in rows.channels]
    weights = rows.row_weights
    return worst_segment(rows.attributes, rows.matrix, cases, weights, SegmentLimits())


def _smooth_error(rows: Rows) -> float:
    labels = np.arange(len(rows.classes))
    return smooth_calibration_error(
        rows.labels, rows.probabilities, sample_weight=rows.weights, labels=labels
    )
