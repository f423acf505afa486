"""Every piece of code in the README runs, and prints what the README says it prints."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from caltree import cli

from ..support.markdown import assert_prints_what_is_shown, blocks, without_trailing_spaces

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_prints_what_is_shown(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    assert assert_prints_what_is_shown(README, "README.md") == 8


def test_the_demonstration_prints_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [shown] = [text for kind, text in blocks(README) if text.startswith("$ caltree demo\n")]
    result = CliRunner().invoke(cli.make_command(), ["demo"])
    expected = ["$ caltree demo", *without_trailing_spaces(result.output)]
    assert without_trailing_spaces(shown) == expected


def test_what_is_linked_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert "docs/demo.png" in links
    assert [link for link in links if "://" not in link and not (ROOT / link).exists()] == []


def test_the_pictures_stay_small():
    for name in ("demo.png", "report.png"):
        assert (ROOT / "docs" / name).stat().st_size < 200_000
