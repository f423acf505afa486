"""Counts of values that no training row had."""

import numpy as np
import pandas as pd
import pytest

from caltree._inputs.attributes import learn
from caltree._inputs.unseen import Unseen

NAN = np.nan
TRAINING = pd.DataFrame(
    {"plan": ["a", "b", "a"], "age": [1.0, 2.0, 3.0], "gap": [1.0, NAN, 2.0], "flag": [True] * 3}
)
NEW = pd.DataFrame(
    {
        "plan": ["z", "a", None, "q", "z"],
        "age": [NAN, 1.0, NAN, 2.0, 3.0],
        "gap": [NAN] * 5,
        "flag": [False, None, True, True, True],
    }
)


def count(X, new):
    unseen = Unseen()
    encoded = learn(X)[0].encode(new, unseen)
    assert np.array_equal(encoded, learn(X)[0].encode(new), equal_nan=True)
    return unseen


def test_rows_are_counted_by_attribute():
    unseen = count(TRAINING, NEW)
    assert unseen.n_rows == 5
    assert unseen.new_category == {"plan": 3}
    assert unseen.newly_missing == {"plan": 1, "age": 2, "flag": 1}
    assert unseen.examples == {"plan": "z"}


def test_nothing_new():
    assert count(TRAINING, TRAINING).message() is None
    assert count(TRAINING, NEW[:0]).message() is None


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_of_numbers(order, dtype):
    X = np.array([[1.0, NAN, 3.0], [2.0, 1.0, 1.0]])
    new = np.array([[NAN, NAN, NAN], [np.inf, 1.0, NAN], [-np.inf, NAN, 0.0]], order=order)
    unseen = count(X, new.astype(dtype))
    assert (unseen.n_rows, unseen.newly_missing) == (3, {"x0": 1, "x2": 2})
    # Infinities add up to no number, but none is missing.
    assert count(X, new[1:, [0, 0, 0]].astype(dtype)).message() is None


def test_declared_categories_without_a_row_are_not_new():
    known = pd.DataFrame({"a": ["u", "v"] * 2})
    new = pd.DataFrame({"a": pd.Categorical(["v", "u"], categories=["w", "v", "u"])})
    assert count(known, new).message() is None


def test_batches_add_up():
    attributes, total = learn(TRAINING)[0], Unseen()
    for batch in (NEW[:2], NEW[2:3], NEW[3:]):
        one = Unseen()
        attributes.encode(batch, one)
        total.update(one)
    assert total == count(TRAINING, NEW)


def test_the_message_names_rows_and_columns():
    unseen = count(TRAINING, NEW)
    assert unseen.message() == (
        "some of 5 rows have values that no training row had: 'plan': a new category such as 'z' "
        "in 3 rows and missing in 1 row, though never in training; 'age': missing in 2 rows, "
        "though never in training; 'flag': missing in 1 row, though never in training. A new "
        "category counts as the most frequent one. Check whether the data have changed, or fit "
        "again"
    )
    assert unseen.to_list()[0] == {
        "attribute": "plan",
        "new_category": 3,
        "example": "z",
        "newly_missing": 1,
    }


def test_the_message_stays_short():
    unseen = Unseen(n_rows=9)
    for j in range(12):
        unseen.add_category(f"column {j} {'x' * 99}", 2, "y" * 999)
    assert "; 2 more attributes. A new" in unseen.message()
    assert len(unseen.message()) < 2000


def test_what_is_not_used_is_not_counted():
    X = pd.DataFrame({"id": np.arange(200), "a": np.arange(200) % 2})
    with pytest.warns(UserWarning, match="'id' looks like an identifier"):
        attributes, _ = learn(X, identifiers="drop")
    unseen = Unseen()
    encoded = attributes.encode(pd.DataFrame({"id": [None, "new"], "a": [1, 0]}), unseen)
    assert np.array_equal(encoded, [[NAN, 1.0], [NAN, 0.0]], equal_nan=True)
    assert unseen.message() is None
    absent = attributes.encode(pd.DataFrame({"a": [1, 0]}))
    assert np.array_equal(absent, encoded, equal_nan=True)
