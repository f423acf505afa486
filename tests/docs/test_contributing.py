"""The map of the house in CONTRIBUTING.md names exactly the packages and modules there are."""

import re
from pathlib import Path

import pytest

import caltree

from ..support.fixtures import ROOT

SOURCE = Path(caltree.__file__).parent  # of a wheel, too: nothing is left out of it
CORE = ROOT / "src" / "core"


def mapped():
    """The paths of the map, given by indentation."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"```\nsrc/caltree/\n(.*?)\nsrc/core/", text, re.DOTALL).group(1)
    paths, folders = [], []
    for line in block.splitlines():
        indent, name = re.match(r"( +)(\S+) {2,}\S", line).groups()
        depth = len(indent) // 4
        folders = folders[: depth - 1]
        paths.append("".join(folders) + name)
        if name.endswith("/"):
            folders.append(name)
    return paths


def existing():
    """Packages with a slash at the end, and modules other than those that make a package."""
    modules = [path for path in SOURCE.rglob("*.py*") if path.suffix in (".py", ".pyi")]
    packages = {parent for path in modules for parent in path.parents if SOURCE in parent.parents}
    names = [path.relative_to(SOURCE).as_posix() for path in modules if path.stem != "__init__"]
    return {*names, *(f"{path.relative_to(SOURCE).as_posix()}/" for path in packages)}


def test_the_map_names_every_package_and_module_once():
    paths = mapped()
    assert len(paths) == len(set(paths))
    assert set(paths) == existing() | {"__init__.py", "schema/"}


@pytest.mark.skipif(not CORE.is_dir(), reason="the source of the core is not here")
def test_the_map_names_every_folder_of_the_core():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"\nsrc/core/.*?\n(.*?)\ntests/", text, re.DOTALL).group(1)
    folders = {path.name for path in CORE.iterdir()}
    assert set(re.findall(r"^    (\w+)/ ", block, re.MULTILINE)) == folders
