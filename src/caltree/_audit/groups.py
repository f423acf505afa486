"""Groups that the user names, by the values of attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from .._fitted.conditions import with_short_names
from .._fitted.segments import segments
from .._inputs.arrays import Floats, Mask
from .._inputs.indexing import column_positions
from .._inputs.tables import read_table
from .effects import Effect, effect_of, farthest_off
from .regions import Half, effects_in_halves
from .rows import Rows

# Whole numbers of so few values may be codes: each value is a group. Other numbers are divided into
# as many parts of about as many rows.
_MOST_CODES = 20
_PARTS_OF_NUMBERS = 5


@dataclass(frozen=True, eq=False)
class Named:
    """A group that the user named, and the effect in it."""

    conditions: list[str]
    """None for all rows."""
    channel: int
    effect: Effect
    parts: tuple[Effect, Effect] | None
    """The effect in two halves of the rows."""


def check_by(by: Any, X: Any, rows: Rows) -> list[int]:
    """The columns that the user names."""
    if by is None:
        return []
    named = [by] if isinstance(by, str) else by
    columns = column_positions(named, read_table(X, "X"), "by")
    unused = [rows.attributes.columns[j].name for j in columns if not _is_used(rows, j)]
    if unused:
        raise ValueError(
            f"by names {unused[0]!r}, which looks like an identifier and is left out; name another "
            "attribute, or keep it with drop_identifiers=False"
        )
    return columns


def _is_used(rows: Rows, column: int) -> bool:
    return rows.attributes.columns[column].is_used


def examine_groups(
    rows: Rows, columns: Sequence[int], halves: tuple[Half, Half], *, pairs: bool
) -> list[Named]:
    """The effect in all rows, and in the groups of some columns, or of pairs of these."""
    bare = rows.without_matrix()
    return [
        _examine(bare, conditions, inside, halves)
        for conditions, inside in make_groups(rows, columns, pairs=pairs)
    ]


def make_groups(
    rows: Rows, columns: Sequence[int], *, pairs: bool = False
) -> Iterator[tuple[list[str], Mask]]:
    """Yield all rows, and the groups of some columns, or of pairs of these; none is empty."""
    yield [], np.ones(len(rows), dtype=bool)
    parts = [list(_segments(rows, column)) for column in columns]
    for segments_of_column in parts:
        yield from (([words], inside) for words, inside in segments_of_column)
    for first, second in combinations(parts, 2) if pairs else ():
        for one, in_one in first:
            for other, in_other in second:
                inside = in_one & in_other
                if inside.any():
                    yield [one, other], inside


def _segments(rows: Rows, column: int) -> Iterator[tuple[str, Mask]]:
    attribute = with_short_names(rows.attributes.columns[column])
    values = rows.matrix[:, column]
    parts = _MOST_CODES if _may_be_codes(values) else _PARTS_OF_NUMBERS
    yield from segments(attribute, values, parts)


def _may_be_codes(values: Floats) -> bool:
    distinct = np.unique(values[~np.isnan(values)])
    return len(distinct) <= _MOST_CODES and bool((distinct == np.round(distinct)).all())


def _examine(rows: Rows, conditions: list[str], inside: Mask, halves: tuple[Half, Half]) -> Named:
    """The effect in a group; of several classes, that of the one that is farthest off."""
    channels = rows.channels
    effects = [effect_of(rows, channel, inside) for channel in channels]
    chosen = farthest_off(effects)
    channel, worst = channels[chosen], effects[chosen]
    if worst.p_value is not None:
        # The farthest of several classes was chosen.
        n_tested = sum(effect.p_value is not None for effect in effects)
        worst = replace(worst, p_value=min(1.0, worst.p_value * n_tested))
    return Named(conditions, channel, worst, effects_in_halves(rows, channel, inside, halves))
