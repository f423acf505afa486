"""A plane through a table: two attributes vary, the others are held at one value each."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._fitted.names import printable
from .._inputs.arrays import Floats
from .._inputs.indexing import column_positions
from .._inputs.tables import Categories, Column, Table, read_table

Indices: TypeAlias = npt.NDArray[np.intp]
# The cells of an attribute: rows of the table that have the values, or new numbers.
Source: TypeAlias = npt.NDArray[Any]

_MOST_CATEGORIES = 30
_MARGIN = 0.02


@dataclass(frozen=True)
class Axis:
    """An attribute that varies."""

    name: str
    ticks: tuple[str, ...] | None
    """The categories, from 0 up; None for a numeric attribute."""
    limits: tuple[float, float]
    """Where the first cell begins and the last one ends."""
    source: Source
    """The value of each cell."""
    places: Floats
    """Where the rows of the table are; NaN if their value is missing."""


@dataclass(frozen=True)
class Plane:
    """The two attributes that vary, the values of the others, and all cells as a table.

    The table has the kind of `X`; its rows go from left to right, then up.
    """

    across: Axis
    up: Axis
    held: dict[str, Any]
    table: Any

    @property
    def shape(self) -> tuple[int, int]:
        """The number of cells, up and across."""
        return len(self.up.source), len(self.across.source)


def make_plane(
    X: Any,
    pair: tuple[int, int],
    nominal: npt.NDArray[np.bool_],
    fixed: Mapping[Any, Any] | None,
    n_points: int,
) -> Plane:
    """Let two columns of a table vary, and hold the others at given or typical values.

    Of the pair, the first varies from left to right, in `n_points` cells if it is numeric, and the
    second upwards. Columns of `nominal` are so whatever their type. Those that `fixed` does not
    hold, by name or index, have the median or the most frequent category.
    """
    table = read_table(X, "X")
    columns = [table.column(j, nominal=bool(nominal[j])) for j in range(table.shape[1])]
    given = _positions(fixed, table)
    across, up = (_axis(columns[j], printable(table.label(j)), n_points) for j in pair)
    sources: list[Source] = []
    held = {}
    for j, column in enumerate(columns):
        if j in pair:
            if j in given:
                raise ValueError(
                    f"fixed holds {table.label(j)!r}, which is one of the attributes that vary; "
                    "leave it out"
                )
            sources.append(np.empty(0, dtype=np.intp))
            continue
        name = table.label(j)
        source = _given_value(column, given[j], name) if j in given else _typical_value(column)
        held[name] = _read_value(column, source)
        sources.append(source)
    n_up, n_across = len(up.source), len(across.source)
    n_cells = n_up * n_across
    sources = [np.resize(source, n_cells) for source in sources]
    sources[pair[0]] = np.tile(across.source, n_up)
    sources[pair[1]] = np.repeat(up.source, n_across)
    return Plane(across, up, held, _gather(table, sources))


def _positions(fixed: Any, table: Table) -> dict[int, Any]:
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        raise TypeError(
            f"fixed must be a dict of attributes and their values, got {reprlib.repr(fixed)}"
        )
    names = list(fixed)
    return dict(zip(column_positions(names, table, "fixed"), fixed.values(), strict=True))


def _axis(column: Column, name: str, n_points: int) -> Axis:
    if column.categories is not None:
        return _nominal_axis(column, name)
    known = np.isfinite(column.values)
    if not known.any():
        raise ValueError(
            f"attributes names {name!r}, which has no known value in X; choose another attribute"
        )
    low, high = float(column.values[known].min()), float(column.values[known].max())
    margin = _MARGIN * (high - low) if high > low else 0.5
    low, high = low - margin, high + margin
    steps = (np.arange(n_points) + 0.5) / n_points
    source = low * (1.0 - steps) + high * steps
    return Axis(name, None, (low, high), source, np.where(known, column.values, np.nan))


def _nominal_axis(column: Column, name: str) -> Axis:
    codes, rows = np.unique(column.values, return_index=True)
    codes, rows = codes[codes >= 0], rows[codes >= 0]
    if not 0 < len(codes) <= _MOST_CATEGORIES:
        raise ValueError(
            f"attributes names {name!r}, which has {len(codes)} categories in X; choose an "
            f"attribute of 1 to {_MOST_CATEGORIES} categories, or a numeric one"
        )
    ticks = [printable(_category(column, code)) for code in codes]
    if not column.declared:
        order = np.argsort(np.array(ticks, dtype=object), kind="stable")
        codes, rows, ticks = codes[order], rows[order], [ticks[k] for k in order]
    place_of = np.full(int(column.values.max()) + 2, np.nan)  # the last is for missing ones, -1
    place_of[codes] = np.arange(len(codes))
    limits = (-0.5, len(codes) - 0.5)
    return Axis(name, tuple(ticks), limits, rows.astype(np.intp), place_of[column.values])


def _category(column: Column, code: int) -> Any:
    categories: Categories = column.categories or ()
    return categories[code]


def _typical_value(column: Column) -> Source:
    """A row with the median, the lower of two, or with the most frequent category."""
    if column.categories is not None:
        codes, rows, counts = np.unique(column.values, return_index=True, return_counts=True)
        counts = np.where(codes < 0, 0, counts)
        return np.array([rows[counts.argmax()]], dtype=np.intp)
    known = np.flatnonzero(np.isfinite(column.values))
    if not len(known):
        return np.zeros(1, dtype=np.intp)
    order = known[np.argsort(column.values[known], kind="stable")]
    return np.array([order[(len(order) - 1) // 2]], dtype=np.intp)


def _given_value(column: Column, value: Any, name: str) -> Source:
    if column.categories is not None:
        rows = np.flatnonzero(column.values == _code(column, value))
        if not len(rows):
            known = [_category(column, code) for code in np.unique(column.values) if code >= 0]
            raise ValueError(
                f"fixed holds {name!r} at {value!r}, which no row of X has; use one of "
                f"{reprlib.repr(known)}"
            )
        return np.array([rows[0]], dtype=np.intp)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError(f"fixed holds {name!r} at {value!r}; it is numeric, use a finite number")
    return np.array([float(value)])


def _code(column: Column, value: Any) -> int:
    categories: Categories = column.categories or ()
    return categories.index(value) if value in categories else -2


def _read_value(column: Column, source: Source) -> Any:
    if source.dtype.kind == "f":
        return float(source[0])
    found = column.values[source[0]]
    if column.categories is None:
        return float(found)
    return None if found < 0 else _category(column, found)


def _gather(table: Table, sources: list[Source]) -> Any:
    """A table of the kind that was read, column by column."""
    if isinstance(table.data, np.ndarray):
        return _gather_array(table.data, sources)
    import narwhals.stable.v2 as nw

    columns = []
    for series, source in zip(table.data, sources, strict=True):
        if source.dtype.kind == "f":
            made = nw.new_series(series.name, source, backend=series.implementation)
        else:
            made = series[source.tolist()]
        columns.append(nw.maybe_reset_index(made.to_frame()))
    return nw.concat(columns, how="horizontal").to_native()


def _gather_array(data: npt.NDArray[Any], sources: list[Source]) -> npt.NDArray[Any]:
    has_numbers = any(source.dtype.kind == "f" for source in sources)
    dtype = np.result_type(data.dtype, np.float64) if has_numbers else data.dtype
    made = np.empty((len(sources[0]), data.shape[1]), dtype=dtype)
    for j, source in enumerate(sources):
        made[:, j] = source if source.dtype.kind == "f" else data[source, j]
    return made
