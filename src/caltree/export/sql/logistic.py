"""Linear and logistic models in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .dialects import Dialect
from .text import add_terms

# A larger exponent is an error in some databases; it is far beyond all digits of a probability.
LARGEST_EXPONENT = 500.0
# A smaller slope times any score changes no sum.
_SMALLEST_SLOPE = 1e-120


def linear(
    dialect: Dialect, intercept: float, slopes: Iterable[tuple[float, str]], offset: str = ""
) -> str:
    """Add an intercept, slopes times scores, and an offset, in this order."""
    terms = [dialect.double(intercept)]
    for slope, score in slopes:
        if abs(slope) >= _SMALLEST_SLOPE:
            terms.append(f"{dialect.double(slope)} * {score}")
    if offset:
        terms.append(offset)
    return add_terms(terms).replace("+ -", "- ")


def product(
    dialect: Dialect, intercept: float, slopes: Sequence[float], vector: str, offset: str = ""
) -> str:
    """Do the same with a list of scores: one constant is planned more quickly than many."""
    listed = f"CAST('{slopes!r}' AS {dialect.number}[])"
    terms = [dialect.double(intercept), f"list_dot_product({vector}, {listed})"]
    return add_terms([*terms, offset] if offset else terms)


def softmax(dialect: Dialect, values: Sequence[str]) -> list[str]:
    """Return the softmax, by differences: the values themselves may be beyond any exponential."""
    limit = LARGEST_EXPONENT
    shares = []
    for j, own in enumerate(values):
        others = [
            f"exp({dialect.clip(f'{value} - ({own})', -limit, limit)})"
            for k, value in enumerate(values)
            if k != j
        ]
        shares.append(f"1 / ({add_terms(['1', *others])})")
    return shares


def sigmoid_denominator(dialect: Dialect, negated: str, largest: float) -> str:
    """Return the denominator of a logistic function, given its argument with the sign changed."""
    if largest > LARGEST_EXPONENT:
        negated = dialect.clip(negated, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    return f"(1 + exp({negated}))"


def largest_size(intercept: float, slopes: Iterable[float], largest: float, offset: float) -> float:
    """Return the largest absolute value of a linear model, given that of scores and offset."""
    return abs(intercept) + math.fsum(map(abs, slopes)) * largest + offset
