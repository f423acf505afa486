"""Errors of a calibrated classifier: what is wrong and what to do, before anything is trained."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, NuSVC

from caltree import CalibratedClassifier, CalibrationTree, IdentityCalibrator, PlattScaling

from ..support.classifiers import Says, SaysMargins, Told, Untrainable
from ..support.trees import make_rows

NAN = float("nan")
X, Y, SCORES = make_rows(60)
X3, Y3, _ = make_rows(90, n_classes=3)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
ROWS = np.arange(60)
HALVES = [(ROWS[::2], ROWS[1::2]), (ROWS[1::2], ROWS[::2])]


class NoPrediction(BaseEstimator):
    def fit(self, X, y, scores):
        return self


BAD_PARAMS = [
    ("estimator", [None, "logistic", 3, GaussianNB], "estimator must be a classifier or a list"),
    ("estimator", [(GaussianNB(), GaussianNB())], "estimator must be a classifier or a list of"),
    ("estimator", [[Untrainable(), None]], "estimator must be a classifier or a list of class"),
    ("estimator", [[]], "estimator is an empty list; give at least one classifier"),
    (
        "estimator",
        [LinearRegression(), [Untrainable(), LinearRegression()], BaseEstimator],
        "estimator (LinearRegression has neither predict_proba nor|must be) .*classifier",
    ),
    (
        "calibrator",
        [None, 3, CalibrationTree, LogisticRegression(), NoPrediction(), object()],
        r"calibrator must have fit\(X, y, scores\) and predict_proba\(X, scores\), got .*; use",
    ),
    (
        "calibrator",
        ["tea", "Tree", ""],
        "calibrator must be one of 'tree', 'published', 'forest', 'boosting', 'ensemble', "
        "'isotonic', 'smooth_isotonic', 'regularized_isotonic', 'platt', 'robust_platt', "
        "'temperature', 'beta', 'none', got",
    ),
    (
        "calibrator",
        ["sigmoid"],
        "calibrator must be .* got 'sigmoid'; scikit-learn's 'sigmoid' is 'platt' here",
    ),
    (
        "estimator",
        [GaussianNB],
        r"estimator must be .* got the class GaussianNB; use GaussianNB\(\)",
    ),
    ("ensemble", ["auto", None, 1], "ensemble must be True or False, got"),
    ("calibrator", [CalibrationTree(max_depth=-1)], "max_depth must be None or a whole number"),
    ("calibrator", [CalibrationTree(cv=1)], "cv must be a whole number from 2 to"),
    ("calibrator", [PlattScaling(score_type="odds")], "score_type must be one of 'auto', 'prob"),
    (
        "response_method",
        [None, "predict", 1, ["auto"]],
        "response_method must be one of 'auto', 'predict_proba', 'decision_function', got",
    ),
    (
        "response_method",
        ["decision_function"],
        "estimator Untrainable has no decision_function; use .*, or response_method='auto'",
    ),
    ("combine", [None, "mean", 1, []], "combine must be one of 'side_by_side', 'average', got"),
    ("n_jobs", [0, "all", 1.5, True, NAN], "n_jobs must be None, a number of threads, or -1"),
    ("cv", [0, 1, -5, 10**9], "cv must be a whole number from 2 to 1000000, got"),
    (
        "cv",
        [None, True, "five", 2.5, object(), [3], [(1, 2, 3)], KFold(61), GroupKFold(3)],
        "cv must be a number of folds, a splitter or .* cannot split 60 rows: ",
    ),
    ("cv", [[]], "cv gives no folds"),
    (
        "cv",
        [[([], [1])], [([0], [])], [([0], [60])], [([0], [-1])], [([0.5], [1])], [(0, 1)]],
        "cv gives no valid row numbers for fold 0; .* numbers from 0 to 59",
    ),
    (
        "cv",
        [[*HALVES, HALVES[0]], ShuffleSplit(9, random_state=0), [(ROWS[:9], [7, 7])]],
        "cv tests row .* more than once; use folds in which a row is tested at most once",
    ),
    ("cv", [50], "cv=50 needs at least 50 rows of some class, .* than .*; use fewer folds"),
    ("attributes", [[], [False] * 3], r"attributes chooses no column; .*use PlattScaling\(\)"),
    ("attributes", [["d"], lambda table: ["d"]], "attributes names 'd', which is not a column"),
    ("attributes", [[3], [-1]], "attributes has the index .* X has 3 columns; use 0 to 2"),
    ("attributes", [[True]], "attributes is a mask of length 1, .*one boolean per column"),
    ("attributes", ["a", 1], r"attributes must be a list; use \["),
    ("attributes", [[None], [1.5]], "attributes must hold column names, indices or"),
]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [(name, value, message) for name, values, message in BAD_PARAMS for value in values],
    ids=lambda value: str(value).partition(" at 0x")[0][:30],
)
def test_bad_parameters(name, value, message):
    model = CalibratedClassifier(**{"estimator": Untrainable(), name: value})
    before = vars(model).copy()
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        model.fit(FRAME, Y)
    assert vars(model) == before


BAD_DATA = {
    "X is None": ({"X": None}, "X must be a numpy array, .* got NoneType"),
    "X is a number": ({"X": 3}, "X must be a numpy array, .* got int"),
    "y is None": ({"y": None}, "calibration requires y to be passed, but"),
    "y is short": ({"y": Y[1:]}, "y has 59 labels, but X has 60 rows"),
    "y has several outputs": (
        {"y": np.column_stack([Y, Y])},
        r"y must have one label per row, got .*2\)",
    ),
    "y has one class": ({"y": [1] * 60}, "y contains one class only, 1; give rows of"),
    "y is measured": ({"y": Y / 2}, "y contains 0.5 .*; turn measurements into classes first"),
    "y is missing": ({"y": [None, *Y[1:].tolist()]}, "y contains a missing label in row 0; drop"),
    "weight is short": (
        {"sample_weight": [1.0]},
        r"sample_weight must have one weight for each of",
    ),
    "weight is negative": ({"sample_weight": -np.ones(60)}, "sample_weight .*negative.*; use 0 to"),
    "weight is NaN": ({"sample_weight": [NAN] * 60}, "sample_weight contains nan in row 0; use"),
    "weight is nothing": ({"sample_weight": np.zeros(60)}, "sample_weight is zero in every row; g"),
    "weight leaves one class": ({"sample_weight": Y}, "y contains one class only, 1; give rows"),
    "groups are short": (
        {"groups": ROWS[1:]},
        "groups must have one group for each of the 60 rows of X, got 59",
    ),
    "groups are few": (
        {"groups": ROWS % 4},
        "groups has 4 groups, but cv=5 needs at least 5; use fewer folds",
    ),
    "groups are few where weights leave them": (
        {"groups": ROWS % 5, "sample_weight": (ROWS % 5 > 0).astype(float)},
        "groups has 4 groups, but cv=5 needs at least 5; use fewer folds",
    ),
    "scores are given": (
        {"scores": Y},
        "scores cannot be given: .*; to calibrate stored scores, use",
    ),
    "groups are a number": ({"groups": 3}, "groups must be a numpy array, .* got int"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case):
    bad, message = BAD_DATA[case]
    model = CalibratedClassifier(Untrainable())
    before = vars(model).copy()
    with pytest.raises((ValueError, TypeError), match=f"^{message}"):
        model.fit(**{"X": FRAME, "y": Y, **bad})
    assert vars(model) == before


PAIRS = SVC(decision_function_shape="ovo")


@pytest.mark.parametrize(
    "estimator",
    [
        PAIRS,
        NuSVC(decision_function_shape="ovo"),
        make_pipeline("passthrough", PAIRS),
        GridSearchCV(make_pipeline(PAIRS), {}),
        FrozenEstimator(SVC(decision_function_shape="ovo").fit(X3, Y3)),
        FrozenEstimator(make_pipeline(SVC(decision_function_shape="ovo")).fit(X3, Y3)),
        [Untrainable(), PAIRS],
    ],
    ids=lambda each: type(each).__name__,
)
def test_margins_of_pairs_of_classes_are_refused(estimator):
    message = r"estimator \w+ gives margins of pairs of .*; use .* decision_function_shape='ovr'"
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(estimator).fit(X3, Y3)


def test_two_classes_are_one_pair():
    model = CalibratedClassifier(PAIRS, PlattScaling()).fit(X, Y)
    same = CalibratedClassifier(SVC(), PlattScaling()).fit(X, Y)
    assert np.array_equal(model.predict_proba(X), same.predict_proba(X))


def test_a_kernel_cannot_leave_rows_out():
    model = CalibratedClassifier(SVC(kernel="precomputed"))
    with pytest.raises(
        ValueError, match=r"sample_weight is 0 in some rows.* the kernel of SVC; drop"
    ):
        model.fit(X @ X.T, Y, sample_weight=(ROWS > 3).astype(float))


@pytest.mark.parametrize("second", [Y, Y3[:60]], ids=["as many classes", "more classes"])
def test_a_frozen_classifier_of_several_outputs_is_refused(second):
    forest = RandomForestClassifier(2, random_state=0).fit(X, np.column_stack([Y, second]))
    with pytest.raises(ValueError, match=r"estimator .* several outputs; calibrate one label"):
        CalibratedClassifier(FrozenEstimator(forest)).fit(X, Y)


class Answers(Says):
    """Gives an answer that it was told."""

    def __init__(self, answer=None):
        self.answer = answer

    def predict_proba(self, X):
        return self.answer(len(X))


BAD_ANSWERS = {
    "NaN": (
        lambda n: np.where(np.arange(n)[:, None] == 3, NAN, np.full((n, 2), 0.5)),
        r"Answers\.predict_proba gave NaN for row 3; the classifier cannot be calibrated",
    ),
    "margins": (
        lambda n: np.tile([-2.0, 2.0], (n, 1)),
        r"Answers\.predict_proba gave numbers outside \[0, 1\], .*use response_method='decision",
    ),
    "percents": (lambda n: np.tile([40.0, 60.0], (n, 1)), r"Answers\.predict_proba gave numbers"),
    "three columns": (
        lambda n: np.full((n, 3), 1 / 3),
        r"Answers\.predict_proba gave 3 columns for 2 classes; calibration needs one column per",
    ),
    "several outputs": (
        lambda n: [np.full((n, 2), 0.5)] * 2,
        r"Answers\.predict_proba gave several outputs; calibrate one label at a time",
    ),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_answers_that_are_no_scores(case):
    answer, message = BAD_ANSWERS[case]
    with pytest.raises(ValueError, match=f"^{message}"):
        CalibratedClassifier(Answers(answer), IdentityCalibrator()).fit(X, Y)


def test_one_margin_is_too_few_for_three_classes():
    class One(SaysMargins):
        def decision_function(self, X):
            return X[:, 0]

    with pytest.raises(ValueError, match=r"One\.decision_function gave 1 columns for 3 classes"):
        CalibratedClassifier(One(), Told()).fit(X3, Y3)


def test_margins_of_nan_are_refused():
    with pytest.raises(ValueError, match=r"SaysMargins\.decision_function gave NaN for row 0"):
        CalibratedClassifier(SaysMargins(), Told()).fit(X * NAN, Y)


@pytest.mark.parametrize("estimator", [RidgeClassifier(), Perceptron(), SVC(), GaussianNB()])
def test_a_classifier_needs_only_one_of_the_two_methods(estimator):
    model = CalibratedClassifier(estimator, PlattScaling()).fit(X, Y)
    assert model.response_methods_ == [
        "predict_proba" if isinstance(estimator, GaussianNB) else "decision_function"
    ]


def test_groups_may_be_named_in_vain_for_folds_that_need_none():
    with pytest.warns(UserWarning, match="groups parameter is ignored by KFold"):
        CalibratedClassifier(GaussianNB(), PlattScaling(), cv=KFold(2)).fit(X, Y, groups=ROWS)


def test_a_tree_needs_a_table_and_says_who_does_not():
    texts = ["good film", "bad film"] * 30
    with pytest.raises(ValueError, match=r"X must have rows and columns.*PlattScaling\(\) and Iso"):
        CalibratedClassifier(Untrainable()).fit(texts, Y)
    with pytest.raises(TypeError, match=r"X must be a numpy array.* CalibrationTree needs"):
        CalibratedClassifier(Untrainable()).fit(pd.Series(texts), Y)
