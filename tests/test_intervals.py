"""Intervals for probabilities: `fit_intervals` and `predict_interval`."""

import json
from importlib import resources

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)
from caltree._fitted.spread import KNOTS, Spread
from caltree._intervals import draw_labels

CALIBRATORS = [
    CalibrationTree(cv=2),
    CalibrationForest(4, random_state=0),
    CalibrationBoosting(random_state=0),
    CalibrationEnsemble(4, random_state=0),
    PublishedCalibrationTree(boosting_iterations=2, cv=2),
    PlattScaling(),
    IsotonicScaling(),
    TemperatureScaling(),
    BetaScaling(),
]


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    """Small forests and one simulation: what is tested here does not depend on their number."""
    monkeypatch.setattr("caltree._intervals._MOST_FITS", 1)
    monkeypatch.setattr("caltree._intervals._MOST_CURVES", 3)
    monkeypatch.setattr("caltree._intervals._N_TREES", 15)
    monkeypatch.setattr("caltree._intervals._N_STAND_IN", 5)


def make_rows(n_rows, seed=0, n_classes=2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 2))
    scores = expit(X[:, 0] + random.normal(size=n_rows))
    truth = expit(logit(scores) * np.where(X[:, 1] > 0, 1.0, 0.4))
    y = (random.random(n_rows) < truth).astype(int)
    if n_classes == 3:
        y = y + (random.random(n_rows) < 0.3)
        scores = np.column_stack([1 - scores, scores / 2, scores / 2])
        truth = np.column_stack([0.7 * (1 - truth), 0.3 + 0.4 * truth - 0.3 * truth, 0.3 * truth])
    return X, y, scores, truth


@pytest.mark.parametrize("calibrator", CALIBRATORS, ids=lambda c: type(c).__name__)
def test_every_calibrator_has_intervals_that_hold_its_probabilities(calibrator):
    X, y, scores, _ = make_rows(200)
    fitted = calibrator.fit(X, y, scores).fit_intervals(X, y, scores)
    before = fitted.predict_proba(X, scores)
    narrow, wide = (fitted.predict_interval(X, scores, c) for c in (0.5, 0.99))
    assert narrow.shape == (200, 2, 2)
    for found in (narrow, wide):
        assert found.min() >= 0.0 and found.max() <= 1.0
        assert (found[..., 0] <= before).all() and (before <= found[..., 1]).all()
    uncertain = (before > 0.0) & (before < 1.0)
    assert (wide[..., 0] < narrow[..., 0])[uncertain].all()
    assert (narrow[..., 1] < wide[..., 1])[uncertain].all()
    # The ends of one class are those of the other, turned round.
    np.testing.assert_allclose(narrow[:, 0, 0], 1.0 - narrow[:, 1, 1], atol=1e-9)
    again = type(calibrator).from_dict(fitted.to_dict())
    np.testing.assert_array_equal(again.predict_interval(X, scores, 0.5), narrow)


def test_ends_are_those_of_a_normal_distribution_of_log_odds():
    spread = Spread(np.where(KNOTS == 0.3, 0.5, 2.0))
    [[[lower, upper], other, _]] = spread.interval(np.array([[0.3, 0.6, 0.1]]), 0.9)
    width = 0.5 * norm.ppf(0.95)
    assert lower == pytest.approx(expit(logit(0.3) - width), rel=1e-12)
    assert upper == pytest.approx(expit(logit(0.3) + width), rel=1e-12)
    assert logit(other[1]) - logit(other[0]) == pytest.approx(4.0 * norm.ppf(0.95))
    [certain] = spread.interval(np.array([[0.0, 1.0, np.nan]]), 0.9)
    far = expit(logit(1e-4) + 2.0 * norm.ppf(0.95))
    np.testing.assert_allclose(certain, [[0.0, far], [1.0 - far, 1.0], [np.nan, np.nan]])


def test_deviations_of_two_classes_are_those_of_the_second():
    spread = Spread(np.where(KNOTS == 0.3, 0.5, 2.0))
    [first, second] = spread.interval(np.array([[0.7, 0.3]]), 0.9)[0]
    width = 0.5 * norm.ppf(0.95)
    np.testing.assert_allclose(logit(second), logit(0.3) + np.array([-width, width]))
    np.testing.assert_allclose(first, 1.0 - second[::-1])


def platt_rows(seed, bend=0.0):
    """Rows whose log-odds are a line of those of the scores, but for a bend below zero."""
    random = np.random.default_rng(seed)
    line = random.normal(size=1000)
    truth = expit(0.8 * line - 0.2 + bend * np.minimum(line, 0.0))
    return (random.random(1000) < truth).astype(int), expit(line), truth


def test_intervals_of_a_curve_that_fits_are_little_wider_than_chance(monkeypatch):
    monkeypatch.setattr("caltree._intervals._MOST_CURVES", 60)
    held, ratios = [], []
    for seed in range(10):
        y, scores, truth = platt_rows(seed)
        platt = PlattScaling().fit(None, y, scores).fit_intervals(None, y, scores)
        lower, upper = platt.predict_interval(None, scores)[:, 1].T
        held.append(np.mean((lower <= truth) & (truth <= upper)))
        # By theory: the covariance of the two numbers is the inverse of their information.
        known = platt.predict_proba(None, scores)[:, 1]
        regressors = np.column_stack([logit(scores), np.ones(1000)])
        covariance = np.linalg.inv((regressors.T * (known * (1.0 - known))) @ regressors)
        deviations = np.sqrt(((regressors @ covariance) * regressors).sum(axis=1))
        ratios.append(np.mean(logit(upper) - logit(lower)) / np.mean(2 * 1.96 * deviations))
    assert np.mean(held) > 0.93
    assert 1.0 < np.mean(ratios) < 2.2


def test_intervals_of_a_curve_widen_where_it_does_not_fit():
    wide = []
    for bend in (0.0, 1.5):
        y, scores, _ = platt_rows(0, bend)
        curve = TemperatureScaling().fit(None, y, scores).fit_intervals(None, y, scores)
        wide.append(curve.spread_.deviations)
    assert (wide[1] > 2.0 * wide[0])[(KNOTS > 0.15) & (KNOTS < 0.35)].all()


def test_a_probability_rests_on_the_rows_of_its_nodes():
    random = np.random.default_rng(0)
    X = random.random((2_000, 1))
    scores = random.uniform(0.1, 0.9, 2_000)
    y = random.random(2_000) < np.where(X[:, 0] < 0.1, 1.0 - scores, scores)
    tree = CalibrationTree(cv=2).fit(X, y, scores)
    new = np.array([[0.05], [0.5]])
    small, large = tree.effective_rows(new, [0.5, 0.5])
    assert small < large / 2 < 1_000
    leaves = tree.model_.apply(new).ravel()
    for leaf, found in zip(leaves, (small, large), strict=True):
        inverse = tree.model_.uncalibrated_weight / 2_000
        while leaf >= 0:
            inverse += tree.model_.weight[leaf] / tree.model_.n_rows[leaf]
            leaf = tree.model_.parent[leaf]
        assert found == pytest.approx(1.0 / inverse, rel=1e-12)
    tree.spread_ = Spread(np.ones(len(KNOTS)), 0.5, 1_000.0)
    ends = logit(tree.predict_interval(new, [0.5, 0.5])[:, 1])
    width = np.diff(ends, axis=1).ravel()
    assert width[0] / width[1] == pytest.approx(np.sqrt(large / small), rel=1e-9)


def test_boosted_trees_and_curves_rest_on_all_rows():
    X, y, scores, _ = make_rows(200)
    boosting = CalibrationBoosting(random_state=0).fit(X, y, scores)
    assert len(np.unique(boosting.effective_rows(X, scores))) == 1
    assert PlattScaling().fit(None, y, scores).effective_rows(None, scores) == 200.0
    ensemble = CalibrationEnsemble(4, random_state=0).fit(X, y, scores)
    seen = ensemble._score_kind().regressors(ensemble.read_scores(scores))
    matrix = ensemble.model_.attributes.encode(X)
    expected = ensemble.model_.forest.effective_rows(matrix, seen)
    np.testing.assert_array_equal(ensemble.effective_rows(X, scores), expected)


def test_a_forest_that_splits_on_scores_rests_on_rows_of_like_scores():
    random = np.random.default_rng(0)
    X, scores = random.random((1_500, 1)), random.random(1_500)
    # No logistic model of the score follows steps up and down.
    y = random.random(1_500) < np.where((scores > 0.4) & (scores < 0.6), 0.95, 0.1)
    forest = CalibrationForest(5, random_state=0).fit(X, y, scores)
    splits = forest.model_.attribute
    assert (splits >= 1).any()  # the score stands behind the attributes
    rows = forest.effective_rows(np.full((2, 1), 0.5), [0.5, 0.9])
    assert rows[0] != rows[1]
    forest.spread_ = Spread(np.ones(len(KNOTS)), 0.5, 100.0)
    found = forest.predict_interval([[0.5], [0.5]], [0.5, np.nan], on_bad_rows="nan")
    assert np.isfinite(found[0]).all() and np.isnan(found[1]).all()


def test_more_rows_give_narrower_intervals():
    widths = []
    for n_rows in (150, 3_000):
        _, y, scores, _ = make_rows(n_rows)
        platt = PlattScaling().fit(None, y, scores).fit_intervals(None, y, scores)
        ends = platt.predict_interval(None, np.linspace(0.1, 0.9, 9))
        widths.append((ends[..., 1] - ends[..., 0]).mean())
    assert widths[1] < 0.6 * widths[0]


def test_intervals_of_a_tree_hold_the_truth_in_most_rows():
    X, y, scores, _ = make_rows(1_600, seed=10)
    tree = CalibrationTree(cv=3).fit(X, y, scores).fit_intervals(X, y, scores)
    X_new, _, scores_new, truth = make_rows(2_000, seed=1)
    ends = tree.predict_interval(X_new, scores_new)[:, 1]
    covered = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert covered.mean() > 0.88 and (ends[:, 1] - ends[:, 0]).mean() < 0.6


def test_intervals_of_isotonic_regression_hold_the_truth_at_the_ends(monkeypatch):
    """The lowest scores of twenty data sets; their first step is often far below the truth."""
    monkeypatch.setattr("caltree._intervals._MOST_CURVES", 20)
    held = []
    for seed in range(20):
        random = np.random.default_rng(seed)
        scores = np.sort(random.random(1000))
        truth = 0.3 + 0.4 * scores
        y = random.random(1000) < truth
        isotonic = IsotonicScaling().fit(None, y, scores).fit_intervals(None, y, scores)
        lower, upper = isotonic.predict_interval(None, scores[:3])[:, 1].T
        held.append(np.mean((lower <= truth[:3]) & (truth[:3] <= upper)))
    assert np.mean(held) > 0.85


def test_uncalibrated_scores_have_intervals_too():
    random = np.random.default_rng(0)
    X, scores = random.normal(size=(300, 1)), random.random(300)
    y = random.random(300) < scores
    tree = CalibrationTree(cv=3).fit(X, y, scores).fit_intervals(X, y, scores)
    assert tree.selection_.chosen == "uncalibrated"
    ends = tree.predict_interval([[0.0]], [0.5])[0, 1]
    assert ends[0] < 0.48 and ends[1] > 0.52


def test_noise_in_scores_widens_intervals():
    """A forest that stands in for the truth believes the scores; the attributes know better."""
    random = np.random.default_rng(0)
    X = random.normal(size=(3_000, 1))
    truth = expit(2 * X[:, 0])
    y = random.random(3_000) < truth
    scores = expit(2 * X[:, 0] + random.normal(size=3_000))
    identity = CalibrationTree(max_leaf_nodes=2, max_depth=0, cv=2).fit(X, y, scores)
    ends = identity.fit_intervals(X, y, scores).predict_interval(X, scores)[:, 1]
    assert ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).mean() > 0.85


def test_three_classes_weights_and_margins():
    X, y, scores, _ = make_rows(240, n_classes=3)
    weights = np.where(np.arange(240) % 5 == 0, 0.0, 2.0)
    tree = CalibrationTree(cv=2).fit(X, y, np.log(scores), weights)
    tree.fit_intervals(X, y, np.log(scores), weights)
    found = tree.predict_interval(X, np.log(scores))
    assert found.shape == (240, 3, 2) and np.isfinite(found).all()


def test_the_same_seed_gives_the_same_intervals():
    X, y, scores, _ = make_rows(150)
    tree = CalibrationTree(cv=2).fit(X, y, scores)
    one, other, third = (
        tree.fit_intervals(X, y, scores, random_state=seed).spread_.deviations for seed in (0, 0, 1)
    )
    assert (one == other).all() and (one != third).any()


def test_the_scores_of_both_classes_give_the_intervals_of_one():
    X, y, scores, _ = make_rows(150)
    tree = CalibrationTree(cv=2)
    one, other = (
        tree.fit(X, y, given).fit_intervals(X, y, given).spread_.deviations
        for given in (scores, np.column_stack([1.0 - scores, scores]))
    )
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_bad_rows_may_be_nan():
    _, y, scores, _ = make_rows(150)
    platt = PlattScaling().fit(None, y, scores).fit_intervals(None, y, scores)
    found = platt.predict_interval(None, [0.5, np.nan], on_bad_rows="nan")
    assert np.isnan(found[1]).all() and np.isfinite(found[0]).all()


@pytest.mark.parametrize("confidence", [0, 1, 1.5, -0.1, np.nan, "0.9", True, None])
def test_a_confidence_that_is_no_share_is_refused(confidence):
    _, y, scores, _ = make_rows(60)
    platt = PlattScaling().fit(None, y, scores)
    message = r"confidence must be a number between 0 and 1, such as 0\.95, got"
    with pytest.raises(ValueError, match=message):
        platt.predict_interval(None, scores, confidence)


def test_intervals_must_be_fitted_first_and_are_forgotten_by_fit():
    _, y, scores, _ = make_rows(150)
    platt = PlattScaling().fit(None, y, scores)
    with pytest.raises(ValueError, match="call fit_intervals with the training rows first"):
        platt.predict_interval(None, scores)
    with pytest.raises(TypeError, match="scores is missing: a calibrator is fitted to the scores"):
        platt.fit_intervals(None, y)
    platt.fit_intervals(None, y, scores)
    with pytest.raises(TypeError, match="scores is missing: give the scores of the classifier"):
        platt.predict_interval(None)
    platt.fit_intervals(None, y, scores).fit(None, y, scores)
    assert platt.spread_ is None


def test_other_rows_than_those_of_the_fit_are_refused():
    _, y, scores, _ = make_rows(150)
    platt = PlattScaling().fit(None, y, scores)
    message = r"got 100 rows of 2 classes, but .* fitted to 150 of 2; give the rows"
    with pytest.raises(ValueError, match=message):
        platt.fit_intervals(None, y[:100], scores[:100])


@pytest.mark.parametrize("calibrator", [PlattScaling(), CalibrationTree()])
def test_as_many_other_rows_cause_a_warning(calibrator):
    X, y, scores, _ = make_rows(150)
    _, other, *_ = make_rows(150, seed=9)
    calibrator.fit(X, y, scores).fit_intervals(X, y, scores)
    with pytest.warns(UserWarning, match="fit_intervals got other rows than fit"):
        calibrator.fit_intervals(X, other, scores[::-1])


def test_too_few_rows_are_refused():
    _, y, scores, _ = make_rows(49)
    platt = PlattScaling().fit(None, y, scores)
    with pytest.raises(ValueError, match="intervals need at least 50 rows, got 49; fit to more"):
        platt.fit_intervals(None, y, scores)


def test_every_class_is_drawn():
    random = np.random.default_rng(0)
    probabilities = np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.9, 0.1, 0.0]])
    assert draw_labels(probabilities, random).tolist() in ([2, 0, 1], [0, 2, 1])
    many = draw_labels(np.tile([0.2, 0.5, 0.3], (20_000, 1)), random)
    np.testing.assert_allclose(np.bincount(many) / 20_000, [0.2, 0.5, 0.3], atol=0.02)


@pytest.mark.parametrize("ensemble", [False, True])
def test_a_calibrated_classifier_has_intervals(ensemble):
    X, y, _, _ = make_rows(240)
    model = CalibratedClassifier(
        LogisticRegression(), PlattScaling(), cv=2, ensemble=ensemble, intervals=True
    ).fit(X, y)
    found, inside = model.predict_interval(X, 0.9), model.predict_proba(X)
    assert found.shape == (240, 2, 2)
    assert (found[..., 0] < inside).all() and (inside < found[..., 1]).all()


def test_a_calibrated_classifier_asks_the_regions_of_its_calibrator():
    X = make_rows(600)[0]
    model = CalibratedClassifier(LogisticRegression(), CalibrationTree(cv=2), cv=2)
    model.fit(X, (X[:, 0] > 0) ^ (X[:, 1] > 0.7))
    tree, scores = model.calibrator_, model.score_rows(X)[0]
    tree.spread_ = Spread(np.ones(len(KNOTS)), 0.5, 100.0)
    assert len(np.unique(tree.effective_rows(X, scores))) > 1
    np.testing.assert_allclose(model.predict_interval(X), tree.predict_interval(X, scores))


def test_a_calibrated_classifier_says_what_intervals_need():
    X, y, _, _ = make_rows(60)
    model = CalibratedClassifier(LogisticRegression(), "platt", cv=2).fit(X, y)
    with pytest.raises(ValueError, match=r"intervals=True\), got intervals=False"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="confidence must be"):
        model.predict_interval(X, 95)

    class Other(DummyClassifier):
        def fit(self, X, y, scores):
            return self

    other = CalibratedClassifier(LogisticRegression(), Other(), intervals=True)
    with pytest.raises(TypeError, match="intervals=True needs a calibrator that has fit_intervals"):
        other.fit(X, y)


def test_a_stored_spread_fits_the_schema():
    _, y, scores, _ = make_rows(60)
    stored = PlattScaling().fit(None, y, scores).fit_intervals(None, y, scores).to_dict()
    schema = resources.files("caltree") / "schema" / "calibrator.schema.json"
    validator = Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))
    validator.validate(stored)
    for wrong in ({"deviations": [1.0] * 12}, {"exponent": 0.6}, {"typical_rows": 0}):
        assert not validator.is_valid({**stored, "spread": {**stored["spread"], **wrong}})


SPREAD = {"deviations": [1.0] * 13, "exponent": 0.1, "typical_rows": 9.0}


@pytest.mark.parametrize(
    "stored",
    [
        [],
        {},
        {"deviations": [1.0] * 13},
        *(
            {**SPREAD, **wrong}
            for wrong in (
                {"deviations": [1.0]},
                {"deviations": [-1.0] * 13},
                {"deviations": 1},
                {"exponent": -0.1},
                {"exponent": 0.6},
                {"exponent": "0.1"},
                {"typical_rows": 0.0},
                {"typical_rows": None},
            )
        ),
    ],
)
def test_a_malformed_spread_is_refused(stored):
    _, y, scores, _ = make_rows(60)
    state = PlattScaling().fit(None, y, scores).to_dict()
    assert PlattScaling.from_dict({**state, "spread": SPREAD}).spread_.exponent == 0.1
    with pytest.raises(ValueError, match="stored calibrator"):
        PlattScaling.from_dict({**state, "spread": stored})


@pytest.mark.parametrize("name", ["CalibrationTree", "CalibrationBoosting"])
def test_a_calibrator_on_a_cluster_says_where_intervals_are(name):
    pytest.importorskip("distributed")
    module = pytest.importorskip(
        "caltree.dask" if name == "CalibrationTree" else "caltree.dask.boosting"
    )
    calibrator = getattr(module, name)()
    for method in (calibrator.fit_intervals, calibrator.predict_interval):
        with pytest.raises(TypeError, match=f"caltree.dask.{name} has no intervals; fit a"):
            method(None, None, None)
