"""Lines and terms of SQL put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeVar

Lines: TypeAlias = list[str]
T = TypeVar("T")

# More terms are put into parentheses, for databases limit how deeply expressions are nested.
_LONGEST_SUM = 24


def indent(lines: Lines, steps: int = 1) -> Lines:
    """Move lines to the right; a line break within one belongs to a name."""
    return ["  " * steps + line for line in lines]


def separate(lines: Lines) -> Lines:
    """Put commas between lines."""
    return separate_blocks([[line] for line in lines])


def separate_blocks(blocks: Sequence[Lines]) -> Lines:
    """Put commas between blocks of lines."""
    *others, last = blocks
    return [line for block in others for line in (*block[:-1], f"{block[-1]},")] + last


def join_lines(lines: Lines) -> str:
    """Put an expression of several lines on one."""
    return " ".join(line.strip() for line in lines)


def add_terms(terms: Sequence[str]) -> str:
    """Add up terms, in order if they are few."""
    return join_terms(terms, " + ")


def join_terms(terms: Sequence[str], operator: str) -> str:
    """Put an operator between terms; many are put into groups."""
    terms = list(terms)
    while len(terms) > _LONGEST_SUM:
        terms = [f"({operator.join(group)})" for group in _groups(terms)]
    return operator.join(terms)


def add_blocks(blocks: Sequence[Lines]) -> Lines:
    """Add up expressions of several lines; many are put into groups."""
    blocks = list(blocks)
    while len(blocks) > _LONGEST_SUM:
        blocks = [["(", *indent(add_blocks(group)), ")"] for group in _groups(blocks)]
    first, *others = blocks
    return [*first, *(line for block in others for line in (f"+ {block[0]}", *block[1:]))]


def _groups(items: Sequence[T]) -> list[Sequence[T]]:
    return [items[start : start + _LONGEST_SUM] for start in range(0, len(items), _LONGEST_SUM)]
