"""The bar of a fit: on a terminal alone."""

import os
import pty
import re
import subprocess

from .conftest import SCRIPT, run_installed, write


def test_a_fit_shows_its_share_on_a_terminal_and_nothing_in_a_pipe(tmp_path, visits):
    write(visits, tmp_path / "scored.csv")
    arguments = ["fit", "scored.csv", "--out", "model.json"]
    done = run_installed(*arguments, folder=tmp_path)
    assert done.returncode == 0 and b"fitting" not in done.stderr and b"%" not in done.stderr
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [SCRIPT, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = _read(ours)
        assert process.stdout.read() == b"" and process.wait() == 0
    assert re.search(r"fitting .*100%.*left:", shown)
    assert "Model: model.json" in shown


def _read(terminal):
    parts = []
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            part = b""
        if not part:
            os.close(terminal)
            return b"".join(parts).decode()
        parts.append(part)
