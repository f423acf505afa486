"""Questions to a classifier before it is fitted: is it frozen, what does it take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from .response import Method


def is_frozen(estimator: Any) -> bool:
    """Whether a classifier is fitted already and stays so."""
    return isinstance(estimator, FrozenEstimator)


def check_fitted(frozen: FrozenEstimator) -> None:
    """Refuse a frozen classifier that is not fitted, as far as one can tell."""
    estimator = frozen.estimator
    if not hasattr(estimator, "__sklearn_tags__"):
        return  # Other classifiers than scikit-learn's do not tell.
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        raise NotFittedError(
            f"FrozenEstimator({type(estimator).__name__}()) is not fitted; fit the classifier "
            "before it is frozen"
        ) from None


def tags_of(estimator: Any) -> Tags:
    """The tags of a classifier, or scikit-learn's defaults for one that has none."""
    if isinstance(estimator, FrozenEstimator):
        return tags_of(estimator.estimator)
    return get_tags(estimator if hasattr(estimator, "__sklearn_tags__") else BaseEstimator())


def refuse_scores(estimators: Iterable[Any]) -> None:
    """Refuse stored scores, unless it is the classifiers that take an argument of that name."""
    if not all(has_fit_parameter(each, "scores") for each in estimators):
        raise TypeError(
            "scores cannot be given: a CalibratedClassifier makes scores of its own from X; to "
            "calibrate stored scores, use a calibrator alone, CalibrationTree().fit(X, y, scores)"
        )


def refuse_zero_weights_of_kernels(estimators: Iterable[Any]) -> None:
    """Refuse rows of weight 0 where X is a kernel matrix, whose columns are rows too."""
    for estimator in estimators:
        if tags_of(estimator).input_tags.pairwise:
            raise ValueError(
                f"sample_weight is 0 in some rows, but these rows are also columns of the kernel "
                f"of {type(estimator).__name__}; drop both from X"
            )


def refuse_ensembles_of_kernels(estimators: Iterable[Any]) -> None:
    """Refuse an ensemble where X is a kernel matrix, of which each classifier has seen a part."""
    for estimator in estimators:
        if tags_of(estimator).input_tags.pairwise:
            raise ValueError(
                f"ensemble=True cannot divide the kernel of {type(estimator).__name__} among the "
                "classifiers of the folds; use ensemble=False"
            )


def refuse_pairwise_margins(
    estimators: Iterable[Any], methods: Iterable[Method], n_classes: int
) -> None:
    """Refuse margins of pairs of classes: three classes have three pairs, so no shape tells."""
    for estimator, method in zip(estimators, methods, strict=True):
        shape = getattr(_innermost(estimator), "decision_function_shape", None)
        if method == "decision_function" and shape == "ovo" and n_classes > 2:
            raise ValueError(
                f"estimator {type(estimator).__name__} gives margins of pairs of classes; "
                "use an SVC with decision_function_shape='ovr'"
            )


def _innermost(estimator: Any) -> Any:
    """The classifier inside a pipeline, a search or a frozen classifier."""
    # Imported here: they would be half of the time that importing caltree takes.
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline

    if isinstance(estimator, FrozenEstimator | GridSearchCV | RandomizedSearchCV):
        return _innermost(estimator.estimator)
    return _innermost(estimator.steps[-1][1]) if isinstance(estimator, Pipeline) else estimator
