"""The same numbers as scikit-learn's `CalibratedClassifierCV`, where both agree."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from caltree import CalibratedClassifier, IsotonicScaling, PlattScaling, TemperatureScaling

from ..support.trees import make_rows

X, Y, _ = make_rows(200)
X3, Y3, _ = make_rows(300, n_classes=3, seed=1)
NEW = np.random.default_rng(7).normal(size=(100, 3))
WEIGHTS = np.random.default_rng(8).uniform(0.2, 3.0, 300)
SHUFFLED = StratifiedKFold(3, shuffle=True, random_state=0)

PROBABILITIES = [GaussianNB(), RandomForestClassifier(5, random_state=0)]
# scikit-learn prefers margins; where a classifier has both, ours must be told.
MARGINS = [LinearSVC(tol=1e-8, random_state=0), SVC(), LogisticRegression()]
METHODS = CalibratedClassifierCV._parameter_constraints["method"][0].options


def named(value):
    return type(value).__name__ if hasattr(value, "fit") or hasattr(value, "split") else None


def both(estimator, calibrator, method, data, *, cv=5, weighted=False, ensemble=False):
    if method not in METHODS:
        pytest.skip(f"this version of scikit-learn has no method {method!r}")
    X, y = data
    weights = WEIGHTS[: len(y)] if weighted else None
    scores = "decision_function" if hasattr(estimator, "decision_function") else "predict_proba"
    options = {"cv": cv, "ensemble": ensemble}
    ours = CalibratedClassifier(estimator, calibrator, response_method=scores, **options)
    theirs = CalibratedClassifierCV(estimator, method=method, **options)
    return [model.fit(X, y, sample_weight=weights).predict_proba(NEW) for model in (ours, theirs)]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("cv", [5, SHUFFLED, KFold(4)], ids=["5", "shuffled", "KFold"])
@pytest.mark.parametrize("estimator", PROBABILITIES + MARGINS, ids=named)
def test_isotonic_of_two_classes(estimator, cv, weighted):
    ours, theirs = both(estimator, IsotonicScaling(), "isotonic", (X, Y), cv=cv, weighted=weighted)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("estimator", PROBABILITIES + MARGINS, ids=named)
def test_isotonic_of_three_classes(estimator, weighted):
    ours, theirs = both(estimator, IsotonicScaling(), "isotonic", (X3, Y3), weighted=weighted)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("estimator", MARGINS, ids=named)
def test_sigmoid_of_margins(estimator, data, weighted):
    ours, theirs = both(estimator, PlattScaling(), "sigmoid", data, weighted=weighted)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("estimator", [GaussianNB(), *MARGINS], ids=named)
def test_temperature(estimator, data, weighted):
    ours, theirs = both(estimator, TemperatureScaling(), "temperature", data, weighted=weighted)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear")  # scikit-learn's
@pytest.mark.parametrize(
    ("calibrator", "method", "tolerance"),
    [
        (IsotonicScaling(), "isotonic", 1e-12),
        (PlattScaling(), "sigmoid", 1e-6),
        (TemperatureScaling(), "temperature", 1e-6),
    ],
    ids=["isotonic", "sigmoid", "temperature"],
)
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
def test_a_frozen_classifier(data, calibrator, method, tolerance):
    frozen = FrozenEstimator(LogisticRegression().fit(data[0][::2], data[1][::2]))
    rest = data[0][1::2], data[1][1::2]
    ours, theirs = both(frozen, calibrator, method, rest, weighted=True)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("cv", [4, ShuffleSplit(3, random_state=0)], ids=["4", "shuffled"])
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression()], ids=named)
def test_isotonic_of_an_ensemble(estimator, data, cv, weighted):
    ours, theirs = both(
        estimator, "isotonic", "isotonic", data, cv=cv, weighted=weighted, ensemble=True
    )
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("estimator", MARGINS, ids=named)
def test_sigmoid_of_an_ensemble(estimator, data, weighted):
    ours, theirs = both(estimator, "platt", "sigmoid", data, weighted=weighted, ensemble=True)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Since FrozenEstimator does not appear")  # scikit-learn's
def test_an_ensemble_around_a_frozen_classifier():
    frozen = FrozenEstimator(LogisticRegression().fit(X[::2], Y[::2]))
    rest = X[1::2], Y[1::2]
    ours, theirs = both(frozen, "isotonic", "isotonic", rest, cv=3, ensemble=True)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


class LogOdds(GaussianNB):
    """Naive Bayes whose margins are its log-odds."""

    def decision_function(self, X):
        return logit(np.clip(self.predict_proba(X)[:, 1], 2.0**-53, 1 - 2.0**-53))


def test_platt_scaling_of_probabilities_is_a_sigmoid_of_their_log_odds():
    confident = np.hstack([X, X[:, :1] * [1, 1.01]])
    model = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(confident, Y)
    found = model.predict_proba(confident)[:, 1]
    odds = logit(model.estimator_.predict_proba(confident)[:, 1])
    line = model.calibrator_.slopes_ * odds + model.calibrator_.intercepts_
    np.testing.assert_allclose(found, expit(line), rtol=1e-12)
    of_log_odds, of_probabilities = (
        CalibratedClassifierCV(estimator, ensemble=False).fit(confident, Y).predict_proba(confident)
        for estimator in (LogOdds(), GaussianNB())
    )
    np.testing.assert_allclose(found, of_log_odds[:, 1], rtol=0, atol=1e-6)
    assert np.abs(found - of_probabilities[:, 1]).max() > 0.02


def test_probabilities_come_first_unless_margins_are_asked_for():
    model = CalibratedClassifier(LogisticRegression(), IsotonicScaling())
    assert model.fit(X, Y).response_methods_ == ["predict_proba"]
    model.set_params(response_method="decision_function")
    assert model.fit(X, Y).response_methods_ == ["decision_function"]
    assert model.calibrator_.score_type_ == "margin"
