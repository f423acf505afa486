"""The same data in any dress gives the same tree: tables, labels and scores."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from caltree import CalibrationTree

from .support.trees import (
    FIXED,
    assert_probabilities,
    assert_same,
    boosted_tree,
    both_engines,
    fixed_boosted_tree,
    fixed_tree,
    make_frame,
    make_rows,
    same_tree,
)

# Tables


def as_frame(make):
    def convert(X):
        return make({f"x{j}": X[:, j] for j in range(X.shape[1])})

    return convert


TABLES = {
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "read only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "object": lambda X: X.astype(object),
    "lists": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "pandas": as_frame(pd.DataFrame),
    "pandas Float64": lambda X: as_frame(pd.DataFrame)(X).astype("Float64"),
    "polars": as_frame(pl.DataFrame),
    "pyarrow": as_frame(pa.table),
    "csr matrix": sparse.csr_matrix,
    "csc matrix": sparse.csc_matrix,
    "csr array": sparse.csr_array,
    "csc array": sparse.csc_array,
}


@pytest.fixture(scope="module")
def quarters():
    # Quarters are exact in float32.
    X, y, scores = make_rows(400)
    X = np.round(4 * X) / 4
    X[:40, 2] = np.nan
    return X, y, scores, CalibrationTree().fit(X, y, scores)


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_tree(kind, quarters):
    X, y, scores, expected = quarters
    table = TABLES[kind](X)
    tree = CalibrationTree().fit(table, y, scores)
    assert expected.get_n_leaves() > 1
    assert_same(expected, tree, X, scores, table)


def as_pyarrow(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


FRAMES = {
    "polars": lambda frame: pl.from_arrow(as_pyarrow(frame)),
    "pyarrow": as_pyarrow,
    "pandas objects": lambda frame: frame.assign(
        colour=frame["colour"].astype(object), known=frame["known"].astype(object)
    ),
    "pandas strings": lambda frame: frame.assign(colour=frame["colour"].astype("string")),
    "pandas plain": lambda frame: frame.assign(
        count=frame["count"].astype(float), flag=frame["flag"].astype(object)
    ),
}


@both_engines
@pytest.mark.parametrize("kind", FRAMES)
def test_columns_of_every_type_give_the_same_tree(kind, make):
    frame, y, scores = make_frame()
    # The order of the categories is that of their branches; all tables know it sorted.
    frame["size"] = frame["size"].cat.set_categories(["large", "small"])
    expected = make().fit(frame, y, scores)
    split_on = {expected.model_.attributes.columns[a].name for a in expected.model_.attribute}
    assert {"number", "colour"} <= split_on
    other = FRAMES[kind](frame)
    assert_same(expected, make().fit(other, y, scores), frame, scores, other)


def test_declared_categories_keep_their_order_and_an_unused_one_its_branch():
    X = pd.DataFrame({"c": pd.Categorical(["b", "a"] * 20, categories=["z", "b", "a"])})
    tree = fixed_boosted_tree().fit(X, [0, 1] * 20, np.linspace(0.1, 0.9, 40))
    assert tree.model_.attributes.columns[0].categories == ("z", "b", "a")
    assert tree.model_.n_rows.tolist() == [40, 0, 20, 20]


@pytest.mark.parametrize("most", ["a", "b"])
def test_a_declared_category_without_rows_goes_with_most_of_them(most):
    colour = ["b", "a", most] * 20
    X = pd.DataFrame({"c": pd.Categorical(colour, categories=["z", "b", "a"])})
    y = [int(value == "b") for value in colour]
    tree = fixed_tree(max_depth=1).fit(X, y, np.full(60, 0.5))
    assert tree.model_.attributes.columns[0].categories == ("z", "b", "a")
    assert sorted(tree.model_.n_rows) == [20, 40, 60]
    leaves = dict(zip(colour, tree.apply(X), strict=True))
    assert leaves["a"] != leaves["b"]
    assert tree.apply(pd.DataFrame({"c": ["z", None]})).tolist() == [leaves[most]] * 2


def test_categorical_features_makes_numbers_nominal():
    X, y, scores = make_rows()
    X[:, 0] = np.where(X[:, 0] > 0.3, 7, np.where(X[:, 0] > -0.5, 3, 11))
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    trees = [
        fixed_tree(categorical_features=features).fit(table, y, scores)
        for features, table in [([0], X), ([True, False, False], X), (["a"], names)]
    ]
    assert trees[0].model_.attributes.columns[0].categories == (3, 7, 11)
    assert same_tree(trees[0], trees[1]) and same_tree(trees[0], trees[2])


COLOURS = {
    "numpy": lambda values: np.array(values, dtype=object).reshape(-1, 1),
    "pandas": lambda values: pd.DataFrame({"colour": values}),
    "polars": lambda values: pl.DataFrame({"colour": values}),
    "pyarrow": lambda values: pa.table({"colour": values}),
}


@pytest.mark.parametrize("kind", COLOURS)
def test_unseen_and_missing_categories_go_where_the_most_frequent_goes(kind):
    colour = np.array(["red"] * 50 + ["green"] * 30 + ["blue"] * 20, dtype=object)
    y = np.repeat([0, 1, 0], [50, 30, 20])
    make = COLOURS[kind]
    tree = fixed_boosted_tree().fit(make(list(colour)), y, np.linspace(0.1, 0.9, 100))
    leaves = tree.apply(make(["blue", "green", "red", "mauve", None]))
    assert leaves.tolist() == [1, 2, 3, 3, 3]


@pytest.mark.parametrize("kind", COLOURS)
def test_unseen_categories_go_with_the_most_frequent_and_missing_ones_with_most_rows(kind):
    colour = np.array(["red"] * 40 + ["green"] * 30 + ["blue"] * 30, dtype=object)
    y = np.repeat([0, 1, 1], [40, 30, 30])
    make = COLOURS[kind]
    tree = fixed_tree(max_depth=1).fit(make(list(colour)), y, np.full(100, 0.5))
    red, green, *others = tree.apply(make(["red", "green", "blue", "mauve", None]))
    assert red != green
    assert others == [green, red, green]
    assert tree.model_.missing_rows.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", COLOURS)
@pytest.mark.parametrize("like", ["red", "green"])
def test_missing_categories_go_where_they_fit_best(kind, like):
    colour = np.array(["red"] * 40 + ["green"] * 60 + [None] * 20, dtype=object)
    y = np.repeat([0, 1, int(like == "green")], [40, 60, 20])
    make = COLOURS[kind]
    tree = fixed_tree(max_depth=1).fit(make(list(colour)), y, np.full(120, 0.5))
    leaves = dict(
        zip(["red", "green", None], tree.apply(make(["red", "green", None])), strict=True)
    )
    assert leaves["red"] != leaves["green"]
    assert leaves[None] == leaves[like]
    assert tree.model_.missing_rows.tolist() == [20, 0, 0]


def test_a_missing_number_counts_as_the_mean():
    X, y, scores = make_rows()
    X[:100, 0] = np.nan
    X[100:, 0] += 0.2
    filled = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    tree = fixed_boosted_tree().fit(X, y, scores)
    assert np.array_equal(tree.apply(X), tree.apply(filled))
    # But for where the mean would go, which is a threshold, too, and not the same to the bit.
    other = fixed_boosted_tree().fit(filled, y, scores)
    for name in ("attribute", "threshold", "first_child", "n_rows", "parameters"):
        assert np.array_equal(getattr(tree.model_, name), getattr(other.model_, name))


@pytest.mark.parametrize("side", [0, 1])
def test_a_missing_number_goes_where_it_fits_best(side):
    X = np.repeat([0.0, 1.0, np.nan], [60, 40, 20])[:, np.newaxis]
    y = np.repeat([0, 1, side], [60, 40, 20])
    tree = fixed_tree(max_depth=1).fit(X, y, np.full(120, 0.5))
    assert tree.apply([[0.0], [1.0], [np.nan]]).tolist() == [1, 2, 1 + side]
    assert tree.model_.missing_rows.tolist() == [20, 0, 0]


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_a_missing_number_goes_with_most_rows_where_none_was_missing(share):
    X = (np.arange(100) < 100 * share).astype(float)[:, np.newaxis]
    y = X[:, 0].astype(int)
    y[[0, -1]] = 0, 1  # not a copy of the attribute, which would be noticed
    tree = fixed_tree(max_depth=1).fit(X, y, np.full(100, 0.5))
    assert tree.apply([[0.0], [1.0], [np.nan]]).tolist() == [1, 2, 1 + (share > 0.5)]
    assert tree.model_.missing_rows.tolist() == [0, 0, 0]


@both_engines
def test_a_column_without_a_value_is_of_no_use(make):
    X, y, scores = make_rows()
    empty = np.column_stack([X, np.full(len(X), np.nan)])
    tree = make().fit(empty, y, scores)
    expected = make().fit(X, y, scores)
    assert same_tree(tree, expected)
    assert np.array_equal(tree.predict_proba(empty, scores), expected.predict_proba(X, scores))


@pytest.mark.parametrize("n_rows", [0, 1])
def test_few_new_rows_will_do(n_rows):
    X, y, scores = make_rows()
    tree = fixed_tree().fit(X, y, scores)
    few = tree.predict_proba(X[:n_rows], scores[:n_rows])
    assert few.shape == (n_rows, 2)
    assert np.array_equal(few, tree.predict_proba(X, scores)[:n_rows])


@both_engines
def test_the_prediction_of_a_row_does_not_depend_on_its_neighbours(make):
    X, y, scores = make_rows(n_classes=3)
    tree = make().fit(X, y, scores)
    order = np.random.default_rng(1).permutation(len(X))
    expected = tree.predict_proba(X, scores)
    assert np.array_equal(tree.predict_proba(X[order], scores[order]), expected[order])
    for start in range(0, 20, 7):
        part = slice(start, start + 7)
        assert np.array_equal(tree.predict_proba(X[part], scores[part]), expected[part])


# Labels

TEXT = np.dtypes.StringDType() if hasattr(np.dtypes, "StringDType") else object  # since numpy 2
LABELS = {
    "int": (lambda y: y, [0, 1]),
    "uint8": (lambda y: y.astype(np.uint8), [0, 1]),
    "float": (lambda y: y.astype(float), [0.0, 1.0]),
    "minus one": (lambda y: 2 * y - 1, [-1, 1]),
    "bool": (lambda y: y > 0, [False, True]),
    "string": (lambda y: np.array(["no", "yes"])[y], ["no", "yes"]),
    "numpy text": (lambda y: np.array(["no", "yes"], dtype=TEXT)[y], ["no", "yes"]),
    "list": (lambda y: y.tolist(), [0, 1]),
    "list of strings": (lambda y: np.array(["no", "yes"])[y].tolist(), ["no", "yes"]),
    "objects": (lambda y: y.astype(object), [0, 1]),
    "boolean objects": (lambda y: (y > 0).astype(object), [False, True]),
    "pandas": (pd.Series, [0, 1]),
    "pandas Int64": (lambda y: pd.Series(y, dtype="Int64"), [0, 1]),
    "pandas boolean": (lambda y: pd.Series(y > 0, dtype="boolean"), [False, True]),
    "pandas strings": (lambda y: pd.Series(y).map({0: "no", 1: "yes"}), ["no", "yes"]),
    "pandas categories": (
        lambda y: pd.Series(y).map({0: "no", 1: "yes"}).astype("category"),
        ["no", "yes"],
    ),
    "pandas index": (lambda y: pd.Series(y, index=np.arange(len(y))[::-1]), [0, 1]),
    "polars": (pl.Series, [0, 1]),
    "polars strings": (lambda y: pl.Series(np.array(["no", "yes"])[y]), ["no", "yes"]),
    "pyarrow": (pa.array, [0, 1]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_give_the_same_tree(kind):
    X, y, scores = make_rows()
    convert, classes = LABELS[kind]
    tree = fixed_tree().fit(X, convert(y), scores)
    assert tree.classes_.tolist() == classes
    assert_same(fixed_tree().fit(X, y, scores), tree, X, scores)


@both_engines
def test_the_columns_follow_the_sorted_classes(make):
    X, y, scores = make_rows(n_classes=3)
    expected = make().fit(X, y, scores)
    turned = make().fit(X, np.array(["c", "b", "a"])[y], scores[:, ::-1])
    assert turned.classes_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(
        turned.predict_proba(X, scores[:, ::-1])[:, ::-1],
        expected.predict_proba(X, scores),
        rtol=0,
        atol=1e-12,
    )


def test_a_column_of_labels_warns():
    from sklearn.exceptions import DataConversionWarning

    X, y, scores = make_rows()
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        tree = fixed_tree().fit(X, y[:, np.newaxis], scores)
    assert same_tree(tree, fixed_tree().fit(X, y, scores))


@pytest.mark.parametrize("tree", [CalibrationTree(), boosted_tree(max_boosting_iterations=5)])
def test_many_classes(tree):
    X, y, scores = make_rows(2000, n_classes=40)
    tree.fit(X, y, scores)
    probabilities = tree.predict_proba(X, scores)
    assert probabilities.shape == (2000, 40)
    assert_probabilities(probabilities)


# Scores

SCORES = {
    "float32": lambda scores: scores.astype(np.float32),
    "lists": lambda scores: scores.tolist(),
    "objects": lambda scores: scores.astype(object),
    "fortran": np.asfortranarray,
    "pandas": pd.DataFrame,
    "polars": lambda scores: pl.DataFrame({"a": scores[:, 0], "b": scores[:, 1]}),
}


@pytest.mark.parametrize("kind", SCORES)
def test_scores_of_every_kind_give_the_same_tree(kind):
    X, y, scores = make_rows()
    scores = scores.astype(np.float32).astype(np.float64)
    other = SCORES[kind](scores)
    expected = fixed_tree().fit(X, y, scores)
    assert_same(expected, fixed_tree().fit(X, y, other), X, scores, scores_other=other)


@pytest.mark.parametrize("convert", [np.ravel, list, pd.Series, pl.Series])
def test_one_column_may_be_flat(convert):
    X, y, scores = make_rows()
    column = scores[:, 1:]
    flat = convert(column[:, 0])
    expected = fixed_tree().fit(X, y, column)
    assert_same(expected, fixed_tree().fit(X, y, flat), X, column, scores_other=flat)


@pytest.mark.parametrize("make", [CalibrationTree, fixed_tree, boosted_tree, fixed_boosted_tree])
def test_one_column_stands_for_two(make):
    X, y, scores = make_rows(500)
    p = scores[:, 1]
    both = np.column_stack([1 - p, p])
    one, two = make().fit(X, y, p), make().fit(X, y, both)
    assert one.get_n_leaves() == two.get_n_leaves() > 1
    np.testing.assert_allclose(
        one.predict_proba(X, p), two.predict_proba(X, both), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_log_odds_say_the_same_as_probabilities(n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    log_odds = np.log(scores / (1 - scores))
    expected = fixed_boosted_tree().fit(X, y, scores)
    assert expected.score_type_ == "probability"
    for score_type in ("logit", "margin", "auto"):
        tree = fixed_boosted_tree(score_type=score_type).fit(X, y, log_odds)
        assert tree.score_type_ == {"auto": "margin"}.get(score_type, score_type)
        assert_same(expected, tree, X, scores, scores_other=log_odds)


@pytest.mark.parametrize("params", [{}, {**FIXED, "max_depth": 4}], ids=["chosen", "fixed"])
def test_shrunken_node_models_take_log_odds_for_the_probabilities_they_are(params):
    X, y, scores = make_rows()
    log_odds = np.log(scores[:, 1] / scores[:, 0])
    expected = CalibrationTree(**params).fit(X, y, scores[:, 1])
    tree = CalibrationTree(score_type="logit", **params).fit(X, y, log_odds)
    assert tree.get_n_leaves() == expected.get_n_leaves() > 1
    np.testing.assert_allclose(
        tree.predict_proba(X, log_odds), expected.predict_proba(X, scores[:, 1]), rtol=0, atol=1e-9
    )


LOG_PROBABILITIES = pytest.mark.parametrize("shift", [0.0, 7.0], ids=["logarithms", "shifted"])


@LOG_PROBABILITIES
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_logits_say_before_any_correction_is_their_softmax(n_classes, shift):
    X, y, scores = make_rows(n_classes=n_classes)
    expected = CalibrationTree().fit(X, y, scores)
    tree = CalibrationTree(score_type="logit").fit(X, y, np.log(scores) + shift)
    found, wanted = (model.selection_.candidates[0] for model in (tree, expected))
    assert found.name == wanted.name == "uncalibrated"
    assert found.loss == pytest.approx(wanted.loss, abs=1e-12)


@LOG_PROBABILITIES
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logarithms_of_probabilities_are_their_logits(n_classes, shift):
    X, y, scores = make_rows(n_classes=n_classes)
    logits = np.log(scores) + shift
    expected = fixed_tree(max_depth=2).fit(X, y, scores)
    tree = fixed_tree(max_depth=2, score_type="logit").fit(X, y, logits)
    np.testing.assert_allclose(
        tree.predict_proba(X, logits), expected.predict_proba(X, scores), rtol=0, atol=1e-9
    )


def test_margins_are_no_probabilities_that_could_stay_uncalibrated():
    X, y, scores = make_rows()
    margins = np.log(scores[:, 1] / scores[:, 0])
    for score_type in ("margin", "auto"):
        tree = CalibrationTree(score_type=score_type).fit(X, y, margins)
        assert tree.score_type_ == "margin"
        assert tree.selection_.candidates[0].name == "global"


def test_two_columns_of_probabilities_say_no_more_than_one_but_where_published():
    X, y, scores = make_rows()
    one, two = fixed_tree().fit(X, y, scores[:, 1]), fixed_tree().fit(X, y, scores)
    assert_same(one, two, X, scores, scores_other=scores[:, 1])
    both = fixed_boosted_tree().fit(X, y, scores)
    # The log-odds and what bends them; and the log-odds of both columns.
    assert one.model_.n_scores == two.model_.n_scores == both.model_.n_scores == 2
    assert one.model_.offset is two.model_.offset is both.model_.offset is False
    with pytest.raises(ValueError, match=r"scores has 1 columns, .* fitted with 2"):
        both.predict_proba(X, scores[:, 1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_extreme_probabilities_keep_their_order_but_where_published(n_classes):
    X, y, _ = make_rows(n_classes=n_classes)
    small = np.linspace(0.1, 0.4, len(y))
    small[:6] = [0.0, 5e-324, 1e-200, 1e-17, 1e-12, 1e-5]
    scores = np.column_stack([small] + [(1 - small) / (n_classes - 1)] * (n_classes - 1))
    first = fixed_tree(max_depth=0).fit(X, y, scores).predict_proba(X[:6], scores[:6])[:, 0]
    assert (np.diff(first) >= 0).all() or (np.diff(first) <= 0).all()
    published = fixed_boosted_tree(boosting_iterations=1, max_depth=0)
    first = published.fit(X, y, scores).predict_proba(X[:6], scores[:6])[:, 0]
    assert (np.diff(first) > 0).any() and (np.diff(first) < 0).any()


def test_what_the_scores_are_is_settled_by_fitting():
    X, y, scores = make_rows()
    log_odds = np.log(scores[:, 1] / scores[:, 0])
    tree = fixed_tree().fit(X, y, log_odds)
    inside = (log_odds > 0) & (log_odds < 1)
    expected = tree.predict_proba(X, log_odds)[inside]
    assert np.array_equal(tree.predict_proba(X[inside], log_odds[inside]), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_two_classifiers_side_by_side(n_classes):
    X, y, scores = make_rows(600, n_classes=n_classes)
    rng = np.random.default_rng(3)
    noise = rng.dirichlet(np.ones(n_classes), len(X))
    both = np.column_stack([noise, scores])
    tree = CalibrationTree().fit(X, y, both)
    truth = np.eye(n_classes)[y]

    def squared_error(tree, scores):
        return np.mean((tree.predict_proba(X, scores) - truth) ** 2)

    assert tree.model_.n_scores == (8 if n_classes == 2 else 6)
    alone = squared_error(CalibrationTree().fit(X, y, noise), noise)
    assert squared_error(tree, both) < 0.9 * alone
