"""Docstrings of the public classes and functions, by their form."""

import inspect
import itertools
import re

import pytest

import caltree
from caltree import metrics

PUBLIC = [getattr(caltree, name) for name in caltree.__all__ if name != "__version__"]
PUBLIC += [value for name, value in vars(metrics).items() if name in metrics.__all__]


@pytest.mark.parametrize("documented", PUBLIC, ids=lambda value: value.__name__)
def test_sections_are_underlined(documented):
    lines = inspect.getdoc(documented).splitlines()
    for above, line in itertools.pairwise(lines):
        assert not re.search(r"\w+ -{4,}", line)
        if line.startswith("----"):
            assert len(above) == len(line)
