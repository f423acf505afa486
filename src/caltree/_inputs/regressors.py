"""Attributes as regressors of logistic models: numbers, and indicators of categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Floats
from .attributes import Attributes
from .scores import LARGEST_SCORE


@dataclass(frozen=True)
class Regressor:
    """A number, or whether an attribute has a category."""

    attribute: int
    """The position of the attribute."""
    category: int | None
    """The code of the category; None for a number."""


def list_regressors(attributes: Attributes) -> list[Regressor]:
    """The regressors of attributes, in their order.

    A nominal attribute of two categories is the indicator of the second, one of more has an
    indicator each, and one of fewer tells nothing.
    """
    found = []
    for j, column in enumerate(attributes.columns):
        if column.categories is None:
            found.append(Regressor(j, None))
        else:
            n_categories = len(column.categories)
            first = 0 if n_categories > 2 else 1
            found += [Regressor(j, code) for code in range(first, n_categories)]
    return found


def make_regressors(attributes: Attributes, matrix: Floats) -> Floats:
    """Return the regressors of encoded attributes, Fortran-ordered, without missing values.

    Means and most frequent categories stand in for these. Numbers are clipped as scores are. Where
    attributes give no regressor there is one that is always 0.
    """
    regressors = list_regressors(attributes)
    made = np.zeros((len(matrix), max(1, len(regressors))), order="F")
    fills = attributes.fills
    for k, each in enumerate(regressors):
        values = matrix[:, each.attribute]
        values = np.where(np.isnan(values), fills[each.attribute], values)
        if each.category is None:
            np.clip(values, -LARGEST_SCORE, LARGEST_SCORE, out=made[:, k])
        else:
            made[:, k] = values == each.category
    return made
