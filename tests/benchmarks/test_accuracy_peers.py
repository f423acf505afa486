"""The calibrators of other packages in the benchmark of accuracy."""

from importlib.util import find_spec

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from benchmarks.comparison import peers
from caltree.metrics import rmse
from tests.support.trees import make_frame, make_rows


def test_temperature_scaling_finds_the_best_temperature():
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
    _, y, scores = make_rows(60, n_classes=3)
    y = np.where(y == 2, 1, y)
    y[0] = 2
    found = peers.TemperatureScaling(score_type="probability").fit(None, y, scores)
    assert (found.predict_proba(None, scores).argmax(axis=1) == scores.argmax(axis=1)).all()


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
