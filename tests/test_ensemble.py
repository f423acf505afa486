"""CalibrationEnsemble: a forest and boosted trees, averaged by rows that neither has seen."""

import builtins
import sys
from dataclasses import replace

import numpy as np
import pytest

from caltree import CalibratedClassifier, CalibrationBoosting, CalibrationEnsemble
from caltree._fitted.blended import BlendedModel
from caltree._inputs.scores import ScoreKind
from caltree._training import blending
from caltree._training.averaging import best_weights
from caltree._training.do_no_harm import make_selection
from caltree.metrics import rmse

from .support.boosting_cases import few_rounds, make_rows
from .support.forests import calibrated_rows
from .support.marks import new_values

pytestmark = new_values


@pytest.fixture(autouse=True)
def _small():
    with few_rounds(8):
        yield


def few(**params):
    return CalibrationEnsemble(**{"n_estimators": 10, "random_state": 0, **params})


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
def test_it_is_the_sum_of_both_and_of_what_is_uncalibrated(n_classes, score_type):
    X, y, scores = make_rows(800, n_classes)
    scores = scores if score_type == "probability" else np.log(scores)
    fitted = few(score_type=score_type).fit(X, y, scores)
    model, kind = fitted.model_, ScoreKind(n_classes, score_type, False)
    assert min(1.0 - part.uncalibrated_weight for part in model.parts) > 0.1
    seen = kind.regressors(scores)
    offset = kind.offset(scores, seen)
    matrix = model.attributes.encode(X)
    expected = sum(part.probabilities(matrix, seen, offset) for part in model.parts)
    if score_type != "margin":
        expected += model.uncalibrated_weight * kind.uncalibrated(scores)
    found = fitted.predict_proba(X, scores)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def held_out_of(monkeypatch, calibrator, *rows, **others):
    """Fit, and return the candidates that were chosen from."""
    seen = []

    def choose(held_out, **given):
        seen.append(held_out)
        return choose_weights(held_out, **given)

    choose_weights = blending.choose_weights
    monkeypatch.setattr(blending, "choose_weights", choose)
    calibrator.fit(*rows, **others)
    return seen[-1]


@pytest.mark.parametrize("scoring", ["rmse", "log_loss"])
def test_the_weights_lose_least_of_all(monkeypatch, scoring):
    X, y, scores = make_rows(800)
    fitted = few(scoring=scoring, do_no_harm=False)
    held_out = held_out_of(monkeypatch, fitted, X, y, scores)
    chosen = fitted.selection_
    weights = np.array([each.weight for each in chosen.candidates])
    assert [each.name for each in chosen.candidates][:3] == ["global", "boosted", "global, forest"]
    assert len(set(held_out.names)) == len(held_out.names) == 14
    assert chosen.loss == held_out.loss(weights)
    assert chosen.loss < min(each.loss for each in chosen.candidates)
    for only in (range(2), range(2, 14)):
        assert chosen.loss <= held_out.loss(best_weights(held_out, only))
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.full(14, 0.3), 200):
        assert chosen.loss <= held_out.loss(other) + 1e-9
    of_boosted = [fitted.model_.boosted.curve_weight, fitted.model_.boosted.boosted_weight]
    np.testing.assert_allclose(of_boosted, weights[:2], rtol=0, atol=1e-12)
    of_forest = 1.0 - fitted.model_.forest.uncalibrated_weight
    np.testing.assert_allclose(of_forest, weights[2:].sum(), rtol=0, atol=1e-12)


def fit_one_candidate(monkeypatch, name):
    """Fit an ensemble all of whose weight is on one candidate."""

    def choose(held_out, **_):
        only = np.eye(len(held_out))[held_out.names.index(name)]
        return only, make_selection(held_out, only, only)

    monkeypatch.setattr(blending, "choose_weights", choose)
    return few().fit(*make_rows(800)).model_


def test_each_candidate_has_its_own_weight(monkeypatch):
    curve = fit_one_candidate(monkeypatch, "global").boosted
    assert (curve.curve_weight, curve.boosted_weight, curve.n_nodes) == (1.0, 0.0, 1)
    boosted = fit_one_candidate(monkeypatch, "boosted").boosted
    assert (boosted.curve_weight, boosted.boosted_weight) == (0.0, 1.0) and boosted.n_nodes > 1
    roots = fit_one_candidate(monkeypatch, "global, forest").forest
    np.testing.assert_allclose(roots.weight, [0.2, 0.0] * 5)
    small = fit_one_candidate(monkeypatch, "regions of 4 rows, splits on scores too").forest
    counts = np.bincount(small.tree_of_nodes)
    many = counts[1::2].min()
    assert (counts[::2] == 1).all() and many > 100
    assert (small.weight[small.attribute >= 0] == 0.0).all()
    larger = fit_one_candidate(monkeypatch, "regions of 60 rows").forest
    counts = np.bincount(larger.tree_of_nodes)
    assert (counts[1::2] == 1).all() and 5 < counts[::2].min() < counts[::2].max() < many


def test_candidates_of_both_are_of_the_same_rows(monkeypatch):
    """The curve and the forest's roots are nearly the same model, if they are of the same rows."""
    X, y, scores = make_rows(800, 3)
    weights = np.random.default_rng(0).integers(1, 4, 800).astype(float)
    held_out = held_out_of(monkeypatch, few(n_estimators=40), X, y, scores, sample_weight=weights)
    assert held_out.names[:4] == ("uncalibrated", "global", "boosted", "global, forest")
    uncalibrated, curve, _, roots = held_out.probabilities[:4]
    rows = [np.flatnonzero((scores == row).all(axis=1))[0] for row in uncalibrated]
    assert np.array_equal(held_out.labels, y[rows])
    assert np.array_equal(held_out.weights, weights[rows])
    assert np.abs(curve - roots).mean() < 0.02 < np.abs(curve - roots[::-1]).mean()


def test_where_one_fold_is_held_out_the_rows_are_its_rows(monkeypatch):
    from caltree._training import boosting

    monkeypatch.setattr(boosting, "MANY_ROWS", 500)
    X, y, scores = make_rows(800)
    calibrator = few(n_estimators=30)
    held_out = held_out_of(monkeypatch, calibrator, X, y, scores)
    assert 140 < len(held_out.labels) <= 160


def test_it_helps_on_other_rows():
    X, y, scores = make_rows(2000)
    others, labels, given = make_rows(4000, seed=1)
    found = few().fit(X, y, scores).predict_proba(others, given)
    assert rmse(labels, found) < 0.97 * rmse(labels, given)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_scores_that_are_right_stay_as_they_are(n_classes):
    X, y, scores = calibrated_rows(600, n_classes, 0)
    fitted = few().fit(X, y, scores)
    assert fitted.selection_.chosen == "uncalibrated"
    np.testing.assert_allclose(fitted.predict_proba(X, scores), scores, rtol=0, atol=0.02)
    assert fitted.model_.forest.n_nodes == fitted.model_.forest.n_trees
    assert fitted.model_.boosted.n_nodes == 1
    assert not fitted.feature_importances_.any()


def test_importances_are_averaged_by_the_weights_of_both():
    X, y, scores = make_rows(1500)
    with few_rounds(40):
        model = few(n_estimators=30).fit(X, y, scores).model_
    assert all(part.importances.any() for part in model.parts)
    forest, boosted = (1.0 - part.uncalibrated_weight for part in model.parts)
    expected = forest * model.forest.importances + boosted * model.boosted.importances
    np.testing.assert_allclose(model.importances, expected / (forest + boosted))
    np.testing.assert_allclose(model.importances.sum(), 1.0)


def test_a_part_without_weight_says_nothing():
    X, y, scores = make_rows(800)
    fitted = few(do_no_harm=False).fit(X, y, scores)
    none = replace(fitted.model_.boosted, curve_weight=0.0, boosted_weight=0.0)
    whole = 1.0 - fitted.model_.forest.uncalibrated_weight
    forest = replace(fitted.model_.forest, weight=fitted.model_.forest.weight / whole)
    fitted.model_ = BlendedModel(forest, none)
    matrix, kind = forest.attributes.encode(X), ScoreKind(2, "probability", False)
    expected = forest.probabilities(matrix, kind.regressors(scores))
    np.testing.assert_allclose(fitted.predict_proba(X, scores), expected, rtol=0, atol=1e-14)
    assert np.array_equal(fitted.feature_importances_, forest.importances)


def test_the_same_state_gives_the_same_ensemble_whatever_the_threads():
    X, y, scores = make_rows(600)
    first = few().fit(X, y, scores).to_dict()
    assert few(n_jobs=2).fit(X, y, scores).to_dict()["model"] == first["model"]
    assert few(random_state=1).fit(X, y, scores).to_dict()["model"] != first["model"]
    drawn = few(random_state=np.random.RandomState(0)).fit(X, y, scores).to_dict()
    again = few(random_state=np.random.RandomState(0)).fit(X, y, scores).to_dict()
    assert drawn["model"] == again["model"]


def test_groups_stay_together(monkeypatch):
    X, y, scores = make_rows(600)
    groups = np.arange(600) // 6
    held_out = held_out_of(monkeypatch, few(n_estimators=30), X, y, scores, groups=groups)
    # A group is out of a tree's sample as a whole.
    assert (np.bincount(held_out.groups) % 6 == 0).all() and len(held_out.labels) > 500
    with pytest.raises(ValueError, match="groups has 1 group, but an ensemble needs at least 2"):
        few().fit(X, y, scores, groups=np.zeros(600))


def test_without_rows_that_the_forest_has_not_seen_boosting_is_left(monkeypatch):
    X, y, scores = make_rows(600)
    monkeypatch.setattr(blending, "grow_forest", without_candidates(blending.grow_forest))
    fitted = few(do_no_harm=False).fit(X, y, scores)
    assert [each.name for each in fitted.selection_.candidates] == ["global", "boosted"]
    assert fitted.model_.forest.uncalibrated_weight == 1.0
    alone = CalibrationBoosting(do_no_harm=False, random_state=0).fit(X, y, scores)
    expected = alone.predict_proba(X, scores)
    np.testing.assert_allclose(fitted.predict_proba(X, scores), expected, rtol=0, atol=1e-14)


def without_candidates(grow):
    return lambda *given: replace(grow(*given), candidates=None)


def test_rows_of_weight_0_are_absent():
    X, y, scores = make_rows(600)
    kept = np.arange(600) < 400
    weights = np.where(kept, 1.0, 0.0)
    found = few().fit(X, y, scores, sample_weight=weights)
    alone = few().fit(X[kept], y[kept], scores[kept])
    assert found.to_dict()["model"] == alone.to_dict()["model"]


def test_a_fitted_one_predicts_without_lightgbm(monkeypatch):
    X, y, scores = make_rows(600)
    stored = few().fit(X, y, scores).to_dict()
    real = builtins.__import__

    def refuse(name, *others):
        assert not name.startswith("lightgbm"), "LightGBM is imported"
        return real(name, *others)

    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr(builtins, "__import__", refuse)
    CalibrationEnsemble.from_dict(stored).predict_proba(X, scores)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match=r"caltree\[boosting\]"):
        few().fit(X, y, scores)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_estimators": 1}, "n_estimators"),
        ({"scoring": "auc"}, "scoring"),
        ({"do_no_harm": 2}, "do_no_harm"),
        ({"score_type": "odds"}, "score_type"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"random_state": "a"}, "random_state|seed"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises((ValueError, TypeError), match=message):
        CalibrationEnsemble(**params).fit(*make_rows(100))


def test_a_classifier_with_it():
    from sklearn.naive_bayes import GaussianNB

    X, y, _ = make_rows(600, missing=0.0)
    X = X.drop(columns="category")
    made = CalibratedClassifier(GaussianNB(), "ensemble", cv=3).fit(X, y)
    assert isinstance(made.calibrator_, CalibrationEnsemble)
    np.testing.assert_allclose(made.predict_proba(X).sum(axis=1), 1.0)
