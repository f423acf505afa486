"""Groups of rows that belong together: checked, numbered, and dealt into folds as a whole."""

from __future__ import annotations

import heapq
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import Classes, Mask
from .indexing import count_rows
from .labels import missing_values

GroupNumbers: TypeAlias = npt.NDArray[np.uint32]
"""The group of each row, numbered from 0 on."""


def check_groups(
    groups: Any, n_rows: int, keep: Mask | None = None, of: str = "X"
) -> npt.NDArray[Any] | None:
    """Check groups: one per row of `of`, none missing; None stays None.

    The groups are returned as they were given, as an array, since a splitter may look at them. A
    row that is not kept may lack its group, and is given that of another.
    """
    if groups is None:
        return None
    if isinstance(groups, str):
        raise TypeError(
            f"groups must be one value per row, got the name {groups!r}; give the values, such as "
            f"X[{groups!r}] (an audit or a report tests the groups of a column with by={groups!r})"
        )
    found = count_rows(groups, "groups")
    if found != n_rows:
        raise ValueError(
            f"groups must have one group for each of the {n_rows} rows of {of}, got {found}"
        )
    values = np.asarray(groups)
    if values.shape == (n_rows, 1):
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"groups must have one group per row, got shape {values.shape}")
    missing = missing_values(values)
    if not missing.any():
        return values
    refused = missing if keep is None else missing & keep
    if refused.any():
        row = int(np.flatnonzero(refused)[0])
        raise ValueError(
            f"groups contains a missing group in row {row}; drop the rows without a group, or "
            "give each of them a group of its own"
        )
    values = values.copy()
    values[missing] = values[~missing][0]
    return values


def number_groups(groups: npt.NDArray[Any]) -> tuple[int, GroupNumbers]:
    """Return how many groups there are, and the number of each row's group."""
    try:
        distinct, numbers = np.unique(groups, return_inverse=True)
        return len(distinct), numbers.astype(np.uint32)
    except TypeError:  # they have no order
        number_of: dict[Any, int] = {}
        found = [number_of.setdefault(group, len(number_of)) for group in groups.tolist()]
        return len(number_of), np.array(found, dtype=np.uint32)


def check_number_of_groups(n_groups: int, n_folds: int) -> None:
    """Refuse fewer groups than folds."""
    if n_groups < n_folds:
        raise ValueError(
            f"groups has {n_groups} groups, but cv={n_folds} needs at least {n_folds}; "
            "use fewer folds"
        )


def refuse_one_group(groups: GroupNumbers | None, who: str) -> None:
    """Refuse a single group, where `who` is judged by groups that trees have not seen."""
    if groups is not None and groups.max() == 0:
        raise ValueError(
            f"groups has 1 group, but {who} needs at least 2, since trees are judged by groups "
            "they have not seen; leave groups out"
        )


def refuse_few_groups(n_groups: int, fewest: int, who: str) -> None:
    """Refuse fewer groups than `who` holds out in turn."""
    if n_groups < fewest:
        raise ValueError(
            f"groups has {n_groups} group{'s' * (n_groups != 1)}, but {who} needs at least "
            f"{fewest}, since it holds out whole groups; leave groups out"
        )


def deal_groups(
    groups: npt.NDArray[Any],
    labels: Classes,
    n_folds: int,
    random: np.random.RandomState | None = None,
) -> npt.NDArray[np.intp]:
    """Deal whole groups into folds of about as many rows and about the same classes.

    Return the fold of each row. The largest group goes first, to the fold that has the fewest
    rows of groups like it, which have the same class most often. No fold is left without rows.
    Groups of one size are shuffled if there is a generator.
    """
    n_groups, numbers = number_groups(groups)
    check_number_of_groups(n_groups, n_folds)
    sizes = np.bincount(numbers)
    main_class = _most_frequent_class(numbers, labels)
    order = np.arange(n_groups) if random is None else random.permutation(n_groups)
    order = order[np.lexsort((-sizes[order], main_class[order]))]
    fold_of = np.empty(n_groups, dtype=np.intp)
    rows_of = [0] * n_folds
    last, heap = -1, []
    for group, size, label in zip(
        order.tolist(), sizes[order].tolist(), main_class[order].tolist(), strict=True
    ):
        if label != last:
            # Rows of groups like these, all rows, and the fold.
            last, heap = label, [(0, rows, fold) for fold, rows in enumerate(rows_of)]
            heapq.heapify(heap)
        alike, rows, fold = heap[0]
        heapq.heapreplace(heap, (alike + size, rows + size, fold))
        rows_of[fold] += size
        fold_of[group] = fold
    return fold_of[numbers]


def _most_frequent_class(groups: GroupNumbers, labels: Classes) -> npt.NDArray[np.int64]:
    """The class that most rows of each group have; of equals the first."""
    classes, codes = np.unique(labels, return_inverse=True)
    pairs, counts = np.unique(groups.astype(np.int64) * len(classes) + codes, return_counts=True)
    group, code = np.divmod(pairs, len(classes))
    order = np.lexsort((code, -counts, group))
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    return np.asarray(code[order][first])
