"""The base of all calibrators: checks of the input, prediction, export."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._fitted.fingerprint import Fingerprint, calibration_hashes
from ._fitted.json_values import (
    read_score_columns,
    read_score_limits,
    read_score_type,
    write_score_limits,
)
from ._fitted.made import Made
from ._inputs.arrays import Floats, Mask
from ._inputs.parameters import check_choice
from ._inputs.score_columns import ScoreColumns, arrange_columns
from ._inputs.score_limits import ScoreLimits
from ._inputs.scores import (
    ON_BAD_ROWS,
    ScoreKind,
    ScoreType,
    as_score_matrix,
    refuse_missing_scores,
    replace_bad_rows,
)
from ._inputs.training_rows import TrainingRows, check_training_rows
from ._interval_base import WithIntervals
from ._stored_base import StoredEstimator

if TYPE_CHECKING:
    from onnx import ModelProto

    from .export.sql import SqlColumns


@dataclass(frozen=True)
class FittedRows:
    """Facts about its training rows that a fitted calibrator keeps."""

    classes: npt.NDArray[Any]
    score_type: ScoreType
    score_limits: ScoreLimits
    columns: ScoreColumns
    n_rows: int
    fingerprint: Fingerprint

    @classmethod
    def of(cls, rows: TrainingRows, fingerprint: Fingerprint) -> FittedRows:
        """Remember checked rows."""
        n_rows = len(rows.labels)
        return cls(
            rows.classes, rows.score_type, rows.score_limits, rows.columns, n_rows, fingerprint
        )


def take_fingerprint(rows: TrainingRows, matrix: Floats | None = None) -> Fingerprint:
    """Take the fingerprint of rows, with their encoded attributes where these are used."""
    return Fingerprint.of(calibration_hashes(matrix, rows.labels, rows.scores, rows.kind))


class Calibrator(WithIntervals, StoredEstimator):
    """Base of the calibrators: whatever has `fit(X, y, scores)` and `predict_proba(X, scores)`."""

    score_type_: ScoreType
    score_limits_: ScoreLimits
    score_columns_: ScoreColumns
    pos_label: Any
    title = "Calibrator"
    """The name of the method, for people."""
    _weights_count_rows = True
    """Whether weights must not be shares, since their scale matters."""
    scores_are_published = False
    """Whether scores are read as in the published method."""

    def to_sql(
        self, dialect: str = "duckdb", *, scores: Any = None, attributes: Any = None
    ) -> SqlColumns:
        """The fitted calibrator as SQL: one expression per class over the columns of a table.

        A database then computes the same as `predict_proba`. The names of columns and the
        categories are always quoted.

        Parameters
        ----------
        dialect : {"duckdb", "postgresql", "sqlite", "bigquery"}, default="duckdb"
            The database.
        scores : str or list of str, optional
            The columns of the scores, in the order of the classes or named after them. By default
            ``score`` if the calibrator takes one column of scores, else ``score_`` and the class,
            with ``_1``, ``_2``, ... for several classifiers; the names they had in training are not
            used. Where the table lacks such a column, the database refuses the query.
        attributes : list of str or dict, optional
            The columns of the attributes, if their names differ from those in training: all of
            them, or a dict from the old names to the new ones. Without names they were ``x0``,
            ``x1``, ...

        Returns
        -------
        SqlColumns
            A mapping from the classes to expressions; as a string, all of them with names, ready
            to stand between SELECT and FROM.

        Notes
        -----
        NULL and NaN are missing attributes. The result is NULL where `predict_proba` would refuse
        the score: if it is missing, infinite or, for probabilities, not between 0 and 1.

        Examples
        --------
        >>> from caltree import PlattScaling
        >>> platt = PlattScaling().fit(None, ["no", "yes"] * 10, scores=[0.2, 0.6] * 10)
        >>> import sqlite3
        >>> database = sqlite3.connect(":memory:")
        >>> columns = platt.to_sql("sqlite", scores="p_yes")
        >>> query = f"SELECT round({columns['yes']}, 2) FROM (SELECT 0.5 AS p_yes)"
        >>> database.execute(query).fetchone()
        (0.79,)
        """
        # Imported here: importing caltree shall not take its time.
        from .export.sql import to_sql

        check_is_fitted(self)
        return to_sql(self, dialect, scores, attributes)

    def to_onnx(
        self, *, dtype: Literal["float32", "float64"] = "float64", missing_text: str = ""
    ) -> ModelProto:
        """The fitted calibrator as an ONNX model, e.g. for onnxruntime.

        An ONNX model checks nothing: give it only inputs that `predict_proba` would accept.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float64"
            The precision of inputs and outputs. All numbers inside the model have double precision.
            With float32, scores above 0.99999997 become 1, which can change their probabilities a
            lot.
        missing_text : str, default=""
            The text that stands for a missing string, because ONNX has no missing strings.

        Returns
        -------
        onnx.ModelProto
            A model that gives `probabilities`, one column per class in the order of `classes_`. It
            takes `scores` (a matrix of as many columns as in training) and the attributes: one
            matrix `X` if all of them are numbers, otherwise one matrix of one column for each,
            under its name (with "_" behind it where that is empty or taken). NaN is a missing
            number, and booleans are 0 and 1.

        Examples
        --------
        >>> import numpy as np
        >>> from onnxruntime import InferenceSession
        >>> from caltree import CalibrationTree
        >>> X = np.array([[0], [0], [0], [1], [1], [1]] * 10)
        >>> y = [0, 1, 0, 1, 1, 1] * 10
        >>> tree = CalibrationTree().fit(X, y, scores=[0.5] * 60)
        >>> session = InferenceSession(tree.to_onnx().SerializeToString())
        >>> new = {"X": np.array([[0.0], [1.0]]), "scores": np.array([[0.5], [0.5]])}
        >>> session.run(["probabilities"], new)[0].round(2)
        array([[0.66, 0.34],
               [0.02, 0.98]])
        """
        # Imported here: importing caltree shall not take its time.
        from .export.onnx import to_onnx

        return to_onnx(self, dtype=dtype, missing_text=missing_text)

    @property
    def n_scores_(self) -> int:
        """The number of columns of the scores."""
        return self.score_columns_.n_columns

    @property
    def pos_label_(self) -> Any:
        """The class of a single column of scores; None with several columns."""
        positive = self.score_columns_.positive
        return None if positive is None else self.classes_.tolist()[positive]

    def read_scores(
        self, scores: Any, n_rows: int | None = None, keep: Mask | None = None, of: str = "X"
    ) -> Floats:
        """Scores as for `predict_proba`, checked, as a matrix in the order of the classes.

        A single column is turned into the score of the second class. For `n_rows`, `keep` and
        `of` see `as_score_matrix`.
        """
        return self._read_scores(scores, n_rows, "error", keep, of)[0]

    def _read_scores(
        self,
        scores: Any,
        n_rows: int | None,
        on_bad_rows: str,
        keep: Mask | None = None,
        of: str = "X",
    ) -> tuple[Floats, Mask | None]:
        """Read scores; also tell which rows are bad, if these are not an error."""
        error = check_choice("on_bad_rows", on_bad_rows, ON_BAD_ROWS) == "error"
        matrix = as_score_matrix(scores, n_rows, len(self.classes_), keep, of, finite=error)
        self._check_width(matrix)
        kind, bad = self.score_type_, None
        if not error:
            matrix, bad = replace_bad_rows(matrix, kind)
        return arrange_columns(scores, matrix, self.classes_, self.score_columns_, kind), bad

    def calibrate_scores(self, X: Any, matrix: Floats) -> Floats:
        """Calibrated probabilities of scores that `read_scores` returned."""
        raise NotImplementedError

    def uncalibrated(self, matrix: Floats) -> Floats:
        """Scores that `read_scores` returned as probabilities, one column per class."""
        return ScoreKind(len(self.classes_), self.score_type_).uncalibrated(matrix)

    def _check_parameters(self) -> None:
        """Refuse parameters that `fit` would refuse, before there are any data."""
        raise NotImplementedError

    def _check_table(self, X: Any) -> None:
        """Refuse attributes that `fit` cannot read at all, at no cost."""

    def _state_of_scores(self) -> dict[str, Any]:
        """Return the type and the columns of the scores as plain values."""
        names = self.score_columns_.names
        return {
            "score_type": self.score_type_,
            "score_limits": write_score_limits(self.score_limits_),
            "n_scores": self.n_scores_,
            "pos_label": self.pos_label_,
            "score_names": None if names is None else list(names),
        }

    def _restore_scores(self, state: dict[str, Any]) -> None:
        """Take over the type and the columns of the scores, or raise a ValueError."""
        self.score_columns_ = read_score_columns(state, self.classes_)
        self.score_type_ = read_score_type(state)
        self.score_limits_ = read_score_limits(state)

    def _set_rows(self, rows: FittedRows) -> None:
        self.classes_, self.score_type_ = rows.classes, rows.score_type
        self.score_limits_ = rows.score_limits
        self.score_columns_, self.fingerprint_ = rows.columns, rows.fingerprint
        self.made_, self.spread_ = Made.of(rows.n_rows), None

    def _check_rows(
        self,
        X: Any,
        y: Any,
        scores: Any,
        sample_weight: Any,
        score_type: str,
        groups: Any = None,
    ) -> TrainingRows:
        refuse_missing_scores(scores, in_fit=True)
        return check_training_rows(
            X,
            y,
            scores,
            sample_weight,
            score_type,
            self.pos_label,
            weights_count_rows=self._weights_count_rows,
            groups=groups,
        )

    def _check_width(self, matrix: Floats) -> None:
        """Refuse another number of scores than in training.

        Of two probabilities the second says it all, but to the published method.
        """
        widths = {matrix.shape[1], self.n_scores_}
        of_two = len(self.classes_) == 2 and self.score_type_ == "probability"
        one_will_do = of_two and not self.scores_are_published
        if len(widths) > 1 and not (one_will_do and widths == {1, 2}):
            raise ValueError(
                f"scores has {matrix.shape[1]} columns, but the calibrator was fitted "
                f"with {self.n_scores_}"
            )
