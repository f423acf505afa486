"""What the processes of the tests need, imported once and for all of them."""

import arff  # noqa: F401
import click  # noqa: F401
import pandas  # noqa: F401
import psutil  # noqa: F401
import rich.progress  # noqa: F401

import tests.paper.processes  # noqa: F401
