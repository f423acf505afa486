"""The folds of a calibrated classifier: groups, time, and classes that a fold lacks."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from caltree import CalibratedClassifier, CalibrationTree, IdentityCalibrator, PlattScaling

from ..support.classifiers import Says, SaysMargins, Told, Untrainable, recorder
from ..support.trees import assert_probabilities, fixed_tree, make_rows

X, Y, _ = make_rows(120)
ROWS = np.arange(120)
GROUPS = np.random.default_rng(0).permutation(ROWS) // 3


def numbered():
    """A classifier, what it was given, and a table whose first column numbers the rows."""
    return *recorder(), np.column_stack([ROWS, X])


def rows_of(call):
    return call["X"][:, 0].astype(int)


def test_the_calibrator_is_fitted_to_out_of_fold_scores_and_the_classifier_to_all_rows():
    estimator, calls, table = numbered()
    model = CalibratedClassifier(estimator, Told(), cv=4).fit(table, Y)
    expected = cross_val_predict(GaussianNB(), table, Y, cv=4, method="predict_proba")
    assert np.array_equal(model.calibrator_.given_["scores"], expected)
    assert np.array_equal(model.calibrator_.given_["y"], Y)
    assert model.calibrator_.given_["X"] is table
    assert [len(call["X"]) for call in calls] == [90] * 4 + [120]
    whole = GaussianNB().fit(table, Y)
    assert np.array_equal(model.estimator_.predict_proba(table), whole.predict_proba(table))


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(3, shuffle=True, random_state=1),
        KFold(3),
        PredefinedSplit(ROWS % 3),
        [(ROWS[part != ROWS % 3], ROWS[part == ROWS % 3]) for part in range(3)],
        ((ROWS[part != ROWS % 3], ROWS[part == ROWS % 3]) for part in range(3)),
    ],
    ids=["stratified", "KFold", "predefined", "list", "generator"],
)
def test_folds_may_be_given(cv):
    is_generator = not hasattr(cv, "split") and not isinstance(cv, list)
    known = PredefinedSplit(ROWS % 3) if is_generator else cv
    model = CalibratedClassifier(GaussianNB(), Told(), cv=cv).fit(X, Y)
    expected = cross_val_predict(GaussianNB(), X, Y, cv=known, method="predict_proba")
    assert np.array_equal(model.calibrator_.given_["scores"], expected)


@pytest.mark.parametrize("cv", [4, GroupKFold(4), LeaveOneGroupOut()], ids=["4", "K", "each"])
@pytest.mark.parametrize("kind", [np.asarray, list], ids=["array", "list"])
def test_a_group_is_never_on_both_sides_of_a_fold(cv, kind):
    estimator, calls, table = numbered()
    CalibratedClassifier(estimator, PlattScaling(), cv=cv).fit(table, Y, groups=kind(GROUPS))
    *folds, whole = [set(rows_of(call)) for call in calls]
    assert len(folds) == (40 if isinstance(cv, LeaveOneGroupOut) else 4)
    assert whole == set(ROWS)
    for train in folds:
        assert train < whole
        assert not set(GROUPS[list(train)]) & set(GROUPS[list(whole - train)])


def test_without_groups_some_would_be_on_both_sides():
    estimator, calls, table = numbered()
    CalibratedClassifier(estimator, PlattScaling(), cv=4).fit(table, Y)
    train = set(rows_of(calls[0]))
    assert set(GROUPS[list(train)]) & set(GROUPS[list(set(ROWS) - train)])


@pytest.mark.parametrize("cv", [4, GroupKFold(4)], ids=["number", "GroupKFold"])
def test_the_folds_of_the_calibrator_keep_groups_together(cv):
    told = CalibratedClassifier(GaussianNB(), ToldGroups(), cv=cv).fit(X, Y, groups=GROUPS)
    assert told.calibrator_.groups_.tolist() == GROUPS.tolist()
    scores = told.calibrator_.given_["scores"]
    alone = CalibrationTree(cv=3, score_type="probability").fit(X, Y, scores, groups=GROUPS)
    model = CalibratedClassifier(GaussianNB(), CalibrationTree(cv=3), cv=cv)
    assert model.fit(X, Y, groups=GROUPS).calibrator_.to_dict() == alone.to_dict()


def test_a_calibrator_that_takes_no_groups_has_the_folds_of_the_classifier():
    model = CalibratedClassifier(GaussianNB(), ToldWithFolds(cv=3), cv=4)
    folds = model.fit(X, Y, groups=GROUPS).calibrator_.cv
    assert len(folds) == 3
    assert sorted(np.concatenate([test for _, test in folds])) == ROWS.tolist()
    for train, test in folds:
        assert not set(GROUPS[train]) & set(GROUPS[test])
        assert sorted([*train, *test]) == ROWS.tolist()


def test_fewer_groups_than_the_calibrator_has_folds_are_its_folds():
    three = GROUPS % 3
    model = CalibratedClassifier(GaussianNB(), cv=LeaveOneGroupOut()).fit(X, Y, groups=three)
    assert model.calibrator_.cv == 3
    assert model.calibrator == "tree"


class ToldGroups(Told):
    """A calibrator that takes groups, too."""

    def fit(self, X, y, scores, sample_weight=None, groups=None):
        self.groups_ = groups
        return super().fit(X, y, scores, sample_weight)


class ToldWithFolds(Told):
    """A calibrator that takes folds, but no groups."""

    def __init__(self, cv=5):
        self.cv = cv


def test_a_splitter_of_the_calibrator_is_left_alone():
    own = StratifiedKFold(3)
    model = CalibratedClassifier(GaussianNB(), CalibrationTree(cv=own), cv=GroupKFold(4))
    with (
        pytest.warns(UserWarning, match="groups parameter is ignored by StratifiedKFold"),
        pytest.warns(UserWarning, match="cv divides groups: fold 0 has rows of group"),
    ):
        assert isinstance(model.fit(X, Y, groups=GROUPS).calibrator_.cv, StratifiedKFold)
    assert CalibratedClassifier(GaussianNB(), CalibrationTree(cv=3)).fit(X, Y).calibrator_.cv == 3


def test_one_tested_part_makes_no_folds_for_the_calibrator():
    once = [(ROWS[:60], ROWS[60:])]
    model = CalibratedClassifier(GaussianNB(), CalibrationTree(), cv=once).fit(X, Y)
    assert model.calibrator_.cv == 5


def test_rows_that_time_leaves_untested_train_the_classifier_only():
    estimator, calls, table = numbered()
    model = CalibratedClassifier(estimator, Told(), cv=TimeSeriesSplit(5)).fit(table, Y)
    given = model.calibrator_.given_
    assert np.array_equal(given["X"][:, 0], ROWS[20:])
    assert np.array_equal(given["y"], Y[20:])
    assert [len(call["X"]) for call in calls] == [20, 40, 60, 80, 100, 120]
    early = GaussianNB().fit(table[:40], Y[:40]).predict_proba(table[40:60])
    assert np.array_equal(given["scores"][20:40], early)


def test_weights_of_untested_rows_do_not_reach_the_calibrator():
    weights = np.linspace(1, 2, 120)
    model = CalibratedClassifier(GaussianNB(), Told(), cv=TimeSeriesSplit(5))
    given = model.fit(X, Y, sample_weight=weights).calibrator_.given_
    assert np.array_equal(given["sample_weight"], weights[20:])


def test_the_folds_of_the_calibrator_keep_periods_together():
    model = CalibratedClassifier(GaussianNB(), CalibrationTree(cv=5), cv=TimeSeriesSplit(5))
    folds = model.fit(X, Y).calibrator_.cv
    assert [test.tolist() for _, test in folds] == np.arange(100).reshape(5, 20).tolist()


@pytest.mark.parametrize("cv", [LeaveOneOut(), 2, 30], ids=["one", "2", "30"])
def test_as_many_folds_as_you_like(cv):
    assert_probabilities(
        CalibratedClassifier(GaussianNB(), fixed_tree(), cv=cv).fit(X[:60], Y[:60]).predict_proba(X)
    )


def sorted_rows():
    """Three classes one after the other, and probabilities or margins in X."""
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    margins = 2 * np.eye(3)[np.repeat(range(3), 20)] + rng.normal(size=(60, 3))
    return margins, y


def test_a_class_that_a_fold_was_not_trained_on_has_the_probability_0():
    margins, y = sorted_rows()
    model = CalibratedClassifier(GaussianNB(), Told(), cv=KFold(3)).fit(margins, y)
    given = model.calibrator_.given_
    for part, label in enumerate("abc"):
        rows = slice(20 * part, 20 * part + 20)
        others = np.delete(range(3), part)
        known = GaussianNB().fit(margins[y != label], y[y != label]).predict_proba(margins[rows])
        assert (given["scores"][rows, part] == 0).all()
        assert np.array_equal(given["scores"][rows][:, others], known)


def test_a_class_that_a_fold_was_not_trained_on_has_the_lowest_margin():
    margins, y = sorted_rows()
    given = CalibratedClassifier(LinearSVC(), Told(), cv=KFold(3)).fit(margins, y)
    scores = given.calibrator_.given_["scores"]
    for part, label in enumerate("abc"):
        rows = slice(20 * part, 20 * part + 20)
        others = np.delete(range(3), part)
        known = LinearSVC().fit(margins[y != label], y[y != label]).decision_function(margins[rows])
        np.testing.assert_allclose(scores[rows][:, others], np.column_stack([-known, known]))
        np.testing.assert_allclose(scores[rows, part], -np.abs(known).max())


@pytest.mark.parametrize("estimator", [GaussianNB(), LinearSVC(), [GaussianNB(), LinearSVC()]])
@pytest.mark.parametrize("calibrator", [PlattScaling(), IdentityCalibrator(), CalibrationTree()])
def test_sorted_labels_can_be_calibrated(estimator, calibrator):
    margins, y = sorted_rows()
    # No fold has seen the class that it tests, so that all scores are backwards.
    with pytest.warns(UserWarning, match="rank .* backwards"):
        model = CalibratedClassifier(estimator, calibrator, cv=KFold(3)).fit(margins, y)
    assert_probabilities(model.predict_proba(margins))


@pytest.mark.parametrize("n_rare", [1, 2])
@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression(), LinearSVC()])
@pytest.mark.parametrize("calibrator", [PlattScaling(), CalibrationTree()])
def test_a_class_of_one_or_two_rows_is_no_reason_to_warn(estimator, calibrator, n_rare):
    y = np.where(n_rare > ROWS, "rare", np.where(Y, "yes", "no"))
    model = CalibratedClassifier(estimator, calibrator).fit(X, y)
    assert model.classes_.tolist() == ["no", "rare", "yes"]
    assert_probabilities(model.predict_proba(X))
    assert model.predict_proba(X)[:, 1].mean() < 0.2


def test_a_fold_that_trains_on_one_class_is_left_out_with_a_warning():
    y = np.array([0] * 25 + [0, 1] * 17 + [1])
    estimator, calls, table = numbered()
    model = CalibratedClassifier(estimator, Told(), cv=TimeSeriesSplit(5))
    with pytest.warns(UserWarning, match="fold [01] of cv trains on rows of one class") as caught:
        model.fit(table[:60], y)
    assert ["its 10 test rows get no score" in str(each.message) for each in caught] == [True] * 2
    assert {each.filename for each in caught} == {__file__}
    assert np.array_equal(model.calibrator_.given_["X"], table[30:60])
    assert [len(call["X"]) for call in calls] == [30, 40, 50, 60]


def test_folds_that_all_train_on_one_class_are_refused():
    y = np.repeat([0, 1], 30)
    message = r"cv has no fold that trains on more than one class; use stratified folds"
    model = CalibratedClassifier(Untrainable(), cv=KFold(2))
    with pytest.warns(UserWarning, match="fold [01]"), pytest.raises(ValueError, match=message):
        model.fit(X[:60], y)


def test_calibration_rows_of_one_class_are_refused():
    y = np.repeat([0, 1, 0], [10, 10, 40])
    with pytest.raises(ValueError, match=r"calibration rows have one class only, 0; .*\(cv\)"):
        CalibratedClassifier(Untrainable(), cv=[(ROWS[:20], ROWS[20:60])]).fit(X[:60], y)


@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_class_without_calibration_rows_keeps_what_the_classifier_says(method):
    y = np.array(["early", *["no", "yes"] * 59, "no"])
    model = CalibratedClassifier(
        LogisticRegression(), fixed_tree(), cv=TimeSeriesSplit(3), response_method=method
    )
    message = r"no calibration row has the classes \['early'\]; they keep the prob"
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y)
    assert [each.filename for each in caught] == [__file__]
    assert model.classes_.tolist() == ["early", "no", "yes"]
    assert model.calibrator_.classes_.tolist() == ["no", "yes"]
    found = model.predict_proba(X)
    assert_probabilities(found)
    said = model.estimator_.predict_proba(X)[:, 0] if method == "predict_proba" else np.zeros(120)
    np.testing.assert_allclose(found[:, 0], said, rtol=1e-12)


def test_scores_of_the_present_classes_alone_are_probabilities_again():
    scores = np.tile([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.0, 0.2, 0.8]], (20, 1))
    y = np.array(["early", *["no", "yes"] * 29, "no"])
    model = CalibratedClassifier(Says(), Told(), cv=[(ROWS[:30], ROWS[30:60])])
    with pytest.warns(UserWarning, match="no calibration row has"):
        given = model.fit(scores, y).calibrator_.given_
    np.testing.assert_allclose(given["scores"][:3], [[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    np.testing.assert_allclose(
        model.predict_proba(scores[:3]), [[0.5, 0.25, 0.25], [1, 0, 0], [0, 0.2, 0.8]]
    )


def test_margins_of_the_present_classes_stay_as_they_are():
    margins, _ = sorted_rows()
    y = np.array(["early", *["no", "yes"] * 29, "no"])
    model = CalibratedClassifier(SaysMargins(), Told(), cv=[(ROWS[:30], ROWS[30:60])])
    with pytest.warns(UserWarning, match="get 0 where it gives margins"):
        given = model.fit(margins, y).calibrator_.given_
    assert np.array_equal(given["scores"], margins[30:, 1:])


def test_the_calibrators_folds_are_merged_of_neighbours():
    X, y, _ = make_rows(120)
    model = CalibratedClassifier(GaussianNB(), CalibrationTree(cv=3), cv=KFold(6)).fit(X, y)
    tested = [test.tolist() for _, test in model.calibrator_.cv]
    assert tested == [list(range(40)), list(range(40, 80)), list(range(80, 120))]
