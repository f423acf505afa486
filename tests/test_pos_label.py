"""Whose score a single column is, and scores that rank the classes backwards."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)
from caltree.metrics import brier_score, brier_split, expected_calibration_error, log_loss, rmse
from caltree.plot import ReliabilityDisplay

CALIBRATORS = [
    CalibrationTree(),
    CalibrationTree(tree_method="hist"),
    CalibrationForest(n_estimators=10, random_state=0),
    PublishedCalibrationTree(boosting_iterations=3),
    PlattScaling(),
    TemperatureScaling(),
    BetaScaling(),
    IsotonicScaling(),
    SmoothIsotonicScaling(),
    RegularizedIsotonicScaling(),
    RobustPlattScaling(),
    IdentityCalibrator(),
]
IDS = [repr(each) for each in CALIBRATORS]


def make_churn(n_rows=1000, seed=0):
    """Attributes, labels of which the first says the event, and the probability of the event."""
    rng = np.random.default_rng(seed)
    X, p = rng.integers(0, 3, (n_rows, 2)), rng.random(n_rows)
    truth = np.where(X[:, 0] == 2, p / 2, p)
    return X, np.where(rng.random(n_rows) < truth, "churn", "stay"), p


@pytest.fixture(params=CALIBRATORS, ids=IDS)
def calibrator(request):
    return clone(request.param)


def test_a_single_column_of_the_first_class(calibrator):
    X, y, p = make_churn()
    expected = clone(calibrator).fit(X, y, 1.0 - p).predict_proba(X, 1.0 - p)
    found = clone(calibrator).set_params(pos_label="churn").fit(X, y, p)
    assert found.pos_label_ == "churn"
    np.testing.assert_array_equal(found.predict_proba(X, p), expected)
    again = type(found).from_dict(found.to_dict())
    assert again.pos_label_ == "churn"
    np.testing.assert_array_equal(again.predict_proba(X, p), expected)


def test_margins_of_the_first_class(calibrator):
    X, y, p = make_churn()
    margins = np.log(p / (1.0 - p)) + 0.5
    expected = clone(calibrator).fit(X, y, -margins).predict_proba(X, -margins)
    found = clone(calibrator).set_params(pos_label="churn").fit(X, y, margins)
    assert found.score_type_ == "margin"
    np.testing.assert_array_equal(found.predict_proba(X, margins), expected)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_are_matched_by_name(calibrator, table):
    X, y, p = make_churn()
    expected = clone(calibrator).fit(X, y, np.column_stack([p, 1.0 - p]))
    columns = {"p_stay": 1.0 - p, "p_churn": p}
    found = clone(calibrator).fit(X, y, table(columns))
    wanted = expected.predict_proba(X, np.column_stack([p, 1.0 - p]))
    np.testing.assert_array_equal(found.predict_proba(X, table(columns)), wanted)
    turned = {name: columns[name] for name in ("p_churn", "p_stay")}
    np.testing.assert_array_equal(found.predict_proba(X, table(turned)), wanted)
    for again in (found, type(found).from_dict(found.to_dict())):
        with pytest.raises(ValueError, match="fitted to the columns p_stay, p_churn"):
            again.predict_proba(X, np.column_stack([1.0 - p, p]))


@pytest.mark.parametrize("series", [pd.Series, pl.Series])
def test_a_series_is_matched_by_name(calibrator, series):
    X, y, p = make_churn()
    named = pd.Series(p, name="p_churn") if series is pd.Series else pl.Series("p_churn", p)
    found = calibrator.fit(X, y, named)
    assert found.pos_label_ == "churn"
    expected = clone(calibrator).set_params(pos_label="churn").fit(X, y, p).predict_proba(X, p)
    np.testing.assert_array_equal(found.predict_proba(X, named), expected)
    np.testing.assert_array_equal(found.predict_proba(X, p), expected)


def test_scores_that_rank_backwards_are_warned_of_once(calibrator):
    X, y, p = make_churn()
    words = r"rank 'stay' backwards.*AUC 0\.2.*scores of 'churn'.*pos_label='churn'.*--positive"
    with pytest.warns(UserWarning, match=words) as caught:
        calibrator.fit(X, y, p)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_good_and_useless_scores_are_not_warned_of(calibrator):
    X, y, p = make_churn()
    calibrator.fit(X, y, 1.0 - p)
    calibrator.fit(X, y, np.random.default_rng(1).random(len(y)))


def test_the_class_of_several_that_is_ranked_backwards_is_named():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 1.0, 1.0], 2000)
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=row) for row in p]]
    PlattScaling().fit(None, y, p)
    with pytest.warns(UserWarning, match=r"ranked backwards are 'a', 'c'\. .*order of the classes"):
        PlattScaling().fit(None, y, p[:, ::-1])
    frame = pd.DataFrame(p[:, ::-1], columns=["c", "b", "a"])
    PlattScaling().fit(None, y, frame)


def test_a_calibrated_classifier_warns_once_and_refuses_a_pos_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:, 0] + rng.normal(size=600) > 0, "yes", "no")

    class Backwards(LogisticRegression):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, ::-1]

    with pytest.warns(UserWarning, match="backwards") as caught:
        CalibratedClassifier(Backwards()).fit(X, y)
    assert len([each for each in caught if "backwards" in str(each.message)]) == 1
    model = CalibratedClassifier(LogisticRegression(), PlattScaling(pos_label="no"))
    with pytest.raises(ValueError, match="calibrator has pos_label='no', but the classifier tells"):
        model.fit(X, y)


@pytest.mark.parametrize("kind", [CalibrationTree, PlattScaling, IsotonicScaling])
def test_margins_of_a_classifier_are_never_guessed(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = X[:, 0] > 0

    class Narrow(LinearSVC):
        """Nearly all margins between 0 and 1."""

        def decision_function(self, X):
            return 0.5 + 0.2 * super().decision_function(X)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CalibratedClassifier(Narrow(), kind()).fit(X, y)
    assert model.calibrator_.score_type_ == "margin"


def test_the_type_of_scores_is_not_guessed_from_a_stray_value(calibrator):
    X, y, p = make_churn()
    stray = (1.0 - p).copy()
    stray[76] = 1.02
    with pytest.raises(ValueError, match=r"scores contains 1\.02 in row 76, but the scores of"):
        calibrator.fit(X, y, stray)
    with pytest.raises(ValueError, match="divide them by 100 if they are percentages"):
        calibrator.fit(X, y, 100.0 * (1.0 - p))
    assert calibrator.set_params(score_type="margin").fit(X, y, stray).score_type_ == "margin"


@pytest.mark.parametrize(
    "metric", [rmse, brier_score, brier_split, log_loss, expected_calibration_error]
)
def test_metrics_of_the_first_class(metric):
    _, y, p = make_churn()
    expected = metric(y, np.column_stack([p, 1.0 - p]))
    assert metric(y, p, pos_label="churn") == pytest.approx(expected)
    assert metric(y, pd.Series(p, name="p_churn")) == pytest.approx(expected)
    assert metric(y, pd.DataFrame({"p_stay": 1.0 - p, "p_churn": p})) == pytest.approx(expected)
    with pytest.raises(ValueError, match="pos_label is 'gone', which is not among the classes"):
        metric(y, p, pos_label="gone")
    with pytest.raises(ValueError, match="pos_label is 'churn', but y_prob has 2 columns"):
        metric(y, np.column_stack([p, 1.0 - p]), pos_label="churn")


def test_a_diagram_of_the_first_class():
    pytest.importorskip("matplotlib")
    _, y, p = make_churn()
    named = ReliabilityDisplay.from_predictions(y, pd.Series(p, name="p_churn"))
    plain = ReliabilityDisplay.from_predictions(y, 1.0 - p)
    [found], [expected] = named.curves.values(), plain.curves.values()
    np.testing.assert_allclose(found.observed, expected.observed)
