"""Copies of the label among the columns of a table: they have one value for each class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .arrays import Floats, Labels
from .attributes import Attributes
from .warning import warn_user

# Of fewer rows an attribute may say all labels by chance.
_FEWEST_ROWS = 100
# Rows that are looked at first, since nearly all columns are ruled out by a few of them.
_FEW_ROWS = 100


@dataclass(frozen=True, eq=False)
class LabelCopies:
    """The columns that have one value for each class, and another for each; mergeable."""

    n_rows: int
    columns: npt.NDArray[np.intp]
    """Which columns of the matrix these are."""
    classes: npt.NDArray[np.intp]
    """The classes that some row has, in order."""
    values: Floats
    """The value of each of these classes, a row each, in each of these columns."""

    @classmethod
    def of(cls, matrix: Floats, labels: Labels) -> LabelCopies:
        """Look at every row of an encoded table, and its label."""
        n_rows = len(labels)
        row_of = np.full(int(labels.max(initial=0)) + 1, -1, dtype=np.intp)
        row_of[labels] = np.arange(n_rows)
        columns = np.arange(matrix.shape[1])
        for step in (max(1, n_rows // _FEW_ROWS), 1):
            rows, same_class = slice(None, None, step), row_of[labels[::step]]
            # A missing value equals none.
            is_constant = [bool((matrix[rows, j] == matrix[same_class, j]).all()) for j in columns]
            columns = columns[np.array(is_constant, dtype=bool)]
        classes = np.flatnonzero(row_of >= 0)
        values = matrix[np.ix_(row_of[classes], columns)]
        return cls(n_rows, columns, classes, values)._with_different_values()

    def merge(self, other: LabelCopies) -> LabelCopies:
        """Those of the rows of both."""
        columns, mine, theirs = np.intersect1d(
            self.columns, other.columns, assume_unique=True, return_indices=True
        )
        classes = np.union1d(self.classes, other.classes)
        values = np.full((len(classes), len(columns)), np.nan)
        values[np.searchsorted(classes, self.classes)] = self.values[:, mine]
        places, told = np.searchsorted(classes, other.classes), other.values[:, theirs]
        agree = (np.isnan(values[places]) | (values[places] == told)).all(axis=0)
        values[places] = told
        both = LabelCopies(self.n_rows + other.n_rows, columns[agree], classes, values[:, agree])
        return both._with_different_values()

    def _with_different_values(self) -> LabelCopies:
        """Without the columns that have one value for several classes."""
        differ = (np.diff(np.sort(self.values, axis=0), axis=0) != 0.0).all(axis=0)
        return LabelCopies(self.n_rows, self.columns[differ], self.classes, self.values[:, differ])

    def warn(self, attributes: Attributes) -> None:
        """Warn of the first of these columns, which most likely is the label itself."""
        if len(self.columns) > 0 and self.n_rows >= _FEWEST_ROWS:
            warn_user(
                f"attribute {attributes.columns[self.columns[0]].name!r} has one value for each "
                "class, so it tells the label of every row. If it is a copy of the label, leave it "
                "out of X: new rows have no label yet"
            )
