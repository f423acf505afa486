"""Temperature and beta scaling against the definitions, scipy and numbers worked out by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax
from sklearn.base import clone

from caltree import BetaScaling, TemperatureScaling
from caltree.metrics import log_loss

from .support.trees import assert_probabilities, make_rows

EXTREMES = np.array([0.0, 1e-300, 1e-16, 1e-9, 0.5, 1 - 1e-9, 1 - 1e-16, 1.0])


def make_margins(n_rows=400, seed=0):
    """Margins that are too steep, and labels."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(scale=2.0, size=n_rows)
    return rng.random(n_rows) < expit(0.5 * margins), margins


def temperature(y, scores, weights=None, score_type="margin"):
    return TemperatureScaling(score_type=score_type).fit(None, y, scores, weights)


def two_columns(logits):
    """One logit of two classes as one per class."""
    return np.column_stack([np.zeros(len(logits)), logits]) if logits.ndim == 1 else logits


def assert_most_likely(model, y, logits, weights=None, tolerance=1e-6):
    """The derivative of the likelihood is zero, in the unit of the logits."""
    logits = two_columns(logits)
    said = (softmax(model.slope_ * logits, axis=1) * logits).sum(axis=1)
    own = logits[np.arange(len(y)), np.asarray(y, dtype=int)]
    unit = np.abs(logits).max()
    assert abs(np.average((said - own) / unit, weights=weights)) < tolerance


# Temperature scaling: what is fitted


def test_a_slope_by_hand():
    # Scores of -1 and 1 are right in three rows of four: their log-odds are those of 3 to 1.
    model = temperature([0, 0, 0, 1, 1, 1, 1, 0], [-1.0] * 4 + [1.0] * 4)
    assert model.slope_ == pytest.approx(np.log(3.0), rel=1e-9)
    np.testing.assert_allclose(model.predict_proba(None, [-1.0, 1.0])[:, 1], [0.25, 0.75])


@pytest.mark.parametrize("n_classes", [2, 3, 10, 40])
@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_is_the_most_likely_one(n_classes, score_type, weighted):
    rng = np.random.default_rng(n_classes)
    logits = log_softmax(2 * rng.normal(size=(600, n_classes)), axis=1)
    y = np.argmax(0.7 * logits + rng.gumbel(size=logits.shape), axis=1)
    weights = rng.uniform(0.2, 5.0, 600) if weighted else None
    scores = np.exp(logits) if score_type == "probability" else logits
    model = temperature(y, scores, weights, score_type)
    assert_most_likely(model, y, logits, weights)
    expected = softmax(model.slope_ * logits, axis=1)
    np.testing.assert_allclose(model.predict_proba(None, scores), expected, rtol=0, atol=1e-12)
    assert 0.5 < model.slope_ < 0.9


HARD = {
    "large unit": lambda y, s: (y, 1e90 * s),
    "small unit": lambda y, s: (y, 1e-90 * s),
    "backwards": lambda y, s: (~y, s),
    "few scores": lambda y, s: (y, np.round(s / 4)),
    "heavy tails": lambda y, s: (y, np.sinh(3 * s)),
    "outlier of its class": lambda y, s: (np.r_[y, True], np.r_[s, 1e4]),
    "outlier of the other class": lambda y, s: (np.r_[y, False], np.r_[s, 1e4]),
}


@pytest.mark.filterwarnings("ignore:the scores rank:UserWarning")
@pytest.mark.parametrize("case", HARD)
def test_the_most_likely_slope_is_found_where_that_is_hard(case):
    y, scores = HARD[case](*make_margins())
    model = temperature(y, scores)
    assert_most_likely(model, y, scores)
    assert_probabilities(model.predict_proba(None, scores))


def test_scores_that_separate_the_classes_have_a_large_slope_and_no_more():
    _, scores = make_margins()
    model = temperature(scores > 0, scores)
    assert 10.0 < model.slope_ < 1e9
    assert_probabilities(model.predict_proba(None, scores))


def test_scores_of_zero_say_nothing():
    model = temperature([0, 1, 1], np.zeros(3))
    assert model.slope_ == 1.0
    assert (model.predict_proba(None, [0.0]) == 0.5).all()


@pytest.mark.parametrize("certain", [False, True])
def test_a_class_that_is_never_predicted_counts(certain):
    rng = np.random.default_rng(0)
    scores = softmax(2 * rng.normal(size=(400, 3)), axis=1)
    if certain:
        scores = np.eye(3)[np.argmax(scores, axis=1)]
    y = np.argmax(np.log(scores + 0.2) + rng.gumbel(size=scores.shape), axis=1)
    scores[:, 2] = 0.0
    model = temperature(y, scores, score_type="probability")
    lowest = 2.0**-53 if certain else scores[:, :2].min() / 2
    assert_most_likely(model, y, np.log(np.maximum(scores, lowest)))


# Beta scaling: what is fitted


def curves(scores, score_type):
    """The regressors of beta scaling: of two classes log-odds and bend, of more logarithms."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        odds = np.ravel(scores)
        if score_type == "probability":
            odds = np.log(odds / (1 - odds))
        return np.column_stack([odds, log_expit(odds) + log_expit(-odds)])
    if score_type == "margin":
        return scores
    return np.log(scores) if score_type == "probability" else log_softmax(scores, axis=1)


def penalties(n_classes, n_seen, penalty, held):
    """The cost of each parameter: n_states x (1 + n_seen)."""
    n_states = 1 if n_classes == 2 else n_classes
    costs = np.full((n_states, 1 + n_seen), penalty)
    if held:
        costs *= 8 * n_classes
    if n_classes == 2:
        costs[:, 2] *= 40
    elif n_seen > 1:
        others = ~np.eye(n_classes, dtype=bool)
        costs[:, 1:][others] *= n_classes - 1 if held else 40
    return costs


def fit_directly(regressors, y, n_classes, penalty, weights=None, *, held):
    """The log-odds of the most likely curve, by a minimiser of scipy."""
    weights = np.ones(len(y)) if weights is None else weights
    n_states = 1 if n_classes == 2 else n_classes
    mean = np.average(regressors, axis=0, weights=weights)
    deviation = np.sqrt(np.average((regressors - mean) ** 2, axis=0, weights=weights))
    unit = (regressors - mean) / deviation
    own_alone = n_classes > 30
    costs = penalties(n_classes, 1 if own_alone else regressors.shape[1], penalty, held)
    start = np.zeros_like(regressors[:, :n_states])
    if held:
        logits = regressors[:, 0] if n_states == 1 else regressors
        model = temperature(y, logits, weights)
        start = model.slope_ * regressors[:, :n_states]

    def linear(parameters):
        table = parameters.reshape(costs.shape)
        slopes = unit * table[:, 1] if own_alone else unit @ table[:, 1:].T
        return start + table[:, 0] + slopes

    def loss(parameters):
        F = linear(parameters)
        F = np.hstack([np.zeros_like(F), F]) if n_states == 1 else F
        likelihood = weights @ (F[np.arange(len(y)), y] - logsumexp(F, axis=1))
        residual = weights[:, np.newaxis] * (softmax(F, axis=1) - np.eye(F.shape[1])[y])
        residual = residual[:, -n_states:]
        slopes = (residual * unit).sum(axis=0)[:, np.newaxis] if own_alone else residual.T @ unit
        gradient = np.column_stack([residual.sum(axis=0), slopes]).ravel()
        penalised = costs.ravel() * parameters
        return -likelihood + 0.5 * penalised @ parameters, gradient + penalised

    found = minimize(loss, np.zeros(costs.size), jac=True, method="BFGS", options={"gtol": 1e-5})
    return linear(found.x)


def as_probabilities(F):
    return np.hstack([expit(-F), expit(F)]) if F.shape[1] == 1 else softmax(F, axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("penalty", [0.05, 2.0])
@pytest.mark.parametrize("score_type", ["probability", "logit", "margin"])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_the_curve_is_the_most_likely_one(n_classes, score_type, penalty, weighted):
    rng = np.random.default_rng(n_classes)
    X, y, scores = make_rows(500, n_classes, seed=3)
    scores = scores[:, 1] if n_classes == 2 else scores
    if score_type != "probability":
        scores = np.log(scores / (1 - scores)) if n_classes == 2 else np.log(scores)
    weights = rng.uniform(0.2, 3.0, len(y)) if weighted else None
    model = BetaScaling(l2_regularization=penalty, score_type=score_type)
    model.fit(X, y, scores, weights)
    regressors, held = curves(scores, score_type), score_type != "margin"
    F = fit_directly(regressors, y, n_classes, penalty, weights, held=held)
    found, best = model.predict_proba(None, scores), as_probabilities(F)
    # The core steps class by class, and is content with next to the best of many classes.
    np.testing.assert_allclose(found, best, rtol=0, atol=1e-6 if n_classes == 2 else 1e-3)
    losses = [log_loss(y, each, sample_weight=weights) for each in (found, best)]
    assert abs(losses[0] - losses[1]) < 1e-5
    # And the parameters are those of the regressors as they are.
    linear = model.intercepts_ + regressors @ model.slopes_.T
    np.testing.assert_allclose(found, as_probabilities(linear), rtol=0, atol=1e-12)


def test_of_many_classes_each_has_its_own_slope_alone():
    rng = np.random.default_rng(0)
    logits = log_softmax(2 * rng.normal(size=(2000, 31)), axis=1)
    y = np.argmax(0.7 * logits + rng.gumbel(size=logits.shape), axis=1)
    model = BetaScaling().fit(None, y, np.exp(logits))
    assert model.slopes_.shape == (31, 1) and model.parameters_.shape == (31, 2)
    F = fit_directly(logits, y, 31, 0.05, held=True)
    found = model.predict_proba(None, np.exp(logits))
    np.testing.assert_allclose(found, softmax(F, axis=1), rtol=0, atol=1e-4)


def test_a_strong_penalty_leaves_the_temperature_alone():
    for n_classes in (2, 3):
        X, y, scores = make_rows(400, n_classes)
        strong = BetaScaling(l2_regularization=1e9).fit(X, y, scores).predict_proba(None, scores)
        alone = TemperatureScaling().fit(X, y, scores).predict_proba(None, scores)
        np.testing.assert_allclose(strong, alone, rtol=0, atol=1e-6)


def test_a_curve_that_no_sigmoid_has():
    rng = np.random.default_rng(0)
    scores = rng.random(20_000)
    y = rng.random(20_000) < scores**3
    found = BetaScaling().fit(None, y, scores).predict_proba(None, [0.3, 0.5, 0.7, 0.9])[:, 1]
    np.testing.assert_allclose(found, np.array([0.3, 0.5, 0.7, 0.9]) ** 3, rtol=0, atol=0.02)


# Both


BOTH = [TemperatureScaling(), BetaScaling()]
both = pytest.mark.parametrize("calibrator", BOTH, ids=["temperature", "beta"])


@both
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_weight_counts_for_as_many_rows(calibrator, n_classes):
    X, y, scores = make_rows(200, n_classes)
    weights = np.arange(200) % 3
    weighted = clone(calibrator).fit(X, y, scores, weights)
    again = [np.repeat(each, weights, axis=0) for each in (X, y, scores)]
    repeated = clone(calibrator).fit(*again)
    found, expected = (each.predict_proba(None, scores) for each in (weighted, repeated))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@both
@pytest.mark.parametrize("n_classes", [2, 3])
def test_certain_scores_give_probabilities(calibrator, n_classes):
    rng = np.random.default_rng(0)
    second = np.tile(EXTREMES, 50)
    scores = np.zeros((400, n_classes))
    scores[:, 1], scores[:, 0] = second, 1.0 - second
    y = np.where(rng.random(400) < 0.8 * second + 0.1, 1, rng.integers(0, n_classes, 400))
    model = clone(calibrator).fit(None, y, scores)
    found = model.predict_proba(None, scores)
    assert_probabilities(found)
    assert (np.diff(found[:8, 1]) >= 0).all()


@both
def test_one_column_of_two_says_it_all(calibrator):
    X, y, scores = make_rows(300)
    one = clone(calibrator).fit(X, y, scores[:, 1]).predict_proba(None, scores[:, 1])
    two = clone(calibrator).fit(X, y, scores).predict_proba(None, scores)
    np.testing.assert_allclose(one, two, rtol=0, atol=1e-12)


def test_the_penalty_is_checked():
    for bad in (0, -1.0, float("nan"), "weak", None, True):
        with pytest.raises(ValueError, match="l2_regularization must be a number from"):
            BetaScaling(l2_regularization=bad).fit(None, [0, 1], [0.2, 0.7])
