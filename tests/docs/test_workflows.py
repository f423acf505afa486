"""The workflows run make targets that exist, and actions pinned by the hash of a commit."""

import re

import pytest

from ..support.fixtures import ROOT

yaml = pytest.importorskip("yaml")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
INSTALL = re.compile(r"(sudo apt-get update && )?(sudo apt-get|pip|python -m pip) install [^&|;]*")


def steps(path):
    jobs = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def make_targets():
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


def test_there_are_workflows():
    assert [path.stem for path in WORKFLOWS] == ["ci", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_is_a_make_target_or_an_installation(path):
    commands = [step["run"] for step in steps(path) if "run" in step]
    assert commands
    for command in commands:
        made = re.fullmatch(r"make ([a-z-]+)( [A-Z]+=(\w+|\"[^\"]*\"))*", command)
        assert INSTALL.fullmatch(command) or (made and made.group(1) in make_targets()), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_a_hash_with_its_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_one_action_has_one_hash():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    pins = set(re.findall(r"uses: ([\w-]+/[\w-]+)@(\w+)", text))
    assert len(pins) == len(dict(pins))
