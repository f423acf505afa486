"""Classifiers that are fitted already, several classifiers, and calibrators of any kind."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from caltree import (
    CalibratedClassifier,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
)

from ..support.classifiers import Says, SaysMargins, Told, Untrainable, recorder
from ..support.trees import assert_probabilities, fixed_tree, make_rows, same_tree

X, Y, SCORES = make_rows(160)
X3, Y3, _ = make_rows(240, n_classes=3)
TRAIN, REST = slice(0, 80), slice(80, 160)
WORDS = np.array(["high", "low", "mid"])
BAYES = GaussianNB().fit(X[TRAIN], Y[TRAIN])


@pytest.mark.parametrize("cv", [5, TimeSeriesSplit(3)], ids=["number", "time"])
def test_a_fitted_classifier_is_used_as_it_is_and_all_rows_calibrate(cv):
    estimator, calls = recorder()
    estimator.fit(X[TRAIN], Y[TRAIN])
    given = FrozenEstimator(estimator)
    model = CalibratedClassifier(given, fixed_tree(), cv=cv).fit(X[REST], Y[REST])
    assert model.estimator_ is given
    assert len(calls) == 1
    by_hand = fixed_tree().fit(X[REST], Y[REST], BAYES.predict_proba(X[REST]))
    assert same_tree(model.calibrator_, by_hand)
    expected = by_hand.predict_proba(X, BAYES.predict_proba(X))
    assert np.array_equal(model.predict_proba(X), expected)
    assert model.n_features_in_ == 3


def test_a_frozen_classifier_survives_a_search_over_calibrators():
    model = CalibratedClassifier(FrozenEstimator(BAYES))
    grid = {"calibrator": [IdentityCalibrator(), PlattScaling(), fixed_tree()]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss", error_score="raise")
    search.fit(X[REST], Y[REST])
    assert search.best_estimator_.estimator_.estimator is BAYES
    assert search.best_score_ > search.cv_results_["mean_test_score"][0]


@pytest.mark.parametrize(
    "estimator",
    [FrozenEstimator(GaussianNB()), [BAYES, FrozenEstimator(GaussianNB())]],
    ids=["one", "one of two"],
)
def test_a_classifier_that_should_be_fitted_and_is_not(estimator):
    message = r"FrozenEstimator\(GaussianNB\(\)\) is not fitted; fit the classifier before"
    with pytest.raises(NotFittedError, match=message):
        CalibratedClassifier(estimator).fit(X, Y)


@pytest.mark.parametrize("estimator", [BAYES, FrozenEstimator(BAYES)])
def test_prefit_is_said_by_freezing(estimator):
    with pytest.raises(ValueError, match=r"cv='prefit' is not known; use FrozenEstimator\("):
        CalibratedClassifier(estimator, cv="prefit").fit(X, Y)


def test_groups_keep_the_folds_of_the_calibrator_apart_without_training():
    groups = np.random.default_rng(0).permutation(160) // 4
    model = CalibratedClassifier(FrozenEstimator(BAYES), CalibrationTree(cv=3))
    alone = CalibrationTree(cv=3, score_type="probability")
    alone.fit(X, Y, BAYES.predict_proba(X), groups=groups)
    assert model.fit(X, Y, groups=groups).calibrator_.to_dict() == alone.to_dict()


def test_a_frozen_classifier_beside_one_that_is_trained():
    model = CalibratedClassifier([FrozenEstimator(BAYES), LogisticRegression()], Told(), cv=2)
    model.fit(X, Y)
    assert np.array_equal(model.calibrator_.given_["scores"][:, :2], BAYES.predict_proba(X))
    ahead = [(np.arange(80), np.arange(80, 160))]
    given = model.set_params(cv=ahead).fit(X, Y).calibrator_.given_
    assert np.array_equal(given["scores"][:, :2], BAYES.predict_proba(X[80:]))
    late = LogisticRegression().fit(X[:80], Y[:80]).predict_proba(X[80:])
    np.testing.assert_allclose(given["scores"][:, 2:], late, rtol=1e-12)


FITTED = [GaussianNB(), LinearSVC(), LogisticRegression()]


@pytest.mark.parametrize("estimator", FITTED, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("calibrator", [PlattScaling(), IsotonicScaling(), fixed_tree()])
def test_the_classifier_knows_a_class_that_the_labels_lack(estimator, calibrator):
    frozen = FrozenEstimator(estimator.fit(X3, WORDS[Y3]))
    some = Y3 != 1
    model = CalibratedClassifier(frozen, calibrator)
    with pytest.warns(UserWarning, match=r"no calibration row has the classes \['low'\]; they"):
        model.fit(X3[some], WORDS[Y3][some])
    assert model.classes_.tolist() == WORDS.tolist()
    found = model.predict_proba(X3)
    assert_probabilities(found)
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(found[:, 1], estimator.predict_proba(X3)[:, 1], rtol=1e-12)
    else:
        assert (found[:, 1] == 0).all()


def test_a_class_that_the_labels_lack_keeps_the_mean_of_several_classifiers():
    estimators = [each.fit(X3, Y3) for each in (GaussianNB(), LogisticRegression())]
    model = CalibratedClassifier([FrozenEstimator(each) for each in estimators], PlattScaling())
    with pytest.warns(UserWarning, match=r"no calibration row has the classes \[0\]"):
        model.fit(X3[Y3 > 0], Y3[Y3 > 0])
    said = np.mean([each.predict_proba(X3)[:, 0] for each in estimators], axis=0)
    np.testing.assert_allclose(model.predict_proba(X3)[:, 0], said, rtol=1e-12)
    assert_probabilities(model.predict_proba(X3))


@pytest.mark.parametrize("estimator", FITTED, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("calibrator", [PlattScaling(), IsotonicScaling(), fixed_tree()])
def test_the_labels_have_a_class_that_the_classifier_does_not_know(estimator, calibrator):
    some = Y3 != 1
    frozen = FrozenEstimator(estimator.fit(X3[some], WORDS[Y3][some]))
    model = CalibratedClassifier(frozen, calibrator).fit(X3, WORDS[Y3])
    assert model.classes_.tolist() == WORDS.tolist()
    assert_probabilities(model.predict_proba(X3))
    given = CalibratedClassifier(frozen, Told()).fit(X3, WORDS[Y3]).calibrator_.given_["scores"]
    assert len(set(given[:, 1])) == 1 and given[0, 1] == given.min()


@pytest.mark.parametrize("labels", [np.array([7, 8]), np.array(["0", "1"])], ids=["new", "words"])
def test_labels_that_the_classifier_has_never_heard_of_are_refused(labels):
    message = r"y has the classes .* but the fitted FrozenEstimator knows \[0, 1\]; use the same"
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(FrozenEstimator(BAYES)).fit(X, labels[Y])


def test_numbers_are_no_names_of_numbers():
    many = np.arange(160) % 40
    bayes = FrozenEstimator(GaussianNB().fit(X, many))
    with pytest.raises(ValueError, match=r"^y has the classes \['0', .* knows \[0, .*same labels"):
        CalibratedClassifier(bayes).fit(X, many.astype(str))


class Anonymous(BaseEstimator):
    """A classifier that does not say which classes it knows."""

    def fit(self, X, y):
        self.is_fitted_ = True
        return self

    def predict_proba(self, X):
        return SCORES[: len(X)]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_classifier_that_does_not_name_its_classes_knows_those_of_the_labels(frozen):
    estimator = FrozenEstimator(Anonymous().fit(X, Y)) if frozen else Anonymous()
    model = CalibratedClassifier(estimator, IdentityCalibrator(), cv=[(range(80), range(80, 160))])
    assert np.array_equal(model.fit(X, Y).predict_proba(X), SCORES)


class Stranger:
    """A classifier that can be cloned, and knows nothing else of scikit-learn."""

    def get_params(self, deep=False):
        return {}

    def fit(self, X, y):
        self.bayes_ = GaussianNB().fit(X, y)
        self.classes_ = self.bayes_.classes_
        return self

    def predict_proba(self, X):
        return self.bayes_.predict_proba(X)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_classifier_need_not_come_from_scikit_learn(frozen):
    stranger, bayes = Stranger(), GaussianNB()
    if frozen:
        stranger = FrozenEstimator(stranger.fit(X[TRAIN], Y[TRAIN]))
        bayes = FrozenEstimator(bayes.fit(X[TRAIN], Y[TRAIN]))
    found, expected = (
        CalibratedClassifier(each, PlattScaling(), cv=3).fit(X[REST], Y[REST])
        for each in (stranger, bayes)
    )
    assert np.array_equal(found.predict_proba(X), expected.predict_proba(X))


class Shrinks:
    """Somebody else's calibrator, which knows nothing of scikit-learn."""

    def __init__(self, power):
        self.power = power

    def fit(self, X, y, scores):
        self.frequencies = np.bincount(y) / len(y)
        return self

    def predict_proba(self, X, scores):
        return self.power * scores + (1 - self.power) * self.frequencies


class ShrinksWithParameters(Shrinks, BaseEstimator):
    """And one that does."""

    def __init__(self, power=0.5, score_type="auto", cv=None):
        super().__init__(power)
        self.score_type = score_type
        self.cv = cv


@pytest.mark.parametrize("calibrator", [Shrinks(0.5), ShrinksWithParameters()])
def test_anything_that_fits_and_predicts_is_a_calibrator(calibrator):
    model = CalibratedClassifier(GaussianNB(), calibrator).fit(X, Y, groups=np.arange(160))
    expected = 0.5 * GaussianNB().fit(X, Y).predict_proba(X) + 0.5 * np.bincount(Y) / 160
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-12)
    assert not hasattr(calibrator, "frequencies")


@pytest.mark.parametrize("own", [0, None, "none"])
def test_what_is_no_number_of_folds_stays_what_it_is(own):
    model = CalibratedClassifier(GaussianNB(), ShrinksWithParameters(cv=own))
    assert model.fit(X, Y, groups=np.arange(160)).calibrator_.cv == own


@pytest.mark.parametrize(
    ("estimator", "kind"), [(GaussianNB(), "probability"), (LinearSVC(), "margin")]
)
def test_a_calibrator_is_told_what_the_scores_are(estimator, kind):
    for calibrator in (ShrinksWithParameters(), CalibrationTree(), PlattScaling(), "tree"):
        model = CalibratedClassifier(estimator, calibrator, cv=2).fit(X, Y)
        assert model.calibrator_.score_type == kind
    told = CalibratedClassifier(estimator, PlattScaling(score_type="logit")).fit(X, Y)
    assert told.calibrator_.score_type_ == "logit"


def test_no_calibration_leaves_probabilities_as_they_are():
    model = CalibratedClassifier(GaussianNB(), IdentityCalibrator()).fit(X3, Y3)
    bare = GaussianNB().fit(X3, Y3)
    np.testing.assert_allclose(model.predict_proba(X3), bare.predict_proba(X3), rtol=1e-12)
    assert np.array_equal(model.predict(X3), bare.predict(X3))


def test_several_classifiers_stand_side_by_side():
    estimators = [GaussianNB(), LogisticRegression()]
    model = CalibratedClassifier(estimators, fixed_tree()).fit(X3, Y3)
    assert [type(each) for each in model.estimator_] == [GaussianNB, LogisticRegression]
    assert model.response_methods_ == ["predict_proba"] * 2
    sides = np.hstack([each.predict_proba(X3) for each in model.estimator_])
    assert model.calibrator_.model_.n_scores == 6
    assert np.array_equal(model.predict_proba(X3), model.calibrator_.predict_proba(X3, sides))


@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
def test_several_classifiers_are_averaged(data):
    X, y = data
    estimators = [GaussianNB(), LogisticRegression()]
    model = CalibratedClassifier(estimators, fixed_tree(), combine="average").fit(X, y)
    mean = np.mean([each.predict_proba(X) for each in model.estimator_], axis=0)
    assert np.array_equal(model.predict_proba(X), model.calibrator_.predict_proba(X, mean))


@pytest.mark.parametrize("combine", ["side_by_side", "average"])
@pytest.mark.parametrize("calibrator", [IdentityCalibrator(), PlattScaling(), IsotonicScaling()])
@pytest.mark.parametrize("estimator", [LinearSVC(), GaussianNB()])
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
def test_a_classifier_beside_itself_is_itself(data, estimator, calibrator, combine):
    X, y = data
    once = CalibratedClassifier(estimator, calibrator).fit(X, y).predict_proba(X)
    twice = CalibratedClassifier([estimator] * 2, calibrator, combine=combine).fit(X, y)
    np.testing.assert_allclose(twice.predict_proba(X), once, rtol=0, atol=1e-8)


def test_probabilities_beside_margins_are_log_odds():
    table = np.column_stack([SCORES, 3 * X[:, 0]])
    first, second = Says(), SaysLast()
    model = CalibratedClassifier([first, second], IdentityCalibrator()).fit(table, Y)
    assert model.response_methods_ == ["predict_proba", "decision_function"]
    assert model.calibrator_.score_type_ == "margin"
    expected = expit((logit(SCORES[:, 1]) + 3 * X[:, 0]) / 2)
    np.testing.assert_allclose(model.predict_proba(table)[:, 1], expected, rtol=1e-9)


class SaysLast(SaysMargins):
    def decision_function(self, X):
        return X[:, -1]


class OneColumn(Says):
    """The probability of the second class alone."""

    def predict_proba(self, X):
        return X[:, 1]


class TwoMargins(SaysMargins):
    def decision_function(self, X):
        return X[:, :2]


@pytest.mark.parametrize("combine", ["side_by_side", "average"])
def test_one_column_of_probabilities_stands_for_two_classes(combine):
    both = CalibratedClassifier([OneColumn(), Says()], IdentityCalibrator(), combine=combine)
    np.testing.assert_allclose(both.fit(SCORES, Y).predict_proba(SCORES), SCORES, rtol=1e-12)
    alone = CalibratedClassifier(OneColumn(), IdentityCalibrator()).fit(SCORES, Y)
    np.testing.assert_allclose(alone.predict_proba(SCORES), SCORES, rtol=1e-12)


def test_one_margin_is_averaged_with_two():
    model = CalibratedClassifier([SaysMargins(), TwoMargins()], Told(), combine="average")
    given = model.fit(X, Y).calibrator_.given_["scores"]
    expected = np.column_stack([X[:, 0] / 4, X[:, 0] / 4 + X[:, 1] / 2])
    np.testing.assert_allclose(given, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimators", [[GaussianNB(), SVC()], [LinearSVC(), GaussianNB()]])
@pytest.mark.parametrize("data", [(X, Y), (X3, Y3)], ids=["two classes", "three classes"])
@pytest.mark.parametrize("calibrator", ["tree", PlattScaling(), IsotonicScaling()])
def test_mixed_classifiers_can_be_calibrated(estimators, data, calibrator):
    model = CalibratedClassifier(estimators, calibrator, cv=2).fit(*data)
    assert_probabilities(model.predict_proba(data[0]))


def test_mixed_scores_cannot_be_averaged():
    message = r"combine='average' needs scores of one kind.*use combine='side_by_side' or response"
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier([Untrainable(), LinearSVC()], combine="average").fit(X, Y)
    margins = {"combine": "average", "response_method": "decision_function", "cv": 2}
    model = CalibratedClassifier([LogisticRegression(), LinearSVC()], **margins).fit(X, Y)
    assert_probabilities(model.predict_proba(X))
