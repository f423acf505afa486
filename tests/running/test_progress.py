"""Progress: one line per stage, the share of the work that is done, and no influence on it."""

import re

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from caltree import (
    BetaScaling,
    CalibratedClassifier,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)
from caltree._running.progress import fitting, showing, stage

from ..support.trees import FIXED, make_rows

READ = "read 3 attributes of 400 rows"
GREW = r"grew {} trees of [\d,]+ nodes"
PREDICTED = r"predicted held-out rows at \d+ levels"
AVERAGED = r"averaged \d+ {} \(chosen: \w+\)"
STAGES = {
    "exact": (
        CalibrationTree(n_jobs=2),
        [
            READ,
            GREW.format(6),
            PREDICTED,
            AVERAGED.format("candidates"),
        ],
    ),
    "hist": (
        CalibrationTree(tree_method="hist"),
        [
            "put 400 rows into bins",
            GREW.format(6),
            PREDICTED,
            AVERAGED.format("candidates"),
        ],
    ),
    "nothing chosen": (CalibrationTree(**FIXED), [READ, GREW.format(1)]),
    "published": (
        PublishedCalibrationTree(),
        [
            READ,
            GREW.format(6),
            r"fitted their node models by \d+ iterations",
            "pruned the tree",
        ],
    ),
    "forest": (
        CalibrationForest(20, random_state=0),
        [
            READ,
            *(f"grew {n} of 20 trees" for n in range(2, 21, 2)),
            AVERAGED.format("sizes of trees"),
        ],
    ),
    "boosting": (
        CalibrationBoosting(),
        [
            READ,
            *(rf"boosted \d+ rounds of fold {n} of 5" for n in range(1, 6)),
            AVERAGED.format("candidates"),
        ],
    ),
    "ensemble": (
        CalibrationEnsemble(10, random_state=0),
        [
            READ,
            *(f"grew {n} of 10 trees" for n in range(1, 11)),
            *(rf"boosted \d+ rounds of fold {n} of 5" for n in range(1, 6)),
            AVERAGED.format("candidates"),
        ],
    ),
    "platt": (PlattScaling(), ["fitted to 400 rows"]),
    "temperature": (TemperatureScaling(), ["fitted to 400 rows"]),
    "beta": (BetaScaling(), ["fitted to 400 rows"]),
    "isotonic": (IsotonicScaling(), ["fitted to 400 rows"]),
}


@pytest.mark.parametrize("name", STAGES)
def test_every_stage_is_a_line_with_its_time(name, capsys):
    estimator, stages = STAGES[name]
    X, y, scores = make_rows(400)
    estimator.set_params(verbose=0).fit(X, y, scores)
    assert capsys.readouterr().out == ""
    silent = estimator.predict_proba(X, scores)
    estimator.set_params(verbose=1).fit(X, y, scores)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(stages), lines
    for line, expected in zip(lines, stages, strict=True):
        assert re.fullmatch(rf"\[{type(estimator).__name__}\] {expected} in \d+\.\d s", line), line
    np.testing.assert_array_equal(estimator.predict_proba(X, scores), silent)


def test_a_classifier_tells_of_its_folds_and_of_the_calibrator(capsys):
    X, y, _ = make_rows(400)
    for calibrator, own in ((PlattScaling(), 0), (PlattScaling(verbose=1), 1), ("tree", 4)):
        CalibratedClassifier(GaussianNB(), calibrator, cv=3, verbose=1).fit(X, y)
        lines = capsys.readouterr().out.splitlines()
        folds = [f"scored fold {k} of 3 with GaussianNB" for k in (1, 2, 3)]
        name = "CalibrationTree" if calibrator == "tree" else "PlattScaling"
        told = [*folds, "fitted GaussianNB to all rows", f"fitted {name} to the scores"]
        mine = [line for line in lines if line.startswith("[CalibratedClassifier] ")]
        for line, expected in zip(mine, told, strict=True):
            assert line.startswith(f"[CalibratedClassifier] {expected} in ")
        assert len(lines) == len(mine) + own


@pytest.mark.parametrize("value", [-1, 1.5, "yes", None])
@pytest.mark.parametrize("name", STAGES)
def test_verbose_is_checked(name, value):
    X, y, scores = make_rows(40)
    estimator = STAGES[name][0].__class__(verbose=value)
    with pytest.raises(ValueError, match="verbose must be True, False or a whole number from 0"):
        estimator.fit(X, y, scores)


@pytest.mark.parametrize("name", STAGES)
def test_the_share_that_is_done_rises_to_all(name):
    estimator, _ = STAGES[name]
    X, y, scores = make_rows(400)
    shares = []
    with showing(shares.append):
        estimator.set_params(verbose=0).fit(X, y, scores)
    assert shares == sorted(shares) and shares[0] > 0.0
    assert shares[-1] == pytest.approx(1.0) and max(shares) <= 1.0
    assert len(shares) > 3 or name in ("platt", "temperature", "beta", "isotonic")


def test_a_fit_within_a_fit_tells_its_own_stages(capsys):
    with fitting([], verbose=1), stage(0.5) as outer:
        with fitting({}, verbose=0), stage(1.0) as inner:
            inner.say("unheard")
        with fitting({}, verbose=1), stage(1.0) as inner:
            inner.say("heard")
        outer.say("done")
    assert re.fullmatch(r"\[dict\] heard in .*\n\[list\] done in .*\n", capsys.readouterr().out)


def test_work_outside_of_a_fit_tells_nobody(capsys):
    with stage(1.0) as alone:
        alone.reach(0.5)
        alone.say("nothing")
    assert capsys.readouterr().out == ""
