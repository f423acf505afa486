"""Regions in plain words."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caltree._fitted import conditions as words
from caltree._fitted.conditions import Limits
from caltree._fitted.model import FittedModel
from caltree._fitted.names import printable
from caltree._fitted.outline import Outline
from caltree._inputs.attributes import Attribute, Attributes

from ..support.trees import both_engines, make_frame

NUMBER = Attribute("a", None)
COLOURS = Attribute("colour", ("red", "green", "blue"))
SUMS = Attribute("sum", ("<100", ">=100", "none"))
LETTERS = Attribute("letter", tuple("abcdefghijkl"))
NO_GAPS = np.zeros(2, dtype=bool)
MISSING_ALONE = np.finfo(np.float64).max


@pytest.mark.parametrize(
    ("column", "limits", "text"),
    [
        (NUMBER, Limits(low=5.0), "a > 5"),
        (NUMBER, Limits(high=25.0, is_missing=True), "a <= 25 or missing"),
        (NUMBER, Limits(low=3.0, high=5.0), "3 < a <= 5"),
        (NUMBER, Limits(low=3.0, high=5.0, is_missing=False), "3 < a <= 5"),
        (NUMBER, Limits(low=1.0, high=1.0 + 1e-9), "1 < a <= 1.000000001"),
        (NUMBER, Limits(low=999999.5), "a > 999999"),
        (NUMBER, Limits(high=1286649.5), "a <= 1286649"),
        (NUMBER, Limits(low=-1286649.5), "a > -1286650"),
        (NUMBER, Limits(low=1717382.5, high=1717384.5), "1717382 < a <= 1717384"),
        (NUMBER, Limits(high=1.5e18), "a <= 1.5e+18"),
        (NUMBER, Limits(high=1.5e-7), "a <= 1.5e-07"),
        (NUMBER, Limits(is_known=False, is_missing=True), "a is missing"),
        (NUMBER, Limits(is_missing=False), "a is known"),
        (COLOURS, Limits(categories=frozenset([1])), "colour = green"),
        (COLOURS, Limits(categories=frozenset([0, 2])), "colour in red, blue"),
        (
            COLOURS,
            Limits(categories=frozenset([0, 2]), is_missing=True),
            "colour in red, blue or missing",
        ),
        (COLOURS, Limits(categories=frozenset(), is_known=False), "colour is missing"),
        (LETTERS, Limits(categories=frozenset(range(10))), "letter other than k, l"),
        (LETTERS, Limits(categories=frozenset(range(5))), "letter in a, b, c, d, e"),
        (LETTERS, Limits(categories=frozenset(range(6))), "letter in a, b, c, d and 2 more"),
        (LETTERS, Limits(categories=frozenset(range(7))), "letter other than h, i, j, k, l"),
        (COLOURS, Limits(), "colour in red, green, blue"),
        (
            LETTERS,
            Limits(categories=frozenset(range(6)), is_missing=True),
            "letter in a, b, c, d and 2 more or missing",
        ),
        (SUMS, Limits(categories=frozenset([0])), "sum = '<100'"),
        (SUMS, Limits(categories=frozenset([0, 1])), "sum in '<100', '>=100'"),
        (Attribute("n" * 99, None), Limits(low=0.0), "n" * 59 + "… > 0"),
        (Attribute("a\u2028b", None), Limits(low=0.0), "a\\u2028b > 0"),
    ],
)
def test_what_is_left_of_an_attribute(column, limits, text):
    assert words.condition(column, limits) == text


@pytest.mark.parametrize(
    ("column", "limits", "text"),
    [
        (NUMBER, Limits(low=5.0), "> 5"),
        (NUMBER, Limits(low=3.0, high=5.0), "> 3, <= 5"),
        (NUMBER, Limits(low=3.0, high=5.0, is_missing=True), "> 3, <= 5 or missing"),
        (NUMBER, Limits(is_missing=False), "is known"),
        (COLOURS, Limits(categories=frozenset([1])), "= green"),
        (COLOURS, Limits(categories=frozenset(), is_known=False), "is missing"),
    ],
)
def test_what_can_stand_behind_the_name(column, limits, text):
    assert words.bare_condition(column, limits) == text


def chain(splits):
    """A tree that is split again and again in its last child: (attribute, threshold or table)."""
    columns = (NUMBER, COLOURS)
    n_nodes = 2 * len(splits) + 1
    arrays = {
        "attribute": np.full(n_nodes, -1),
        "first_child": np.full(n_nodes, -1),
        "n_children": np.zeros(n_nodes, dtype=int),
        "missing": np.zeros(n_nodes, dtype=int),
        "table": np.full(n_nodes, -1),
    }
    threshold, missing_rows, branches = np.zeros(n_nodes), np.zeros(n_nodes), []
    for i, (attribute, cut, missing) in enumerate(splits):
        node = 2 * i
        arrays["attribute"][node] = attribute
        arrays["first_child"][node] = node + 1
        arrays["n_children"][node] = 2
        if attribute == 0:
            threshold[node] = cut
        else:
            arrays["table"][node] = len(branches)
            branches += cut
        if missing is not None:
            arrays["missing"][node], missing_rows[node] = missing, 1.0
    return FittedModel(
        Attributes(columns, None),
        **{name: array.astype(np.int32) for name, array in arrays.items()},
        threshold=threshold,
        missing_rows=missing_rows,
        branches=np.array(branches, dtype=np.int32),
        n_rows=np.ones(n_nodes),
        gain=np.zeros(n_nodes),
        weight=np.zeros(n_nodes),
        parameters=np.zeros((n_nodes, 1, 3)),
        step=np.ones(3),
        roots=np.zeros(1, dtype=np.int32),
        n_scores=2,
        offset=False,
    )


@pytest.mark.parametrize(
    ("splits", "last", "before_last"),
    [
        ([], "all rows", None),
        ([(0, 3.0, None), (0, 5.0, None)], "a > 5", "3 < a <= 5"),
        ([(0, 5.0, None), (0, 3.0, None)], "a > 5", None),
        ([(0, 3.0, 1), (0, 5.0, 0)], "a > 5", "3 < a <= 5 or missing"),
        ([(0, 3.0, 1), (0, 5.0, 1)], "a > 5 or missing", "3 < a <= 5"),
        ([(1, [0, 1, 1], None), (1, [0, 0, 1], None)], "colour = blue", "colour = green"),
        (
            [(1, [0, 1, 1], None), (0, 3.0, None)],
            "colour in green, blue and a > 3",
            "colour in green, blue and a <= 3",
        ),
        ([(0, MISSING_ALONE, 1)], "a is missing", "a is known"),
    ],
)
def test_conditions_on_one_attribute_are_merged(splits, last, before_last):
    tree = chain(splits)
    found = words.regions(tree, NO_GAPS)
    texts = [
        words.join_conditions(words.conditions(found[node], tree.attributes.columns))
        for node in found
    ]
    assert texts[-1] == last
    assert before_last is None or texts[-2] == before_last


def shown(outline):
    """The conditions of all nodes that are shown, depth first, by level."""
    found, pending = [], [(0, 0)]
    while pending:
        node, level = pending.pop()
        if level:
            found.append((level, outline.condition(node)))
        pending += [(child, level + 1) for child in outline.children(node)][::-1]
    return found


def test_splits_on_one_attribute_are_one_for_the_reader():
    outline = Outline.of(chain([(0, 3.0, None), (0, 5.0, 0), (1, [0, 1, 1], None)]))
    assert shown(outline) == [
        (1, "a <= 3"),
        (1, "3 < a <= 5 or missing"),
        (1, "a > 5"),
        (2, "colour = red"),
        (2, "colour in green, blue"),
    ]
    assert (outline.attribute_name(0), outline.attribute_name(4, str.upper)) == ("a", "COLOUR")
    assert outline.bare_condition(3, str.upper) == "> 3, <= 5 or missing"
    assert outline.condition(3, str.upper) == "3 < A <= 5 or missing"
    assert outline.conditions(6) == ["a > 5", "colour in green, blue"]


def test_a_node_with_a_weight_is_shown():
    tree = chain([(0, 3.0, None), (0, 5.0, None)])
    tree.weight[2] = 0.5
    assert shown(Outline.of(tree)) == [
        (1, "a <= 3"),
        (1, "a > 3"),
        (2, "3 < a <= 5"),
        (2, "a > 5"),
    ]


def test_splits_that_another_attribute_parts_are_merged_in_words_alone():
    tree = chain([(0, 3.0, None), (1, [0, 1, 1], None), (0, 5.0, None)])
    assert shown(Outline.of(tree)) == [
        (1, "a <= 3"),
        (1, "a > 3"),
        (2, "colour = red"),
        (2, "colour in green, blue"),
        (3, "3 < a <= 5"),
        (3, "a > 5"),
    ]


def test_missing_values_are_told_of_where_they_come_by():
    # They come along with what is above 3, although no training row misses a value below.
    tree = chain([(0, 3.0, 1), (1, [0, 1, 1], None), (0, 5.0, None)])
    outline = Outline.of(tree)
    assert outline.condition(5) == "3 < a <= 5 or missing" and outline.condition(6) == "a > 5"


def test_missing_values_at_hand_are_told_of_even_if_training_had_none():
    tree = chain([(0, 3.0, None), (0, 5.0, None)])
    found = words.regions(tree, np.array([True, False]))
    texts = [
        words.join_conditions(words.conditions(found[node], tree.attributes.columns))
        for node in found
    ]
    assert texts == ["all rows", "a <= 3 or missing", "a > 3", "3 < a <= 5", "a > 5"]


def fulfils(limits, values, is_nominal):
    """Who fulfils what the words say."""
    missing = np.isnan(values)
    if is_nominal:
        known = np.isin(values, list(limits.categories or ()))
    else:
        known = (values > limits.low) & (values <= limits.high)
    known &= ~missing & limits.is_known
    return known | (missing & bool(limits.is_missing))


@both_engines
@settings(max_examples=8, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_the_words_divide_the_rows_as_the_tree_does(make, seed):
    frame, y, scores = make_frame(200, seed=seed)
    tree = make(max_depth=4).fit(frame, y, scores)
    matrix, leaf = tree.model_.attributes.encode(frame), tree.apply(frame)
    nominal = [bool(column.categories) for column in tree.model_.attributes.columns]
    for node, limits in words.regions(tree.model_, np.isnan(matrix).any(axis=0)).items():
        if tree.model_.attribute[node] >= 0:
            continue
        inside = np.ones(len(frame), dtype=bool)
        for attribute, own in limits.items():
            inside &= fulfils(own, matrix[:, attribute], nominal[attribute])
        assert np.array_equal(inside, leaf == node)


def test_words_of_all_rows():
    assert words.join_conditions([]) == "all rows"
    assert words.join_conditions(["a > 1", "b = x"]) == "a > 1 and b = x"
    assert not math.isnan(Limits().low)


def test_long_categories_are_cut(tmp_path):
    column = words.with_short_names(Attribute("n" * 80, ("c" * 80, 3)))
    assert len(column.name) == 60 and column.categories == ("c" * 59 + "…", "3")
    assert words.with_short_names(NUMBER) == NUMBER
    assert pd.notna(column.fill)


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, "1"), (-3.0, "-3"), (2.5, "2.5"), (1e300, "1e+300"), ("1.0", "1.0")],
)
def test_whole_numbers_among_categories_have_no_fraction(value, written):
    """A column of codes with a missing value becomes one of floats in pandas."""
    assert printable(value) == written
