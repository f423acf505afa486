"""Rows that a report cannot be made of are refused at once, and nothing is half-written."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from caltree import (
    CalibratedClassifier,
    CalibrationForest,
    CalibrationTree,
    IdentityCalibrator,
    IsotonicScaling,
    PlattScaling,
)
from caltree.report import Report, report

from ..support.trees import fixed_tree, make_rows

X, Y, SCORES = make_rows(120)
TREE = fixed_tree(max_depth=1).fit(X, Y, SCORES)
PLATT = PlattScaling().fit(None, Y, SCORES)
MODEL = CalibratedClassifier(GaussianNB(), PlattScaling()).fit(X, Y)
WITH_NAN = np.where(np.arange(120)[:, np.newaxis] == 7, np.nan, SCORES)


@pytest.mark.parametrize(
    "unfitted",
    [
        CalibrationTree(),
        CalibrationForest(),
        PlattScaling(),
        IsotonicScaling(),
        IdentityCalibrator(),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_is_not_fitted_is_refused(unfitted):
    with pytest.raises(NotFittedError, match=f"{type(unfitted).__name__} instance is not fitted"):
        report(unfitted, X, Y, SCORES)


def test_a_model_that_is_not_fitted_is_refused():
    with pytest.raises(NotFittedError, match="not fitted"):
        report(CalibratedClassifier(GaussianNB()), X, Y)


@pytest.mark.parametrize(
    ("thing", "shown"),
    [
        (None, "None"),
        (CalibrationTree, "the class CalibrationTree"),
        (GaussianNB(), "a GaussianNB"),
        ("tree", "'tree'"),
        (X, f"a {type(X).__name__}"),
    ],
    ids=["none", "class", "classifier", "string", "table"],
)
def test_what_is_no_calibrator_is_refused(thing, shown):
    with pytest.raises(TypeError, match=f"calibrator_or_model must be a fitted .* got {shown}$"):
        report(thing, X, Y, SCORES)


@pytest.mark.parametrize(
    ("calibrator", "rows", "error", "message"),
    [
        (TREE, (X, Y), ValueError, "scores is None, but CalibrationTree calibrates scores"),
        (MODEL, (X, Y, SCORES), ValueError, "scores must be None: a CalibratedClassifier asks"),
        (TREE, (X[:, :2], Y, SCORES), ValueError, "X has 2 attributes, .* fitted with 3"),
        (TREE, (X, Y[:7], SCORES), ValueError, "y has 7 labels, but X has 120 rows"),
        (TREE, (X, Y, SCORES[:7]), ValueError, "scores has 7 rows, but X has 120"),
        (TREE, (X, Y, np.hstack([SCORES, SCORES])), ValueError, "scores has 4 columns, but the"),
        (TREE, (X, Y, SCORES[:, [0, 1, 1]]), ValueError, "scores has 3 columns, but y has 2"),
        (TREE, (X, Y, WITH_NAN), ValueError, "scores contains NaN in row 7, column 0"),
        (TREE, (X, Y, 2 + SCORES), ValueError, "which is not a probability"),
        (TREE, (X, Y + 1, SCORES), ValueError, r"in row \d+, which the calibrator does not know"),
        (TREE, (X, Y.astype(str), SCORES), ValueError, "which the calibrator does not know"),
        (TREE, (X, np.zeros(120, dtype=int), SCORES), ValueError, "y contains one class only, 0;"),
        (TREE, (X, np.ones(120, dtype=int), SCORES), ValueError, "y contains one class only, 1;"),
        (TREE, (X[:0], Y[:0], SCORES[:0]), ValueError, "X has 0 rows; a report needs"),
        (PLATT, (None, Y[:0], SCORES[:0]), ValueError, "y has 0 rows; a report needs"),
        (MODEL, (X[:0], Y[:0]), ValueError, "X has 0 rows; a report needs"),
        (TREE, (None, Y, SCORES), TypeError, "X must be a numpy array"),
        (PLATT, (None, Y, WITH_NAN), ValueError, "scores contains NaN in row 7"),
        (PLATT, (X[:7], Y, SCORES), ValueError, "y has 120 labels, but X has 7 rows"),
        (MODEL, (X, Y + 1), ValueError, "which the calibrator does not know"),
    ],
)
def test_rows_that_cannot_be_judged_are_refused(calibrator, rows, error, message):
    with pytest.raises(error, match=message):
        report(calibrator, *rows)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"title": 3}, TypeError, "title must be a string or None, got int"),
        ({"by": ["x9"]}, ValueError, "by names 'x9'"),
        ({"by": 1}, TypeError, "by must be a list"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"sample_weight": [1]}, ValueError, "one weight for each of the 120 rows of X"),
        ({"sample_weight": -np.ones(120)}, ValueError, "negative weight"),
        ({"sample_weight": np.zeros(120)}, ValueError, "zero in every row"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        report(TREE, X, Y, SCORES, **options)


def test_one_class_among_the_rows_that_count_is_too_few():
    with pytest.raises(ValueError, match="y contains one class only, 1"):
        report(TREE, X, Y, SCORES, sample_weight=(Y == 1).astype(float))


# Files


@pytest.fixture(scope="module")
def made():
    return report(TREE, X, Y, SCORES)


def test_a_file_holds_the_page(made, tmp_path):
    for path in (tmp_path / "report.html", str(tmp_path / "again.html")):
        made.save(path)
        with open(path, encoding="utf-8", newline="") as file:
            assert file.read() == made.to_html()


@pytest.mark.parametrize("before", [None, "precious"])
def test_a_file_appears_whole_or_not_at_all(made, tmp_path, monkeypatch, before):
    path = tmp_path / "report.html"
    if before is not None:
        path.write_text(before)

    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        with pytest.raises(KeyboardInterrupt):
            made.save(path)
    assert os.listdir(tmp_path) == ([] if before is None else ["report.html"])
    assert before is None or path.read_text() == before


def test_a_path_that_cannot_be_written_is_named(made, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"report\.html"):
        made.save(tmp_path / "no folder" / "report.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        made.save(tmp_path / "folder")
    assert os.listdir(tmp_path) == ["folder"]


# What has to be installed


def test_without_jinja_the_remedy_is_named_before_any_work(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ModuleNotFoundError, match=r'run: pip install "caltree\[report\]"') as error:
        report(None, X, Y)
    assert error.value.name == "jinja2"


def test_importing_the_package_imports_nothing_of_the_report():
    code = "import sys, caltree; print(set(sys.modules) & {'jinja2', 'caltree.report'})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_public_names():
    import caltree.report

    assert caltree.report.__all__ == ["Report", "report"]
    assert isinstance(report(TREE, X, Y, SCORES), Report)
