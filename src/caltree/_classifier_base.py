"""The base of calibrated classifiers, wherever their rows are: checks, prediction, metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ._base import Calibrator
from ._classifier.absent_classes import Indices, add_absent_classes, take_classes
from ._classifier.estimators import check_fitted, is_frozen, tags_of
from ._classifier.out_of_fold import CALIBRATING, own_params
from ._classifier.response import (
    Method,
    choose_method,
    class_scores,
    combine_scores,
    combined_score_type,
)
from ._fitted.fingerprint import Fingerprint
from ._inputs.arrays import Classes, Floats
from ._inputs.indexing import Columns
from ._inputs.parameters import check_choice, check_verbose
from ._inputs.scores import ScoreKind, ScoreType
from ._inputs.warning import describe
from ._running import progress

Result = TypeVar("Result")


class CalibratedClassifierBase(ClassifierMixin, BaseEstimator):
    """Classifiers and a calibrator of their scores, once both are fitted."""

    estimator: Any
    calibrator: Any
    cv: Any
    response_method: Literal["auto", "predict_proba", "decision_function"]
    attributes: Any
    verbose: int
    classes_: Classes
    estimator_: Any
    calibrator_: Any
    response_methods_: list[Method]
    fingerprint_: Fingerprint | None
    attribute_columns_: Columns
    present_classes_: Indices
    combine_: str

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `fit`.

        Returns
        -------
        ndarray of shape (n, m)
            One column per class, in the order of `classes_`.
        """
        return self.calibrate_scores(X, *self.score_rows(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of the calibrated probabilities; minus infinity for 0.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `fit`.

        Returns
        -------
        ndarray of shape (n, m)
            One column per class, in the order of `classes_`.
        """
        return self._map_rows(_logarithms, self.predict_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Calibrated log-odds of two classes, log-probabilities of more; always finite.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `fit`.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            With two classes, above 0 where the second is the more probable.
        """
        logs = np.log(np.maximum(self.predict_proba(X), np.finfo(np.float64).tiny))
        return logs if len(self.classes_) > 2 else logs[:, 1] - logs[:, 0]

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The class with the highest calibrated probability.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `fit`.

        Returns
        -------
        ndarray of shape (n,)
            The labels.
        """
        probabilities, classes = self.predict_proba(X), self.classes_
        return self._map_rows(partial(_likeliest, classes=classes), probabilities, like=classes)

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata that the classifiers, the splitter and the calibration itself request."""
        router = MetadataRouter(owner=self).add_self_request(self)
        to_fit = MethodMapping().add(caller="fit", callee="fit")
        for name, estimator in self._estimators().items():
            router.add(**{name: estimator}, method_mapping=to_fit)
        to_split = MethodMapping().add(caller="fit", callee="split")
        return router.add(splitter=self.cv, method_mapping=to_split)

    def __sklearn_tags__(self) -> Tags:
        """Tags that say of inputs what those of all the classifiers say."""
        tags = super().__sklearn_tags__()
        inputs = [tags_of(each).input_tags for each in self._estimators().values()]
        for name in ("sparse", "allow_nan", "string", "categorical", "pairwise"):
            setattr(tags.input_tags, name, all(getattr(each, name) for each in inputs))
        return tags

    def score_rows(self, X: Any) -> tuple[Floats, ScoreType]:
        """The scores of the classifiers, and their type."""
        check_is_fitted(self)
        methods = self.response_methods_
        trained = self.estimator_ if isinstance(self.estimator_, list) else [self.estimator_]
        parts = [
            class_scores(each, X, self.classes_, method)
            for each, method in zip(trained, methods, strict=True)
        ]
        score_type = combined_score_type(methods, self.combine_)
        return combine_scores(parts, methods, self.combine_), score_type

    def calibrate_scores(self, X: Any, scores: Floats, score_type: ScoreType) -> Floats:
        """Calibrated probabilities, given the scores of the classifiers."""
        n_classes = len(self.classes_)
        present = take_classes(scores, self.present_classes_, n_classes, score_type)
        probabilities = self.calibrator_.predict_proba(
            self.attribute_columns_.of(X), scores=present
        )
        return add_absent_classes(
            probabilities, scores, self.present_classes_, n_classes, score_type
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters, those of the parts by ``estimator__name`` and ``calibrator__name``.

        A calibrator that is given by name becomes an object first, so it has parameters.

        Parameters
        ----------
        **params
            The parameters by name.

        Returns
        -------
        self
            The classifier itself.
        """
        calibrator = params.get("calibrator", self.calibrator)
        if isinstance(calibrator, str) and any(name.startswith("calibrator__") for name in params):
            params = {**params, "calibrator": self._named_calibrator(calibrator)}
        super().set_params(**params)
        return self

    def _named_calibrator(self, name: str) -> Calibrator:
        """Make the calibrator that a shortcut stands for, or raise a ValueError."""
        raise NotImplementedError

    def _estimators(self) -> dict[str, Any]:
        if isinstance(self.estimator, list):
            return {f"estimator_{i}": each for i, each in enumerate(self.estimator)}
        return {"estimator": self.estimator}

    def _check_estimators(self) -> tuple[dict[str, Any], list[Method]]:
        methods = ("auto", "predict_proba", "decision_function")
        check_choice("response_method", self.response_method, methods)
        check_verbose(self.verbose)
        if isinstance(self.cv, str) and self.cv == "prefit":
            raise ValueError("cv='prefit' is not known; use FrozenEstimator(estimator) instead")
        estimators = self._estimators()
        if not estimators:
            raise ValueError("estimator is an empty list; give at least one classifier")
        for each in estimators.values():
            if isinstance(each, type) or not hasattr(each, "fit"):
                remedy = f"; use {each.__name__}()" if isinstance(each, type) else ""
                raise TypeError(
                    "estimator must be a classifier or a list of classifiers, got "
                    f"{describe(each)}{remedy}"
                )
            if is_frozen(each):
                check_fitted(each)
        return estimators, [
            choose_method(each, self.response_method) for each in estimators.values()
        ]

    def _check_calibrator(self, score_type: ScoreType) -> Any:
        """Check the calibrator, and return a copy of it that knows the type of the scores."""
        found = self.calibrator
        if isinstance(found, str):
            found = self._named_calibrator(found)
        fits = not isinstance(found, type) and has_fit_parameter(found, "scores")
        if not fits or not hasattr(found, "predict_proba"):
            raise TypeError(
                f"calibrator must have fit(X, y, scores) and predict_proba(X, scores), got "
                f"{found!r}; use e.g. 'tree' or CalibrationTree() or, for no calibration, 'none'"
            )
        calibrator = clone(found, safe=False)
        if isinstance(calibrator, Calibrator):
            calibrator._check_parameters()
        if own_params(calibrator).get("pos_label") is not None:
            raise ValueError(
                f"calibrator has pos_label={calibrator.pos_label!r}, but the classifier "
                "tells which class each of its scores belongs to; leave pos_label out"
            )
        if own_params(calibrator).get("score_type") == "auto":
            calibrator.set_params(score_type=score_type)
        return calibrator

    @contextmanager
    def _calibrating(self, calibrator: Any) -> Iterator[None]:
        """Tell of the fit of the calibrator, once it is done."""
        with progress.fitting(self, self.verbose), progress.stage(CALIBRATING) as calibrating:
            yield
            calibrating.say(f"fitted {type(calibrator).__name__} to the scores")

    def _set_features(self, estimator: Any) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(estimator, name):
                setattr(self, name, getattr(estimator, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _map_rows(
        self, function: Callable[[Floats], Result], probabilities: Floats, like: Any = None
    ) -> Result:
        """Call a function of probabilities, a row at a time where these are elsewhere.

        It gives one value per row, of the type of `like`, or as many values as it is given.
        """
        return function(probabilities)


def before_and_after(model: CalibratedClassifierBase, X: Any) -> tuple[Floats, Floats, ScoreType]:
    """The uncalibrated and the calibrated probabilities of rows, and the type of the scores."""
    scores, kind = model.score_rows(X)
    return (
        ScoreKind(len(model.classes_), kind).uncalibrated(scores),
        model.calibrate_scores(X, scores, kind),
        kind,
    )


def _logarithms(probabilities: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def _likeliest(probabilities: Floats, classes: Classes) -> Classes:
    return np.asarray(classes[probabilities.argmax(axis=1)])
