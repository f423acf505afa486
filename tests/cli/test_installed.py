"""The installed command: the whole way, a full disk, and signals."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest

from .conftest import SCRIPT, make_visits, run_installed, write

LIMIT = 20_000


@pytest.fixture
def new(tmp_path):
    write(make_visits(2000, seed=1), tmp_path / "new.csv")


def test_the_whole_way(tmp_path, visits):
    write(visits, tmp_path / "scored.csv")
    write(make_visits(300, seed=1), tmp_path / "new.parquet")
    done = run_installed("fit", "scored.csv", "--out", "model.json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"Model: model.json" in done.stderr and b"\x1b" not in done.stderr
    done = run_installed("apply", "model.json", "new.parquet", "--out", "o.csv", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"300 rows calibrated: o.csv\n"
    done = run_installed("evaluate", "model.json", "new.parquet", "--json", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)["rows"] == 300
    assert sorted(os.listdir(tmp_path)) == ["model.json", "new.parquet", "o.csv", "scored.csv"]


def test_errors_are_one_line_and_a_code(tmp_path):
    done = run_installed("show", "nowhere.json", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == (
        b"caltree: error: cannot read nowhere.json: No such file or directory; check the path\n"
    )
    done = run_installed("shew", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    [line] = done.stderr.splitlines()
    assert line.startswith(b"caltree: error: No such command 'shew'. (did you mean show?)")


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize("out", ["o.parquet", "o.csv", "o.arrow", "o.csv.gz"])
def test_a_full_disk_leaves_no_trace(run, tmp_path, model, out):
    (tmp_path / out).write_bytes(b"precious")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        done = run("apply", model, "new.csv", "--out", out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert done.exit_code == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"caltree: error: cannot write {out}: File too large; raise the limit")
    assert (tmp_path / out).read_bytes() == b"precious"
    assert sorted(os.listdir(tmp_path)) == sorted(["model.json", "new.csv", out])


@pytest.mark.usefixtures("new")
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_a_device_that_is_full_is_said(tmp_path, model):
    given = ["--out", "/dev/full", "--out-format", "csv"]
    done = run_installed("apply", model, "new.csv", *given, folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(b"caltree: error: cannot write /dev/full: No space left on dev")
    assert not os.path.isfile("/dev/full")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_while_it_writes_leaves_no_trace(tmp_path, model, number, code):
    write(make_visits(20_000, seed=1), tmp_path / "new.csv")
    header, rows = (tmp_path / "new.csv").read_bytes().split(b"\n", 1)
    (tmp_path / "o.arrow").write_bytes(b"precious")
    before = sorted(os.listdir(tmp_path))
    command = [SCRIPT, "apply", model, "-", "--out", "o.arrow", "--n-jobs", "1"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    with process:
        # Several blocks, and no end: it has written some rows and waits for more.
        process.stdin.write(header + b"\n" + rows * 20)
        while not any(path.stat().st_size for path in tmp_path.glob(".caltree-*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        assert process.wait(timeout=60) == code
        assert process.stderr.read() == b"caltree: interrupted; no file was changed\n"
        process.stdin.close()
    assert sorted(os.listdir(tmp_path)) == before
    assert (tmp_path / "o.arrow").read_bytes() == b"precious"


@pytest.mark.usefixtures("new")
def test_a_pipe_that_closes_early_is_no_traceback(tmp_path, model):
    command = [SCRIPT, "apply", model, "new.csv", "--out", "-", "--quiet"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
    process.stderr.close()


def run_main(before, after=""):
    """Run `main` with a command that is but a line, in a process of its own."""
    lines = f"""
import os, signal, sys
from caltree import cli
assert "numpy" not in sys.modules
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
cli.make_command = lambda: {before}
cli.main()
{after}
"""
    return subprocess.run([sys.executable, "-c", lines], capture_output=True)


def test_ctrl_c_is_answered_before_anything_is_imported():
    done = run_main("interrupt()")
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"caltree: interrupted\n")


def test_ctrl_c_changes_nothing_once_the_work_is_done():
    done = run_main("lambda prog_name: None", "interrupt(); print('done')")
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [b"done"], b"")
