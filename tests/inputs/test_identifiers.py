"""Columns that look like identifiers, and those that do not."""

from functools import reduce

import numpy as np
import pandas as pd
import pytest

from caltree._inputs.attributes import learn
from caltree._inputs.identifiers import IdentifierWarning, WholeNumbers, is_called_identifier

RNG = np.random.default_rng(0)
DIFFERENT = [f"c{number}" for number in range(200)]
COUNTER = np.arange(5000, 5200)


def is_found(values, name="a", **options):
    """Whether a column is left out of a table that has another one, too."""
    frame = pd.DataFrame({name: values, "other": np.arange(len(values)) % 2})
    try:
        columns = learn(frame, identifiers="drop", **options)[0].columns
    except IdentifierWarning as warning:  # warnings are errors here
        assert warning.columns == (name,)
        return True
    assert all(column.is_used for column in columns)
    return False


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (DIFFERENT, True),
        (DIFFERENT[:20], True),
        (DIFFERENT[:19], False),
        ([*DIFFERENT[:180], *["same"] * 20], True),
        ([*DIFFERENT[:178], *["same"] * 22], False),
        ([*DIFFERENT[:100], *[None] * 100], True),
        (pd.Categorical(DIFFERENT), True),
        (pd.Categorical(["b"] * 200, categories=[*DIFFERENT, "b"]), False),
        ([True, False] * 100, False),
    ],
    ids=[
        "all different",
        "twenty",
        "too few",
        "nearly all",
        "not nearly all",
        "missing",
        "declared",
        "declared only",
        "booleans",
    ],
)
def test_names(values, expected):
    assert is_found(values) == expected


@pytest.mark.parametrize(
    ("values", "name", "expected"),
    [
        (COUNTER, "a", True),
        (COUNTER.astype(float), "a", True),
        (COUNTER[::-1], "a", True),
        (RNG.permutation(COUNTER), "a", True),
        (RNG.choice(1500, 200, replace=False), "a", True),
        (COUNTER[:99], "a", False),
        (np.append(COUNTER[:199], 5000), "a", False),
        (COUNTER + 0.5, "a", False),
        (np.append(COUNTER[:199].astype(float), np.nan), "a", False),
        (RNG.integers(10_000, 200_000, 200), "income", False),
        (1_500_000_000 + np.cumsum(RNG.integers(1, 9000, 200)), "timestamp", False),
        (RNG.choice(10**9, 200, replace=False), "population", False),
        (RNG.choice(10**9, 200, replace=False), "customer_id", True),
        (np.append(RNG.choice(10**9, 199, replace=False).astype(float), np.nan), "SK_ID", True),
        (RNG.choice(10**9, 200, replace=False), "index", True),
        (RNG.integers(0, 50, 200), "index", False),
        (RNG.integers(0, 50, 200), "store_id", False),
        (RNG.random(200), "id", False),
    ],
    ids=[
        "counter",
        "whole floats",
        "backwards",
        "shuffled",
        "sampled",
        "too few",
        "one twice",
        "no whole numbers",
        "missing",
        "incomes",
        "times",
        "populations",
        "named",
        "named, missing",
        "index of pandas",
        "index, repeated",
        "named, repeated",
        "named, no whole numbers",
    ],
)
def test_numbers(values, name, expected):
    assert is_found(values, name) == expected


def test_what_the_user_calls_categorical_is_kept():
    assert not is_found(DIFFERENT, categorical_features=["a"])
    assert not is_found(COUNTER, categorical_features=["a"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[(name, True) for name in ("id", "user_id", "userId", "UserID", "SK_ID_CURR", "my Key")],
        *[
            (name, True)
            for name in ("index", "Index", "Unnamed: 0", "__index_level_0__", "level_0")
        ],
        *[(name, False) for name in ("price_index", "level_1", "unnamed", "indexed")],
        *[(name, False) for name in ("paid", "width", "idle", "0", "", "Identity")],
    ],
)
def test_names_that_say_so(name, expected):
    assert is_called_identifier(name) == expected


@pytest.mark.parametrize("name", ["a", "id"])
@pytest.mark.parametrize("n_parts", [2, 7])
def test_parts_say_what_the_whole_says(name, n_parts):
    n_rows = 7000
    for values in (
        RNG.permutation(n_rows),
        RNG.integers(0, 10 * n_rows, n_rows),
        RNG.choice(10**12, n_rows),
        np.append(RNG.permutation(n_rows), np.nan),
    ):
        whole = WholeNumbers.of(values, name)
        parts = [WholeNumbers.of(part, name) for part in np.array_split(values, n_parts)]
        if whole is None:
            assert None in parts
        else:
            assert reduce(WholeNumbers.merge, parts).are_keys(name) == whole.are_keys(name)


def test_a_dropped_column_leaves_the_users_array_alone():
    X = np.column_stack([np.arange(200.0), np.arange(200) % 3])
    before = X.copy()
    with pytest.warns(IdentifierWarning, match=r"attribute 'x0' looks like an identifier .* is "):
        known, encoded = learn(X, identifiers="drop")
    assert (before == X).all() and np.isnan(encoded[:, 0]).all()
    assert [column.is_used for column in known.columns] == [False, True]
    assert known.used_names == ["x1"]


def test_all_are_named_in_one_warning():
    X = pd.DataFrame({f"c{j}": np.arange(200) for j in range(12)} | {"d": np.arange(200) % 2})
    with pytest.warns(IdentifierWarning, match=r"'c9' and 2 more look .*drop_identifiers=False"):
        learn(X, identifiers="drop")
    with pytest.warns(IdentifierWarning, match=r"published method keeps them; leave them out"):
        assert learn(X, identifiers="warn")[0] == learn(X)[0]
