"""Trees of LightGBM as plain arrays: rows go where LightGBM sends them."""

import lightgbm
import numpy as np
import pytest

from caltree._fitted.boosted import BoostedModel
from caltree._fitted.trees import ONLY_MISSING
from caltree._inputs import attributes
from caltree._training.lightgbm_trees import read_trees

N_CATEGORIES = 70


def make_rows(n_rows, seed=0, missing=0.1):
    """Three numbers and a category, of which some are missing."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    X[:, 3] = random.integers(0, N_CATEGORIES, n_rows)
    y = (random.normal(size=n_rows) + X[:, 0] * X[:, 1] + (X[:, 3] % 3 == 1) > 0).astype(int)
    X[random.random(X.shape) < missing] = np.nan
    return X, y


def known_attributes():
    whole = np.zeros((N_CATEGORIES, 4))
    whole[:, 3] = np.arange(N_CATEGORIES)
    return attributes.learn(whole, categorical_features=[3], identifiers="keep")[0]


def train(X, y, rounds=20, **params):
    given = {"verbosity": -1, "num_threads": 1, "boost_from_average": False, **params}
    given = {"objective": "binary", "min_data_per_group": 5, **given}
    return lightgbm.train(given, lightgbm.Dataset(X, y, categorical_feature=[3]), rounds)


def as_model(booster, n_states=1):
    trees = read_trees(booster.model_to_string(), known_attributes(), n_states)
    curve = np.zeros((n_states, 2))
    weights = {"start": 1.0, "curve_weight": 0.0, "boosted_weight": 1.0}
    others = {**weights, "n_scores": n_states, "offset": False}
    return BoostedModel(known_attributes(), **trees.joined(), parameters=curve, **others)


def predict(model, X):
    """Probabilities; the curve is zero."""
    return model.probabilities(X, np.zeros((len(X), model.n_scores), order="F"))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_two_classes(missing):
    X, y = make_rows(2000, missing=missing)
    booster = train(X, y)
    model = as_model(booster)
    assert model.n_trees == 20 and (model.attribute == 3).any()
    new, _ = make_rows(1000, seed=1, missing=missing)
    np.testing.assert_allclose(predict(model, new)[:, 1], booster.predict(new), atol=1e-12)


def test_four_classes():
    X, y = make_rows(3000)
    y = y + 2 * (np.nan_to_num(X[:, 2]) > 0.5)
    booster = train(X, y, objective="multiclass", num_class=4)
    model = as_model(booster, n_states=4)
    assert model.state.tolist() == [0, 1, 2, 3] * 20
    new, _ = make_rows(1000, seed=1)
    np.testing.assert_allclose(predict(model, new), booster.predict(new), atol=1e-12)


def test_stored_and_checked():
    """The arrays are trees: what is stored passes all checks on reading."""
    model = as_model(train(*make_rows(1000)))
    again = BoostedModel.from_dict(model.to_dict())
    for name in {*BoostedModel.PER_NODE, "roots", "state", "parameters"} - {"table"}:
        assert np.array_equal(getattr(again, name), getattr(model, name))
    assert model.n_rows[model.roots].tolist() == [1000] * 20
    inner = model.attribute >= 0
    below = [model.n_rows[model.children(node)].sum() for node in np.flatnonzero(inner)]
    assert np.array_equal(model.n_rows[inner], below)
    assert (model.gain[inner] > 0.0).all() and not model.value[inner].any()


def test_missing_values_that_training_had_none_of_go_with_most_rows():
    X, y = make_rows(2000, missing=0.0)
    model = as_model(train(X, y))
    numeric = np.flatnonzero((model.attribute >= 0) & (model.attribute < 3))
    for node in numeric:
        rows = model.n_rows[model.children(node)]
        assert model.missing[node] == int(rows[1] > rows[0])


def test_a_split_of_missing_values_from_all_others():
    random = np.random.default_rng(0)
    X = np.zeros((500, 4))
    X[:, 0] = np.where(random.random(500) < 0.5, random.choice([-2.0, -1.0, 1.0, 2.0], 500), np.nan)
    model = as_model(train(X, np.isnan(X[:, 0]).astype(int), rounds=1, num_leaves=2))
    assert model.threshold[0] == ONLY_MISSING and model.missing[0] == 1
    found = predict(model, np.array([[1e306, 0, 0, 0], [np.nan, 0, 0, 0], [-5.0, 0, 0, 0]]))[:, 1]
    assert found[1] > 0.5 > found[0] == found[2]


def test_trees_without_splits_are_left_out():
    X, y = make_rows(30)
    trees = read_trees(train(X, y).model_to_string(), known_attributes(), 1)
    assert trees.trees == [] and trees.states == []
