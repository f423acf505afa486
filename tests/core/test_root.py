"""The model of the root: the temperature, and what holds the root there.

Against what any optimiser finds, and against the conditions of a minimum.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, softmax

from caltree import CalibrationTree, _core

from ..spec import shrunken as spec
from ..support.shrunken_cases import Case, core_tree, scaled_parameters

N_ROWS = 400


def make_case(n_classes, *, factor=1.0, all_scores=True, weighted=False, seed=0) -> Case:
    """Probabilities that are too sure by some factor, and shifted by class; no attribute counts."""
    rng = np.random.default_rng(seed)
    evidence = rng.standard_normal((N_ROWS, n_classes))
    shift = np.linspace(-0.5, 0.5, n_classes)
    y = np.argmax(evidence + shift + rng.gumbel(size=evidence.shape), axis=1)
    logs = log_softmax(factor * evidence, axis=1)
    odds = logs[:, 1:] - logs[:, :1]
    return Case(
        X=np.zeros((N_ROWS, 1)),
        n_categories=np.zeros(1, dtype=np.int32),
        y=y,
        n_classes=n_classes,
        scores=spec.with_bends(odds) if n_classes == 2 else logs,
        offset=odds if n_classes == 2 else logs,
        all_scores=all_scores,
        weights=rng.gamma(2.0, size=N_ROWS) if weighted else None,
        max_bins=255,
        fills=np.zeros(1),
    )


def loss_of_temperature(case: Case, slope: float) -> float:
    """Of probabilities to some power, divided by their sum."""
    offset = case.offset if case.n_classes > 2 else np.hstack([0.0 * case.offset, case.offset])
    likely = log_softmax(slope * offset, axis=1)[np.arange(N_ROWS), case.y]
    return float(-np.average(likely, weights=case.weights))


def own_slopes(case: Case, parameters: np.ndarray) -> np.ndarray:
    """The slope of each class's own score."""
    if case.n_classes == 2:
        return parameters[:, 1]
    return np.diag(parameters[:, 1:]) if case.all_scores else parameters[:, 1]


KINDS = [
    pytest.param(2, True, id="two classes"),
    pytest.param(3, True, id="three classes"),
    pytest.param(3, False, id="three that do not see each other"),
    pytest.param(9, True, id="nine classes"),
]


@pytest.mark.parametrize(("n_classes", "all_scores"), KINDS)
@pytest.mark.parametrize("factor", [0.05, 1.0, 4.0, 60.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_has_the_least_loss(n_classes, all_scores, factor, weighted):
    case = make_case(n_classes, factor=factor, all_scores=all_scores, weighted=weighted)
    found = case.shrunken().fit_root(0.05, temperature_only=True)
    slopes = own_slopes(case, found)
    # One slope for all, and nothing else.
    np.testing.assert_allclose(slopes, slopes[0], rtol=1e-12)
    np.testing.assert_allclose(found.sum(), slopes.sum(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.abs(found).sum(), np.abs(slopes).sum(), rtol=1e-9, atol=1e-9)
    best = minimize_scalar(lambda slope: loss_of_temperature(case, slope), bounds=(1e-4, 60.0))
    # A slope of 0 leaves the scores uncorrected.
    assert loss_of_temperature(case, 1.0 + slopes[0]) <= best.fun + 1e-9
    assert 1.0 + slopes[0] == pytest.approx(best.x, rel=2e-3)


@pytest.mark.parametrize(("n_classes", "all_scores"), KINDS)
def test_the_penalty_does_not_count_along_the_temperature(n_classes, all_scores):
    case = make_case(n_classes, factor=4.0, all_scores=all_scores).shrunken()
    mild, strong = (case.fit_root(penalty, temperature_only=True) for penalty in (1e-3, 1e6))
    assert np.array_equal(mild, strong)
    np.testing.assert_allclose(case.fit_root(1e9), strong, rtol=0, atol=1e-5)


# -- What holds it there --------------------------------------------------------------------------


def gradient(sample: spec.Sample, parameters: np.ndarray) -> np.ndarray:
    """Of the loss, with respect to the parameters for scaled scores."""
    F = sample.regressors.offset + (sample.regressors.x * parameters).sum(axis=2)
    p = expit(F) if F.shape[1] == 1 else softmax(F, axis=1)
    errors = sample.weights[:, np.newaxis] * (p - sample.indicators)
    return np.einsum("ns,nsa->sa", errors, sample.regressors.x)


def costs_of_root(n_classes: int, *, all_scores: bool = True) -> np.ndarray:
    """Of a penalty of 1, written out: 8 a class, and more for bends and for other classes."""
    if n_classes == 2:
        return np.array([[16.0, 16.0, 16.0 * 40.0]])
    own = 8.0 * n_classes
    if not all_scores:
        return np.full((n_classes, 2), own)
    slopes = np.where(np.eye(n_classes, dtype=bool), own, own * (n_classes - 1))
    return np.column_stack([np.full(n_classes, own), slopes])


def costs_of_nodes(
    n_classes: int, *, all_scores: bool = True, n_classifiers: int = 1
) -> np.ndarray:
    """Of a penalty of 1, written out: 1 for what is a class's own, and 40 for all else."""
    if n_classes == 2:
        return np.array([[1.0, *[1.0] * n_classifiers, *[40.0] * n_classifiers]])
    if not all_scores:
        return np.ones((n_classes, 1 + n_classifiers))
    slopes = np.where(np.eye(n_classes, dtype=bool), 1.0, 40.0)
    return np.column_stack([np.ones(n_classes), *[slopes] * n_classifiers])


def costs_of_a_step(
    costs: np.ndarray, *, is_root: bool, all_scores: bool, corrects_probabilities: bool
) -> np.ndarray:
    """What the core asks of each parameter, for a penalty of 1 and a shape as that of `costs`.

    Where the loss does not bend, and scores that are all even have no temperature, the penalty
    alone ends the first step.
    """
    n_states, width = costs.shape
    n_scores = (width - 1) * (1 if all_scores else n_states)
    slopes = np.random.default_rng(0).normal(size=(1, n_states, width))
    fits = _core.NodeFits(
        parents=np.zeros((1, n_states * width)),
        n_states=n_states,
        sees_all=all_scores,
        centre=np.zeros(n_scores),
        scale=np.zeros(n_scores),
        corrects_probabilities=corrects_probabilities,
        penalty=1.0,
        is_root=is_root,
        weight=np.ones(1),
        loss=np.ones(1),
        gradient=slopes,
        hessian=np.zeros((1, n_states, width, width)),
        noise=0.0,
    )
    return slopes[0] / fits.trials().reshape(costs.shape)


@pytest.mark.parametrize(("n_classes", "all_scores"), KINDS)
def test_parameters_cost_what_they_should(n_classes, all_scores):
    kind = {"all_scores": all_scores}
    of_root, of_nodes = costs_of_root(n_classes, **kind), costs_of_nodes(n_classes, **kind)
    two = costs_of_nodes(n_classes, **kind, n_classifiers=2)
    # Margins, and several classifiers, have no temperature, and the root is a node as any other.
    for costs, is_root, corrects in [
        (of_root, True, True),
        (of_nodes, False, True),
        (of_nodes, True, False),
        (of_nodes, False, False),
        (two, True, True),
        (two, False, True),
    ]:
        found = costs_of_a_step(costs, is_root=is_root, corrects_probabilities=corrects, **kind)
        np.testing.assert_allclose(found, costs, rtol=1e-12)


@pytest.mark.parametrize("penalty", [0.05, 2.0])
def test_the_root_is_held_at_the_temperature(penalty):
    """Where the loss pulls as strongly as the penalty holds, there is the minimum."""
    case = make_case(2, factor=3.0)
    training, sample = case.shrunken(), case.sample()
    root = scaled_parameters(sample, training.fit_root(penalty))
    held_at = scaled_parameters(sample, training.fit_root(penalty, temperature_only=True))
    assert np.abs(root - held_at).max() > 0.05
    hold = penalty * costs_of_root(2) * (root - held_at)
    np.testing.assert_allclose(-gradient(sample, root), hold, rtol=0, atol=1e-3)


@pytest.mark.parametrize("all_scores", [True, False])
@pytest.mark.parametrize("penalty", [0.05, 2.0])
def test_the_root_of_more_classes_is_held_there_too(penalty, all_scores):
    """Classes go their ways without a look at each other, which takes long, but gets there."""
    case = make_case(3, factor=3.0, all_scores=all_scores)
    training, sample = case.shrunken(), case.sample()
    root = scaled_parameters(sample, training.fit_root(penalty))
    held_at = scaled_parameters(sample, training.fit_root(penalty, temperature_only=True))
    costs = penalty * costs_of_root(3, all_scores=all_scores)

    def value(flat: np.ndarray) -> float:
        parameters = flat.reshape(root.shape)
        loss = spec.losses(sample, np.arange(N_ROWS), parameters).sum()
        return float(loss + 0.5 * (costs * (parameters - held_at) ** 2).sum())

    best = minimize(value, held_at.ravel(), method="L-BFGS-B", tol=1e-12).fun
    start = value(held_at.ravel())
    assert start - best > 1.0
    assert start - value(root.ravel()) > 0.999 * (start - best)


@pytest.mark.parametrize("kind", ["margins", "two classifiers"])
def test_other_scores_have_no_temperature(kind):
    """The root is held where it begins then."""
    case = make_case(2, factor=3.0)
    if kind == "margins":
        case = replace(case, offset=None)
    else:
        odds = case.offset
        case = replace(case, scores=spec.with_bends(np.hstack([odds, odds**3 / 9])))
    training, sample = case.shrunken(), case.sample()
    root = scaled_parameters(sample, training.fit_root(0.5))
    hold = 0.5 * costs_of_nodes(2, n_classifiers=case.scores.shape[1] // 2) * root
    np.testing.assert_allclose(-gradient(sample, root), hold, rtol=0, atol=1e-3)
    assert np.array_equal(training.fit_root(0.5, temperature_only=True), training.fit_root(0.5))


# -- Scores that do not vary ----------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, -1.2])
def test_scores_that_are_all_alike(constant):
    """There is no temperature where all is even; elsewhere it finds the frequencies."""
    case = make_case(2)
    odds = np.full((N_ROWS, 1), constant)
    case = replace(case, scores=spec.with_bends(odds), offset=odds)
    (found,) = case.shrunken().fit_root(1e3, temperature_only=True)
    frequency = expit(constant + found[0])
    expected = 0.5 if constant == 0.0 else case.y.mean()
    assert frequency == pytest.approx(expected, abs=1e-6)
    assert not found[1:].any()


def test_a_class_of_constant_scores_is_sharpened_with_the_others():
    case = make_case(3)
    logs = np.column_stack([case.scores[:, :2], np.full(N_ROWS, -1.0)])
    case = replace(case, scores=logs, offset=logs)
    found = case.shrunken().fit_root(0.05, temperature_only=True)
    slope = found[0, 1]
    best = minimize_scalar(lambda slope: loss_of_temperature(case, slope), bounds=(1e-4, 60.0))
    assert 1.0 + slope == pytest.approx(best.x, rel=2e-3)
    # Where nothing varies, the intercept stands for the slope.
    assert found[2].tolist() == [pytest.approx(-slope), 0.0, 0.0, 0.0]


# -- Models that do not fall ----------------------------------------------------------------------


def turned_round(kind: str, *, margins: bool) -> Case:
    """Scores of two classes that say the opposite, everywhere or where they are far from even."""
    rng = np.random.default_rng(0)
    odds = 2.0 * rng.standard_normal((N_ROWS, 1))
    truth = {"everywhere": -odds, "above": -3.0 * odds * (odds > 0), "below": -odds * (odds < 0)}
    y = (rng.random((N_ROWS, 1)) < expit(truth[kind] + 0.4)).astype(int)[:, 0]
    scores = spec.with_bends(odds)
    return replace(make_case(2), y=y, scores=scores, offset=None if margins else odds)


def grown_root(case: Case, penalty: float, *, monotone: bool) -> np.ndarray:
    """Intercept, slope and bend of the root, in units of the scores as they are."""
    limits = spec.Settings(penalty, max_depth=0, monotone=monotone)
    return core_tree(case, limits).arrays["parameters"][0]


@pytest.mark.parametrize("kind", ["everywhere", "above", "below"])
@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("penalty", [0.05, 3.0])
def test_the_best_root_of_those_that_rise(kind, margins, penalty):
    case = turned_round(kind, margins=margins)
    sample, is_corrected = case.sample(), not margins
    free = grown_root(case, penalty, monotone=False)
    assert abs(free[2]) > free[1] + is_corrected + 0.1  # it falls somewhere
    found = grown_root(case, penalty, monotone=True)
    assert abs(found[2]) <= found[1] + is_corrected + 1e-12
    costs = penalty * (costs_of_nodes(2) if margins else costs_of_root(2))
    held_at = np.zeros((1, 3))
    if is_corrected:
        slope = minimize_scalar(
            lambda change: loss_of_temperature(case, 1.0 + change), bounds=(-1.0, 9.0)
        ).x
        held_at = scaled_parameters(sample, np.array([0.0, max(slope, -1.0), 0.0]))

    def value(unscaled: np.ndarray) -> float:
        parameters = scaled_parameters(sample, unscaled)
        loss = spec.losses(sample, np.arange(N_ROWS), parameters).sum()
        return float(loss + 0.5 * (costs * (parameters - held_at) ** 2).sum())

    rises = [
        {"type": "ineq", "fun": lambda p, sign=sign: p[1] + is_corrected - sign * p[2]}
        for sign in (1.0, -1.0)
    ]
    start = np.array([0.1, 0.2 - is_corrected + 1.0, 0.0])
    options = {"ftol": 1e-12, "maxiter": 500}
    best = minimize(value, start, method="SLSQP", constraints=rises, options=options)
    assert value(found) <= best.fun + 1e-4


def test_scores_of_two_values_do_not_turn_round():
    """Equally far from even, they have one and the same bend."""
    rng = np.random.default_rng(0)
    odds = rng.choice([-1.0, 1.0], (N_ROWS, 1))
    y = (rng.random((N_ROWS, 1)) < expit(-odds)).astype(int)[:, 0]
    case = replace(make_case(2), y=y, scores=spec.with_bends(odds), offset=odds)
    assert grown_root(case, 0.05, monotone=False)[1] < -1.5
    assert grown_root(case, 0.05, monotone=True)[1] == pytest.approx(-1.0, abs=1e-9)


def test_only_one_score_of_two_classes_can_rise():
    for case in (make_case(3), replace(make_case(2), scores=np.zeros((N_ROWS, 4)))):
        with pytest.raises(ValueError, match="only one score of two classes can rise"):
            core_tree(case, spec.Settings(0.05, monotone=True))
        with pytest.raises(ValueError, match="only one score of two classes can rise"):
            case.shrunken().fit_root(0.05, rising=True)


@pytest.mark.parametrize("margins", [False, True])
@pytest.mark.parametrize("monotone", [False, True])
def test_a_root_alone_is_that_of_a_tree(margins, monotone):
    case = turned_round("above", margins=margins)
    found = case.shrunken().fit_root(0.05, rising=monotone)
    assert np.array_equal(found[0], grown_root(case, 0.05, monotone=monotone))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_that_scores_tell_apart_do_not_become_certain(n_classes):
    random = np.random.default_rng(0)
    y = np.arange(300) % n_classes
    scores = random.dirichlet(np.ones(n_classes), 300) * 0.2
    scores[np.arange(300), y] += 0.8
    model = CalibrationTree(max_leaf_nodes=2, do_no_harm=False).fit(np.zeros((300, 1)), y, scores)
    p = model.predict_proba(np.zeros((300, 1)), scores)[np.arange(300), y]
    # All rows together lose about one mistake's worth, and not next to nothing.
    assert 0.02 < -np.log(p).sum() < 1.5
