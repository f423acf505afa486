"""Do no harm: the smallest tree that will do, and when scores stay uncalibrated."""

import math

import numpy as np
import pytest

from caltree._fitted.selection import SCORINGS, Candidate, Selection
from caltree._training.averaging import best_weights
from caltree._training.do_no_harm import (
    DEMANDED,
    DEMANDED_IF_FEW,
    FEW_MISTAKES,
    HEDGE,
    TIE,
    TIE_WITH_GLOBAL,
    best_tree,
    leave_uncalibrated_if_in_doubt,
    make_selection,
    prefer_simpler,
)
from caltree._training.losses import row_losses, standard_errors
from caltree._training.settings import Settings

from ..support.held_out import random_candidates, rows_of, sums_of, tree_levels

FIRST, SECOND = np.eye(2)
each_scoring = pytest.mark.parametrize("scoring", SCORINGS)
each_form = pytest.mark.parametrize("form", [lambda rows: rows, sums_of], ids=["rows", "sums"])
# Losses of rows of one class, by which each of them is a mistake.
OF_MISTAKES = {"rmse": 0.36, "log_loss": 1.0}


def predictions_apart(errors, scoring, n_rows=400, seed=0, around=0.2):
    """Two lists of probabilities whose losses are that many standard errors apart."""
    difference = np.random.default_rng(seed).standard_normal(n_rows)
    difference -= difference.mean()
    difference = 1e-3 * (difference + errors * difference.std() / math.sqrt(n_rows))
    lower = np.full(n_rows, around)
    of_class = [
        np.exp(-losses) if scoring == "log_loss" else 1.0 - np.sqrt(losses)
        for losses in (lower + difference, lower)
    ]
    return [np.column_stack([p, 1.0 - p]) for p in of_class]


def zeros(probabilities, scoring="rmse", weights=None, has_uncalibrated=True):
    """Candidates for rows that are all of the first class."""
    labels = np.zeros(len(probabilities[0]), dtype=int)
    return rows_of(probabilities, labels, weights, scoring, has_uncalibrated)


# Held-out rows


@each_scoring
@pytest.mark.parametrize("weighted", [False, True])
def test_mixtures_are_weighted_means(scoring, weighted):
    candidates, labels = random_candidates(0)
    weights = np.random.default_rng(0).gamma(1, size=len(labels)) if weighted else None
    held_out = rows_of(candidates, labels, weights, scoring)
    one, other = np.random.default_rng(1).dirichlet(np.ones(6), 2)
    losses = [
        row_losses(np.tensordot(mixture, candidates, 1), labels, scoring)
        for mixture in (one, other)
    ]
    mean = np.average(losses[0], weights=weights)
    expected = mean if scoring == "log_loss" else math.sqrt(mean)
    assert held_out.loss(one) == pytest.approx(expected, rel=1e-12)
    found = held_out.excess(one, other, scoring)
    assert found == pytest.approx(standard_errors(*losses, weights), rel=1e-9)
    assert found == -held_out.excess(other, one, scoring)
    sums = sums_of(held_out)
    assert sums.loss(one) == pytest.approx(expected, abs=1e-6)
    assert sums.excess(one, other, scoring) == pytest.approx(found, rel=1e-4)


@each_form
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_mistakes_are_those_of_the_first_candidate(form, weighted, n_classes):
    candidates, labels = random_candidates(0, n_classes=n_classes)
    weights = np.random.default_rng(0).choice([0.25, 1.0, 3.0], len(labels)) if weighted else None
    wrong = candidates[0].argmax(axis=1) != labels
    expected = float(wrong.sum() if weights is None else weights @ wrong)
    assert 3 < expected < len(labels)
    assert form(rows_of(candidates, labels, weights)).mistakes() == expected


@each_form
def test_a_tie_is_no_mistake_of_the_first_class(form):
    held_out = rows_of(np.full((1, 8, 2), 0.5), np.array([0] * 5 + [1] * 3))
    assert form(held_out).mistakes() == 3.0


# The best tree


def tree_of(losses, *, uncalibrated=None):
    """A tree whose levels, the root first, have these losses on every row."""
    known = [*([] if uncalibrated is None else [uncalibrated]), *losses]
    of_class = 1.0 - np.array(known)
    probabilities = np.stack([of_class, 1.0 - of_class], axis=1)[:, np.newaxis].repeat(50, axis=1)
    return zeros(probabilities, has_uncalibrated=uncalibrated is not None)


def settings_of(kept_gain, *, averaging=False, scoring="rmse"):
    return Settings(scoring=scoring, kept_gain=kept_gain, path_averaging=averaging)


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("uncalibrated", [None, 0.6])
@pytest.mark.parametrize(
    ("kept_gain", "level"),
    [(None, 3), (1.0, 3), (0.97, 3), (0.96, 2), (0.67, 2), (0.66, 1), (0.01, 1)],
)
def test_the_smallest_tree_that_keeps_its_share_of_the_gain(
    kept_gain, level, uncalibrated, averaging
):
    # The largest gains 0.3, the others 0.29 (0.967 of it) and 0.2 (0.667 of it).
    held_out = tree_of([0.5, 0.3, 0.21, 0.2], uncalibrated=uncalibrated)
    found = best_tree(held_out, settings_of(kept_gain, averaging=averaging))
    expected = np.eye(len(held_out))[level + (uncalibrated is not None)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("averaging", [False, True])
def test_a_tree_that_gains_nothing_is_its_root(averaging):
    for losses in ([0.3, 0.3, 0.3], [0.3, 0.35, 0.4]):
        found = best_tree(tree_of(losses), settings_of(0.95, averaging=averaging))
        assert found.tolist() == [1, 0, 0]


def test_a_larger_tree_may_be_worse():
    held_out = tree_of([0.5, 0.2, 0.4])
    assert best_tree(held_out, settings_of(0.95)).tolist() == [0, 1, 0]
    # Where it is not cut back, it is taken as it was grown.
    assert best_tree(held_out, settings_of(None)).tolist() == [0, 0, 1]


def test_all_of_the_gain_is_no_more_than_all():
    """Whatever is rounded: no gain is so large that nothing would keep it."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        root = rng.uniform(0.3, 0.9)
        held_out = tree_of([root, root * rng.uniform(0.1, 0.4)])
        assert best_tree(held_out, settings_of(1.0)).tolist() == [0, 1]


@each_scoring
def test_a_tree_is_an_average_over_its_levels_and_the_scores(scoring):
    held_out = tree_levels([1.0, 1.0, 1.0, 1.0], scoring=scoring)
    found = best_tree(held_out, settings_of(None, averaging=True, scoring=scoring))
    np.testing.assert_allclose(found, best_weights(held_out), rtol=0, atol=1e-12)
    assert np.count_nonzero(found) > 2
    # Cut back, it is an average over the first few of them.
    found = best_tree(held_out, settings_of(0.5, averaging=True, scoring=scoring))
    last = int(np.flatnonzero(found)[-1])
    assert 1 < last < 4
    expected = best_weights(held_out, range(last + 1))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


# The simpler one


@each_scoring
@pytest.mark.parametrize("by", [-4.0, -0.5, -0.01, 0.01, 2.0])
@pytest.mark.parametrize("has_uncalibrated", [False, True])
def test_the_root_is_taken_unless_the_tree_is_clearly_better(scoring, by, has_uncalibrated):
    root, tree = predictions_apart(TIE_WITH_GLOBAL + by, scoring)
    known = [np.full_like(root, 0.5)] * has_uncalibrated + [root, tree]
    held_out = zeros(known, scoring, has_uncalibrated=has_uncalibrated)
    alone = np.eye(len(known))
    found = prefer_simpler(held_out, alone[-1], averaging=False)
    assert np.array_equal(found, alone[-2] if by < 0.0 else alone[-1])


def test_one_model_for_all_rows_will_do_where_a_tree_is_no_better():
    held_out = tree_levels([1.5, 0.0, 0.0, 0.0])
    best = best_tree(held_out, settings_of(0.95, averaging=True))
    weights = prefer_simpler(held_out, best, averaging=True)
    assert make_selection(held_out, best, weights).chosen == "global"
    assert weights[0] + weights[1] == pytest.approx(1.0) and weights[0] < 0.2


def test_without_averages_one_candidate_is_taken():
    for qualities, expected in (([0.5, 2.0], [0, 0, 1]), ([2.0, 1.0], [0, 1, 0])):
        held_out = tree_levels(qualities)
        best = best_tree(held_out, settings_of(None))
        assert best.tolist() == [0, 0, 1]
        assert prefer_simpler(held_out, best, averaging=False).tolist() == expected


def test_scores_that_are_better_stay_uncalibrated():
    held_out = tree_levels([1.0, 1.0, 1.0, 1.0], uncalibrated=4.0, noise=0.3)
    best = best_tree(held_out, settings_of(0.95, averaging=True))
    weights = prefer_simpler(held_out, best, averaging=True)
    assert weights.tolist() == [1, 0, 0, 0, 0]
    assert make_selection(held_out, best, weights).chosen == "uncalibrated"
    without = tree_levels([1.0, 1.0, 1.0, 1.0], uncalibrated=None)
    best = best_tree(without, settings_of(0.95, averaging=True))
    simpler = prefer_simpler(without, best, averaging=True)
    assert len(simpler) == 4 and simpler.sum() == pytest.approx(1.0)


# Uncalibrated probabilities


def test_more_is_demanded_of_few_mistakes():
    assert all(DEMANDED_IF_FEW[scoring] >= DEMANDED[scoring] >= 0.0 for scoring in SCORINGS)
    assert DEMANDED_IF_FEW["log_loss"] > DEMANDED["log_loss"]


@each_scoring
@pytest.mark.parametrize("judged_by", SCORINGS)
@pytest.mark.parametrize("few", [False, True])
def test_scores_are_calibrated_only_if_it_helps_by_both_losses(scoring, judged_by, few):
    all_demanded = DEMANDED_IF_FEW if few else DEMANDED
    demanded = all_demanded[scoring]
    around = 0.2 if few else OF_MISTAKES[scoring]
    for errors in (-4.0, demanded - 0.01, demanded + 0.01, 8.0):
        worse, better = predictions_apart(errors, scoring, around=around)
        held_out = zeros([worse, better], judged_by)
        assert (held_out.mistakes() < FEW_MISTAKES) == few
        # If it helps by this loss, then the other decides.
        other = next(name for name in SCORINGS if name != scoring)
        excess = held_out.excess(FIRST, SECOND, other)
        helps = errors > demanded and excess > all_demanded[other]
        weights = leave_uncalibrated_if_in_doubt(held_out, [SECOND], averaging=False)
        assert np.array_equal(weights, SECOND if helps else FIRST)
    assert helps


@each_form
@pytest.mark.parametrize("weight", [None, 0.5])
def test_how_many_mistakes_are_few(form, weight):
    """What is enough for many mistakes, and too little for few."""
    errors = (max(DEMANDED.values()) + max(DEMANDED_IF_FEW.values())) / 2
    n_rows = 400
    noise = np.random.default_rng(0).standard_normal(n_rows)
    noise = (noise - noise.mean()) / noise.std()
    total = n_rows if weight is None else n_rows * weight
    better = 1e-3 * (noise + errors / math.sqrt(total))
    for n_mistakes, helps in ((FEW_MISTAKES - 1, False), (FEW_MISTAKES, True)):
        of_class = np.full(n_rows, 0.51)
        of_class[: n_mistakes if weight is None else round(n_mistakes / weight)] = 0.49
        known = [np.column_stack([p, 1 - p]) for p in (of_class, of_class + better)]
        weights = None if weight is None else np.full(n_rows, weight)
        held_out = form(zeros(known, weights=weights))
        found = leave_uncalibrated_if_in_doubt(held_out, [SECOND], averaging=False)
        assert np.array_equal(found, SECOND if helps else FIRST)


def test_an_improvement_by_both_losses_is_needed():
    uncalibrated = np.tile([0.3, 0.7], (400, 1))
    uncalibrated[::2] = [0.7, 0.3]
    better = uncalibrated + np.array([0.1, -0.1])
    choose = leave_uncalibrated_if_in_doubt
    found = choose(zeros([uncalibrated, better]), [SECOND], averaging=False)
    assert np.array_equal(found, SECOND)
    found = choose(zeros([better, uncalibrated]), [SECOND], averaging=False)
    assert np.array_equal(found, FIRST)
    # Most rows are better, but a few surely wrong: squared error and log loss disagree.
    sure = better.copy()
    sure[:12] = [1e-12, 1.0]
    held_out = zeros([uncalibrated, sure])
    assert held_out.mistakes() >= FEW_MISTAKES
    assert held_out.excess(FIRST, SECOND, "rmse") > DEMANDED["rmse"]
    assert np.array_equal(choose(held_out, [SECOND], averaging=False), FIRST)


@each_form
def test_where_a_tree_does_not_help_the_model_for_all_rows_may(form):
    """A tree that is surely wrong now and then loses by log loss, its root does not."""
    uncalibrated = np.tile([0.3, 0.7], (400, 1))
    uncalibrated[::2] = [0.7, 0.3]
    root = uncalibrated + np.array([0.1, -0.1])
    tree = root + np.array([0.1, -0.1])
    tree[:12] = [1e-12, 1.0]
    held_out = form(zeros([uncalibrated, root, tree]))
    alone = np.eye(3)
    assert not held_out.excess(alone[0], alone[2], "log_loss") > DEMANDED["log_loss"]
    assert held_out.excess(alone[1], alone[2], "rmse") > TIE_WITH_GLOBAL
    found = prefer_simpler(held_out, alone[2], averaging=False)
    assert np.array_equal(found, alone[1])


def sure_but_sometimes_wrong(n_wrong, *, wrong=1.0):
    """Probabilities that are nearly always certain and right, and a model that says less."""
    uncalibrated = np.tile([1.0, 0.0], (1000, 1))
    uncalibrated[:n_wrong] = [1.0 - wrong, wrong]
    root = np.tile([0.8, 0.2], (1000, 1))
    return zeros([uncalibrated, root, root])


@each_form
def test_scores_that_stay_uncalibrated_are_hedged_if_some_are_certain_and_wrong(form):
    root = np.eye(3)[1]
    held_out = form(sure_but_sometimes_wrong(20))
    # The model is worse by squared error, but a little of it saves what is certain and wrong.
    assert held_out.excess(np.eye(3)[0], root, "rmse") < DEMANDED_IF_FEW["rmse"]
    found = leave_uncalibrated_if_in_doubt(held_out, [root])
    np.testing.assert_allclose(found, [1.0 - HEDGE, HEDGE, 0.0], rtol=0, atol=1e-15)
    assert held_out.excess(np.eye(3)[0], found, "log_loss") > TIE
    # Without averages there is none of these two.
    alone = leave_uncalibrated_if_in_doubt(held_out, [root], averaging=False)
    assert alone.tolist() == [1, 0, 0]


@each_form
@pytest.mark.parametrize(
    "held_out",
    [
        pytest.param(sure_but_sometimes_wrong(1), id="next to no mistake"),
        pytest.param(sure_but_sometimes_wrong(20, wrong=0.6), id="none that is certain"),
        pytest.param(sure_but_sometimes_wrong(FEW_MISTAKES), id="many, which prove enough"),
    ],
)
def test_scores_are_not_hedged_without_need(form, held_out):
    found = leave_uncalibrated_if_in_doubt(form(held_out), [np.eye(3)[1]])
    assert found.tolist() == [1, 0, 0]


def test_uncalibrated_probabilities_get_the_largest_weight_that_costs_nothing():
    rng = np.random.default_rng(0)
    truth = rng.random(2000)
    labels = (rng.random(2000) < truth).astype(int)
    calibrated = np.column_stack([1 - truth, truth])
    shares = []
    for sharper in (1.7, 2.5, 4.0):
        odds = np.power(calibrated, sharper)
        uncalibrated = odds / odds.sum(axis=1, keepdims=True)
        held_out = rows_of([uncalibrated, calibrated], labels, has_uncalibrated=True)
        weights = leave_uncalibrated_if_in_doubt(held_out, [SECOND])
        assert weights.sum() == pytest.approx(1.0, abs=1e-15)
        share, step = weights[0], 2.0**-7
        shares.append(share)
        for nearby, tie in ((share, True), (share + step, False)):
            excess = held_out.excess(np.array([nearby, 1 - nearby]), SECOND, "rmse")
            assert (excess <= TIE) == tie
        sums = leave_uncalibrated_if_in_doubt(sums_of(held_out), [SECOND])
        np.testing.assert_allclose(sums, weights, rtol=0, atol=step)
    # The worse the scores, the less is left to them.
    assert shares == sorted(shares, reverse=True) and shares[0] > shares[-1] > 0


def test_row_weights_decide():
    one, other = np.tile([0.9, 0.1], (200, 1)), np.tile([0.5, 0.5], (200, 1))
    one[:100], other[:100] = other[:100].copy(), one[:100].copy()
    even, uneven = np.ones(200), np.repeat([3.0, 1.0], 100)
    for weights, expected in ((even, FIRST), (uneven, SECOND)):
        held_out = zeros([one, other], weights=weights)
        found = leave_uncalibrated_if_in_doubt(held_out, [SECOND], averaging=False)
        assert np.array_equal(found, expected)
    assert held_out.loss(FIRST) == pytest.approx(math.sqrt(0.75 * 0.25 + 0.25 * 0.01))


# The selection


@each_scoring
def test_the_selection_tells_losses_and_weights(scoring):
    held_out = tree_levels([0.2, 1.0, 1.2], scoring=scoring)
    best = np.array([0.0, 0.0, 0.5, 0.5])
    weights = np.array([0.25, 0.0, 0.375, 0.375])
    found = make_selection(held_out, best, weights)
    names = ("uncalibrated", "global", "2 regions", "4 regions")
    assert found == Selection(
        scoring,
        tuple(
            Candidate(name, held_out.loss(alone), weight)
            for name, alone, weight in zip(names, np.eye(4), weights, strict=True)
        ),
        held_out.loss(best),
        held_out.loss(weights),
    )
    assert (found.chosen, found.uncalibrated_weight) == ("local", 0.25)
    assert Selection.from_dict(found.to_dict()) == found


@pytest.mark.parametrize(
    ("weights", "chosen"),
    [
        ([1, 0, 0, 0], "uncalibrated"),
        ([0, 1, 0, 0], "global"),
        ([0.5, 0.5, 0, 0], "global"),
        ([0.5, 0.25, 0, 0.25], "local"),
        ([0, 0, 0, 1], "local"),
    ],
)
def test_the_choice_is_the_most_special_candidate_with_a_weight(weights, chosen):
    held_out = tree_levels([0.2, 1.0, 1.2])
    assert make_selection(held_out, np.eye(4)[3], np.array(weights)).chosen == chosen
