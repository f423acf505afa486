"""`CalibratedClassifier`: any classifier, with calibrated probabilities."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from ._base import Calibrator
from ._classifier.absent_classes import all_classes, present_classes, take_classes
from ._classifier.estimators import (
    is_frozen,
    refuse_pairwise_margins,
    refuse_zero_weights_of_kernels,
)
from ._classifier.metadata import calibrator_weights, route_metadata
from ._classifier.out_of_fold import (
    Task,
    drop_folds_of_one_class,
    keep_together,
    make_folds,
    train,
)
from ._classifier.response import Method, combine_scores, combined_score_type
from ._classifier_base import CalibratedClassifierBase
from ._fitted.fingerprint import Fingerprint, table_hashes
from ._inputs.arrays import Mask
from ._inputs.indexing import Columns, count_rows, take_rows
from ._inputs.labels import check_labels_of_all_rows, check_training_weights, check_weights
from ._inputs.parameters import check_choice, check_jobs
from ._inputs.scores import ScoreType
from .tree import CalibrationTree


class CalibratedClassifier(CalibratedClassifierBase):
    """A classifier whose probabilities are calibrated.

    The calibrator is fitted to out-of-fold scores of the classifier, and the classifier to all
    rows. To predict, the calibrator turns the scores of this classifier into probabilities.

    Parameters
    ----------
    estimator : classifier or list of classifiers
        What to calibrate. It is given `X` unchanged: whether it takes text, categories or missing
        values is up to the classifier. One inside a ``FrozenEstimator`` is not fitted again, and
        all rows are used for calibration; they should not be those it was trained on. Several
        classifiers are calibrated jointly.
    calibrator : calibrator, optional
        `CalibrationTree()` by default; or `PlattScaling`, `IsotonicScaling`,
        `IdentityCalibrator` (no calibration), or anything else with ``fit(X, y, scores)`` and
        ``predict_proba(X, scores)``.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of the out-of-fold scores. A number of folds is stratified, and keeps `groups`
        together if they are given. Rows that are never tested, as the first ones of a
        ``TimeSeriesSplit``, train the classifier but not the calibrator.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where the scores come from; "auto" prefers probabilities.
    attributes : list of names or indices, boolean mask, slice or callable, optional
        The columns of `X` that the calibrator sees; all by default. A callable, for instance
        scikit-learn's ``make_column_selector``, is given `X` and returns one of the others.
    combine : {"side_by_side", "average"}, default="side_by_side"
        The scores of several classifiers: next to each other, so that a node model weighs them, or
        averaged.
    n_jobs : int, optional
        The number of classifiers to train at a time, with joblib.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    estimator_ : classifier or list of classifiers
        Fitted to all rows.
    calibrator_ : calibrator
        Fitted to the out-of-fold scores.
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
        Hashes of a few training rows, by which a report recognizes them; None if `X` is no table.

    Notes
    -----
    Weights count in every step: in the classifier, if it takes them (the last step of a pipeline,
    too), in the calibrator and in its choices. A row of weight 0 is ignored.

    Where `cv` is no number, or groups are given, the calibrator's own cross-validation keeps
    together the rows that `cv` keeps together, unless the calibrator has a splitter of its own.

    A class that no training row of a fold has gets the probability 0 there (or the lowest of the
    margins). A class that no calibration row has keeps the classifier's probability, 0 of
    margins.

    `predict` takes the class of the highest calibrated probability, which need not be the class
    the classifier would take.

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
    0.41 -> 0.09

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
        calibrator: Any = None,
        *,
        cv: Any = 5,
        response_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
        attributes: Any = None,
        combine: Literal["side_by_side", "average"] = "side_by_side",
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.response_method = response_method
        self.attributes = attributes
        self.combine = combine
        self.n_jobs = n_jobs

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
            Other arguments of the classifier's `fit`; those with an entry a row are split with
            the rows. With scikit-learn's metadata routing enabled, those that were requested.

        Returns
        -------
        self
            The fitted classifier.
        """
        estimators, methods = self._check_estimators()
        score_type = combined_score_type(methods, self.combine)
        calibrator = self._check_calibrator(score_type)
        columns = Columns.choose(X, self.attributes)
        n_rows = count_rows(X, "X")
        weights = check_weights(sample_weight, n_rows)
        keep = np.ones(n_rows, dtype=bool) if weights is None else weights > 0
        own, labels = check_labels_of_all_rows(y, n_rows, keep)
        if weights is not None:
            check_training_weights(weights)
        to_train = {name: e for name, e in estimators.items() if not is_frozen(e)}
        params, split_params = route_metadata(self, to_train, n_rows, weights, groups, fit_params)
        if not keep.all():
            refuse_zero_weights_of_kernels(to_train.values())
        _check_readable(columns.of(X), calibrator)
        weighting = calibrator_weights(calibrator, weights)
        classes = all_classes(own, filter(is_frozen, estimators.values()))
        refuse_pairwise_margins(estimators.values(), methods, len(classes))
        folds = make_folds(self.cv, X, labels, keep, split_params) if to_train else []
        folds = drop_folds_of_one_class(folds, labels)
        rows = np.sort(np.concatenate([test for _, test in folds])) if folds else keep.nonzero()[0]
        present = present_classes(classes, labels[rows])

        tasks = [
            Task(each, method, X, labels, params.get(name, {}), name not in to_train)
            for (name, each), method in zip(estimators.items(), methods, strict=True)
        ]
        trained, parts = train(tasks, keep, folds, rows, classes, self.n_jobs)
        scores = combine_scores(parts, methods, self.combine)
        if groups is not None or not isinstance(self.cv, Integral):
            keep_together(calibrator, folds, rows, labels, groups)
        calibrator.fit(
            columns.of(X if len(rows) == n_rows else take_rows(X, rows)),
            labels[rows],
            scores=take_classes(scores, present, len(classes), score_type),
            **{name: values[rows] for name, values in weighting.items()},
        )
        self.classes_ = classes
        self.estimator_ = trained if isinstance(self.estimator, list) else trained[0]
        self.calibrator_ = calibrator
        self.response_methods_ = methods
        self.fingerprint_ = _fingerprint(X, np.searchsorted(classes, labels), keep)
        self.attribute_columns_, self.present_classes_ = columns, present
        self.combine_ = self.combine
        self._set_features(trained[0])
        return self

    def _check_estimators(self) -> tuple[dict[str, Any], list[Method]]:
        check_choice("combine", self.combine, ("side_by_side", "average"))
        check_jobs(self.n_jobs)
        return super()._check_estimators()

    def _check_calibrator(self, score_type: ScoreType) -> Any:
        if self.calibrator is None:
            return CalibrationTree(score_type=score_type, n_jobs=self.n_jobs)
        return super()._check_calibrator(score_type)


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
