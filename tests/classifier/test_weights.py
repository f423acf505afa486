"""Weights count in every step, and everything else goes where it is wanted."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    RandomizedSearchCV,
    cross_validate,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    TemperatureScaling,
)

from ..support.classifiers import Told, recorder
from ..support.trees import make_rows

X, Y, _ = make_rows(120)
ROWS = np.arange(120)
TABLE = np.column_stack([ROWS, X])
WEIGHTS = np.random.default_rng(1).uniform(0.5, 2.0, 120)
GROUPS = np.random.default_rng(0).permutation(ROWS) // 3
CALIBRATORS = [
    PlattScaling(),
    TemperatureScaling(),
    BetaScaling(),
    IsotonicScaling(),
    IdentityCalibrator(),
    CalibrationTree(),
]


def searched(estimator):
    return GridSearchCV(estimator, {}, cv=2)


def names_of_types(value):
    return type(value).__name__


WRAPPED = {
    "itself": lambda estimator: estimator,
    "pipeline": lambda estimator: make_pipeline("passthrough", estimator),
    "pipeline of pipelines": lambda each: make_pipeline("passthrough", make_pipeline(each)),
    "search": searched,
    "search of a pipeline": lambda estimator: searched(make_pipeline("passthrough", estimator)),
    "pipeline of a search": lambda estimator: make_pipeline("passthrough", searched(estimator)),
    "random search": lambda estimator: RandomizedSearchCV(estimator, {}, n_iter=1, cv=2),
}


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_every_copy_of_the_classifier_is_given_the_weights_of_its_rows(wrap):
    estimator, calls = recorder()
    model = CalibratedClassifier(wrap(estimator), Told(), cv=3)
    model.fit(TABLE, Y, sample_weight=WEIGHTS.tolist())
    assert {len(call["X"]) for call in calls} >= {80, 120}
    for call in calls:
        assert np.array_equal(call["weight"], WEIGHTS[call["X"][:, 0].astype(int)])
    assert np.array_equal(model.calibrator_.given_["sample_weight"], WEIGHTS)


def test_without_weights_nobody_is_given_any():
    estimator, calls = recorder()
    model = CalibratedClassifier(estimator, Told(), cv=3).fit(TABLE, Y)
    assert {call["weight"] is None for call in calls} == {True}
    assert model.calibrator_.given_["sample_weight"] is None


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
        Pipeline([("scale", StandardScaler()), ("last", KNeighborsClassifier())]),
        searched(KNeighborsClassifier()),
    ],
    ids=names_of_types,
)
def test_a_classifier_that_takes_no_weights_is_reported(estimator):
    name = type(estimator).__name__
    model = CalibratedClassifier(estimator, Told(), cv=3)
    with pytest.warns(UserWarning, match=f"^{name} takes no sample_weight: .* only the calib") as w:
        model.fit(X, Y, sample_weight=WEIGHTS)
    assert [each.filename for each in w] == [__file__]
    assert np.array_equal(model.calibrator_.given_["sample_weight"], WEIGHTS)


class Unweighted(Told):
    def fit(self, X, y, scores):
        return super().fit(X, y, scores)


def test_a_calibrator_that_takes_no_weights_is_reported():
    estimator, calls = recorder()
    model = CalibratedClassifier(estimator, Unweighted(), cv=3)
    with pytest.warns(UserWarning, match="^Unweighted takes no .*only the classifier is") as caught:
        model.fit(X, Y, sample_weight=WEIGHTS)
    assert [each.filename for each in caught] == [__file__]
    assert np.array_equal(calls[-1]["weight"], WEIGHTS)


def test_a_classifier_that_is_not_trained_needs_no_weights():
    model = CalibratedClassifier(FrozenEstimator(KNeighborsClassifier().fit(X, Y)), Told())
    model.fit(X, Y, sample_weight=WEIGHTS)
    assert np.array_equal(model.calibrator_.given_["sample_weight"], WEIGHTS)


@pytest.mark.parametrize("groups", [None, GROUPS], ids=["rows", "groups"])
@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=names_of_types)
def test_a_row_of_weight_0_is_absent(calibrator, groups):
    absent = ROWS % 4 == 1
    # What an absent row says does not matter.
    rubbish = np.where(absent[:, None], np.nan, X)
    labels = np.where(absent, "?", np.where(Y, "yes", "no"))
    model = CalibratedClassifier(GaussianNB(), calibrator)
    model.fit(rubbish, labels, sample_weight=np.where(absent, 0, WEIGHTS), groups=groups)
    found = model.predict_proba(X)
    left = None if groups is None else groups[~absent]
    model.fit(X[~absent], labels[~absent], sample_weight=WEIGHTS[~absent], groups=left)
    assert model.classes_.tolist() == ["no", "yes"]
    assert np.array_equal(found, model.predict_proba(X))


def test_a_row_of_weight_0_is_absent_from_given_folds_and_frozen_classifiers():
    weights = np.where(ROWS % 4 == 1, 0.0, 1.0)
    folds = [(ROWS[part != ROWS % 3], ROWS[part == ROWS % 3]) for part in range(3)]
    for estimator, cv in [
        (GaussianNB(), folds),
        (FrozenEstimator(GaussianNB().fit(X, Y)), 5),
    ]:
        model = CalibratedClassifier(estimator, Told(), cv=cv).fit(X, Y, weights)
        assert np.array_equal(model.calibrator_.given_["X"], X[weights > 0])
        assert np.array_equal(model.calibrator_.given_["y"], Y[weights > 0])


def test_a_fold_of_absent_rows_alone_is_left_out():
    estimator, calls = recorder()
    folds = [(ROWS[part != ROWS % 3], ROWS[part == ROWS % 3]) for part in range(3)]
    model = CalibratedClassifier(estimator, Told(), cv=folds)
    model.fit(X, Y, sample_weight=(ROWS % 3 != 1).astype(float))
    assert [len(call["X"]) for call in calls] == [40, 40, 80]
    assert np.array_equal(model.calibrator_.given_["X"], X[ROWS % 3 != 1])


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=names_of_types)
@pytest.mark.parametrize(
    "estimator",
    [GaussianNB(var_smoothing=0), LogisticRegression(tol=1e-12, max_iter=1000)],
    ids=names_of_types,
)
def test_a_row_of_weight_2_counts_twice(estimator, calibrator):
    rows = np.repeat(ROWS, 1 + ROWS % 2)
    folds, twice = (
        [(np.flatnonzero(r % 5 != k), np.flatnonzero(r % 5 == k)) for k in range(5)]
        for r in (ROWS, rows)
    )
    weighted = CalibratedClassifier(estimator, calibrator, cv=folds)
    weighted.fit(X, Y, sample_weight=1.0 + ROWS % 2)
    repeated = CalibratedClassifier(estimator, calibrator, cv=twice).fit(X[rows], Y[rows])
    np.testing.assert_allclose(
        weighted.predict_proba(X), repeated.predict_proba(X), rtol=0, atol=1e-7
    )


def test_other_parameters_are_split_with_the_rows():
    estimator, calls = recorder()
    evaluation = [(X[:7], Y[:7])]
    CalibratedClassifier(estimator, PlattScaling(), cv=3).fit(
        TABLE,
        Y,
        extra=ROWS.tolist(),
        series=pd.Series(ROWS, index=ROWS[::-1]),
        table=TABLE,
        scalar=np.array(120),
        number=3,
        word="x" * 120,
        eval_set=evaluation,
    )
    assert len(calls) == 4
    for call in calls:
        rows = call["X"][:, 0].astype(int)
        assert call["extra"] == rows.tolist()
        assert call["series"].tolist() == rows.tolist()
        assert np.array_equal(call["table"], call["X"])
        assert (call["scalar"], call["number"], call["word"]) == (120, 3, "x" * 120)
        assert call["eval_set"] is evaluation


@pytest.fixture
def _routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def routed_model(**requests):
    estimator, calls = recorder()
    estimator.set_fit_request(**{"sample_weight": True, **requests})
    model = CalibratedClassifier(estimator, Told(), cv=GroupKFold(4))
    model.set_fit_request(sample_weight=True, groups=True)
    return model.set_score_request(sample_weight=False), calls


@pytest.mark.usefixtures("_routing")
def test_requested_weights_and_groups_arrive():
    model, calls = routed_model(extra=True)
    model.fit(TABLE, Y, sample_weight=WEIGHTS, groups=GROUPS, extra=ROWS)
    assert len(calls) == 5
    for call in calls:
        rows = call["X"][:, 0].astype(int)
        assert np.array_equal(call["weight"], WEIGHTS[rows])
        assert np.array_equal(call["extra"], rows)
        assert not set(np.delete(GROUPS, rows)) & set(GROUPS[rows])
    assert np.array_equal(model.calibrator_.given_["sample_weight"], WEIGHTS)


@pytest.mark.usefixtures("_routing")
def test_a_splitter_is_given_its_groups_under_another_name():
    estimator, calls = recorder()
    splitter = GroupKFold(4).set_split_request(groups="patient")
    CalibratedClassifier(estimator, PlattScaling(), cv=splitter).fit(TABLE, Y, patient=GROUPS)
    assert len(calls) == 5
    for call in calls:
        rows = call["X"][:, 0].astype(int)
        assert not set(np.delete(GROUPS, rows)) & set(GROUPS[rows])


@pytest.mark.usefixtures("_routing")
def test_weights_that_the_classifier_does_not_want_reach_the_calibrator_alone():
    model, calls = routed_model(sample_weight=False)
    model.fit(TABLE, Y, sample_weight=WEIGHTS, groups=GROUPS)
    assert {call["weight"] is None for call in calls} == {True}
    assert np.array_equal(model.calibrator_.given_["sample_weight"], WEIGHTS)


@pytest.mark.usefixtures("_routing")
def test_each_of_several_classifiers_is_given_what_it_wants():
    (first, first_calls), (second, second_calls) = recorder(), recorder()
    first.set_fit_request(sample_weight=True, extra=False)
    second.set_fit_request(sample_weight=False, extra=True)
    model = CalibratedClassifier([first, second], PlattScaling(), cv=3)
    model.fit(TABLE, Y, sample_weight=WEIGHTS, extra=ROWS)
    assert {(c["weight"] is None, c["extra"] is None) for c in first_calls} == {(False, True)}
    assert {(c["weight"] is None, c["extra"] is None) for c in second_calls} == {(True, False)}


@pytest.mark.usefixtures("_routing")
@pytest.mark.parametrize("search", [False, True], ids=["cross_validate", "GridSearchCV"])
def test_weights_and_groups_pass_through_cross_validation(search):
    model, calls = routed_model()
    metadata = {"sample_weight": WEIGHTS, "groups": GROUPS}
    if search:
        grid = GridSearchCV(model, {"calibrator": [Told()]}, cv=GroupKFold(3), error_score="raise")
        grid.fit(TABLE, Y, **metadata)
    else:
        cross_validate(model, TABLE, Y, cv=GroupKFold(3), params=metadata, error_score="raise")
    assert len(calls) == (4 if search else 3) * 5
    for call in calls:
        rows = call["X"][:, 0].astype(int)
        assert np.array_equal(call["weight"], WEIGHTS[rows])
        assert not set(np.delete(GROUPS, rows)) & set(GROUPS[rows])


@pytest.mark.usefixtures("_routing")
def test_what_nobody_requested_is_refused():
    estimator, calls = recorder()
    model = CalibratedClassifier(estimator, PlattScaling())
    with pytest.raises(UnsetMetadataPassedError, match=r"sample_weight.*not explicitly set"):
        model.fit(X, Y, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match=r"unexpected argument\(s\) \{'unknown'\}"):
        model.fit(X, Y, unknown=ROWS)
    assert not calls
