"""Boosting on a cluster: that of the same rows on one machine, or of a sample and all rows."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest

from caltree import CalibrationBoosting
from caltree.dask import CalibratedClassifier
from caltree.dask import CalibrationBoosting as DaskBoosting
from caltree.dask import CalibrationTree as DaskTree
from caltree.metrics import log_loss

from ..support.dask_rows import divided
from ..support.trees import make_frame, make_rows

pytest.importorskip("lightgbm")
pytestmark = pytest.mark.usefixtures("client")
SIZES = (150, 0, 250, 200)


def stored(calibrator):
    """What a fitted calibrator is, without the time, and means, whose digits rows in parts change.

    No split of boosted trees uses those.
    """
    found = {**calibrator.to_dict(), "made": None}
    for column in found["model"]["attributes"]["columns"]:
        column["fill"] = round(column["fill"], 9)
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_few_rows_are_fitted_as_on_one_machine(weighted):
    X, y, scores = make_frame(600)
    labels = pd.Series(np.where(y == 1, "yes", "no"))
    scores = pd.DataFrame(scores)
    weights = pd.Series(np.random.default_rng(0).integers(0, 3, 600) * 0.5) if weighted else None
    local = CalibrationBoosting().fit(X, labels, scores, weights)
    parts = [divided(values, SIZES) for values in (X, labels, scores, weights)]
    found = DaskBoosting().fit(*parts)
    assert stored(found.to_local()) == stored(local)
    assert type(found.to_local()) is CalibrationBoosting
    lazy = found.predict_proba(parts[0], parts[2])
    assert np.array_equal(lazy.compute(), local.predict_proba(X, scores))
    assert np.array_equal(found.predict_proba(X, scores), local.predict_proba(X, scores))


def many_rows(n_classes, n_rows=140_000):
    """More rows than are in the sample; what the scores do not know is in two attributes."""
    random = np.random.default_rng(0)
    colour, x = random.integers(0, 6, n_rows), random.random(n_rows)
    log_scores = random.normal(size=(n_rows, n_classes))
    shift = np.zeros_like(log_scores)
    shift[:, 1] = np.where(colour % 2 == 0, 1.5, -1.5) * (x > 0.5)
    truth = log_scores + shift
    noise = random.gumbel(size=truth.shape)
    scores = np.exp(log_scores) / np.exp(log_scores).sum(axis=1, keepdims=True)
    return np.column_stack([colour, x]), np.argmax(truth + noise, axis=1), scores


@pytest.mark.parametrize("n_classes", [2, 3])
def test_many_rows_are_boosted_where_they_are(n_classes):
    X, y, scores = many_rows(n_classes)
    half = len(X) // 2
    parts = [da.from_array(values, chunks=(half, *values.shape[1:])) for values in (X, y, scores)]
    found = DaskBoosting(categorical_features=[0], n_jobs=1).fit(*parts)
    local = CalibrationBoosting(categorical_features=[0], n_jobs=1).fit(X, y, scores)
    assert found.selection_.chosen == "local"
    assert found.made_.n_rows == len(X)
    assert (found.model_.n_rows[found.model_.roots] == len(X)).all()
    losses = [log_loss(y, each.predict_proba(X, scores)) for each in (found, local)]
    assert losses[0] < 0.92 * log_loss(y, scores)
    assert losses[0] == pytest.approx(losses[1], rel=2e-3)


def test_trees_grow_on_all_rows_not_on_the_sample_alone():
    X, y, scores = many_rows(2)
    not_in_sample = np.arange(len(X)) % 2 == 1
    other = np.where(not_in_sample & (X[:, 0] == 4), 0, y)
    half = len(X) // 2
    parts = [da.from_array(values, chunks=(half, *values.shape[1:])) for values in (X, scores)]
    before, after = (
        DaskBoosting(categorical_features=[0])
        .fit(parts[0], da.from_array(labels, chunks=half), parts[1])
        .predict_proba(X, scores)[X[:, 0] == 4, 1]
        .mean()
        for labels in (y, other)
    )
    assert after < 0.7 * before


def test_weights_of_many_rows_count():
    X, y, scores = many_rows(2)
    left_out = (X[:, 0] == 3) & (X[:, 1] > 0.5)
    weights, reversed_there = np.where(left_out, 0.0, 1.0), np.where(left_out, 1 - y, y)
    chunks = len(X) // 2
    parts = [da.from_array(v, chunks=(chunks, *v.shape[1:])) for v in (X, y, scores, weights)]
    other = da.from_array(reversed_there, chunks=chunks)
    first, second = (
        DaskBoosting(categorical_features=[0]).fit(parts[0], labels, *parts[2:])
        for labels in (parts[1], other)
    )
    assert np.array_equal(first.predict_proba(X, scores), second.predict_proba(X, scores))


def test_groups_are_refused():
    parts = [divided(values, (600,)) for values in make_rows(600)]
    with pytest.raises(ValueError, match="groups cannot be kept together"):
        DaskBoosting().fit(*parts, groups=parts[1])


@pytest.mark.parametrize("kind", [DaskBoosting, DaskTree])
def test_scores_must_be_given(kind):
    X, y, _ = (divided(values, (600,)) for values in make_rows(600))
    with pytest.raises(TypeError, match=r"^scores is missing: a calibrator is fitted to"):
        kind().fit(X, y)


@pytest.mark.parametrize("calibrator", ["boosting", DaskBoosting()], ids=["name", "itself"])
def test_as_the_calibrator_of_a_classifier(calibrator):
    from sklearn.frozen import FrozenEstimator
    from sklearn.naive_bayes import GaussianNB

    X, y, _ = make_rows(600)
    fitted = FrozenEstimator(GaussianNB().fit(X[:300], y[:300]))
    parts = [divided(values, (150, 150)) for values in (X[300:], y[300:])]
    model = CalibratedClassifier(fitted, calibrator).fit(*parts)
    assert type(model.to_local().calibrator_) is CalibrationBoosting
    assert model.predict_proba(parts[0]).compute().shape == (300, 2)


def test_a_copy_of_the_label_is_noticed():
    X, y, scores = make_rows(600)
    X[:, 1] = 3.0 - y
    with pytest.warns(UserWarning, match="attribute 'x1' has one value for each class") as caught:
        DaskBoosting().fit(*(divided(values, SIZES) for values in (X, y, scores)))
    assert len(caught) == 1
