"""`CalibrationBoosting`: what it predicts, chooses and refuses."""

import builtins
import pickle
import subprocess
import sys
from itertools import pairwise

import lightgbm
import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from caltree import CalibratedClassifier, CalibrationBoosting
from caltree._training import boosting as training
from caltree.metrics import log_loss, rmse

from .support.boosting_cases import few_rounds, log_odds_of_curve, make_rows


@pytest.fixture
def boosters(monkeypatch):
    """The boosters that LightGBM trains meanwhile."""
    trained, train = [], lightgbm.train

    def remember(*args, **kwargs):
        trained.append(train(*args, **kwargs))
        return trained[-1]

    monkeypatch.setattr(lightgbm, "train", remember)
    return trained


def raw_scores(booster, X, scores, known):
    """The sum of the trees up to the best round, by LightGBM itself."""
    columns = np.hstack([known.encode(X), scores])
    rounds = booster.best_iteration if booster.best_iteration > 0 else None
    found = booster.predict(columns, raw_score=True, num_iteration=rounds)
    return found.reshape(len(columns), -1)


def mixture(fitted, X, scores, regressors, raw):
    """What the mixture of uncalibrated probabilities, curve and trees must be."""
    model = fitted.model_
    curve = log_odds_of_curve(model.parameters, regressors)
    if model.offset:
        curve = curve + np.log(scores)
    both = [np.hstack([0 * odds, odds]) if odds.shape[1] == 1 else odds for odds in (curve, raw)]
    found = model.uncalibrated_weight * scores
    found = found + model.curve_weight * softmax(both[0], axis=1)
    return found + model.boosted_weight * softmax(model.start * both[0] + both[1], axis=1)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_predictions_are_the_average_of_lightgbms_own(boosters, n_classes):
    X, y, scores = make_rows(3000, n_classes)
    fitted = CalibrationBoosting(monotone=False).fit(X, y, scores)
    new, _, new_scores = make_rows(1000, n_classes, seed=1)
    assert len(boosters) == training.N_FOLDS and fitted.model_.boosted_weight > 0.5
    regressors = fitted._score_kind().regressors(new_scores)
    plain = regressors[:, : regressors.shape[1] // 2] if n_classes == 2 else regressors
    sums = [raw_scores(booster, new, plain, fitted.model_.attributes) for booster in boosters]
    expected = mixture(fitted, new, new_scores, regressors, np.mean(sums, axis=0))
    np.testing.assert_allclose(fitted.predict_proba(new, new_scores), expected, atol=1e-10)


def test_many_rows_hold_out_one_fold_and_refit_on_all(boosters, monkeypatch):
    monkeypatch.setattr(training, "MANY_ROWS", 2000)
    X, y, scores = make_rows(2500)
    fitted = CalibrationBoosting(monotone=False).fit(X, y, scores)
    first, last = boosters
    assert last.num_trees() == int(np.ceil(1.25 * first.best_iteration))
    regressors = fitted._score_kind().regressors(scores)
    raw = raw_scores(last, X, regressors[:, :1], fitted.model_.attributes)
    expected = mixture(fitted, X, scores, regressors, raw)
    np.testing.assert_allclose(fitted.predict_proba(X, scores), expected, atol=1e-10)
    assert fitted.model_.n_rows[0] == 2500
    monkeypatch.setattr(training, "REFITS", False)
    assert len(boosters) == 2
    again = CalibrationBoosting(monotone=False).fit(X, y, scores)
    assert len(boosters) == 3 and again.model_.n_rows[0] == 2000


def test_boosted_trees_beat_the_curve_on_new_rows():
    X, y, scores = make_rows(4000)
    new, labels, new_scores = make_rows(8000, seed=1)
    fitted = CalibrationBoosting().fit(X, y, scores)
    assert fitted.selection_.chosen == "local"
    assert [each.name for each in fitted.selection_.candidates] == [
        "uncalibrated",
        "global",
        "boosted",
    ]
    losses = [each.loss for each in fitted.selection_.candidates]
    assert losses[2] < losses[1] < losses[0]
    found = fitted.predict_proba(new, new_scores)
    assert rmse(labels, found) < 0.97 * rmse(labels, new_scores)
    assert rmse(labels, found) == pytest.approx(fitted.selection_.loss, rel=0.03)


def test_log_loss_is_chosen_by():
    X, y, scores = make_rows(2000)
    fitted = CalibrationBoosting(scoring="log_loss").fit(X, y, scores)
    assert fitted.selection_.scoring == "log_loss"
    before = fitted.selection_.candidates[0].loss
    assert before == pytest.approx(log_loss(y, scores), rel=1e-9)
    assert fitted.selection_.loss < before


@pytest.mark.parametrize("n_classes", [2, 3])
def test_random_labels_leave_scores_uncalibrated(n_classes):
    random = np.random.default_rng(0)
    X, scores = random.normal(size=(1500, 5)), random.dirichlet(np.ones(n_classes), 1500)
    y = (scores.cumsum(axis=1) < random.random((1500, 1))).sum(axis=1)
    fitted = CalibrationBoosting().fit(X, y, scores)
    assert fitted.selection_.chosen == "uncalibrated"
    assert fitted.model_.uncalibrated_weight == 1.0
    assert fitted.model_.n_nodes == 1 and not fitted.feature_importances_.any()
    assert np.array_equal(fitted.predict_proba(X, scores), fitted.uncalibrated(scores))


def test_without_trees_the_curve_is_left():
    """Too few rows for two leaves: what is boosted is the curve, and no tree is kept."""
    random = np.random.default_rng(1)
    X, scores = np.zeros((38, 1)), random.random(38)
    y = random.random(38) < scores**3
    fitted = CalibrationBoosting(do_no_harm=False).fit(X, y, scores)
    assert (fitted.model_.n_nodes, fitted.model_.curve_weight) == (1, 1.0)
    regressors = fitted._score_kind().regressors(scores[:, np.newaxis])
    expected = expit(log_odds_of_curve(fitted.model_.parameters, regressors))[:, 0]
    np.testing.assert_allclose(fitted.predict_proba(X, scores)[:, 1], expected, atol=1e-12)


@pytest.mark.parametrize("monotone", ["auto", True])
def test_monotone_probabilities_rise_with_the_score(monotone):
    X, y, scores = make_rows(3000)
    fitted = CalibrationBoosting(monotone=monotone).fit(X, y, scores[:, 1])
    assert fitted.model_.boosted_weight > 0.0
    grid = np.linspace(0.0, 1.0, 101)
    found = np.array([fitted.predict_proba(X[:200], np.full(200, s))[:, 1] for s in grid])
    assert np.diff(found, axis=0).min() >= 0.0


def test_without_monotone_probabilities_may_fall():
    random = np.random.default_rng(0)
    X, scores = random.normal(size=(4000, 2)), random.random(4000)
    turned = np.where(X[:, 0] > 0, scores, 1 - scores)
    y = random.random(4000) < turned
    fits = [CalibrationBoosting(monotone=m).fit(X, y, scores) for m in (True, False)]
    row, grid = np.tile([[-1.0, 0.0]], (2, 1)), [0.1, 0.9]
    (rising, falling) = (np.diff(f.predict_proba(row, grid)[:, 1])[0] for f in fits)
    assert rising >= 0.0 > falling


def test_curve_rises_where_scores_are_turned_round():
    """The curve itself is held to rise, which the model of a root alone is not."""
    random = np.random.default_rng(0)
    scores = random.random(2000)
    y = random.random(2000) < 1 - scores
    for monotone, may_fall in ((True, False), (False, True)):
        fitted = CalibrationBoosting(monotone=monotone, do_no_harm=False)
        with pytest.warns(UserWarning, match="backwards"):
            fitted.fit(np.zeros((2000, 1)), y, scores)
        _, slope, bend = fitted.model_.parameters[0]
        assert (slope < 0.0) == may_fall
        assert may_fall or abs(bend) <= slope + 1e-12


def test_monotone_needs_one_score_of_two_classes():
    X, y, scores = make_rows(300, 3)
    with pytest.raises(ValueError, match="monotone=True needs two classes and one score"):
        CalibrationBoosting(monotone=True).fit(X, y, scores)


@pytest.mark.parametrize("n_rows", [4, 20, 200])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows(n_rows, n_classes):
    X, y, scores = make_rows(n_rows, n_classes, seed=3)
    y[:n_classes] = np.arange(n_classes)
    for careful in (True, False):
        found = CalibrationBoosting(do_no_harm=careful).fit(X, y, scores).predict_proba(X, scores)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)


def test_a_class_of_one_row():
    """The fold that holds it out has no such row to learn from."""
    X, y, scores = make_rows(400, 3)
    y[y == 2] = 1
    y[7] = 2
    found = CalibrationBoosting(do_no_harm=False).fit(X, y, scores).predict_proba(X, scores)
    assert np.isfinite(found).all() and found[:, 2].min() > 1e-6


def test_margins_are_always_calibrated():
    X, y, scores = make_rows(2000)
    margins = 10 * logit(scores[:, 1])
    fitted = CalibrationBoosting(score_type="margin").fit(X, y, margins)
    assert fitted.model_.uncalibrated_weight == 0.0
    assert [each.name for each in fitted.selection_.candidates] == ["global", "boosted"]
    assert rmse(y, fitted.predict_proba(X, margins)) < rmse(y, expit(margins / 10))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_two_classifiers(n_classes):
    X, y, scores = make_rows(2000, n_classes)
    other = make_rows(2000, n_classes, seed=5)[2]
    both = np.hstack([scores, other])
    fitted = CalibrationBoosting().fit(X, y, both)
    assert fitted.model_.offset and fitted.n_scores_ == 2 * n_classes
    assert rmse(y, fitted.predict_proba(X, both)) < rmse(y, scores)


def test_many_classes_see_their_own_scores(monkeypatch):
    monkeypatch.setattr(training, "MOST_ROUNDS", 2)
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(35), 3000)
    y = np.concatenate([np.arange(35), random.integers(0, 35, 2965)])
    fitted = CalibrationBoosting(do_no_harm=False).fit(random.random((3000, 2)), y, scores)
    assert fitted.model_.parameters.shape == (35, 2)
    found = fitted.predict_proba(random.random((3000, 2)), scores)
    assert rmse(y, found) < rmse(y, scores)


def test_weights_of_zero_are_rows_left_out():
    X, y, scores = make_rows(1500)
    weights = np.random.default_rng(0).integers(0, 3, 1500).astype(float)
    weighted = CalibrationBoosting().fit(X, y, scores, sample_weight=weights)
    kept = weights > 0
    fewer = CalibrationBoosting().fit(X[kept], y[kept], scores[kept], sample_weight=weights[kept])
    assert np.array_equal(weighted.predict_proba(X, scores), fewer.predict_proba(X, scores))


@pytest.mark.parametrize("scale", [1.0, 1e7])
def test_weights_of_any_size(scale):
    """LightGBM rounds weights to single precision, in which some of these are nothing."""
    X, y, scores = make_rows(500)
    weights = scale * np.random.default_rng(0).choice([1.0, 1e-200, 1e5], 500)
    fitted = CalibrationBoosting(do_no_harm=False).fit(X, y, scores, sample_weight=weights)
    np.testing.assert_allclose(fitted.predict_proba(X, scores).sum(axis=1), 1.0)


def test_weights_are_repetitions_but_for_the_smallest_leaf(monkeypatch):
    """LightGBM counts rows in the smallest leaf, not weights; its sum of Hessians counts both."""
    monkeypatch.setitem(training.PARAMETERS, "min_data_in_leaf", 1)
    monkeypatch.setitem(training.PARAMETERS, "min_sum_hessian_in_leaf", 5.0)
    random = np.random.default_rng(0)
    X, scores = random.integers(0, 9, (2000, 3)), random.integers(1, 20, 2000) / 20
    y = random.random(2000) < np.where(X[:, 0] > 4, scores, scores**2)
    groups, twice = np.arange(2000) % 100, np.repeat(np.arange(2000), 2)
    repeated = CalibrationBoosting().fit(X[twice], y[twice], scores[twice], groups=groups[twice])
    weighted = CalibrationBoosting().fit(X, y, scores, np.full(2000, 2), groups=groups)
    unweighted = CalibrationBoosting().fit(X, y, scores, groups=groups)
    expected = repeated.predict_proba(X, scores)
    assert repeated.model_.boosted_weight > 0.0
    np.testing.assert_allclose(weighted.predict_proba(X, scores), expected, atol=1e-6)
    assert np.abs(unweighted.predict_proba(X, scores) - expected).max() > 1e-3


@pytest.fixture
def grown(monkeypatch):
    """The folds, and the curves and trees of each, that are grown meanwhile."""
    found, boost = [], training._Booster.boost_fold

    def remember(self, fold, *others):
        found.append((fold, boost(self, fold, *others)))
        return found[-1][1]

    monkeypatch.setattr(training._Booster, "boost_fold", remember)
    return found


def test_the_curve_is_the_average_of_those_that_the_trees_start_from(grown):
    X, y, scores = make_rows(500, 3)
    fitted = CalibrationBoosting(do_no_harm=False).fit(X, y, scores)
    curves = [each.curve for _, each in grown]
    assert len(curves) == 5 and not np.array_equal(curves[0], curves[1])
    np.testing.assert_allclose(fitted.model_.parameters, np.mean(curves, axis=0), rtol=1e-12)


def test_rows_of_a_group_are_judged_together(grown, monkeypatch):
    judged, choose = [], training.choose_weights
    monkeypatch.setattr(
        training,
        "choose_weights",
        lambda held_out, **others: judged.append(held_out) or choose(held_out, **others),
    )
    X, y, scores = make_rows(1000)
    groups = np.arange(1000) // 20
    CalibrationBoosting().fit(X, y, scores, groups=groups)
    assert len(grown) == 5
    for (train, test), _ in grown:
        assert not set(groups[train]) & set(groups[test])
    rows = np.concatenate([test for (_, test), _ in grown])
    assert np.array_equal(judged[0].groups, groups[rows])
    with pytest.raises(ValueError, match="groups has 1 group, but boosting needs at least 2"):
        CalibrationBoosting().fit(X, y, scores, groups=np.zeros(1000))
    CalibrationBoosting().fit(X, y, scores, groups=np.arange(1000) % 3)


def test_random_state_and_threads(monkeypatch):
    monkeypatch.setattr(training, "ROWS_A_THREAD", 100)
    monkeypatch.setattr(training, "MOST_ROUNDS", 4)
    X, y, scores = make_rows(600)
    fits = [
        CalibrationBoosting(do_no_harm=False, random_state=seed, n_jobs=n_jobs).fit(X, y, scores)
        for seed, n_jobs in ((0, 1), (0, 2), (0, 1), (1, 1), (None, 1), (None, 1))
    ]
    found = [each.predict_proba(X, scores).tobytes() for each in fits]
    assert found[0] == found[1] == found[2]
    assert found[4] == found[5]
    assert len({found[0], found[3], found[4]}) == 3


def test_unseen_and_missing_values_have_a_way():
    X, y, scores = make_rows(2000, missing=0.0)
    fitted = CalibrationBoosting().fit(X, y, scores)
    new = X[:100].copy()
    frequent = X["category"].mode()[0]
    new["category"] = frequent
    as_frequent = fitted.predict_proba(new, scores[:100])
    new["category"] = "never seen"
    with pytest.warns(UserWarning, match="a new category such as 'never seen'"):
        assert np.array_equal(fitted.predict_proba(new, scores[:100]), as_frequent)
    new[["a", "b"]] = np.nan
    new["category"] = None
    with pytest.warns(UserWarning, match="missing"):
        found = fitted.predict_proba(new, scores[:100])
    assert np.isfinite(found).all()


def test_identifiers_are_left_out():
    X, y, scores = make_rows(1000)
    X["name"] = [f"customer {number}" for number in range(1000)]
    with pytest.warns(UserWarning, match="'name'"):
        fitted = CalibrationBoosting().fit(X, y, scores)
    assert fitted.feature_importances_[-1] == 0.0
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)


def test_importances_name_the_attributes_that_matter():
    X, y, scores = make_rows(5000)
    importances = CalibrationBoosting().fit(X, y, scores).feature_importances_
    for matters, other in pairwise(np.split(importances[[0, 1, 4, 2, 3]], [3])):
        assert matters.min() > other.max()


def test_thresholds_send_single_precision_the_same_way():
    random = np.random.default_rng(0)
    X, scores = random.random((3000, 3)), random.random(3000)
    y = random.random(3000) < np.where(X[:, 0] > 0.5, scores, scores**3)
    fitted = CalibrationBoosting(monotone=False).fit(X, y, scores)
    assert (fitted.model_.attribute == 3).any()
    # Single precision rounds a threshold down, and the next number up.
    model = fitted.model_
    threshold = model.threshold[(model.attribute >= 0) & (model.attribute < 3)]
    assert (threshold.astype(np.float32) <= threshold).all()
    assert (np.nextafter(threshold, np.inf).astype(np.float32) > threshold).all()
    single = fitted.predict_proba(X.astype(np.float32), scores.astype(np.float32))
    # The scores themselves are rounded, by which probabilities hardly change.
    np.testing.assert_allclose(single, fitted.predict_proba(X, scores), atol=1e-6)


def test_pickled_and_cloned():
    X, y, scores = make_rows(1000)
    fitted = CalibrationBoosting(random_state=3).fit(X, y, scores)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.predict_proba(X, scores), fitted.predict_proba(X, scores))
    assert clone(fitted).get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        clone(fitted).predict_proba(X, scores)


def test_in_a_calibrated_classifier():
    from sklearn.naive_bayes import GaussianNB

    X, y, _ = make_rows(2000, missing=0.0)
    numbers = X[list("abcd")]
    model = CalibratedClassifier(GaussianNB(), "boosting").fit(numbers, y)
    assert isinstance(model.calibrator_, CalibrationBoosting)
    assert model.predict_proba(numbers).shape == (2000, 2)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scoring": "auc"}, "scoring must be one of 'rmse', 'log_loss'"),
        ({"monotone": "yes"}, "monotone must be 'auto', True or False"),
        ({"do_no_harm": 1}, "do_no_harm must be True or False"),
        ({"n_jobs": 0}, "n_jobs must be None"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_parameters_are_checked(params, message):
    X, y, scores = make_rows(100)
    with pytest.raises(ValueError, match=message):
        CalibrationBoosting(**params).fit(X, y, scores)


COUNTED = (
    "LightGBM counts rows, not weights, in leaves; and repeated rows are dealt into other folds"
)


@parametrize_with_checks(
    [CalibratedClassifier(LogisticRegression(), CalibrationBoosting(), cv=2)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": COUNTED,
        "check_sample_weight_equivalence_on_sparse_data": COUNTED,
    },
)
def test_it_passes_every_check_of_a_classifier(estimator, check):
    with few_rounds():
        check(estimator)


def test_a_system_without_openmp_is_told_what_to_install(monkeypatch):
    def fail(name, *others, imported=builtins.__import__):
        if name == "lightgbm":
            raise OSError("libgomp.so.1: cannot open shared object file")
        return imported(name, *others)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(ImportError, match=r"libgomp.so.1: .* apt install libgomp1"):
        training.import_lightgbm()


WITHOUT_LIGHTGBM = """
import sys
sys.modules["lightgbm"] = None
import numpy as np
import caltree
fitted = caltree.load(sys.argv[1])
random = np.random.default_rng(0)
X, scores = random.random((300, 2)), random.random(300)
print(fitted.predict_proba(X, scores)[:, 1].sum().hex())
try:
    caltree.CalibrationBoosting().fit(X, random.random(300) < scores, scores)
except ImportError as error:
    print(error)
"""


def test_prediction_needs_no_lightgbm_and_fit_says_so(tmp_path):
    random = np.random.default_rng(1)
    X, scores = random.random((2000, 2)), random.random(2000)
    y = random.random(2000) < np.where(X[:, 0] > 0.5, scores, scores / 2)
    fitted = CalibrationBoosting().fit(X, y, scores)
    assert fitted.model_.boosted_weight > 0.0
    fitted.save(tmp_path / "boosting.json")
    command = [sys.executable, "-c", WITHOUT_LIGHTGBM, str(tmp_path / "boosting.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    random = np.random.default_rng(0)
    X, scores = random.random((300, 2)), random.random(300)
    total, error = done.stdout.splitlines()
    assert total == fitted.predict_proba(X, scores)[:, 1].sum().hex()
    assert 'pip install "caltree[boosting]"' in error
