"""How much each way of reading the trees of a forest counts for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from caltree.attributes import learn
from caltree.blending import (
    SIZES,
    Blend,
    Blender,
    _least_squares_shares,
    _likeliest_shares,
)
from caltree.choice import LEAVE_ALONE
from caltree.selection import Problem

quick = settings(max_examples=40, deadline=None, derandomize=True)
SHARES = {"rmse": _least_squares_shares, "log_loss": _likeliest_shares}

# Shares


def random_candidates(seed, n_candidates=6, n_rows=60, n_classes=3):
    """Probabilities of various quality, some of them nearly or exactly the same."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    truth = 2.0 * np.eye(n_classes)[labels] + rng.standard_normal((n_rows, n_classes))
    noise = rng.standard_normal((n_candidates, n_rows, n_classes))
    logits = truth * rng.uniform(0, 2, (n_candidates, 1, 1)) + noise
    logits[1] = logits[0] + rng.choice([0.0, 1e-9, 1e-3]) * noise[1]
    odds = np.exp(logits)
    return odds / odds.sum(axis=2, keepdims=True), labels


def loss_of(shares, candidates, labels, weights, objective):
    """What the shares are to minimise, by rows and classes, spelled out."""
    blend = np.tensordot(shares, candidates, 1)
    if objective == "log_loss":
        of_rows = -np.log(blend[np.arange(len(labels)), labels])
    else:
        of_rows = ((blend - np.eye(blend.shape[1])[labels]) ** 2).sum(axis=1)
    return float(np.average(of_rows, weights=weights))


def best_shares(candidates, labels, weights, objective):
    """By a general method, from several starts."""
    count = len(candidates)
    starts = [np.full(count, 1 / count), *np.eye(count)]
    found = [
        minimize(
            lambda shares: loss_of(shares, candidates, labels, weights, objective),
            start * 0.9 + 0.1 / count,
            method="SLSQP",
            bounds=[(0, 1)] * count,
            constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 300},
        ).x
        for start in starts[:3]
    ]
    return [np.clip(shares, 0, 1) / np.clip(shares, 0, 1).sum() for shares in found]


def assert_on_the_simplex(shares):
    assert (shares >= 0).all()
    assert abs(shares.sum() - 1) < 1e-12


@pytest.mark.parametrize("objective", SHARES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_shares_are_better(objective, weighted, seed):
    candidates, labels = random_candidates(seed, n_classes=2 + seed % 2)
    weights = np.random.default_rng(seed).gamma(1, size=len(labels)) if weighted else None
    shares = SHARES[objective](candidates, labels, weights)
    assert_on_the_simplex(shares)
    found = loss_of(shares, candidates, labels, weights, objective)
    lowest = min(
        loss_of(other, candidates, labels, weights, objective)
        for other in best_shares(candidates, labels, weights, objective)
    )
    # Expectation and maximisation stop after a number of steps.
    assert found <= lowest + (1e-6 if objective == "rmse" else 1e-4)


@quick
@given(
    seed=st.integers(0, 999),
    objective=st.sampled_from(sorted(SHARES)),
    n_candidates=st.integers(2, 13),
    n_rows=st.integers(1, 40),
)
def test_neither_a_candidate_nor_a_mixture_of_two_is_better(seed, objective, n_candidates, n_rows):
    candidates, labels = random_candidates(seed, n_candidates, n_rows)
    weights = np.random.default_rng(seed).gamma(1, size=n_rows) + 0.01
    shares = SHARES[objective](candidates, labels, weights)
    assert_on_the_simplex(shares)
    found = loss_of(shares, candidates, labels, weights, objective)
    # What so many steps are known to reach.
    slack = 1e-5 if objective == "rmse" else 2 * math.log(n_candidates) / 500
    for one in np.eye(n_candidates):
        for share in (1.0, 0.5):
            mixed = share * one + (1 - share) * shares
            assert found <= loss_of(mixed, candidates, labels, weights, objective) + slack


@pytest.mark.parametrize("objective", SHARES)
def test_the_right_one_gets_everything(objective):
    candidates, labels = random_candidates(0)
    candidates[3] = np.eye(3)[labels]
    shares = SHARES[objective](candidates, labels, None)
    np.testing.assert_allclose(shares, np.eye(6)[3], rtol=0, atol=1e-4)


def test_shares_that_are_rounding_are_none():
    candidates, labels = random_candidates(0)
    candidates[3] = np.eye(3)[labels]
    shares = _least_squares_shares(candidates, labels, None)
    assert (shares[shares > 0] > 1e-6).all() and (shares == 0).any()


@pytest.mark.parametrize("objective", SHARES)
def test_equal_candidates_share_in_any_way(objective):
    candidates, labels = random_candidates(1, n_candidates=2)
    candidates = np.repeat(candidates[:1], 13, axis=0)
    assert_on_the_simplex(SHARES[objective](candidates, labels, None))


@pytest.mark.parametrize("objective", SHARES)
def test_candidates_that_exclude_what_happened(objective):
    labels = np.array([0, 1, 0, 1])
    wrong, right = np.eye(2)[1 - labels], np.eye(2)[labels]
    assert_on_the_simplex(SHARES[objective](np.array([wrong, wrong]), labels, None))
    shares = SHARES[objective](np.array([wrong, right]), labels, None)
    np.testing.assert_allclose(shares, [0, 1], rtol=0, atol=1e-6)


@quick
@given(seed=st.integers(0, 999), objective=st.sampled_from(sorted(SHARES)))
def test_a_row_of_weight_two_is_two_rows(seed, objective):
    candidates, labels = random_candidates(seed)
    times = np.random.default_rng(seed).integers(1, 4, len(labels))
    weighted = SHARES[objective](candidates, labels, times.astype(float))
    repeated = SHARES[objective](
        np.repeat(candidates, times, axis=1), np.repeat(labels, times), None
    )
    # Candidates that are all but equal share in any way.
    np.testing.assert_allclose(
        np.tensordot(weighted, candidates, 1),
        np.tensordot(repeated, candidates, 1),
        rtol=0,
        atol=1e-5,
    )


# Blends


def make_problem(n_rows=200, n_classes=2, *, seed=0, margin=False, weights=None):
    """Labels, and scores that deserve no trust."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows).astype(np.uint16)
    raw = rng.dirichlet(np.ones(n_classes), n_rows)
    known, matrix = learn(rng.standard_normal((n_rows, 2)))
    n_states = 1 if n_classes == 2 else n_classes
    return Problem(
        known=known,
        matrix=matrix,
        labels=labels,
        n_classes=n_classes,
        odds=np.zeros((n_rows, n_states)),
        offset=None if margin else np.zeros((n_rows, n_states)),
        raw=None if margin else raw,
        weights=weights,
    )


def states(probabilities):
    """As the trees give them: of two classes the second alone."""
    return probabilities[:, 1:] if probabilities.shape[1] == 2 else probabilities


def says(problem, probabilities):
    """What a tree says that says the same at every size."""
    return np.tile(states(probabilities), (len(SIZES), 1, 1))


def all_rows(problem):
    return np.arange(len(problem.labels), dtype=np.uint32)


def truth_and_nothing(problem):
    right = np.eye(problem.n_classes)[problem.labels] * 0.8 + 0.2 / problem.n_classes
    return right, np.full(right.shape, 1 / problem.n_classes)


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("margin", [False, True])
def test_the_kind_and_size_that_is_right_counts(objective, n_classes, margin):
    problem = make_problem(n_classes=n_classes, margin=margin)
    right, nothing = truth_and_nothing(problem)
    blender = Blender(problem, objective)
    says_something = says(problem, nothing)
    says_something[3] = states(right)
    for _ in range(3):
        blender.add(0, all_rows(problem), says(problem, nothing))
        blender.add(1, all_rows(problem), says_something)
    blend = blender.finish()
    assert blend.shares.shape == (2, len(SIZES))
    assert blend.shares[1, 3] == pytest.approx(1.0, abs=1e-3)
    assert blend.smallest_size(1) == SIZES[3]
    assert blend.smallest_size(0) == np.inf
    names = [row["candidate"] for row in blend.selection]
    assert (names[0] == LEAVE_ALONE) != margin
    assert len(names) == len(set(names)) == 12 + (not margin)
    row = blend.selection[-3]
    assert row["candidate"] == "regions of 60 rows, splits on scores too"
    assert row["chosen"] and row["share"] == blend.shares[1, 3]
    expected = 0.2 * math.sqrt((1 - 1 / n_classes) / n_classes)
    if objective == "log_loss":
        expected = -math.log(0.8 + 0.2 / n_classes)
    assert row["loss"] == pytest.approx(expected)
    np.testing.assert_allclose(blend.tree_shares(np.array([3, 3])), blend.shares / 3)


def test_scores_are_left_alone_unless_trees_are_clearly_better():
    problem = make_problem()
    raw = problem.raw
    better = raw * 0.9 + 0.1 * np.eye(2)[problem.labels]
    for trees, expected in ((raw, 1.0), (better, 0.0)):
        blender = Blender(problem, "rmse")
        for kind in (0, 1):
            blender.add(kind, all_rows(problem), says(problem, trees))
        blend = blender.finish()
        assert blend.selection[0]["candidate"] == LEAVE_ALONE
        assert blend.selection[0]["share"] == expected
        assert blend.selection[0]["chosen"] == (expected == 1.0)
        assert blend.shares.sum() == pytest.approx(1.0 - expected)
    assert [row["share"] for row in blend.selection[1:]] == blend.shares.ravel().tolist()


def test_two_standard_errors_are_asked_of_the_blend():
    labels = np.zeros(400, dtype=np.uint16)
    labels[200:] = 1
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(400)
    noise -= noise.mean()
    for errors, left_alone in ((1.9, True), (2.1, False)):
        problem = make_problem(400)
        raw = np.full((400, 2), 0.5)
        # The squared error of trees is lower by this much.
        lower = 1e-3 * (noise + errors * noise.std() / 20)
        of_class = 1 - np.sqrt(0.25 - lower)
        trees = np.where(np.eye(2)[labels] == 1, of_class[:, None], 1 - of_class[:, None])
        problem = Problem(**{**vars_of(problem), "labels": labels, "raw": raw})
        blender = Blender(problem, "rmse")
        for kind in (0, 1):
            blender.add(kind, all_rows(problem), says(problem, trees))
        assert (blender.finish().selection[0]["share"] == 1.0) == left_alone


def vars_of(problem):
    return {name: getattr(problem, name) for name in Problem.__dataclass_fields__}


def test_a_candidate_is_the_mean_over_trees_that_did_not_see_the_row():
    problem = make_problem(4, margin=True)
    blender = Blender(problem, "rmse")
    one = np.tile(np.array([[0.2], [0.4]]), (len(SIZES), 1, 1))
    two = np.tile(np.array([[0.6], [0.8]]), (len(SIZES), 1, 1))
    blender.add(0, np.array([0, 1], dtype=np.uint32), one)
    blender.add(0, np.array([1, 2], dtype=np.uint32), two)
    blender.add(1, np.array([1, 2], dtype=np.uint32), two)
    blender.add(1, np.array([1, 3], dtype=np.uint32), one)
    # Rows 1 and 2 were left out by trees of both kinds.
    second = [[(0.4 + 0.6) / 2, 0.8], [(0.6 + 0.2) / 2, 0.8]]
    for kind, means in enumerate(second):
        p = np.array(means)
        residuals = p - problem.labels[1:3]
        row = blender.finish().selection[kind * len(SIZES)]
        assert row["loss"] == pytest.approx(math.sqrt(np.mean(residuals**2)))


@pytest.mark.parametrize("objective", ["rmse", "log_loss"])
def test_weights_are_numbers_of_rows(objective):
    times = np.random.default_rng(5).integers(1, 4, 200)
    problem = make_problem(weights=times.astype(float), margin=True)
    place = np.repeat(np.arange(200), times)
    repeated = Problem(
        **{
            **vars_of(problem),
            "weights": None,
            "labels": problem.labels[place],
            "matrix": problem.matrix[place],
            "odds": problem.odds[place],
        }
    )
    right, nothing = truth_and_nothing(problem)
    rng = np.random.default_rng(1)
    trees = np.array(
        [np.clip(states(right) + 0.2 * rng.standard_normal((200, 1)), 0.01, 0.99) for _ in SIZES]
    )
    blends = []
    for which, rows in ((problem, slice(None)), (repeated, place)):
        blender = Blender(which, objective)
        blender.add(0, all_rows(which), trees[:, rows])
        blender.add(1, all_rows(which), says(which, nothing[rows]))
        blends.append(blender.finish())
    np.testing.assert_allclose(blends[0].shares, blends[1].shares, rtol=0, atol=1e-6)
    losses = [[row["loss"] for row in blend.selection] for blend in blends]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-12)


@pytest.mark.parametrize("margin", [False, True])
@pytest.mark.parametrize("rows", [[], [0, 1]])
def test_where_no_row_was_left_out_by_both_kinds(margin, rows):
    problem = make_problem(4, margin=margin)
    blender = Blender(problem, "rmse")
    found = np.full((len(SIZES), len(rows), 1), 0.5)
    blender.add(0, np.array(rows, dtype=np.uint32), found)
    blender.add(1, np.array([2, 3], dtype=np.uint32), np.full((len(SIZES), 2, 1), 0.5))
    blend = blender.finish()
    assert len(blend.selection) == 1 and blend.selection[0]["share"] == 1.0
    assert blend.selection[0]["chosen"]
    if margin:
        assert blend.selection[0]["candidate"] == "global"
        assert blend.shares[:, 0].tolist() == [0.5, 0.5] and not blend.shares[:, 1:].any()
        assert blend.smallest_size(0) == blend.smallest_size(1) == np.inf
    else:
        assert blend.selection[0]["candidate"] == LEAVE_ALONE and not blend.shares.any()


def test_nodes_are_split_down_to_the_smallest_size_that_counts():
    shares = np.zeros((2, len(SIZES)))
    shares[0, [0, 2, 4]] = 0.25
    shares[1, 1] = 0.25
    blend = Blend([], shares)
    assert [blend.smallest_size(kind) for kind in (0, 1)] == [SIZES[4], SIZES[1]]
    np.testing.assert_allclose(
        blend.tree_shares(np.array([4, 0])), shares / np.array([[4.0], [1.0]])
    )


def test_sizes_fall_and_the_first_leaves_the_root_whole():
    assert SIZES[0] == np.inf and (np.diff(SIZES) < 0).all()
