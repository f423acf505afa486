"""Tables as one float64 matrix: numbers, codes of categories, and NaN for missing values."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Mask
from .fills import column_means, most_frequent
from .identifiers import WholeNumbers, are_names, warn_of_identifiers
from .indexing import column_positions
from .tables import Categories, Column, Table, read_table
from .unseen import Unseen, count_missing
from .warning import warn_user

Identifiers: TypeAlias = Literal["keep", "warn", "drop"]
"""What to do with columns that look like identifiers."""


@dataclass(frozen=True)
class Attribute:
    """One column of a table."""

    name: str
    """The column's name, or ``"x0"``, ``"x1"``, ... where the table has none."""
    categories: Categories | None
    """In the order of their codes; None for a numeric attribute.

    An empty tuple is a column that is not used: an identifier that was left out, or a nominal
    column without a single value. All its values count as missing.
    """
    fill: float = 0.0
    """It replaces missing values: the mean, or the code of the most frequent category."""
    has_missing: bool = False
    """Whether a training row had no value."""

    @property
    def is_used(self) -> bool:
        """Whether its values count for anything."""
        return self.categories != ()

    def without_values(self) -> Attribute:
        """The attribute as one that is not used."""
        return Attribute(self.name, (), 0.0, has_missing=True)


@dataclass(frozen=True)
class Attributes:
    """The attributes of a training table; made by :func:`learn`."""

    columns: tuple[Attribute, ...]
    names: tuple[str, ...] | None
    """The table's column names, or None where it had none."""

    @property
    def n_categories(self) -> npt.NDArray[np.int32]:
        """The number of categories of each attribute; 0 for a numeric one."""
        return np.array([len(column.categories or ()) for column in self.columns], dtype=np.int32)

    @property
    def fills(self) -> Floats:
        """The value that replaces a missing one of each attribute."""
        return np.array([column.fill for column in self.columns], dtype=np.float64)

    def encode(self, X: Any, unseen: Unseen | None = None) -> Floats:
        """Encode new rows, and count their values that training did not have.

        Where both tables have names, columns are taken by name; others are ignored, and those that
        are not used may be absent. A missing value is NaN, a category not seen in training becomes
        the most frequent one, and infinity is allowed. The result is `X` itself if it is encoded
        already.
        """
        table = read_table(X, "X")
        positions = self.positions_in(table)
        all_numeric = all(attribute.categories is None for attribute in self.columns)
        numbers = table.numbers() if all_numeric else None
        if numbers is not None:
            self._count_missing(numbers, unseen)
            return numbers
        encoded = np.empty((table.shape[0], len(self.columns)), order="F")
        for j, (attribute, position) in enumerate(zip(self.columns, positions, strict=True)):
            if position is None or not attribute.is_used:
                encoded[:, j] = math.nan
                continue
            column = table.column(position, nominal=attribute.categories is not None)
            encoded[:, j] = _encode_column(column, attribute)
            if unseen is not None:
                _count_new_categories(column, attribute, unseen)
        self._count_missing(encoded, unseen)
        return encoded

    def _count_missing(self, encoded: Floats, unseen: Unseen | None) -> None:
        if unseen is None:
            return
        unseen.n_rows += len(encoded)
        complete = np.array([not attribute.has_missing for attribute in self.columns])
        for j, n_rows in count_missing(encoded, complete):
            unseen.add_missing(self.columns[j].name, n_rows)

    def positions_in(self, table: Table) -> list[int | None]:
        """Where the attributes are in another table; None for one that is absent and not used."""
        _check_columns(table, self)
        if table.names is None or self.names is None:
            return list(range(len(self.columns)))
        position_of = {name: position for position, name in enumerate(table.names)}
        return [position_of.get(name) for name in self.names]

    def without_values_of(self, names: Container[str]) -> Attributes:
        """These attributes, some of which are not used."""
        columns = (
            column.without_values() if column.name in names else column for column in self.columns
        )
        return Attributes(tuple(columns), self.names)

    @property
    def used_names(self) -> list[str]:
        """The names of the attributes that count for something."""
        return [column.name for column in self.columns if column.is_used]

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as lists, strings and numbers that JSON keeps exactly."""
        names = None if self.names is None else list(self.names)
        columns = [
            {
                "name": column.name,
                "categories": None if column.categories is None else list(column.categories),
                "fill": column.fill,
                "has_missing": column.has_missing,
            }
            for column in self.columns
        ]
        return {"names": names, "columns": columns}

    @classmethod
    def from_dict(cls, stored: Any) -> Attributes:
        """Rebuild the attributes from :meth:`to_dict`; ValueError on anything malformed."""
        _require(isinstance(stored, dict) and set(stored) == {"names", "columns"}, "keys", stored)
        names, columns = stored["names"], stored["columns"]
        _require(isinstance(columns, list) and len(columns) > 0, "columns", columns)
        attributes = tuple(_attribute_from_dict(column) for column in columns)
        labels = [attribute.name for attribute in attributes]
        _require(len(set(labels)) == len(labels), "distinct column names", labels)
        _require(names is None or names == labels, "names (the columns' names or null)", names)
        return cls(attributes, None if names is None else tuple(names))


def learn(
    X: Any,
    *,
    categorical_features: Iterable[str | int | bool] | None = None,
    keep: Mask | None = None,
    sample_weight: Floats | None = None,
    identifiers: Identifiers = "keep",
) -> tuple[Attributes, Floats]:
    """Learn the attributes of a training table and encode it.

    The table is a two-dimensional numpy array, a list of rows, a pandas, polars or pyarrow table,
    or a scipy sparse matrix (which is made dense). Columns of booleans, strings or categories
    become nominal, as do the `categorical_features`, of any type; all others must be numbers.
    Rows outside of `keep` are dropped, and the weights, which count for the fills, are those of
    the others. Columns that look like identifiers, apart from the `categorical_features`, are kept
    ("keep"), or kept with a warning ("warn"), or not used, with a warning ("drop").

    The encoded table is `X` itself if it is a contiguous float64 array without nominal columns, of
    which all rows are kept; otherwise a new Fortran-ordered matrix.
    """
    table = read_table(X, "X")
    n_rows = table.shape[0] if keep is None else np.count_nonzero(keep)
    kept = "row(s)" if keep is None else "row(s) of positive weight"
    for size, what in ((n_rows, kept), (table.shape[1], "feature(s)")):
        if size == 0:
            raise ValueError(
                f"X has 0 {what} (shape={table.shape}) while a minimum of 1 is required."
            )
    nominal = np.zeros(table.shape[1], dtype=bool)
    if categorical_features is not None:
        nominal[column_positions(categorical_features, table, "categorical_features")] = True
    encoded, categories = _encode_training(table, nominal, keep)
    means = column_means(encoded, sample_weight)
    columns = []
    for j, known in enumerate(categories):
        if known is None:
            _check_finite(means[j], encoded[:, j], keep, table.label(j))
            fill = float(means[j])
        else:
            fill = most_frequent(encoded[:, j], len(known), sample_weight)
        has_missing = bool(np.isnan(encoded[:, j]).any())
        columns.append(Attribute(table.label(j), known, fill, has_missing))
    learned = Attributes(tuple(columns), table.names)
    if identifiers == "keep":
        return learned, encoded
    return _treat_identifiers(learned, encoded, nominal, drop=identifiers == "drop")


def _treat_identifiers(
    learned: Attributes, encoded: Floats, chosen: Mask, *, drop: bool
) -> tuple[Attributes, Floats]:
    """Warn of columns that look like identifiers, except chosen ones, and perhaps drop them."""
    found = [
        j
        for j, attribute in enumerate(learned.columns)
        if not chosen[j] and _is_identifier(attribute, encoded[:, j])
    ]
    names = [learned.columns[j].name for j in found]
    warn_of_identifiers(names, dropped=drop)
    if not drop or not found:
        return learned, encoded
    encoded = np.array(encoded, order="F")  # which may be the user's own
    encoded[:, found] = math.nan
    return learned.without_values_of(set(names)), encoded


def _is_identifier(attribute: Attribute, encoded: Floats) -> bool:
    if attribute.categories is not None:
        known = encoded[~np.isnan(encoded)]
        n_different = np.count_nonzero(np.bincount(known.astype(np.intp)))
        return are_names(len(known), int(n_different))
    numbers = WholeNumbers.of(encoded, attribute.name)
    return numbers is not None and numbers.are_keys(attribute.name)


def _encode_training(
    table: Table, nominal: Mask, keep: Mask | None
) -> tuple[Floats, list[Categories | None]]:
    categories: list[Categories | None] = [None] * table.shape[1]
    numbers = None if nominal.any() else table.numbers()
    if numbers is not None and keep is None:
        return numbers, categories
    n_rows = table.shape[0] if keep is None else np.count_nonzero(keep)
    encoded = np.empty((n_rows, table.shape[1]), order="F")
    if numbers is not None and keep is not None:
        return np.compress(keep, numbers, axis=0, out=encoded), categories
    for j, chosen in enumerate(nominal):
        column = table.column(j, nominal=bool(chosen))
        if keep is not None:
            column = replace(column, values=column.values[keep])
        if column.categories is None:
            encoded[:, j] = column.values
        else:
            categories[j] = known = _find_categories(column, table.label(j))
            encoded[:, j] = _codes(column, known, otherwise=math.nan)
    return encoded, categories


def _find_categories(column: Column, name: str) -> Categories:
    categories = column.categories or ()
    if not column.declared:
        # Sorted, so that they do not depend on the order of the rows.
        seen = np.bincount(column.values + 1, minlength=len(categories) + 1)[1:] > 0
        categories = tuple(sorted(np.array(categories, dtype=object)[seen]))
    refuse_infinite_categories(categories, name)
    return categories


def refuse_infinite_categories(categories: Categories, name: str) -> None:
    """Refuse infinity among the categories of an attribute."""
    if any(isinstance(category, float) and not math.isfinite(category) for category in categories):
        raise ValueError(
            f"X contains infinity among the categories of attribute {name!r}; "
            "replace it or mark it missing (NaN)"
        )


def refuse_infinity(attributes: Attributes, encoded: Floats) -> None:
    """Refuse infinity in encoded rows, where the values themselves count."""
    for attribute, column in zip(attributes.columns, encoded.T, strict=True):
        if np.isinf(column).any():
            _raise_infinity(column, None, attribute.name)


def _check_finite(mean: float, column: Floats, keep: Mask | None, name: str) -> None:
    if not math.isfinite(mean):
        _raise_infinity(column, keep, name)


def _raise_infinity(column: Floats, keep: Mask | None, name: str) -> None:
    row = int(np.flatnonzero(np.isinf(column))[0])
    row = row if keep is None else int(np.flatnonzero(keep)[row])
    raise ValueError(
        f"X contains infinity in attribute {name!r} (row {row}); "
        "replace it or mark it missing (NaN)"
    )


def _check_columns(table: Table, attributes: Attributes) -> None:
    given, fitted = table.names, attributes.names
    if given is not None and fitted is not None:
        absent = [name for name in attributes.used_names if name not in set(given)]
        if absent:
            others = [name for name in given if name not in set(fitted)]
            instead = f"; it has {reprlib.repr(others)} instead" if others else ""
            raise ValueError(f"X lacks {absent}, which the calibrator was fitted with{instead}")
    elif table.shape[1] != len(attributes.columns):
        raise ValueError(
            f"X has {table.shape[1]} attributes, "
            f"but the calibrator was fitted with {len(attributes.columns)}"
        )
    elif (given is None) != (fitted is None):
        has, was = ("does not have valid", "with") if given is None else ("has", "without")
        warn_user(f"X {has} feature names, but the calibrator was fitted {was} feature names")


def _encode_column(column: Column, attribute: Attribute) -> Floats:
    fitted, categories = attribute.categories, column.categories
    if categories is None:
        return column.values
    is_text = {isinstance(category, str) for category in categories}
    if fitted is None:
        mistaken = True in is_text
    else:
        mistaken = len(fitted) > 0 and not is_text & {isinstance(known, str) for known in fitted}
    if mistaken and (column.values >= 0).any():
        now, before = ("strings", "numbers") if True in is_text else ("numbers", "strings")
        raise TypeError(
            f"attribute {attribute.name!r} of X holds {now}, but the calibrator was "
            f"fitted with {before}; convert it as for fitting"
        )
    if fitted is None:
        numbers = [math.nan if isinstance(value, str) else float(value) for value in categories]
        return _look_up(numbers, column)
    return _codes(column, fitted, otherwise=attribute.fill if fitted else math.nan)


def _count_new_categories(column: Column, attribute: Attribute, unseen: Unseen) -> None:
    known = set(attribute.categories or ())
    if attribute.categories is None or known.issuperset(column.categories or ()):
        return
    given = column.categories or ()
    is_new = np.array([*(category not in known for category in given), False])[column.values]
    n_rows = int(np.count_nonzero(is_new))
    if n_rows:
        unseen.add_category(attribute.name, n_rows, given[column.values[is_new.argmax()]])


def _codes(column: Column, categories: Categories, otherwise: float) -> Floats:
    code_of = {category: float(code) for code, category in enumerate(categories)}
    recoded = [code_of.get(category, otherwise) for category in column.categories or ()]
    return _look_up(recoded, column)


def _look_up(numbers: list[float], column: Column) -> Floats:
    encoded: Floats = np.array([*numbers, math.nan])[column.values]  # -1, missing, is the last
    return encoded


def _attribute_from_dict(stored: Any) -> Attribute:
    keys = {"name", "categories", "fill", "has_missing"}
    _require(isinstance(stored, dict) and set(stored) == keys, "column", stored)
    name, categories, fill = stored["name"], stored["categories"], stored["fill"]
    has_missing = stored["has_missing"]
    _require(isinstance(name, str), "name", name)
    _require(isinstance(has_missing, bool), f"has_missing of {name!r}", has_missing)
    _require(_is_finite_number(fill) and not isinstance(fill, bool), f"fill of {name!r}", fill)
    if categories is not None:
        _require(
            isinstance(categories, list)
            and all(isinstance(c, str) or _is_finite_number(c) for c in categories)
            and len(set(categories)) == len(categories),
            f"categories of {name!r}",
            categories,
        )
        _require(fill in range(max(1, len(categories))), f"fill of {name!r}", fill)
        categories = tuple(categories)
    return Attribute(name, categories, float(fill), has_missing)


def _is_finite_number(value: Any) -> bool:
    if isinstance(value, int):
        return abs(value) < 2**1023  # a float can hold no more
    return isinstance(value, float) and math.isfinite(value)


def _require(valid: bool, what: str, value: Any) -> None:
    if not valid:
        found = reprlib.repr(value)
        raise ValueError(f"stored attributes are malformed: {what} cannot be {found}")
