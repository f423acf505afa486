"""How much each way of reading the trees of a forest counts for."""

import math

import numpy as np
import pytest

from caltree._inputs.attributes import learn
from caltree._training.bagging import SIZES, Blend, Blender
from caltree._training.do_no_harm import LEAVE_ALONE
from caltree._training.settings import Problem


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
    raw_share = 0.0 if margin else blend.selection[0]["share"]
    # Some is left to the scores: as much as makes no difference that could not be chance.
    assert 0.0 <= raw_share < 0.1
    assert blend.shares[1, 3] == pytest.approx(1.0 - raw_share, abs=1e-3)
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
    for trees, left_alone in ((raw, True), (better, False)):
        blender = Blender(problem, "rmse")
        for kind in (0, 1):
            blender.add(kind, all_rows(problem), says(problem, trees))
        blend = blender.finish()
        alone = blend.selection[0]
        assert alone["candidate"] == LEAVE_ALONE
        assert alone["share"] == 1.0 if left_alone else alone["share"] < 0.2
        assert alone["chosen"] == (alone["share"] > 0)
        assert blend.shares.sum() == pytest.approx(1.0 - alone["share"])
    assert [row["share"] for row in blend.selection[1:]] == blend.shares.ravel().tolist()


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
    else:
        assert blend.selection[0]["candidate"] == LEAVE_ALONE and not blend.shares.any()


def test_the_trees_of_a_kind_share_alike():
    shares = np.zeros((2, len(SIZES)))
    shares[0, [0, 2, 4]] = 0.25
    shares[1, 1] = 0.25
    found = Blend([], shares).tree_shares(np.array([4, 0]))
    np.testing.assert_allclose(found, shares / np.array([[4.0], [1.0]]))


def test_sizes_fall_and_the_first_leaves_the_root_whole():
    assert SIZES[0] == np.inf and (np.diff(SIZES) < 0).all()
