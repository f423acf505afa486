"""`caltree.audit`: what it finds, what it refuses, and the forms of its result."""

import json
from dataclasses import replace
from importlib import resources

import jsonschema
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from caltree import Audit, audit
from caltree._audit import parts
from caltree._audit.effects import effect_of, farthest_off
from caltree._audit.parts import Part
from caltree._audit.words import headline, subject, verdict_of
from caltree.metrics import (
    brier_score,
    log_loss,
    multicalibration_error,
    smooth_calibration_error,
)

from .scenes import make_rows
from .test_whole import rows_of

SCHEMA = json.loads(
    (resources.files("caltree") / "schema" / "audit.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def found():
    table, labels, scores, _ = make_rows(4000, shift=1.0)
    return audit(table, labels, scores, by=["school", "sex"], pairs=True)


def test_a_group_that_is_off_is_named(found):
    assert isinstance(found, Audit)
    assert not found.is_calibrated
    assert found.regions[0].name == "school = none"
    assert found.regions[0].is_off
    [group] = [each for each in found.groups if each.conditions == ["school = none"]]
    assert group.is_off
    assert 0.6 < group.shift < 1.4
    assert group.low < group.observed < group.high
    assert group.same_in_halves


def test_groups_are_all_rows_those_of_columns_and_of_pairs(found):
    assert len(found.groups) == 1 + 3 + 2 + 6
    assert found.groups[0].name == "all rows"
    assert sum(each.n_rows for each in found.groups[1:4]) == 4000
    assert {len(each.conditions) for each in found.groups[-6:]} == {2}


def test_each_code_is_a_group():
    table, labels, scores, _ = make_rows(2000, seed=5)
    random = np.random.default_rng(0)
    table = table.assign(race=random.integers(0, 9, 2000), ratio=random.random(2000))
    table["days"], table["half"] = random.integers(0, 30, 2000), random.integers(0, 9, 2000) / 2
    for column, n_groups in {"race": 9, "ratio": 5, "days": 5, "half": 5}.items():
        groups = audit(table, labels, scores, by=column).groups[1:]
        assert len(groups) == n_groups
        assert sum(each.n_rows for each in groups) == 2000
        assert (groups[3].name == "race = 3") == (column == "race")


def test_the_parts_of_the_loss_sum_to_the_loss(found):
    _, labels, scores, _ = make_rows(4000, shift=1.0)
    truth = labels == "yes"
    for name, metric in (("log_loss", log_loss), ("squared_error", brier_score)):
        own = found.parts[name]
        three = (own.calibration, own.grouping, own.refinement)
        assert sum(part.mean for part in three) == pytest.approx(metric(truth, scores))
        assert own.total.mean == pytest.approx(metric(truth, scores))
        assert own.total.low < own.total.mean < own.total.high
    assert found.parts["log_loss"].grouping.low > 0.0


def test_the_measures_are_those_of_the_metrics(found):
    table, labels, scores, _ = make_rows(4000, shift=1.0)
    assert found.smooth_ece == pytest.approx(smooth_calibration_error(labels, scores), abs=1e-6)
    expected = multicalibration_error(table, labels, scores)
    assert found.mce.sigmas == pytest.approx(expected.sigmas)


def test_calibrated_scores_are_let_alone():
    table, labels, scores, _ = make_rows(2000, seed=5)
    calm = audit(table, labels, scores, by="sex")
    assert calm.is_calibrated
    assert "No miscalibration was found" in str(calm)


@pytest.mark.parametrize(
    ("helps", "who"),
    [
        (["grouping"], "regions"),
        (["calibration"], "a curve"),
        (["calibration", "grouping"], "a curve and regions"),
    ],
)
def test_what_no_test_finds_may_still_be_a_gain(helps, who):
    table, labels, scores, _ = make_rows(2000, seed=5)
    calm = audit(table, labels, scores, by="sex")
    gain = dict.fromkeys(helps, Part(0.01, 0.005, 0.015))
    changed = {**calm.parts, "log_loss": replace(calm.parts["log_loss"], **gain)}
    said = headline(replace(calm, parts=changed))
    assert said == f"No test found an error, but {who} would lower the log loss."


def test_regions_do_not_depend_on_the_rows_they_are_tested_on():
    table, labels, scores, _ = make_rows(2000, shift=1.0)
    first = audit(table, labels, scores)
    again = audit(table, labels, scores)
    assert first.to_dict() == again.to_dict()
    assert audit(table, labels, scores, random_state=1).to_dict() != first.to_dict()


def test_rows_of_weight_0_are_left_out():
    table, labels, scores, _ = make_rows(1500, shift=1.0)
    more = pd.concat([table, table.iloc[:200]])
    weights = np.r_[np.ones(1500), np.zeros(200)]
    weighted = audit(
        more, np.r_[labels, labels[:200]], np.r_[scores, scores[:200]], sample_weight=weights
    )
    plain = audit(table, labels, scores)
    assert weighted.n_rows == 1500
    assert weighted.p_value == pytest.approx(plain.p_value)
    assert weighted.groups[0].predicted == pytest.approx(plain.groups[0].predicted)


def test_a_single_column_of_another_class_is_told_as_such():
    table, labels, scores, _ = make_rows(1500, shift=1.0)
    found = audit(table, labels, 1.0 - scores, pos_label="no")
    assert found.event == "no"
    assert found.groups[0].predicted == pytest.approx(1.0 - scores.mean())


def test_log_odds_are_taken_as_such():
    table, labels, scores, _ = make_rows(1500, shift=1.0)
    odds = np.log(scores / (1.0 - scores))
    one, other = audit(table, labels, scores), audit(table, labels, odds, score_type="logit")
    assert other.groups[0].predicted == pytest.approx(one.groups[0].predicted)


def test_several_classes():
    random = np.random.default_rng(0)
    X = random.integers(0, 3, (3000, 2))
    odds = random.normal(size=(3000, 3))
    scores = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    odds[:, 2] += 1.2 * (X[:, 0] == 2)
    truth = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    labels = (random.random((3000, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    found = audit(X, labels, scores, by=[0])
    assert found.event is None
    assert found.p_value < 0.001
    assert found.regions[0].label == "2"
    assert found.regions[0].name == "x0 > 1.5"
    assert "2: x0 > 1.5" in str(found)


@pytest.mark.parametrize("n_groups", [1, 4])
def test_too_few_groups_of_rows_are_refused(n_groups):
    table, labels, scores, _ = make_rows(200)
    message = rf"groups has {n_groups} groups?, but an audit needs at least 5, since it holds out"
    with pytest.raises(ValueError, match=message):
        audit(table, labels, scores, groups=np.arange(200) % n_groups)


def test_groups_of_rows_stay_together():
    table, labels, scores, _ = make_rows(1500, shift=1.5)
    found = audit(table, labels, scores, groups=np.arange(1500) // 3, by="school")
    assert found.grouped
    assert found.p_value <= 0.01
    assert any(each.is_off for each in found.groups)


def test_benjamini_hochberg_claims_at_least_as_much():
    table, labels, scores, _ = make_rows(1500, shift=0.5)
    holm = audit(table, labels, scores, by=["school", "age"])
    other = audit(table, labels, scores, by=["school", "age"], adjustment="benjamini-hochberg")
    for strict, lenient in zip(holm.groups, other.groups, strict=True):
        assert lenient.adjusted_p_value <= strict.adjusted_p_value


def test_json_fits_its_schema(found):
    plain = json.loads(found.to_json())
    jsonschema.validate(plain, SCHEMA)
    assert plain["schema"] == SCHEMA["$id"]
    assert plain["regions"][0]["conditions"] == ["school = none"]


def test_infinite_shifts_are_null_in_json():
    random = np.random.default_rng(0)
    X = (np.arange(1000) < 100).astype(float)[:, np.newaxis]
    scores = np.full(1000, 0.3)
    labels = (random.random(1000) < expit(-0.85)) & (X[:, 0] == 0)
    plain = audit(X, labels, scores, by=[0]).to_dict()
    jsonschema.validate(json.loads(json.dumps(plain)), SCHEMA)
    assert [each["shift"] for each in plain["groups"]].count(None) == 1


def test_tables_scroll_by_themselves_on_a_phone():
    table, labels, scores, _ = make_rows(1500, shift=1.0)
    page = audit(table, labels, scores).to_html()
    assert page.count("<table>") == page.count('<div class="wide"><table>') >= 3


def test_the_page_escapes_names():
    table, labels, scores, _ = make_rows(1500, shift=1.0)
    table["school"] = table["school"].replace("none", "<script>alert(1)</script>")
    page = audit(table, labels, scores, by="school").to_html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_in_a_shell_it_is_one_line(found):
    assert repr(found) == f"<Audit of {subject(found)}: {headline(found)}>"
    assert "\n" not in repr(found)


def test_the_result_is_shown_in_a_notebook_and_saved(found, tmp_path):
    assert found._repr_html_().startswith('<div class="caltree-audit">')
    found.save(tmp_path / "audit.html")
    assert "school = none" in (tmp_path / "audit.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"by": ["country"]}, "country"),
        ({"adjustment": "none"}, "adjustment"),
        ({"alpha": 5}, "alpha must be a number between 0 and 1, got 5"),
        ({"pairs": "yes"}, "pairs"),
        ({"random_state": None}, "random_state must be a whole number"),
    ],
)
def test_arguments_that_are_refused(given, message):
    table, labels, scores, _ = make_rows(200)
    with pytest.raises((ValueError, TypeError), match=message):
        audit(table, labels, scores, **given)


def test_margins_few_rows_and_several_classifiers_are_refused():
    table, labels, scores, _ = make_rows(200)
    with pytest.raises(ValueError, match="margins, not probabilities"):
        audit(table, labels, 10 * scores - 5, score_type="margin")
    with pytest.raises(ValueError, match="needs at least 50"):
        audit(table[:40], labels[:40], scores[:40])
    both = np.column_stack([1 - scores, scores, 1 - scores, scores])
    with pytest.raises(ValueError, match="those of 2 classifiers"):
        audit(table, labels, both)


def test_what_is_not_tested_is_not_said_to_be():
    """Groups of rows that belong together are too few for any region."""
    random = np.random.default_rng(0)
    scores = random.random(400)
    X, y = random.normal(size=(400, 2)), random.random(400) < scores
    found = audit(X, y, scores, groups=np.arange(400) % 9)
    assert found.regions == [] or all(each.p_value is None for each in found.regions)
    text = found.to_text()
    assert "No region was large enough to be tested." in text
    assert "\nNo group or region was tested.\n" in text
    assert "To test the groups of a column, name it with by." in text


def test_a_curve_that_helps_one_loss_does_no_harm_by_the_other():
    """A few scores are far too low: what is best for log loss is bad by squared error."""
    random = np.random.default_rng(0)
    odds, is_low = random.normal(-1.2, 0.6, 4000), random.random(4000) < 0.06
    y = random.random(4000) < np.where(is_low, 0.12, expit(odds))
    scores = expit(np.where(is_low, -6.0 - 3.0 * random.random(4000), odds))
    by_loss = audit(random.normal(size=(4000, 1)), y, scores).parts
    assert by_loss["log_loss"].calibration.low > 0.01
    found = by_loss["squared_error"].calibration
    assert found.low < 0.0 < found.high


@pytest.mark.parametrize(("most", "n_folds"), [(600, 5), (599, 3)])
def test_many_rows_are_dealt_into_fewer_folds(monkeypatch, most, n_folds):
    seen = []
    monkeypatch.setattr(parts, "_MANY_ROWS", most)
    usual = parts.make_folds
    monkeypatch.setattr(parts, "make_folds", lambda *given: seen.append(given) or usual(*given))
    audit(*make_rows(600)[:3])
    assert [given[0] for given in seen] == [n_folds]


def test_an_error_in_the_other_direction_is_called_so(found):
    region = replace(found.regions[0], is_off=False)
    assert region.direction == 1
    assert verdict_of(region) == "may be chance"
    opposite = replace(region, predicted=region.observed, observed=region.predicted)
    assert verdict_of(opposite) == "opposite"
    assert {each.direction for each in found.groups} == {0}
    assert verdict_of(replace(opposite, direction=0)) == "may be chance"


def test_a_long_name_is_whole_and_has_a_line_of_its_own(found):
    long = "a region with a name that is " + 10 * "very " + "long"
    named = replace(found, regions=[replace(found.regions[0], conditions=[long])])
    lines = named.to_text().splitlines()
    numbers = lines[lines.index(f"  {long}") + 1]
    assert numbers.split()[0] == f"{named.regions[0].n_rows:,}"
    header = lines[lines.index(f"  {long}") - 1]
    end = numbers.index(numbers.split()[0]) + len(numbers.split()[0])
    assert header.index("rows") + len("rows") == end


def test_all_regions_that_were_tested_are_listed(found):
    calm = replace(found.regions[0], conditions=["x <= 1"], is_off=False, adjusted_p_value=0.9)
    text = replace(found, regions=[*found.regions, calm]).to_text()
    assert any(each.strip().startswith("x <= 1") for each in text.splitlines())


def test_the_farthest_class_has_the_smallest_p_value_and_then_the_largest_shift():
    rows = rows_of(*make_rows(200)[:3])
    some = effect_of(rows, 1, np.ones(200, dtype=bool))
    effects = [
        replace(some, p_value=None, shift=9.0),
        replace(some, p_value=0.0, shift=1.0),
        replace(some, p_value=0.0, shift=-2.0),
        replace(some, p_value=0.1, shift=5.0),
    ]
    assert farthest_off(effects) == 2
    assert farthest_off(effects[:1]) == 0
