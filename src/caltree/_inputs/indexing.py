"""Rows and columns of any table, as a table of the same kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import Rows
from .tables import Table, as_narwhals, read_table
from .warning import did_you_mean


def count_rows(values: Any, argument: str) -> int:
    """The number of rows of a table, or of anything else that has a length."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and shape:
        return int(shape[0])
    try:
        return len(values)
    except TypeError:
        pass
    array = np.asarray(values) if hasattr(values, "__array__") else None
    return len(array) if array is not None and array.ndim else read_table(values, argument).shape[0]


def take_rows(values: Any, rows: Rows | slice) -> Any:
    """Take some rows, in a container of the same kind; a slice without a copy where possible."""
    if isinstance(values, np.ndarray):
        return values[rows]
    if isinstance(values, list | tuple):
        if isinstance(rows, slice):
            return values[rows]
        taken = [values[row] for row in rows]
        return taken if isinstance(values, list) else tuple(taken)
    if hasattr(values, "tocsr"):
        return values.tocsr()[rows]
    if hasattr(values, "iloc"):  # narwhals would refuse two columns of one name
        return values.iloc[rows]
    frame = _as_frame(values)
    return np.asarray(values)[rows] if frame is None else frame[rows].to_native()


def take_columns(X: Any, columns: Sequence[int]) -> Any:
    """Take some columns of a table."""
    if hasattr(X, "tocsc"):
        return X.tocsc()[:, columns]
    frame = None if isinstance(X, np.ndarray | list | tuple) else _as_frame(X)
    if frame is None:
        return read_table(X, "X").data[:, columns]
    return frame[:, list(columns)].to_native()


@dataclass(frozen=True)
class Columns:
    """Chosen columns of a table; None for all."""

    positions: list[int] | None
    names: list[str] | None

    @classmethod
    def choose(cls, X: Any, attributes: Any) -> Columns:
        """Choose columns by names, indices, a mask, a slice, or a callable that returns these."""
        if attributes is None:
            return cls(None, None)
        table = read_table(X, "X")
        wanted = attributes(X) if callable(attributes) else attributes
        positions = column_positions(wanted, table, "attributes")
        if not positions:
            raise ValueError(
                "attributes chooses no column; for a calibrator that ignores them use "
                "PlattScaling() or IsotonicScaling()"
            )
        names = None if table.names is None else [table.names[j] for j in positions]
        return cls(positions, names)

    def of(self, X: Any) -> Any:
        """Take these columns of another table, by name if it has names, else by position."""
        if self.positions is None:
            return X
        return take_columns(X, self.positions_in(read_table(X, "X")))

    def positions_in(self, table: Table) -> list[int]:
        """Where those columns are in another table."""
        if self.positions is None:
            return list(range(table.shape[1]))
        by_name = self.names is not None and table.names is not None
        wanted = self.names if by_name else self.positions
        return column_positions(wanted, table, "attributes")


def column_positions(features: Any, table: Table, argument: str) -> list[int]:
    """The positions of columns given by names, indices, a slice of indices or a mask."""
    n_columns = table.shape[1]
    if isinstance(features, slice):
        features = range(n_columns)[features]
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise TypeError(f"{argument} must be a list; use [{features!r}]")
    chosen = list(features)
    if chosen and all(isinstance(feature, bool | np.bool_) for feature in chosen):
        if len(chosen) != n_columns:
            raise ValueError(
                f"{argument} is a mask of length {len(chosen)}, but X has {n_columns} "
                "columns; give one boolean per column"
            )
        return np.flatnonzero(chosen).tolist()
    return [_position(feature, table, argument) for feature in chosen]


def _position(feature: Any, table: Table, argument: str) -> int:
    names, n_columns = table.names or (), table.shape[1]
    if isinstance(feature, str):
        if feature not in names:
            raise ValueError(
                f"{argument} names {feature!r}, which is not a column of X"
                f"{did_you_mean(feature, names)}; the columns are "
                f"{list(names) if names else 'without names'}"
            )
        return names.index(feature)
    if not isinstance(feature, int | np.integer) or isinstance(feature, bool):
        raise TypeError(
            f"{argument} must hold column names, indices or one boolean per column, got "
            f"{feature!r}; give the names of columns of X, not their values"
        )
    if not 0 <= feature < n_columns:
        raise ValueError(
            f"{argument} has the index {feature}, but X has {n_columns} columns; "
            f"use 0 to {n_columns - 1}"
        )
    return int(feature)


def _as_frame(values: Any) -> Any:
    """A narwhals frame or series, or None for anything else."""
    import narwhals.stable.v2 as nw

    frame = as_narwhals(values, "X")
    return frame if isinstance(frame, nw.DataFrame | nw.Series) else None
