"""The tables that all learners read: columns of every kind, and columns that say nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_predict

from caltree.paper.learners import SVM, LogitBoost, NaiveBayes

from ..support.trees import make_frame, make_rows

LEARNERS = {
    "naive Bayes": NaiveBayes(),
    "stumps": LogitBoost(5),
    "trees": LogitBoost(5, base="tree", max_depth=2),
    "SVM": SVM(random_state=0),
}


@pytest.fixture(params=LEARNERS.values(), ids=LEARNERS.keys())
def learner(request):
    return clone(request.param)


def answers(model, X) -> np.ndarray:
    return model.decision_function(X) if isinstance(model, SVM) else model.predict_proba(X)


@pytest.fixture
def table():
    return make_table(120)


def make_table(n_rows):
    X, y, _ = make_frame(n_rows)
    return X, np.array(["no", "yes"])[y]


def test_it_is_a_classifier_of_scikit_learn(learner):
    X, y = make_table(240)
    assert is_classifier(learner)
    method = "decision_function" if isinstance(learner, SVM) else "predict_proba"
    held_out = cross_val_predict(learner, X, y, cv=3, method=method)
    assert held_out.shape == ((240,) if isinstance(learner, SVM) else (240, 2))
    assert np.isfinite(held_out).all()
    accuracy = np.mean(cross_val_predict(learner, X, y, cv=3) == y)
    assert accuracy > max(np.mean(y == "no"), np.mean(y == "yes"))


def test_what_fitting_leaves_behind(learner, table):
    X, y = table
    fitted = learner.fit(X, y)
    assert fitted is learner
    assert list(learner.classes_) == ["no", "yes"]
    assert learner.n_features_in_ == 6
    assert list(learner.feature_names_in_) == list(X.columns)
    assert set(learner.predict(X)) == {"no", "yes"}
    learner.fit(X[["number"]].to_numpy(), y)
    assert learner.n_features_in_ == 1
    assert not hasattr(learner, "feature_names_in_")


def test_probabilities_sum_to_one(learner):
    X, y, _ = make_rows(150, n_classes=4)
    learner.fit(X, y)
    if isinstance(learner, SVM):
        assert learner.decision_function(X).shape == (150, 4)
    else:
        np.testing.assert_allclose(learner.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(learner.predict(X), answers(learner, X).argmax(axis=1))


def test_arrays_and_frames_are_the_same(learner):
    X, y, _ = make_rows(80)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    as_array = answers(clone(learner).fit(X, y), X)
    np.testing.assert_array_equal(as_array, answers(learner.fit(frame, y), frame))


def test_the_input_stays_as_it_is(learner):
    X, y, _ = make_rows(80)
    X[::7, 1] = np.nan
    before = X.copy()
    answers(learner.fit(X, y), X)
    np.testing.assert_array_equal(X, before)


def test_an_unseen_category_counts_as_the_most_frequent(learner, table):
    X, y = table
    learner.fit(X, y)
    unseen, frequent = X.copy(), X.copy()
    unseen["colour"] = "violet"
    frequent["colour"] = X["colour"].mode()[0]
    np.testing.assert_array_equal(answers(learner, unseen), answers(learner, frequent))


@pytest.mark.parametrize(
    ("column", "later"),
    [
        (np.nan, 3.0),
        (3.0, 3.0),
        (pd.Categorical([None] * 120), "something"),
        ("only", "only"),
        (pd.Categorical(["only", None] * 60), "only"),
    ],
    ids=["all missing", "constant", "no category", "one category", "one or missing"],
)
def test_columns_that_say_nothing_change_nothing(learner, table, column, later):
    X, y = table
    plain = answers(clone(learner).fit(X, y), X)
    learner.fit(X.assign(more=column), y)
    np.testing.assert_allclose(answers(learner, X.assign(more=later)), plain, rtol=1e-9)


def test_a_fit_comes_first(learner, table):
    with pytest.raises(NotFittedError):
        learner.predict(table[0])


def test_errors_of_tables_and_labels(learner, table):
    X, y = table
    with pytest.raises(ValueError, match="y has 119 labels"):
        learner.fit(X, y[:-1])
    with pytest.raises(ValueError, match="one class only"):
        learner.fit(X, np.zeros(120))
    learner.fit(X, y)
    with pytest.raises(ValueError, match=r"lacks \['flag'\]"):
        learner.predict(X.drop(columns="flag"))
