"""CalibrationForest: what it promises, whatever the data."""

import copy
import json
import pickle
from dataclasses import replace
from fractions import Fraction

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from caltree import CalibratedClassifier, CalibrationForest, CalibrationTree
from caltree.choice import LEAVE_ALONE
from caltree.forest import n_chosen
from caltree.model import weight_so_far

from .helpers import assert_probabilities, make_frame, make_rows

FEW = {"n_estimators": 8, "random_state": 0}


def few(**params):
    """A small forest."""
    return CalibrationForest(**{**FEW, **params})


def fitted(forest):
    """Everything that was fitted, as plain values."""
    stored = forest.to_dict()
    return {name: value for name, value in stored.items() if name != "params"}


def same_forest(one, other):
    return fitted(one) == fitted(other)


def squared_error(probabilities, y):
    return float(((probabilities - np.eye(probabilities.shape[1])[y]) ** 2).mean())


def log_loss(probabilities, y):
    return float(-np.log(probabilities[np.arange(len(y)), y]).mean())


def left_alone(forest):
    """The share of the scores as they are."""
    return {row["candidate"]: row["share"] for row in forest.selection_}.get(LEAVE_ALONE)


def calibrated_rows(n_rows, n_classes, seed):
    """Probabilities that are right, and attributes that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    scores = softmax(1.5 * rng.standard_normal((n_rows, n_classes)), axis=1)
    y = (rng.random((n_rows, 1)) > np.cumsum(scores, axis=1)).sum(axis=1)
    return X, np.minimum(y, n_classes - 1), scores


# Does it help, does it ever hurt


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_scores_that_are_right_are_left_alone(n_classes, seed, objective):
    X, y, scores = calibrated_rows(800, n_classes, seed)
    forest = few(objective=objective).fit(X, y, scores)
    assert left_alone(forest) == 1.0
    assert [row["chosen"] for row in forest.selection_] == [True] + [False] * 12
    assert np.array_equal(forest.predict_proba(X, scores), scores)
    assert not forest.feature_importances_.any()


def test_one_column_that_is_right_is_left_alone():
    X, y, scores = calibrated_rows(800, 2, 0)
    forest = few().fit(X, y, scores[:, 1])
    p = np.array([0.0, 1e-300, 0.1, 0.5, 1.0])
    assert np.array_equal(forest.predict_proba(X[:5], p), np.column_stack([1 - p, p]))


def test_logits_that_are_right_are_left_alone():
    X, y, scores = calibrated_rows(800, 2, 0)
    odds = np.log(scores[:, 1] / scores[:, 0])
    forest = few(score_type="logit").fit(X, y, odds)
    assert left_alone(forest) == 1.0
    expected = np.column_stack([expit(-odds), expit(odds)])
    assert np.array_equal(forest.predict_proba(X, odds), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_what_is_wrong_in_a_region_is_put_right_there(n_classes, objective):
    X, y, scores = make_rows(800, n_classes, seed=1)
    X_new, y_new, scores_new = make_rows(2000, n_classes, seed=2)
    forest = few(objective=objective).fit(X, y, scores)
    calibrated = forest.predict_proba(X_new, scores_new)
    assert_probabilities(calibrated)
    root = CalibrationTree(max_depth=0).fit(X, y, scores).predict_proba(X_new, scores_new)
    for loss in (squared_error, log_loss):
        assert loss(calibrated, y_new) < 0.75 * loss(root, y_new)
        assert loss(root, y_new) < 0.9 * loss(scores_new, y_new)
    assert left_alone(forest) < 0.2
    # The first attribute decides on the region, the third on nothing.
    importances = forest.feature_importances_
    assert importances.sum() == pytest.approx(1.0) and importances.min() >= 0
    assert importances[0] > 0.4 and importances[2] < 0.1


@pytest.mark.parametrize("carrier", [0, 2, 4])
def test_importances_point_to_the_attribute_that_carries_the_miscalibration(carrier):
    rng = np.random.default_rng(carrier)
    X = rng.standard_normal((1000, 5))
    odds = rng.standard_normal(1000)
    y = (rng.random(1000) < expit(odds + 2 * np.sign(X[:, carrier]))).astype(int)
    importances = few().fit(X, y, expit(odds)).feature_importances_
    assert importances.argmax() == carrier and importances[carrier] > 0.7


def test_the_objective_is_what_the_choice_goes_by():
    X, y, scores = make_rows(500, 3)
    by_rmse, by_log_loss = (few(objective=name).fit(X, y, scores) for name in ("rmse", "log_loss"))
    of_raw = [forest.selection_[0]["loss"] for forest in (by_rmse, by_log_loss)]
    seen = {"rmse": np.sqrt(squared_error(scores, y)), "log_loss": log_loss(scores, y)}
    # Nearly every row is left out by some tree of each kind.
    assert of_raw[0] == pytest.approx(seen["rmse"], rel=0.05)
    assert of_raw[1] == pytest.approx(seen["log_loss"], rel=0.05)
    shares = [[row["share"] for row in forest.selection_] for forest in (by_rmse, by_log_loss)]
    assert shares[0] != shares[1]
    assert same_forest_but_shares(by_rmse, by_log_loss)


def same_forest_but_shares(one, other):
    """The first trees, as far as both go, are the same."""
    ours, theirs = one.forest_, other.forest_
    return (
        ours.attribute[0] == theirs.attribute[0]
        and ours.threshold[0] == theirs.threshold[0]
        and np.array_equal(ours.parameters[ours.roots], theirs.parameters[theirs.roots])
    )


def test_shares_are_those_of_the_candidates():
    for n_classes, kind in ((2, "probability"), (3, "probability"), (2, "margin"), (3, "margin")):
        X, y, scores = make_rows(300, n_classes)
        forest = few(score_type=kind).fit(X, y, scores)
        shares = np.array([row["share"] for row in forest.selection_])
        assert shares.min() >= 0 and shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert [row["chosen"] for row in forest.selection_] == (shares > 0).tolist()
        names = [row["candidate"] for row in forest.selection_]
        assert len(set(names)) == len(names)
        assert (LEAVE_ALONE in names) == (kind != "margin")
        model = forest.forest_
        of_kinds = (shares[1:] if kind != "margin" else shares).reshape(2, -1)
        ends = [*model.roots[1:], len(model.attribute)]
        n_trees = np.bincount(np.arange(model.n_trees) % 2)
        for tree, (root, end) in enumerate(zip(model.roots, ends, strict=True)):
            of_tree = of_kinds[tree % 2] / n_trees[tree % 2]
            # All sizes end somewhere on every way; that of all rows ends at the root.
            leaves = root + np.flatnonzero(model.attribute[root:end] < 0)
            so_far = weight_so_far(model)[leaves]
            np.testing.assert_allclose(so_far, of_tree.sum(), rtol=0, atol=1e-12)
            assert model.weight[root] >= of_tree[0] * (1 - 1e-12)
        assert model.share_of_scores == pytest.approx(1.0 - of_kinds.sum(), abs=1e-9)


# What its arrays mean


def slow_probabilities(forest, encoded, odds, offset):
    """Every node on the way asked, by walking through the arrays."""
    model = forest.forest_
    sizes = model.attributes.n_categories
    result = np.zeros((len(encoded), model.n_states))
    for row, values in enumerate(np.hstack([encoded, odds])):
        for node in model.roots:
            while True:
                own = odds[row].reshape(-1, model.n_states).T
                parameters = model.parameters[node]
                F = parameters[:, 0] + (parameters[:, 1:] * own).sum(axis=1)
                F = F + (0 if offset is None else offset[row])
                said = expit(F) if model.n_states == 1 else softmax(F)
                result[row] += model.weight[node] * said
                if model.attribute[node] < 0:
                    break
                a = model.attribute[node]
                if np.isnan(values[a]):
                    branch = model.missing[node]
                elif a < len(sizes) and sizes[a] > 0:
                    branch = model.branches[model.table[node] + int(values[a])]
                else:
                    branch = int(values[a] > model.threshold[node])
                node = model.first_child[node] + branch
    return result


@pytest.mark.parametrize("kind", ["probability", "margin", "three classes", "two classifiers"])
def test_a_forest_says_what_its_arrays_mean(kind):
    frame, y, scores = make_frame(200)
    if kind == "three classes":
        _, y, scores = make_rows(200, 3)
    if kind == "two classifiers":
        scores = np.hstack([scores, make_rows(200, seed=5)[2]])
    forest = few(score_type="margin" if kind == "margin" else "auto").fit(frame, y, scores)
    new = frame.iloc[:40].assign(colour=["mauve", None, "red", "blue"] * 10)
    encoded = forest.forest_.attributes.encode(new)
    given = scores[:40]
    offset, odds, share = None, given, left_alone(forest) or 0.0
    mean = given.reshape(40, -1, len(forest.classes_)).mean(axis=1)
    if kind != "margin":
        odds = np.log(given) if kind == "three classes" else np.log(given / (1 - given))
        offset = np.log(mean[:, 1:] / mean[:, :1]) if kind != "three classes" else np.log(mean)
    if kind == "probability":
        odds = odds[:, 1:]
    found = slow_probabilities(forest, encoded, odds, offset)
    if found.shape[1] == 1:
        found = np.hstack([1 - share - found, found])
    found += share * mean if share else 0.0
    assert (forest.forest_.attribute >= 0).any()
    np.testing.assert_allclose(forest.predict_proba(new, given), found, rtol=0, atol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_importances_by_hand(n_classes):
    X, y, scores = make_rows(300, n_classes)
    fitted_model = few(max_features=1).fit(X, y, scores).forest_
    rng = np.random.default_rng(0)
    gain = rng.normal(0.2, 1.0, len(fitted_model.gain))
    model = replace(fitted_model, gain=gain)
    sums = np.zeros(3)
    for node in np.flatnonzero((model.attribute >= 0) & (model.attribute < 3)):
        # What the nodes on any way below count for.
        below, counts_for = int(node), 0.0
        while model.attribute[below] >= 0:
            below = int(model.first_child[below])
            counts_for += model.weight[below]
        sums[model.attribute[node]] += counts_for * model.gain[node]
    expected = np.maximum(sums, 0) / np.maximum(sums, 0).sum()
    np.testing.assert_allclose(model.importances, expected, rtol=0, atol=1e-12)
    assert (expected > 0).sum() > 1


def test_trees_are_of_two_kinds_and_as_many_as_asked_for():
    X, y, scores = make_rows(200)
    for number in (2, 3, 8):
        model = few(n_estimators=number).fit(X, y, scores).forest_
        assert model.n_trees == number
    kinds = np.repeat(np.arange(8) % 2, np.diff([*model.roots, len(model.attribute)]))
    assert model.attribute[kinds == 0].max() < 3
    assert model.attribute[kinds == 1].max() == 3


def test_parameters_are_obeyed():
    X, y, scores = make_rows(400, round_to=1)

    def model(**params):
        return few(**params).fit(X, y, scores).forest_

    assert (model(max_depth=0).attribute == -1).all()
    stumps = model(max_depth=1)
    assert len(stumps.attribute) == 3 * stumps.n_trees
    for least in (1, 25, 60.5):
        forest = model(min_samples_leaf=least)
        children = np.setdiff1d(np.arange(len(forest.attribute)), forest.roots)
        assert forest.n_rows[children].min() >= least
    coarse, fine = model(max_bins=2), model(max_bins=255)
    thresholds = [
        {(a, t) for a, t in zip(forest.attribute, forest.threshold, strict=True) if a >= 0}
        for forest in (coarse, fine)
    ]
    assert len(thresholds[0]) <= 4 < len(thresholds[1])
    held = [
        np.abs(model(penalty=penalty, max_depth=0).parameters).max()
        for penalty in (0.01, 10.0, 1e4, 1e8)
    ]
    assert held == sorted(held, reverse=True) and held[-1] < 1e-4 * held[0]


def test_max_features():
    X, y, scores = make_rows(300)

    def forest(max_features):
        return few(max_features=max_features).fit(X, y, scores)

    assert same_forest(forest(1.0), forest(4)) and same_forest(forest(1.0), forest(1000))
    assert not same_forest(forest(1.0), forest(1))
    assert same_forest(forest(0.25), forest(1))
    # With one attribute to choose from, the third cannot be avoided.
    at_the_root = [f.forest_.attribute[f.forest_.roots] for f in (forest(1.0), forest(1))]
    assert 2 not in at_the_root[0] and 2 in at_the_root[1]


@pytest.mark.parametrize(
    ("max_features", "n_columns", "expected"),
    [
        (1.0, 7, 7),
        (0.5, 7, 4),
        (0.01, 7, 1),
        (1, 7, 1),
        (9, 7, 7),
        (np.int64(3), 7, 3),
        (np.float32(1), 7, 7),
    ],
)
def test_numbers_of_attributes_to_choose_from(max_features, n_columns, expected):
    assert n_chosen(max_features, n_columns) == expected


# Chance and threads


def test_threads_change_nothing():
    frame, y, scores = make_frame()
    expected = few().fit(frame, y, scores)
    probabilities = expected.predict_proba(frame, scores)
    for n_jobs in (1, 2, 4, -1):
        forest = few(n_jobs=n_jobs).fit(frame, y, scores)
        assert same_forest(forest, expected)
        assert np.array_equal(forest.predict_proba(frame, scores), probabilities)


@pytest.mark.parametrize("backend", ["threading", "loky", "sequential"])
def test_any_joblib_backend_will_do(backend):
    X, y, scores = make_rows(150)
    expected = few().fit(X, y, scores)
    with joblib.parallel_config(backend, n_jobs=2):
        forest = few().fit(X, y, scores)
        assert same_forest(forest, expected)
        assert np.array_equal(forest.predict_proba(X, scores), expected.predict_proba(X, scores))


def test_forests_can_be_fitted_and_asked_in_threads():
    X, y, scores = make_rows(150)
    expected = few().fit(X, y, scores)

    def work(_):
        return fitted(few().fit(X, y, scores)), expected.predict_proba(X, scores).tolist()

    answers = joblib.Parallel(n_jobs=4, prefer="threads")(map(joblib.delayed(work), range(6)))
    assert all(answer == (fitted(expected), answers[0][1]) for answer in answers)


def test_rows_in_several_jobs_are_predicted_alike(monkeypatch):
    X, y, scores = make_rows(300)
    forest = few(n_jobs=2).fit(X, y, scores)
    expected = forest.predict_proba(X, scores)
    monkeypatch.setattr("caltree.forest._ROWS_A_JOB", 7)
    assert np.array_equal(forest.predict_proba(X, scores), expected)


def test_random_state_decides():
    X, y, scores = make_rows(200)

    def forest(random_state):
        return few(random_state=random_state).fit(X, y, scores)

    assert same_forest(forest(3), forest(3))
    assert same_forest(forest(3), forest(np.random.RandomState(3)))
    assert same_forest(forest(np.int64(3)), forest(3))
    assert not same_forest(forest(3), forest(4))
    generator = np.random.RandomState(0)
    assert not same_forest(forest(generator), forest(generator))
    np.random.seed(7)  # noqa: NPY002  # None means this generator
    first = forest(None)
    np.random.seed(7)  # noqa: NPY002  # None means this generator
    assert same_forest(forest(None), first)
    assert not same_forest(forest(None), first)


# Weights


def test_rows_of_weight_0_have_no_influence():
    frame, y, scores = make_frame(250)
    rng = np.random.default_rng(0)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], len(y))
    absent = weight == 0
    expected = few().fit(frame, y, scores, sample_weight=weight)
    order = np.arange(len(y))
    order[absent] = rng.permutation(order[absent])
    other = frame.iloc[order].reset_index(drop=True)
    assert not other.equals(frame)
    labels = np.where(absent, 1 - y, y)
    moved = scores.copy()
    moved[absent] = [0.9, 0.1]
    assert same_forest(few().fit(other, labels, moved, sample_weight=weight), expected)
    without = few().fit(frame[~absent], y[~absent], scores[~absent], sample_weight=weight[~absent])
    assert same_forest(without, expected)


def test_weights_of_1_are_no_weights():
    X, y, scores = make_rows(200)
    assert same_forest(few().fit(X, y, scores, np.ones(len(y))), few().fit(X, y, scores))


def test_heavy_rows_count_for_more():
    X, y, scores = make_rows(600)
    # Where the weight is, the scores say the opposite of the truth.
    weight = np.where(X[:, 0] > 0.3, 0.01, 10.0)
    heavy = few(max_depth=0).fit(X, y, scores, weight).predict_proba(X, scores)
    light = few(max_depth=0).fit(X, y, scores, 1 / weight).predict_proba(X, scores)
    region = X[:, 0] <= 0.3
    assert squared_error(heavy[region], y[region]) < 0.8 * squared_error(light[region], y[region])
    assert squared_error(light[~region], y[~region]) < squared_error(heavy[~region], y[~region])


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
        del stored["forest"]["attributes"]["names"]
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
    model = forest.forest_
    assert model.attributes.columns[0].categories == (0, 1, 2, 3, 4, 5)
    # In every tree one split tells even from odd.
    assert (model.attribute[model.roots] == 0).all()
    assert len(set(model.table[model.table >= 0])) == (model.table >= 0).sum() > 8
    for begin in model.table[model.roots]:
        assert model.branches[begin : begin + 6].tolist() in ([0, 1] * 3, [1, 0] * 3)


def test_missing_values_go_where_they_fit():
    X, y, scores = make_rows(800)
    X[X[:, 0] > 0.3, 0] = np.nan
    forest = few().fit(X, y, scores)
    assert forest.feature_importances_[0] > 0.5
    calibrated = forest.predict_proba(X, scores)
    assert squared_error(calibrated, y) < 0.5 * squared_error(scores, y)


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
    assert (left_alone(forest) is None) == (kind == "margin")
    calibrated = forest.predict_proba(X[300:], both[300:])
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y[300:]) < 0.7 * squared_error(scores[300:], y[300:])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_margins_are_never_left_alone(n_classes):
    X, y, scores = calibrated_rows(400, n_classes, 0)
    margins = 3.0 * np.log(scores) + 5.0
    forest = few().fit(X, y, margins)
    assert forest.score_type_ == "margin" and left_alone(forest) is None
    calibrated = forest.predict_proba(X, margins)
    assert_probabilities(calibrated)
    assert squared_error(calibrated, y) < 1.05 * squared_error(scores, y)


def test_many_classes():
    X, y, scores = make_rows(600, 12)
    forest = few(n_estimators=4).fit(X, y, scores)
    assert forest.forest_.n_states == 12
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
        assert sum(row["share"] for row in forest.selection_) == pytest.approx(1.0)
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
    assert np.isfinite(forest.forest_.parameters).all()
    assert_survives(forest, X, scores)


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


# Storage


def assert_survives(forest, X, scores):
    again = CalibrationForest.from_dict(json.loads(json.dumps(forest.to_dict(), allow_nan=False)))
    assert again.to_dict() == forest.to_dict()
    assert np.array_equal(again.predict_proba(X, scores), forest.predict_proba(X, scores))
    return again


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("score_type", ["probability", "margin"])
def test_a_file_keeps_the_forest(tmp_path, n_classes, score_type):
    frame, *_ = make_frame()
    _, y, scores = make_rows(n_classes=n_classes)
    forest = few(score_type=score_type, max_depth=4).fit(frame, np.array([3, 5, 7])[y], scores)
    path = tmp_path / "forest.json"
    forest.save(path)
    again = CalibrationForest.load(path)
    assert again.to_dict() == forest.to_dict()
    assert again.get_params() == forest.get_params()
    other = frame.assign(colour="mauve", number=None)
    for table in (frame, other):
        expected = forest.predict_proba(table, scores)
        assert np.array_equal(again.predict_proba(table, scores), expected)
    assert np.array_equal(again.feature_importances_, forest.feature_importances_)
    assert again.feature_names_in_.tolist() == list(frame.columns)
    assert vars(again).keys() == vars(forest).keys()


def test_a_forest_that_leaves_alone_survives():
    X, y, scores = calibrated_rows(400, 3, 0)
    forest = few().fit(X, y, scores)
    assert left_alone(forest) == 1.0
    assert_survives(forest, X, scores)


def test_copies_predict_the_same():
    frame, y, scores = make_frame()
    forest = few().fit(frame, y, scores)
    before = pickle.dumps(forest)
    expected = forest.predict_proba(frame, scores)
    copies = [pickle.loads(before), pickle.loads(pickle.dumps(forest))]
    for other in (*copies, copy.deepcopy(forest), copy.copy(forest)):
        assert np.array_equal(other.predict_proba(frame, scores), expected)
        assert same_forest(other, forest) and other.get_params() == forest.get_params()


@pytest.fixture(scope="module")
def stored():
    """A small forest; its first tree splits on a number at the root, and somewhere on a colour."""
    rng = np.random.default_rng(0)
    number = np.repeat([0.0, 1.0], 100)
    colour = np.tile(["red", "green"], 100)
    odds = rng.standard_normal(200)
    shift = 3 * number - 1.5 + 1.5 * (colour == "red")
    y = (rng.random(200) < expit(odds + shift)).astype(int)
    frame = pd.DataFrame({"number": number, "colour": colour})
    forest = CalibrationForest(2, random_state=2, max_depth=2).fit(frame, y, expit(odds))
    assert forest.forest_.attribute[0] == 0 and 1 in forest.forest_.attribute
    assert sum(row["share"] for row in forest.selection_[1:]) > 0
    return forest.to_dict()


def replaced(stored, path, value):
    """A copy of nested dicts and lists with the item at the end of the path replaced."""
    if not path:
        return value
    changed = copy.copy(stored)
    key, *rest = path
    changed[key] = replaced(stored[key], rest, value) if rest else value
    return changed


MALFORMED = [
    ((), None, "format"),
    (("format",), "caltree.CalibrationTree", "read it with caltree.CalibrationTree"),
    (("version",), 2, "version 2"),
    (("extra",), 1, "keys"),
    (("params", "depth"), 3, "parameters"),
    (("score_type",), "auto", "score_type"),
    (("classes",), [0, 1, 2], "classes"),
    (("classes",), [1, 0], "sorted"),
    (("n_scores",), 3, "3 scores for 2 classes"),
    (("n_scores",), 4, "takes 4 scores, but has node models of 1"),
    (("selection",), [], "selection"),
    (("selection",), None, "selection"),
    (("selection", 0), {"candidate": "global", "loss": 0.1, "chosen": True}, "shares"),
    (("selection", 0, "share"), "half", "selection"),
    (("forest",), None, "keys"),
    (("forest", "extra"), 1, "keys"),
    (("forest", "attribute"), [], "attribute"),
    (("forest", "attribute", 0), 3, "lacks"),
    (("forest", "attribute", 0), -2, "lacks"),
    (("forest", "attribute", 0), -1, "exactly one tree"),
    (("forest", "attribute", 0), 1, "table"),
    (("forest", "attribute", 0), 0.0, None),
    (("forest", "attribute", 0), 2**40, "out of range"),
    (("forest", "first_child", 0), 0, "children it cannot have"),
    (("forest", "n_children", 0), 10**9, "children it cannot have"),
    (("forest", "first_child", 0), 2, "exactly one tree"),
    (("forest", "n_children", 0), 3, "3 parts"),
    (("forest", "missing", 0), 2, "child it lacks"),
    (("forest", "missing", 0), -1, "child it lacks"),
    (("forest", "threshold"), [0.0], "entries"),
    (("forest", "threshold", 0), float("inf"), "not finite"),
    (("forest", "n_rows", 0), float("nan"), "not finite"),
    (("forest", "branches"), [], "table"),
    (("forest", "branches", 0), 2, "child it lacks"),
    (("forest", "parameters", 0, 0, 0), 1e201, "beyond any"),
    (("forest", "parameters", 0, 0, 0), float("nan"), "not finite"),
    (("forest", "parameters"), [[[0.0, 1.0]]], "entries"),
    (("forest", "roots"), [0], "exactly one tree"),
    (("forest", "roots", 0), 1, "rise from 0"),
    (("forest", "roots", 1), 0, "rise from 0"),
    (("forest", "roots", 1), 10**6, "exactly one tree"),
    (("forest", "roots", 1), 1, "children it cannot have"),
    (("forest", "weight"), [1.0], "entries"),
    (("forest", "weight", 0), -0.5, "negative"),
    (("forest", "weight", 0), 7.0, "no more than 1"),
    (("forest", "weight", -1), 0.9, "the same sum"),
    (("forest", "attributes", "columns"), [], "attributes"),
]


@pytest.mark.parametrize(("path", "value", "message"), MALFORMED)
def test_malformed_forests_are_refused(stored, path, value, message):
    with pytest.raises(ValueError, match=message) as caught:
        CalibrationForest.from_dict(replaced(stored, path, value))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("parameters", [1, 2])
def test_node_models_of_another_shape_are_refused(stored, parameters):
    shape = {1: [[0.0]], 2: [[0.0, 1.0]] * 2}[parameters]
    n_nodes = len(stored["forest"]["attribute"])
    changed = replaced(stored, ("forest", "parameters"), [shape] * n_nodes)
    with pytest.raises(ValueError, match=r"no known shape|other node models"):
        CalibrationForest.from_dict(changed)


def test_another_file_is_refused(tmp_path):
    X, y, scores = make_rows(100)
    few().fit(X, y, scores).save(tmp_path / "forest.json")
    with pytest.raises(ValueError, match=r"read it with caltree\.CalibrationForest"):
        CalibrationTree.load(tmp_path / "forest.json")


def paths(item, start=()):
    """The way to everything inside nested dicts and lists."""
    yield start
    for key in (
        item if isinstance(item, dict) else range(len(item) if isinstance(item, list) else 0)
    ):
        yield from paths(item[key], (*start, key))


whole = st.sampled_from([0, 1, -1, 2, 5, 6, 7, -7, 2**31, -(2**31), 2**63, 10**400])
numbers = whole | st.sampled_from([0.5, -0.0, 1e-320, 1e200, -1e308, float("nan"), float("inf")])
junk = st.recursive(
    st.none() | st.booleans() | numbers | st.sampled_from(["", "red", "logit", "number"]),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.sampled_from(["name", "fill", "share", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(data=st.data())
def test_a_mutated_forest_is_refused_or_predicts(stored, data):
    changed = copy.deepcopy(stored)
    for _ in range(data.draw(st.integers(1, 2))):
        *way, key = data.draw(st.sampled_from(list(paths(changed))[1:] or [("x",)]))
        inner = changed
        for step in way:
            inner = inner[step]
        if data.draw(st.integers(0, 4)) == 0 and key != "x":
            del inner[key]
        else:
            inner[key] = data.draw(numbers | junk)
    frame = pd.DataFrame({"number": [0.0, 1.0, None] * 2, "colour": ["red", "mauve"] * 3})
    scores = np.array([0.0, 0.3, 0.5, 1.0, 1e-320, 0.9])
    try:
        forest = CalibrationForest.from_dict(changed)
    except ValueError:
        return
    given_scores = np.column_stack([scores] * forest.n_scores_)
    try:
        probabilities = forest.predict_proba(frame, given_scores)
    except (ValueError, TypeError) as error:
        # Another, valid forest: its columns may have other names or types.
        assert "attribute" in str(error)
        return
    assert_probabilities(probabilities)
    assert np.isfinite(forest.feature_importances_).all()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("selection", 0, "share"), 0.5),
        (("selection", 0, "share"), 2),
        (("selection", 0, "share"), -1.0),
        (("selection", 0, "share"), float("nan")),
        pytest.param(("selection", 0, "share"), 10**400, id="huge"),
        (("selection", 0, "loss"), float("nan")),
    ],
)
def test_shares_that_do_not_add_up_are_refused(stored, path, value):
    with pytest.raises(ValueError, match=r"share|loss|selection says"):
        CalibrationForest.from_dict(replaced(stored, path, value))


def test_weights_that_leave_another_share_to_the_scores_are_refused(stored):
    halved = [weight / 2 for weight in stored["forest"]["weight"]]
    with pytest.raises(ValueError, match="but selection says"):
        CalibrationForest.from_dict(replaced(stored, ("forest", "weight"), halved))


def test_a_forest_of_margins_cannot_become_one_of_logits():
    X, y, scores = make_rows(100)
    forest = few(score_type="margin").fit(X, y, scores[:, 1])
    with pytest.raises(ValueError, match=r"share|alone"):
        CalibrationForest.from_dict({**forest.to_dict(), "score_type": "logit"})


# Refusals


BAD_PARAMETERS = {
    "n_estimators": [0, 1, -3, 2.0, "many", None, True, 10**9],
    "max_features": [0, 0.0, -1, 1.5, Fraction(3, 2), "all", None, True, float("nan")],
    "penalty": [0, 0.0, -1.0, 1e-10, 1e10, 10**400, "weak", None, True, float("nan")],
    "objective": ["mse", "logloss", None, 3],
    "min_samples_leaf": [0, 0.5, -1, "two", None, True, float("nan"), float("inf")],
    "max_depth": [-1, 2.0, "deep", True],
    "max_bins": [1, 0, 2.0, None, 65_535, 10**9, "many"],
    "score_type": ["probabilities", None, 0],
    "random_state": ["luck", -1, 0.5, [1, 2]],
    "n_jobs": [0, 1.5, "all", True],
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in BAD_PARAMETERS.items() for value in values],
)
def test_bad_parameters_are_named(name, value):
    X, y, scores = make_rows(20)
    forest = few(**{name: value})
    with pytest.raises(ValueError, match=name):
        forest.check_parameters()
    with pytest.raises(ValueError, match=name):
        forest.fit(X, y, scores)
    assert not hasattr(forest, "forest_")


@pytest.mark.parametrize("columns", [["x9"], [9], [True], "x0", 3])
def test_bad_categorical_features_are_named(columns):
    X, y, scores = make_rows(20)
    with pytest.raises((ValueError, TypeError), match="categorical_features"):
        few(categorical_features=columns).fit(X, y, scores)


def test_good_parameters_are_taken():
    X, y, scores = make_rows(50)
    good = {
        "n_estimators": [2, np.int64(3)],
        "max_features": [1, 2, 0.1, 1.0, np.float64(0.5), np.int64(1)],
        "penalty": [1, 1e-3, np.float32(0.5)],
        "min_samples_leaf": [1, 1.5, 1000],
        "max_depth": [None, 0, 3],
        "max_bins": [2, 65_534],
        "random_state": [None, 0, np.random.RandomState(0)],
        "n_jobs": [None, 1, -1],
    }
    for name, values in good.items():
        for value in values:
            forest = few(**{"n_estimators": 2, name: value}).fit(X, y, scores)
            assert_probabilities(forest.predict_proba(X, scores))


def test_wrong_widths_and_lengths_are_named():
    X, y, scores = make_rows(100, 3)
    forest = few(n_estimators=2).fit(X, y, scores)
    for given_X, given_scores, message in (
        (X[:, :2], scores, "X has 2 attributes"),
        (X, scores[:, :2], "scores has 2 columns"),
        (X, np.hstack([scores, scores]), "scores has 6 columns"),
        (X[:50], scores, "scores has 100 rows, but X has 50"),
        (X, np.full(scores.shape, np.nan), "scores contains NaN"),
        (X, 2 * scores, "not a probability"),
    ):
        with pytest.raises(ValueError, match=message):
            forest.predict_proba(given_X, given_scores)
    for fit, message in (
        ((X, y[:50], scores), "y has 50 labels"),
        ((X, y, scores[:50]), "scores has 50 rows"),
        ((X, y, scores[:, :2]), "scores has 2 columns"),
        ((X, np.zeros(100), scores), "one class only"),
        ((X, None, scores), "y"),
    ):
        with pytest.raises(ValueError, match=message):
            few(n_estimators=2).fit(*fit)
    two = few(n_estimators=2).fit(X, y > 0, scores[:, 0])
    with pytest.raises(ValueError, match="scores has 4 columns"):
        two.predict_proba(X, np.full((100, 4), 0.5))


def test_no_rows_at_all_give_no_probabilities():
    X, y, scores = make_rows(100)
    forest = few().fit(X, y, scores)
    assert forest.predict_proba(X[:0], scores[:0]).shape == (0, 2)


@pytest.mark.parametrize(
    "ask",
    [
        lambda forest: forest.predict_proba([[0]], [0.5]),
        lambda forest: forest.feature_importances_,
        lambda forest: forest.to_dict(),
        lambda forest: forest.save("never.json"),
    ],
)
def test_an_unfitted_forest_says_so(ask):
    with pytest.raises(NotFittedError, match="CalibrationForest"):
        ask(CalibrationForest())


# scikit-learn's conventions


def test_parameters_are_kept_as_given():
    params = {
        "n_estimators": 7,
        "max_features": 0.3,
        "penalty": 0.2,
        "objective": "log_loss",
        "min_samples_leaf": 3.5,
        "max_depth": 4,
        "max_bins": 30,
        "score_type": "logit",
        "categorical_features": [1],
        "random_state": 5,
        "n_jobs": 2,
    }
    forest = CalibrationForest(**params)
    assert forest.get_params() == params
    assert clone(forest).get_params() == params
    assert CalibrationForest().set_params(**params).get_params() == params
    assert CalibrationForest(30).n_estimators == 30
    assert repr(CalibrationForest(30)) == "CalibrationForest(n_estimators=30)"
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        forest.set_params(depth=3)


def test_fit_changes_neither_parameters_nor_data():
    frame, y, scores = make_frame()
    for X in (frame, make_rows()[0]):
        weight = np.arange(len(y)) % 3
        given = [copy.deepcopy(value) for value in (X, y, scores, weight)]
        forest = few(n_jobs=2)
        params = forest.get_params()
        assert forest.fit(X, y, scores, sample_weight=weight) is forest
        forest.predict_proba(X, scores)
        assert forest.get_params() == params
        for before, after in zip(given, (X, y, scores, weight), strict=True):
            assert pd.DataFrame(before).equals(pd.DataFrame(after))


def test_fitting_again_forgets_what_was():
    frame, y, scores = make_frame()
    X, y3, scores3 = make_rows(n_classes=3)
    forest = few().fit(frame, np.array(["no", "yes"])[y], scores)
    assert forest.n_features_in_ == 6 and forest.feature_names_in_.tolist() == list(frame.columns)
    forest.set_params(score_type="margin").fit(X, y3, scores3)
    fresh = few(score_type="margin").fit(X, y3, scores3)
    assert not hasattr(forest, "feature_names_in_")
    assert vars(forest).keys() == vars(fresh).keys()
    assert same_forest(forest, fresh) and forest.n_features_in_ == 3


def test_in_a_calibrated_classifier():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    # Two attributes that count once are seen twice.
    X[:, 2] = X[:, 1] + 0.01 * rng.standard_normal(600)
    y = (rng.random(600) < expit(3 * X[:, 1] * np.sign(X[:, 0]))).astype(int)
    model = CalibratedClassifier(GaussianNB(), few(), cv=3).fit(X, y)
    assert isinstance(model.calibrator_, CalibrationForest)
    calibrated = model.predict_proba(X)
    assert_probabilities(calibrated)
    alone = GaussianNB().fit(X, y).predict_proba(X)
    assert squared_error(calibrated, y) < 0.9 * squared_error(alone, y)
    with joblib.parallel_config("threading"):
        again = CalibratedClassifier(GaussianNB(), few(n_jobs=2), cv=3, n_jobs=2).fit(X, y)
    assert np.array_equal(again.predict_proba(X), calibrated)
    joint = CalibratedClassifier([GaussianNB(), LogisticRegression()], few(), cv=3).fit(X, y)
    assert_probabilities(joint.predict_proba(X))


def test_in_a_grid_search():
    X, y, _ = make_rows(200)
    grid = {"calibrator__n_estimators": [2, 6], "calibrator__objective": ["rmse", "log_loss"]}
    search = GridSearchCV(
        CalibratedClassifier(GaussianNB(), few(), cv=2), grid, cv=2, scoring="neg_log_loss"
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    best = search.best_estimator_.calibrator_
    assert best.forest_.n_trees == search.best_params_["calibrator__n_estimators"]


DRAWN = "rows are drawn as they come, and count by their weights once drawn"


@pytest.fixture
def _one_thread():
    """Many threads for a few rows wait for each other most of the time."""
    with threadpool_limits(1):
        yield


@pytest.mark.usefixtures("_one_thread")
@parametrize_with_checks(
    [CalibratedClassifier(LogisticRegression(), few(n_estimators=4), cv=2)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": DRAWN,
        "check_sample_weight_equivalence_on_sparse_data": DRAWN,
    },
)
def test_it_passes_every_check_of_a_classifier(estimator, check):
    check(estimator)
