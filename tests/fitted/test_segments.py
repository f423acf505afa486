"""Where scores do harm: segments by attribute, by hand."""

import numpy as np
import pytest

from caltree import (
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
)
from caltree._fitted.segments import segments
from caltree._inputs.attributes import Attribute

NAN = np.nan


def conditions(attribute, values, most=10):
    return [
        (text, np.flatnonzero(rows).tolist())
        for text, rows in segments(attribute, np.array(values, dtype=float), most)
    ]


def test_categories_and_missing_values():
    colour = Attribute("colour", ("blue", "green", "red"))
    assert conditions(colour, [2, 0, NAN, 2]) == [
        ("colour = blue", [1]),
        ("colour = red", [0, 3]),
        ("colour is missing", [2]),
    ]


def test_few_numbers_stand_for_themselves_and_many_are_cut_at_quantiles():
    age = Attribute("age", None)
    assert conditions(age, [30, 20, 30]) == [("age = 20", [1]), ("age = 30", [0, 2])]
    assert conditions(age, [5, 1, 2, 3, 4, NAN], most=2) == [
        ("age <= 3", [1, 2, 3]),
        ("age > 3", [0, 4]),
        ("age is missing", [5]),
    ]
    assert [text for text, _ in conditions(age, range(90), most=3)] == [
        "age <= 29",
        "29 < age <= 59",
        "age > 59",
    ]


def test_every_row_is_in_one_segment_however_often_values_repeat():
    random = np.random.default_rng(0)
    for _ in range(50):
        values = random.choice(random.normal(size=40), 200, p=random.dirichlet(np.ones(40) / 5))
        values[random.random(200) < 0.1] = NAN
        found = list(segments(Attribute("x", None), values, 7))
        assert (np.sum([rows for _, rows in found], axis=0) == 1).all()
        assert all(rows.any() for _, rows in found)


def test_names_stay_on_their_line():
    [(text, _)] = segments(Attribute("a\nb", ("c\rd",)), np.zeros(2), 5)
    assert text == r"a\nb = c\rd"


def made_up(n_rows, seed):
    """Scores that are right but for the rows of channel 1, where they are twice too high."""
    random = np.random.default_rng(seed)
    X = np.column_stack([random.integers(0, 2, n_rows), random.normal(size=n_rows)])
    scores = random.random(n_rows)
    y = np.where(random.random(n_rows) < np.where(X[:, 0] == 1, scores / 2, scores), "yes", "no")
    return X, y, scores


@pytest.mark.parametrize(
    "calibrator",
    [
        CalibrationTree(),
        CalibrationForest(20, random_state=0),
        CalibrationBoosting(),
        CalibrationEnsemble(20, random_state=0),
    ],
    ids=["tree", "forest", "boosting", "ensemble"],
)
def test_the_harm_is_found_and_mended(calibrator):
    X, y, scores = made_up(4000, 0)
    calibrator.fit(X, y, scores=scores)
    X, y, scores = made_up(4000, 1)
    worst, *others = calibrator.segments(X, y, scores=scores)
    assert worst["segment"] == "x0 = 1"
    rows = X[:, 0] == 1
    assert worst["rows"] == rows.sum()
    assert worst["class"] == "yes"
    assert worst["uncalibrated"] == pytest.approx(scores[rows].mean())
    assert worst["observed"] == pytest.approx((y[rows] == "yes").mean())
    after = calibrator.predict_proba(X, scores=scores)[rows, 1]
    assert worst["calibrated"] == pytest.approx(after.mean())
    assert abs(worst["calibrated"] - worst["observed"]) < 0.03
    gap = worst["uncalibrated"] - worst["observed"]
    assert worst["harm"] == pytest.approx(rows.sum() * gap**2)
    assert [row["harm"] for row in others] == sorted((row["harm"] for row in others), reverse=True)


def test_weights_count_rows():
    X, y, scores = made_up(300, 0)
    tree = CalibrationTree().fit(X, y, scores=scores)
    weight = np.random.default_rng(2).integers(0, 3, 300)
    twice = np.repeat(np.arange(300), weight)
    weighted = tree.segments(X, y, scores, weight, max_segments=2)[0]
    repeated = tree.segments(X[twice], y[twice], scores[twice], max_segments=2)[0]
    assert weighted["segment"] == repeated["segment"]
    for name in ("rows", "uncalibrated", "observed", "calibrated", "harm"):
        assert weighted[name] == pytest.approx(repeated[name])


def test_rows_of_no_weight_make_no_segment():
    X, y, scores = made_up(300, 0)
    tree = CalibrationTree().fit(X, y, scores=scores)
    found = tree.segments(X, y, scores, X[:, 0] == 1)
    assert [row["segment"] for row in found if row["attribute"] == "x0"] == ["x0 = 1"]


def test_of_many_classes_the_one_farthest_off_is_named():
    random = np.random.default_rng(0)
    scores = random.dirichlet(np.ones(3), 2000)
    tree = CalibrationTree(do_no_harm=False)
    tree.fit(np.zeros((2000, 1)), random.integers(0, 3, 2000), scores=scores)
    given = np.tile([0.6, 0.3, 0.1], (50, 1))
    [only] = tree.segments(np.zeros((50, 1)), np.zeros(50, dtype=int), scores=given)
    assert only["class"] == 0
    assert (only["uncalibrated"], only["observed"]) == pytest.approx((0.6, 1.0))


def test_what_cannot_be_judged_is_refused():
    X, y, scores = made_up(50, 0)
    tree = CalibrationTree().fit(X, y, scores=scores)
    with pytest.raises(ValueError, match=r"y contains .*'maybe'.* in row 1, which the calibrator"):
        tree.segments(X[:2], ["yes", "maybe"], scores=scores[:2])
    with pytest.raises(ValueError, match=r"y contains .* in row 0, which the calibrator"):
        tree.segments(X[:2], [0, 1], scores=scores[:2])
    with pytest.raises(ValueError, match="y has 1 labels, but X has 2 rows"):
        tree.segments(X[:2], ["yes"], scores=scores[:2])
    with pytest.raises(ValueError, match="max_segments must be"):
        tree.segments(X, y, scores=scores, max_segments=1)
