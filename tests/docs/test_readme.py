"""The README: its code and its commands run and print what is shown, and it is short."""

import re
from pathlib import Path

import pytest

from ..support.markdown import assert_prints_what_is_shown

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# PyPI does not resolve relative links.
PAGES = "https://github.com/caltree/caltree/blob/main/"
RAW = "https://raw.githubusercontent.com/caltree/caltree/main/"
PICTURES = ["demo.png", "method-regions.png", "method-tree.png", "report.png"]


def test_the_code_prints_what_is_shown(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    assert assert_prints_what_is_shown(README, "README.md", commands=True) == 2
    assert (tmp_path / "report.html").exists() and (tmp_path / "calibrated.csv").exists()


def test_it_is_two_screens():
    assert len(README.splitlines()) <= 150
    assert len(README.split()) <= 900


def test_what_is_linked_is_there_and_is_found_from_pypi_too():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert f"{RAW}docs/demo.png" in links
    assert [link for link in links if not link.startswith("https://")] == []
    ours = [
        link.removeprefix(RAW).removeprefix(PAGES) for link in links if "caltree/caltree" in link
    ]
    assert len(ours) > 20
    assert [
        link for link in ours if not (ROOT / link.removeprefix(RAW).removeprefix(PAGES)).exists()
    ] == []


def test_the_pictures_stay_small():
    for name in PICTURES:
        assert (ROOT / "docs" / name).stat().st_size < 200_000
