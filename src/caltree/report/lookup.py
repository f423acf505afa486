"""The values or tenths of every attribute, to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .._audit.rows import Rows as Audited
from .._fitted.conditions import short, with_short_names
from .._fitted.segments import segments
from .._inputs.arrays import Floats, Mask
from .._inputs.attributes import Attribute
from .sums import RowSums

# Numbers are divided into tenths; of more categories, the rarest are put together.
_PARTS_OF_NUMBERS = 10
_MOST_CATEGORIES = 30
# A page of more lines would be slow to open.
_MOST_LINES = 5_000
_DECIMALS = 5


def look_up(before: Audited, sums: RowSums) -> list[dict[str, Any]]:
    """The attributes that are used, each with a line for each of its values or tenths.

    They are for looking, and claim nothing: no test is made of them.
    """
    found: list[dict[str, Any]] = []
    n_lines = 0
    for number, attribute in enumerate(before.attributes.columns):
        if attribute.is_used and n_lines < _MOST_LINES:
            lines = _lines(attribute, before.matrix[:, number], sums)
            n_lines += len(lines)
            found.append({"name": short(attribute.name), "lines": lines})
    return found


def _lines(attribute: Attribute, values: Floats, sums: RowSums) -> list[dict[str, Any]]:
    words: list[str] = []
    part = np.zeros(len(values), dtype=np.intp)
    for text, inside in _parts(with_short_names(attribute), values):
        part[inside] = len(words)
        words.append(text)
    lines = []
    for text, of_part in zip(words, sums.over(part, len(words)), strict=True):
        line = sums.describe(of_part)
        if line is not None:
            numbers = {
                name: round(value, _DECIMALS) if isinstance(value, float) else value
                for name, value in line._asdict().items()
            }
            numbers["class"] = numbers.pop("label")
            lines.append({"words": _without_name(text, short(attribute.name)), **numbers})
    return lines


def _without_name(condition: str, name: str) -> str:
    """A condition without the name of its attribute, which is the heading."""
    if condition.startswith(name):
        return condition.removeprefix(name).lstrip(": ")
    return f"> {condition.replace(f' < {name} ', ', ', 1)}"


def _parts(attribute: Attribute, values: Floats) -> Iterator[tuple[str, Mask]]:
    """Conditions on an attribute, and the rows that meet each; together these are all rows."""
    if attribute.categories is None or len(attribute.categories) <= _MOST_CATEGORIES:
        yield from segments(attribute, values, _PARTS_OF_NUMBERS)
        return
    known = ~np.isnan(values)
    counts = np.bincount(values[known].astype(np.intp), minlength=len(attribute.categories))
    order = np.argsort(-counts, kind="stable")
    for code in order[:_MOST_CATEGORIES].tolist():
        yield f"{attribute.name} = {attribute.categories[code]}", values == code
    others = order[_MOST_CATEGORIES:]
    n_others = int(np.count_nonzero(counts[others]))
    yield f"{attribute.name}: {n_others:,} other values", np.isin(values, others)
    if not known.all():
        yield f"{attribute.name} is missing", ~known
