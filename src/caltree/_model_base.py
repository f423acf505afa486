"""The bases of the calibrators that use attributes: trees, forests, boosted trees, ensembles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._base import Calibrator, FittedRows
from ._fitted import storage
from ._fitted.blended import BlendedModel, Model
from ._fitted.formulas import Formulas, make_formulas
from ._fitted.json_values import SCORE_KEYS
from ._fitted.model import FittedModel
from ._fitted.names import printable
from ._fitted.segments import segment_table
from ._fitted.selection import Selection
from ._fitted.trees import WEIGHT_ROUNDING, Trees
from ._inputs.arrays import Floats
from ._inputs.attributes import Attributes
from ._inputs.groups import number_groups
from ._inputs.label_copies import LabelCopies
from ._inputs.labels import check_weights, known_labels, warn_of_label_column
from ._inputs.parameters import check_count
from ._inputs.scores import ScoreKind, refuse_missing_scores
from ._inputs.tables import read_table
from ._inputs.training_rows import TrainingRows
from ._inputs.unseen import Unseen
from ._running import progress
from ._running.threads import count_threads, run_in_threads
from ._training.dataset import Dataset
from ._tree_base import AttributeEstimator, TreeEstimator

# Rows times trees that a thread predicts at a time: less is done before threads have started.
_VISITS_A_JOB = 2_000_000


class AttributeCalibrator(AttributeEstimator, Calibrator):
    """Base of the calibrators that look at attributes: trees, forests and boosted trees."""

    selection_: Selection | None
    score_type: str
    n_jobs: int | None
    verbose: int
    _model_type: type[Trees] | type[BlendedModel] = FittedModel
    """The class of `model_`."""

    def fit(
        self, X: Any, y: Any, scores: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit to attributes, labels and the scores of a classifier.

        The scores must come from a classifier that was not trained on these rows, for instance
        out-of-fold predictions; otherwise they look better than they are.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes: a numpy array, a pandas, polars or pyarrow table, or a scipy sparse
            matrix.
        y : array-like of shape (n,)
            The labels.
        scores : array-like of shape (n,), (n, 1), (n, m) or (n, k * m)
            Must be given. One column for each of the m classes, in sorted order, of each of k
            classifiers; with two classes one column is enough, that of `pos_label`. Columns that
            are named after the classes, such as ``p_yes`` and ``p_no``, may be in any order.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.
        groups : array-like of shape (n,), optional
            Rows that belong together, such as those of one customer. Rows of one group are never in
            the training and the test part of a fold, and all or none of them are in the bootstrap
            sample of a forest's tree. If `cv` is a splitter, it gets the groups. Where calibration
            must show that it helps, a group counts as one observation.

        Returns
        -------
        self
            The fitted calibrator.
        """
        self._check_parameters()
        rows = self._check_rows(X, y, scores, sample_weight, self.score_type, groups)
        warn_of_label_column(X, y)
        with progress.fitting(self, self.verbose):
            self._fit(X, rows)
        return self

    def _fit(self, X: Any, rows: TrainingRows) -> None:
        """Fit to checked rows."""
        raise NotImplementedError

    def predict_proba(
        self, X: Any, scores: Any = None, *, on_bad_rows: Literal["error", "nan"] = "error"
    ) -> Floats:
        """Predict calibrated probabilities.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`. If both tables have names, columns are found by name, in
            any order, and other columns are ignored.
        scores : array-like
            The scores of the classifier for these rows, as for `fit`.
        on_bad_rows : {"error", "nan"}, default="error"
            What to do with rows whose score is missing, infinite or, for probabilities, not between
            0 and 1: raise a ValueError, or give NaN for every class.

        Returns
        -------
        ndarray of shape (n, m)
            One column per class, in the order of `classes_`.

        Warns
        -----
        UserWarning
            If rows have categories that no training row had, or miss values of attributes that
            every training row had: how many rows, and which attributes.
        """
        unseen = Unseen()
        probabilities = self._predict(X, scores, on_bad_rows, unseen)
        unseen.warn()
        return probabilities

    def _predict(
        self, X: Any, scores: Any, on_bad_rows: Literal["error", "nan"], unseen: Unseen
    ) -> Floats:
        """Predict probabilities, and count the values that training did not have."""
        check_is_fitted(self)
        refuse_missing_scores(scores)
        matrix = self.model_.attributes.encode(X, unseen)
        given, bad = self._read_scores(scores, len(matrix), on_bad_rows)
        probabilities = self._calibrate(matrix, given)
        if bad is not None:
            probabilities[bad] = np.nan
        return probabilities

    def effective_rows(
        self, X: Any, scores: Any, *, on_bad_rows: Literal["error", "nan"] = "error"
    ) -> Floats:
        """The number of training rows that the probabilities of each row are based on.

        A tree's probability comes from the nodes on the path of a row, from the root to a leaf. The
        result is the weighted harmonic mean of the numbers of training rows in these nodes, over
        all trees of a forest. Boosted trees are based on all rows.

        Parameters
        ----------
        X : table of shape (n, d)
            As for `predict_proba`.
        scores : array-like
            As for `predict_proba`: trees of a forest may split on them.
        on_bad_rows : {"error", "nan"}, default="error"
            As for `predict_proba`.

        Returns
        -------
        ndarray of shape (n,)
            Rows, or their total weight.
        """
        check_is_fitted(self)
        matrix = self.model_.attributes.encode(X)
        given, bad = self._read_scores(scores, len(matrix), on_bad_rows)
        found = self.model_.effective_rows(matrix, self._score_kind().regressors(given))
        if bad is not None:
            found[bad] = np.nan
        return found

    def calibrate_scores(self, X: Any, matrix: Floats) -> Floats:
        """Calibrated probabilities of scores that `read_scores` returned."""
        return self._calibrate(self.model_.attributes.encode(X), matrix)

    def _calibrate(self, matrix: Floats, given: Floats) -> Floats:
        """Calibrated probabilities of encoded attributes and scores that were read."""
        kind = self._score_kind()
        weight = self.model_.uncalibrated_weight
        if weight == 1.0:
            return kind.uncalibrated(given)
        seen = kind.regressors(given)
        log_odds = kind.offset(given, seen) if self.model_.offset else None
        probabilities = self._predict_in_threads(matrix, seen, log_odds)
        if weight > 0.0:
            probabilities += weight * kind.uncalibrated(given)
        # A sum of weights may be rounded to beyond a certainty.
        return np.clip(probabilities, 0.0, 1.0, out=probabilities)

    def _score_kind(self) -> ScoreKind:
        return ScoreKind(
            len(self.classes_), self.score_type_, self.scores_are_published, self.score_limits_
        )

    def _predict_in_threads(
        self, matrix: Floats, scores: Floats, log_odds: Floats | None
    ) -> Floats:
        size = -(-_VISITS_A_JOB // self.model_.n_trees)
        if len(matrix) <= size or self.n_jobs in (None, 1):
            return self.model_.probabilities(matrix, scores, log_odds)

        def predict(rows: slice) -> Floats:
            return self.model_.probabilities(
                matrix[rows],
                np.asfortranarray(scores[rows]),
                None if log_odds is None else np.asfortranarray(log_odds[rows]),
            )

        parts = [slice(begin, begin + size) for begin in range(0, len(matrix), size)]
        return np.concatenate(run_in_threads(predict, parts, count_threads(self.n_jobs)))

    def segments(
        self, X: Any, y: Any, scores: Any, sample_weight: Any = None, *, max_segments: int = 10
    ) -> list[dict[str, Any]]:
        """Segments of rows in which the scores do most harm, by one attribute at a time.

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
            The maximum number of segments of a numeric attribute, apart from missing values.

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
        n_rows = len(after)
        weights = check_weights(sample_weight, n_rows, "X")
        weights = np.ones(n_rows) if weights is None else weights
        before = self.uncalibrated(self.read_scores(scores, n_rows))
        return segment_table(
            self.model_.attributes,
            self.model_.attributes.encode(X),
            known_labels(y, self.classes_, n_rows),
            before,
            after,
            weights,
            self.classes_.tolist(),
            max_segments,
        )

    def _check_table(self, X: Any) -> None:
        """Refuse anything that is not a table of attributes."""
        read_table(X, "X")

    def _make_dataset(self, X: Any, rows: TrainingRows, categorical_features: Any) -> Dataset:
        """Return the checked rows as plain arrays."""
        kind = replace(rows.kind, published=self.scores_are_published)
        known, matrix = self._learn_attributes(X, rows.keep, rows.weights, categorical_features)
        LabelCopies.of(matrix, rows.labels).warn(known)
        groups = None if rows.kept_groups is None else number_groups(rows.kept_groups)[1]
        return Dataset.of(known, matrix, rows.labels, kind, rows.scores, rows.weights, groups)

    def _set_fitted(self, model: Model, selection: Selection | None, rows: FittedRows) -> None:
        """Take over what was fitted to some rows."""
        self.model_, self.selection_ = model, selection
        self._set_rows(rows)
        self._set_features()

    def _chosen_parameters(self) -> dict[str, Any]:
        """Return the chosen parameters as plain values."""
        return {}

    def _restore_chosen(self, chosen: dict[str, Any]) -> None:
        """Take over the values of `_chosen_parameters`, or raise a ValueError."""
        if chosen:
            raise ValueError("chosen of a stored calibrator must be empty")

    def _state(self) -> dict[str, Any]:
        return {
            **self._state_of_scores(),
            "chosen": self._chosen_parameters(),
            "selection": None if self.selection_ is None else self.selection_.to_dict(),
            "model": self.model_.to_dict(),
        }

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {*SCORE_KEYS, "chosen", "selection", "model"})
        self._restore_scores(state)
        self.model_ = self._model_type.from_dict(state["model"])
        selection = state["selection"]
        self.selection_ = None if selection is None else Selection.from_dict(selection)
        self._check_restored_model()
        if not isinstance(state["chosen"], dict):
            raise ValueError("chosen of a stored calibrator must be a dict")
        self._restore_chosen(state["chosen"])
        self._set_features()

    def _check_restored_model(self) -> None:
        model, n_classes = self.model_, len(self.classes_)
        if model.n_classes != n_classes:
            raise ValueError(
                f"a stored calibrator has {n_classes} classes, but node models of {model.n_classes}"
            )
        # Two scores at most become one; an array of any other number may not fit into memory.
        fits = self.n_scores_ <= 2 * model.n_scores
        if fits:
            zeros = np.zeros((1, self.n_scores_))
            fits = self._score_kind().regressors(zeros).shape[1] == model.n_scores
        if not fits:
            raise ValueError(
                f"a stored calibrator takes {self.n_scores_} scores, "
                f"but has node models of {model.n_scores}"
            )
        left = model.uncalibrated_weight
        if self.score_type_ == "margin" and (model.offset or left > 0.0):
            raise ValueError("margins of a stored calibrator cannot be left uncalibrated")
        if self.selection_ is not None:
            said = self.selection_.uncalibrated_weight
            if abs(said - left) > WEIGHT_ROUNDING:
                raise ValueError(
                    f"a stored calibrator gives uncalibrated probabilities the weight {left:g}, "
                    f"but selection says {said:g}"
                )


class TreeCalibrator(TreeEstimator, AttributeCalibrator):
    """Base of the calibrators of one tree."""

    model_: FittedModel

    def _check_restored_model(self) -> None:
        super()._check_restored_model()
        self._check_one_tree()

    def to_text(self, *, max_depth: int | None = None, decimals: int = 2) -> str:
        """The tree in words: its conditions, its node models, and what a score becomes in a leaf.

        The table of `selection_` comes first, if there is one: the candidates, the loss of each on
        held-out rows, and its weight in the probabilities.

        With two classes a node model is one formula: ``logit p = 0.02 + 1.01 logit s``. Here p is
        the probability of the class of a single column of scores (`pos_label_`), or else of the
        second class, and s is its score; ``p = s`` changes nothing. A term such as
        ``- 0.12 ln s(1-s)`` bends the line: with a minus, scores near 0 and 1 are raised compared
        with those in between. A margin is m, several classifiers have the scores s1, s2, ..., and
        ``logit mean s`` is the log-odds of their mean.

        With more classes each has a formula, such as ``ln p[a] = 0.28 + 0.61 ln s[a]``, and all p
        are divided by their sum; classes that are treated alike share one. A
        `PublishedCalibrationTree` has ``logit s[a]``.

        A leaf also says what scores become there: ``0.2 -> 0.15``. In an averaged tree this is the
        weighted average over all nodes on the path, and the score itself.

        Parameters
        ----------
        max_depth : int, optional
            Show this many levels of conditions.
        decimals : int, default=2
            Decimals of the coefficients, and of probabilities if there are more than two.

        Returns
        -------
        str
            One line per condition. Where splits on one attribute follow each other and the nodes
            between have no weight, their conditions are merged: ``3 < x <= 5``.

        Examples
        --------
        >>> from caltree import CalibrationTree
        >>> X = [[0], [0], [0], [1], [1], [1]] * 10
        >>> y = [0, 1, 0, 1, 1, 1] * 10
        >>> tree = CalibrationTree().fit(X, y, scores=[0.5] * 60)
        >>> print(tree.to_text())
        Held-out RMSE, and weight (chosen: local, a model for each region):
            uncalibrated  0.5000  0.02
            global        0.4715
            2 regions     0.3355  0.98
            average       0.3355
        p: probability of 1, s: its score
        s -> p: what a score becomes in a leaf, averaged over its path by weight (0.02 for the ...
        |--- x0 <= 0.5  (n=30, weight 0.98): 0.2 -> 0.11, 0.5 -> 0.34, 0.8 -> 0.67
        |   logit p = -0.68 + logit s
        |--- x0 > 0.5  (n=30, weight 0.98): 0.2 -> 0.95, 0.5 -> 0.98, 0.8 -> 0.99
        |   logit p = 4.70 + logit s
        """
        text = self._tree_text(max_depth, decimals)
        return text if self.selection_ is None else f"{self.selection_.to_text()}\n{text}"

    def formulas(self, decimals: int, spell: Callable[[Any], str] = printable) -> Formulas:
        """The writer of the tree's formulas; `spell` writes the names of classes."""
        names = [spell(label) for label in self.classes_.tolist()]
        kind, columns = self._score_kind(), self.score_columns_
        return make_formulas(self.model_, names, kind, columns, decimals)


def fitted_attributes(calibrator: Any) -> Attributes | None:
    """Return the attributes of a fitted calibrator; None if it looks at scores alone."""
    return calibrator.model_.attributes if isinstance(calibrator, AttributeCalibrator) else None


def predict_and_count(
    calibrator: Any, X: Any, scores: Any, *, on_bad_rows: Literal["error", "nan"] = "error"
) -> tuple[Floats, Unseen]:
    """Predict probabilities without a warning, and return the counts that it would be about."""
    unseen = Unseen()
    if isinstance(calibrator, AttributeCalibrator):
        return calibrator._predict(X, scores, on_bad_rows, unseen), unseen
    return calibrator.predict_proba(X, scores, on_bad_rows=on_bad_rows), unseen
