"""`LogisticModelTree`: the classifier that calibration trees are derived from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ._fitted import storage
from ._fitted.attribute_formulas import AttributeFormulas
from ._fitted.fingerprint import Fingerprint, calibration_hashes
from ._fitted.made import Made
from ._fitted.model import FittedModel
from ._fitted.names import printable
from ._inputs.arrays import Floats
from ._inputs.attributes import refuse_infinity
from ._inputs.indexing import count_rows
from ._inputs.parameters import check_choice, check_flag
from ._inputs.regressors import list_regressors, make_regressors
from ._inputs.scores import ScoreKind
from ._inputs.tables import read_table
from ._inputs.training_rows import LabelledRows, check_labelled_rows
from ._inputs.unseen import Unseen
from ._published_base import PublishedMethod
from ._running import progress
from ._stored_base import StoredEstimator
from ._training.dataset import Dataset
from ._tree_base import TreeEstimator


class LogisticModelTree(ClassifierMixin, PublishedMethod, TreeEstimator, StoredEstimator):
    """A classifier: a small tree with a logistic model over the attributes in each leaf.

    Calibration trees are derived from this method [1]_. It grows a C4.5 tree and prunes it by
    classification errors, as CART does. Each node has a logistic model, which LogitBoost continues
    from the model of its parent, one attribute at a time. A `PublishedCalibrationTree` is grown in
    the same way, but its node models look at the scores of another classifier.

    Parameters
    ----------
    boosting_iterations : "cv" or int, default="cv"
        LogitBoost iterations of a node model, beyond its parent's. "cv" chooses the number at the
        root by cross-validated error; see the notes. If that is 0, every node chooses its own.
    max_boosting_iterations : int, default=200
        The maximum number of iterations that "cv" tries.
    scoring : {"accuracy", "rmse"}, default="accuracy"
        The error by which iterations and pruning are chosen: rows that are classified wrongly, as
        published, or the RMSE of the probabilities.
    min_samples_split : int, default=16
        A node with fewer rows is not split.
    min_samples_leaf : int, default=2
        The minimum number of rows in a branch. It is higher in larger nodes: a tenth of the node's
        rows divided by the number of classes, up to 25.
    max_depth : int, optional
        The maximum number of splits on a path from the root to a leaf; no limit by default.
    cv : int, splitter or iterable of (train, test), default=5
        The folds of every cross-validation. A number makes stratified folds, without shuffling
        unless `random_state` is given.
    ccp_alpha : "cv", float or None, default="cv"
        Cost-complexity pruning: strength chosen by cross-validation, a fixed strength (the gain in
        mean error by which a leaf is kept), or None for no pruning.
    categorical_features : list of names or indices, or boolean mask, optional
        Columns to treat as categorical. Columns of strings, booleans and categories always are.
    drop_identifiers : bool, default=True
        Leave out attributes that look like identifiers, with a warning.
    random_state : int, RandomState instance or None, default=None
        Shuffles the rows before they are divided into folds. None does not shuffle.
    n_jobs : int, optional
        Threads to use for the folds; the result does not depend on it.
    verbose : int, default=0
        1 prints one line for each stage of `fit`, with its time.

    Attributes
    ----------
    classes_ : ndarray
        The labels, sorted; the columns of `predict_proba`.
    n_features_in_ : int
        The number of attributes.
    feature_names_in_ : ndarray of str
        The names of the attributes, if `X` had names.
    boosting_iterations_ : int
        The number of iterations used; 0 if every node chose for itself.
    boosting_errors_ : ndarray or None
        Cross-validated error after 0, 1, 2, ... iterations at the root, if that was chosen.
    ccp_alpha_ : float or None
        The pruning strength used.
    ccp_path_ : tuple of ndarray or None
        The pruning strengths tried and the cross-validated error of each.
    feature_importances_ : ndarray
        The share of each attribute in the gain of all splits on held-out rows; the slopes of node
        models do not count. All 0 if nothing is split. NaN (not measured) if the tree is not pruned
        by cross-validation, because no rows are held out then.
    model_ : FittedModel
        The fitted tree as plain arrays.
    fingerprint_ : Fingerprint
        Hashes of a few training rows.
    made_ : Made
        The version of caltree, the number of rows and, once stored, the time.

    See Also
    --------
    PublishedCalibrationTree : The same tree, with models over the scores of a classifier.
    CalibratedClassifier : Any classifier, such as this one, with calibrated probabilities.

    Notes
    -----
    In node models a nominal attribute of two categories is the indicator of the second, and one of
    more categories has an indicator for each; splits have a branch for each category. Missing
    values count as the mean or the most frequent category of the training rows. Where no attribute
    varies within a node, it predicts the node's class frequencies (with Laplace's correction). The
    number of iterations is chosen once, at the root, and is the same for all nodes, as the paper
    advises for speed. Weights say how many rows each row counts for.

    The paper takes the number of iterations with the fewest wrong rows. Where one class is rare,
    this number may be 0: every row is then assigned to the frequent class, which is nearly always
    right, but all probabilities are one half. So only numbers from 1 on are compared. Every number
    whose share of wrong rows is within one standard error of the lowest counts as good (the rule by
    which CART prunes). Of the good ones, the one with the lowest RMSE is taken. Pruning counts only
    wrong rows, as published.

    References
    ----------
    .. [1] N. Landwehr, M. Hall and E. Frank, "Logistic model trees", Machine Learning 59,
       161-205, 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from caltree import LogisticModelTree
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(600, 2))
    >>> y = np.where(X[:, 0] > 0.5, X[:, 1] > 0, X[:, 1] < 0)
    >>> tree = LogisticModelTree().fit(X, y)
    >>> tree.predict(X[:3])
    array([ True,  True, False])
    >>> print(tree.to_text(decimals=1))
    p: probability of True
    |--- x1 <= -0.00499613  (n=294)
    |   |--- x0 <= 0.48424  (n=210)
    |   |   logit p = 5.1 - 3.4 x0 - 0.75 x1
    |   |--- x0 > 0.48424  (n=84)
    |   |   logit p = -1.7 - 4.2 x0 - 0.23 x1
    |--- x1 > -0.00499613  (n=306)
    |   |--- x0 <= 0.48424  (n=214)
    |   |   logit p = -5 + 3.4 x0 - 0.75 x1
    |   |--- x0 > 0.48424  (n=92)
    |   |   logit p = -0.63 + 4.7 x0 + 1.5 x1
    """

    def __init__(
        self,
        *,
        boosting_iterations: int | Literal["cv"] = "cv",
        max_boosting_iterations: int = 200,
        scoring: Literal["accuracy", "rmse"] = "accuracy",
        min_samples_split: int = 16,
        min_samples_leaf: int = 2,
        max_depth: int | None = None,
        cv: Any = 5,
        ccp_alpha: float | Literal["cv"] | None = "cv",
        categorical_features: Any = None,
        drop_identifiers: bool = True,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.boosting_iterations = boosting_iterations
        self.max_boosting_iterations = max_boosting_iterations
        self.scoring = scoring
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.cv = cv
        self.ccp_alpha = ccp_alpha
        self.categorical_features = categorical_features
        self.drop_identifiers = drop_identifiers
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to attributes and labels.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes: a numpy array, a pandas, polars or pyarrow table, or a scipy sparse
            matrix (which is made dense).
        y : array-like of shape (n,)
            The labels.
        sample_weight : array-like of shape (n,), optional
            How many rows each row counts for.

        Returns
        -------
        self
            The fitted tree.
        """
        self._check_growth()
        check_choice("scoring", self.scoring, ("accuracy", "rmse"))
        check_flag("drop_identifiers", self.drop_identifiers)
        self._check_features(X, y=y)
        rows = check_labelled_rows(y, sample_weight, count_rows(X, "X"))
        with progress.fitting(self, self.verbose):
            dataset = self._make_dataset(X, rows)
            model, errors = self._fit_tree(
                dataset, rows.keep, frequencies=True, scoring=self.scoring
            )
        self.model_, self.boosting_errors_ = model, errors
        self.classes_, self.made_ = rows.classes, Made.of(len(rows.labels))
        self.fingerprint_ = _take_fingerprint(dataset)
        self._set_features()
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Predict probabilities.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.

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
        check_is_fitted(self)
        self._check_features(X, reset=False)
        unseen, attributes = Unseen(), self.model_.attributes
        matrix = attributes.encode(X, unseen)
        refuse_infinity(attributes, matrix)
        probabilities = self.model_.probabilities(matrix, make_regressors(attributes, matrix))
        unseen.warn()
        return np.clip(probabilities, 0.0, 1.0, out=probabilities)

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of the probabilities; minus infinity for 0.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.

        Returns
        -------
        ndarray of shape (n, m)
            One column per class, in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class.

        Parameters
        ----------
        X : table of shape (n, d)
            The attributes, as for `fit`.

        Returns
        -------
        ndarray of shape (n,)
            The labels.
        """
        probabilities = self.predict_proba(X)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def to_text(self, *, max_depth: int | None = None, decimals: int = 2) -> str:
        """The tree in words: its conditions, and the logistic models of its leaves.

        With two classes a node model is one formula, the log-odds of the second class:
        ``logit p = 0.02 + 1.01 age - 0.3 [colour = red]``. Of more classes each has one, such as
        ``ln p[a] = 0.28 + 0.61 age``, and all p are divided by their sum.

        Parameters
        ----------
        max_depth : int, optional
            Show this many levels of conditions.
        decimals : int, default=2
            Coefficients have one digit more than that.

        Returns
        -------
        str
            One line per condition, and one a formula.
        """
        return self._tree_text(max_depth, decimals)

    def formulas(self, decimals: int, spell: Callable[[Any], str] = printable) -> AttributeFormulas:
        """The writer of the tree's formulas; `spell` writes the names of classes."""
        names = [spell(label) for label in self.classes_.tolist()]
        return AttributeFormulas(self.model_, names, decimals)

    def __sklearn_tags__(self) -> Tags:
        """Tags that say which tables it can read."""
        tags = super().__sklearn_tags__()
        for name in ("sparse", "allow_nan", "string", "categorical"):
            setattr(tags.input_tags, name, True)
        return tags

    def _check_features(self, X: Any, **options: Any) -> None:
        """Check the number and the names of attributes, in the words of scikit-learn."""
        if getattr(X, "ndim", 2) != 2:
            read_table(X, "X")  # which says what is wrong
        validate_data(self, X, skip_check_array=True, **options)

    def _make_dataset(self, X: Any, rows: LabelledRows) -> Dataset:
        known, matrix = self._learn_attributes(
            X, rows.keep, rows.weights, self.categorical_features
        )
        return Dataset(
            attributes=known,
            matrix=matrix,
            labels=rows.labels,
            n_classes=len(rows.classes),
            scores=make_regressors(known, matrix),
            offset=None,
            uncalibrated=None,
            weights=rows.weights,
        )

    def _state(self) -> dict[str, Any]:
        return {"chosen": self._chosen_parameters(), "model": self.model_.to_dict()}

    def _restore(self, state: dict[str, Any]) -> None:
        storage.check_state(state, {"chosen", "model"})
        self.model_ = FittedModel.from_dict(state["model"])
        self._check_restored_model()
        if not isinstance(state["chosen"], dict):
            raise ValueError("chosen of a stored tree must be a dict")
        self._restore_chosen(state["chosen"])
        self.boosting_errors_ = None
        self._set_features()

    def _check_restored_model(self) -> None:
        self._check_one_tree()
        model, n_classes = self.model_, len(self.classes_)
        if model.n_classes != n_classes:
            raise ValueError(
                f"a stored tree has {n_classes} classes, but node models of {model.n_classes}"
            )
        n_regressors = max(1, len(list_regressors(model.attributes)))
        if model.n_scores != n_regressors or model.parameters.shape[-1] != 1 + n_regressors:
            raise ValueError(
                f"a stored tree has attributes that give {n_regressors} regressors, but node "
                f"models of {model.n_scores}"
            )
        if self.spread_ is not None:
            raise ValueError("spread of a stored logistic model tree must be null")
        if model.offset or model.uncalibrated_weight > 0.0:
            raise ValueError("a stored logistic model tree has no scores to leave uncalibrated")


def _take_fingerprint(dataset: Dataset) -> Fingerprint:
    no_scores = np.empty((len(dataset.labels), 0))
    kind = ScoreKind(dataset.n_classes, "margin")
    return Fingerprint.of(calibration_hashes(dataset.matrix, dataset.labels, no_scores, kind))
