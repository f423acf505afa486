"""The calibrators of other packages in the benchmark of accuracy."""

import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.comparison import peers
from caltree.metrics import rmse
from caltree.paper.generators import rdg1
from caltree.paper.learners import NaiveBayes
from tests.support.trees import make_frame, make_rows


def test_temperature_scaling_finds_the_best_temperature():
    pytest.importorskip("sklearn", minversion="1.8")
    _, y, scores = make_rows(400)
    odds = np.log(scores[:, 1] / scores[:, 0])
    wrong = np.where(y == 1, -odds, odds)
    best = minimize_scalar(
        lambda slope: np.logaddexp(0, wrong * slope).mean(), bounds=(0, 10), method="bounded"
    ).x
    for given, kind in ((scores, "probability"), (odds[:, np.newaxis], "margin")):
        peer = peers.TemperatureScaling(score_type=kind).fit(None, y, given)
        found = peer.predict_proba(None, given)
        np.testing.assert_allclose(found[:, 1], expit(best * odds), atol=1e-3)


def test_temperature_scaling_of_many_classes_some_of_one_row():
    pytest.importorskip("sklearn", minversion="1.8")
    _, y, scores = make_rows(60, n_classes=3)
    y = np.where(y == 2, 1, y)
    y[0] = 2
    found = peers.TemperatureScaling(score_type="probability").fit(None, y, scores)
    assert (found.predict_proba(None, scores).argmax(axis=1) == scores.argmax(axis=1)).all()


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_ensembles_are_those_of_sklearn(method):
    data = rdg1(120)
    learner = NaiveBayes()
    model = CalibratedClassifierCV(learner, method=method).fit(data.X, data.y)
    scores = NaiveBayes().fit(data.X, data.y).predict_proba(data.X)
    peer = peers.SklearnEnsemble(method, learner).fit(data.X, data.y, scores)
    assert peer.classes_.tolist() == model.classes_.tolist()
    expected = model.predict_proba(data.X)
    np.testing.assert_array_equal(peer.predict_proba(data.X, scores), expected)


def test_ensembles_tune_the_learner_and_know_classes_of_one_row():
    class Tuned(NaiveBayes):
        def tune(self, X, y):
            rows.append(len(y))
            return NaiveBayes()

    rows, data = [], rdg1(120)
    y = data.y.astype("<U4")
    y[11] = "rare"
    scores = NaiveBayes().fit(data.X, y).predict_proba(data.X)
    peer = peers.SklearnEnsemble(learner=Tuned()).fit(data.X, y, scores)
    found = peer.predict_proba(data.X, scores)
    assert rows == [120] and found.shape == (120, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_beta_calibration_of_two_classes_and_of_many():
    betacal = pytest.importorskip("betacal")
    _, y, scores = make_rows(300)
    peer = peers.BetaCalibration().fit(None, y, scores)
    theirs = betacal.BetaCalibration(parameters="abm").fit(scores[:, 1], y).predict(scores[:, 1])
    np.testing.assert_array_equal(peer.predict_proba(None, scores)[:, 1], theirs)
    _, y, scores = make_rows(300, n_classes=3)
    found = peers.BetaCalibration().fit(None, y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert rmse(y, found) < rmse(y, scores)


def test_venn_abers_of_equal_scores_by_hand():
    if find_spec("venn_abers") is None:  # not imported here, which would silence NumPy
        pytest.skip("venn-abers is not installed")
    before = np.geterr()
    y = np.array(["no"] * 7 + ["yes"] * 3)
    peer = peers.VennAbers(score_type="margin").fit(None, y, np.zeros((10, 1)))
    # With a row more, 3 or 4 of 11 are "yes".
    second = (4 / 11) / (1 - 3 / 11 + 4 / 11)
    expected = [[1 - second, second]]
    np.testing.assert_allclose(peer.predict_proba(None, np.zeros((1, 1))), expected)
    assert np.geterr() == before
    _, y, scores = make_rows(300, n_classes=3)
    found = peers.VennAbers().fit(None, y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert rmse(y, found) < rmse(y, scores)


def test_logistic_calibration_of_two_classes_is_quadratic_in_the_log_odds(capfd):
    pytest.importorskip("probmetrics.calibrators")
    _, y, scores = make_rows(400)
    odds = np.log(scores[:, 1] / scores[:, 0])
    squares = np.column_stack([odds, odds**2])
    expected = LogisticRegression(C=np.inf, tol=1e-8).fit(squares, y).predict_proba(squares)
    for given, kind in ((scores, "probability"), (odds[:, np.newaxis], "margin")):
        peer = peers.Logistic(score_type=kind).fit(None, y, given)
        np.testing.assert_allclose(peer.predict_proba(None, given), expected, atol=2e-3)
    assert capfd.readouterr() == ("", "")


def test_logistic_calibration_of_probabilities_that_single_precision_takes_for_1():
    pytest.importorskip("probmetrics.calibrators")
    _, y, scores = make_rows(400)
    odds = 40 * np.log(scores[:, 1] / scores[:, 0])
    given = np.column_stack([expit(-odds), expit(odds)])
    assert (given.astype(np.float32) == 1).any()
    limited = np.clip(odds, -24 * np.log(2), 24 * np.log(2))[:, np.newaxis]
    one, other = (
        peers.Logistic(score_type=kind).fit(None, y, each).predict_proba(None, each)
        for each, kind in ((given, "probability"), (limited, "margin"))
    )
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_logistic_calibration_of_many_classes_some_of_one_row(capfd):
    pytest.importorskip("probmetrics.calibrators")
    _, y, scores = make_rows(300, n_classes=3)
    found = peers.Logistic().fit(None, y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)
    assert rmse(y, found) < rmse(y, scores)
    y = np.where(y == 2, 1, y)
    y[0] = 2
    found = peers.Logistic().fit(None, y, scores).predict_proba(None, scores)
    assert rmse(y, found) < rmse(y, scores)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_splines_are_those_of_the_package(capfd, n_classes):
    splinecalib = pytest.importorskip("splinecalib")
    _, y, scores = make_rows(300, n_classes)
    theirs = splinecalib.SplineCalib()
    with threadpool_limits(1):  # more of them are many times slower
        found = peers.Spline().fit(None, y, scores).predict_proba(None, scores)
        with warnings.catch_warnings(action="ignore"):
            theirs.fit(scores, y)
            expected = theirs.calibrate(scores)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert rmse(y, found) < rmse(y, scores)
    assert capfd.readouterr() == ("", "")


def test_splines_leave_scores_of_two_values_uncalibrated():
    pytest.importorskip("splinecalib")
    scores = np.array([[0.8, 0.2], [0.4, 0.6]] * 10)
    found = peers.Spline().fit(None, [0, 0, 1, 1] * 5, scores).predict_proba(None, scores)
    np.testing.assert_allclose(found, scores)


def test_lightgbm_sees_categories_numbers_and_what_is_missing(capfd):
    pytest.importorskip("lightgbm")
    frame, y, scores = make_frame(1200)
    frame = frame[["number", "size"]].assign(colour=frame["colour"].astype("category"))
    assert frame.isna().any().all()
    peer = peers.LightGBM(random_state=3).fit(frame, y, scores)
    found = peer.predict_proba(frame, scores)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert rmse(y, found) < rmse(y, scores) - 0.05
    assert 0 < peer._model.best_iteration < peer.most_rounds
    again = peers.LightGBM(random_state=3).fit(frame, y, scores).predict_proba(frame, scores)
    np.testing.assert_array_equal(found, again)
    names = {"red": "blue", "green": "red", "blue": "green"}
    swapped = frame.assign(colour=frame["colour"].cat.rename_categories(names))
    assert not np.array_equal(found, peer.predict_proba(swapped, scores))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("n_classes", [2, 3])
def test_lightgbm_starts_from_the_scores(n_classes):
    pytest.importorskip("lightgbm")
    # So few rows cannot be split by its defaults: there are no trees.
    X, y, scores = make_rows(40, n_classes)
    scores[0] = [0.0] * (n_classes - 1) + [1.0]
    peer = peers.LightGBM().fit(pd.DataFrame(X, columns=list("abc")), y, scores)
    found = peer.predict_proba(pd.DataFrame(X, columns=list("abc")), scores)
    np.testing.assert_allclose(found[1:], scores[1:], rtol=1e-12)
    np.testing.assert_allclose(found[0], scores[0], atol=1e-15)
    assert found.min() > 0


def test_lightgbm_of_many_classes_some_of_one_row():
    pytest.importorskip("lightgbm")
    X, y, scores = make_rows(600, n_classes=3)
    y[y == 2], y[7] = 1, 2
    frame = pd.DataFrame(X, columns=list("abc"))
    for seed in range(5):  # in one of the folds the row is held out
        peer = peers.LightGBM(random_state=seed).fit(frame, y, scores)
        found = peer.predict_proba(frame, scores)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert rmse(y, found) < rmse(y, scores) - 0.05


def test_mcgrad_sees_categories_numbers_and_what_is_missing(capfd):
    pytest.importorskip("mcgrad")
    frame, y, scores = make_frame(1200)
    frame = frame[["number", "size"]].assign(colour=frame["colour"].astype("category"))
    assert frame.isna().any().all()
    peer = peers.MCGrad(random_state=3).fit(frame, y, scores)
    found = peer.predict_proba(frame, scores)
    assert rmse(y, found) < rmse(y, scores) - 0.05
    again = peers.MCGrad(random_state=3).fit(frame, y, scores).predict_proba(frame, scores)
    np.testing.assert_array_equal(found, again)
    names = {"red": "blue", "green": "red", "blue": "green"}
    swapped = frame.assign(colour=frame["colour"].cat.rename_categories(names))
    assert not np.array_equal(found, peer.predict_proba(swapped, scores))
    assert capfd.readouterr() == ("", "")
