"""Every piece of code in the guide runs, and prints what the guide says it prints."""

import re
from pathlib import Path

import pytest

import caltree

from ..support.markdown import assert_prints_what_is_shown, blocks

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted((DOCS / "guide").glob("*.md"))
SOURCE = DOCS.parent / "src" / "caltree"
PACKAGE = Path(caltree.__file__).parent


def is_there(path):
    """Whether a file exists; one of the package, wherever that is installed."""
    path = path.resolve()
    return (PACKAGE / path.relative_to(SOURCE) if SOURCE in path.parents else path).exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_prints_what_is_shown(page, tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    if page.stem == "onnx":
        pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert_prints_what_is_shown(text, page.name, commands=True)
    kinds = {kind for kind, _ in blocks(text)}
    assert kinds <= {"python", "text", "console"}


@pytest.mark.parametrize("page", [*PAGES, *DOCS.glob("*.md")], ids=lambda page: page.stem)
def test_what_is_linked_is_there(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not is_there(page.parent / link)] == []


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    assert PAGES
    for page in PAGES:
        assert f"guide/{page.stem}\n" in index
