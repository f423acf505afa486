"""The metadata in several files agree."""

import re
import tomllib

import pytest

from caltree import __version__

from ..support.fixtures import ROOT

yaml = pytest.importorskip("yaml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_yaml(*names):
    return yaml.safe_load(ROOT.joinpath(*names).read_text(encoding="utf-8"))


def normal(requirement):
    """The name and the version of a requirement, as pip and conda write it."""
    name, version = re.fullmatch(r"([\w-]+?)(?:-base)? ?(>=.*)?", requirement).groups()
    return name, version


def test_the_version_is_one():
    citing = (ROOT / "docs" / "citing.md").read_text(encoding="utf-8")
    versions = {
        PROJECT["version"],
        read_yaml("CITATION.cff")["version"],
        read_yaml("conda", "recipe.yaml")["context"]["version"],
        re.search(r"version = \{(.*)\}", citing).group(1),
        __version__,
    }
    assert len(versions) == 1


def test_conda_asks_for_what_pip_asks_for():
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *extras["cli"], *extras["plot"], *extras["report"]]
    wanted.append(f"python{PROJECT['requires-python']}")
    found = read_yaml("conda", "recipe.yaml")["requirements"]["run"]
    assert sorted(map(normal, found)) == sorted(map(normal, wanted))


def test_the_classifiers_name_every_python_that_is_tested():
    jobs = read_yaml(".github", "workflows", "ci.yml")["jobs"]
    named = [text.split(" :: ")[-1] for text in PROJECT["classifiers"] if ":: 3." in text]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
