"""Fitted calibrators for Dask collections: lazy probabilities, and the same without Dask."""

from __future__ import annotations

from typing import Any, Literal, NoReturn, TypeVar

import dask
from dask.base import is_dask_collection
from distributed.worker import warn
from sklearn.utils.validation import check_is_fitted

from .._inputs.parameters import check_choice
from .._inputs.scores import ON_BAD_ROWS, refuse_missing_scores
from .._model_base import AttributeCalibrator, predict_and_count
from .collections import lazy_matrix, partitions, zip_rows

Local = TypeVar("Local", bound=AttributeCalibrator)


def refuse_groups(groups: Any, name: str) -> None:
    """Refuse groups, whose rows may be on several workers."""
    if groups is not None:
        raise ValueError(
            "groups cannot be kept together on a cluster, where each row's fold depends on its "
            f"number alone; use caltree.{name} on a sample of the groups, or leave groups out"
        )


class WithoutIntervals:
    """Says how to get intervals: they need many fits, too many for the rows of a cluster."""

    def fit_intervals(self, *rows: Any, **options: Any) -> NoReturn:
        """Refuse, and say what to do instead."""
        raise TypeError(
            f"caltree.dask.{type(self).__name__} has no intervals; fit a "
            f"caltree.{type(self).__name__} to a sample of the rows, and call its fit_intervals"
        )

    predict_interval = fit_intervals


def without_dask(calibrator: AttributeCalibrator, kind: type[Local]) -> Local:
    """The same fitted calibrator for plain tables and arrays."""
    check_is_fitted(calibrator)
    local = kind(**calibrator.get_params())
    local.__dict__ |= {name: v for name, v in vars(calibrator).items() if name.endswith("_")}
    return local


def lazy_probabilities(
    calibrator: Any, X: Any, scores: Any, on_bad_rows: Literal["error", "nan"]
) -> Any:
    """Probabilities of the rows of Dask collections; those of other tables are computed at once.

    A warning says which values no training row had, one per partition that has some.
    """
    local = calibrator.to_local()
    if not is_dask_collection(X):
        return local.predict_proba(X, scores, on_bad_rows=on_bad_rows)
    check_choice("on_bad_rows", on_bad_rows, ON_BAD_ROWS)
    refuse_missing_scores(scores)
    shared = dask.delayed(local, pure=True)
    rows = zip_rows(partitions(X=X, scores=scores), "X", "scores")
    given = [(*some, shared, on_bad_rows) for some in rows]
    return lazy_matrix(_probabilities, given, X, len(calibrator.classes_))


def _probabilities(
    X: Any, scores: Any, local: AttributeCalibrator, on_bad_rows: Literal["error", "nan"]
) -> Any:
    probabilities, unseen = predict_and_count(local, X, scores, on_bad_rows=on_bad_rows)
    message = unseen.message()
    if message is not None:
        warn(message, UserWarning)  # to the client, too
    return probabilities
