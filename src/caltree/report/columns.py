"""Columns whose groups the user wants to test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._classifier_base import CalibratedClassifierBase
from .._inputs.arrays import Floats
from .._inputs.attributes import Attributes, learn
from .._inputs.indexing import column_positions
from .._inputs.tables import read_table

# Of a column of more values, groups are too many to be tested and read.
_MOST_GROUPS = 100
_ROWS_AT_A_TIME = 100_000


def find_columns(
    by: Any, calibrator: Any, X: Any, known: Attributes | None
) -> tuple[list[int], list[int]]:
    """The attributes that `by` names, and columns of the table that are not attributes."""
    if by is None:
        return [], []
    if X is None:
        raise ValueError("by names columns of X, but X is None; give a table, or by=None")
    table = read_table(X, "X")
    named = [by] if isinstance(by, str) else by
    positions = column_positions(named, table, "by")
    own = _positions_of_attributes(calibrator, X, known)
    mine = [own.index(position) for position in positions if position in own]
    return mine, [position for position in positions if position not in own]


def _positions_of_attributes(calibrator: Any, X: Any, known: Attributes | None) -> list[int | None]:
    """Where the attributes of a calibrator are in a table; nowhere if there are none."""
    if known is None:
        return []
    if not isinstance(calibrator, CalibratedClassifierBase):
        return known.positions_in(read_table(X, "X"))
    chosen = calibrator.attribute_columns_
    among = chosen.positions_in(read_table(X, "X"))
    within = known.positions_in(read_table(chosen.of(X), "X"))
    return [None if position is None else among[position] for position in within]


def add_columns(
    known: Attributes | None, matrix: Floats | None, further: Any, folder: Path | None
) -> tuple[Attributes, Floats]:
    """The attributes with further columns behind them; in a file if there is a folder."""
    more, values = learn(further)
    if known is None or matrix is None:
        return more, values
    attributes = Attributes((*known.columns, *more.columns), None)
    shape = (len(values), len(attributes.columns))
    both: Floats = np.empty(shape, order="F")
    if folder is not None:
        both = np.memmap(folder / "all-attributes", np.float64, mode="w+", shape=shape)
    for start in range(0, len(values), _ROWS_AT_A_TIME):
        some = slice(start, start + _ROWS_AT_A_TIME)
        both[some, : matrix.shape[1]] = matrix[some]
        both[some, matrix.shape[1] :] = values[some]
    return attributes, both


def check_groups(known: Attributes | None, columns: Sequence[int]) -> None:
    """Refuse columns whose groups are too many, or none."""
    for column in columns:
        assert known is not None
        attribute = known.columns[column]
        if not attribute.is_used:
            raise ValueError(
                f"by names {attribute.name!r}, which has no usable values, or looks like an "
                "identifier; name another column"
            )
        if len(attribute.categories or ()) > _MOST_GROUPS:
            raise ValueError(
                f"by names {attribute.name!r}, which has {len(attribute.categories or ()):,} "
                f"values; a report tests at most {_MOST_GROUPS} groups of a column: put rare "
                "values together first"
            )
