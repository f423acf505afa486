"""What calibrators that look at the attributes share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from ._base import Calibrator, Training
from ._fitted.segments import segment_table
from ._inputs import attributes
from ._inputs.arrays import Floats
from ._inputs.attributes import Attributes
from ._inputs.labels import check_weights, known_labels
from ._inputs.parameters import check_count
from ._inputs.scores import ScoreKind, as_score_matrix
from ._inputs.tables import read_table
from ._training.settings import Problem


class AttributeCalibrator(Calibrator):
    """Base of the tree and of the forest."""

    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]

    def _check_table(self, X: Any) -> None:
        """Refuse what is no table of attributes."""
        read_table(X, "X")

    def predict_proba(self, X: Any, scores: Any) -> Floats:
        """Calibrated probabilities."""
        raise NotImplementedError

    def segments(
        self, X: Any, y: Any, scores: Any, sample_weight: Any = None, *, max_segments: int = 10
    ) -> list[dict[str, Any]]:
        """Where the scores do most harm: rows divided by each attribute on its own.

        Give rows that neither the classifier nor the calibrator has seen; on others, both look
        better than they are.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.
        y : array-like of shape (n,)
            The labels; all must be among `classes_`.
        scores : array-like
            The scores of the classifier for these rows, as for `fit`.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.
        max_segments : int, default=10
            The most segments of a numeric attribute, apart from missing values.

        Returns
        -------
        list of dict
            For each segment: attribute, segment (a condition), rows, class (the second of two, or
            the one that is farthest off), the mean uncalibrated probability of that class, its
            observed frequency, the mean calibrated probability, and harm, which is the rows times
            the squared difference of the first two. The most harmful come first.

        Examples
        --------
        >>> import numpy as np
        >>> from caltree import CalibrationTree
        >>> random = np.random.default_rng(0)
        >>> X = random.integers(0, 3, (3000, 1))
        >>> scores = random.random(3000)
        >>> y = random.random(3000) < np.where(X[:, 0] == 2, scores / 2, scores)
        >>> tree = CalibrationTree().fit(X[:2000], y[:2000], scores=scores[:2000])
        >>> worst = tree.segments(X[2000:], y[2000:], scores=scores[2000:])[0]
        >>> worst["segment"], round(worst["uncalibrated"], 1), round(worst["observed"], 1)
        ('x0 = 2', 0.5, 0.2)
        """
        check_is_fitted(self)
        check_count("max_segments", max_segments, 2)
        after = self.predict_proba(X, scores)
        n_rows, n_classes = after.shape
        weights = check_weights(sample_weight, n_rows, "X")
        weights = np.ones(n_rows) if weights is None else weights
        matrix = as_score_matrix(scores, n_rows, n_classes)
        return segment_table(
            self._attributes(),
            self._attributes().encode(X),
            known_labels(y, self.classes_, n_rows),
            ScoreKind(n_classes, self.score_type_).uncalibrated(matrix),
            after,
            weights,
            self.classes_.tolist(),
            max_segments,
        )

    def _together(self, scores: Floats, share: float, of_nodes: Callable[[], Floats]) -> Floats:
        """The probabilities of the node models, with the share of the uncalibrated ones."""
        kind = ScoreKind(len(self.classes_), self.score_type_)
        if share == 1.0:
            return kind.uncalibrated(scores)
        probabilities = of_nodes()
        if share > 0.0:
            probabilities += share * kind.uncalibrated(scores)
        # A sum of shares may be rounded to beyond a certainty.
        return np.clip(probabilities, 0.0, 1.0, out=probabilities)

    def _attributes(self) -> Attributes:
        """What was learned about the attributes."""
        raise NotImplementedError

    def _problem(self, X: Any, rows: Training, extremes: str, categorical_features: Any) -> Problem:
        """The checked rows as the core wants them."""
        kind = ScoreKind(len(rows.classes), rows.score_type, extremes == "published")
        odds = kind.regressors(rows.scores)
        known, matrix = attributes.learn(
            X,
            categorical_features=categorical_features,
            keep=rows.keep,
            sample_weight=rows.weights,
        )
        return Problem(
            known=known,
            matrix=matrix,
            labels=rows.labels,
            n_classes=kind.n_classes,
            odds=odds,
            offset=kind.offset(rows.scores, odds),
            raw=None if rows.score_type == "margin" else kind.uncalibrated(rows.scores),
            weights=rows.weights,
        )

    def _set_features(self, known: Attributes) -> None:
        self.n_features_in_ = len(known.columns)
        if known.names is not None:
            self.feature_names_in_ = np.array(known.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
