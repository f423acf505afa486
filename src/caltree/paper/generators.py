"""Data that the paper generated: LED24 of its experiments, and RDG1 of its example of a tree."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._inputs.arrays import Floats
from .._inputs.parameters import check_count, check_size
from .data import DataSet, Table, to_data_set

# The lit segments of each digit: top, upper left, upper right, middle, lower left, lower right,
# bottom.
_DIGITS = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)
_N_IRRELEVANT = 17

_N_RDG1_ATTRIBUTES = 10
_N_RULES = 20
_FEWEST_TESTS, _MOST_TESTS = 2, 4


def led24(n_rows: int = 5000, *, noise: float = 0.1, seed: int = 0) -> DataSet:
    """Return digits on a faulty seven-segment display, among attributes that mean nothing.

    Every row is a digit, each as likely as the others. The first seven attributes are its
    segments, 1 if lit, each inverted with probability `noise`; the other seventeen are 0 or 1 by
    the toss of a coin. The class is the digit.

    The domain is that of L. Breiman et al. (1984), Classification and Regression Trees; the paper
    uses 5000 rows of it, which are not known.

    Examples
    --------
    >>> data = led24(6, noise=0.0)
    >>> print(data.y[1], "".join(data.X.iloc[1, :7]))
    6 1101111
    """
    n_rows = check_count("n_rows", n_rows, 1)
    noise = check_size("noise", noise, 0.0)
    if noise > 1:
        raise ValueError(f"noise must be a probability, at most 1, got {noise}")
    random = _random(seed)
    digits = random.integers(len(_DIGITS), size=n_rows)
    lit = np.array([[int(segment) for segment in segments] for segments in _DIGITS])[digits]
    segments = lit ^ (random.random(lit.shape) < noise)
    irrelevant = random.integers(2, size=(n_rows, _N_IRRELEVANT))
    values = np.column_stack([segments, irrelevant, digits]).astype(np.float64)
    n_attributes = values.shape[1] - 1
    return to_data_set(
        "led24",
        Table(
            [*(f"att{j + 1}" for j in range(n_attributes)), "class"],
            [*[("0", "1")] * n_attributes, tuple(map(str, range(len(_DIGITS))))],
            values,
        ),
        "led24",
    )


def rdg1(n_rows: int = 1000, *, n_numeric: int = 0, seed: int = 0) -> DataSet:
    """Return data of two classes that follow a random decision list.

    The paper draws a calibration tree for "a small two-class dataset with 10 binary attributes"
    that WEKA's generator of this name made, and says no more of it. This is no copy of that
    generator but a re-creation by its purpose, and its rows are others:

    - there are ten attributes, by default all nominal with the categories false and true, each as
      likely as the other; the first `n_numeric` are numbers between 0 and 1 instead;
    - there are twenty rules, each with two to four tests of different attributes: that a nominal
      one has a certain category, that a number is below, or not below, a bound between 0.25 and
      0.75;
    - the rules are for the classes c0 and c1 by turns; the first one whose tests all hold decides
      a row, and what no rule covers, a few per cent of the rows, is of class c0.

    There is no noise: equal rows are of the same class. More rows with the same seed follow the
    same rules.

    Examples
    --------
    >>> data = rdg1()
    >>> data.X.shape, data.classes
    ((1000, 10), ('c0', 'c1'))
    """
    n_rows = check_count("n_rows", n_rows, 1)
    n_numeric = check_count("n_numeric", n_numeric, 0)
    if n_numeric > _N_RDG1_ATTRIBUTES:
        raise ValueError(f"n_numeric must be at most {_N_RDG1_ATTRIBUTES}, got {n_numeric}")
    random = _random(seed)
    rules = [_rule(random, n_numeric) for _ in range(_N_RULES)]
    rows = random.random((n_rows, _N_RDG1_ATTRIBUTES))
    rows[:, n_numeric:] = rows[:, n_numeric:] >= 0.5
    covered = [_covers(rule, rows) for rule in rules]
    classes = np.select(covered, [float(k % 2) for k in range(_N_RULES)], 0.0)
    return to_data_set(
        "rdg1",
        Table(
            [*(f"a{j}" for j in range(_N_RDG1_ATTRIBUTES)), "class"],
            [
                *[None] * n_numeric,
                *[("false", "true")] * (_N_RDG1_ATTRIBUTES - n_numeric),
                ("c0", "c1"),
            ],
            np.column_stack([rows, classes]),
        ),
        "rdg1",
    )


def _random(seed: Any) -> np.random.Generator:
    return np.random.default_rng(check_count("seed", seed, 0))


def _rule(random: np.random.Generator, n_numeric: int) -> list[tuple[int, float, bool]]:
    """Tests: an attribute, a bound, and whether the value must reach it."""
    n_tests = random.integers(_FEWEST_TESTS, _MOST_TESTS + 1)
    attributes = random.choice(_N_RDG1_ATTRIBUTES, n_tests, replace=False)
    # The categories false and true are 0 and 1, and a bound between them tells them apart.
    return [
        (int(j), random.uniform(0.25, 0.75) if j < n_numeric else 0.5, bool(random.integers(2)))
        for j in attributes
    ]


def _covers(rule: list[tuple[int, float, bool]], rows: Floats) -> npt.NDArray[np.bool_]:
    tests = [(rows[:, j] >= bound) == reached for j, bound, reached in rule]
    return np.asarray(np.all(tests, axis=0))
