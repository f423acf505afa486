"""Metadata: weights, groups and other arguments of `fit`, and who is given which."""

from __future__ import annotations

import warnings
from typing import Any

import sklearn
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import has_fit_parameter


def route_metadata(
    owner: Any,
    estimators: dict[str, Any],
    sample_weight: Any,
    groups: Any,
    fit_params: dict[str, Any],
) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The parameters of each classifier's `fit`, and those of the splitter's `split`.

    With scikit-learn's metadata routing enabled, everything goes where it was requested. Without
    it, weights go to every classifier that takes them, groups to the splitter, and all else to
    every classifier.
    """
    given = {"sample_weight": sample_weight, "groups": groups, **fit_params}
    given = {name: value for name, value in given.items() if value is not None}
    split_params = {} if groups is None else {"groups": groups}
    if sklearn.get_config()["enable_metadata_routing"]:
        found = process_routing(owner, "fit", **given)
        split_params |= found["splitter"]["split"]
        return {name: dict(found[name]["fit"]) for name in estimators}, split_params
    params = {name: dict(fit_params) for name in estimators}
    # No comprehension: whether it has a frame of its own depends on the version of Python.
    for name, estimator in estimators.items():
        params[name] |= _weights(estimator, sample_weight, "only the calibration is weighted")
    return params, split_params


def calibrator_weights(calibrator: Any, sample_weight: Any) -> dict[str, Any]:
    """The weights as an argument of a calibrator's `fit`, with a warning if it takes none."""
    return _weights(calibrator, sample_weight, "only the classifier is weighted")


def _weights(estimator: Any, sample_weight: Any, consequence: str) -> dict[str, Any]:
    if sample_weight is None:
        return {}
    parameter = weight_parameter(estimator)
    if parameter is not None:
        return {parameter: sample_weight}
    warnings.warn(
        f"{type(estimator).__name__} takes no sample_weight: it is trained as if all rows of "
        f"positive weight counted once, and {consequence}",
        UserWarning,
        stacklevel=4,
    )
    return {}


def weight_parameter(estimator: Any) -> str | None:
    """The name of the weights in a classifier's `fit`; a pipeline adds the name of a step."""
    # Imported here: they would be half of the time that importing caltree takes.
    from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
    from sklearn.pipeline import Pipeline

    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if isinstance(estimator, GridSearchCV | RandomizedSearchCV):
        return weight_parameter(estimator.estimator)
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = None if isinstance(last, str) or last is None else weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    return None
