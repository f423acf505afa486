"""Sums and logistic models in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .dialects import Dialect, Lines, indented

# An exponential beyond is an error in some databases; it is far from all digits of a probability.
LARGEST_EXPONENT = 500.0
# What is smaller times any score is nothing to a sum.
_SMALLEST_SLOPE = 1e-120
# More terms are put into parentheses, for databases limit how deeply expressions are nested.
_LONGEST_SUM = 24


def added(terms: Sequence[str]) -> str:
    """A sum, in order where it is short."""
    return joined(terms, " + ")


def joined(terms: Sequence[str], operator: str) -> str:
    """Terms with an operator between them; many are put into groups."""
    terms = list(terms)
    while len(terms) > _LONGEST_SUM:
        groups = range(0, len(terms), _LONGEST_SUM)
        terms = [f"({operator.join(terms[start : start + _LONGEST_SUM])})" for start in groups]
    return operator.join(terms)


def added_blocks(blocks: Sequence[Lines]) -> Lines:
    """A sum of expressions of several lines."""
    blocks = list(blocks)
    while len(blocks) > _LONGEST_SUM:
        groups = range(0, len(blocks), _LONGEST_SUM)
        blocks = [
            ["(", *indented(added_blocks(blocks[start : start + _LONGEST_SUM])), ")"]
            for start in groups
        ]
    return [
        *blocks[0],
        *(line for block in blocks[1:] for line in (f"+ {block[0]}", *block[1:])),
    ]


def linear(
    dialect: Dialect, intercept: float, slopes: Iterable[tuple[float, str]], offset: str = ""
) -> str:
    """An intercept, slopes times scores, and an offset, added in this order."""
    terms = [dialect.double(intercept)]
    for slope, score in slopes:
        if abs(slope) >= _SMALLEST_SLOPE:
            terms.append(f"{dialect.double(slope)} * {score}")
    if offset:
        terms.append(offset)
    return added(terms).replace("+ -", "- ")


def product(
    dialect: Dialect, intercept: float, slopes: Sequence[float], vector: str, offset: str = ""
) -> str:
    """The same for a list of scores: one constant is planned more quickly than many."""
    listed = f"CAST('{slopes!r}' AS {dialect.number}[])"
    terms = [dialect.double(intercept), f"list_dot_product({vector}, {listed})"]
    return added([*terms, offset] if offset else terms)


def softmax(dialect: Dialect, values: Sequence[str]) -> list[str]:
    """The share of every class, by differences: values may be beyond any exponential."""
    limit = LARGEST_EXPONENT
    shares = []
    for j, own in enumerate(values):
        others = [
            f"exp({dialect.between(f'{value} - ({own})', -limit, limit)})"
            for k, value in enumerate(values)
            if k != j
        ]
        shares.append(f"1 / ({added(['1', *others])})")
    return shares


def sigmoid_of(dialect: Dialect, negated: str, largest: float) -> str:
    """The denominator of a logistic function, given its argument with the sign turned."""
    if largest > LARGEST_EXPONENT:
        negated = dialect.between(negated, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    return f"(1 + exp({negated}))"


def size(intercept: float, slopes: Iterable[float], largest: float, offset: float) -> float:
    """The largest size that a linear model can have."""
    return abs(intercept) + math.fsum(map(abs, slopes)) * largest + offset
