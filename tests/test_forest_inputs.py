"""CalibrationForest: tables and scores in any dress, little data and strange."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit

from caltree import CalibrationForest

from .support.forests import (
    assert_survives,
    calibrated_rows,
    few,
    fitted,
    same_forest,
)
from .support.marks import new_values
from .support.trees import assert_probabilities, make_frame, make_rows, squared_error

# Tables and scores in any dress


def as_frame(make):
    return lambda X: make({f"x{j}": X[:, j] for j in range(X.shape[1])})


TABLES = {
    "float32": lambda X: X.astype(np.float32),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "lists": lambda X: X.tolist(),
    "pandas": as_frame(pd.DataFrame),
    "polars": as_frame(pl.DataFrame),
    "pyarrow": as_frame(pa.table),
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_forest(kind):
    X, y, scores = make_rows(200)
    X = np.round(4 * X) / 4  # exact in float32
    X[:20, 2] = np.nan
    expected = few().fit(X, y, scores)
    forest = few().fit(TABLES[kind](X), y, scores)
    one, other = fitted(expected), fitted(forest)
    for stored in (one, other):
        del stored["model"]["attributes"]["names"]
    assert one == other
    found = forest.predict_proba(TABLES[kind](X), scores)
    assert np.array_equal(found, expected.predict_proba(X, scores))


@pytest.mark.parametrize("convert", [pl.from_arrow, lambda table: table], ids=["polars", "pyarrow"])
def test_frames_with_categories_and_missing_values(convert):
    frame, y, scores = make_frame()
    # The order of categories is that of their codes; all tables know it sorted.
    frame["size"] = frame["size"].cat.set_categories(["large", "small"])
    table = convert(pa.Table.from_pandas(frame, preserve_index=False))
    expected = few().fit(frame, y, scores)
    forest = few().fit(table, y, scores)
    assert same_forest(forest, expected)
    assert np.array_equal(
        forest.predict_proba(table, scores), expected.predict_proba(frame, scores)
    )


def test_categorical_features_are_nominal():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (600, 2)).astype(float)
    odds = rng.standard_normal(600)
    y = (rng.random(600) < expit(odds + 2 * np.where(X[:, 0] % 2, 1, -1))).astype(int)
    forest = few(categorical_features=[0]).fit(X, y, expit(odds))
    model = forest.model_
    assert model.attributes.columns[0].categories == (0, 1, 2, 3, 4, 5)
    # In every tree that counts one split tells even from odd.
    roots = model.roots[model.weight_below[model.roots] > 0.0]
    assert len(roots) >= 4 and (model.attribute[roots] == 0).all()
    assert len(set(model.table[model.table >= 0])) == (model.table >= 0).sum() > 8
    for begin in model.table[roots]:
        assert model.branches[begin : begin + 6].tolist() in ([0, 1] * 3, [1, 0] * 3)


def test_missing_values_go_where_they_fit():
    X, y, scores = make_rows(800)
    X[X[:, 0] > 0.3, 0] = np.nan
    forest = few().fit(X, y, scores)
    assert forest.feature_importances_[0] > 0.5
    calibrated = forest.predict_proba(X, scores)
    assert squared_error(calibrated, y) < 0.5 * squared_error(scores, y)


@new_values
def test_categories_that_were_never_seen_go_with_the_most_frequent():
    frame, y, scores = make_frame()
    forest = few().fit(frame, y, scores)
    most = frame["colour"].mode()[0]
    assert np.array_equal(
        forest.predict_proba(frame.assign(colour="mauve"), scores),
        forest.predict_proba(frame.assign(colour=most), scores),
    )
    assert_probabilities(forest.predict_proba(frame.assign(colour=None), scores))


@pytest.mark.parametrize("values", ["one", "nothing"])
def test_columns_that_say_nothing(values):
    X, y, scores = make_rows(200)
    expected = few(max_features=1.0).fit(X, y, scores)
    dull = np.full((200, 1), 3.0 if values == "one" else np.nan)
    forest = few().fit(np.hstack([dull, X]), y, scores)
    assert forest.feature_importances_[0] == 0
    np.testing.assert_array_equal(forest.feature_importances_[1:], expected.feature_importances_)
    found = forest.predict_proba(np.hstack([dull, X]), scores)
    assert np.array_equal(found, expected.predict_proba(X, scores))
    alone = few().fit(dull, y, scores)
    assert_probabilities(alone.predict_proba(dull, scores))


def test_one_column_of_probabilities_will_do():
    X, y, scores = make_rows(200)
    both, one = few().fit(X, y, scores), few().fit(X, y, scores[:, 1])
    assert both.n_scores_ == 2 and one.n_scores_ == 1
    for forest in (both, one):
        found = [forest.predict_proba(X, given) for given in (scores, scores[:, 1], scores[:, 1:])]
        np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-12)
        assert np.array_equal(found[1], found[2])
    np.testing.assert_allclose(
        both.predict_proba(X, scores), one.predict_proba(X, scores), rtol=0, atol=1e-9
    )


def test_scores_in_float32_are_numbers_like_others():
    X, y, scores = make_rows(200)
    short = scores.astype(np.float32)
    forest, expected = few().fit(X, y, short), few().fit(X, y, short.astype(float))
    assert same_forest(forest, expected)
    assert np.array_equal(
        forest.predict_proba(X, short), expected.predict_proba(X, short.astype(float))
    )


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
def test_several_classifiers_side_by_side(n_classes, kind):
    X, y, scores = make_rows(500, n_classes)
    rng = np.random.default_rng(0)
    useless = rng.dirichlet(np.ones(n_classes), 500)
    both = np.hstack([useless, scores])
    if kind != "probability":
        both = np.log(both)
    forest = few(score_type=kind).fit(X[:300], y[:300], both[:300])
    assert forest.n_scores_ == 2 * n_classes
    names = [candidate.name for candidate in forest.selection_.candidates]
    assert ("uncalibrated" in names) == (kind != "margin")
    calibrated = forest.predict_proba(X[300:], both[300:])
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y[300:]) < 0.7 * squared_error(scores[300:], y[300:])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_always_calibrated(n_classes):
    X, y, scores = calibrated_rows(400, n_classes, 0)
    margins = 3.0 * np.log(scores) + 5.0
    forest = few().fit(X, y, margins)
    assert forest.score_type_ == "margin"
    assert "uncalibrated" not in [candidate.name for candidate in forest.selection_.candidates]
    assert forest.model_.uncalibrated_weight == 0.0
    calibrated = forest.predict_proba(X, margins)
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y) < 1.05 * squared_error(scores, y)


def test_many_classes():
    X, y, scores = make_rows(600, 12)
    forest = few(n_estimators=4).fit(X, y, scores)
    assert forest.model_.n_states == 12
    calibrated = forest.predict_proba(X, scores)
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y) < squared_error(scores, y)


def test_labels_may_be_strings():
    X, y, scores = make_rows(200)
    named = few().fit(X, np.array(["no", "yes"])[y], scores)
    assert named.classes_.tolist() == ["no", "yes"]
    expected = few().fit(X, y, scores).predict_proba(X, scores)
    assert np.array_equal(named.predict_proba(X, scores), expected)


# Little data, and strange


@pytest.mark.parametrize("n_rows", [2, 3, 5, 9])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("score_type", ["probability", "margin"])
def test_a_few_rows(n_rows, n_classes, score_type):
    rng = np.random.default_rng(n_rows)
    for seed in range(5):
        y = np.append(np.arange(n_classes), rng.integers(0, n_classes, 9))[:n_rows]
        if len(np.unique(y)) < n_classes:
            continue
        X, scores = rng.standard_normal((n_rows, 2)), rng.dirichlet(np.ones(n_classes), n_rows)
        forest = few(score_type=score_type, random_state=seed).fit(X, y, scores)
        assert_probabilities(forest.predict_proba(X, scores))
        if forest.selection_ is not None:
            total = sum(candidate.weight for candidate in forest.selection_.candidates)
            assert total == pytest.approx(1.0)
        assert_survives(forest, X, scores)


def test_two_trees_and_two_rows():
    for seed in range(20):
        forest = CalibrationForest(2, random_state=seed).fit([[0.0], [1.0]], [0, 1], [0.2, 0.7])
        assert_probabilities(forest.predict_proba([[0.0], [1.0]], [0.2, 0.7]))


@pytest.mark.parametrize("scores", [0.0, 0.5, 1.0, -3.7, 1e100, 1e-320])
def test_constant_scores(scores):
    X, y, _ = make_rows(300)
    y = ((X[:, 0] > 0) ^ (np.arange(300) % 5 == 0)).astype(int)
    constant = np.full(300, scores)
    forest = few().fit(X, y, constant)
    calibrated = forest.predict_proba(X, constant)
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y) < 0.2


EXTREMES = [0.0, -0.0, 1e-320, -1e-320, 1e-8, 1.0, -1.0, 700.0, -800.0, 1e6, -1e6, 1e100, -1e308]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999),
    values=st.lists(st.sampled_from(EXTREMES), min_size=1, max_size=4),
    shape=st.sampled_from([(2, 1), (2, 2), (3, 3), (3, 6)]),
    score_type=st.sampled_from(["margin", "logit"]),
)
def test_extreme_scores_give_probabilities(seed, values, shape, score_type):
    n_classes, n_columns = shape
    rng = np.random.default_rng(seed)
    X, y, _ = make_rows(60, n_classes, seed)
    y[:n_classes] = np.arange(n_classes)
    scores = rng.choice(values, (60, n_columns))
    forest = few(n_estimators=4, score_type=score_type).fit(X, y, scores)
    assert_probabilities(forest.predict_proba(X, scores))
    assert_probabilities(forest.predict_proba(X, rng.choice(EXTREMES, scores.shape)))
    assert np.isfinite(forest.model_.parameters).all()
    assert_survives(forest, X, scores)


@pytest.mark.filterwarnings("ignore:all scores are 0 or 1:UserWarning")
@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 999),
    values=st.lists(
        st.sampled_from([0.0, 1.0, 1e-320, 1e-16, 0.5, 1 - 1e-16]), min_size=1, max_size=4
    ),
)
def test_extreme_probabilities_give_probabilities(seed, values):
    X, y, _ = make_rows(60, 2, seed)
    y[:2] = [0, 1]
    p = np.random.default_rng(seed).choice(values, 60)
    for scores in (p, np.column_stack([1 - p, p])):
        forest = few(n_estimators=4).fit(X, y, scores)
        assert forest.score_type_ == "probability"
        assert_probabilities(forest.predict_proba(X, scores))


def test_certainty_is_between_0_and_1():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, scores = rng.normal(size=(100, 2)), rng.normal(size=(100, 2 + seed % 2))
        truth = np.where(X[:, :1] > 0, scores, -scores)
        y = np.argmax(truth + 0.5 * rng.gumbel(size=truth.shape), axis=1)
        forest = few(n_estimators=20, score_type="margin").fit(X, y, scores)
        probabilities = forest.predict_proba(X, 1000 * scores)
        assert probabilities.min() >= 0.0 and probabilities.max() <= 1.0
