"""Calibration rows: what a calibrator is fitted to, once the classifiers have scored them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import has_fit_parameter

from .._inputs.arrays import Classes, Floats, Rows
from .._inputs.groups import number_groups
from .._inputs.indexing import Columns, take_rows
from .._inputs.parameters import is_whole
from .._inputs.scores import ScoreType
from .absent_classes import Indices, take_classes
from .out_of_fold import Fold, keep_folds_together, own_params


@dataclass(frozen=True)
class CalibrationRows:
    """Rows with all that a calibrator is given apart from their scores."""

    X: Any
    columns: Columns
    labels: Classes
    classes: Classes
    weighting: dict[str, npt.NDArray[Any]]
    """The weights by the name of the calibrator's argument, if there are any."""
    groups: npt.NDArray[Any] | None
    score_type: ScoreType
    intervals: bool = False
    """Whether calibrators learn how wide intervals must be."""

    def fit(
        self,
        calibrator: Any,
        rows: Rows,
        scores: Floats,
        present: Indices,
        folds: Sequence[Fold],
    ) -> None:
        """Fit a calibrator to the scores of some rows, which are of the classes `present`.

        Its own folds keep groups together or, without groups, what the folds test together.
        """
        # A copy only if it is needed: the rows may be any, in any order.
        are_all = np.array_equal(rows, np.arange(len(self.labels)))
        X = self.X if are_all else take_rows(self.X, rows)
        attributes, labels = self.columns.of(X), self.labels[rows]
        given = {
            "scores": take_classes(scores, present, len(self.classes), self.score_type),
            **{name: values[rows] for name, values in self.weighting.items()},
        }
        calibrator.fit(attributes, labels, **given, **self._keep_together(calibrator, rows, folds))
        if self.intervals:
            calibrator.fit_intervals(attributes, labels, **given)

    def _keep_together(self, calibrator: Any, rows: Rows, folds: Sequence[Fold]) -> dict[str, Any]:
        """The groups as an argument of the calibrator's `fit`, if it takes any."""
        if self.groups is None or not has_fit_parameter(calibrator, "groups"):
            keep_folds_together(calibrator, folds, rows)
            return {}
        groups = self.groups[rows]
        n_groups, _ = number_groups(groups)
        if n_groups < 2:
            return {}
        n_folds: Any = own_params(calibrator).get("cv")
        if is_whole(n_folds) and n_groups < n_folds:
            calibrator.set_params(cv=n_groups)
        return {"groups": groups}


def check_intervals(calibrator: Any) -> None:
    """Refuse a calibrator that knows no intervals before anything is trained."""
    if not hasattr(calibrator, "fit_intervals"):
        raise TypeError(
            f"intervals=True needs a calibrator that has fit_intervals, got {calibrator!r}; use "
            "one of caltree's, or intervals=False"
        )
