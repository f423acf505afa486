"""Groups, regions, nodes and values of attributes, held against sums by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from caltree import CalibratedClassifier, CalibrationForest, IsotonicScaling, PlattScaling, audit
from caltree._audit.regions import Suggestion
from caltree._fitted.outline import Outline
from caltree.report import places, report
from caltree.report.inputs import check_rows
from caltree.report.places import share_of_rows
from caltree.report.sums import RowSums
from caltree.report.tree import outline_tree

from ..audit.scenes import make_rows
from ..audit.test_whole import rows_of
from ..support.report_scenes import SCENES, make_table, trained
from ..support.trees import fixed_tree


def group_of(data, *conditions):
    [found] = [each for each in data["groups"] if each["conditions"] == list(conditions)]
    return found


# Groups


def test_groups_have_their_own_rows(made):
    tree, frame, y, scores = trained()
    data, after = made("loans").data, tree.predict_proba(frame, scores)[:, 1]
    rows = (frame["contract"] == "student").to_numpy()
    found = group_of(data, "contract = student")
    assert found["rows"] == rows.sum()
    assert found["share"] == pytest.approx(rows.mean())
    assert found["predicted"] == pytest.approx(scores[rows].mean())
    assert found["observed"] == pytest.approx((y[rows] == "yes").mean())
    assert found["calibrated"] == pytest.approx(after[rows].mean())
    assert found["low"] < found["observed"] < found["high"]
    assert [test["verdict"] for test in found["tests"].values()] == [
        "too high",
        "may be chance",
        "better",
    ]
    assert sum(each[4] for each in found["before"]) == rows.sum()


def test_p_values_of_groups_are_those_of_an_audit(made):
    _, frame, y, scores = trained()
    expected = audit(frame, y, scores, by=["contract"])
    for group in expected.groups:
        found = group_of(made("loans").data, *group.conditions)
        assert found["tests"]["scores"]["p_value"] == pytest.approx(group.p_value)


def test_p_values_are_adjusted_for_all_tests(made):
    data = made("loans").data
    tests = [
        test for place in [*data["groups"], *data["regions"]] for test in place["tests"].values()
    ]
    tested = [test for test in tests if test["p_value"] is not None]
    assert len(tested) <= data["n_tests"]
    smallest = min(tested, key=lambda test: test["p_value"])
    assert smallest["adjusted_p_value"] == pytest.approx(smallest["p_value"] * data["n_tests"])
    for test in tested:
        claims = test["verdict"] not in ("may be chance", "too few rows", "hardly changed")
        assert claims == (test["adjusted_p_value"] <= 0.05)


def test_the_change_is_a_test_of_the_middle(made):
    tree, frame, y, scores = trained()
    both = np.column_stack([1 - scores, scores])
    middle = (both + tree.predict_proba(frame, scores)) / 2
    [expected] = [
        each
        for each in audit(frame, y, middle, by=["contract"]).groups
        if each.conditions == ["contract = student"]
    ]
    found = group_of(made("loans").data, "contract = student")["tests"]["change"]
    assert found["p_value"] == pytest.approx(expected.p_value, rel=1e-6)


def test_columns_of_the_user_need_not_be_attributes(made):
    found = group_of(made("loans").data, "branch = south")
    assert found["rows"] == 500
    assert "branch" not in [each["name"] for each in made("loans").data["importances"]["shares"]]
    names = [each["name"] for each in made("loans").data["attributes"]]
    assert names == ["contract", "age", "income", "branch"]


def test_groups_of_a_model_with_chosen_attributes():
    frame, y, _ = make_table(800)
    frame = frame.assign(income=1.0, zone=np.where(np.arange(800) % 2, "a", "b"))
    numbers = make_pipeline(lambda_columns(["age"]), LogisticRegression())
    model = CalibratedClassifier(numbers, PlattScaling(), cv=2, attributes=["age", "zone"])
    model.fit(frame, y)
    data = report(model, frame, y, by=["zone", "contract"]).data
    assert group_of(data, "zone = a")["rows"] == 400
    rows = (frame["contract"] == "student").sum()
    assert group_of(data, "contract = student")["rows"] == rows


def lambda_columns(names):
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(lambda frame: frame[names])


def test_columns_go_by_number_where_they_have_no_names():
    frame, y, scores = make_table(400)
    X = frame[["age", "income"]].to_numpy()
    platt = PlattScaling().fit(None, y, scores)
    data = report(platt, X, y, scores, by=[1]).data
    assert group_of(data, "x1 is missing")["rows"] == np.isnan(X[:, 1]).sum()
    assert len(data["groups"]) == 1 + 5 + 1


@pytest.mark.parametrize(
    ("by", "X", "message"),
    [
        (["contract"], None, "by names columns of X, but X is None"),
        (["country"], "frame", "by names 'country', which is not a column of X"),
        (["name"], "frame", "by names 'name', which has 400 values; a report tests at most 100"),
    ],
)
def test_columns_that_make_no_groups_are_refused(by, X, message):
    frame, y, scores = make_table(400)
    frame = frame.assign(name=[f"customer {i}" for i in range(400)])
    tree = fixed_tree(max_depth=1).fit(frame[["age"]], y, scores)
    calibrator = PlattScaling().fit(None, y, scores) if X is None else tree
    with pytest.raises(ValueError, match=message):
        report(calibrator, None if X is None else frame, y, scores, by=by)


@pytest.mark.filterwarnings("ignore:.*identifier:UserWarning")
def test_identifiers_make_no_groups():
    frame, y, scores = make_table(400)
    frame = frame.assign(name=[f"customer {i}" for i in range(400)])
    platt = PlattScaling().fit(None, y, scores)
    with pytest.raises(ValueError, match=r"by names 'name', which .* looks like an identifier"):
        report(platt, frame, y, scores, by="name")
    names = [each["name"] for each in report(platt, frame, y, scores).data["attributes"]]
    assert names == ["contract", "age", "income"]


@pytest.mark.parametrize("positive", ["no", "yes"])
def test_the_probability_is_that_of_the_event(positive):
    _, y, scores = make_table(1500)
    fresh, labels, fresh_scores = make_table(1000, seed=1)
    if positive == "no":
        scores, fresh_scores = 1 - scores, 1 - fresh_scores
    platt = PlattScaling(pos_label=positive).fit(None, y, scores)
    made = report(platt, fresh, labels, fresh_scores, by="contract")
    assert made.data["event"] == positive
    assert f"the probability is that of <b>{positive}</b>" in made.to_html()
    [curve] = made.data["reliability"]
    assert (curve["class"], curve["frequency"]) == (positive, (labels == positive).mean())
    students = group_of(made.data, "contract = student")
    rows = (fresh["contract"] == "student").to_numpy()
    assert students["predicted"] == pytest.approx(fresh_scores[rows].mean())
    assert students["observed"] == pytest.approx((labels[rows] == positive).mean())


# Regions


@pytest.mark.parametrize("scene", SCENES)
def test_every_region_has_many_rows_or_a_p_value_that_survives(made, scene):
    data = made(scene).data
    for region in data["regions"]:
        least = [test["adjusted_p_value"] for test in region["tests"].values()]
        survives = any(p is not None and p <= 0.05 for p in least)
        assert region["share"] >= 0.01 or survives
    conditions = [(each["class"], *sorted(each["conditions"])) for each in data["regions"]]
    assert len(set(conditions)) == len(conditions)


def test_regions_come_by_evidence(made):
    data = made("loans").data
    assert data["regions"][0]["conditions"] == ["contract = student"]
    least = [
        min(test["p_value"] for test in each["tests"].values() if test["p_value"] is not None)
        for each in data["regions"]
    ]
    assert least == sorted(least)


def test_places_that_calibration_made_worse_are_named(made):
    data = made("worse").data
    worse = group_of(data, "contract = permanent")
    assert worse["tests"]["change"]["verdict"] == "worse"
    assert abs(worse["calibrated"] - worse["observed"]) > abs(
        worse["predicted"] - worse["observed"]
    )
    banner = made("worse").to_html().split('id="worse"')[1].split("</section>")[0]
    assert "contract = permanent" in banner
    assert 'id="worse"' not in made("forest").to_html()


def test_among_many_attributes_those_that_contribute_are_searched(monkeypatch):
    monkeypatch.setattr("caltree.report.evidence._MOST_SEARCHED", 2)
    tree, frame, y, scores = trained()
    made = report(tree, frame, y, scores, by="income")
    assert (made.data["data"]["attributes"], made.data["data"]["searched"]) == (3, 2)
    words = " ".join(part for each in made.data["regions"] for part in each["conditions"])
    assert "contract" in words and "age" not in words
    assert "regions were looked for among the 2 that contribute most" in made.to_html()


def test_probabilities_that_are_right_are_let_alone():
    random = np.random.default_rng(3)
    frame, scores = make_table(1500)[0], random.random(1500)
    y = np.where(random.random(1500) < scores, "yes", "no")
    data = report(IsotonicScaling().fit(None, y, scores), frame, y, scores, by="contract").data
    verdicts = [test["verdict"] for each in data["groups"] for test in each["tests"].values()]
    assert set(verdicts) <= {"may be chance", "hardly changed"}
    assert data["whole"]["before"]["p_value"] > 0.05


def test_with_many_classes_a_place_is_about_the_one_farthest_off(made):
    data = made("many_classes").data
    assert {each["class"] for each in [*data["groups"], *data["regions"]]} <= set(data["classes"])
    assert len({each["class"] for each in data["regions"]}) > 1
    assert len(data["reliability"]) == 6


def test_a_table_that_cannot_be_read_gives_no_attributes_and_the_reason():
    _, y, scores = make_table(300)
    X = np.array([["a text"]] * 299 + [[b"bytes"]], dtype=object)
    data = report(PlattScaling().fit(None, y, scores), X, y, scores).data
    assert data["attributes"] == [] and "bytes" in data["data"]["unreadable"]


# Values of attributes


def test_values_and_tenths_of_attributes(made):
    tree, frame, y, scores = trained()
    after = tree.predict_proba(frame, scores)[:, 1]
    lines = {each["name"]: each["lines"] for each in made("loans").data["attributes"]}
    assert [each["words"] for each in lines["contract"]] == [
        "= permanent",
        "= self-employed",
        "= student",
    ]
    assert [each["words"] for each in lines["age"]][:2] == ["<= 23", "> 23, <= 28"]
    assert lines["income"][-1]["words"] == "is missing" and len(lines["income"]) == 11
    for each in lines.values():
        assert sum(line["rows"] for line in each) == len(y)
    missing, line = frame["income"].isna().to_numpy(), lines["income"][-1]
    assert line["rows"] == missing.sum()
    assert line["predicted"] == pytest.approx(scores[missing].mean(), abs=1e-4)
    assert line["observed"] == pytest.approx((y[missing] == "yes").mean(), abs=1e-4)
    assert line["calibrated"] == pytest.approx(after[missing].mean(), abs=1e-4)
    assert line["low"] < line["observed"] < line["high"]


def test_rare_values_are_put_together():
    frame, y, scores = make_table(1000)
    codes = np.minimum(np.random.default_rng(0).geometric(0.03, 1000), 99)
    frame["shop"] = pd.Series([f"shop {code}" for code in codes]).where(codes < 99)
    forest = CalibrationForest(4, random_state=0).fit(frame, y, scores)
    data = report(forest, frame, y, scores).data
    [lines] = [each["lines"] for each in data["attributes"] if each["name"] == "shop"]
    assert len(lines) == 32 and lines[-1]["words"] == "is missing"
    n_shops = frame["shop"].nunique()
    assert lines[-2]["words"] == f"{n_shops - 30} other values"
    assert sum(line["rows"] for line in lines) == 1000


# The tree


def test_nodes_have_their_own_rows(made):
    tree, frame, y, scores = trained()
    leaf = tree.apply(frame)
    found = made("loans").data["tree"]
    leaves = [node for node in found["nodes"] if not node["children"]]
    assert len(leaves) == found["leaves"] == tree.get_n_leaves()
    for node in leaves:
        rows = leaf == int(node["id"].removeprefix("node-"))
        assert node["rows"] == rows.sum()
        if node["predicted"] is not None:
            assert node["predicted"] == pytest.approx(scores[rows].mean())
            assert node["observed"] == pytest.approx((y[rows] == "yes").mean())


def test_nothing_is_said_of_nodes_of_few_rows(made):
    nodes = made("many_leaves").data["tree"]["nodes"]
    for node in nodes:
        assert (node["predicted"] is None) == (node["rows"] < 50 or node["share"] < 0.01)
    assert any(node["predicted"] is None for node in nodes)
    assert "rows: too few to judge" in made("many_leaves").to_html()


def test_nodes_say_what_their_models_do(made):
    tree, found = trained()[0], made("loans").data["tree"]
    text = tree.to_text().splitlines()
    assert found["legend"] == ["p: probability of yes, s: its score"] and found["legend"][0] in text
    for node in found["nodes"]:
        if node["children"]:
            assert (node["formulas"], node["outcome"]) == ([], None)
        else:
            [line] = [line for line in text if line.endswith(f"): {node['outcome']}")]
            [formula] = node["formulas"]
            assert text[text.index(line) + 1].strip("| ") == formula


def test_every_node_has_the_rows_of_its_children(made):
    nodes = made("many_leaves").data["tree"]["nodes"]
    for node in nodes:
        below = [each for each in nodes if each["parent"] == node["id"]]
        assert len(below) == node["children"]
        if below:
            assert sum(each["rows"] for each in below) == node["rows"]
            assert sum(each["leaves"] for each in below) == node["leaves"]


@pytest.mark.parametrize("most", [1, 2, 7, 200])
def test_a_large_tree_is_cut_back_by_the_number_of_rows(most):
    frame, y, scores = make_table(3000, seed=2)
    tree = fixed_tree().fit(frame, y, scores)
    rows = check_rows(tree, frame, y, scores, None, None)
    nodes = outline_tree(tree, rows.matrix, RowSums(*rows.audited), most)["nodes"]
    shown = [node for node in nodes if not node["children"]]
    assert max(most - 2, 1) <= len(shown) <= most
    assert sum(node["rows"] for node in shown) == 3000
    least = min((node["rows"] for node in nodes if node["children"]), default=3000)
    outline, room = Outline.of(tree.model_), most - len(shown)
    for node in shown:
        n_parts = len(outline.children(int(node["id"].removeprefix("node-"))))
        assert node["rows"] <= least or n_parts == 0 or n_parts - 1 > room


# Shares


def test_many_rows_are_worth_a_further_digit():
    assert share_of_rows(0.3149, 2999).replace("\xa0", " ") == "31 %"
    assert share_of_rows(0.3149, 3000).replace("\xa0", " ") == "31.5 %"
    assert share_of_rows(0.0312, 10).replace("\xa0", " ") == "3.1 %"
    assert share_of_rows(1.0, 10_000).replace("\xa0", " ") == "100 %"


@pytest.mark.parametrize("asked", ["scores", "calibrated"])
def test_what_was_off_is_tested_in_the_same_direction(monkeypatch, asked):
    """And everything else in both: the other probabilities, and which of the two are nearer."""
    table, labels, scores, inside = make_rows(3000, shift=0.3)
    before = rows_of(table, labels, scores)
    nearer = np.where(inside[:, np.newaxis], 0.9, 1.0) * before.probabilities + 0.05
    after = replace(before, probabilities=nearer / nearer.sum(axis=1, keepdims=True))
    searched = {"scores": before.probabilities, "calibrated": after.probabilities}[asked]

    def p_values(direction):
        def suggest(rows, axes, learned, tested, random):
            if np.array_equal(rows.probabilities, searched):
                yield Suggestion(["here"], 1, inside, inside[tested], 1.0, direction)

        monkeypatch.setattr(places, "suggest_regions", suggest)
        found = places.find_places(before, after, [], [], np.random.default_rng(0))
        [region] = found.regions
        return region.p_values

    up, down, either = p_values(1), p_values(-1), p_values(0)
    assert up[asked] + down[asked] == pytest.approx(1.0)
    for question in set(up) - {asked}:
        assert up[question] == down[question] == either[question]


def test_of_several_classes_one_that_became_worse_is_not_passed_over():
    """The scores of one class are a little off; those of another are right until calibrated."""
    random = np.random.default_rng(0)
    truth = np.tile([0.5, 0.3, 0.2], (4000, 1))
    labels = random.choice(["a", "b", "c"], 4000, p=truth[0])
    table = pd.DataFrame({"x": random.normal(size=4000)})
    before = rows_of(table, labels, np.tile([0.46, 0.34, 0.2], (4000, 1)))
    after = replace(before, probabilities=np.tile([0.36, 0.29, 0.35], (4000, 1)))
    found = places.find_places(before, after, [], [], np.random.default_rng(0))
    assert found.groups[0].label == "c"
    assert found.groups[0].verdict("change") == "worse"


def test_of_equal_p_values_the_largest_shift_counts():
    random = np.random.default_rng(0)
    labels = random.choice(["a", "b", "c"], 9000, p=[0.8, 0.1, 0.1])
    table = pd.DataFrame({"x": random.normal(size=9000)})
    before = rows_of(table, labels, np.tile([0.1, 0.1, 0.8], (9000, 1)))
    found = places.find_places(before, before, [], [], np.random.default_rng(0))
    expected = audit(table, labels, before.scores)
    assert {each.p_value for each in expected.groups} == {0.0}
    assert found.groups[0].label == expected.groups[0].label
