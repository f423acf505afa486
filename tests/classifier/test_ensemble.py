"""`CalibratedClassifier(ensemble=True)`: a classifier and a calibrator for each fold, averaged."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from caltree import CalibratedClassifier, CalibrationTree, PlattScaling
from caltree.plot import ReliabilityDisplay

from ..support.classifiers import Told
from ..support.trees import make_rows

X, Y, _ = make_rows(240)
X3, Y3, _ = make_rows(300, n_classes=3, seed=1)
WEIGHTS = np.random.default_rng(0).uniform(0.5, 2.0, 240)
GROUPS = np.random.default_rng(1).permutation(240) // 4


def average(folds, estimator, calibrator, weights=None, groups=None):
    """The average of the pairs, one after the other."""
    found = []
    for train, test in folds:
        some = {} if weights is None else {"sample_weight": weights[train]}
        base = clone(estimator).fit(X[train], Y[train], **some)
        others = {} if weights is None else {"sample_weight": weights[test]}
        if groups is not None:
            others["groups"] = groups[test]
        fitted = clone(calibrator).fit(X[test], Y[test], base.predict_proba(X[test]), **others)
        found.append(fitted.predict_proba(X, base.predict_proba(X)))
    return np.mean(found, axis=0)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("calibrator", [CalibrationTree(), PlattScaling()])
def test_it_is_the_average_of_pairs(calibrator, weights):
    model = CalibratedClassifier(GaussianNB(), calibrator, cv=3, ensemble=True, n_jobs=2)
    model.fit(X, Y, sample_weight=weights)
    told = calibrator.set_params(score_type="probability")
    expected = average(StratifiedKFold(3).split(X, Y), GaussianNB(), told, weights)
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=0, atol=1e-15)
    assert len(model.calibrated_classifiers_) == 3
    for pair in model.calibrated_classifiers_:
        assert isinstance(pair, CalibratedClassifier) and pair.ensemble is False
        assert isinstance(pair.estimator_, GaussianNB)
    assert model.predict(X).tolist() == expected.argmax(axis=1).tolist()
    assert model.n_features_in_ == 3


def test_groups_stay_on_one_side_and_reach_the_calibrators():
    cv = GroupKFold(3)
    calibrator = CalibrationTree(score_type="probability", cv=4)
    model = CalibratedClassifier(GaussianNB(), calibrator, cv=cv, ensemble=True)
    found = model.fit(X, Y, groups=GROUPS).predict_proba(X)
    folds = cv.split(X, Y, GROUPS)
    expected = average(folds, GaussianNB(), calibrator, groups=GROUPS)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)


def test_rows_that_are_never_tested_calibrate_nothing():
    cv = TimeSeriesSplit(3)
    model = CalibratedClassifier(GaussianNB(), Told(), cv=cv, ensemble=True).fit(X, Y)
    tested = [pair.calibrator_.given_["y"].tolist() for pair in model.calibrated_classifiers_]
    assert tested == [Y[test].tolist() for _, test in cv.split(X)]


def test_rows_may_be_tested_in_any_order():
    frozen = FrozenEstimator(GaussianNB().fit(X[::2], Y[::2]))
    shuffled = np.random.default_rng(0).permutation(240)
    model = CalibratedClassifier(frozen, cv=[(shuffled, shuffled)], ensemble=True).fit(X, Y)
    [pair] = model.calibrated_classifiers_
    tree = CalibrationTree(score_type="probability")
    tree.fit(X[shuffled], Y[shuffled], frozen.predict_proba(X[shuffled]))
    assert pair.calibrator_.to_dict() == tree.to_dict()


def test_rows_of_weight_0_are_absent():
    model = CalibratedClassifier(GaussianNB(), "platt", cv=KFold(3), ensemble=True)
    weights = np.where(np.arange(240) % 4 == 0, 0.0, 1.0)
    found = model.fit(X, Y, sample_weight=weights).predict_proba(X)
    keep = np.flatnonzero(weights)
    folds = [
        (np.intersect1d(train, keep), np.intersect1d(test, keep))
        for train, test in KFold(3).split(X)
    ]
    expected = average(folds, GaussianNB(), PlattScaling(score_type="probability"))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_class_that_a_fold_lacks_keeps_its_probability_there():
    order = np.argsort(Y3, kind="stable")
    cut = [(order[60:], order[:60]), (order[:240], order[240:]), *StratifiedKFold(2).split(X3, Y3)]
    model = CalibratedClassifier(GaussianNB(), "isotonic", cv=cut, ensemble=True)
    with pytest.warns(UserWarning, match="of cv tests rows of one class only; its 60 test rows"):
        model.fit(X3, Y3)
    assert len(model.calibrated_classifiers_) == 2
    two = np.flatnonzero(Y3 < 2)
    lacking = [
        (np.setdiff1d(np.arange(300), two[:60]), two[:60]),
        *StratifiedKFold(2).split(X3, Y3),
    ]
    with pytest.warns(UserWarning, match=r"no calibration row has the classes \[2\]"):
        model.set_params(cv=lacking).fit(X3, Y3)
    found = model.predict_proba(X3)
    first = model.calibrated_classifiers_[0]
    known = first.estimator_.predict_proba(X3)[:, 2]
    np.testing.assert_allclose(first.predict_proba(X3)[:, 2], known, rtol=0, atol=1e-15)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)


def test_folds_of_one_class_alone_are_refused():
    order = np.argsort(Y, kind="stable")
    model = CalibratedClassifier(GaussianNB(), cv=[(order[40:], order[:40])], ensemble=True)
    with (
        pytest.warns(UserWarning, match="fold 0 of cv tests rows of one class only"),
        pytest.raises(ValueError, match="cv has no fold that trains on and tests more than one"),
    ):
        model.fit(X, Y)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        [GaussianNB(), LinearSVC()],
        [FrozenEstimator(GaussianNB().fit(X, Y)), LogisticRegression()],
    ],
    ids=["margins", "several", "partly frozen"],
)
def test_classifiers_of_any_kind(estimator):
    model = CalibratedClassifier(estimator, cv=2, ensemble=True).fit(X, Y)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(X), found)


def test_a_kernel_matrix_cannot_be_divided():
    model = CalibratedClassifier(SVC(kernel="precomputed"), ensemble=True)
    with pytest.raises(ValueError, match="ensemble=True cannot divide the kernel of SVC among"):
        model.fit(rbf_kernel(X), Y)


def test_what_the_calibrator_has_is_found_there():
    model = CalibratedClassifier(GaussianNB(), cv=2)
    with pytest.raises(AttributeError, match=r"has no attribute 'to_text'$"):
        model.to_text()
    with pytest.raises(AttributeError, match=r"'to_text'; its .* one: use calibrator_\.to_text$"):
        model.fit(X, Y).to_text()
    with pytest.raises(AttributeError, match=r"'fit_intervals'; set intervals=True, and fit"):
        model.fit_intervals(X, Y)


def test_an_ensemble_has_no_single_calibrator():
    model = CalibratedClassifier(GaussianNB(), "platt", cv=2, ensemble=True).fit(X, Y)
    assert not hasattr(model, "calibrator_")
    with pytest.raises(AttributeError, match="an ensemble has no calibrator_, but one for each"):
        _ = model.calibrator_
    with pytest.raises(AttributeError, match=r"has no attribute 'other_'$"):
        _ = model.other_
    pytest.importorskip("jinja2")
    from caltree.report import report

    with pytest.raises(AttributeError, match="take one of its calibrated_classifiers_, or fit"):
        report(model, X, Y)
    report(model.calibrated_classifiers_[0], X, Y)


def test_fitting_again_forgets_what_was_fitted_before():
    model = CalibratedClassifier(GaussianNB(), "platt", cv=2, ensemble=True).fit(X, Y)
    alone = model.set_params(ensemble=False).fit(X, Y).predict_proba(X)
    expected = CalibratedClassifier(GaussianNB(), "platt", cv=2).fit(X, Y)
    assert np.array_equal(alone, expected.predict_proba(X))
    assert not hasattr(model, "calibrated_classifiers_")
    assert not hasattr(model.set_params(ensemble=True).fit(X, Y), "calibrator_")


def test_its_reliability_is_drawn_under_the_names_of_a_pair():
    pytest.importorskip("matplotlib")
    model = CalibratedClassifier(GaussianNB(), "platt", cv=2, ensemble=True).fit(X, Y)
    display = ReliabilityDisplay.from_estimator(model, X, Y)
    named = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert any("GaussianNB + PlattScaling" in name for name in named)
