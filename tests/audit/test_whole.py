"""The test of the whole has its level, whatever the rows, and finds a group."""

import numpy as np
import pytest

from caltree._audit import whole
from caltree._audit.axes import attribute_axes, score_axis
from caltree._audit.null import DrawnLabels, FlippedSigns, NormalResiduals, residuals, variances
from caltree._audit.rows import check_rows
from caltree._audit.scan import tables
from caltree._audit.whole import examine_whole

from .scenes import make_rows


def rows_of(table, labels, scores, **given):
    defaults = {
        "sample_weight": None,
        "groups": None,
        "score_type": "auto",
        "pos_label": None,
        "categorical_features": None,
        "drop_identifiers": True,
    }
    return check_rows(table, labels, scores, **{**defaults, **given})


def examine(rows, seed=0):
    return examine_whole(rows, attribute_axes(rows), np.random.default_rng(seed))


def test_calibrated_scores_are_rejected_as_often_as_they_should():
    found = [examine(rows_of(*make_rows(300, seed=seed)[:3])).p_value for seed in range(60)]
    assert 0 <= np.sum(np.array(found) <= 0.05) <= 8
    assert 0.35 < np.mean(found) < 0.65


def test_a_group_that_is_off_is_found():
    found = examine(rows_of(*make_rows(2000, shift=1.2)[:3]))
    assert found.p_value < 0.001
    assert found.regions_p_value < 0.001


def test_wrong_for_all_rows_is_found_as_a_curve():
    table, labels, scores, _ = make_rows(2000)
    found = examine(rows_of(table, labels, scores**2))
    assert found.curve_p_value < 1e-6


def test_a_sample_of_rows_stands_for_all(monkeypatch):
    rows = rows_of(*make_rows(4000, shift=0.9)[:3])
    exact = examine(rows)
    monkeypatch.setattr(whole, "_MOST_ROWS", 1000)
    assert examine(rows).n_regions == exact.n_regions
    assert examine(rows).p_value < 0.01
    calm = [examine(rows_of(*make_rows(1500, seed=seed)[:3])).p_value for seed in range(20)]
    assert np.sum(np.array(calm) <= 0.05) <= 4


def test_groups_that_err_together_are_no_evidence():
    random = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 50)
    scores = np.full(2000, 0.5)
    shift = random.normal(0, 0.2, 40)[group]
    labels = random.random(2000) < scores + shift
    table = np.column_stack([group % 8, random.normal(size=2000)])
    naive = examine(rows_of(table, labels, scores))
    honest = examine(rows_of(table, labels, scores, groups=group))
    assert naive.p_value < 0.01
    assert honest.p_value > 0.05


@pytest.mark.parametrize("null", [DrawnLabels, NormalResiduals])
def test_simulated_residuals_have_mean_0_and_the_variance_of_labels(null):
    random = np.random.default_rng(0)
    scores = random.dirichlet([1, 2, 3], 200)
    labels = np.array([random.choice(3, p=p) for p in scores])
    rows = rows_of(random.normal(size=(200, 1)), labels, scores)
    drawn = null(rows, 4000, random)
    sums = np.array([drawn.residuals(channel).sum(axis=0) for channel in range(3)])
    assert np.abs(sums.mean(axis=1)).max() < 0.5
    expected = np.diag(scores.sum(axis=0)) - scores.T @ scores
    assert np.cov(sums) == pytest.approx(expected, abs=0.12 * expected.max())


def test_signs_are_flipped_by_group():
    table, labels, scores, _ = make_rows(200)
    rows = rows_of(table, labels, scores, groups=np.arange(200) // 4)
    drawn = FlippedSigns(rows, 10, np.random.default_rng(0)).residuals(1)
    assert np.abs(drawn) == pytest.approx(np.abs(residuals(rows, 1))[:, np.newaxis] + 0 * drawn)
    flips = np.sign(drawn * residuals(rows, 1)[:, np.newaxis])
    assert (flips.reshape(50, 4, 10) == flips.reshape(50, 4, 10)[:, :1]).all()


@pytest.mark.parametrize("depth", [1, 2])
def test_sums_of_tables_are_those_of_the_rows(depth):
    rows = rows_of(*make_rows(500)[:3])
    axes = [*attribute_axes(rows), score_axis(rows, 1)]
    own, spread = residuals(rows, 1), variances(rows, 1)
    for table in tables(axes, depth):
        for values in (own, spread):
            sums = table.regions(table.cells(values)).ravel()
            for flat in range(0, len(sums), 7):
                inside = table.region(flat).contains(axes)
                assert sums[flat] == pytest.approx(values[inside].sum())
