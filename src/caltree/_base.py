"""What all calibrators share: the checks of what goes in, and storage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._fitted import storage
from ._fitted.fingerprint import Fingerprint, calibration_hashes
from ._inputs.arrays import Floats, Labels, Mask
from ._inputs.hashing import Hashes
from ._inputs.indexing import count_rows
from ._inputs.labels import check_labels, check_weights, warn_of_few_rows
from ._inputs.scores import ScoreKind, ScoreType, as_score_matrix, resolve_score_type

if TYPE_CHECKING:
    from onnx import ModelProto

    from .export.sql.api import SqlColumns


@dataclass(frozen=True)
class Training:
    """Checked training rows; those of weight 0 are left out."""

    classes: npt.NDArray[Any]
    labels: Labels
    scores: Floats
    score_type: ScoreType
    weights: Floats | None
    keep: Mask | None
    """The rows of the table that are used; None for all."""

    @property
    def kind(self) -> ScoreKind:
        """The kind of the scores."""
        return ScoreKind(len(self.classes), self.score_type)

    def hashes(self, matrix: Floats | None = None) -> Hashes:
        """The hash of every row, with its encoded attributes where they are used."""
        return calibration_hashes(matrix, self.labels, self.scores, self.kind)


class Calibrator(BaseEstimator):
    """Base of the calibrators: whatever has `fit(X, y, scores)` and `predict_proba(X, scores)`."""

    classes_: npt.NDArray[Any]
    score_type_: ScoreType
    n_scores_: int
    fingerprint_: Fingerprint
    _weights_are_rows = True
    """Whether weights must not be shares, since their scale matters."""

    def to_dict(self) -> dict[str, Any]:
        """The fitted calibrator as dicts, lists, strings and numbers, every float exact."""
        check_is_fitted(self)
        return storage.to_dict(self)

    @classmethod
    def from_dict(cls, stored: Any) -> Self:
        """Rebuild a calibrator from `to_dict`; anything malformed is a ValueError."""
        return storage.from_dict(cls, stored)

    def save(self, path: Any) -> None:
        """Write the calibrator to a JSON file, which appears whole or not at all.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from caltree import PlattScaling
        >>> platt = PlattScaling().fit(None, [0, 1] * 10, scores=[0.2, 0.6] * 10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "platt.json"
        ...     platt.save(path)
        ...     again = PlattScaling.load(path)
        >>> again.classes_
        array([0, 1])
        """
        storage.write_json(self.to_dict(), path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Read a calibrator that `save` wrote. Nothing in the file is executed."""
        return cls.from_dict(storage.read_json(path))

    def to_sql(
        self, dialect: str = "duckdb", *, scores: Any = None, attributes: Any = None
    ) -> SqlColumns:
        """The fitted calibrator as SQL: an expression a class over the columns of a table.

        A database then says what `predict_proba` says. The names of columns and the categories
        are quoted, whatever they hold.

        Parameters
        ----------
        dialect : {"duckdb", "postgresql", "sqlite", "bigquery"}, default="duckdb"
            The database.
        scores : str or list of str, optional
            The columns of the scores, in the order of `fit`. By default they are ``score`` if
            there is one, else ``score_`` and the class, with ``_1``, ``_2``, ... for several
            classifiers.
        attributes : list of str or dict, optional
            The columns of the attributes, if they are not called as in training: all of them, or
            a dict from the old names to the new ones. Without names they were ``x0``, ``x1``, ...

        Returns
        -------
        SqlColumns
            A mapping from the classes to expressions; as a string, all of them with names, ready
            to stand between SELECT and FROM.

        Notes
        -----
        NULL and NaN are missing attributes. Where a score is missing, infinite or, of
        probabilities, not from 0 to 1, so that `predict_proba` would refuse it, the result is
        NULL.

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
        from .export.sql.api import to_sql

        check_is_fitted(self)
        return to_sql(self, dialect, scores, attributes)

    def to_onnx(
        self, *, dtype: Literal["float32", "float64"] = "float32", missing_text: str = ""
    ) -> ModelProto:
        """The fitted calibrator as a model of ONNX, e.g. for onnxruntime.

        What goes in must be what `predict_proba` would take: an ONNX model checks nothing.

        Parameters
        ----------
        dtype : {"float32", "float64"}, default="float32"
            The precision of the numbers that go in and out. Between, all are of double precision.
        missing_text : str, default=""
            What stands for a missing string, since strings of ONNX cannot be missing.

        Returns
        -------
        onnx.ModelProto
            A model that gives `probabilities`, one column a class in the order of `classes_`. It
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
        >>> new = {"X": np.float32([[0], [1]]), "scores": np.float32([[0.5], [0.5]])}
        >>> session.run(["probabilities"], new)[0].round(2)
        array([[0.66, 0.34],
               [0.04, 0.96]], dtype=float32)
        """
        # Imported here: importing caltree shall not take its time.
        from .export.onnx.api import to_onnx

        return to_onnx(self, dtype=dtype, missing_text=missing_text)

    def _check_parameters(self) -> None:
        """Refuse parameters that `fit` would refuse, before there are any data."""
        raise NotImplementedError

    def _check_table(self, X: Any) -> None:
        """Refuse attributes that `fit` cannot read at all, at no cost."""

    def _state(self) -> dict[str, Any]:
        """What was fitted, apart from the classes, as plain values."""
        raise NotImplementedError

    def _restore(self, state: dict[str, Any]) -> None:
        """Take over what `_state` gave, or raise a ValueError; `classes_` is there already."""
        raise NotImplementedError

    def _check_training(
        self, X: Any, y: Any, scores: Any, sample_weight: Any, score_type: str
    ) -> Training:
        """The training rows, checked; without `X` the labels say how many there are."""
        of, n_rows = ("y", _count_labels(y)) if X is None else ("X", count_rows(X, "X"))
        weights = check_weights(sample_weight, n_rows, of)
        keep = None if weights is None or weights.all() else weights > 0
        classes, labels = check_labels(y, n_rows, keep)
        matrix = as_score_matrix(scores, n_rows, len(classes), keep, of)
        kind = resolve_score_type(matrix, len(classes), score_type)
        if weights is not None:
            if self._weights_are_rows:
                warn_of_few_rows(weights)
            weights = weights if keep is None else weights[keep]
        return Training(classes, labels, matrix, kind, weights, keep)

    def _check_width(self, matrix: Floats, *, one_column_will_do: bool) -> None:
        """Refuse another number of scores than in training.

        Of two probabilities the second says it all, to most calibrators.
        """
        widths = {matrix.shape[1], self.n_scores_}
        of_two = len(self.classes_) == 2 and self.score_type_ == "probability"
        if len(widths) > 1 and not (one_column_will_do and of_two and widths == {1, 2}):
            raise ValueError(
                f"scores has {matrix.shape[1]} columns, but the calibrator was fitted "
                f"with {self.n_scores_}"
            )


def _count_labels(y: Any) -> int:
    try:
        return count_rows(y, "y")
    except (TypeError, ValueError):
        # What cannot be counted is no list of labels, and their check says why.
        return len(check_labels(y, 0)[1])
