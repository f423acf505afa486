"""Tables of any kind, read a column at a time: numbers, or codes of categories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Mask

Category: TypeAlias = str | bool | int | float
Categories: TypeAlias = tuple[Category, ...]


@dataclass(frozen=True)
class Column:
    """Numbers with NaN for missing, or codes of the categories with -1 for missing."""

    values: npt.NDArray[Any]
    categories: Categories | None = None
    # Declared categories belong to the column's type: they count even where no row has them.
    declared: bool = False


@dataclass(frozen=True)
class Table:
    """A table, as an array or a list of narwhals series, whose columns are read on demand."""

    argument: str
    names: tuple[str, ...] | None
    shape: tuple[int, int]
    data: Any

    def label(self, j: int) -> str:
        """The name of a column, or ``"x0"``, ``"x1"``, ... in a table without names."""
        return f"x{j}" if self.names is None else self.names[j]

    def numbers(self) -> Floats | None:
        """The whole table, if it is an array of numbers."""
        if not isinstance(self.data, np.ndarray) or self.data.dtype.kind not in "iuf":
            return None
        if self.data.dtype == np.float64 and self.data.flags.forc:
            return self.data
        return self.data.astype(np.float64, order="F")

    def column(self, j: int, *, nominal: bool) -> Column:
        """Read a column; numbers become categories if it is to be nominal."""
        where = f"attribute {self.label(j)!r} of {self.argument}"
        if isinstance(self.data, np.ndarray):
            return _array_column(self.data[:, j], where, nominal)
        return _series_column(self.data[j], where, nominal)


def read_table(X: Any, argument: str) -> Table:
    """Read any table; `argument` is the caller's name of it, for messages.

    A table that was read already is returned as it is.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{argument} is a masked array; use {argument}.filled(np.nan)")
    if isinstance(X, np.ndarray):
        array = np.asarray(X)
    elif isinstance(X, list | tuple):
        array = _array_of_rows(X, argument)
    elif hasattr(X, "toarray") and hasattr(X, "nnz"):
        array = X.toarray(order="F")
    else:
        frame = _read_frame(X, argument)
        if frame is not None:
            return frame
        array = np.asarray(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {argument} is of type {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"{argument} must have rows and columns, got shape {array.shape}. "
            f"Reshape your data, e.g. {argument}.reshape(-1, 1) for one column"
        )
    return Table(argument, None, array.shape, array)


def _array_of_rows(rows: list[Any] | tuple[Any, ...], argument: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(rows)
    except ValueError:
        raise ValueError(f"{argument} must be a list of rows of one length") from None
    # numpy turns numbers beside strings into strings; as objects they stay numbers.
    return np.asarray(rows, dtype=object) if array.dtype.kind in "US" else array


def _read_frame(X: Any, argument: str) -> Table | None:
    """Read a frame; None for anything that can only be made an array of."""
    import narwhals.stable.v2 as nw

    frame = as_narwhals(X, argument)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"{argument} is a lazy {type(X).__name__}; collect it first")
    if not isinstance(frame, nw.DataFrame):
        if hasattr(X, "__array__") and np.asarray(X).ndim == 2:
            return None
        raise TypeError(
            f"{argument} must be a numpy array, a list of rows, a pandas, polars or pyarrow "
            f"table or a scipy sparse matrix, got {type(X).__name__}"
        )
    text = [isinstance(name, str) for name in frame.columns]
    if any(text) and not all(text):
        raise TypeError(
            f"{argument} has column names that are strings and others that are not: "
            f"{frame.columns}; make all of them strings"
        )
    names = tuple(frame.columns) if any(text) else None
    return Table(argument, names, frame.shape, list(frame.iter_columns()))


def as_narwhals(X: Any, argument: str) -> Any:
    """A frame or series of narwhals, or `X` itself if it is neither; names must differ."""
    import narwhals.stable.v2 as nw

    try:
        return nw.from_native(X, pass_through=True, allow_series=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"{argument} has duplicate column names; rename them ({' '.join(str(error).split())})"
        ) from None


def _array_column(values: npt.NDArray[Any], where: str, nominal: bool) -> Column:
    kind = values.dtype.kind
    if kind == "b":
        return Column(values.astype(np.intp), (False, True), declared=True)
    if kind in "iuf":
        return _number_column(values, nominal)
    if kind in "OUT":
        return _object_column(values.astype(object), where, nominal)
    raise TypeError(f"{where} is of type {values.dtype}; turn it into numbers or strings")


def _number_column(values: npt.NDArray[Any], nominal: bool) -> Column:
    if not nominal:
        return Column(values)
    missing = np.isnan(values)
    # Adding 0 makes one of 0.0 and -0.0, which are equal but would be written differently.
    categories, codes = np.unique(values[~missing] + 0, return_inverse=True)
    return _spread(Column(codes, tuple(categories.tolist())), missing)


def _object_column(values: npt.NDArray[np.object_], where: str, nominal: bool) -> Column:
    kinds = {found: _kind(found) for found in set(map(type, values))}
    _refuse(values, {found for found, kind in kinds.items() if kind is None}, where)
    missing = np.zeros(len(values), dtype=bool)
    if not {"missing", "number"}.isdisjoint(kinds.values()):  # a number may be NaN
        missing[:] = [kinds[type(v)] == "missing" or v != v for v in values]
    values[missing] = None
    present = values[~missing]
    if not len(present):
        return _number_column(np.full(len(values), np.nan), nominal)
    kind, types = kinds[type(present[0])], set(map(type, present))
    _refuse(values, {found for found in types if kinds[found] != kind}, where)
    if kind == "boolean":
        return _spread(Column(present.astype(np.intp), (False, True), declared=True), missing)
    whole = all(issubclass(found, int | np.integer) for found in types)
    if kind == "number":
        numbers = np.full(len(values), np.nan)
        try:
            numbers[~missing] = present
        except OverflowError:
            raise ValueError(
                f"{where} has an integer beyond the largest float; leave it out or make it a string"
            ) from None
        if not (whole and nominal):
            return _number_column(numbers, nominal)
    code_of: dict[Category, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(code_of.__getitem__, present), dtype=np.intp)
    plain: Callable[[Any], Category] = str if kind == "string" else int
    return _spread(Column(codes, tuple(map(plain, code_of))), missing)


def _kind(found: type) -> str | None:
    # pandas.NA and pandas.NaT go by name: pandas need not be installed.
    if found is NoneType or found.__name__ in {"NAType", "NaTType"}:
        return "missing"
    if issubclass(found, bool | np.bool_):
        return "boolean"
    if issubclass(found, int | float | np.integer | np.floating):
        return None if issubclass(found, np.timedelta64) else "number"
    return "string" if issubclass(found, str) else None


def _refuse(values: npt.NDArray[np.object_], types: set[type], where: str) -> None:
    for row, value in enumerate(values if types else ()):
        if type(value) in types:
            raise TypeError(
                f"{where} has a {type(value).__name__} in row {row}; its values must be all "
                "strings, all booleans or all numbers"
            )


def _spread(column: Column, missing: Mask) -> Column:
    """Add the missing rows to a column of the present ones."""
    codes = np.full(len(missing), -1, dtype=np.intp)
    codes[~missing] = column.values
    return replace(column, values=codes)


def _series_column(series: Any, where: str, nominal: bool) -> Column:
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    # narwhals calls pandas objects strings where it sees no other value, and none at all too.
    objects = getattr(series.to_native(), "dtype", None) == np.dtype(object)
    if objects or isinstance(dtype, nw.Object | nw.Unknown):
        return _array_column(series.to_numpy(), where, nominal)
    if isinstance(dtype, nw.Boolean):
        codes = series.drop_nulls().to_numpy().astype(np.intp)
        return _spread(Column(codes, (False, True), declared=True), series.is_null().to_numpy())
    if dtype.is_integer():
        # Beside a null an integer would become a float and lose digits, which only numbers may; and
        # Arrow makes no floats of integers beyond 2**53, which numpy rounds.
        present, missing = series.drop_nulls().to_numpy(), series.is_null().to_numpy()
        if nominal:
            return _spread(_number_column(present, nominal), missing)
        numbers = np.full(len(missing), np.nan)
        numbers[~missing] = present
        return Column(numbers)
    if dtype.is_numeric():
        return _number_column(series.cast(nw.Float64).to_numpy(), nominal)
    if isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        pandas_like = series.implementation.is_pandas_like()
        return _pandas_text_column(series, where) if pandas_like else _text_column(series, where)
    raise TypeError(f"{where} is of type {dtype}; turn it into numbers or strings")


def _pandas_text_column(series: Any, where: str) -> Column:
    import narwhals.stable.v2 as nw

    native = series.to_native()
    declared = hasattr(native.dtype, "categories")
    if not declared and isinstance(series.dtype, nw.Categorical):
        # A pyarrow dictionary inside pandas, which has no way to make a Categorical of it.
        return _object_column(np.array(native.to_list(), dtype=object), where, nominal=True)
    native = native if declared else native.astype("category")
    categories = [c.item() if isinstance(c, np.generic) else c for c in native.cat.categories]
    if any(_kind(type(category)) is None for category in categories):
        raise TypeError(
            f"{where} has categories of type {native.cat.categories.dtype}; "
            "turn them into numbers or strings"
        )
    return Column(native.cat.codes.to_numpy().astype(np.intp), tuple(categories), declared)


def _text_column(series: Any, where: str) -> Column:
    import narwhals.stable.v2 as nw

    native = series.to_native()
    if series.implementation.is_pyarrow() and isinstance(series.dtype, nw.Categorical):
        # A dictionary may hold numbers, and its order is often that of the rows.
        decoded = nw.from_native(native.cast(native.type.value_type), series_only=True)
        return _series_column(decoded, where, nominal=True)
    present = series.drop_nulls().cast(nw.String)
    declared = isinstance(series.dtype, nw.Enum)
    known = list(series.dtype.categories) if declared else present.unique().to_list()
    codes = np.empty(0, dtype=np.intp)
    if len(present):  # pyarrow cannot replace nothing by nothing
        codes = present.replace_strict(known, range(len(known)), return_dtype=nw.Int64).to_numpy()
    return _spread(Column(codes, tuple(known), declared), series.is_null().to_numpy())
