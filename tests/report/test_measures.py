"""Measures before and after calibration, held against other ways to come by them."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit
from sklearn.metrics import roc_auc_score

from caltree import CalibrationTree, IdentityCalibrator
from caltree.metrics import brier_score, expected_calibration_error, log_loss
from caltree.report import report
from caltree.report.estimates import (
    Estimate,
    compare_aucs,
    compare_calibration_errors,
    compare_means,
)
from caltree.report.inputs import check_rows
from caltree.report.measures import Measure
from caltree.report.verdict import judge
from caltree.report.wording import lead, tone, verdict

from ..support.report_scenes import make_table, trained


def audited(y, before, after, weights=None, groups=None):
    """Rows as the measures take them, of two classes."""
    identity = IdentityCalibrator().fit(None, y, before)
    one = check_rows(identity, None, y, before, weights, None, groups).audited[0]
    other = check_rows(identity, None, y, after, weights, None, groups).audited[1]
    return one, other


def draw(n_rows, seed=0):
    """Rows whose scores are the truth but for a part that these do not see."""
    random = np.random.default_rng(seed)
    odds, unseen = random.normal(-1, 1.2, n_rows), random.normal(0, 0.7, n_rows)
    return random.random(n_rows) < expit(odds + unseen), expit(odds), expit(odds + unseen)


def by_name(data):
    return {each["name"]: each for each in data["measures"]}


def test_losses_are_those_of_the_metrics():
    tree, frame, y, scores = trained()
    after = tree.predict_proba(frame, scores)
    found = by_name(report(tree, frame, y, scores).data)
    for name, metric in (("log_loss", log_loss), ("squared_error", brier_score)):
        assert found[name]["before"] == pytest.approx(metric(y, scores))
        assert found[name]["after"] == pytest.approx(metric(y, after))
        assert found[name]["low"] < found[name]["change"] < found[name]["high"] < 0
        for when in ("before", "after"):
            parts = [found[f"{name}_{part}"][when] for part in ("calibration", "refinement")]
            assert sum(parts) == pytest.approx(found[name][when])
    expected = [expected_calibration_error(y, p) for p in (scores, after)]
    assert [found["calibration_error"][when] for when in ("before", "after")] == expected
    assert found["auc"]["before"] == pytest.approx(roc_auc_score(y, scores))
    assert found["auc"]["after"] == pytest.approx(roc_auc_score(y, after[:, 1]))


def test_the_interval_of_a_change_is_that_of_a_paired_test():
    y, before, after = draw(4000)
    rows, _ = audited(y, before, after)
    losses = [(y - p) ** 2 for p in (before, after)]
    found = compare_means(rows, *losses)
    expected = stats.ttest_rel(losses[1], losses[0])
    interval = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=0.01)
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.05)


def test_the_scale_of_weights_does_not_matter():
    y, before, after = draw(1000)
    weights = np.random.default_rng(1).random(1000)
    found = []
    for scale in (1.0, 7.0):
        rows, _ = audited(y, before, after, scale * weights)
        found.append(compare_means(rows, (y - before) ** 2, (y - after) ** 2))
    assert found[0].low == pytest.approx(found[1].low)
    assert found[0].low < found[0].change < found[0].high


def test_aucs_have_the_variance_of_delong():
    y, before, after = draw(300)
    rows = audited(y, before.round(1), after.round(2))
    [found, intervals] = compare_aucs(*rows)
    placements = []
    for p in (before.round(1), after.round(2)):
        wins = (p[y][:, None] > p[~y]) + 0.5 * (p[y][:, None] == p[~y])
        placements.append((wins.mean(axis=1), wins.mean(axis=0)))
    difference = [b - a for a, b in zip(*placements, strict=True)]
    error = np.sqrt(sum(part.var() / len(part) for part in difference))
    assert found.change == pytest.approx(difference[0].mean())
    assert found.high - found.change == pytest.approx(1.959964 * error, rel=1e-5)
    assert intervals[0][0] < found.before < intervals[0][1]


def test_weighted_and_several_classes_have_the_auc_of_scikit_learn(made):
    y, before, after = draw(300)
    weights = np.random.default_rng(1).integers(1, 4, 300).astype(float)
    found, _ = compare_aucs(*audited(y, before, after, weights))
    assert found.before == pytest.approx(roc_auc_score(y, before, sample_weight=weights))
    several = by_name(made("many_classes").data)["auc"]
    assert 0.5 < several["before"] < several["after"] < 1.0


def test_calibration_errors_are_equal_or_not():
    y, before, after = draw(10_000)
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    middle = expit(logit(before)[:, None] + 0.7 * nodes) @ weights / weights.sum()
    assert compare_calibration_errors(*audited(y, middle, after), 15) > 0.05
    off = expit(logit(middle) + 0.3)
    assert compare_calibration_errors(*audited(y, off, middle), 15) < 1e-4
    # As far off below as above.
    shift = 0.1 * middle * (1 - middle)
    assert compare_calibration_errors(*audited(y, middle + shift, middle - shift), 15) > 0.05
    assert compare_calibration_errors(*audited(y, middle, middle), 15) is None


def test_a_group_is_one_observation():
    """Rows that are there twice tell no more, if it is said that both are one."""
    y, before, after = draw(1_000)
    twice = [np.tile(each, 2) for each in (y, before, after)]
    customers = np.tile(np.arange(1_000), 2)
    once = report(IdentityCalibrator().fit(None, y, after), None, y, after).data
    assert once["groups_of_rows"] is None
    losses = [(each - before) ** 2 for each in (y, after)]
    for compare in (
        lambda rows, n: compare_means(rows[0], *(np.tile(each, n) for each in losses)),
        lambda rows, n: compare_aucs(*rows)[0],
    ):
        single, double = compare(audited(y, before, after), 1), compare(audited(*twice), 2)
        grouped = compare(audited(*twice, groups=customers), 2)
        assert grouped.low == pytest.approx(single.low) and grouped.high == pytest.approx(
            single.high
        )
        assert double.high - double.low < 0.75 * (single.high - single.low)
    off = expit(logit(before) + 0.15)
    single = compare_calibration_errors(*audited(y, off, before), 10)
    repeated = [np.tile(each, 2) for each in (y, off, before)]
    grouped = compare_calibration_errors(*audited(*repeated, groups=customers), 10)
    assert grouped == pytest.approx(single)
    assert compare_calibration_errors(*audited(*repeated), 10) < single


def test_a_report_on_groups_says_so():
    tree, frame, y, scores = trained()
    together = np.arange(len(frame)) // 4
    made = report(tree, frame, y, scores, groups=together)
    alone = report(tree, frame, y, scores).data
    n_groups = int(together.max()) + 1
    assert made.data["groups_of_rows"] == n_groups
    assert f"in {n_groups} groups, each of which counts as one observation" in made.to_html()
    assert made.data["measures"][0]["low"] != alone["measures"][0]["low"]
    with pytest.raises(ValueError, match="groups has 2 groups, but a report needs at least 5"):
        report(tree, frame, y, scores, groups=np.arange(len(frame)) % 2)
    with pytest.raises(ValueError, match="groups must have one group for each of the"):
        report(tree, frame, y, scores, groups=together[1:])


def test_the_page_says_if_losses_are_split_on_a_sample(monkeypatch):
    tree, frame, y, scores = trained()
    whole = report(tree, frame, y, scores)
    assert whole.data["split_rows"] == len(frame) and "drawn at random" not in whole.to_html()
    monkeypatch.setattr("caltree._audit.parts.MOST_ROWS", 400)
    part = report(tree, frame, y, scores)
    assert part.data["split_rows"] == 400
    assert part.to_html().count("400\u00a0rows") >= 2 and "drawn at random" in part.to_html()


def test_few_rows_have_no_intervals(made):
    data = made("few_rows").data
    assert all(each["low"] is None and each["p_value"] is None for each in data["measures"])
    assert {each["verdict"] for each in data["measures"]} == {"too few rows"}
    assert data["verdict"]["status"] == "unclear" and data["potential"] is None


# The verdict


def measures(**changes):
    """Measures that changed by so many standard errors, each of size 1."""
    found = {}
    for name in ("log_loss", "squared_error", *changes):
        change = changes.get(name, 0.0)
        p_value = 0.001 if abs(change) >= 4 else 0.5
        estimate = Estimate(10.0, 10.0 + change, change - 2, change + 2, p_value)
        found[name] = Measure(name, None, False, estimate, adjusted_p_value=p_value)
    return found


@pytest.mark.parametrize(
    ("changes", "status", "gain"),
    [
        ({"log_loss": -5}, "helped", "unknown"),
        ({"squared_error": -5, "log_loss": 1}, "helped", "unknown"),
        ({"log_loss": 5, "squared_error": 1}, "harmed", None),
        ({"log_loss": 5, "squared_error": -5}, "mixed", None),
        ({"log_loss": 1, "squared_error": -1}, "unclear", None),
        ({}, "unchanged", None),
        (
            {"log_loss": -9, "log_loss_calibration": -1, "log_loss_refinement": -8},
            "helped",
            "refinement",
        ),
        (
            {"log_loss": -9, "log_loss_calibration": -5, "log_loss_refinement": -4},
            "helped",
            "both",
        ),
        (
            {"log_loss": -16, "log_loss_calibration": -12, "log_loss_refinement": -4},
            "helped",
            "mostly calibration",
        ),
    ],
)
def test_the_verdict_needs_more_than_chance(changes, status, gain):
    assert judge(measures(**changes)) == {"status": status, "gain": gain}


def with_verdict(data, gain, error):
    """The same report with another verdict."""
    changed = [
        {**each, "verdict": error} if each["name"] == "calibration_error" else each
        for each in data["measures"]
    ]
    return {**data, "measures": changed, "verdict": {"status": "helped", "gain": gain}}


def test_the_headline_tells_calibration_from_refinement(made):
    data = made("loans").data
    assert verdict(with_verdict(data, "mostly refinement", "may be chance")) == (
        "Better probabilities, mostly by telling rows apart; calibration error may be unchanged."
    )
    assert verdict(with_verdict(data, "calibration", "better")) == (
        "Better probabilities, by better calibration."
    )
    rose = with_verdict(data, "refinement", "worse")
    assert verdict(rose) == ("Better probabilities, by telling rows apart; calibration error rose.")
    assert (tone(data), tone(rose)) == ("good", "doubted")


def test_what_may_be_chance_is_said_to_be(made):
    data = made("loans").data
    doubted = with_verdict(data, "both", "may be chance")
    [sentence] = [each for each in lead(doubted) if each.startswith("The calibration error")]
    assert sentence.endswith("; that may be chance.")
    assert not any("may be chance" in each for each in lead(data)[:4])


def test_only_a_better_value_is_bold(made):
    page, found = made("model").to_html(), by_name(made("model").data)
    assert {each["verdict"] for each in found.values()} == {"unchanged"}
    assert "best" not in page.split("<main>")[1].split("<script")[0]
    page = made("worse").to_html()
    row = page.split("Log loss<span")[1].split("</tr>")[0]
    assert by_name(made("worse").data)["log_loss"]["verdict"] == "worse"
    before, after = row.split("<td")[1:3]
    assert 'class="number best"' in before and 'class="number"' in after


def test_harm_is_called_harm(made):
    assert made("worse").data["verdict"]["status"] == "harmed"
    assert "Calibration did harm." in made("worse").to_html()


def test_what_there_was_to_gain_is_that_of_an_audit():
    from caltree import audit

    _, y, scores = make_table(1500, seed=7)
    frame = make_table(1500, seed=7)[0]
    tree = CalibrationTree().fit(*make_table(500))
    found = report(tree, frame, y, scores).data["potential"]["log_loss"]
    expected = audit(frame, y, scores).parts["log_loss"]
    for part in ("total", "calibration", "grouping", "refinement"):
        assert found[part]["mean"] == pytest.approx(getattr(expected, part).mean)
