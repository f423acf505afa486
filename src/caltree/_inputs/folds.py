"""Folds as row numbers: of the published method, of a splitter, or by hashes of row numbers."""

from __future__ import annotations

import math
import reprlib
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from .. import _core
from .arrays import Labels, Mask
from .groups import deal_groups, number_groups
from .hashing import INCREMENT, mix64
from .parameters import check_count, is_whole

Rows: TypeAlias = npt.NDArray[np.uint32]
Fold: TypeAlias = tuple[Rows, Rows]
FoldOf: TypeAlias = Callable[[int, int], npt.NDArray[np.uint8]]
"""Returns the fold of some rows, given the number of the first and how many there are."""

# A byte says which fold a row is held out from.
_MOST_FOLDS = 250
IN_NO_FOLD = 255
# With so many rows held out the standard error of a difference in RMSE is about 0.0001.
_ENOUGH_HELD_OUT = 200_000


def make_folds(
    cv: Any,
    labels: Labels,
    keep: Mask | None,
    random_state: Any,
    groups: npt.NDArray[Any] | None = None,
) -> list[Fold]:
    """Make folds of the kept rows.

    A number means the stratified folds of the published method, of rows that are shuffled if there
    is a `random_state`, or folds of whole groups; anything else is a splitter of all rows, or
    (train, test) index arrays. The groups are those of all rows.
    """
    n_rows = len(labels)
    if is_whole(cv):
        n_folds = check_count("cv", cv, 2)
        if groups is not None:
            kept = groups if keep is None else groups[keep]
            return group_folds(n_folds, labels, kept, random_state)
        if n_rows < n_folds:
            raise ValueError(
                f"cv={n_folds} needs at least {n_folds} rows, got {n_rows}; use fewer folds, or "
                "no cross-validation: fix every parameter that is 'cv', with do_no_harm=False and "
                "path_averaging=False"
            )
        rows = np.arange(n_rows, dtype=np.uint32)
        if random_state is not None:
            random_generator(random_state).shuffle(rows)
        return _core.folds(labels, rows, n_folds)
    return _split(cv, labels, np.ones(n_rows, dtype=bool) if keep is None else keep, groups)


def group_folds(
    n_folds: int, labels: npt.NDArray[Any], groups: npt.NDArray[Any], random_state: Any = None
) -> list[Fold]:
    """Make stratified folds of whole groups."""
    random = None if random_state is None else random_generator(random_state)
    fold_of = deal_groups(groups, labels, n_folds, random)
    rows = np.arange(len(labels), dtype=np.uint32)
    return [(rows[fold_of != fold], rows[fold_of == fold]) for fold in range(n_folds)]


def hashed_folds(
    first: int, n_rows: int, n_folds: int, n_judged: int, seed: int
) -> npt.NDArray[np.uint8]:
    """The fold of each row, by the number of the row alone, wherever the other rows are.

    The rows are the `n_rows` from number `first` on. Those of folds from `n_judged` on, for which
    no trees are grown, are `IN_NO_FOLD`.
    """
    numbers = np.arange(first, first + n_rows, dtype=np.uint64)
    # Of each block of n_folds neighbours one row is in each fold; a hash of the block's number and
    # the seed says in which fold its first row is.
    count = np.uint64(n_folds)
    start = np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    shift = mix64(numbers // count * INCREMENT + start) % count
    folds = ((numbers % count + shift) % count).astype(np.uint8)
    folds[folds >= n_judged] = IN_NO_FOLD
    return folds


def folds_by_number(n_folds: int, n_judged: int, seed: int) -> FoldOf:
    """Folds that the numbers of the rows decide on."""
    return partial(hashed_folds, n_folds=n_folds, n_judged=n_judged, seed=seed)


def deal_by_number(n_folds: int, n_rows: int, random_state: Any) -> tuple[int, FoldOf]:
    """Return the number of folds that trees are grown for, and the fold of every row."""
    check_folds(n_folds, n_rows)
    n_judged = judged_folds(n_folds, n_rows)
    return n_judged, folds_by_number(n_folds, n_judged, seed_of(random_state))


def judged_folds(n_folds: int, n_rows: int) -> int:
    """The number of folds that together hold out enough rows to choose by."""
    return min(n_folds, math.ceil(_ENOUGH_HELD_OUT * n_folds / n_rows))


def check_folds(n_folds: int, n_rows: int) -> None:
    """Refuse more folds than histograms can tell apart, or than there are rows."""
    if not n_folds <= min(_MOST_FOLDS, n_rows):
        raise ValueError(
            f"cv gives {n_folds} folds of {n_rows} rows; with histograms use at most "
            f"{min(_MOST_FOLDS, n_rows)}"
        )


def seed_of(random_state: Any) -> int:
    """The seed given by `random_state`; 0 for None."""
    return 0 if random_state is None else int(random_generator(random_state).randint(2**31))


def random_generator(random_state: Any) -> np.random.RandomState:
    """The generator given by `random_state`."""
    try:
        generator: np.random.RandomState = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be None, a whole number or a RandomState: {error}"
        ) from None
    return generator


def _split(cv: Any, labels: Labels, keep: Mask, groups: npt.NDArray[Any] | None) -> list[Fold]:
    # The splitter sees all rows; those that are not kept have any label.
    all_labels = np.zeros(len(keep), dtype=np.intp)
    all_labels[keep] = labels
    place = np.cumsum(keep) - 1
    folds = []
    named = {} if groups is None else {"groups": groups}
    for number, parts in enumerate(split_rows(cv, np.zeros((len(keep), 1)), all_labels, **named)):
        train, test = (place[part[keep[part]]].astype(np.uint32) for part in parts)
        if len(train) == 0 or len(test) == 0:
            raise ValueError(f"fold {number} of cv has no row of positive weight in one part")
        folds.append((train, test))
    return folds


def split_rows(
    cv: Any, X: Any, labels: npt.NDArray[Any], **groups: Any
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """Split rows by a splitter or an iterable, and check the row numbers of every fold."""
    folds = _row_numbers(cv, X, labels, groups)
    for number, parts in enumerate(folds):
        for part in parts:
            valid = part.ndim == 1 and part.dtype.kind in "iu" and part.size > 0
            if not valid or part.min() < 0 or part.max() >= len(labels):
                raise ValueError(
                    f"cv gives no valid row numbers for fold {number}; train and test must be "
                    f"arrays of numbers from 0 to {len(labels) - 1}"
                )
    if not folds:
        raise ValueError("cv gives no folds; use a number of folds, e.g. cv=5")
    if groups.get("groups") is not None:
        _warn_of_torn_groups(folds, np.asarray(groups["groups"]))
    return folds


def _warn_of_torn_groups(
    folds: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]], groups: npt.NDArray[Any]
) -> None:
    _, numbers = number_groups(groups)
    for number, (train, test) in enumerate(folds):
        both = np.intersect1d(numbers[train], numbers[test])
        if len(both) > 0:
            group = groups[numbers == both[0]].tolist()[0]
            warnings.warn(
                f"cv divides groups: fold {number} has rows of group {reprlib.repr(group)} in its "
                "training part and in its test part; use a number of folds or GroupKFold",
                UserWarning,
                stacklevel=3,
            )
            return


def _row_numbers(
    cv: Any, X: Any, labels: npt.NDArray[Any], groups: dict[str, Any]
) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    # Imported here: it would be half of the time that importing caltree takes.
    from sklearn.model_selection import check_cv

    try:
        if cv is None:
            raise TypeError("None is not a splitter")
        splits = check_cv(cv).split(X, labels, **groups)
        return [(np.asarray(train), np.asarray(test)) for train, test in splits]
    except (TypeError, ValueError) as error:
        raise ValueError(
            "cv must be a number of folds, a splitter or (train, test) index arrays; "
            f"{reprlib.repr(cv)} cannot split {len(labels)} rows: {error}"
        ) from None
