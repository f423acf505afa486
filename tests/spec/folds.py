"""Cross-validation folds: stratified by dealing, never shuffled."""

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.intp]


def deal_folds(y: NDArray[np.integer], n_folds: int) -> list[tuple[Rows, Rows]]:
    """Split rows into stratified folds.

    Parameters
    ----------
    y : (n,) class indices
    n_folds : number of folds

    Returns
    -------
    One pair (training rows, held-out rows) a fold. The order of the rows within each is part of
    the specification: sums run in row order, and folds are dealt again inside of folds.
    """
    grouped = _group_by_class(y)
    dealt = np.concatenate([grouped[start::n_folds] for start in range(n_folds)])
    # array_split makes the first n mod n_folds blocks one row longer, which is the rule here.
    blocks = np.array_split(dealt, n_folds)
    return [
        (np.concatenate(blocks[:fold] + blocks[fold + 1 :]), blocks[fold])
        for fold in range(n_folds)
    ]


def _group_by_class(y: NDArray[np.integer]) -> Rows:
    """Bring rows of one class together by swaps, classes in order of first appearance.

    The row at the front of the unfinished part names the class; every later row of that class is
    swapped to the next free position. Swapping, unlike sorting, reorders the rows in between.
    """
    order = list(range(len(y)))
    free = 0
    while free < len(order):
        front_class = y[order[free]]
        for position in range(free, len(order)):
            if y[order[position]] == front_class:
                order[free], order[position] = order[position], order[free]
                free += 1
    return np.array(order, dtype=np.intp)
