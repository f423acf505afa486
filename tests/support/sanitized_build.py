"""A pytest plugin that tests the caltree in another folder instead of the installed one."""

import os
import sys
from importlib import import_module
from pathlib import Path

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    folder = Path(os.environ["CALTREE_INSTEAD"]).resolve()
    # The finder of a package installed in place comes before the path.
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not type(finder).__name__.startswith("ScikitBuild")
    ]
    sys.path.insert(0, str(folder))
    for name in ("caltree", "caltree._core"):
        found = Path(str(import_module(name).__file__))
        assert found.is_relative_to(folder), f"{name} was imported from {found}, not from {folder}"
