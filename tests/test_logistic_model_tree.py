"""Logistic model trees: scikit-learn's checks, and the published tree behind them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from caltree import LogisticModelTree


@parametrize_with_checks([LogisticModelTree(max_boosting_iterations=20)])
def test_it_passes_every_check_of_a_classifier(estimator, check):
    check(estimator)
