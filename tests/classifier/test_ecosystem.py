"""A calibrated classifier goes wherever scikit-learn takes a classifier."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from caltree import (
    CalibratedClassifier,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
)

from ..support.trees import assert_probabilities, fixed_tree, make_frame, make_rows

X, Y, _ = make_rows(120)
FRAME, LABELS, _ = make_frame(150)
NUMBERS = pd.DataFrame(X, columns=["a", "b", "c"])


def naive_bayes(calibrator=None, **params):
    return CalibratedClassifier(GaussianNB(), calibrator or fixed_tree(), cv=3, **params)


def encoded(last):
    """A pipeline that makes numbers of every column before `last`."""
    encoder = ColumnTransformer(
        [
            ("words", OneHotEncoder(handle_unknown="ignore"), ["colour", "size"]),
            ("known", "passthrough", ["known"]),
        ],
        sparse_threshold=0,
    )
    return make_pipeline(encoder, last)


def test_in_a_pipeline_it_is_given_what_the_step_before_made():
    scaler = StandardScaler().fit(X)
    piped = make_pipeline(StandardScaler(), naive_bayes()).fit(X, Y)
    alone = naive_bayes().fit(scaler.transform(X), Y)
    assert np.array_equal(piped.predict_proba(X), alone.predict_proba(scaler.transform(X)))


def test_after_a_column_transformer_the_calibrator_sees_the_new_columns():
    model = encoded(naive_bayes()).fit(FRAME, LABELS)
    assert_probabilities(model.predict_proba(FRAME))
    assert model[-1].calibrator_.n_features_in_ == model[-1].n_features_in_ > len(FRAME.columns)


def test_around_a_column_transformer_the_calibrator_sees_the_table_as_it_came():
    model = CalibratedClassifier(encoded(GaussianNB()), fixed_tree(), cv=3).fit(FRAME, LABELS)
    assert_probabilities(model.predict_proba(FRAME))
    assert model.calibrator_.feature_names_in_.tolist() == FRAME.columns.tolist()


def test_a_search_reaches_the_parameters_of_both():
    grid = {
        "estimator__var_smoothing": [1e-9, 1e-1],
        "calibrator__max_depth": [0, 2],
        "cv": [2, 3],
    }
    search = GridSearchCV(naive_bayes(), grid, scoring="neg_log_loss", cv=2).fit(X, Y)
    best = search.best_estimator_
    assert len(search.cv_results_["params"]) == 8
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert len(set(search.cv_results_["mean_test_score"])) > 1
    assert best.estimator_.var_smoothing == search.best_params_["estimator__var_smoothing"]
    assert best.calibrator_.max_depth == search.best_params_["calibrator__max_depth"]


def test_a_search_chooses_the_calibrator_and_none_is_one_of_them():
    calibrators = [IdentityCalibrator(), PlattScaling(), IsotonicScaling(), fixed_tree(), "tree"]
    search = GridSearchCV(
        naive_bayes(), {"calibrator": calibrators}, scoring="neg_brier_score", cv=2
    ).fit(X, Y)
    names = [type(params["calibrator"]).__name__ for params in search.cv_results_["params"]]
    scores = dict(zip(names, search.cv_results_["mean_test_score"], strict=True))
    alone = cross_val_score(GaussianNB(), X, Y, scoring="neg_brier_score", cv=2).mean()
    assert scores["IdentityCalibrator"] == pytest.approx(alone, rel=1e-12)
    default = cross_val_score(
        CalibratedClassifier(GaussianNB(), CalibrationTree(), cv=3),
        X,
        Y,
        scoring="neg_brier_score",
        cv=2,
    ).mean()
    # So few rows do not show that a tree helps: the default leaves the scores alone, or nearly so.
    assert scores["str"] == pytest.approx(default, rel=1e-12)
    assert scores["str"] == pytest.approx(scores["IdentityCalibrator"], rel=0.01)
    assert type(search.best_params_["calibrator"]).__name__ == max(scores, key=scores.get)


def test_cross_validation_scores_what_a_loop_scores():
    found = cross_val_score(naive_bayes(), X, Y, cv=[(range(80), range(80, 120))])
    model = naive_bayes().fit(X[:80], Y[:80])
    assert found == [np.mean(model.predict(X[80:]) == Y[80:])]


def test_cross_validation_predicts_probabilities():
    assert_probabilities(cross_val_predict(naive_bayes(), X, Y, cv=2, method="predict_proba"))


def test_a_vote_averages_its_probabilities():
    members = [("bayes", naive_bayes()), ("line", LogisticRegression())]
    vote = VotingClassifier(members, voting="soft").fit(X, Y)
    parts = [clone(member).fit(X, Y).predict_proba(X) for _, member in members]
    np.testing.assert_allclose(vote.predict_proba(X), np.mean(parts, axis=0), rtol=1e-12)


def test_a_stack_is_given_its_probabilities():
    stack = StackingClassifier([("bayes", naive_bayes())], LogisticRegression(), cv=2).fit(X, Y)
    assert stack.stack_method_ == ["predict_proba"]
    first = naive_bayes().fit(X, Y).predict_proba(X)[:, 1:]
    np.testing.assert_allclose(stack.transform(X), first, rtol=1e-12)
    assert_probabilities(stack.predict_proba(X))


@pytest.mark.parametrize(("kind", "frame"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_transformers_may_hand_it_frames(kind, frame):
    scaler = StandardScaler().set_output(transform=kind)
    outside = make_pipeline(scaler, naive_bayes()).fit(NUMBERS, Y)
    inside = naive_bayes().set_params(estimator=make_pipeline(scaler, GaussianNB()))
    inside.fit(NUMBERS, Y)
    plain = make_pipeline(StandardScaler(), naive_bayes()).fit(X, Y)
    assert isinstance(outside[0].transform(NUMBERS), frame)
    assert outside[1].calibrator_.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(
        outside.predict_proba(NUMBERS), plain.predict_proba(X), rtol=0, atol=1e-12
    )
    assert_probabilities(inside.predict_proba(NUMBERS))


def test_the_number_of_jobs_changes_nothing():
    one, two = (naive_bayes(n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))


def test_the_number_of_jobs_reaches_the_calibrator_of_the_house():
    model = CalibratedClassifier(GaussianNB(), n_jobs=1, cv=2).fit(X, Y)
    assert isinstance(model.calibrator_, CalibrationTree)
    assert model.calibrator_.n_jobs == 1


PREDICT = """
import pickle, sys, numpy
with open(sys.argv[1], "rb") as file:
    model, X = pickle.load(file)
numpy.save(sys.argv[2], model.predict_proba(X))
"""


def test_another_process_predicts_the_same_digits_from_a_pickle(tmp_path):
    model = naive_bayes(attributes=["c", "a"]).fit(NUMBERS, Y)
    (tmp_path / "model").write_bytes(pickle.dumps((model, NUMBERS)))
    paths = [str(tmp_path / name) for name in ("model", "answer.npy")]
    subprocess.run([sys.executable, "-c", PREDICT, *paths], check=True)
    assert np.array_equal(np.load(paths[1]), model.predict_proba(NUMBERS))


def test_a_clone_has_the_parameters_and_no_memory():
    model = naive_bayes(attributes=[0, 1]).fit(X, Y)
    copy = clone(model)
    assert is_classifier(copy)
    assert not hasattr(copy, "classes_")
    assert copy.estimator is not model.estimator and copy.calibrator is not model.calibrator
    assert np.array_equal(copy.fit(X, Y).predict_proba(X), model.predict_proba(X))


def test_a_clone_of_several_classifiers_is_a_list_of_clones():
    model = CalibratedClassifier([GaussianNB(), LogisticRegression()], PlattScaling(), cv=2)
    copy = clone(model)
    assert [type(each) for each in copy.estimator] == [GaussianNB, LogisticRegression]
    assert copy.estimator[0] is not model.estimator[0]


def test_what_it_was_given_stays_as_it_was():
    estimator, calibrator = GaussianNB(), fixed_tree()
    CalibratedClassifier(estimator, calibrator, cv=2).fit(X, Y, groups=np.arange(120) // 3)
    assert not hasattr(estimator, "classes_") and not hasattr(calibrator, "classes_")
    assert calibrator.cv == 5 and calibrator.score_type == "auto"


CATEGORIES = FRAME.assign(
    colour=FRAME["colour"].astype("category"),
    flag=FRAME["flag"].astype("float"),
    count=FRAME["count"].astype("float"),
)


@pytest.mark.parametrize(
    "estimator",
    [
        LGBMClassifier(verbose=-1, n_estimators=10, n_jobs=1),
        HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=5),
    ],
    ids=["LightGBM", "scikit-learn"],
)
def test_boosting_is_given_categories_and_missing_values_as_they_are(estimator):
    model = CalibratedClassifier(estimator, fixed_tree(), cv=3).fit(CATEGORIES, LABELS)
    bare = clone(estimator).fit(CATEGORIES, LABELS)
    assert np.array_equal(
        model.estimator_.predict_proba(CATEGORIES), bare.predict_proba(CATEGORIES)
    )
    assert_probabilities(model.predict_proba(CATEGORIES))
    assert model.feature_names_in_.tolist() == CATEGORIES.columns.tolist()


def test_it_takes_what_its_classifiers_take():
    takes_nan = CalibratedClassifier(HistGradientBoostingClassifier())
    takes_neither = CalibratedClassifier([HistGradientBoostingClassifier(), GaussianNB()])
    takes_sparse = CalibratedClassifier(LogisticRegression())
    tags = [m.__sklearn_tags__().input_tags for m in (takes_nan, takes_neither, takes_sparse)]
    assert [each.allow_nan for each in tags] == [True, False, False]
    assert [each.sparse for each in tags] == [False, False, True]


def test_columns_may_be_chosen_by_a_selector():
    numbers = make_column_transformer(("passthrough", ["known"]))
    model = CalibratedClassifier(
        make_pipeline(numbers, GaussianNB()),
        fixed_tree(),
        attributes=make_column_selector(dtype_include=["category", "number"]),
        cv=2,
    ).fit(FRAME, LABELS)
    assert model.calibrator_.feature_names_in_.tolist() == ["number", "size", "count"]
