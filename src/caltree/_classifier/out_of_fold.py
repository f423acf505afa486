"""Out-of-fold scores: folds, classifiers fitted to each of them, and their scores gathered."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from joblib.parallel import get_active_backend
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from .._inputs.arrays import Classes, Floats, Mask, Rows
from .._inputs.folds import group_folds, split_rows
from .._inputs.indexing import count_rows, take_columns, take_rows
from .._inputs.parameters import check_count, is_whole
from .._running import progress
from .estimators import tags_of
from .response import Method, class_scores

Fold: TypeAlias = tuple[Rows, Rows]

# The shares of the time of a fit that the classifiers and the calibrator take, about.
TRAINING, CALIBRATING = 0.8, 0.2


@dataclass(frozen=True)
class Task:
    """A classifier and the rows and parameters of its `fit`."""

    estimator: Any
    method: Method
    X: Any
    labels: Classes
    fit_params: dict[str, Any]
    is_frozen: bool
    """Whether it is fitted already and stays so."""

    @property
    def name(self) -> str:
        """The name of the classifier, for messages."""
        return type(self.estimator).__name__

    def fit(self, rows: Rows | None = None) -> Any:
        """Fit a copy of the classifier to some rows, or to all."""
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
        return self.fit_and_score(fold, classes)[1]

    def fit_and_score(self, fold: Fold, classes: Classes) -> tuple[Any, Floats]:
        """A classifier fitted to a fold's training rows, and its scores of the test rows.

        A frozen classifier is not fitted.
        """
        train, test = fold
        fitted = self.estimator if self.is_frozen else self.fit(train)
        return fitted, class_scores(fitted, self._rows_of(test, train), classes, self.method)

    def _rows_of(self, rows: Rows, training: Rows) -> Any:
        """Some rows of `X`; of a kernel matrix, only the columns of the training rows."""
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
    """Fit every classifier to the kept rows and score `rows`.

    The scores are out-of-fold scores of the rows that the folds test. A frozen classifier is not
    fitted and scores the rows itself.
    """
    everything = None if keep.all() else np.flatnonzero(keep)
    jobs: list[tuple[Any, ...]] = []
    said: list[str] = []
    for task in tasks:
        if not task.is_frozen:
            jobs += [(Task.held_out_scores, task, fold, classes) for fold in folds]
            jobs.append((Task.fit, task, everything))
            said += [
                f"scored fold {i} of {len(folds)} with {task.name}"
                for i in range(1, len(folds) + 1)
            ]
            said.append(f"fitted {task.name} to all rows")
    results = iter(_run(jobs, said, n_jobs))
    trained, scores = [], []
    for task in tasks:
        if task.is_frozen:
            trained.append(task.estimator)
            X = task.X if len(rows) == len(keep) else take_rows(task.X, rows)
            scores.append(class_scores(task.estimator, X, classes, task.method))
        else:
            parts = [(test, next(results)) for _, test in folds]
            scores.append(_gather(parts, len(keep))[rows])
            trained.append(next(results))
    return trained, scores


def train_pairs(
    tasks: Sequence[Task], folds: Sequence[Fold], classes: Classes, n_jobs: int | None
) -> list[tuple[list[Any], list[Floats]]]:
    """For each fold, the classifiers fitted to its training rows, and their test rows' scores."""
    jobs: list[tuple[Any, ...]] = []
    said: list[str] = []
    for i, fold in enumerate(folds, start=1):
        for task in tasks:
            jobs.append((Task.fit_and_score, task, fold, classes))
            said.append(f"scored fold {i} of {len(folds)} with {task.name}")
    results = iter(_run(jobs, said, n_jobs))
    pairs = []
    for _ in folds:
        fitted, scores = zip(*(next(results) for _ in tasks), strict=True)
        pairs.append((list(fitted), list(scores)))
    return pairs


def _run(jobs: Sequence[tuple[Any, ...]], said: Sequence[str], n_jobs: int | None) -> list[Any]:
    """Run jobs as joblib is configured, and tell of each as it is done."""
    backend, _ = get_active_backend()
    return_as = "generator" if backend.supports_return_generator else "list"
    results: list[Any] = []
    with progress.stage(TRAINING) as training:
        run = Parallel(n_jobs=n_jobs, return_as=return_as)
        for result in run(delayed(job)(*given) for job, *given in jobs):
            training.say(said[len(results)])
            results.append(result)
            training.reach(len(results) / len(jobs))
    return results


def _gather(parts: list[tuple[Rows, Floats]], n_rows: int) -> Floats:
    """Put the scores of the test rows in the places of their rows."""
    everything = np.full((n_rows, parts[0][1].shape[1]), np.nan)
    for test, scores in parts:
        everything[test] = scores
    return everything


def _is_by_row(value: Any, n_rows: int) -> bool:
    """Whether a parameter of `fit` has an entry for each row."""
    if isinstance(value, str | bytes | dict) or not hasattr(value, "__len__"):
        return False
    return getattr(value, "ndim", 1) > 0 and count_rows(value, "fit_params") == n_rows


def make_folds(
    cv: Any,
    X: Any,
    labels: Classes,
    keep: Mask,
    split_params: dict[str, Any],
    *,
    tested_once: bool = True,
) -> list[Fold]:
    """Make folds of the kept rows in which no row is tested twice, unless it may be.

    A number of folds is stratified, and keeps groups together if there are any.
    """
    if is_whole(cv):
        return _split_stratified(
            check_count("cv", cv, 2), labels, np.flatnonzero(keep), split_params
        )
    folds = split_rows(cv, X, labels, **split_params)
    tested = np.bincount(np.concatenate([test for _, test in folds]), minlength=len(labels))
    if tested_once and tested.max() > 1:
        raise ValueError(
            f"cv tests row {int(tested.argmax())} more than once; use folds in which a row is "
            "tested at most once, since it can have only one out-of-fold score"
        )
    folds = [(train[keep[train]], test[keep[test]]) for train, test in folds]
    return [fold for fold in folds if len(fold[0]) and len(fold[1])]


def _split_stratified(
    n_folds: int, labels: Classes, rows: Rows, split_params: dict[str, Any]
) -> list[Fold]:
    # Imported here: it would be half of the time that importing caltree takes.
    from sklearn.model_selection import StratifiedKFold

    groups = split_params.get("groups")
    if groups is not None:
        folds = group_folds(n_folds, labels[rows], np.asarray(groups)[rows])
        return [(rows[train], rows[test]) for train, test in folds]
    largest = int(np.unique(labels[rows], return_counts=True)[1].max())
    if largest < n_folds:
        raise ValueError(
            f"cv={n_folds} needs at least {n_folds} rows of some class, but none has more than "
            f"{largest}; use fewer folds"
        )
    with warnings.catch_warnings():
        # A class that some fold lacks is no problem: its rows are scored like all others.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        folds = split_rows(StratifiedKFold(n_folds), np.zeros((len(rows), 1)), labels[rows])
    return [(rows[train], rows[test]) for train, test in folds]


def drop_folds_of_one_class(
    folds: Sequence[Fold], labels: Classes, *, tests_too: bool = False
) -> list[Fold]:
    """Drop the folds whose training rows (or test rows) are of one class, with a warning."""
    kept = []
    for number, (train, test) in enumerate(folds):
        if len(np.unique(labels[train])) == 1:
            what = "trains on"
        elif tests_too and len(np.unique(labels[test])) == 1:
            what = "tests"
        else:
            kept.append((train, test))
            continue
        warnings.warn(
            f"fold {number} of cv {what} rows of one class only; its {len(test)} test rows "
            "get no score and are not used for calibration",
            UserWarning,
            stacklevel=3,
        )
    if folds and not kept:
        both = " and tests" if tests_too else ""
        raise ValueError(
            f"cv has no fold that trains on{both} more than one class; use stratified folds"
        )
    return kept


def keep_folds_together(calibrator: Any, folds: Sequence[Fold], rows: Rows) -> None:
    """Let the calibrator's own folds keep together the rows that the folds test together."""
    n_folds = own_params(calibrator).get("cv")
    if not isinstance(n_folds, Integral) or n_folds < 2:
        return
    within = folds_within(folds, rows, int(n_folds))
    if within is not None:
        calibrator.set_params(cv=within)


def own_params(calibrator: Any) -> dict[str, Any]:
    """The parameters of a calibrator; empty for one without `get_params`."""
    return calibrator.get_params(deep=False) if hasattr(calibrator, "get_params") else {}


def folds_within(folds: Sequence[Fold], rows: Rows, n_folds: int) -> list[Fold] | None:
    """Folds of the scored rows that keep together the rows that other folds test together.

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
