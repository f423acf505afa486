"""Reliability diagrams of groups: a panel each, of the rows of the group alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from caltree.plot import ReliabilityDisplay
from caltree.reliability import reliability_curve


def made_rows(n_rows=400):
    random = np.random.default_rng(0)
    probability = random.random(n_rows)
    sex = pd.Series(random.choice(["f", "m"], n_rows), name="sex")
    happened = random.random(n_rows) < np.where(sex == "f", probability, probability**2)
    return np.where(happened, "yes", "no"), probability, sex


def test_each_group_has_a_panel_of_its_own_rows():
    labels, probability, sex = made_rows()
    weights = np.arange(400) % 3
    display = ReliabilityDisplay.from_predictions(
        labels, probability, by=sex, n_bins=5, sample_weight=weights
    )
    assert [axes.get_title() for axes in display.ax_] == ["sex = f", "sex = m"]
    for value in ("f", "m"):
        inside = (sex == value).to_numpy()
        expected = reliability_curve(
            labels[inside] == "yes", probability[inside], n_bins=5, sample_weight=weights[inside]
        )
        found = display.curves[f"sex = {value}"]
        assert found.observed == pytest.approx(expected.observed)
        assert found.weight == pytest.approx(expected.weight)


def test_numbers_are_divided_and_missing_values_are_a_group():
    labels, probability, _ = made_rows()
    age = np.where(np.arange(400) < 40, np.nan, np.arange(400.0))
    display = ReliabilityDisplay.from_predictions(labels, probability, by=age)
    assert len(display.curves) == 5
    assert "group is missing" in display.curves


def test_a_classifier_takes_the_name_of_a_column():
    labels, probability, _ = made_rows()
    table = pd.DataFrame({"p": probability, "few": np.arange(400) % 2})
    model = LogisticRegression().fit(table, labels)
    display = ReliabilityDisplay.from_estimator(model, table, labels, by="few")
    assert list(display.curves) == ["few = 0", "few = 1"]


def test_several_classes_and_other_numbers_of_rows_are_refused():
    labels, probability, sex = made_rows()
    with pytest.raises(ValueError, match="give one group for each of the 400 rows"):
        ReliabilityDisplay.from_predictions(labels, probability, by=sex[:10])
    many = np.random.default_rng(0).dirichlet([1, 1, 1], 400)
    three = np.array(["a", "b", "c"])[np.arange(400) % 3]
    with pytest.raises(ValueError, match="but there are 3 classes; choose one with pos_label"):
        ReliabilityDisplay.from_predictions(three, many, by=sex)
    one = ReliabilityDisplay.from_predictions(three, many, by=sex, pos_label="b")
    assert len(one.curves) == 2
