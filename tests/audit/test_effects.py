"""P-values and shifts of groups, against sums that are worked out exactly."""

from functools import reduce

import numpy as np
import pytest
from scipy.special import expit, logit

from caltree._audit.adjust import adjust
from caltree._audit.effects import effect_of, tail_probability
from caltree._audit.rows import check_rows


def rows_of(predicted, observed, **given):
    defaults = {
        "sample_weight": None,
        "groups": None,
        "score_type": "probability",
        "pos_label": None,
        "categorical_features": None,
        "drop_identifiers": False,
    }
    X = np.zeros((len(predicted), 1))
    return check_rows(X, observed, predicted, **{**defaults, **given})


@pytest.mark.parametrize(("n_rows", "low", "high"), [(60, 0.02, 0.3), (400, 0.001, 0.03)])
@pytest.mark.parametrize("deviations", [-2.0, -1.0, 1.0, 2.0, 4.0])
def test_the_tail_is_that_of_the_exact_distribution(n_rows, low, high, deviations):
    predicted = np.random.default_rng(0).uniform(low, high, n_rows)
    exact, mean = reduce(np.convolve, ([1 - p, p] for p in predicted)), predicted.sum()
    count = max(0, round(mean + deviations * np.sqrt(predicted @ (1 - predicted))))
    tail = exact[count + 1 :].sum() if count > mean else exact[:count].sum()
    tail += 0.5 * exact[count]
    assert tail_probability(predicted, np.ones(n_rows), count - mean) == pytest.approx(
        2 * tail, rel=0.2
    )


def test_all_labels_alike_have_the_probability_of_a_product():
    predicted = np.full(50, 0.1)
    found = tail_probability(predicted, np.ones(50), -5.0)
    assert found == pytest.approx(0.9**50)


def test_a_shift_makes_what_was_said_what_happened():
    random = np.random.default_rng(1)
    predicted = random.uniform(0.1, 0.6, 500)
    observed = random.random(500) < expit(logit(predicted) + 0.7)
    rows = rows_of(predicted, observed)
    found = effect_of(rows, 1, np.ones(500, dtype=bool))
    assert expit(logit(predicted) + found.shift).mean() == pytest.approx(observed.mean(), abs=1e-6)
    for end, side in ((found.shift_low, -1), (found.shift_high, 1)):
        there = expit(logit(predicted) + end)
        distance = (there.sum() - observed.sum()) / np.sqrt(there @ (1 - there))
        assert distance == pytest.approx(side * 1.959964, abs=1e-4)


def test_a_shift_without_any_event_is_infinite():
    predicted = np.full(200, 0.2)
    observed = np.arange(200) < 50
    found = effect_of(rows_of(predicted, observed), 1, np.arange(200) >= 50)
    assert found.shift == found.shift_low == -np.inf
    assert found.observed == 0.0
    turned = effect_of(rows_of(predicted, ~observed), 1, np.arange(200) >= 50)
    assert turned.shift == turned.shift_high == np.inf
    assert turned.observed == 1.0


def test_a_shift_may_be_large_where_a_few_scores_are_nearly_certain():
    predicted = np.append(np.full(197, 0.2), np.full(4, 1 - 1e-14))
    inside = np.arange(201) > 0
    found = effect_of(rows_of(predicted, ~inside), 1, inside)
    assert found.shift == -np.inf
    there = expit(logit(predicted[inside]) + found.shift_high)
    assert found.shift_high < -20.0
    assert there.sum() / np.sqrt(there @ (1 - there)) == pytest.approx(1.959964, abs=1e-4)


def test_few_rows_and_few_events_are_not_tested():
    predicted = np.full(400, 0.3)
    observed = np.arange(400) % 3 == 0
    rows = rows_of(predicted, observed)
    assert effect_of(rows, 1, np.arange(400) < 49).p_value is None
    assert effect_of(rows, 1, np.arange(400) < 50).p_value is not None
    rare = rows_of(np.full(400, 0.001), observed)
    assert effect_of(rare, 1, np.ones(400, dtype=bool)).p_value is None


def test_equal_weights_change_nothing():
    random = np.random.default_rng(2)
    predicted = random.uniform(0.1, 0.9, 300)
    observed = random.random(300) < predicted
    everything = np.ones(300, dtype=bool)
    plain = effect_of(rows_of(predicted, observed), 1, everything)
    weighted = effect_of(
        rows_of(predicted, observed, sample_weight=np.full(300, 7.0)), 1, everything
    )
    for name in ("low", "high", "shift_low", "shift_high"):
        assert getattr(weighted, name) == pytest.approx(getattr(plain, name), abs=1e-5)
    assert weighted.p_value == pytest.approx(plain.p_value, rel=1e-3)


def test_rows_said_twice_by_one_group_are_one_observation():
    random = np.random.default_rng(3)
    predicted = random.uniform(0.2, 0.8, 300)
    observed = random.random(300) < predicted + 0.03
    twice, group = np.repeat(np.arange(300), 2), np.repeat(np.arange(300), 2)
    everything = np.ones(600, dtype=bool)
    naive = effect_of(rows_of(predicted[twice], observed[twice]), 1, everything)
    honest = effect_of(rows_of(predicted[twice], observed[twice], groups=group), 1, everything)
    once = effect_of(rows_of(predicted, observed), 1, everything[:300])
    assert naive.p_value < honest.p_value
    assert honest.p_value == pytest.approx(once.p_value, rel=0.5)


def test_p_values_are_adjusted_by_hand():
    found = [0.01, 0.04, 0.03]
    assert adjust(found, "holm") == pytest.approx([0.03, 0.06, 0.06])
    assert adjust(found, "benjamini-hochberg") == pytest.approx([0.03, 0.04, 0.04])
    assert adjust([], "holm") == []


def test_one_of_several_alternatives_has_a_share_of_the_error():
    random = np.random.default_rng(0)
    predicted = random.uniform(0.1, 0.9, 400)
    rows = rows_of(predicted, random.random(400) < expit(logit(predicted) + 0.35))
    inside = np.ones(400, dtype=bool)
    alone, shared = effect_of(rows, 1, inside), effect_of(rows, 1, inside, share=0.1)
    assert shared.p_value == pytest.approx(10 * alone.p_value)
    assert shared.shift == alone.shift
    # At a tenth of 5 %, the reach of a normal interval is 2.81 standard errors, not 1.96.
    for low, high in (("shift_low", "shift_high"), ("low", "high")):
        widths = [getattr(each, high) - getattr(each, low) for each in (shared, alone)]
        assert widths[0] / widths[1] == pytest.approx(2.807 / 1.96, rel=0.02)
    assert effect_of(rows, 1, inside, share=1e-9).p_value == 1.0
