"""Attributes with one value for each class, which most likely are the label."""

import warnings
from functools import reduce

import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationTree, audit
from caltree._inputs.attributes import learn
from caltree._inputs.label_copies import LabelCopies

LABELS = np.random.default_rng(0).integers(0, 3, 300).astype(np.uint16)


def copies_of(matrix, labels, n_parts):
    """The copies that are found in parts of the rows, merged from both ends."""
    parts = [
        LabelCopies.of(some, label)
        for some, label in zip(
            np.array_split(matrix, n_parts), np.array_split(labels, n_parts), strict=True
        )
    ]
    found = reduce(LabelCopies.merge, parts)
    assert found.columns.tolist() == reduce(LabelCopies.merge, parts[::-1]).columns.tolist()
    assert found.n_rows == len(labels)
    return found


@pytest.mark.parametrize("n_parts", [1, 2, 7, 300])
@pytest.mark.parametrize("values", [LABELS, 5.5 - LABELS, np.array([3.0, 1.0, 7.0])[LABELS]])
def test_a_copy_of_the_labels_is_noticed(values, n_parts):
    frame = pd.DataFrame({"a": np.arange(300.0), "b": values, "c": 0.0, "d": values == values[0]})
    attributes, matrix = learn(frame)
    found = copies_of(matrix, LABELS, n_parts)
    with pytest.warns(UserWarning, match="attribute 'b' has one value for each class") as caught:
        found.warn(attributes)
    assert len(caught) == 1
    assert found.columns.tolist() == [1]


@pytest.mark.parametrize("n_parts", [1, 2, 7, 300])
@pytest.mark.parametrize("changed", [1.5, np.nan, None])
def test_what_does_not_tell_all_labels_is_no_copy(changed, n_parts):
    values = LABELS.astype(float)
    if changed is None:
        values[values == 2.0] = 1.0  # one value for two classes
    else:
        values[-1] = changed
    assert len(copies_of(values[:, np.newaxis], LABELS, n_parts).columns) == 0


def test_classes_of_different_parts_have_different_values():
    """In each part there is one class, and the column has one value for each of them."""
    labels = np.repeat(np.arange(3, dtype=np.uint16), 50)
    matrix = np.column_stack([labels * 2.0, labels // 2, np.ones(150)])
    assert copies_of(matrix, labels, 3).columns.tolist() == [0]


def test_no_row_and_few_rows():
    few = np.arange(99, dtype=np.uint16) % 3
    attributes, matrix = learn(few[:, np.newaxis].astype(float))
    found = LabelCopies.of(matrix, few)
    assert found.columns.tolist() == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.warn(attributes)
    more = found.merge(LabelCopies.of(matrix[:0], few[:0])).merge(LabelCopies.of(matrix, few))
    with pytest.warns(UserWarning, match="attribute 'x0' has one value for each class"):
        more.warn(attributes)


@pytest.mark.parametrize("method", ["exact", "hist"])
def test_copies_of_sorted_labels_are_noticed_by_calibrators_and_audits(method):
    random = np.random.default_rng(0)
    y, scores = np.sort(random.random(400) < 0.5), random.random(400)
    X = {"kind": np.where(y, "bad", "good"), "x": random.random(400)}
    for call in (CalibrationTree(tree_method=method).fit, audit):
        with pytest.warns(UserWarning, match="attribute 'kind' has one value") as caught:
            call(pd.DataFrame(X), y, scores)
        assert len(caught) == 1
        assert caught[0].filename == __file__
