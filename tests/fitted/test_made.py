"""`caltree.load`, and what stored calibrators say about how they were made."""

import json

import pytest

import caltree
from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    RegularizedIsotonicScaling,
    RobustPlattScaling,
    SmoothIsotonicScaling,
    TemperatureScaling,
)

from ..support.trees import make_rows

X, Y, SCORES = make_rows(120)
KINDS = [
    CalibrationTree(max_depth=2),
    CalibrationForest(4, random_state=0),
    CalibrationBoosting(),
    CalibrationEnsemble(5),
    PublishedCalibrationTree(boosting_iterations=3),
    PlattScaling(),
    TemperatureScaling(),
    BetaScaling(),
    IsotonicScaling(),
    SmoothIsotonicScaling(),
    RegularizedIsotonicScaling(),
    RobustPlattScaling(),
    IdentityCalibrator(),
]


def named(calibrator):
    return type(calibrator).__name__


@pytest.mark.parametrize("calibrator", KINDS, ids=named)
@pytest.mark.parametrize("kind", [str, lambda path: path], ids=["str", "path"])
def test_any_stored_calibrator_is_read_as_what_it_is(calibrator, kind, tmp_path):
    path = kind(tmp_path / "model.json")
    calibrator.fit(X, Y, SCORES).save(path)
    found = caltree.load(path)
    assert type(found) is type(calibrator)
    assert found.to_dict() == calibrator.to_dict()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("{", "it is not JSON"),
        ("[1]", "it has no format"),
        ('{"format": "other"}', "its format is 'other'"),
        ('{"format": "caltree.Tea"}', "this version of caltree does not know caltree.Tea"),
        ('{"format": "caltree.PlattScaling", "version": 0}', "was stored in version 0"),
    ],
)
def test_other_files_are_refused_by_name(content, message, tmp_path):
    path = tmp_path / "model.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=f"model.json is not a stored calibrator: .*{message}"):
        caltree.load(path)


@pytest.mark.parametrize("calibrator", KINDS, ids=named)
def test_a_file_says_when_by_what_and_from_how_many_rows(calibrator, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    weights = [0.0] * 20 + [1.0] * 100
    calibrator.fit(X, Y, SCORES, weights).save(tmp_path / "model.json")
    stored = json.loads((tmp_path / "model.json").read_text())
    expected = {"caltree": caltree.__version__, "n_rows": 100}
    assert stored["made"] == {**expected, "at": "2023-11-14T22:13:20Z"}
    assert calibrator.to_dict()["made"] == expected  # what the fit decides on, and no time


def test_a_calibrator_that_is_stored_again_keeps_its_time(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    path = tmp_path / "model.json"
    PlattScaling().fit(X, Y, SCORES).save(path)
    first = path.read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    again = caltree.load(path)
    again.save(path)
    assert path.read_bytes() == first
    again.fit(X, Y, SCORES).save(path)
    assert caltree.load(path).made_.at == "2027-01-15T08:00:00Z"


def test_the_time_is_that_of_the_clock_if_nothing_else_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setattr("time.time", lambda: 1.0e9 + 0.7)
    PlattScaling().fit(X, Y, SCORES).save(tmp_path / "model.json")
    assert caltree.load(tmp_path / "model.json").made_.at == "2001-09-09T01:46:40Z"


@pytest.mark.parametrize("epoch", ["yesterday", "1" * 30])
def test_a_time_that_is_none_is_refused(epoch, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    with pytest.raises(ValueError, match="SOURCE_DATE_EPOCH must be a number of seconds since 19"):
        PlattScaling().fit(X, Y, SCORES).save(tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize(
    "made",
    [
        None,
        [],
        {},
        {"caltree": "0.1.0"},
        {"caltree": 1, "n_rows": 5},
        {"caltree": "1" * 101, "n_rows": 5},
        {"caltree": "0.1.0", "n_rows": 0},
        {"caltree": "0.1.0", "n_rows": 5.0},
        {"caltree": "0.1.0", "n_rows": True},
        {"caltree": "0.1.0", "n_rows": 5, "at": None},
        {"caltree": "0.1.0", "n_rows": 5, "at": "today"},
        {"caltree": "0.1.0", "n_rows": 5, "by": "me"},
    ],
)
def test_malformed_words_about_it_are_refused(made):
    stored = PlattScaling().fit(X, Y, SCORES).to_dict()
    with pytest.raises(ValueError, match="of a stored calibrator must"):
        PlattScaling.from_dict({**stored, "made": made})
