"""The installed command: its help, and what it says of bad input, a process each."""

import json
import os
import re

import pytest

from .conftest import make_visits, run_installed, write

COMMANDS = ("apply", "audit", "demo", "evaluate", "fit", "paper", "report", "show")


def test_help(tmp_path):
    done = run_installed("--help", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    assert text.startswith("Usage: caltree ")
    assert all(f"\n  {name} " in text for name in COMMANDS)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(run, command):
    done = run(command, "--help")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: caltree {command} ")


def test_a_model_is_shown_and_reported_on(tmp_path, model):
    pytest.importorskip("jinja2")
    write(make_visits(300, seed=1), tmp_path / "new.csv")
    done = run_installed("show", "model.json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"kind        CalibrationTree\n")
    done = run_installed("report", "model.json", "new.csv", "--out", "r.html", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"Report: r.html\n")
    assert (tmp_path / "r.html").read_bytes().startswith(b"<!doctype html>")


def changed(column, value):
    """Visits of which one has another value."""

    def write_changed(folder):
        visits = make_visits(50, seed=1).astype({column: object})
        visits.loc[7, column] = value
        write(visits, folder / "new.csv")

    return write_changed


def without(column):
    return lambda folder: write(make_visits(50, seed=1).drop(columns=column), folder / "new.csv")


def truncated(folder):
    write(make_visits(50, seed=1), folder / "new.parquet")
    content = (folder / "new.parquet").read_bytes()
    (folder / "new.parquet").write_bytes(content[: len(content) // 2])


def empty(folder):
    (folder / "new.csv").write_bytes(b"")


def of_another_version(folder):
    changed("age", 30)(folder)
    stored = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**stored, "version": 99}))


def no_model(folder):
    changed("age", 30)(folder)
    (folder / "model.json").write_text('{"kind": "cake"}')


def nothing(folder):
    pass


def sound(folder):
    write(make_visits(50, seed=1), folder / "new.csv")


APPLY = ("apply", "model.json", "new.csv", "--out", "o.csv")
EVALUATE = ("evaluate", "model.json", "new.csv")
FIT = ("fit", "new.csv", "--label", "y", "--scores", "p_yes", "--out", "m.json")
BAD = {
    "missing file": (nothing, APPLY, r"cannot read new\.csv: No such file"),
    "missing column": (without("age"), APPLY, "lacks the column age"),
    "missing score": (without("p_yes"), APPLY, "lacks the column p_yes"),
    "label unseen": (changed("y", "maybe"), EVALUATE, "maybe"),
    "score outside [0, 1]": (changed("p_yes", 1.5), (*FIT, "--score-type", "probability"), "1.5"),
    "score that is no number": (changed("p_yes", "high"), APPLY, "high"),
    "truncated Parquet": (
        truncated,
        ("apply", "model.json", "new.parquet", "--out", "o.csv"),
        "cannot read new.parquet",
    ),
    "another version": (of_another_version, APPLY, "version"),
    "no model": (no_model, APPLY, r"model\.json"),
    "unwritable output": (
        sound,
        ("apply", "model.json", "new.csv", "--out", "nowhere/o.csv"),
        "nowhere",
    ),
    "empty file": (empty, FIT, r"new\.csv"),
    "negative weight": (changed("age", -3), (*FIT, "--weight", "age"), "negative|-3"),
    "unknown format": (sound, ("apply", "model.json", "new.csv", "--out", "o.xls"), "xls"),
}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(run, tmp_path, case):
    prepare, arguments, message = BAD[case]
    prepare(tmp_path)
    before = sorted(os.listdir(tmp_path))
    done = run(*arguments)
    assert done.exit_code in (1, 2) and done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("caltree: error: ") and re.search(message, line)
    assert sorted(os.listdir(tmp_path)) == before
