"""A data set of the experiments: attributes, labels and classes."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set, with its differences from that of the paper."""

    name: str
    X: DataFrame
    """The attributes: numeric ones as floats, nominal ones as categoricals with all the declared
    categories in their declared order; missing values are NaN."""
    y: npt.NDArray[np.str_]
    """The label of each row."""
    classes: tuple[str, ...]
    """The classes that have rows, in their declared order."""
    notes: tuple[str, ...]
    """A sentence for each known difference from the data set of the paper."""


@dataclass(frozen=True)
class Table:
    """Attributes and, as the last column, the class."""

    names: Sequence[str]
    categories: Sequence[Sequence[str] | None]
    """The categories of each nominal column, and None for each numeric one."""
    values: Floats
    """Numbers, and for nominal columns the indices of categories; NaN where missing."""


def to_data_set(name: str, table: Table, where: str) -> DataSet:
    """Split a table with a nominal class into attributes and labels."""
    pandas = require("pandas")
    categories, codes = table.categories[-1] or (), table.values[:, -1]
    known = ~np.isnan(codes)
    codes = codes[known].astype(np.intp)
    classes = tuple(categories[code] for code in np.unique(codes))
    if len(classes) < 2:
        raise ValueError(
            f"{where} has the labels {list(classes)} in {table.names[-1]!r}; it needs at least 2 "
            "classes, in the last attribute"
        )
    n_unknown = len(known) - len(codes)
    notes = (f"Rows without a class, which are left out: {n_unknown}.",) if n_unknown else ()
    columns = {
        column: _column(pandas, values, of_column)
        for column, of_column, values in zip(
            table.names[:-1], table.categories[:-1], table.values[known, :-1].T, strict=True
        )
    }
    return DataSet(name, pandas.DataFrame(columns), np.array(categories)[codes], classes, notes)


def require(module: str) -> Any:
    """Import a package that only the experiments need."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = {"arff": "liac-arff"}.get(module, module)
        raise ImportError(
            f"the experiments of the paper need {package}: pip install caltree[paper]"
        ) from None


def _column(pandas: Any, values: Floats, categories: Sequence[str] | None) -> Any:
    if categories is None:
        return values
    codes = np.where(np.isnan(values), -1, values).astype(np.intp)
    return pandas.Categorical.from_codes(codes, categories=list(categories))
