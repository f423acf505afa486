"""`CalibrationBoosting` for Dask arrays and dataframes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, Self

import dask
import dask.array
import numpy as np
from distributed import Future

from .. import boosting
from .._base import FittedRows
from .._fitted.fingerprint import Fingerprint
from .._histogram.partitions import (
    Known,
    Planned,
    encode_part,
    merge_encoded,
    merge_samples,
    plan_of,
    sample_part,
)
from .._histogram.prepare import Sample
from .._inputs.arrays import Floats
from .._inputs.scores import ScoreKind, refuse_missing_scores
from .._running import progress
from .._training.boosting import fit_boosting, import_lightgbm, start_log_odds
from .._training.boosting_columns import columns_of, moderate, nominal_columns, score_floors
from .._training.dataset import Dataset
from .._training.lightgbm_trees import TreeArrays, read_trees
from .._training.settings import READING
from .._training.thresholds import round_thresholds
from .collections import current_client, join_parts, partitions, zip_rows
from .lazy import WithoutIntervals, lazy_probabilities, refuse_groups, without_dask
from .pool import hold, merge
from .preparing import look_at_all
from .tasks import Tasks

# The bins are LightGBM's; what is learned of values on the way is not used.
_FEW_BINS = 2


class CalibrationBoosting(WithoutIntervals, boosting.CalibrationBoosting):
    """A curve for all rows and boosted trees on a Dask cluster.

    It has the parameters and attributes of `caltree.CalibrationBoosting`. A sample of the rows, at
    least 65,536 of them, comes to the client, where the curve, the number of rounds and the weights
    are found. Then LightGBM grows the trees on all rows, which stay on their workers. Up to 131,071
    rows the sample is all of them, and the result is that of `caltree.CalibrationBoosting`.

    The client is the current one, e.g. that of ``client = distributed.Client(...)``.

    See Also
    --------
    caltree.CalibrationBoosting : On one machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from caltree.dask import CalibrationBoosting
    >>> random = da.random.default_rng(0)
    >>> X = random.random((4000, 3), chunks=(1000, 3))
    >>> scores = random.random(4000, chunks=1000)
    >>> y = random.random(4000, chunks=1000) < da.where(X[:, 0] < 0.5, scores, scores / 2)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     model = CalibrationBoosting().fit(X, y, scores)
    ...     probabilities = model.predict_proba(X, scores)  # lazy
    ...     probabilities.compute().shape
    (4000, 2)
    """

    def fit(
        self, X: Any, y: Any, scores: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit to attributes, labels and the scores of a classifier.

        Parameters
        ----------
        X : dask array or dataframe of shape (n, d)
            The attributes.
        y : dask array or series of shape (n,)
            The labels, in the partitions of `X`.
        scores : dask array, series or dataframe
            One column for each class, or that of `pos_label`, as for
            `caltree.CalibrationBoosting.fit`, in the partitions of `X`.
        sample_weight : dask array or series of shape (n,), optional
            How many rows each row counts for.
        groups : None
            Not possible here: the rows of a group may be on several workers.

        Returns
        -------
        CalibrationBoosting
            The fitted calibrator itself.
        """
        self._check_parameters()
        import_lightgbm()
        refuse_missing_scores(scores, in_fit=True)
        refuse_groups(groups, "CalibrationBoosting")
        parts = partitions(X=X, y=y, scores=scores, sample_weight=sample_weight)
        with Tasks(current_client()) as tasks, progress.fitting(self, self.verbose):
            with progress.stage(READING) as reading:
                rows = self._read(tasks, parts)
                reading.say(f"read the rows of {len(parts['X'])} partitions")
            self._fit_rows(rows)
        return self

    def _read(self, tasks: Tasks, parts: dict[str, list[Any]]) -> _Rows:
        """Encode the rows where they are, and take a sample of them."""
        known = look_at_all(
            tasks,
            parts,
            self.categorical_features,
            _FEW_BINS,
            self.score_type,
            self.pos_label,
            self._identifiers(),
        )
        known.summary.warn(self._identifiers())
        told = hold(tasks, known)
        zipped = zip_rows(parts, "X", "y", "scores", "sample_weight")
        given = [(i, some) for i, some in enumerate(zipped) if known.counts[i] > 0]
        samples = tasks.compute([dask.delayed(sample_part)(i, some, told) for i, some in given])
        sample = merge(tasks, samples, merge_samples)
        planned = tasks.submit(plan_of, sample, told, 0, self.scoring)
        encoded = tasks.compute(
            [dask.delayed(encode_part)(i, some, told, planned) for i, some in given]
        )
        seen = merge(tasks, tasks.map(itemgetter(1), encoded), merge_encoded).result()
        rows, plan = sample.result().sample, planned.result()
        plan[2].warn(known.classes)
        seen.copies.warn(plan[1])
        columns = tasks.map(itemgetter(0), encoded)
        return _Rows(tasks, known, plan, rows, columns, seen.fingerprint)

    def _fit_rows(self, rows: _Rows) -> None:
        kind, sample = rows.kind, rows.dataset()
        n_scores = rows.planned[2].columns.n_columns
        settings = boosting.boosting_settings(self, kind, n_scores)
        elsewhere = rows.grow if len(sample.labels) < rows.known.n_rows else None
        fitted, selection = fit_boosting(sample, settings, self.n_jobs, elsewhere)
        model = round_thresholds(fitted, sample.matrix, sample.scores, kind)
        self._set_fitted(model, selection, rows.facts())

    def predict_proba(
        self, X: Any, scores: Any = None, *, on_bad_rows: Literal["error", "nan"] = "error"
    ) -> Any:
        """Calibrated probabilities, lazily if the rows are Dask's.

        Parameters
        ----------
        X : dask array or dataframe, or any table, of shape (n, d)
            The attributes, as for `fit`.
        scores : dask array, series or dataframe, or array-like
            The scores of the classifier for these rows, as for `fit`.
        on_bad_rows : {"error", "nan"}, default="error"
            What to do with rows whose score is missing, infinite or, for probabilities, not between
            0 and 1: raise a ValueError, or give NaN for every class.

        Returns
        -------
        dask array or ndarray of shape (n, m)
            One column per class, in the order of `classes_`.

        Notes
        -----
        A warning says which values no training row had, one per partition that has some.
        """
        return lazy_probabilities(self, X, scores, on_bad_rows)

    def to_local(self) -> boosting.CalibrationBoosting:
        """The same calibrator for plain tables and arrays, without Dask.

        Returns
        -------
        caltree.CalibrationBoosting
            A fitted calibrator.
        """
        return without_dask(self, boosting.CalibrationBoosting)


@dataclass(frozen=True)
class _Rows:
    """Training rows on the workers, and a sample of them here."""

    tasks: Tasks
    known: Known
    planned: Planned
    sample: Sample
    encoded: list[Future]
    """The partitions that have rows: see `encode_part`."""
    fingerprint: Fingerprint

    @property
    def kind(self) -> ScoreKind:
        """How the scores are read."""
        return self.planned[2].kind

    def dataset(self) -> Dataset:
        """The sample as plain arrays."""
        _, attributes, read = self.planned
        sample, scores = self.sample, read.in_order(self.sample.scores)
        return Dataset.of(
            attributes, sample.matrix, sample.labels, read.kind, scores, sample.weights
        )

    def facts(self) -> FittedRows:
        """The facts to remember about the rows."""
        known, read = self.known, self.planned[2]
        return FittedRows(
            known.classes,
            read.kind.score_type,
            read.kind.limits,
            read.columns,
            known.n_rows,
            self.fingerprint,
        )

    def grow(
        self, parameters: dict[str, Any], curve: Floats, share: float, rounds: int
    ) -> TreeArrays:
        """Grow trees on all rows by LightGBM, which start from a share of a curve."""
        attributes, n_states, sample = self.planned[1], len(curve), self.dataset()
        n_columns = sample.matrix.shape[1] + sample.n_plain_scores
        # Each worker has its own threads.
        others = {name: value for name, value in parameters.items() if name != "num_threads"}
        model = import_lightgbm().DaskLGBMClassifier(
            client=self.tasks.client, n_estimators=rounds, **others
        )
        start = self._array(start_log_odds, n_states, curve=curve, start=share)
        with warnings.catch_warnings():
            # Of a parameter that is LightGBM's own default.
            warnings.filterwarnings("ignore", message="Parameter n_jobs will be ignored")
            model.fit(
                self._array(columns_of, n_columns, floors=score_floors(sample)),
                self._array(_labels).astype(np.int64),
                sample_weight=self._weights(),
                init_score=start[:, 0] if n_states == 1 else start,
                categorical_feature=nominal_columns(attributes),
            )
        trees = read_trees(model.booster_.model_to_string(), attributes, n_states)
        # LightGBM counts the rows of one worker only.
        return trees.with_rows(self.known.n_rows)

    def _weights(self) -> dask.array.Array | None:
        known = self.sample.weights
        return None if known is None else self._array(_moderate_weights, mean=float(known.mean()))

    def _array(
        self, function: Callable[..., Any], n_columns: int | None = None, **others: Any
    ) -> dask.array.Array:
        """A Dask array of what a function makes of each partition."""
        made = self.tasks.map(function, self.encoded, **others)
        counts = [count for count in self.known.counts if count > 0]
        shapes = [(count,) if n_columns is None else (count, n_columns) for count in counts]
        return join_parts([dask.delayed(part) for part in made], shapes)


def _labels(rows: Dataset) -> Any:
    return rows.labels


def _moderate_weights(rows: Dataset, mean: float) -> Any:
    return None if rows.weights is None else moderate(rows.weights, mean)
