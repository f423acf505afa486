"""`CalibratedClassifier`: any classifier, with calibrated probabilities."""

from __future__ import annotations

from copy import copy
from typing import Any, Literal, NoReturn, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._base import Calibrator
from ._calibrators import make_calibrator
from ._classifier.absent_classes import Indices, all_classes, present_classes, take_classes
from ._classifier.calibration import CalibrationRows, check_intervals
from ._classifier.estimators import (
    is_frozen,
    refuse_ensembles_of_kernels,
    refuse_pairwise_margins,
    refuse_scores,
    refuse_zero_weights_of_kernels,
)
from ._classifier.metadata import calibrator_weights, route_metadata
from ._classifier.out_of_fold import (
    Task,
    drop_folds_of_one_class,
    make_folds,
    train,
    train_pairs,
)
from ._classifier.response import Method, combine_scores, combined_score_type
from ._classifier_base import CalibratedClassifierBase
from ._fitted.fingerprint import Fingerprint, table_hashes
from ._inputs.arrays import Floats, Mask
from ._inputs.groups import check_groups
from ._inputs.indexing import Columns, count_rows
from ._inputs.labels import check_labels_of_all_rows, check_training_weights, check_weights
from ._inputs.parameters import (
    check_choice,
    check_confidence,
    check_flag,
    check_jobs,
    is_whole,
)
from ._running import progress


class CalibratedClassifier(CalibratedClassifierBase):
    """A classifier whose probabilities are calibrated.

    The calibrator is fitted to out-of-fold scores of the classifier, and the classifier to all
    rows. To predict, the calibrator turns the scores of this classifier into probabilities. With
    ``ensemble=True`` there is a classifier and a calibrator for each fold instead.

    Parameters
    ----------
    estimator : classifier or list of classifiers
        The classifier to calibrate. It gets `X` unchanged, so `X` may hold text, categories or
        missing values if the classifier accepts them. A classifier inside a ``FrozenEstimator`` is
        not fitted again, and all rows are used for calibration; it must not have been trained on
        them. Several classifiers are calibrated together.
    calibrator : str or calibrator, default="tree"
        A calibrator, or a name for one with its default parameters: "tree" (`CalibrationTree`),
        "published" (`PublishedCalibrationTree`), "forest" (`CalibrationForest`), "boosting"
        (`CalibrationBoosting`), "ensemble" (`CalibrationEnsemble`), "isotonic" (`IsotonicScaling`),
        "smooth_isotonic" (`SmoothIsotonicScaling`), "regularized_isotonic"
        (`RegularizedIsotonicScaling`), "platt" (`PlattScaling`), "robust_platt"
        (`RobustPlattScaling`), "temperature" (`TemperatureScaling`), "beta" (`BetaScaling`) or
        "none" (`IdentityCalibrator`, no calibration). Anything else with ``fit(X, y, scores)`` and
        ``predict_proba(X, scores)`` works as well. A search can set parameters such as
        ``calibrator__max_depth``, even if the calibrator is given by name.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of the out-of-fold scores. A number makes stratified folds, which keep `groups`
        together if they are given. Rows that no fold tests, such as the first of a
        ``TimeSeriesSplit``, train only the classifier.
    ensemble : bool, default=False
        Keep a pair for each fold, the classifier fitted to its training rows and a calibrator
        fitted to its test rows, and average their probabilities, as scikit-learn's
        ``CalibratedClassifierCV(ensemble=True)`` does. With five folds, prediction takes five times
        as long, and each calibrator is fitted to a fifth of the rows. A row may be tested more than
        once.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where the scores come from; "auto" prefers probabilities.
    attributes : list of names or indices, boolean mask, slice or callable, optional
        The columns of `X` that the calibrator sees; all by default. A callable, for instance
        scikit-learn's ``make_column_selector``, gets `X` and returns one of the other kinds.
    combine : {"side_by_side", "average"}, default="side_by_side"
        How the scores of several classifiers are used: side by side, where each node model learns a
        weight for each classifier, or averaged.
    intervals : bool, default=False
        Also learn how wide the intervals of `predict_interval` must be; see
        `CalibrationTree.fit_intervals`.
    n_jobs : int, optional
        The number of classifiers to train at a time, with joblib.
    verbose : int, default=0
        1 prints one line for every fold and for the calibrator, with the time; the calibrator
        prints its own stages if it is verbose itself, as the default one then is.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    estimator_ : classifier or list of classifiers
        The classifiers, fitted to all rows; with ``ensemble=True`` there is none.
    calibrator_ : calibrator
        The calibrator, fitted to the out-of-fold scores; with ``ensemble=True`` there is none.
    calibrated_classifiers_ : list of CalibratedClassifier
        The pairs of an ensemble, one per fold. Each is a fitted `CalibratedClassifier` with
        an ``estimator_`` and a ``calibrator_``.
    response_methods_ : list of str
        The method that gives the scores of each classifier.
    n_features_in_ : int
        The number of columns of `X`, if the classifier says so.
    feature_names_in_ : ndarray of str
        Their names, if the classifier says so.
    attribute_columns_ : Columns
        The columns of `X` that the calibrator is given.
    present_classes_ : ndarray of int
        The classes that the calibrator knows, as indices into `classes_`.
    combine_ : str
        How the scores of several classifiers were combined.
    fingerprint_ : Fingerprint or None
        Hashes of a few training rows, with which a report recognizes them; None if `X` is not a
        table.

    Notes
    -----
    Weights count everywhere: in the classifier, if it takes them (in a pipeline, the last step),
    in the calibrator and in its choices. A row of weight 0 is ignored.

    If groups are given, the calibrator gets them, too, for its own folds or bootstrap samples (if
    its `fit` takes groups). Otherwise, if `cv` is not a number, the calibrator's own folds keep
    together the rows that `cv` tests together, unless the calibrator has a splitter of its own.

    If the training rows of a fold lack a class, it gets the probability 0 in that fold (or the
    lowest margin). If the calibration rows lack a class, it keeps the classifier's probability (0
    if the scores are margins).

    A classifier cannot be stored as JSON. Pickle the model, or store the calibrator alone with
    ``model.calibrator_.save(path)``. Then give the scores of the classifier to the calibrator that
    `caltree.load` returns.

    `predict` gives the class with the highest calibrated probability. The classifier itself may
    give another class.

    See Also
    --------
    CalibrationTree : The calibrator, for scores that are stored already.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.metrics import log_loss
    >>> from sklearn.model_selection import train_test_split
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    >>> model = CalibratedClassifier(GaussianNB()).fit(X, y)
    >>> before = log_loss(y_test, model.estimator_.predict_proba(X_test))
    >>> after = log_loss(y_test, model.predict_proba(X_test))
    >>> print(f"{before:.2f} -> {after:.2f}")
    0.41 -> 0.10

    The calibrator may see columns that the classifier must not: let the classifier choose its own.

    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> chosen = make_column_transformer(("passthrough", [0, 1, 2]))
    >>> model = CalibratedClassifier(make_pipeline(chosen, GaussianNB()), attributes=[3, 4])
    >>> model.fit(X, y).calibrator_.n_features_in_
    2
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = "tree",
        *,
        cv: Any = 5,
        ensemble: bool = False,
        response_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
        attributes: Any = None,
        combine: Literal["side_by_side", "average"] = "side_by_side",
        intervals: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.ensemble = ensemble
        self.response_method = response_method
        self.attributes = attributes
        self.combine = combine
        self.intervals = intervals
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, **fit_params: Any
    ) -> Self:
        """Fit the calibrator to out-of-fold scores, and the classifier to all rows.

        Parameters
        ----------
        X : table of shape (n, d)
            Anything the classifier takes and, unless the calibrator ignores it, a table that a
            calibrator can read.
        y : array-like of shape (n,)
            The labels.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.
        groups : array-like of shape (n,), optional
            Rows of one group are never in the training and the test part of a fold.
        **fit_params
            Other arguments of the classifier's `fit`; those with one entry per row are split with
            the rows. With scikit-learn's metadata routing enabled, those that were requested.

        Returns
        -------
        self
            The fitted classifier.
        """
        estimators, methods = self._check_estimators()
        if "scores" in fit_params:
            refuse_scores(estimators.values())
        score_type = combined_score_type(methods, self.combine)
        calibrator = self._check_calibrator(score_type)
        if self.intervals:
            check_intervals(calibrator)
        columns = Columns.choose(X, self.attributes)
        n_rows = count_rows(X, "X")
        weights = check_weights(sample_weight, n_rows)
        keep = np.ones(n_rows, dtype=bool) if weights is None else weights > 0
        own, labels = check_labels_of_all_rows(y, n_rows, keep)
        if weights is not None:
            check_training_weights(weights)
        groups = check_groups(groups, n_rows, keep)
        to_train = {name: e for name, e in estimators.items() if not is_frozen(e)}
        params, split_params = route_metadata(self, to_train, weights, groups, fit_params)
        groups = check_groups(split_params.get("groups"), n_rows, keep)
        if not keep.all():
            refuse_zero_weights_of_kernels(to_train.values())
        _check_readable(columns.of(X), calibrator)
        classes = all_classes(own, filter(is_frozen, estimators.values()))
        refuse_pairwise_margins(estimators.values(), methods, len(classes))
        folds = []
        if to_train or self.ensemble:
            folds = make_folds(
                self.cv, X, labels, keep, split_params, tested_once=not self.ensemble
            )
        folds = drop_folds_of_one_class(folds, labels, tests_too=self.ensemble)

        tasks = [
            Task(each, method, X, labels, params.get(name, {}), name not in to_train)
            for (name, each), method in zip(estimators.items(), methods, strict=True)
        ]
        weighting = calibrator_weights(calibrator, weights)
        rows = CalibrationRows(
            X, columns, labels, classes, weighting, groups, score_type, bool(self.intervals)
        )
        tested = [test for _, test in folds]
        if not self.ensemble:
            tested = [np.sort(np.concatenate(tested)) if tested else keep.nonzero()[0]]
        present = []
        # No comprehension: whether it has a frame of its own depends on the version of Python.
        for some in tested:
            present.append(present_classes(classes, labels[some]))

        with progress.fitting(self, self.verbose):
            if self.ensemble:
                trained = train_pairs(tasks, folds, classes, self.n_jobs)
            else:
                trained = [train(tasks, keep, folds, tested[0], classes, self.n_jobs)]
        by_folds = not self.ensemble and (groups is not None or not is_whole(self.cv))
        calibrators = [self._check_calibrator(score_type) for _ in trained]
        for each, some, known, (_, parts) in zip(
            calibrators, tested, present, trained, strict=True
        ):
            scores = combine_scores(parts, methods, self.combine)
            with self._calibrating(each):
                rows.fit(each, some, scores, known, folds if by_folds else [])
        self._forget()
        self.classes_, self.response_methods_ = classes, methods
        self.attribute_columns_, self.combine_ = columns, self.combine
        self.fingerprint_ = _fingerprint(X, np.searchsorted(classes, labels), keep)
        self._set_features(trained[0][0][0])
        self._set_pairs([fitted for fitted, _ in trained], calibrators, present)
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Calibrated probabilities; of an ensemble, the average over its pairs.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `fit`.

        Returns
        -------
        ndarray of shape (n, m)
            One column per class, in the order of `classes_`.
        """
        check_is_fitted(self)
        pairs = getattr(self, "calibrated_classifiers_", None)
        if pairs is None:
            return super().predict_proba(X)
        return np.asarray(np.mean([pair.predict_proba(X) for pair in pairs], axis=0))

    def predict_interval(self, X: Any, confidence: float = 0.95) -> Floats:
        """Intervals for the true probabilities; of an ensemble, the average over its pairs.

        This needs ``intervals=True``.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `fit`.
        confidence : float, default=0.95
            The share of the rows whose interval should contain the true probability, between 0 and
            1.

        Returns
        -------
        ndarray of shape (n, m, 2)
            For each row and class, in the order of `classes_`, the lower and the upper end.
        """
        check_is_fitted(self)
        check_confidence(confidence)
        pairs = getattr(self, "calibrated_classifiers_", None)
        if pairs is not None:
            ends = [pair.predict_interval(X, confidence) for pair in pairs]
            return np.asarray(np.mean(ends, axis=0))
        if getattr(self.calibrator_, "spread_", None) is None:
            raise ValueError(
                f"predict_interval needs {type(self).__name__}(..., intervals=True), got "
                f"intervals={self.intervals!r} when it was fitted; set it, and fit again"
            )
        scores, score_type = self.score_rows(X)
        said = self.calibrate_scores(X, scores, score_type)
        present = take_classes(scores, self.present_classes_, len(self.classes_), score_type)
        attributes = self.attribute_columns_.of(X)
        return np.asarray(self.calibrator_.interval_around(said, attributes, present, confidence))

    def __getattr__(self, name: str) -> NoReturn:
        """Say where to look: in the pairs of an ensemble, or in the calibrator."""
        if name in ("estimator_", "calibrator_") and "calibrated_classifiers_" in vars(self):
            raise AttributeError(
                f"an ensemble has no {name}, but one for each fold: take one of its "
                "calibrated_classifiers_, or fit with ensemble=False"
            )
        text = f"{type(self).__name__!r} object has no attribute {name!r}"
        if not name.startswith("_") and hasattr(vars(self).get("calibrator_"), name):
            text += (
                "; set intervals=True, and fit again"
                if name == "fit_intervals"
                else f"; its calibrator has one: use calibrator_.{name}"
            )
        raise AttributeError(text)

    def save(self, path: Any) -> NoReturn:
        """Refuse to write JSON, which cannot hold the classifier, and say what to do instead.

        Parameters
        ----------
        path : str or path
            Not used.
        """
        raise TypeError(
            f"a {type(self).__name__} cannot be saved as JSON, since its classifier cannot; pickle "
            "the model, e.g. joblib.dump(model, path), or save its calibrator alone, "
            "model.calibrator_.save(path), and give it the scores of the classifier"
        )

    def _set_pairs(
        self, trained: list[list[Any]], calibrators: list[Any], present: list[Indices]
    ) -> None:
        """Take over the one pair, or make each pair of an ensemble a classifier of its own."""
        models = [copy(self) for _ in trained] if self.ensemble else [self]
        for model, fitted, calibrator, known in zip(
            models, trained, calibrators, present, strict=True
        ):
            model.estimator_ = fitted if isinstance(self.estimator, list) else fitted[0]
            model.calibrator_, model.present_classes_ = calibrator, known
        if self.ensemble:
            for model in models:
                model.ensemble = False
            self.calibrated_classifiers_ = models

    def _forget(self) -> None:
        """Forget an earlier fit: an ensemble has other attributes than a pair."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _check_estimators(self) -> tuple[dict[str, Any], list[Method]]:
        check_choice("combine", self.combine, ("side_by_side", "average"))
        check_flag("ensemble", self.ensemble)
        check_flag("intervals", self.intervals)
        check_jobs(self.n_jobs)
        estimators, methods = super()._check_estimators()
        if self.ensemble:
            refuse_ensembles_of_kernels(estimators.values())
        return estimators, methods

    def _named_calibrator(self, name: str) -> Calibrator:
        calibrator = make_calibrator(name)
        shared = {"n_jobs": self.n_jobs, "verbose": self.verbose}
        known = calibrator.get_params()
        calibrator.set_params(**{name: shared[name] for name in shared if name in known})
        return calibrator


def _check_readable(X: Any, calibrator: Any) -> None:
    """Refuse a table that the calibrator cannot read before anything is trained."""
    if not isinstance(calibrator, Calibrator):
        return
    try:
        calibrator._check_table(X)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{error}. That is what {type(calibrator).__name__} needs; PlattScaling() and "
            "IsotonicScaling() calibrate without attributes"
        ) from None


def _fingerprint(X: Any, codes: npt.NDArray[np.intp], keep: Mask) -> Fingerprint | None:
    """The fingerprint of the kept rows, without their scores, which differ between folds."""
    hashes = table_hashes(X, codes)
    return None if hashes is None else Fingerprint.of(hashes[keep])
