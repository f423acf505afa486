"""Properties of every calibrator: trees, one curve for all rows, and none at all."""

import json
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from caltree import (
    BetaScaling,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)
from caltree._base import Calibrator
from caltree._global_base import GlobalCalibrator
from caltree._model_base import AttributeCalibrator

from .support.trees import (
    assert_probabilities,
    boosted_tree,
    fixed_boosted_tree,
    fixed_tree,
    make_rows,
)

CALIBRATORS = {
    "tree": CalibrationTree(),
    "small tree": fixed_tree(max_depth=2),
    "boosted tree": boosted_tree(),
    "small boosted tree": fixed_boosted_tree(max_depth=2),
    "published tree": PublishedCalibrationTree(),
    "Platt": PlattScaling(),
    "temperature": TemperatureScaling(),
    "beta": BetaScaling(),
    "isotonic": IsotonicScaling(),
    "smooth isotonic": SmoothIsotonicScaling(),
    "regularized isotonic": RegularizedIsotonicScaling(),
    "robust platt": RobustPlattScaling(),
    "identity": IdentityCalibrator(),
}
GLOBAL = [
    "Platt",
    "temperature",
    "beta",
    "isotonic",
    "smooth isotonic",
    "regularized isotonic",
    "identity",
]
# Cross-validation deals rows into folds in their order and class by class, so that another order
# of rows or classes, or a row given twice, makes other folds. The other calibrators have none.
WITHOUT_FOLDS = ["small tree", "small boosted tree", *GLOBAL]
# These correct what the scores say; margins say nothing yet.
SHRUNKEN = ["tree", "small tree", "beta"]
# These look at both columns of two classes.
PUBLISHED = ["boosted tree", "small boosted tree", "published tree"]
every = pytest.mark.parametrize("name", CALIBRATORS)
every_global = pytest.mark.parametrize("name", GLOBAL)
every_one_without_folds = pytest.mark.parametrize("name", WITHOUT_FOLDS)
two_three_and_ten_classes = pytest.mark.parametrize("n_classes", [2, 3, 10])
X, Y, SCORES = make_rows()


def fitted(name, X, y, scores, sample_weight=None, **params):
    return clone(CALIBRATORS[name]).set_params(**params).fit(X, y, scores, sample_weight)


def answers(name, X, y, scores, sample_weight=None, asked=None):
    """What a calibrator says of its own training rows, or of others."""
    model = fitted(name, X, y, scores, sample_weight)
    return model.predict_proba(*((X, scores) if asked is None else asked))


def assert_close(one, other):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


@every
def test_scores_that_are_left_out_are_asked_for(name):
    with pytest.raises(
        TypeError, match=r"^scores is missing: .* CalibratedClassifier, which makes"
    ):
        clone(CALIBRATORS[name]).fit(X, Y)
    with pytest.raises(TypeError, match=r"^scores is missing: give the scores of the classifier"):
        fitted(name, X, Y, SCORES).predict_proba(X)


# Probabilities


@every
@two_three_and_ten_classes
def test_answers_are_probabilities(name, n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    assert answers(name, X, y, scores).shape == (300, n_classes)
    assert_probabilities(answers(name, X, y, scores))


KINDS = {
    "probability": [0.0, 1e-300, 1e-16, 0.2, 0.5, 0.8, 1 - 1e-16, 1.0],
    "margin": [-1e300, -1e6, -3.0, -1e-300, 0.0, 0.5, 2.0, 1e6, 1e300],
}


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
@every
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_answers_to_extreme_scores_are_probabilities(name, data):
    kind, n_classes = data.draw(st.sampled_from(list(KINDS))), data.draw(st.integers(2, 4))
    width = data.draw(st.sampled_from([n_classes, 2 * n_classes] + [1] * (n_classes == 2)))
    row = st.lists(st.sampled_from(KINDS[kind]), min_size=width, max_size=width)
    scores = np.array(data.draw(st.lists(row, min_size=12, max_size=30)))
    y = np.arange(len(scores)) % n_classes
    X = np.arange(2.0 * len(scores)).reshape(-1, 2) % 7
    model = fitted(name, X, y, scores, score_type=kind)
    assert_probabilities(model.predict_proba(X, scores))
    others = np.resize(KINDS[model.score_type_], (9, width))
    assert_probabilities(model.predict_proba(X[:9], others))


@every
@two_three_and_ten_classes
@pytest.mark.parametrize("value", [0.0, 0.1, 7.0, -1e300])
def test_scores_that_never_vary_give_probabilities(name, n_classes, value):
    X, y, scores = make_rows(n_classes=n_classes)
    same = np.full_like(scores, value)
    model = fitted(name, X, y, same, score_type="margin")
    probabilities = model.predict_proba(X, same)
    assert_probabilities(probabilities)
    if name in GLOBAL:
        assert (probabilities == probabilities[0]).all()


# What must not matter


@every_one_without_folds
@two_three_and_ten_classes
def test_the_order_of_the_rows_does_not_matter(name, n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    order = np.random.default_rng(0).permutation(len(y))
    shuffled = answers(name, X[order], y[order], scores[order], asked=(X, scores))
    assert_close(shuffled, answers(name, X, y, scores))


@every_one_without_folds
@two_three_and_ten_classes
def test_the_order_of_the_classes_does_not_matter(name, n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    place = np.random.default_rng(1).permutation(n_classes)[::-1]
    renamed = answers(name, X, place[y], scores[:, np.argsort(place)])
    assert_close(renamed[:, place], answers(name, X, y, scores))


LABELS = {
    "numbers": np.array([-5, 0, 2**40]),
    "strings": np.array(["a", "b", "naïve"]),
    "objects": np.array(["a", "b", "c"], dtype=object),
    "booleans": np.array([False, True]),
}


@every
@pytest.mark.parametrize("kind", LABELS)
def test_the_names_of_the_classes_do_not_matter(name, kind):
    labels = LABELS[kind]
    X, y, scores = make_rows(n_classes=len(labels))
    assert fitted(name, X, labels[y], scores).classes_.tolist() == labels.tolist()
    assert np.array_equal(answers(name, X, labels[y], scores), answers(name, X, y, scores))


@every
@pytest.mark.parametrize("names", ["abc", "cba"])
def test_the_names_of_the_columns_do_not_matter(name, names):
    frame = pd.DataFrame(X, columns=list(names), index=np.arange(300) // 2)
    assert np.array_equal(answers(name, frame, Y, SCORES), answers(name, X, Y, SCORES))


@every_global
def test_a_global_calibrator_ignores_the_attributes(name):
    expected = answers(name, None, Y, SCORES)
    for table in (X, X * np.nan, [["x"]] * 300, pd.DataFrame({"day": pd.NaT}, range(300))):
        assert np.array_equal(answers(name, table, Y, SCORES), expected)


@every
def test_neighbours_do_not_matter_to_a_row(name):
    model = fitted(name, X, Y, SCORES)
    together = model.predict_proba(X, SCORES)
    alone = [model.predict_proba(X[[i]], SCORES[[i]]) for i in range(20)]
    assert_close(np.vstack(alone), together[:20])


# Scores of every form


@every
def test_one_column_stands_for_two(name):
    second = SCORES[:, 1]
    expected = answers(name, X, Y, second)
    assert np.array_equal(answers(name, X, Y, second[:, np.newaxis]), expected)
    assert np.array_equal(answers(name, X, Y, second.tolist()), expected)
    assert_close(answers(name, X, Y, np.column_stack([1 - second, second])), expected)


@pytest.mark.parametrize(
    ("name", "score_type"),
    [
        (name, score_type)
        for name in CALIBRATORS
        for score_type in ("auto", "logit", "margin")
        if name not in SHRUNKEN or score_type == "logit"
        if name
        not in ("smooth isotonic", "regularized isotonic")  # a curve over the scores as they are
    ],
)
def test_logits_say_the_same_as_probabilities(name, score_type):
    second = SCORES[:, 1]
    params = {} if name == "isotonic" else {"score_type": score_type}
    model = fitted(name, X, Y, logit(second), **params)
    assert model.score_type_ == ("logit" if "logit" in params.values() else "margin")
    assert_close(model.predict_proba(X, logit(second)), answers(name, X, Y, second))


@pytest.mark.parametrize("score_type", ["auto", "margin"])
@pytest.mark.parametrize("name", SHRUNKEN)
def test_the_weaker_the_penalty_the_less_it_matters_that_margins_are_no_logits(name, score_type):
    second = SCORES[:, 1]
    differences = []
    always = {"do_no_harm": False} if "do_no_harm" in CALIBRATORS[name].get_params() else {}
    for penalty in (20.0, 1.0, 0.05, 1e-3, 1e-6):
        params = {"l2_regularization": penalty, **always}
        model = fitted(name, X, Y, logit(second), score_type=score_type, **params)
        assert model.score_type_ == "margin"
        other = fitted(name, X, Y, second, **params).predict_proba(X, second)
        differences.append(np.abs(model.predict_proba(X, logit(second)) - other).max())
    assert differences == sorted(differences, reverse=True)
    assert differences[0] > 1e-4 and differences[-1] < 1e-6


@every
def test_what_the_scores_are_is_settled_by_fitting(name):
    model = fitted(name, X, Y, SCORES)
    assert model.score_type_ == "probability"
    with pytest.raises(ValueError, match=r"scores contains 1.5 in row 1, column 1, which is not"):
        model.predict_proba(X[:2], [[0.5, 0.5], [0.5, 1.5]])


@every
@two_three_and_ten_classes
def test_several_classifiers_go_side_by_side(name, n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    others = make_rows(n_classes=n_classes, seed=1)[2]
    both, swapped = np.hstack([scores, others]), np.hstack([others, scores])
    assert_probabilities(answers(name, X, y, both))
    if name in WITHOUT_FOLDS:
        assert_close(answers(name, X, y, swapped), answers(name, X, y, both))


@every
def test_single_precision_is_read_exactly(name):
    single = SCORES.astype(np.float32)
    assert_probabilities(answers(name, X, Y, single))
    assert np.array_equal(answers(name, X, Y, single), answers(name, X, Y, single.astype(float)))


# Weights


@every_one_without_folds
@two_three_and_ten_classes
def test_a_weight_of_two_is_a_row_given_twice(name, n_classes):
    X, y, scores = make_rows(n_classes=n_classes)
    weights = np.random.default_rng(0).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weights)
    twice = answers(name, X[rows], y[rows], scores[rows], asked=(X, scores))
    assert_close(answers(name, X, y, scores, weights), twice)


@every
def test_a_row_without_weight_is_absent_whatever_it_holds(name):
    keep = np.arange(len(Y)) % 5 > 0
    labels, scores = Y.astype(float), SCORES.copy()
    labels[~keep], scores[~keep] = np.nan, np.nan
    labels[0], scores[5], scores[10] = 99, [np.inf, -7.0], [1e300, 0.5]
    expected = answers(name, X[keep], Y[keep], SCORES[keep], asked=(X, SCORES))
    assert_close(answers(name, X, labels, scores, keep.astype(int), asked=(X, SCORES)), expected)


@pytest.mark.parametrize(
    "name", ["isotonic", "smooth isotonic", "regularized isotonic", "identity"]
)
@pytest.mark.parametrize("factor", [0.1, 1000, 1e12])
def test_a_common_factor_of_the_weights_does_not_matter(name, factor):
    weights = np.random.default_rng(0).uniform(0.2, 5.0, len(Y))
    expected = answers(name, X, Y, SCORES, weights)
    assert_close(answers(name, X, Y, SCORES, weights * factor), expected)


@every
def test_weights_that_sum_to_next_to_nothing_warn_the_caller(name):
    model, weights = clone(CALIBRATORS[name]), np.full(len(Y), 0.001)
    # To these the scale of weights means nothing.
    if name in ("isotonic", "smooth isotonic", "regularized isotonic", "identity"):
        expected = clone(model).fit(X, Y, SCORES).predict_proba(X, SCORES)
        found = model.fit(X, Y, SCORES, weights).predict_proba(X, SCORES)
        assert found == pytest.approx(expected, abs=1e-12)
        return
    with pytest.warns(UserWarning, match=r"sample_weight sums to 0.3") as caught:
        model.fit(X, Y, SCORES, weights)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("name", [name for name in CALIBRATORS if name not in PUBLISHED])
def test_one_probability_of_two_says_as_much_as_both(name):
    model = clone(CALIBRATORS[name]).fit(X, Y, SCORES)
    expected = model.predict_proba(X, SCORES)
    assert model.predict_proba(X, SCORES[:, 1]) == pytest.approx(expected, abs=1e-12)
    other = clone(CALIBRATORS[name]).fit(X, Y, SCORES[:, 1])
    assert other.predict_proba(X, SCORES) == pytest.approx(expected, abs=1e-12)


# Estimators of scikit-learn


@every
def test_a_clone_has_the_parameters_and_nothing_that_was_fitted(name):
    model = fitted(name, X, Y, SCORES)
    copy = clone(model)
    assert copy.get_params() == model.get_params() == CALIBRATORS[name].get_params()
    assert vars(copy) == model.get_params()
    assert repr(copy) == repr(model)
    assert eval(repr(model)).get_params() == model.get_params()


@every
def test_fitting_changes_neither_parameters_nor_data(name):
    data = [X.copy(), Y.copy(), SCORES.copy(), np.ones(len(Y))]
    model = clone(CALIBRATORS[name])
    assert model.fit(*data) is model
    model.predict_proba(data[0], data[2])[:] = -1.0
    assert model.get_params() == CALIBRATORS[name].get_params()
    assert all(map(np.array_equal, data, (X, Y, SCORES, np.ones(len(Y)))))


@every
def test_parameters_are_set_by_name_and_checked_by_fit(name):
    model = clone(CALIBRATORS[name])
    if "score_type" in model.get_params():
        model = clone(CALIBRATORS[name]).set_params(score_type="odd")
        assert model.get_params()["score_type"] == "odd"
        for ask in (model._check_parameters, partial(model.fit, X, Y, SCORES)):
            with pytest.raises(ValueError, match=r"^score_type must be one of .* got 'odd'"):
                ask()
    with pytest.raises(ValueError, match="Invalid parameter 'slope'"):
        model.set_params(slope=1)


@every
@pytest.mark.parametrize("bad", ["X", "y", "scores", "sample_weight"])
def test_a_failed_fit_leaves_a_calibrator_as_it_was(name, bad):
    good = {"X": X, "y": Y, "scores": SCORES, "sample_weight": np.ones(300)}
    wrong = {"X": X[1:], "y": 0 * Y, "scores": SCORES * np.nan, "sample_weight": -np.ones(300)}
    for model in (clone(CALIBRATORS[name]), fitted(name, X, Y, SCORES)):
        before = vars(model).copy()
        with pytest.raises(ValueError):
            model.fit(**{**good, bad: wrong[bad]})
        assert vars(model) == before


@every_global
def test_a_fit_that_fails_late_leaves_a_calibrator_as_it_was(name, monkeypatch):
    model = fitted(name, X, Y, SCORES)
    before = vars(model).copy()
    monkeypatch.delattr("caltree._inputs.scores.ScoreKind.average")
    with pytest.raises(AttributeError):
        model.fit(None, Y == 0, np.hstack([SCORES] * 2))
    assert vars(model) == before


@every
def test_fitting_again_forgets_what_was(name):
    X3, y3, scores3 = make_rows(n_classes=3)
    model = fitted(name, pd.DataFrame(X3, columns=list("abc")), np.array(list("xyz"))[y3], scores3)
    fresh = fitted(name, X, Y, SCORES)
    assert model.fit(X, Y, SCORES).to_dict() == fresh.to_dict()
    assert vars(model).keys() == vars(fresh).keys()


@every
def test_a_calibrator_that_is_not_fitted_says_so(name):
    model = clone(CALIBRATORS[name])
    for ask in (model.to_dict, partial(model.save, "x"), partial(model.predict_proba, X, SCORES)):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            ask()


@every
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((300, 1), "scores has 1 columns, but the calibrator was fitted with 2"),
        ((300, 4), "scores has 4 columns, but the calibrator was fitted with 2"),
        ((300, 3), "scores has 3 columns, but y has 2 classes"),
        ((299, 2), "scores has 299 rows, but X has 300"),
    ],
)
def test_new_scores_must_be_as_long_and_as_wide_as_they_should(name, shape, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        fitted(name, X, Y, np.log(SCORES)).predict_proba(X, np.zeros(shape))


@every_global
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "calibration requires y to be passed"),
        (1, "y must have one label per row, got a int"),
        (np.array(1), "y must have one label per row, got a ndarray"),
        (Y[1:], "scores has 300 rows, but y has 299"),
    ],
)
def test_without_attributes_the_labels_say_how_many_rows_there_are(name, y, message):
    with pytest.raises(ValueError, match=message):
        fitted(name, None, y, SCORES)
    with pytest.raises(ValueError, match=r"for each of the 300 rows of y, got shape \(2,\)"):
        fitted(name, None, Y, SCORES, [1, 1])


@every
def test_labels_that_json_lacks_cannot_be_stored(name):
    with pytest.raises(TypeError, match="classes of type longdouble cannot be stored as JSON"):
        fitted(name, X, Y.astype(np.longdouble), SCORES).to_dict()


# There and back


@every
@two_three_and_ten_classes
def test_a_calibrator_survives_pickle_json_and_a_file(name, n_classes, tmp_path):
    X, y, scores = make_rows(n_classes=n_classes)
    model = fitted(name, X, np.array(list("abcdefghij"))[y], scores)
    model.save(tmp_path / "calibrator.json")
    loaded = type(model).load(tmp_path / "calibrator.json")
    parsed = type(model).from_dict(json.loads(json.dumps(model.to_dict(), allow_nan=False)))
    for again in (pickle.loads(pickle.dumps(model)), parsed, loaded):
        assert np.array_equal(again.predict_proba(X, scores), model.predict_proba(X, scores))
        assert again.to_dict() == model.to_dict()
        assert vars(again).keys() == vars(model).keys()


@every
@pytest.mark.parametrize("kind", ["probability", "logit", "margin"])
@pytest.mark.parametrize("width", [1, 2, 4])
def test_no_rows_have_no_probabilities(name, kind, width):
    model = clone(CALIBRATORS[name])
    if "score_type" in model.get_params():
        model.set_params(score_type=kind)
    p = np.column_stack([1.0 - SCORES[:, 1], SCORES[:, 1]] * 2)[:, 4 - width :]
    scores = p if kind == "probability" else logit(p)
    model.fit(X, Y, scores)
    assert model.predict_proba(X[:0], scores[:0]).shape == (0, 2)


@every
def test_the_file_of_another_calibrator_says_what_reads_it(name, tmp_path):
    fitted(name, X, Y, SCORES).save(tmp_path / "calibrator.json")
    right = type(CALIBRATORS[name])
    for cls in {type(model) for model in CALIBRATORS.values()} - {right}:
        with pytest.raises(ValueError, match=f"read it with caltree.{right.__name__}$"):
            cls.load(tmp_path / "calibrator.json")


def test_the_bases_leave_to_the_calibrators_what_differs():
    base, scaling, local = Calibrator(), GlobalCalibrator(), AttributeCalibrator()
    known = [base._check_parameters, base._state, partial(base._restore, {})]
    known += [partial(scaling.fit, X, Y, SCORES), partial(scaling._calibrate, SCORES)]
    for ask in (*known, partial(local._fit, X, None)):
        with pytest.raises(NotImplementedError):
            ask()


def test_without_a_choice_nothing_is_kept_of_it():
    local = AttributeCalibrator()
    assert local._chosen_parameters() == {}
    local._restore_chosen({})
    with pytest.raises(ValueError, match="chosen of a stored calibrator must be empty"):
        local._restore_chosen({"ccp_alpha": 0.1})
