"""Logistic model trees: scikit-learn's checks, cases by hand, and the tree they are built on."""

import json
from importlib import resources

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import caltree
from caltree import CalibratedClassifier, LogisticModelTree, PublishedCalibrationTree
from caltree._calibrators import read_calibrator
from caltree._inputs.attributes import learn
from caltree._inputs.regressors import make_regressors
from caltree.plot import plot_tree

from . import spec
from .support.marks import new_values
from .support.trees import make_frame

FIXED = {"boosting_iterations": 1, "ccp_alpha": None}
SCHEMA = json.loads(
    (resources.files("caltree") / "schema" / "calibrator.schema.json").read_text(encoding="utf-8")
)


@parametrize_with_checks([LogisticModelTree()])
def test_it_passes_every_check_of_a_classifier(estimator, check):
    check(estimator)


# By hand


def shares(*groups):
    """One column, the number of the group, and labels: of each group (rows, rows of class 1)."""
    X = np.repeat(np.arange(len(groups)), [n_rows for n_rows, _ in groups])[:, np.newaxis]
    y = np.concatenate([np.arange(n_rows) < ones for n_rows, ones in groups]).astype(int)
    return X, y


def test_one_iteration():
    """All p are 1/2, so z is 2 or -2, and the line over 0 and 1 meets the means, 4 f - 2."""
    X, y = shares((8, 2), (8, 6))
    tree = LogisticModelTree(**FIXED, max_depth=0).fit(X, y)
    assert tree.predict_proba([[0], [1]])[:, 1] == pytest.approx(expit([-1.0, 1.0]))
    assert tree.predict([[0], [1]]).tolist() == [0, 1]
    assert tree.to_text() == "p: probability of 1\nall rows  (n=16)\nlogit p = -1 + 2 x0"


def test_where_no_attribute_varies_a_leaf_answers_its_frequencies():
    X, y = shares((10, 2), (10, 9))
    tree = LogisticModelTree(**FIXED).fit(np.array(["a", "b"])[X], y)
    assert tree.get_n_leaves() == 2
    assert tree.predict_proba([["a"], ["b"]])[:, 1] == pytest.approx([3 / 12, 10 / 12])


def test_a_split_that_saves_no_wrong_row_is_pruned():
    """Both groups have fewer ones than zeros: 7 rows are wrong with a split and without."""
    X, y = shares((20, 6), (20, 1))
    pruned = {**FIXED, "ccp_alpha": 0.0}
    assert LogisticModelTree(**pruned).fit(X, y).get_n_leaves() == 1
    assert LogisticModelTree(**pruned, scoring="rmse").fit(X, y).get_n_leaves() == 2


def test_the_errors_are_shares_of_wrong_rows():
    """The model of no iteration says class 0: a third of the rows of each fold is wrong."""
    X, y = shares((60, 0), (30, 30))
    tree = LogisticModelTree().fit(X, y)
    assert tree.boosting_errors_[:2] == pytest.approx([1 / 3, 0.0])
    assert tree.ccp_path_[1].tolist() == [0.0]


def test_of_equally_few_wrong_rows_the_lowest_rmse_counts():
    """One iteration gets all rows right; more of them are also sure of it."""
    X, y = shares((60, 0), (30, 30))
    assert LogisticModelTree(**FIXED, max_depth=0).fit(X, y).predict_proba([[1]])[0, 1] < 0.9
    assert LogisticModelTree().fit(X, y).predict_proba([[0], [1]])[:, 1] == pytest.approx([0, 1])


def test_a_rare_class_has_a_small_probability():
    """Whatever the iterations, 10 of 200 rows are wrong: this alone would ask for none of them."""
    X, y = shares((100, 2), (100, 8))
    tree = LogisticModelTree().fit(X, y)
    assert np.ptp(tree.boosting_errors_) == pytest.approx(0.0)
    assert tree.predict_proba([[0], [1]])[:, 1] == pytest.approx([0.02, 0.08], abs=0.005)


def test_the_order_of_the_classes_does_not_matter():
    """Without any iteration the first class is taken for right, here in 97 of 100 rows."""
    random = np.random.default_rng(7)
    X, y = random.standard_cauchy((100, 4)) ** 3, np.zeros(100, dtype=int)
    y[random.choice(100, 3, replace=False)] = 1
    tree, mirrored = LogisticModelTree().fit(X, y), LogisticModelTree().fit(X, 1 - y)
    lowest = 0.03 + np.sqrt(0.03 * 0.97 / 100)
    assert tree.boosting_errors_[0] == pytest.approx(0.03)
    assert tree.boosting_errors_[1:].min() > lowest
    assert tree.boosting_iterations_ == mirrored.boosting_iterations_ > 0
    assert tree.predict_proba(X) == pytest.approx(mirrored.predict_proba(X)[:, ::-1])


def test_attributes_become_numbers_and_indicators():
    frame = pd.DataFrame(
        {
            "size": [1.0, None, 5.0, 3.0],
            "colour": ["red", "blue", None, "red"],
            "tone": ["a", "b", "c", "c"],
            "one": ["x"] * 4,
        }
    )
    known, matrix = learn(frame)
    assert make_regressors(known, matrix).tolist() == [
        [1.0, 1.0, 1.0, 0.0, 0.0],
        [3.0, 0.0, 0.0, 1.0, 0.0],
        [5.0, 1.0, 0.0, 0.0, 1.0],
        [3.0, 1.0, 0.0, 0.0, 1.0],
    ]


# The tree behind it


def rows(n_rows=160, n_classes=3, seed=0, lowest=-0.7):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4)).round(2)
    X[:, 3] = random.integers(0, 4, n_rows)
    signal = np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) + (X[:, 3] == 2)
    y = np.digitize(
        signal + 0.3 * random.normal(size=n_rows), np.linspace(lowest, 1.2, n_classes - 1)
    )
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("scoring", ["accuracy", "rmse"])
@pytest.mark.parametrize("lowest", [-0.7, 1.0])  # with 1, most rows are of the first class
def test_it_is_the_specified_tree_of_its_regressors(n_classes, scoring, lowest):
    X, y = rows(n_classes=n_classes, lowest=lowest)
    tree = LogisticModelTree(
        max_boosting_iterations=8, cv=3, scoring=scoring, categorical_features=[3]
    ).fit(X, y)
    regressors = make_regressors(*learn(X, categorical_features=[3]))
    expected = spec.published_tree(
        X,
        y,
        regressors,
        [0, 0, 0, 4],
        n_classes,
        max_boosting_iterations=8,
        n_folds=3,
        by_wrong_rows=scoring == "accuracy",
    )
    assert tree.boosting_iterations_ == expected.boosting_iterations
    assert tree.boosting_errors_ == pytest.approx(expected.iteration_error / 3)
    assert tree.ccp_alpha_ == pytest.approx(expected.alpha)
    assert tree.predict_proba(X) == pytest.approx(expected.predict_proba(X, regressors), abs=1e-6)


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # attributes are no scores of classes
def test_it_is_the_published_calibration_tree_with_its_regressors_as_scores():
    frame, y, _ = make_frame(300)
    settings = {"max_boosting_iterations": 15, "cv": 3}
    tree = LogisticModelTree(scoring="rmse", **settings).fit(frame, y)
    regressors = make_regressors(*learn(frame))
    published = PublishedCalibrationTree(
        score_type="margin", constant_scores="frequencies", **settings
    ).fit(frame, y, scores=regressors)
    assert tree.boosting_iterations_ == published.boosting_iterations_
    assert np.array_equal(tree.boosting_errors_, published.boosting_rmse_)
    assert tree.ccp_alpha_ == published.ccp_alpha_
    assert np.array_equal(tree.apply(frame), published.apply(frame))
    assert np.array_equal(tree.predict_proba(frame), published.predict_proba(frame, regressors))
    assert np.array_equal(tree.feature_importances_, published.feature_importances_)


# Tables and weights


def test_missing_values_count_as_means_and_modes():
    frame = pd.DataFrame({"size": [0.0, 2.0, None] * 20, "tone": ["a", "a", "b"] * 20})
    y = [0, 1, 1] * 20
    tree = LogisticModelTree(**FIXED).fit(frame, y)
    empty = pd.DataFrame({"size": [None], "tone": [None]}, dtype=object)
    filled = pd.DataFrame({"size": [1.0], "tone": ["a"]})
    with pytest.warns(UserWarning, match="'tone': missing in 1 row, though never in training"):
        probabilities = tree.predict_proba(empty)
    assert np.array_equal(probabilities, tree.predict_proba(filled))


@new_values
def test_a_new_category_counts_as_the_most_frequent_one():
    X, y = shares((10, 2), (12, 9), (10, 5))
    tree = LogisticModelTree(**FIXED).fit(np.array(["a", "b", "c"])[X], y)
    assert np.array_equal(tree.predict_proba([["z"]]), tree.predict_proba([["b"]]))


def test_attributes_without_any_value_to_tell_rows_apart():
    tree = LogisticModelTree().fit(np.full((20, 1), "same"), [0] * 15 + [1] * 5)
    assert tree.predict_proba([["same"]])[0] == pytest.approx([16 / 22, 6 / 22])
    assert tree.to_text().endswith("logit p = -0.981")


def test_a_weight_counts_rows():
    X, y = rows(80, 2)
    weights = np.random.default_rng(1).integers(0, 4, 80)
    weighted = LogisticModelTree(**FIXED).fit(X, y, weights)
    repeated = LogisticModelTree(**FIXED).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.get_n_leaves() == repeated.get_n_leaves() > 2
    assert weighted.predict_proba(X) == pytest.approx(repeated.predict_proba(X), abs=1e-9)


def test_identifiers_are_left_out():
    X, y = rows(60, 2)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(name=[f"n{i}" for i in range(60)])
    with pytest.warns(UserWarning, match="'name' looks like an identifier .* and is left out"):
        tree = LogisticModelTree(**FIXED).fit(frame, y)
    assert tree.model_.n_scores == 2
    assert LogisticModelTree(**FIXED, drop_identifiers=False).fit(frame, y).model_.n_scores == 62


def test_it_can_be_calibrated_like_any_classifier():
    X, y = rows(120)
    model = CalibratedClassifier(LogisticModelTree(**FIXED), "temperature", cv=KFold(2)).fit(X, y)
    assert model.predict_proba(X).shape == (120, 3)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scoring": "log_loss"}, "scoring must be one of 'accuracy', 'rmse'"),
        ({"boosting_iterations": 0}, "boosting_iterations must be 'cv' or a whole number from 1"),
        ({"drop_identifiers": 1}, "drop_identifiers must be True or False, got 1"),
        ({"cv": 1}, "cv"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        LogisticModelTree(**params).fit(*rows(40))


def test_infinite_values_are_refused():
    X, y = rows(40)
    tree = LogisticModelTree(**FIXED).fit(X, y)
    X[3, 1] = np.inf
    for use in (lambda: tree.fit(X, y), lambda: tree.predict(X)):
        with pytest.raises(ValueError, match=r"infinity in attribute 'x1' \(row 3\)"):
            use()


# What is read from it


@pytest.fixture
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    frame = X.set_axis(["sepal length", "sepal width", "length", "width"], axis=1)
    frame["long"] = np.where(frame["length"] > 3, "yes", "no")
    names = np.array(["setosa", "versicolor", "virginica"])
    return frame, names[y], LogisticModelTree(boosting_iterations=3, ccp_alpha=None, max_depth=1)


def test_ways_and_leaves(iris):
    frame, y, tree = iris
    tree.fit(frame, y)
    leaves, ways = tree.apply(frame), tree.decision_path(frame)
    assert ways.shape == (150, tree.model_.n_nodes)
    assert set(leaves) == set(np.flatnonzero(tree.model_.attribute < 0))
    assert (ways.toarray()[np.arange(150), leaves] == 1).all()
    assert (ways.sum(axis=1) == 2).all() and (ways.toarray()[:, 0] == 1).all()
    assert (tree.get_depth(), tree.get_n_leaves()) == (1, 2)


def test_formulas_say_what_is_predicted(iris):
    frame, y, tree = iris
    tree.fit(frame, y)
    formulas = [line for line in tree.to_text(decimals=12).splitlines() if "ln p" in line]
    assert len(formulas) == 6
    row = frame.iloc[[0]]
    names = {"[long = yes]": "0.0"} | {name: str(row[name].item()) for name in frame.columns[:4]}
    log_odds = []
    for line in formulas[:3]:
        right = line.split(" = ", 1)[1]
        for name, value in names.items():
            right = right.replace(f" {name}", f" * {value}")
        log_odds.append(eval(right))
    found = np.exp(log_odds) / np.exp(log_odds).sum()
    assert tree.predict_proba(row)[0] == pytest.approx(found, abs=1e-9)


def test_a_picture(iris):
    pytest.importorskip("matplotlib").use("agg")
    frame, y, tree = iris
    ax = plot_tree(tree.fit(frame, y))
    said = "\n".join(text.get_text() for text in ax.texts)
    assert "ln p[setosa]" in said and "n=150" in said
    assert "[a = b]: 1 where that holds, else 0" in said


def test_there_and_back(iris, tmp_path):
    frame, y, tree = iris
    tree.fit(frame, y).save(tmp_path / "tree.json")
    again = caltree.load(tmp_path / "tree.json")
    assert isinstance(again, LogisticModelTree) and again.to_dict() == tree.to_dict()
    assert np.array_equal(again.predict_proba(frame), tree.predict_proba(frame))
    assert again.to_text() == tree.to_text()
    assert again.feature_names_in_.tolist() == frame.columns.tolist()
    stored = json.loads((tmp_path / "tree.json").read_text())
    Draft202012Validator(SCHEMA).validate(stored)
    with pytest.raises(
        ValueError, match="a LogisticModelTree, which is a classifier and not a calibrator"
    ):
        read_calibrator((tmp_path / "tree.json").read_bytes())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.update(score_type="margin"), "must have exactly the keys"),
        (lambda s: s.update(chosen=[]), "chosen of a stored tree must be a dict"),
        (lambda s: s.update(classes=[0, 1, 2, 3]), "4 classes, but node models of 3"),
        (lambda s: s["model"].update(offset=True), "no scores to leave uncalibrated"),
        (lambda s: s.update(spread={"deviations": [0.0] * 13}), "spread .* must be null"),
        (
            lambda s: s["model"]["attributes"]["columns"][4].update(categories=["a", "b", "c"]),
            "attributes that give 7 regressors, but node models of 5",
        ),
    ],
)
def test_malformed_files_are_refused(iris, change, message):
    frame, y, tree = iris
    stored = tree.set_params(max_depth=0).fit(frame, y).to_dict()
    change(stored)
    with pytest.raises(ValueError, match=message):
        LogisticModelTree.from_dict(stored)
