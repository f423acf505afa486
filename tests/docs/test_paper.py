"""The tables in the documentation are those that the command makes of the stored results."""

from caltree.paper.exchange import from_text
from caltree.paper.render import markdown
from caltree.paper.store import Store
from caltree.paper.summary import all_tables

from ..support.fixtures import ROOT

RESULTS = ROOT / "docs" / "paper-results.json"


def test_the_tables_are_those_of_the_results(tmp_path):
    text = RESULTS.read_text(encoding="utf-8")
    store = from_text(text, lambda settings: Store(tmp_path / "paper.sqlite", settings))
    page = (ROOT / "docs" / "paper-tables.md").read_text(encoding="utf-8")
    for name, table in all_tables(store).items():
        assert markdown(table) in page, f"{name}: run `caltree paper tables` again"


def test_the_results_are_small():
    assert RESULTS.stat().st_size < 1_000_000
