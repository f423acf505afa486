"""The children that rows go to, in SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._fitted.trees import ONLY_MISSING, Trees
from ..._inputs.attributes import Attribute
from .dialects import LARGEST_EXACT, Dialect

_LARGEST_INTEGER = 2**63 - 1


class Routes:
    """The splits of trees as conditions on columns and, in a forest, on scores, too."""

    def __init__(
        self, dialect: Dialect, model: Trees, columns: Sequence[str], scores: Sequence[str]
    ) -> None:
        self.dialect = dialect
        self.model = model
        self.attributes: tuple[Attribute, ...] = model.attributes.columns
        self.scores = scores
        self._columns = columns
        self._known = [
            None if attribute.categories is None else Categories(dialect, attribute, column)
            for attribute, column in zip(self.attributes, columns, strict=True)
        ]

    def children(self, node: int) -> list[tuple[str, int]]:
        """Return the children of a node with their conditions; the last takes all other rows.

        Each condition holds for the rows of its child only, so that any of them can stand alone.
        An only child has no condition.
        """
        index, first = int(self.model.attribute[node]), int(self.model.first_child[node])
        missing = int(self.model.missing[node])
        if index >= len(self.attributes):
            score = self.scores[index - len(self.attributes)]
            return self._numeric(node, score, score)
        known, column = self._known[index], self._columns[index]
        if known is None:
            return self._numeric(node, column, self.dialect.cast(column, self.dialect.number))
        if not known.categories:
            return [("", first + missing)]
        conditions = known.conditions(self.model.branches_of(node).tolist(), missing)
        return [(condition, first + branch) for branch, condition in conditions]

    def _numeric(self, node: int, column: str, value: str) -> list[tuple[str, int]]:
        dialect, number = self.dialect, float(self.model.threshold[node])
        left = int(self.model.first_child[node])
        missing_left = int(self.model.missing[node]) == 0
        missing = dialect.is_missing(column, value)
        if number == ONLY_MISSING:
            if missing_left:
                return [("", left)]
            return [(dialect.is_known(column, value), left), (missing, left + 1)]
        threshold = dialect.exact(number)
        below, above = f"{value} <= {threshold}", f"{value} > {threshold}"
        if missing_left:
            above = dialect.is_above(value, threshold)
            return [(f"{below} OR {missing}", left), (above, left + 1)]
        return [(below, left), (f"{above} OR {missing}", left + 1)]


class LeafRoutes:
    """The splits as conditions on the number of the leaf, counted from left to right.

    `leaf` has the name of that number for every node, in the tree it belongs to.
    """

    def __init__(self, dialect: Dialect, model: Trees, leaf: Sequence[str]) -> None:
        self.dialect = dialect
        self.model = model
        self.leaf = leaf
        self.first, self.last = leaf_numbers(model)

    def children(self, node: int) -> list[tuple[str, int]]:
        """Return the children of a node with their conditions."""
        return [(self._condition(child), child) for child in self.model.children(node)]

    def _condition(self, node: int) -> str:
        first, last = self.first[node], self.last[node]
        if first == last:
            return f"{self.leaf[node]} = {first}"
        return f"{self.leaf[node]} BETWEEN {first} AND {last}"


def leaf_numbers(model: Trees) -> tuple[list[int], list[int]]:
    """Number the leaves of each tree from left to right: the first and last below every node."""
    leaves = model.sum_over_leaves(model.attribute < 0).astype(int)
    begins = np.zeros(len(leaves), dtype=int)
    for node in np.flatnonzero(model.attribute >= 0).tolist():
        children = model.children(node)
        begins[children] = begins[node] + np.cumsum([0, *leaves[children[:-1]]])
    return begins.tolist(), (begins + leaves - 1).tolist()


class Categories:
    """The categories of a nominal attribute as literals."""

    def __init__(self, dialect: Dialect, attribute: Attribute, column: str) -> None:
        self.dialect = dialect
        self.categories = attribute.categories or ()
        self.most_frequent = int(attribute.fill)
        self.column, self.double = column, ""
        kinds = {_kind(category) for category in self.categories}
        if len(kinds) > 1:
            raise ValueError(
                f"attribute {attribute.name!r} has categories of several types "
                f"({', '.join(sorted(kinds))}), which no column of a table can hold; make all of "
                "them strings before fitting"
            )
        kind = next(iter(kinds), "string")
        if kind == "boolean" and dialect.boolean is None:
            kind = "number"
        if kind == "string":
            self.value = dialect.cast(column, dialect.text) + dialect.binary
        elif kind == "boolean":
            self.value = dialect.cast(column, str(dialect.boolean))
        elif self._are_large(attribute.name):
            # As doubles they would lose digits.
            self.value = column
        else:
            self.value = self.double = dialect.cast(column, dialect.number)
        self.literals = [self._literal(category, kind) for category in self.categories]

    def conditions(self, branches: Sequence[int], missing: int) -> list[tuple[int, str]]:
        """Return the branches that rows can take, with conditions; the last takes all others."""
        other = branches[self.most_frequent]
        found, listed = [], []
        for branch in sorted({*branches, missing} - {other}):
            here = [
                literal
                for literal, to in zip(self.literals, branches, strict=True)
                if to == branch and literal
            ]
            listed += here
            conditions = [f"{self.value} IN ({', '.join(here)})"] if here else []
            if branch == missing:
                conditions.append(self.dialect.is_missing(self.column, self.double))
            if conditions:
                found.append((branch, " OR ".join(conditions)))
        if not found:
            return [(other, "")]
        return [*found, (other, self._otherwise(listed, other == missing))]

    def _otherwise(self, listed: Sequence[str], or_missing: bool) -> str:
        unlisted = [f"{self.value} NOT IN ({', '.join(listed)})"] if listed else []
        if or_missing:
            return " OR ".join([*unlisted, self.dialect.is_missing(self.column, self.double)])
        return " AND ".join([*unlisted, self.dialect.is_known(self.column, self.double)])

    def _are_large(self, name: str) -> bool:
        whole = [category for category in self.categories if isinstance(category, int)]
        largest = max(map(abs, whole), default=0)
        if largest > _LARGEST_INTEGER:
            raise ValueError(
                f"attribute {name!r} has the category {largest}, beyond the integers of "
                "databases; make strings of its categories before fitting"
            )
        return len(whole) == len(self.categories) and largest >= LARGEST_EXACT

    def _literal(self, category: Any, kind: str) -> str:
        """Return the category as SQL, or nothing if no row can hold it."""
        if kind == "string":
            return self.dialect.string(category) if self.dialect.can_hold(category) else ""
        if kind == "boolean":
            return "TRUE" if category else "FALSE"
        return str(int(category)) if category == int(category) else self.dialect.exact(category)


def _kind(category: Any) -> str:
    if isinstance(category, str):
        return "string"
    return "boolean" if isinstance(category, bool) else "number"
