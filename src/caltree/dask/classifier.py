"""`CalibratedClassifier` for Dask arrays and dataframes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import dask
import numpy as np
import numpy.typing as npt
from dask.base import is_dask_collection
from dask.delayed import Delayed
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from .. import classifier
from .._base import Calibrator
from .._classifier.absent_classes import all_classes, present_classes, take_classes
from .._classifier.estimators import is_frozen, refuse_pairwise_margins
from .._classifier.metadata import calibrator_weights, route_metadata
from .._classifier.response import Method, combined_score_type
from .._classifier_base import CalibratedClassifierBase
from .._fitted.fingerprint import Fingerprint, table_hashes
from .._histogram.partitions import merge_smallest
from .._inputs.arrays import Classes, Floats
from .._inputs.folds import check_folds
from .._inputs.hashing import SmallestHashes
from .._inputs.indexing import Columns, take_rows
from .._inputs.parameters import check_choice, check_count
from .._inputs.scores import ScoreType
from .._running import progress
from .boosting import CalibrationBoosting
from .collections import (
    align,
    current_client,
    join_parts,
    lazy_matrix,
    partitions,
    rebuild,
    zip_rows,
)
from .pool import merge
from .preparing import look_at_all
from .scoring import FoldedRows, lazy_scores, local_classifier, refuse_ordinary
from .tasks import Tasks
from .tree import CalibrationTree

# Rows are only counted here, and what they hold is but glanced at.
_FEW_BINS = 2
_CALIBRATORS: dict[str, type[CalibrationTree | CalibrationBoosting]] = {
    "tree": CalibrationTree,
    "boosting": CalibrationBoosting,
}


class CalibratedClassifier(CalibratedClassifierBase):
    """A classifier on a Dask cluster whose probabilities are calibrated.

    Like `caltree.CalibratedClassifier`, for rows that stay on their workers: out-of-fold scores of
    the classifier train the calibrator, and the classifier is fitted to all rows. Scores are
    computed a partition at a time and kept on the cluster while the calibrator is fitted. The
    client is the current one, e.g. that of ``client = distributed.Client(...)``. Predictions for
    Dask collections are lazy arrays, those for other tables plain ones.

    Parameters
    ----------
    estimator : classifier
        The classifier to calibrate: one whose `fit` takes Dask collections, such as
        ``lightgbm.DaskLGBMClassifier``; or any fitted classifier inside a ``FrozenEstimator``,
        which is not fitted again and is given a partition at a time. The rows should not be those
        it was trained on.
    calibrator : {"tree", "boosting"} or calibrator, default="tree"
        "tree" is short for `caltree.dask.CalibrationTree()`, "boosting" for
        `caltree.dask.CalibrationBoosting()`.
    cv : int, default=5
        The number of folds of the out-of-fold scores. The position of a row decides its fold.
    response_method : {"auto", "predict_proba", "decision_function"}, default="auto"
        Where the scores come from; "auto" prefers probabilities.
    attributes : list of names or indices, boolean mask, slice or callable, optional
        The columns of `X` that the calibrator sees; all by default. A callable is given a table
        without rows.
    verbose : int, default=0
        1 prints one line for every fold and for the calibrator, with the time; the calibrator
        prints its own stages if it is verbose itself, as the default one then is.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    estimator_ : classifier
        Fitted to all rows, or frozen.
    calibrator_ : calibrator
        Fitted to the out-of-fold scores.
    response_methods_ : list of str
        The method that gives the scores.
    n_features_in_ : int
        The number of columns of `X`, if the classifier says so.
    feature_names_in_ : ndarray of str
        Their names, if the classifier says so.
    fingerprint_ : Fingerprint or None
        Hashes of a few training rows, with which a report recognizes them.

    See Also
    --------
    caltree.CalibratedClassifier : On one machine.
    CalibrationTree : The calibrator, for scores that are stored already.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from caltree.dask import CalibratedClassifier
    >>> random = da.random.default_rng(0)
    >>> X = random.normal(size=(4000, 3), chunks=(1000, 3))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     bayes = GaussianNB().fit(X[:1000].compute(), y[:1000].compute())
    ...     model = CalibratedClassifier(FrozenEstimator(bayes)).fit(X[1000:], y[1000:])
    ...     probabilities = model.predict_proba(X)  # lazy
    ...     probabilities.compute().shape
    (4000, 2)
    """

    def __init__(
        self,
        estimator: Any,
        calibrator: Any = "tree",
        *,
        cv: Any = 5,
        response_method: Literal["auto", "predict_proba", "decision_function"] = "auto",
        attributes: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.cv = cv
        self.response_method = response_method
        self.attributes = attributes
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the calibrator to out-of-fold scores, and the classifier to all rows.

        Parameters
        ----------
        X : dask array or dataframe of shape (n, d)
            A collection that the classifier accepts and in which the calibrator can read the
            attributes.
        y : dask array or series of shape (n,)
            The labels, in the partitions of `X`.
        sample_weight : dask array or series of shape (n,), optional
            How many rows each row counts for.

        Returns
        -------
        self
            The fitted classifier.
        """
        estimators, methods = self._check_estimators()
        method, kind = methods[0], combined_score_type(methods)
        calibrator = self._check_calibrator(kind)
        given = align(X=X, y=y, sample_weight=sample_weight)
        parts = partitions(**given)
        X, y, sample_weight = given["X"], given["y"], given.get("sample_weight")
        with Tasks(current_client()) as tasks, progress.fitting(self, self.verbose):
            columns = Columns.choose(_without_rows(X), self.attributes)
            to_train = {} if is_frozen(self.estimator) else estimators
            params, _ = route_metadata(self, to_train, sample_weight, None, {})
            weighting = calibrator_weights(calibrator, sample_weight)
            # That the calibrator can read the attributes is seen as well.
            seen = {**parts, "X": partitions(X=_take_columns(columns, X))["X"]}
            known = look_at_all(tasks, seen, None, _FEW_BINS, "auto")
            classes = all_classes(known.classes, () if to_train else (self.estimator,))
            refuse_pairwise_margins(estimators.values(), methods, len(classes))
            present = present_classes(classes, known.classes)
            if to_train:
                check_folds(self.cv, known.n_rows)
            if sample_weight is not None:
                X, y, sample_weight = _of_positive_weight(parts, given, known.counts)

            if to_train:
                own_weights = dict.fromkeys(params["estimator"], sample_weight)
                rows = FoldedRows(tasks, X, y, own_weights, known.counts, self.cv)
                pieces = rows.scores(self.estimator, classes, method)
                trained = clone(self.estimator).fit(X, y, **own_weights)
            else:
                trained = self.estimator
                pieces = lazy_scores(trained, X, classes, method)
            pieces = _of_present(pieces, present, len(classes), kind)
            # The calibrator reads them several times, and they are small.
            scores = join_parts(
                tasks.persist(pieces), [(count, math.nan) for count in known.counts]
            )
            weights = dict.fromkeys(weighting, sample_weight)
            with self._calibrating(calibrator):
                calibrator.fit(_take_columns(columns, X), y, scores=scores, **weights)
            fingerprint = _fingerprint(tasks, X, y, classes)
        self.classes_ = classes
        self.estimator_ = trained
        self.calibrator_ = calibrator
        self.response_methods_ = methods
        self.fingerprint_ = fingerprint
        self.attribute_columns_, self.present_classes_ = columns, present
        self.combine_ = "side_by_side"
        self._set_features(trained)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities, lazily if the rows are Dask's.

        Parameters
        ----------
        X : dask array or dataframe, or any table, of shape (n, d)
            As for `fit`.

        Returns
        -------
        dask array or ndarray of shape (n, m)
            One column per class, in the order of `classes_`.
        """
        check_is_fitted(self)
        if not is_dask_collection(X):
            return self.to_local().predict_proba(X)
        local = dask.delayed(self.to_local(), pure=True)
        scores = lazy_scores(self.estimator_, X, self.classes_, self.response_methods_[0])
        rows = zip(partitions(X=X)["X"], scores, strict=True)
        kind = combined_score_type(self.response_methods_)
        pairs = [(local, x, some, kind) for x, some in rows]
        return lazy_matrix(_calibrate, pairs, X, len(self.classes_))

    def _map_rows(
        self, function: Callable[[Floats], Any], probabilities: Any, like: Any = None
    ) -> Any:
        if not is_dask_collection(probabilities):
            return function(probabilities)
        if like is None:
            return probabilities.map_blocks(function, dtype=np.float64)
        return probabilities.map_blocks(function, dtype=like.dtype, meta=like[:0], drop_axis=1)

    def to_local(self) -> classifier.CalibratedClassifier:
        """The same classifier for plain tables and arrays, without Dask.

        Returns
        -------
        caltree.CalibratedClassifier
            A fitted classifier, around the classifier's own ``to_local()`` if it has one.
        """
        check_is_fitted(self)
        trained = local_classifier(self.estimator_)
        trained = self.estimator_ if trained is None else trained
        calibrator = self.calibrator_
        calibrator = calibrator.to_local() if hasattr(calibrator, "to_local") else calibrator
        local = classifier.CalibratedClassifier(
            FrozenEstimator(trained),
            clone(calibrator, safe=False),
            response_method=self.response_method,
            attributes=self.attributes,
        )
        given = self.get_params(deep=False)
        for name, value in vars(self).items():
            if name not in given:
                setattr(local, name, value)
        local.estimator_, local.calibrator_ = trained, calibrator
        return local

    def _check_estimators(self) -> tuple[dict[str, Any], list[Method]]:
        if isinstance(self.estimator, list):
            raise TypeError(
                "estimator must be one classifier, got a list; caltree.CalibratedClassifier "
                "calibrates several, without Dask"
            )
        estimators, methods = super()._check_estimators()
        if not is_frozen(self.estimator):
            refuse_ordinary(self.estimator)
            check_count("cv", self.cv, 2)
        return estimators, methods

    def _named_calibrator(self, name: str) -> Calibrator:
        check_choice("calibrator", name, tuple(_CALIBRATORS))
        return _CALIBRATORS[name](verbose=self.verbose)

    def _check_calibrator(self, kind: ScoreType) -> Any:
        calibrator = super()._check_calibrator(kind)
        known = tuple(_CALIBRATORS.values())
        if isinstance(calibrator, Calibrator) and not isinstance(calibrator, known):
            raise TypeError(
                f"calibrator {type(calibrator).__name__} does not take Dask collections; use "
                "caltree.dask.CalibrationTree() or caltree.dask.CalibrationBoosting()"
            )
        return calibrator


def _without_rows(X: Any) -> Any:
    return np.empty((0, *X.shape[1:]), X.dtype) if hasattr(X, "chunks") else X._meta


def _take_columns(columns: Columns, X: Any) -> Any:
    """The chosen columns of a Dask collection."""
    if columns.positions is None:
        return X
    return X[:, columns.positions] if hasattr(X, "chunks") else X.iloc[:, columns.positions]


def _of_positive_weight(
    parts: dict[str, list[Delayed]], collections: dict[str, Any], counts: Sequence[int]
) -> list[Any]:
    """The rows that count, of collections with the same partitions."""
    take = dask.delayed(_positive)
    weights = parts["sample_weight"]
    return [
        rebuild(like, [take(*pair) for pair in zip(parts[name], weights, strict=True)], counts)
        for name, like in collections.items()
    ]


def _positive(part: Any, weights: Any) -> Any:
    return take_rows(part, np.flatnonzero(np.asarray(weights) > 0))


def _of_present(
    pieces: list[Delayed], present: npt.NDArray[np.intp], n_classes: int, kind: ScoreType
) -> list[Delayed]:
    """The scores of the classes that are there."""
    if len(present) == n_classes:
        return pieces
    choose = dask.delayed(_take_scores)
    return [choose(piece, present, n_classes, kind) for piece in pieces]


def _take_scores(
    scores: Floats, present: npt.NDArray[np.intp], n_classes: int, kind: ScoreType
) -> Floats:
    return take_classes(scores, present, n_classes, kind) if len(scores) else scores[:, present]


def _fingerprint(tasks: Tasks, X: Any, y: Any, classes: Classes) -> Fingerprint | None:
    """The fingerprint of the kept rows, without their scores, which differ between folds."""
    take = dask.delayed(_smallest)
    rows = zip_rows(partitions(X=X, y=y), "X", "y")
    found = tasks.compute([take(*some, classes) for some in rows])
    smallest: SmallestHashes | None = merge(tasks, found, merge_smallest).result()
    return None if smallest is None else Fingerprint.of_smallest(smallest)


def _smallest(X: Any, y: Any, classes: Classes) -> SmallestHashes | None:
    hashes = table_hashes(X, np.searchsorted(classes, np.asarray(y).ravel()))
    return None if hashes is None else SmallestHashes.of(hashes)


def _calibrate(
    local: classifier.CalibratedClassifier, X: Any, scores: Floats, kind: ScoreType
) -> Floats:
    return local.calibrate_scores(X, scores, kind) if len(scores) else scores
