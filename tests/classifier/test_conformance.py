"""scikit-learn's own checks of a classifier."""

import pytest
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)
from threadpoolctl import threadpool_limits

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
)

SMALL = {"max_iter": 5, "min_samples_leaf": 5}
MODELS = [
    CalibratedClassifier(LogisticRegression(), CalibrationTree(), cv=2),
    CalibratedClassifier(LogisticRegression(), PlattScaling(), cv=3),
    CalibratedClassifier(LogisticRegression(), BetaScaling()),
    CalibratedClassifier(GaussianNB(), IsotonicScaling()),
    CalibratedClassifier(ExtraTreesClassifier(3, random_state=0), cv=2),
    CalibratedClassifier(GaussianNB(), "platt", cv=2, ensemble=True),
    CalibratedClassifier(LinearSVC(), IdentityCalibrator()),
    CalibratedClassifier(HistGradientBoostingClassifier(**SMALL), cv=2),
    CalibratedClassifier([GaussianNB(), LogisticRegression()], cv=2),
]
DENSE = check_sample_weight_equivalence_on_dense_data
SPARSE = check_sample_weight_equivalence_on_sparse_data
FAILURES = {
    LinearSVC: (
        {DENSE: "liblinear shuffles the rows", SPARSE: "liblinear shuffles the rows"},
        LinearSVC(),
    ),
    HistGradientBoostingClassifier: (
        {DENSE: "bins and the sizes of leaves ignore weights"},
        HistGradientBoostingClassifier(**SMALL),
    ),
}


def expected_failures(model):
    reasons, _ = FAILURES.get(type(model.estimator), ({}, None))
    return {check.__name__: f"as without calibration: {why}" for check, why in reasons.items()}


@pytest.fixture(autouse=True)
def _one_thread():
    """Many threads for a few rows wait for each other most of the time."""
    with threadpool_limits(1):
        yield


@parametrize_with_checks(MODELS, expected_failed_checks=expected_failures)
def test_it_passes_every_check_of_a_classifier(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("check", "estimator"),
    [(check, estimator) for reasons, estimator in FAILURES.values() for check in reasons],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_is_expected_to_fail_fails_without_calibration_too(check, estimator):
    with pytest.raises(AssertionError, match="not equivalent to fitting with removed or repeated"):
        check(type(estimator).__name__, estimator)
