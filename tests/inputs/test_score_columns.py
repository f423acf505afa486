"""The class of each column of scores: by its name, by `pos_label`, or by its place."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from caltree._inputs.score_columns import (
    ScoreColumns,
    arrange_columns,
    column_names,
    find_columns,
    match_names,
)

TWO = np.array(["churn", "stay"])
THREE = np.array(["a", "b", "c"])


@pytest.mark.parametrize(
    "name",
    [
        "churn",
        "p_churn",
        "prob_churn",
        "proba_churn",
        "probability_churn",
        "score_churn",
        "P(churn)",
        "prob.churn",
        ".pred_churn",
        "Score Churn",
        "margin_churn",
    ],
)
def test_a_name_says_the_class(name):
    assert match_names((name,), TWO) == [0]
    assert match_names((name.replace("urn", "URN"),), TWO) == [0]


@pytest.mark.parametrize("name", ["score", "p", "not_churn", "days_to_churn", "churned", "p_1", ""])
def test_a_name_that_says_no_class(name):
    assert match_names((name,), TWO) is None


@pytest.mark.parametrize(
    "classes, names, expected",
    [
        (TWO, ("p_stay", "p_churn"), [1, 0]),
        (TWO, ("stay", "score_churn"), [1, 0]),
        (TWO, ("nb_stay_v2", "nb_churn_v2"), [1, 0]),
        (TWO, ("one", "other"), None),
        (THREE, ("p_c", "p_a", "p_b"), [2, 0, 1]),
        (np.array([-1, 1]), ("p_1", "p_-1"), [1, 0]),
        (np.array([-1, 1]), ("p1", "p-1"), [1, 0]),
        (np.array([False, True]), ("p_1", "p_0"), [1, 0]),
        (np.array([False, True]), ("True", "False"), [1, 0]),
        (np.array([1.0, 2.0]), ("p_2", "p_1"), [1, 0]),
        (np.array(["f(x)", "g"]), ("p_g", "p_f(x)"), [1, 0]),
        (np.array(["Yes", "yes"]), ("p_yes", "p_Yes"), [1, 0]),
    ],
)
def test_names_say_the_order(classes, names, expected):
    assert match_names(names, classes) == expected


@pytest.mark.parametrize(
    "classes, names, words",
    [
        (TWO, ("p_churn", "other"), "not clear which of the classes"),
        (TWO, ("p_churn", "score_churn"), "not clear which of the classes"),
        (THREE, ("p_a", "p_b", "p_d"), "not clear which of the classes"),
        (np.array([0, 1]), ("p_1", "p_2"), "not clear which of the classes"),
        (np.array(["Yes", "yes"]), ("p_YES", "p_Yes"), "may belong to the class 'Yes' or to 'yes'"),
        (np.array(["churn", "p_churn"]), ("p_churn",), "may belong to the class 'churn' or to"),
    ],
)
def test_an_unclear_match_is_refused(classes, names, words):
    with pytest.raises(ValueError, match=f"scores has .*{words}.*; .*give an array"):
        match_names(names, classes)


@pytest.mark.parametrize(
    "names",
    [
        ("score_a_1", "score_b_1", "score_c_1", "score_a_2", "score_b_2", "score_c_2"),
        ("nb_a", "nb_b", "nb_c", "rf_a", "rf_b", "rf_c"),
        ("one", "two", "three", "four", "five", "six"),
        ("score_c_1", "score_b_1", "two", "four", "five", "six"),
    ],
)
def test_several_classifiers_are_in_order(names):
    assert match_names(names, THREE) is None


@pytest.mark.parametrize(
    "names",
    [
        ("score_b_1", "score_a_1", "score_a_2", "score_b_2"),
        ("score_a_1", "score_a_2", "score_b_1", "score_b_2"),
        ("nb_a", "nb_b", "rf_b", "rf_a"),
    ],
)
def test_several_classifiers_whose_names_contradict_the_order_are_refused(names):
    with pytest.raises(ValueError, match=r"in the order of the classes \['a', 'b'\]; reorder them"):
        match_names(names, THREE[:2])


@pytest.mark.parametrize(
    "scores, expected",
    [
        (np.zeros((2, 2)), None),
        ([[0.0, 1.0]], None),
        (pd.DataFrame(np.zeros((2, 2))), None),
        (pd.DataFrame(np.zeros((2, 2)), columns=[1, 0]), (1, 0)),
        (pd.DataFrame(np.zeros((2, 2)), columns=[3, 4]), None),
        (pd.DataFrame(np.zeros((2, 2)), columns=["p_1", "p_0"]), ("p_1", "p_0")),
        (pd.Series([0.0], name="p_1"), ("p_1",)),
        (pd.Series([0.0], name=0), None),
        (pd.Series([0.0]), None),
        (pl.DataFrame({"p_1": [0.0], "p_0": [1.0]}), ("p_1", "p_0")),
        (pl.Series("p_1", [0.0]), ("p_1",)),
        (pl.Series([0.0]), None),
        (pa.table({"p_1": [0.0], "p_0": [1.0]}), ("p_1", "p_0")),
        (pa.chunked_array([[0.0]]), None),
    ],
)
def test_names_of_tables(scores, expected):
    assert column_names(scores, np.array([0, 1])) == expected


@pytest.mark.parametrize(
    "scores, pos_label, positive",
    [
        ([0.1], None, 1),
        ([0.1], "churn", 0),
        ([0.1], np.str_("stay"), 1),
        (pd.Series([0.1], name="p_churn"), None, 0),
        (pd.Series([0.1], name="p_churn"), "churn", 0),
        (pd.Series([0.1], name="risk"), "churn", 0),
        (pd.DataFrame({"p_churn": [0.1]}), None, 0),
    ],
)
def test_a_single_column(scores, pos_label, positive):
    matrix = np.reshape(scores, (-1, 1))
    columns, found = find_columns(scores, matrix, TWO, pos_label)
    assert columns.positive == positive and found is matrix


@pytest.mark.parametrize(
    "scores, classes, pos_label, words",
    [
        ([[0.1]], TWO, "gone", r"which is not among the classes \['churn', 'stay'\]"),
        ([[0.1, 0.9]], TWO, "churn", r"scores has 2 columns: it is .*in the order \['churn',"),
        ([[0.1, 0.9, 0.0]], THREE, "a", "there are 3 classes: .*leave it out"),
        (pd.Series([0.1], name="p_stay"), TWO, "churn", "named 'p_stay', after the class 'stay'"),
    ],
)
def test_pos_labels_that_are_refused(scores, classes, pos_label, words):
    matrix = np.asarray(scores).reshape(len(scores), -1)
    with pytest.raises(ValueError, match=f"pos_label is '{pos_label}'.*{words}"):
        find_columns(scores, matrix, classes, pos_label)


def test_columns_to_be_calibrated_are_put_in_order():
    frame = pd.DataFrame({"p_stay": [0.9], "p_churn": [0.1]})
    found = arrange_columns(frame, frame.to_numpy(), TWO, ScoreColumns(2), "probability")
    assert found.tolist() == [[0.1, 0.9]]
    # One column of two: by its name, else that of the second class.
    for scores, expected in ((frame["p_churn"], 0.9), (np.array([0.1]), 0.1)):
        matrix = np.reshape(scores, (-1, 1))
        found = arrange_columns(scores, matrix, TWO, ScoreColumns(2), "probability")
        assert found.tolist() == [[expected]]


def test_columns_without_names_after_columns_out_of_order_are_refused():
    fitted = ScoreColumns(2, names=("p_stay", "p_churn"))
    matrix = np.array([[0.9, 0.1]])
    with pytest.raises(ValueError, match="fitted to the columns p_stay, p_churn, which are not"):
        arrange_columns(matrix, matrix, TWO, fitted, "probability")
    fitted = ScoreColumns(2, names=("p_churn", "p_stay"))
    assert arrange_columns(matrix, matrix, TWO, fitted, "probability") is matrix


def test_a_single_column_of_the_other_class_is_refused():
    scores = pd.Series([0.1], name="p_churn")
    with pytest.raises(ValueError, match=r"'p_churn', after the class 'churn', .*scores of 'stay'"):
        arrange_columns(scores, np.array([[0.1]]), TWO, ScoreColumns(1, 1), "probability")
