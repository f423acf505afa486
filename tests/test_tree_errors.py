"""Errors name the argument, what is wrong with it and what to do."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, StratifiedKFold

from caltree import CalibrationTree, PublishedCalibrationTree

from .support.trees import FIXED, fixed_boosted_tree, fixed_tree, make_rows, same_tree

NAN = float("nan")
X, Y, SCORES = make_rows(60)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
ONES = np.ones(60)


def changed(values, row, value):
    """A copy of an array or list with one item replaced."""
    copy = list(values) if isinstance(values, list) else np.array(values)
    copy[row] = value
    return copy


def with_column(values):
    return FRAME.assign(c=values)


BAD_DATA = {
    # X
    "X is None": ({"X": None}, TypeError, "X must be .* got NoneType"),
    "X is a number": ({"X": 3}, TypeError, "X must be .* got int"),
    "X is lazy": ({"X": pl.LazyFrame({"a": [1]})}, TypeError, "X is a lazy .*collect it"),
    "X is a dict": ({"X": dict.fromkeys(range(60))}, TypeError, "X must be .*got dict"),
    "X is flat": ({"X": X[:, 0]}, ValueError, r"X must have rows and columns.*reshape"),
    "X is deep": ({"X": X[:, :, None]}, ValueError, "X must have rows and columns"),
    "X is ragged": ({"X": [[1], [1, 2]] * 30}, ValueError, "X must be a list of rows of one"),
    "X has no columns": ({"X": X[:, :0]}, ValueError, r"X has 0 feature\(s\)"),
    "X is complex": ({"X": X + 0j}, ValueError, "Complex data not supported: X is of"),
    "X is masked": ({"X": np.ma.array(X)}, TypeError, "X is a masked array; use X.filled"),
    "X is infinite": ({"X": changed(X, (7, 1), np.inf)}, ValueError, r"X .*infinity.*'x1' \(row 7"),
    "X has lists": ({"X": with_column([[1]] * 60)}, TypeError, "'c' of X.* list"),
    "X has dates": (
        {"X": with_column([datetime.datetime(2020, 1, 1)] * 60)},
        TypeError,
        "'c' of X.*numbers or strings",
    ),
    "X mixes types": ({"X": with_column(["a", 1] * 30)}, TypeError, "'c' of X has a int in row 1"),
    "X has twin names": (
        {"X": pd.DataFrame(X, columns=["a", "a", "b"])},
        ValueError,
        "X has duplicate column names; rename them",
    ),
    # y
    "y is None": ({"y": None}, ValueError, "calibration requires y to be passed"),
    "y is complex": ({"y": Y + 0j}, ValueError, "Complex data not supported: y has labels"),
    "y is a number": ({"y": 1}, ValueError, "y must have one label per row, got a int"),
    "y is short": ({"y": Y[:-1]}, ValueError, "y has 59 labels, but X has 60 rows"),
    "y is wide": ({"y": np.eye(2)[Y]}, ValueError, r"y must have one label per row.*\(60, 2\)"),
    "y is ragged": ({"y": [[1], [1, 2]] * 30}, ValueError, "y must have one label per row"),
    "y is masked": ({"y": np.ma.array(Y)}, TypeError, "y is a masked array; drop"),
    "y has NaN": ({"y": changed(Y.astype(float), 4, NAN)}, ValueError, "y .*missing.*row 4; drop"),
    "y has None": ({"y": changed(Y.tolist(), 4, None)}, ValueError, "y .*missing label in row 4"),
    "y has NA": (
        {"y": pd.Series(changed(Y.tolist(), 4, pd.NA), dtype="Int64")},
        ValueError,
        "y contains a missing label in row 4",
    ),
    "y has NA among strings": (
        {"y": pd.Series(["a", "b", pd.NA] * 20, dtype="string")},
        ValueError,
        "y contains a missing label in row 2",
    ),
    "y has null": ({"y": pl.Series([None, 0, 1] * 20)}, ValueError, "y .*missing label in row 0"),
    "y has NaT": ({"y": [pd.NaT, "a", "b"] * 20}, ValueError, "y .*missing label in row 0"),
    "y has one class": ({"y": ["a"] * 60}, ValueError, "y contains one class only, 'a'; "),
    "y is measured": ({"y": Y / 2}, ValueError, "y contains 0.5 .*continuous.*classes first"),
    "y is infinite": ({"y": np.where(Y, np.inf, 0)}, ValueError, "y contains inf in row"),
    "y mixes types": ({"y": [1, "a"] * 30}, TypeError, "y has a str in row 1; labels must be all"),
    "y mixes objects": (
        {"y": np.array(["a", 1] * 30, dtype=object)},
        TypeError,
        "y has a int in row 1; labels must be all",
    ),
    "y has lists": (
        {"y": pd.Series([[1], [2, 3]] * 30)},
        TypeError,
        "y has a list in row 0; labels must be all",
    ),
    "y has dates": ({"y": Y.astype("M8[D]")}, TypeError, r"y .*datetime64\[D\]; turn them into"),
    "y has bytes": ({"y": Y.astype("S1")}, TypeError, r"y has labels of type \|S1; turn them into"),
    "y has too many classes": (
        {"X": np.zeros((2**16, 1)), "y": np.arange(2**16)},
        ValueError,
        "y has 65536 classes; at most 65535",
    ),
    # scores
    "scores is None": ({"scores": None}, TypeError, "scores is missing: .* CalibratedClassifier"),
    "scores is short": ({"scores": SCORES[1:]}, ValueError, "scores has 59 rows, but X has 60"),
    "scores has NaN": (
        {"scores": changed(SCORES, (5, 1), NAN)},
        ValueError,
        "scores .*NaN in row 5",
    ),
    "scores is infinite": (
        {"scores": changed(SCORES, (5, 1), np.inf)},
        ValueError,
        "scores contains infinity in row 5, column 1",
    ),
    "scores are strings": ({"scores": SCORES.astype(str)}, TypeError, "scores must be numbers"),
    "scores has words": ({"scores": [["a", "b"]] * 60}, TypeError, "scores must be numbers"),
    "scores is narrow": (
        {"scores": SCORES[:, :1], "y": np.arange(60) % 3},
        ValueError,
        "scores has 1 columns, but y has 3 classes; give one column per class",
    ),
    "scores is wide": (
        {"scores": np.ones((60, 3))},
        ValueError,
        "scores has 3 columns, but y has 2 classes; give one column for the second",
    ),
    "scores is empty": ({"scores": np.ones((60, 0))}, ValueError, "scores has 0 columns"),
    "scores is deep": ({"scores": np.ones((60, 2, 2))}, ValueError, r"scores .*\(60, 2, 2\)"),
    "scores is masked": ({"scores": np.ma.array(SCORES)}, TypeError, "scores is a masked array"),
    "scores is ragged": ({"scores": [[1], [1, 2]] * 30}, ValueError, "scores must be a list"),
    # sample_weight
    "weight is one number": ({"sample_weight": 1.0}, ValueError, r"sample_weight .*shape \(\)"),
    "weight is short": ({"sample_weight": ONES[1:]}, ValueError, r"sample_weight .*\(59,\)"),
    "weight is wide": ({"sample_weight": ONES[:, None]}, ValueError, r"sample_weight .*\(60, 1\)"),
    "weight is negative": (
        {"sample_weight": changed(ONES, 3, -2)},
        ValueError,
        "sample_weight contains the negative weight -2 in row 3; use 0",
    ),
    "weight is NaN": ({"sample_weight": changed(ONES, 3, NAN)}, ValueError, "sample_weight .*nan"),
    "weight is infinite": (
        {"sample_weight": changed(ONES, 3, np.inf)},
        ValueError,
        "sample_weight contains inf in row 3",
    ),
    "weight overflows": ({"sample_weight": ONES * 1e308}, ValueError, "sample_weight .*rescale"),
    "weight is nothing": ({"sample_weight": 0 * ONES}, ValueError, "sample_weight is zero in"),
    "weight is text": ({"sample_weight": ["1"] * 60}, TypeError, "sample_weight must be numbers"),
    "weight has None": ({"sample_weight": [None] * 60}, ValueError, "sample_weight contains nan"),
    "weight has NA": (
        {"sample_weight": np.array([pd.NA] * 60, dtype=object)},
        TypeError,
        "sample_weight must be numbers",
    ),
    "weight is masked": (
        {"sample_weight": np.ma.array(ONES)},
        TypeError,
        "sample_weight is a mask",
    ),
    "weight leaves one class": ({"sample_weight": Y}, ValueError, "y contains one class only, 1"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data(case):
    bad, error, message = BAD_DATA[case]
    data = {"X": X, "y": Y, "scores": SCORES, **bad}
    tree = fixed_tree()
    before = vars(tree).copy()
    with pytest.raises(error, match=f"^{message}|^attribute {message}"):
        tree.fit(**data)
    assert vars(tree) == before


@pytest.mark.parametrize(
    ("n_rows", "message"),
    [(0, "y is empty; give"), (1, "y contains one class only"), (4, "cv=5 needs at least 5 rows")],
)
def test_too_few_rows(n_rows, message):
    with pytest.raises(ValueError, match=message):
        CalibrationTree().fit(X[:n_rows], [0, 1, 0, 1][:n_rows], SCORES[:n_rows])


@pytest.mark.parametrize("make", [fixed_tree, fixed_boosted_tree])
def test_few_rows_will_do_where_nothing_is_chosen(make):
    tree = make().fit(X[:2], [0, 1], SCORES[:2])
    assert tree.predict_proba(X, SCORES).shape == (60, 2)


NO_COUNT = [True, "two", NAN, np.inf, 1.5, 2.0, [], -1, 10**30]
NO_SIZE = [True, "two", NAN, np.inf, [], -1, -0.5, 10**400, 1j]
BAD_PARAMS = [
    ("max_depth", NO_COUNT, "max_depth must be None or a whole number from 0"),
    (
        "min_samples_split",
        [1, 1.9, 8.0, None, *NO_COUNT],
        "min_samples_split must be a whole number from 2",
    ),
    (
        "min_samples_leaf",
        [0, 0.1, 2.5, None, *NO_COUNT],
        "min_samples_leaf must be a whole number from 1",
    ),
    ("max_leaf_nodes", [0, 1, *NO_COUNT], "max_leaf_nodes must be None or a whole number from 2"),
    (
        "kept_gain",
        [0, 0.0, 1.5, *NO_SIZE],
        "kept_gain must be None or a number above 0 and up to 1",
    ),
    (
        "tree_method",
        [None, True, "approx", 1, []],
        "tree_method must be one of 'auto', 'exact', 'hist'",
    ),
    ("path_averaging", [None, 0, 1, "yes", [], NAN], "path_averaging must be True or False"),
    ("scoring", [None, "mse", 1, []], "scoring must be one of 'rmse', 'log_loss'"),
    ("l2_regularization", [0, -0.0, None, *NO_SIZE], "l2_regularization must be a number from "),
    ("do_no_harm", [None, 0, 1, "yes", [], NAN], "do_no_harm must be True or False"),
    ("max_bins", [0, 1, None, *NO_COUNT], "max_bins must be a whole number from 2"),
    ("max_bins", [65_535, 1_000_000], "max_bins must be at most 65534"),
    ("score_type", [None, True, "odds", 1], "score_type must be one of 'auto', 'probability'"),
    ("n_jobs", [0, "all", 1.5, True, NAN, 10**30], "n_jobs must be None, a number of threads"),
    (
        "cv",
        [None, True, "5", 2.5, NAN, object(), [3], [(1, 2, 3)], LeaveOneOut],
        "cv must be a number of folds, a splitter or",
    ),
    ("cv", [0, 1, -5, 10**30], "cv must be a whole number from 2"),
    ("cv", [KFold(61), StratifiedKFold(59), GroupKFold(3)], "cv .* cannot split 60 rows: "),
    (
        "cv",
        [[(0, 1)], [([], [1])], [([0.5], [1])], [([0], [60])], [([0], [-1])], [([[0]], [[1]])]],
        "cv gives no valid row numbers for fold 0; .* from 0 to 59",
    ),
    ("cv", [[]], "cv gives no folds"),
    ("cv", [61], "cv=61 needs at least 61 rows, got 60; use fewer folds"),
    ("random_state", ["seed", -1, 1.5, 2**40, object()], "random_state must be None, a whole numb"),
    ("categorical_features", [3, 1.5], r"categorical_features must be a list; use \["),
    ("categorical_features", ["a"], r"categorical_features must be a list; use \['a'\]"),
    ("categorical_features", [[3], [-1]], "categorical_features has the index"),
    ("categorical_features", [["a"]], "categorical_features names 'a', which is not"),
    ("categorical_features", [[True]], "categorical_features is a mask of length 1"),
    ("categorical_features", [[None], [1.5]], "categorical_features must hold"),
]
BAD_PUBLISHED_PARAMS = [
    *[bad for bad in BAD_PARAMS if bad[0] in PublishedCalibrationTree().get_params()],
    (
        "boosting_iterations",
        [0, None, *NO_COUNT],
        "boosting_iterations must be 'cv' or a whole number from 1",
    ),
    (
        "max_boosting_iterations",
        [0, None, *NO_COUNT],
        "max_boosting_iterations must be a whole number from 1",
    ),
    (
        "constant_scores",
        [None, True, "keep", 1, []],
        "constant_scores must be one of 'ignore', 'frequencies'",
    ),
]


@pytest.mark.parametrize(
    ("cls", "name", "value", "message"),
    [
        (cls, name, value, message)
        for cls, bad in (
            (CalibrationTree, BAD_PARAMS),
            (PublishedCalibrationTree, BAD_PUBLISHED_PARAMS),
        )
        for name, values, message in bad
        for value in values
    ],
    ids=lambda value: getattr(value, "__name__", str(value).partition(" at 0x")[0][:30]),
)
def test_bad_parameters(cls, name, value, message):
    tree = cls(**{name: value})
    before = vars(tree).copy()
    with pytest.raises((ValueError, TypeError), match=f"^{message}") as caught:
        tree.fit(X, Y, SCORES)
    assert vars(tree) == before
    assert len(str(caught.value)) < 400


def test_a_score_that_is_no_probability():
    with pytest.raises(ValueError, match=r"scores contains 1.2 in row 5, column 1, .*score_type="):
        fixed_tree(score_type="probability").fit(X, Y, changed(SCORES, (5, 1), 1.2))
    tree = fixed_tree().fit(X, Y, SCORES)
    with pytest.raises(ValueError, match=r"scores contains -0.1 in row 0, column 0"):
        tree.predict_proba(X[:1], [[-0.1, 1.1]])


FITTED = fixed_tree().fit(FRAME, Y, SCORES)
BAD_NEWS = {
    "missing": (FRAME[["a", "b"]], SCORES, r"X lacks \['c'\], which the"),
    "renamed": (FRAME.rename(columns={"c": "d"}), SCORES, r"\['c'\], .*it has \['d'\] instead"),
    "too narrow": (X[:, :2], SCORES, "X has 2 attributes, but the calibrator was fitted with 3"),
    "flat": (X[:, 0], SCORES, "X must have rows and columns"),
    "short scores": (FRAME, SCORES[1:], "scores has 59 rows, but X has 60"),
    "four columns of scores": (FRAME, np.hstack([SCORES] * 2), "scores has 4 .* fitted with 2"),
    "three columns of scores": (FRAME, np.ones((60, 3)), "scores has 3 columns"),
    "NaN": (FRAME, SCORES * NAN, "scores contains NaN in row 0"),
}


@pytest.mark.parametrize("case", BAD_NEWS)
def test_bad_new_rows(case):
    X_new, scores, message = BAD_NEWS[case]
    with pytest.raises(ValueError, match=message):
        FITTED.predict_proba(X_new, scores)


def test_strings_for_numbers():
    with pytest.raises(TypeError, match=r"'c' of X holds strings, but .* with numbers; convert"):
        FITTED.predict_proba(FRAME.assign(c="one"), SCORES)


@pytest.mark.parametrize("fitted", [FRAME, X], ids=["with", "without"])
def test_names_that_come_or_go_warn(fitted):
    tree = fixed_tree().fit(fitted, Y, SCORES)
    other = X if fitted is FRAME else FRAME
    with pytest.warns(UserWarning, match="feature names, but the calibrator was fitted with"):
        probabilities = tree.predict_proba(other, SCORES)
    assert np.array_equal(probabilities, tree.predict_proba(fitted, SCORES))


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_depth", -1), ("max_depth", "all"), ("decimals", -1), ("decimals", 1.5)],
)
def test_bad_text(name, value):
    with pytest.raises(ValueError, match=f"^{name} must be "):
        FITTED.to_text(**{name: value})


@pytest.mark.parametrize(
    "bad",
    [
        {"X": changed(X, (7, 1), np.inf)},
        {"y": ["a"] * 60},
        {"scores": SCORES * NAN},
        {"sample_weight": -ONES},
    ],
)
def test_a_failed_fit_leaves_a_fitted_tree_as_it_was(bad):
    tree = fixed_tree().fit(FRAME, np.array(["no", "yes"])[Y], SCORES)
    before = vars(tree).copy()
    with pytest.raises(ValueError):
        tree.fit(**{"X": X, "y": Y, "scores": SCORES, **bad})
    assert vars(tree) == before
    assert same_tree(tree, FITTED)


def test_an_interrupted_fit_leaves_a_fitted_tree_as_it_was(monkeypatch):
    tree = fixed_tree().fit(FRAME, Y, SCORES)
    before = vars(tree).copy()

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("caltree.tree.fit_tree", interrupt)
    with pytest.raises(KeyboardInterrupt):
        tree.fit(X, 1 - Y, SCORES)
    assert vars(tree) == before


def test_labels_that_json_lacks_cannot_be_stored():
    tree = CalibrationTree(**FIXED).fit(X, Y.astype(np.longdouble), SCORES)
    with pytest.raises(TypeError, match=r"classes of type longdouble cannot be stored .*fit with"):
        tree.to_dict()
