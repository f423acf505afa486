"""Classifiers as sources of scores: trained on some rows, asked about others."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.arrays import Classes, Floats, Mask, Rows
from .._inputs.folds import split_rows
from .._inputs.indexing import count_rows, take_columns, take_rows
from .._inputs.parameters import check_count
from .._inputs.scores import ScoreType, log_odds

Method = Literal["predict_proba", "decision_function"]
Fold = tuple[Rows, Rows]

# What a margin of infinity counts as; calibrators cut off there too.
_LARGEST_MARGIN = 1e100
# Probabilities of single precision may leave [0, 1] by as much.
_OVERSHOOT = 1e-6


@dataclass(frozen=True)
class Task:
    """A classifier and what it is trained on."""

    estimator: Any
    method: Method
    X: Any
    labels: Classes
    fit_params: dict[str, Any]
    is_ready: bool
    """Whether it is to be used as it is."""

    def fitted(self, rows: Rows | None = None) -> Any:
        """A copy of the classifier, fitted to some rows, or to all."""
        if rows is None:
            return clone(self.estimator).fit(self.X, self.labels, **self.fit_params)
        params = {
            name: take_rows(value, rows) if _is_by_row(value, len(self.labels)) else value
            for name, value in self.fit_params.items()
        }
        X = self._rows_of(rows, rows)
        return clone(self.estimator).fit(X, self.labels[rows], **params)

    def held_out_scores(self, fold: Fold, classes: Classes) -> Floats:
        """The scores of a fold's test rows by a classifier fitted to its training rows."""
        train, test = fold
        fitted = self.fitted(train)
        return class_scores(fitted, self._rows_of(test, train), classes, self.method)

    def _rows_of(self, rows: Rows, training: Rows) -> Any:
        """Some rows; of a kernel, only the columns of the training rows."""
        some = take_rows(self.X, rows)
        if tags_of(self.estimator).input_tags.pairwise:
            return take_columns(some, training.tolist())
        return some


def train(
    tasks: Sequence[Task],
    keep: Mask,
    folds: Sequence[Fold],
    rows: Rows,
    classes: Classes,
    n_jobs: int | None,
) -> tuple[list[Any], list[Floats]]:
    """Every classifier fitted to the kept rows, and its scores of `rows`.

    The scores of a classifier that is used as it is are its own, those of the others are
    out-of-fold scores of the rows that the folds test.
    """
    everything = None if keep.all() else np.flatnonzero(keep)
    jobs: list[tuple[Any, ...]] = []
    for task in tasks:
        if not task.is_ready:
            jobs += [(Task.held_out_scores, task, fold, classes) for fold in folds]
            jobs.append((Task.fitted, task, everything))
    results = iter(Parallel(n_jobs=n_jobs)(delayed(job)(*given) for job, *given in jobs))
    trained, scores = [], []
    for task in tasks:
        if task.is_ready:
            trained.append(task.estimator)
            X = task.X if len(rows) == len(keep) else take_rows(task.X, rows)
            scores.append(class_scores(task.estimator, X, classes, task.method))
        else:
            parts = [(test, next(results)) for _, test in folds]
            scores.append(_in_order(parts, len(keep))[rows])
            trained.append(next(results))
    return trained, scores


def _in_order(parts: list[tuple[Rows, Floats]], n_rows: int) -> Floats:
    """The scores of the test rows, each in the place of its row."""
    everything = np.full((n_rows, parts[0][1].shape[1]), np.nan)
    for test, scores in parts:
        everything[test] = scores
    return everything


def score_kind(methods: Sequence[Method], combine: str) -> ScoreType:
    """What the scores of several classifiers are together."""
    if "decision_function" not in methods:
        return "probability"
    if "predict_proba" in methods and combine == "average":
        raise ValueError(
            "combine='average' needs scores of one kind, but some of the classifiers give "
            "probabilities and others margins; use combine='side_by_side' or score_method"
        )
    return "margin"


def combined(parts: Sequence[Floats], methods: Sequence[Method], combine: str) -> Floats:
    """The scores of several classifiers, averaged or side by side.

    Beside margins, probabilities are log-odds.
    """
    if len(parts) == 1:
        return parts[0]
    if len(set(methods)) > 1:
        parts = [
            _as_margins(part) if method == "predict_proba" else part
            for part, method in zip(parts, methods, strict=True)
        ]
    if combine == "side_by_side" or len({part.shape[1] for part in parts}) > 1:
        kind = score_kind(methods, combine)
        parts = [_one_column_a_class(part, kind) for part in parts]
    return np.hstack(parts) if combine == "side_by_side" else np.asarray(np.mean(parts, axis=0))


def _as_margins(probabilities: Floats) -> Floats:
    odds = log_odds(probabilities, "probability", "clip")
    return odds[:, 1:] if odds.shape[1] == 2 else odds


def _one_column_a_class(scores: Floats, kind: ScoreType) -> Floats:
    if scores.shape[1] > 1:
        return scores
    # Half of a margin for each of two classes: their difference is the margin.
    return _two_columns(scores, "predict_proba") if kind == "probability" else scores * [-0.5, 0.5]


def tags_of(estimator: Any) -> Tags:
    """The tags of a classifier, which need not know scikit-learn's."""
    return get_tags(estimator if hasattr(estimator, "__sklearn_tags__") else BaseEstimator())


def score_method(estimator: Any, wanted: str) -> Method:
    """The method that gives the scores of a classifier."""
    methods: tuple[Method, ...] = ("predict_proba", "decision_function")
    for method in methods:
        if wanted in ("auto", method) and hasattr(estimator, method):
            return method
    lacks = "neither predict_proba nor decision_function" if wanted == "auto" else f"no {wanted}"
    raise TypeError(
        f"estimator {type(estimator).__name__} has {lacks}; use a classifier that gives scores"
        + ("" if wanted == "auto" else ", or score_method='auto'")
    )


def refuse_gaps(estimators: Iterable[Any]) -> None:
    """Refuse rows of weight 0 for kernels, whose columns are rows too."""
    for estimator in estimators:
        if tags_of(estimator).input_tags.pairwise:
            raise ValueError(
                f"sample_weight is 0 in some rows, which the kernel of {type(estimator).__name__} "
                "cannot leave out; drop those rows and columns of X"
            )


def refuse_pairs(estimators: Iterable[Any], methods: Iterable[Method], n_classes: int) -> None:
    """Refuse margins of pairs of classes: three classes have three pairs, so no shape tells."""
    for estimator, method in zip(estimators, methods, strict=True):
        shape = getattr(_innermost(estimator), "decision_function_shape", None)
        if method == "decision_function" and shape == "ovo" and n_classes > 2:
            raise ValueError(
                f"estimator {type(estimator).__name__} gives margins of pairs of classes; "
                "use an SVC with decision_function_shape='ovr'"
            )


def _innermost(estimator: Any) -> Any:
    """What gives the scores of a pipeline, a search or a frozen classifier."""
    # Imported here: they would be half of the time that importing caltree takes.
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, FrozenEstimator | GridSearchCV | RandomizedSearchCV):
        return _innermost(estimator.estimator)
    return _innermost(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator


def class_scores(estimator: Any, X: Any, classes: Classes, method: Method) -> Floats:
    """The scores of a fitted classifier, one column for each of `classes`.

    Margins of two classes stay one column, that of the second. A class the classifier has never
    seen has the probability 0, or the lowest of all its margins.
    """
    values = _as_matrix(getattr(estimator, method)(X), estimator, method)
    known = np.asarray(getattr(estimator, "classes_", classes))
    if values.shape[1] not in (len(known), 1 if len(known) == 2 else 0):
        raise ValueError(
            f"{type(estimator).__name__}.{method} gave {values.shape[1]} columns for "
            f"{len(known)} classes; calibration needs one column a class"
        )
    if np.array_equal(known, classes):
        return values
    if values.shape[1] == 1:
        values = _two_columns(values, method)
    least = 0.0 if method == "predict_proba" else values.min(initial=0.0)
    aligned = np.full((len(values), len(classes)), least)
    aligned[:, np.searchsorted(classes, known)] = values
    return aligned


def _two_columns(values: Floats, method: Method) -> Floats:
    """The score of the second of two classes as one for each."""
    return np.hstack([1.0 - values if method == "predict_proba" else -values, values])


def _as_matrix(values: Any, estimator: Any, method: Method) -> Floats:
    name = f"{type(estimator).__name__}.{method}"
    if isinstance(values, list) and values and np.ndim(values[0]) == 2:
        raise ValueError(f"{name} gave several outputs; calibrate one label at a time")
    matrix = np.asarray(values, dtype=np.float64)
    matrix = matrix.reshape(-1, 1) if matrix.ndim == 1 else matrix
    if np.isnan(matrix).any():
        row = int(np.argwhere(np.isnan(matrix))[0, 0])
        raise ValueError(f"{name} gave NaN for row {row}; the classifier cannot be calibrated")
    if method == "decision_function":
        return np.clip(matrix, -_LARGEST_MARGIN, _LARGEST_MARGIN)
    if matrix.min(initial=0.0) < -_OVERSHOOT or matrix.max(initial=1.0) > 1.0 + _OVERSHOOT:
        raise ValueError(
            f"{name} gave numbers outside [0, 1], which are no probabilities; "
            "use score_method='decision_function'"
        )
    return np.clip(matrix, 0.0, 1.0)


def _is_by_row(value: Any, n_rows: int) -> bool:
    """Whether a parameter of `fit` has an entry for each row."""
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        return False
    return getattr(value, "ndim", 1) > 0 and count_rows(value, "fit_params") == n_rows


def make_folds(
    cv: Any, X: Any, labels: Classes, keep: Mask, split_params: dict[str, Any]
) -> list[Fold]:
    """Folds in which no row is tested twice, of the kept rows.

    A number of folds is stratified, and keeps groups together if there are any.
    """
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        return _stratified(check_count("cv", cv, 2), labels, np.flatnonzero(keep), split_params)
    folds = split_rows(cv, X, labels, **split_params)
    tested = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(labels))
    if tested.max() > 1:
        raise ValueError(
            f"cv tests row {int(tested.argmax())} more than once; use folds in which a row is "
            "tested at most once, since it can have only one out-of-fold score"
        )
    folds = [(train[keep[train]], test[keep[test]]) for train, test in folds]
    return [fold for fold in folds if len(fold[0]) and len(fold[1])]


def _stratified(
    n_folds: int, labels: Classes, rows: Rows, split_params: dict[str, Any]
) -> list[Fold]:
    # Imported here: it would be half of the time that importing caltree takes.
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

    groups = split_params.get("groups")
    if groups is not None:
        groups = take_rows(np.asarray(groups), rows)
        n_groups = len(np.unique(groups))
        if n_groups < n_folds:
            raise ValueError(
                f"groups has {n_groups} groups, but cv={n_folds} needs at least {n_folds}; "
                "use fewer folds"
            )
    largest = int(np.unique(labels[rows], return_counts=True)[1].max())
    if largest < n_folds:
        raise ValueError(
            f"cv={n_folds} needs at least {n_folds} rows of some class, but none has more than "
            f"{largest}; use fewer folds"
        )
    splitter = StratifiedKFold(n_folds) if groups is None else StratifiedGroupKFold(n_folds)
    with warnings.catch_warnings():
        # Of a class that some fold lacks: its rows are scored like all others.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = split_rows(splitter, np.zeros((len(rows), 1)), labels[rows], groups=groups)
    return [(rows[train], rows[test]) for train, test in folds]


def usable(folds: Sequence[Fold], labels: Classes) -> list[Fold]:
    """The folds whose training rows have more than one class, with a warning of the others."""
    kept = []
    for number, (train, test) in enumerate(folds):
        if len(np.unique(labels[train])) > 1:
            kept.append((train, test))
            continue
        warnings.warn(
            f"fold {number} of cv trains on rows of one class only; its {len(test)} test rows "
            "get no score and are not used for calibration",
            UserWarning,
            stacklevel=4,
        )
    if not kept:
        raise ValueError("cv has no fold that trains on more than one class; use stratified folds")
    return kept


def keep_together(
    calibrator: Any, folds: Sequence[Fold], rows: Rows, labels: Classes, groups: Any
) -> None:
    """Let the calibrator's own folds keep together what the folds or the groups do."""
    n_folds = own_params(calibrator).get("cv")
    if not isinstance(n_folds, Integral) or n_folds < 2:
        return
    if not folds and groups is not None:
        folds = _stratified(int(n_folds), labels, rows, {"groups": groups})
    within = folds_within(folds, rows, int(n_folds))
    if within is not None:
        calibrator.set_params(cv=within)


def own_params(calibrator: Any) -> dict[str, Any]:
    """The parameters of a calibrator, which need not have any."""
    return calibrator.get_params(deep=False) if hasattr(calibrator, "get_params") else {}


def folds_within(folds: Sequence[Fold], rows: Rows, n_folds: int) -> list[Fold] | None:
    """Folds of the scored rows that keep together what other folds tested together.

    Neighbouring test parts are merged into `n_folds` folds at most; None if there is only one.
    """
    fold_of = np.zeros(rows.max() + 1, dtype=np.intp)
    n_merged = min(n_folds, len(folds))
    for number, (_, test) in enumerate(folds):
        fold_of[test] = number * n_merged // len(folds)
    numbers = fold_of[rows]
    parts = [np.flatnonzero(numbers == number) for number in np.unique(numbers)]
    if len(parts) < 2:
        return None
    everything = np.arange(len(rows))
    return [(np.delete(everything, part), part) for part in parts]
