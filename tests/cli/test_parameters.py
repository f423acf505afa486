"""`caltree fit --param`: every parameter of every calibrator, checked before the work."""

import pytest

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    PublishedCalibrationTree,
)
from caltree.cli.parameters import CALIBRATORS, make_calibrator

from .conftest import write

OTHER = {
    "tree": {
        "l2_regularization": 0.5,
        "max_leaf_nodes": 9,
        "kept_gain": None,
        "path_averaging": False,
        "monotone": False,
        "do_no_harm": False,
        "min_samples_split": 20,
        "min_samples_leaf": 10,
        "max_depth": 3,
        "max_bins": 31,
        "tree_method": "hist",
        "cv": 3,
    },
    "forest": {
        "n_estimators": 7,
        "max_features": 2,
        "l2_regularization": 0.5,
        "do_no_harm": False,
        "min_samples_leaf": 10,
        "max_depth": 3,
        "max_bins": 31,
    },
    "boosting": {"monotone": False, "do_no_harm": False},
    "ensemble": {"n_estimators": 5, "do_no_harm": False},
    "published": {
        "boosting_iterations": 3,
        "max_boosting_iterations": 9,
        "min_samples_split": 20,
        "min_samples_leaf": 10,
        "max_depth": 3,
        "cv": 3,
        "ccp_alpha": 0.001,
        "constant_scores": "frequencies",
    },
    "beta": {"l2_regularization": 0.5},
}
OF_OPTIONS = {
    *("scoring", "score_type", "pos_label", "categorical_features", "random_state", "n_jobs"),
    "verbose",
}


def as_options(parameters):
    words = {name: str(value).lower() for name, value in parameters.items()}
    return [part for name, word in words.items() for part in ("--param", f"{name}={word}")]


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("tree", CalibrationTree),
        ("forest", CalibrationForest),
        ("boosting", CalibrationBoosting),
        ("ensemble", CalibrationEnsemble),
        ("published", PublishedCalibrationTree),
        ("beta", BetaScaling),
    ],
)
def test_every_parameter_reaches_the_calibrator(run, visits, kind, made):
    given = OTHER[kind]
    write(visits, "scored.parquet")
    result = run(
        "fit", "scored.parquet", "--out", "m.json", "--calibrator", kind, *as_options(given)
    )
    assert result.exit_code == 0, result.stderr
    found = made.load("m.json").get_params()
    assert {name: found[name] for name in given} == given


@pytest.mark.parametrize("kind", CALIBRATORS)
def test_the_help_lists_every_parameter(run, kind):
    text = " ".join(run("fit", "--help").stdout.split("Parameters for --param")[1].split())
    for name in set(CALIBRATORS[kind]().get_params()) - OF_OPTIONS:
        assert f" {name}=" in text
    assert set(OTHER.get(kind, ())) <= set(CALIBRATORS[kind]().get_params())


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (
            "tree",
            "max_depht=3",
            "has no such parameter; it has cv, do_no_harm, drop_identifiers, k",
        ),
        ("tree", "n_estimators=3", "--param n_estimators: --calibrator tree has no such parameter"),
        ("platt", "cv=3", "--calibrator platt has no such parameter; it has none at all"),
        ("tree", "max_depth", "--param max_depth has no value; give --param NAME=VALUE"),
        (
            "tree",
            "max_depth=deep",
            "the value must be a number, true, false or none, such as max_d",
        ),
        (
            "tree",
            "max_depth=-1",
            "--param: max_depth must be None or a whole number from 0 to 1000",
        ),
        ("tree", "max_depth=2.5", "max_depth must be None or a whole number from 0 to 1000000, go"),
        (
            "tree",
            "tree_method=fast",
            "--param: tree_method must be one of 'auto', 'exact', 'hist', got 'fast'",
        ),
        ("tree", "do_no_harm=1", "--param: do_no_harm must be True or False, got 1"),
        ("tree", "cv=folds", "--param cv=folds: the value must be a number, true, false or none"),
        ("tree", "l2_regularization=nan", "l2_regularization must be a number from 1e-09 to 1e+09"),
        (
            "forest",
            "n_estimators=0",
            "n_estimators must be a whole number from 2 to 1000000, got 0",
        ),
        ("tree", "scoring=rmse", "--param scoring has an option of its own; use --scoring"),
        ("tree", "score_type=logit", "score_type has an option of its own; use --score-type"),
    ],
)
def test_wrong_parameters_are_refused_before_the_table_is_read(complaint, kind, given, message):
    options = ["--calibrator", kind, "--param", given]
    line = complaint("fit", "nowhere.csv", "--out", "m.json", *options, code=2)
    assert message in line and line.endswith("(see: caltree fit --help)")


def test_a_parameter_is_given_once(complaint):
    given = as_options({"max_depth": 3}) * 2
    line = complaint("fit", "nowhere.csv", "--out", "m.json", *given, code=2)
    assert line.startswith("--param max_depth is given twice; give it once")


def test_values_are_read_as_what_they_look_like():
    made = make_calibrator("tree", {}, ["max_depth=NONE", " cv = 3 ", "l2_regularization=1e-3"])
    assert (made.max_depth, made.cv, made.l2_regularization) == (None, 3, 1e-3)
