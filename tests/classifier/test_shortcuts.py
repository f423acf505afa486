"""`CalibratedClassifier(calibrator="forest")`: names that stand for calibrators."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB

import caltree
from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
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

from ..support.trees import make_rows

X, Y, _ = make_rows(160)
NAMES = {
    "tree": CalibrationTree(),
    "published": PublishedCalibrationTree(),
    "forest": CalibrationForest(),
    "boosting": CalibrationBoosting(),
    "ensemble": CalibrationEnsemble(),
    "isotonic": IsotonicScaling(),
    "smooth_isotonic": SmoothIsotonicScaling(),
    "regularized_isotonic": RegularizedIsotonicScaling(),
    "robust_platt": RobustPlattScaling(),
    "platt": PlattScaling(),
    "temperature": TemperatureScaling(),
    "beta": BetaScaling(),
    "none": IdentityCalibrator(),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_for_a_calibrator_as_it_is_made(name):
    model = CalibratedClassifier(GaussianNB(), name, cv=2)
    if name == "forest":
        model.set_params(calibrator__n_estimators=4, calibrator__random_state=0)
    found = model.fit(X, Y).calibrator_
    expected = clone(NAMES[name])
    if name == "forest":
        expected.set_params(n_estimators=4, random_state=0)
    if "score_type" in expected.get_params():
        expected.set_params(score_type="probability")
    assert type(found) is type(expected) and found.get_params() == expected.get_params()


@pytest.mark.parametrize(
    ("model", "grid"),
    [
        (CalibratedClassifier(GaussianNB()), {"calibrator__max_depth": [0, 2]}),
        (CalibratedClassifier(GaussianNB(), "published"), {"calibrator__max_depth": [0, 2]}),
        (CalibratedClassifier(GaussianNB(), "platt"), {"calibrator__score_type": ["probability"]}),
        (
            CalibratedClassifier(GaussianNB(), "platt"),
            [{"calibrator": ["tree"], "calibrator__max_depth": [0, 2]}, {"calibrator": ["none"]}],
        ),
    ],
    ids=["default", "published", "platt", "names"],
)
def test_a_search_sets_parameters_of_what_a_name_stands_for(model, grid):
    before = model.get_params()
    search = GridSearchCV(model.set_params(cv=2), grid, cv=2, scoring="neg_log_loss").fit(X, Y)
    assert model.get_params() == {**before, "cv": 2}
    depth = search.best_params_.get("calibrator__max_depth")
    assert getattr(search.best_estimator_.calibrator_, "max_depth", None) == depth


def test_names_are_lawful_parameters():
    model = CalibratedClassifier(GaussianNB())
    assert model.get_params(deep=False)["calibrator"] == "tree"
    assert clone(model).calibrator == "tree"
    changed = clone(model).set_params(calibrator__max_depth=3)
    assert changed.calibrator.max_depth == 3 and model.calibrator == "tree"
    assert clone(changed).get_params()["calibrator__max_depth"] == 3
    assert changed.set_params(calibrator="none").calibrator == "none"
    assert (
        changed.set_params(calibrator="forest", calibrator__max_depth=1).calibrator.max_depth == 1
    )
    with pytest.raises(ValueError, match="Invalid parameter 'max_depth' for estimator Isotonic"):
        changed.set_params(calibrator="isotonic", calibrator__max_depth=1)
    with pytest.raises(ValueError, match=r"calibrator must be one of 'tree', .*, got 'tea'"):
        changed.set_params(calibrator="tea", calibrator__max_depth=1)


def test_threads_of_the_classifier_are_those_of_a_named_calibrator():
    model = CalibratedClassifier(GaussianNB(), "tree", cv=2, n_jobs=2).fit(X, Y)
    assert model.calibrator_.n_jobs == 2


def test_a_classifier_is_not_stored_but_its_calibrator_is(tmp_path):
    model = CalibratedClassifier(GaussianNB(), "tree", cv=2).fit(X, Y)
    message = (
        r"a CalibratedClassifier cannot be saved as JSON, .*; pickle .*model\.calibrator_\.save"
    )
    with pytest.raises(TypeError, match=message):
        model.save(tmp_path / "model.json")
    model.calibrator_.save(tmp_path / "calibrator.json")
    calibrator = caltree.load(tmp_path / "calibrator.json")
    found = calibrator.predict_proba(X, model.estimator_.predict_proba(X))
    assert np.array_equal(found, model.predict_proba(X))
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), found)
