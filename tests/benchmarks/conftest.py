"""Fixtures of the tests of benchmarks."""

import pytest

from benchmarks.comparison import command, data
from tests.support.paper_data import write_data


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run the command in a folder that has two small data sets in `data`; returns what it says."""
    monkeypatch.chdir(tmp_path)
    data.prepared.cache_clear()  # an earlier test may have read other rows of the same name
    write_data(tmp_path / "data", n_rows=60)

    def run(*given, code=0):
        assert command.main(list(given)) == code
        return capsys.readouterr()

    return run
