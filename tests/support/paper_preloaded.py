"""What the processes of the tests need, imported once and for all of them."""

from importlib import import_module

for name in ("arff", "click", "pandas", "psutil", "rich.progress", "tests.support.paper_processes"):
    import_module(name)
