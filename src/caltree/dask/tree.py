"""`CalibrationTree` for Dask arrays and dataframes."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Literal, Self

import dask
import numpy as np
from dask.base import is_dask_collection
from distributed import Future
from sklearn.utils.validation import check_is_fitted

from .. import tree
from .._base import FittedRows
from .._histogram.engine import HistogramEngine
from .._histogram.partitions import (
    Known,
    bin_part,
    merge_encoded,
    merge_samples,
    plan_of,
    sample_part,
)
from .._inputs.folds import deal_by_number, folds_by_number
from .._inputs.parameters import check_count
from .._inputs.scores import refuse_missing_scores
from .._running import progress
from .._training.fit_tree import fit_tree
from .._training.settings import READING
from .collections import current_client, lazy_matrix, partitions, zip_rows
from .lazy import WithoutIntervals, lazy_probabilities, refuse_groups, without_dask
from .pool import DaskPool, hold, merge
from .preparing import look_at_all
from .tasks import Tasks


class CalibrationTree(WithoutIntervals, tree.CalibrationTree):
    """A calibration tree on a Dask cluster.

    It has the parameters and attributes of `caltree.CalibrationTree`, and gives the tree of
    ``tree_method="hist"`` on the same rows in the same order, however these are partitioned. Rows
    are read three times (for their types, for a sample, and for the bins) and stay on their
    workers, with one or two bytes for each attribute. Only sums cross the network, and their size
    does not depend on the number of rows. If a worker is lost, its part is made again.

    The client is the current one, e.g. that of ``client = distributed.Client(...)``.

    See Also
    --------
    caltree.CalibrationTree : On one machine.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from caltree.dask import CalibrationTree
    >>> random = da.random.default_rng(0)
    >>> X = random.random((4000, 3), chunks=(1000, 3))
    >>> scores = random.random(4000, chunks=1000)
    >>> y = random.random(4000, chunks=1000) < da.where(X[:, 0] < 0.5, scores, scores / 2)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"):
    ...     model = CalibrationTree().fit(X, y, scores)
    ...     probabilities = model.predict_proba(X, scores)  # lazy
    ...     probabilities.compute().shape
    (4000, 2)
    """

    def fit(
        self, X: Any, y: Any, scores: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit the tree to attributes, labels and the scores of a classifier.

        Parameters
        ----------
        X : dask array or dataframe of shape (n, d)
            The attributes.
        y : dask array or series of shape (n,)
            The labels, in the partitions of `X`.
        scores : dask array, series or dataframe
            One column for each class, or that of `pos_label`, as for
            `caltree.CalibrationTree.fit`, in the partitions of `X`.
        sample_weight : dask array or series of shape (n,), optional
            How many rows each row counts for.
        groups : None
            Not possible here: the rows of a group may be on several workers.

        Returns
        -------
        CalibrationTree
            The tree itself.
        """
        self._check_parameters()
        refuse_missing_scores(scores, in_fit=True)
        refuse_groups(groups, "CalibrationTree")
        parts = partitions(X=X, y=y, scores=scores, sample_weight=sample_weight)
        with Tasks(current_client()) as tasks, progress.fitting(self, self.verbose):
            with progress.stage(READING) as reading:
                engine, fitted_rows = self._bin_parts(tasks, parts)
                reading.say(f"put the rows of {len(parts['X'])} partitions into bins")
            self._set_fitted(*fit_tree(engine, self._settings()), fitted_rows)
        return self

    def _bin_parts(
        self, tasks: Tasks, parts: dict[str, list[Any]]
    ) -> tuple[HistogramEngine, FittedRows]:
        """Put the rows into bins, wherever they are; return an engine, and facts to remember."""
        settings = self._settings()
        known = look_at_all(
            tasks,
            parts,
            self.categorical_features,
            self.max_bins,
            self.score_type,
            self.pos_label,
            self._identifiers(),
        )
        known.summary.warn(self._identifiers())
        n_folds, fold_of = 0, folds_by_number(1, 0, 0)
        if settings.needs_folds:
            n_folds, fold_of = deal_by_number(self.cv, known.n_rows, self.random_state)
        told = hold(tasks, known)
        given = _tasks(parts, known)
        samples = tasks.compute([dask.delayed(sample_part)(i, rows, told) for i, rows in given])
        sample = merge(tasks, samples, merge_samples)
        planned = tasks.submit(plan_of, sample, told, n_folds, settings.scoring)
        binned = tasks.compute(
            [dask.delayed(bin_part)(i, rows, told, planned, fold_of) for i, rows in given]
        )
        merged = merge(tasks, _each(tasks, binned, 1), merge_encoded)
        pool = DaskPool.of_chunks(tasks, _each(tasks, [planned], 0)[0], _each(tasks, binned, 0))
        seen = merged.result()
        plan, attributes, read = planned.result()
        read.warn(known.classes)
        seen.copies.warn(attributes)
        growth = self._growth(read.kind, read.columns.n_columns)
        engine = HistogramEngine(pool, plan, attributes, growth)
        return engine, FittedRows(
            known.classes,
            read.kind.score_type,
            read.kind.limits,
            read.columns,
            known.n_rows,
            seen.fingerprint,
        )

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

    def apply(self, X: Any) -> Any:
        """The leaf that each row falls into, lazily if the rows are Dask's.

        Parameters
        ----------
        X : dask array or dataframe, or any table, of shape (n, d)
            The attributes, as for `fit`.

        Returns
        -------
        dask array or ndarray of shape (n,)
            The number of the leaf, an index into the arrays of `model_`.
        """
        if not is_dask_collection(X):
            return super().apply(X)
        check_is_fitted(self)
        local = dask.delayed(self.to_local(), pure=True)
        pairs = [(x, local) for x in partitions(X=X)["X"]]
        return lazy_matrix(_leaves, pairs, X, 1)[:, 0].astype(np.int32)

    def to_local(self) -> tree.CalibrationTree:
        """The same tree for plain tables and arrays, without Dask.

        Returns
        -------
        caltree.CalibrationTree
            A fitted tree.
        """
        return without_dask(self, tree.CalibrationTree)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.tree_method == "exact":
            raise ValueError(
                "caltree.dask.CalibrationTree grows on histograms: it needs tree_method='auto' or "
                "'hist', got 'exact'"
            )
        if self._settings().needs_folds:
            check_count("cv", self.cv, 2)


def _tasks(parts: dict[str, list[Any]], known: Known) -> list[tuple[int, tuple[Any, ...]]]:
    """The partitions that have rows, with their numbers."""
    rows = zip_rows(parts, "X", "y", "scores", "sample_weight")
    return [(i, some) for i, some in enumerate(rows) if known.counts[i] > 0]


def _each(tasks: Tasks, several: list[Future], item: int) -> list[Future]:
    return tasks.map(itemgetter(item), several)


def _leaves(X: Any, local: tree.CalibrationTree) -> Any:
    return local.apply(X)[:, np.newaxis].astype(np.float64)
