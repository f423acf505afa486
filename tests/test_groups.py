"""`fit(..., groups=)` of trees and forests: rows that belong together stay together."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

from caltree import (
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    PublishedCalibrationTree,
)
from caltree._inputs.folds import group_folds
from caltree._inputs.groups import number_groups
from caltree._training.do_no_harm import HEDGE

from .support.boosting_cases import few_rounds
from .support.trees import make_rows

N_GROUPS, COPIES = 120, 10
KINDS = [
    CalibrationTree(),
    CalibrationTree(tree_method="hist"),
    CalibrationForest(10, random_state=0),
    CalibrationBoosting(),
    CalibrationEnsemble(10, random_state=0),
    PublishedCalibrationTree(),
]


def repeated_rows(seed=0):
    """Rows whose labels have nothing to do with the attributes, each many times over."""
    random = np.random.default_rng(seed)
    X, scores = random.normal(size=(N_GROUPS, 3)), random.uniform(0.1, 0.9, N_GROUPS)
    y = (random.random(N_GROUPS) < scores).astype(int)
    groups = random.permutation(np.repeat(np.arange(N_GROUPS), COPIES))
    return X[groups], y[groups], scores[groups], groups


def named(calibrator):
    return type(calibrator).__name__ + getattr(calibrator, "tree_method", "")


@pytest.mark.parametrize("calibrator", KINDS[:4], ids=named)
def test_repeated_rows_prove_nothing_if_they_are_kept_together(calibrator):
    stays = []
    for seed in range(4):
        X, y, scores, groups = repeated_rows(seed)
        with few_rounds(100, leaves=31):
            # Copies of a row that is held out were seen, so that learning by heart looks good.
            apart = calibrator.fit(X, y, scores).selection_
            together = calibrator.fit(X, y, scores, groups=groups).selection_
        assert apart.uncalibrated_weight < 0.2
        stays.append(together.uncalibrated_weight >= 1.0 - HEDGE)
    # Now and then something is found in noise.
    assert sum(stays) >= 3


def test_the_published_tree_prunes_by_whole_groups():
    X, y, scores, groups = repeated_rows()
    apart = PublishedCalibrationTree().fit(X, y, scores)
    together = PublishedCalibrationTree().fit(X, y, scores, groups=groups)
    assert together.get_n_leaves() < apart.get_n_leaves()


@pytest.mark.parametrize("calibrator", [KINDS[0], KINDS[1], KINDS[5]], ids=named)
def test_a_number_of_folds_is_that_many_folds_of_groups(calibrator):
    X, y, scores, groups = repeated_rows()
    calibrator = clone(calibrator).set_params(cv=4)
    found = calibrator.fit(X, y, scores, groups=groups).to_dict()
    calibrator.set_params(cv=group_folds(4, y, groups))
    given = calibrator.fit(X, y, scores, groups=groups).to_dict()
    assert {**found, "params": None} == {**given, "params": None}


@pytest.mark.parametrize("cv", [GroupKFold(5), LeaveOneGroupOut()], ids=["GroupKFold", "each"])
@pytest.mark.parametrize("calibrator", [KINDS[0], KINDS[1], KINDS[5]], ids=named)
def test_a_splitter_is_given_the_groups(calibrator, cv):
    X, y, scores, groups = repeated_rows()
    groups = [f"customer {group % 8}" for group in groups]
    calibrator = clone(calibrator).set_params(cv=cv)
    found = calibrator.fit(X, y, scores, groups=groups).to_dict()
    calibrator.set_params(cv=list(cv.split(X, y, groups)))
    assert found == calibrator.fit(X, y, scores, groups=groups).to_dict()


@pytest.mark.parametrize("calibrator", KINDS, ids=named)
def test_rows_of_weight_0_are_absent_whatever_their_group(calibrator):
    X, y, scores, groups = repeated_rows()
    absent = np.random.default_rng(1).random(len(y)) < 0.3
    rubbish = np.where(absent, None, groups)
    found = calibrator.fit(X, y, scores, np.where(absent, 0.0, 1.0), groups=rubbish).to_dict()
    some = [values[~absent] for values in (X, y, scores)]
    expected = calibrator.fit(*some, np.ones((~absent).sum()), groups=groups[~absent]).to_dict()
    assert found == expected


@pytest.mark.parametrize("calibrator", KINDS, ids=named)
def test_groups_of_one_row_each_do_not_depend_on_threads(calibrator):
    X, y, scores = make_rows(300)
    groups = np.arange(300)[::-1]
    found = [
        clone(calibrator)
        .set_params(n_jobs=n_jobs)
        .fit(X, y, scores, groups=groups)
        .model_.to_dict()
        for n_jobs in (None, 2)
    ]
    assert found[0] == found[1]


def test_a_tree_of_a_forest_has_all_rows_of_a_group_or_none():
    X, y, scores = make_rows(240)
    _, groups = number_groups(np.arange(240) % 30)
    forest = CalibrationForest(random_state=0)
    dataset = forest._make_dataset(X, forest._check_rows(X, y, scores, None, "auto"), None)
    from caltree import _core

    training = _core.ShrunkenTraining(dataset.core, dataset.offset, 255, False)
    sizes = np.array([np.inf, 4.0])
    n_out = []
    for seed in range(20):
        out_of_bag = training.bagged(seed, 0, 0.05, sizes, 2.0, 100, 3, groups)[2]
        outside = set(groups[out_of_bag])
        assert len(out_of_bag) == 8 * len(outside)
        n_out.append(len(outside))
    # 30 groups are drawn with replacement, so that about 30 / e of them are not.
    assert 9 < np.mean(n_out) < 13
    with pytest.raises(ValueError, match="one group per row"):
        training.bagged(0, 0, 0.05, sizes, 2.0, 100, 3, groups[:-1])
    with pytest.raises(ValueError, match="groups are numbered from 0 on"):
        training.bagged(0, 0, 0.05, sizes, 2.0, 100, 3, groups + np.uint32(400))


@pytest.mark.parametrize("calibrator", KINDS, ids=named)
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.arange(299), "groups must have one group for each of the 300 rows of X, got 299"),
        (np.full(300, np.nan), "groups contains a missing group in row 0; drop the rows without"),
        (np.zeros(300), "groups has 1 group"),
    ],
)
def test_bad_groups(calibrator, groups, message):
    with pytest.raises(ValueError, match=message):
        calibrator.fit(*make_rows(300), groups=groups)


def test_fewer_groups_than_folds():
    X, y, scores = make_rows(300)
    for method in ("exact", "hist"):
        with pytest.raises(ValueError, match="groups has 3 groups, but cv=5 needs at least 5; use"):
            CalibrationTree(tree_method=method).fit(X, y, scores, groups=np.arange(300) % 3)
