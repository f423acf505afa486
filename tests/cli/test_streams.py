"""Standard streams that are closed or full, and exit codes, as a shell sees them."""

import os
import subprocess

import pytest

from .conftest import SCRIPT, make_visits, write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a shell")


@pytest.fixture
def shell(tmp_path, model):
    """Run a line of a shell, in which $C is the command."""
    write(make_visits(300, seed=1), tmp_path / "new.csv")

    def shell(line):
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "C": str(SCRIPT)},
        )
        return done.returncode, done.stderr

    return shell


CLOSED = "caltree: error: cannot write standard output: it is closed; give a file\n"
NO_INPUT = "caltree: error: cannot read standard input: it is closed; give the name of a file\n"
FULL = (
    "caltree: error: cannot write standard output: No space left on device; make room or choose "
    "another place\n"
)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("$C apply model.json new.csv --out - >&-", (1, CLOSED)),
        ("$C fit new.csv --out - >&-", (1, CLOSED)),
        ("$C show model.json >&-", (1, CLOSED)),
        ("$C evaluate model.json new.csv >&-", (1, CLOSED)),
        (
            "$C apply model.json - --out o.csv <&-",
            (1, NO_INPUT),
        ),
        ("$C show model.json >/dev/full", (1, FULL)),
        ("$C evaluate model.json new.csv --json >/dev/full", (1, FULL)),
        ("$C apply model.json new.csv --out o.csv --quiet >&-", (0, "")),
        ("$C apply model.json new.csv --out o.csv 2>&-", (0, "")),
        ("$C apply model.json nowhere.csv --out o.csv 2>&-", (1, "")),
    ],
)
def test_closed_and_full_streams_are_one_line(shell, line, expected):
    assert shell(line) == expected


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("show model.json", 0),
        ("show nowhere.json", 1),
        ("show", 2),
        ("show model.json --max-depth -1", 2),
        ("fit new.csv --calibrator histogram --out m.json", 2),
        ("paper run --learners nb", 2),
        ("paper run --datasets iris", 2),
        ("paper run --jobs many", 2),
        ("paper tables --store nowhere.sqlite", 1),
        ("demo --plot picture.xyz", 1),
    ],
)
def test_exit_codes_tell_options_from_data(shell, arguments, code):
    found, complaint = shell(f"$C {arguments} >/dev/null")
    assert found == code
    assert complaint == "" or complaint.startswith("caltree: error: ")
