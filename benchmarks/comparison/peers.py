"""Calibrators of other packages, behind `fit(X, y, scores)` and `predict_proba(X, scores)`.

Each is used as its package advises, with the defaults of the package; where these do not suit it,
it says so. Those that need probabilities get what a classifier without a calibrator would say:
margins go through the logistic function, of many classes through the softmax.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from caltree import IdentityCalibrator
from caltree.paper.protocol import tuned

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

# The log-odds of what is closer to 0 or 1 would dwarf all others.
_SMALLEST_PROBABILITY = 2.0**-53
_SMALLEST_IN_SINGLE_PRECISION = 2.0**-24


class Peer(BaseEstimator):
    """A calibrator of another package.

    Parameters
    ----------
    score_type : {"auto", "probability", "margin"}, default="auto"
        What the scores are.
    random_state : int, default=0
        For those in which chance plays a part.
    """

    def __init__(self, *, score_type: str = "auto", random_state: int = 0) -> None:
        self.score_type = score_type
        self.random_state = random_state

    def fit(self, X: Any, y: Any, scores: Any) -> Self:
        """Fit to attributes, labels and scores."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._identity = IdentityCalibrator(score_type=self.score_type).fit(None, y, scores)
        with _quiet():
            self._learn(X, codes, np.asarray(scores))
        return self

    def predict_proba(self, X: Any, scores: Any) -> Floats:
        """Calibrated probabilities, one column for each of `classes_`."""
        with _quiet():
            return self._calibrated(X, np.asarray(scores))

    def _probabilities(self, scores: Floats) -> Floats:
        """What the scores say without a calibrator."""
        return self._identity.predict_proba(None, scores)

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        raise NotImplementedError

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        raise NotImplementedError


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence, also for the packages that would silence NumPy and all warnings for good."""
    with warnings.catch_warnings(), np.errstate():
        warnings.simplefilter("ignore")
        yield


class TemperatureScaling(Peer):
    """scikit-learn's temperature scaling."""

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        kind = Margins if self._identity.score_type_ == "margin" else Probabilities
        told = FrozenEstimator(kind(np.arange(len(self.classes_))).fit(scores, codes))
        # The scores are those of rows the classifier has not seen: all of them serve at once, and
        # classes of few rows are no obstacle.
        everything = np.arange(len(codes))
        model = CalibratedClassifierCV(told, method="temperature", cv=[(everything, everything)])
        self._model = model.fit(scores, codes)

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        return np.asarray(self._model.predict_proba(scores), dtype=np.float64)


class Told(ClassifierMixin, BaseEstimator):
    """A classifier whose attributes are the scores that it answers."""

    def __init__(self, classes: Any) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        """Learn nothing."""
        self.classes_ = self.classes
        return self

    def predict(self, X: Any) -> Any:
        """Nobody asks, but scikit-learn wants it to be there."""
        raise NotImplementedError


class Probabilities(Told):
    """Its attributes are probabilities."""

    def predict_proba(self, X: Any) -> Any:
        """The attributes."""
        return X


class Margins(Told):
    """Its attributes are margins."""

    def decision_function(self, X: Any) -> Any:
        """The attributes; of two classes that of the second."""
        return X[:, 0] if X.shape[1] == 1 else X


class SklearnEnsemble(Peer):
    """scikit-learn's `CalibratedClassifierCV` with its defaults: an ensemble of five.

    It does not use the scores: it trains the learner on four fifths of the rows at a time, and fits
    a calibrator to the fifth that is left. The probabilities are the means of the five pairs.

    Parameters
    ----------
    method : {"sigmoid", "isotonic"}, default="sigmoid"
        The calibrator.
    learner : classifier, optional
        What to train; it must be there when `fit` is called.
    score_type, random_state
        As for `Peer`.
    """

    def __init__(
        self,
        method: str = "sigmoid",
        learner: Any = None,
        *,
        score_type: str = "auto",
        random_state: int = 0,
    ) -> None:
        super().__init__(score_type=score_type, random_state=random_state)
        self.method = method
        self.learner = learner

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        learner = tuned(self.learner, X, codes)
        # Its own folds; but as a list it takes them with classes of fewer rows, too.
        folds = list(StratifiedKFold(5).split(X, codes))
        self._model = CalibratedClassifierCV(learner, method=self.method, cv=folds).fit(X, codes)

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        return np.asarray(self._model.predict_proba(X), dtype=np.float64)


class OneAgainstRest(Peer):
    """A calibrator of two classes; of many classes each is told from the others."""

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        probabilities = self._probabilities(scores)
        self._maps = [
            self._fit_one(probabilities[:, column], codes == column) for column in self._columns()
        ]

    def _fit_one(self, probabilities: Floats, truth: Mask) -> Callable[[Floats], Floats]:
        """A map from the uncalibrated probabilities of one class to calibrated ones."""
        raise NotImplementedError

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        probabilities = self._probabilities(scores)
        maps = zip(self._columns(), self._maps, strict=True)
        values = [calibrate(probabilities[:, column]) for column, calibrate in maps]
        if len(values) == 1:
            return np.column_stack([1.0 - values[0], values[0]])
        together = np.column_stack(values)
        return together / together.sum(axis=1, keepdims=True)

    def _columns(self) -> range:
        return range(1 if len(self.classes_) == 2 else 0, len(self.classes_))


class BetaCalibration(OneAgainstRest):
    """Beta calibration with its three parameters."""

    def _fit_one(self, probabilities: Floats, truth: Mask) -> Callable[[Floats], Floats]:
        from betacal import BetaCalibration as Beta

        return Beta(parameters="abm").fit(probabilities, truth).predict


class Spline(OneAgainstRest):
    """Smoothing splines of the log-odds (splinecalib)."""

    def _fit_one(self, probabilities: Floats, truth: Mask) -> Callable[[Floats], Floats]:
        from splinecalib import SplineCalib

        if len(np.unique(probabilities)) < 3:  # which it refuses
            return lambda uncalibrated: uncalibrated
        model = SplineCalib()
        model.fit(probabilities, truth.astype(np.float64))
        return model.calibrate


class Logistic(Peer):
    """probmetrics' logistic calibrator: quadratic scaling, of many classes matrix scaling (SMS).

    It computes in single precision, in which 1 - p may be 0 and the log-odds as large as can be;
    of two classes, where it uses both, it gets probabilities that are cut off before.
    """

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        # The package's function get_calibrator("logistic") has another default for two classes.
        from probmetrics.calibrators import LogisticCalibrator

        with threadpool_limits(1):  # PyTorch, which brings threads of its own, is only here now
            self._model = LogisticCalibrator().fit(self._cut_off(scores), codes)

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        return np.asarray(self._model.predict_proba(self._cut_off(scores)), dtype=np.float64)

    def _cut_off(self, scores: Floats) -> Floats:
        probabilities = self._probabilities(scores)
        if len(self.classes_) > 2:
            return probabilities
        return _clip(probabilities, _SMALLEST_IN_SINGLE_PRECISION)


class VennAbers(Peer):
    """Inductive Venn-Abers prediction on the out-of-fold scores.

    Many classes are each told from the others, and not, as the package would by default, pair by
    pair, which serves it worse where classes have few rows.
    """

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        self._training = {"p_cal": self._probabilities(scores), "y_cal": codes}

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        from venn_abers import VennAbersCalibrator

        given = {"p_test": self._probabilities(scores), "va_type": "one_vs_rest"}
        return np.asarray(VennAbersCalibrator().predict_proba(**given, **self._training))


class MCGrad(Peer):
    """Multicalibration by gradient boosting, of two classes.

    It is given probabilities that are cut off where ours are, without which it does worse.
    """

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        from mcgrad.methods import MCGrad as Method

        logging.getLogger("mcgrad").setLevel(logging.ERROR)
        nominal = [name for name in X if str(X[name].dtype) == "category"]
        self._names = {
            "prediction_column_name": "probability",
            "categorical_feature_column_names": nominal,
            "numerical_feature_column_names": [name for name in X if name not in nominal],
        }
        self._model = Method(lightgbm_params={"num_threads": 1}, random_state=self.random_state)
        table = self._table(X, scores).assign(label=codes)
        self._model.fit(table, label_column_name="label", **self._names)

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        second = self._model.predict(self._table(X, scores), **self._names)
        return np.column_stack([1.0 - second, second])

    def _table(self, X: Any, scores: Floats) -> Any:
        return X.assign(probability=_clip(self._probabilities(scores), _SMALLEST_PROBABILITY)[:, 1])


class LightGBM(Peer):
    """LightGBM on attributes and log-odds, which starts from the uncalibrated probabilities.

    A stratified fifth of the rows, which the trees do not see, says how many of them there are.

    Parameters
    ----------
    package_defaults : bool, default=False
        Trees as the package makes them by default. Otherwise they are small and slow, and a leaf
        must have some rows of which the scores are not sure: without that it does more harm than
        good where rows are few, and scores close to 0 and 1.
    score_type, random_state
        As for `Peer`.
    """

    settings: ClassVar[dict[str, Any]] = {"num_threads": 1, "verbosity": -1}
    small_trees: ClassVar[dict[str, Any]] = {
        "learning_rate": 0.05,
        "num_leaves": 7,
        "min_sum_hessian_in_leaf": 1.0,
    }
    most_rounds = 1000
    patience = 20

    def __init__(
        self,
        *,
        package_defaults: bool = False,
        score_type: str = "auto",
        random_state: int = 0,
    ) -> None:
        super().__init__(score_type=score_type, random_state=random_state)
        self.package_defaults = package_defaults

    def _learn(self, X: Any, codes: Codes, scores: Floats) -> None:
        import lightgbm

        start = self._start(scores)
        table = self._table(X, start)
        folds = StratifiedKFold(5, shuffle=True, random_state=self.random_state)
        seen, held_out = next(folds.split(table, codes))

        def dataset(rows: Codes, **given: Any) -> Any:
            score = start[rows]
            return lightgbm.Dataset(table.iloc[rows], codes[rows], init_score=score, **given)

        training = dataset(seen)
        trees = {} if self.package_defaults else self.small_trees
        self._model = lightgbm.train(
            {**self.settings, **trees, **self._objective()},
            training,
            self.most_rounds,
            valid_sets=[dataset(held_out, reference=training)],
            callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
        )

    def _calibrated(self, X: Any, scores: Floats) -> Floats:
        start = self._start(scores)
        odds = start + self._model.predict(self._table(X, start), raw_score=True)
        if odds.ndim == 1:
            return np.column_stack([expit(-odds), expit(odds)])
        return softmax(odds, axis=1)

    def _objective(self) -> dict[str, Any]:
        n_classes = len(self.classes_)
        if n_classes == 2:
            return {"objective": "binary"}
        return {"objective": "multiclass", "num_class": n_classes}

    def _start(self, scores: Floats) -> Floats:
        """The log-odds of two classes, the logarithms of the probabilities of more."""
        logarithms = np.log(_clip(self._probabilities(scores), _SMALLEST_PROBABILITY))
        return logarithms[:, 1] - logarithms[:, 0] if len(self.classes_) == 2 else logarithms

    def _table(self, X: Any, start: Floats) -> Any:
        columns = start.reshape(len(start), -1).T
        return X.assign(**{f"score_{i}": values for i, values in enumerate(columns)})


def _clip(probabilities: Floats, smallest: float) -> Floats:
    """Probabilities that are as far from 0 and 1 as that."""
    return np.clip(probabilities, smallest, 1.0 - smallest)
