"""Regions of a tree in plain words, each attribute named once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from .._inputs.arrays import Mask
from .._inputs.attributes import Attribute
from .model import FittedModel
from .names import format_number, printable
from .trees import ONLY_MISSING

# The most categories that are named one by one, and the most that need no shorter way.
_MOST_CATEGORIES = 5
_FEW_CATEGORIES = 3
_LONGEST = 60
_EVERYTHING = "all rows"

Spelling: TypeAlias = Callable[[Any], str]


@dataclass(frozen=True)
class Limits:
    """The values of one attribute that lead to a node."""

    low: float = -math.inf
    """Numbers must be above it."""
    high: float = math.inf
    """And not above it."""
    categories: frozenset[int] | None = None
    """The categories left; None for all."""
    is_missing: bool | None = None
    """Whether missing values are here: alone if nothing else is; None if there were none."""
    is_known: bool = True
    """Whether anything but missing values is here."""


def short(name: Any) -> str:
    """Return a name that can be printed, cut if it would fill the page."""
    text = printable(name)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def regions(tree: FittedModel, gaps: Mask | None = None) -> dict[int, dict[int, Limits]]:
    """Return the limits of every node, by attribute, in the order in which they are met.

    `gaps` are the attributes of which values are missing in the rows at hand: where these go is
    told even if there were none in training.
    """
    if gaps is None:
        gaps = np.zeros(len(tree.attributes.columns), dtype=bool)
    found: dict[int, dict[int, Limits]] = {0: {}}
    for node in range(tree.n_nodes):
        for child, attribute, limits in _children(tree, node, found[node], gaps):
            found[child] = {**found[node], attribute: limits}
    return found


def _children(
    tree: FittedModel, node: int, here: dict[int, Limits], gaps: Mask
) -> Iterator[tuple[int, int, Limits]]:
    attribute = int(tree.attribute[node])
    if attribute < 0:
        return
    before = here.get(attribute, Limits())
    categories = tree.attributes.columns[attribute].categories
    for branch in range(int(tree.n_children[node])):
        if categories:
            left = frozenset(np.flatnonzero(tree.branches_of(node) == branch).tolist())
            if before.categories is not None:
                left &= before.categories
            limits = replace(before, categories=left, is_known=bool(left))
        else:
            limits = _half(before, float(tree.threshold[node]), branch)
        if tree.missing_rows[node] > 0 or gaps[attribute] or before.is_missing:
            # Values that went another way before do not come back.
            comes_by = before.is_missing is not False and int(tree.missing[node]) == branch
            limits = replace(limits, is_missing=comes_by)
        yield int(tree.first_child[node]) + branch, attribute, limits


def _half(before: Limits, threshold: float, branch: int) -> Limits:
    if threshold == ONLY_MISSING:
        return replace(before, is_known=before.is_known and branch == 0, is_missing=branch == 1)
    if branch == 0:
        return replace(before, high=min(before.high, threshold))
    return replace(before, low=max(before.low, threshold))


def conditions(here: dict[int, Limits], columns: Sequence[Attribute]) -> list[str]:
    """Return the conditions of a region, one per attribute."""
    return [condition(columns[attribute], limits) for attribute, limits in here.items()]


def with_short_names(column: Attribute) -> Attribute:
    """Return an attribute with short names."""
    categories = column.categories and tuple(map(short, column.categories))
    return replace(column, name=short(column.name), categories=categories)


def join_conditions(parts: Sequence[str]) -> str:
    """Join conditions to one sentence."""
    return " and ".join(parts) or _EVERYTHING


def condition(column: Attribute, limits: Limits, spell: Spelling = short) -> str:
    """Return the limits of an attribute in words."""
    name = spell(column.name)
    if limits.is_known and not column.categories and _is_interval(limits):
        low, high = _write_ends(limits)
        return f"{low} < {name} <= {high}{_or_missing(limits)}"
    return f"{name} {bare_condition(column, limits, spell)}"


def bare_condition(column: Attribute, limits: Limits, spell: Spelling = short) -> str:
    """Return the limits of an attribute in words that can stand behind its name."""
    if not limits.is_known:
        return "is missing"
    if column.categories:
        categories = [_spell_value(category, spell) for category in column.categories]
        return _of_categories(categories, limits.categories) + _or_missing(limits)
    if limits.low == -math.inf and limits.high == math.inf:
        return "is known"
    low, high = _write_ends(limits)
    if _is_interval(limits):
        return f"> {low}, <= {high}{_or_missing(limits)}"
    return (f"> {low}" if limits.high == math.inf else f"<= {high}") + _or_missing(limits)


def _spell_value(category: Any, spell: Spelling) -> str:
    """Spell a category, in quotes if it would look like a comparison of its own."""
    return f"'{spell(category)}'" if str(category).startswith(("<", ">", "=")) else spell(category)


def _is_interval(limits: Limits) -> bool:
    return limits.low > -math.inf and limits.high < math.inf


def _write_ends(limits: Limits) -> tuple[str, str]:
    digits = 6
    while (low := format_number(limits.low, digits)) == (
        high := format_number(limits.high, digits)
    ) and digits < 17:
        digits += 1
    return low, high


def _or_missing(limits: Limits) -> str:
    return " or missing" if limits.is_missing else ""


def _of_categories(every: Sequence[str], left: frozenset[int] | None) -> str:
    inside = [text for code, text in enumerate(every) if left is None or code in left]
    outside = [text for code, text in enumerate(every) if left is not None and code not in left]
    if len(inside) == 1:
        return f"= {inside[0]}"
    if 0 < len(outside) <= _MOST_CATEGORIES and len(inside) > max(len(outside), _FEW_CATEGORIES):
        return f"other than {_list_values(outside)}"
    return f"in {_list_values(inside)}"


def _list_values(values: Sequence[str]) -> str:
    if len(values) <= _MOST_CATEGORIES:
        return ", ".join(values)
    named = values[: _MOST_CATEGORIES - 1]
    return f"{', '.join(named)} and {len(values) - len(named)} more"
