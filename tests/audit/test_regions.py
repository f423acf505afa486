"""Regions: found on one half of the rows, where alternatives share the test on the other."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from caltree._audit import regions
from caltree._audit.axes import attribute_axes, score_axis
from caltree._audit.effects import direction_of, effect_of, p_value_of
from caltree._audit.regions import (
    deal_halves,
    find_regions,
    first_of_alike,
    suggest_regions,
)

from .scenes import make_rows
from .test_whole import rows_of


@pytest.fixture(scope="module")
def rows():
    return rows_of(*make_rows(3000, shift=0.6)[:3])


@pytest.fixture(scope="module")
def faint():
    """The same attributes, with less to find."""
    return rows_of(*make_rows(3000, shift=0.2)[:3])


@pytest.fixture(scope="module")
def axes(rows):
    return attribute_axes(rows)


@pytest.fixture(scope="module")
def halves(rows):
    return deal_halves(rows, np.random.default_rng(0))


def search(rows, axes, learned):
    return list(regions._search(rows, axes, [score_axis(rows, 1)], learned))


def suggest(rows, axes, halves):
    return list(suggest_regions(rows, axes, *halves, np.random.default_rng(0)))


def test_all_regions_of_a_class_together_have_a_share_of_1(rows, axes):
    priors = regions._priors(axes, [score_axis(rows, 1)], rows.row_weights)
    assert sum(each.sum() for of_depth in priors.values() for each in of_depth) == pytest.approx(1)


def test_alternatives_come_by_evidence_and_are_few(faint, axes, halves):
    found = search(faint, axes, halves[0])
    assert 1 < len(found[0]) <= 30
    for alternatives in found:
        evidence = [each.evidence for each in alternatives]
        assert evidence == sorted(evidence, reverse=True)
        assert evidence[-1] > 0.01 * evidence[0]
        assert len({each.region.conditions for each in alternatives}) == len(alternatives)


def test_shares_do_not_depend_on_the_rows_that_regions_are_tested_on(faint, axes, halves):
    learned, tested = halves
    labels = faint.labels.copy()
    labels[tested] = labels[tested][::-1]
    other = replace(faint, labels=labels)
    first, second = search(faint, axes, learned), search(other, axes, learned)
    for one, same in zip(first, second, strict=True):
        assert [each.evidence for each in one] == [each.evidence for each in same]
        assert [each.region.conditions for each in one] == [each.region.conditions for each in same]


def test_the_alternative_with_the_smallest_p_value_for_its_share_is_tested(faint, axes, halves):
    learned, tested = halves
    here, there = faint.take(learned), faint.take(tested)
    scored = [*axes, score_axis(faint, 1)]
    known, taken = ([axis.take(half) for axis in scored] for half in (learned, tested))

    def alone(region):
        direction = direction_of(here, 1, region.contains(known))
        return p_value_of(there, 1, region.contains(taken), direction=direction)

    for each, alternatives in zip(
        suggest(faint, axes, halves), search(faint, axes, learned), strict=True
    ):
        total = sum(one.evidence for one in alternatives)
        p_values = [
            np.inf if p is None else min(1.0, p * total / one.evidence)
            for p, one in ((alone(one.region), one) for one in alternatives)
        ]
        chosen = alternatives[int(np.argmin(p_values))]
        assert each.conditions == chosen.region.words(scored)
        assert each.share == pytest.approx(chosen.evidence / total)


def test_a_group_that_is_not_the_first_of_its_half_is_found(rows, axes, halves, monkeypatch):
    """Chance may put another region before it, which the other half knows nothing about."""
    [first, *_], *_ = search(rows, axes, halves[0])
    assert first.region.words([*axes]) == ["school = none"]
    sex = replace(first, evidence=3 * first.evidence, region=regions.Region(((1, 0),)))
    monkeypatch.setattr(regions, "_search", lambda *given: iter([[sex, first]]))
    [found] = suggest(rows, axes, halves)
    assert found.conditions == ["school = none"]
    assert found.share == pytest.approx(0.25)
    for each in find_regions(rows, axes, halves, np.random.default_rng(0)):
        there = rows.take(halves[each.tested_on])
        inside = first.region.contains([axis.take(halves[each.tested_on]) for axis in axes])
        assert each.effect == effect_of(there, 1, inside, 0.25, direction=1)


def test_an_error_in_the_other_direction_does_not_count(rows, axes, halves):
    """Where one half says that scores are too low, labels of the other must say so, too."""
    _, tested = halves
    [same] = suggest(rows, axes, halves)
    assert same.direction == 1
    there = rows.take(tested)
    both = p_value_of(there, 1, same.inside)
    assert p_value_of(there, 1, same.inside, direction=1) == pytest.approx(both / 2)
    # Scores that are farther off in the other half, but too high there.
    own = rows.log_odds(1)[tested][same.inside]
    probabilities = rows.probabilities.copy()
    chosen = tested[same.inside]
    probabilities[chosen, 1] = expit(own + 1.5)
    probabilities[chosen, 0] = 1.0 - probabilities[chosen, 1]
    other = replace(rows, probabilities=probabilities)
    assert p_value_of(other.take(tested), 1, same.inside) < 1e-3
    found = find_regions(other, axes, halves, np.random.default_rng(0))
    [tested_there] = [each for each in found if each.tested_on == 1]
    assert tested_there.effect.shift < 0.0
    assert tested_there.effect.p_value > 0.999


def test_of_regions_that_are_nearly_the_same_the_first_is_kept():
    n_rows = np.arange(100)
    regions_and_classes = [
        ("a", n_rows < 50),
        ("a", n_rows < 54),
        ("b", n_rows < 50),
        ("a", n_rows < 60),
        ("a", n_rows >= 50),
        ("a", n_rows < 57),
    ]
    assert first_of_alike(regions_and_classes) == [0, 2, 3, 4]
    assert first_of_alike([]) == []


def test_calibrated_scores_have_few_regions_that_are_off():
    """At a level of 10 % per half, 16 of 160 tests are expected at most."""
    n_claims = 0
    for seed in range(80):
        rows = rows_of(*make_rows(1000, seed=seed)[:3])
        random = np.random.default_rng(seed)
        found = find_regions(rows, attribute_axes(rows), deal_halves(rows, random), random)
        for half in (0, 1):
            first = next(each for each in found if each.tested_on == half)
            n_claims += (first.effect.p_value or 1.0) <= 0.1
    assert n_claims <= 25
