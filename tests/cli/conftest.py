"""A table of visits whose scores are wrong on the web, and a model fitted to it."""

import os
import signal
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from caltree import cli

SCRIPT = Path(sysconfig.get_path("scripts")) / "caltree"


@pytest.fixture(autouse=True)
def ctrl_c():
    """The command decides on what Ctrl-C does; tests shall still end by it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def make_visits(n_rows=1200, seed=0):
    """Numbers, names made of digits, truth values and text, some values missing."""
    rng = np.random.default_rng(seed)
    visits = pd.DataFrame({"channel": rng.choice(["app", "shop", "web"], n_rows)})
    visits["age"] = np.where(rng.random(n_rows) < 0.05, np.nan, rng.integers(18, 80, n_rows))
    visits["member"] = rng.random(n_rows) < 0.5
    visits["zip"] = rng.choice(["01", "1", "22"], n_rows)
    visits["p_yes"] = rng.random(n_rows)
    truth = np.where(visits["channel"] == "web", 0.3 * visits["p_yes"], visits["p_yes"])
    visits["y"] = np.where(rng.random(n_rows) < truth, "yes", "no")
    visits.loc[rng.random(n_rows) < 0.05, "channel"] = None
    return visits


def write(frame, path):
    """Write a table in the format of its ending."""
    name = str(path)
    if ".csv" in name:
        frame.to_csv(path, index=False)
    elif ".jsonl" in name:
        frame.to_json(path, orient="records", lines=True)
    elif name.endswith(".arrow"):
        frame.to_feather(path)
    else:
        frame.to_parquet(path, index=False)
    return path


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command in an empty folder, from within."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, stdin=None):
        given = [str(argument) for argument in arguments]
        return CliRunner().invoke(cli.make_command(), given, input=stdin, prog_name="caltree")

    return run


@pytest.fixture
def complaint(run, tmp_path):
    """The one line that a command says before it fails and leaves no trace."""

    def complaint(*arguments, code=1, **options):
        before = sorted(os.listdir(tmp_path))
        result = run(*arguments, **options)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        [line] = result.stderr.splitlines()
        assert line.startswith("caltree: error: ")
        assert sorted(os.listdir(tmp_path)) == before
        return line.removeprefix("caltree: error: ")

    return complaint


def run_installed(*arguments, folder, **options):
    """Run the installed command."""
    return subprocess.run(
        [SCRIPT, *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        **options,
    )


@pytest.fixture(scope="session")
def visits():
    return make_visits()


@pytest.fixture(scope="session")
def stored_model(visits, tmp_path_factory):
    """The text of a model that `caltree fit` wrote."""
    folder = tmp_path_factory.mktemp("model")
    write(visits, folder / "scored.csv")
    arguments = ["fit", folder / "scored.csv", "--categorical", "zip", "--out", folder / "m.json"]
    result = CliRunner().invoke(cli.make_command(), [*map(str, arguments), "--quiet"])
    assert result.exit_code == 0, result.output
    return (folder / "m.json").read_text()


@pytest.fixture
def model(stored_model, tmp_path):
    """The path of that model."""
    path = tmp_path / "model.json"
    path.write_text(stored_model)
    return path
