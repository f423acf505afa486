"""The tables of the benchmark of accuracy."""

import math
from importlib.util import find_spec

import pytest
from threadpoolctl import threadpool_limits

from benchmarks.comparison import calibrators, grid, tables, work
from caltree.paper.store import Cell, Shape
from tests.support.trees import make_rows

MEANS = {
    "vote": {"none": 0.30, "platt": 0.25, "mcgrad": 0.10, "tree": 0.25},
    "vowel": {"none": 0.20, "platt": 0.30, "tree": 0.21},
}
WHOLE_RUNS = [(run, fold) for run in range(2) for fold in range(5)]


@pytest.fixture
def store(tmp_path):
    """Two runs, and the first fold of a third; the tree is never quite as steady as the others."""
    plan = work.Comparison(("vote", "vowel"), ("svm",), ("none",))
    store = work.Results(tmp_path / "results.sqlite", plan.settings())
    store.add_dataset("vote", Shape(60, 3, 2, "a", ""))
    store.add_dataset("vowel", Shape(61, 3, 11, "b", ""))
    for dataset, means in MEANS.items():
        for run_, fold in [*WHOLE_RUNS, (2, 0)]:
            found = {name: {"rmse": mean + 0.001 * fold} for name, mean in means.items()}
            found["tree"]["rmse"] += 0.001 * (fold - 2) + run_ // 2
            store.add(Cell(dataset, "svm", run_, fold), found, {"calibrator tree": fold})
    return store


def table_of(store, title, runs=None):
    [table] = [each for each in tables.all_tables(store, "rmse", runs) if each.title == title]
    return [list(row) for row in table.rows]


def test_wins_draws_and_losses_on_whole_runs(store):
    # The differences from platt on vote are -0.002 to 0.002, and 0 in the mean.
    assert table_of(store, "tree against the others, by RMSE") == [
        ["none", 1, 0, 1, "50%", 2, 0],
        ["platt", 1, 1, 0, "100%", 2, 0],
        ["mcgrad", 0, 0, 1, "0%", 1, 0],
    ]
    rows = table_of(store, "tree against the others, by RMSE", runs=2)
    assert [row[-2:] for row in rows] == [[2, 2], [2, 2], [1, 1]]
    assert tables.all_tables(store, "rmse", 3)[0].rows == []


def test_a_cell_counts_with_the_runs_that_both_have(store):
    cells = [Cell("vote", "svm", run, fold) for run in range(2) for fold in range(5)]
    for cell in cells[:8]:
        store.add(cell, {"isotonic": {"rmse": 0.5}}, {})
    [pair] = grid.compared(grid.read(store, "rmse"), "isotonic", "none")
    assert (pair.place, pair.n_runs, pair.mine, pair.other) == (("vote", "svm"), 1, 0.5, 0.302)
    assert table_of(store, "Mean ranks: cells of two classes, all calibrators")[0][0] == "mcgrad"
    for cell in cells[8:]:
        store.add(cell, {"isotonic": {"rmse": 0.5}}, {})
    assert grid.compared(grid.read(store, "rmse"), "isotonic", "none")[0].n_runs == 2
    assert grid.compared(grid.read(store, "rmse", 1), "isotonic", "none")[0].n_runs == 1


def test_mean_ranks(store):
    assert table_of(store, "Mean ranks: cells of two classes, all calibrators") == [
        ["mcgrad", 1.0, 1, "0.1020"],
        ["platt", 2.5, 0, "0.2520"],
        ["tree", 2.5, 0, "0.2520"],
        ["none", 4.0, 0, "0.3020"],
    ]
    title = "Mean ranks: all cells, the calibrators that know many classes"
    assert table_of(store, title) == [
        ["tree", 1.75, 0, "0.2320"],
        ["none", 2.0, 1, "0.2520"],
        ["platt", 2.25, 0, "0.2770"],
    ]
    store.forget(["mcgrad"])
    assert table_of(store, "Mean ranks: cells of two classes, all calibrators") == [
        ["platt", 1.5, 0, "0.2520"],
        ["tree", 1.5, 0, "0.2520"],
        ["none", 3.0, 0, "0.3020"],
    ]


def test_mean_ranks_of_few_rows_and_of_many(store, monkeypatch):
    few, many = (
        f"Mean ranks: data sets of {some} 60 rows, the same" for some in ("up to", "more than")
    )
    monkeypatch.setattr(tables, "FEW_ROWS", 60)
    assert [row[0] for row in table_of(store, few)] == ["platt", "tree", "none"]
    assert [row[0] for row in table_of(store, many)] == ["none", "tree", "platt"]


def test_losses_and_what_is_worse_than_none(store):
    losses = table_of(store, "Significant losses")
    assert [row[:6] + row[7:] for row in losses] == [
        ["tree", "vowel", "svm", "none", "0.2120", "0.2020", 2],
        ["tree", "vote", "svm", "mcgrad", "0.2520", "0.1020", 2],
    ]
    # Ten differences of mean 0.01 and deviation 0.001 sqrt(20 / 9): t is 0.01 / (0.001491 x
    # sqrt(1 / 10 + 1 / 4)) = 11.34 at 9 degrees of freedom.
    assert losses[0][6] == "1.2e-06"
    assert table_of(store, "More than 1% worse than no calibration") == [
        ["tree", "vowel", "svm", "+5.0%", "0.2120", "0.2020", "1.2e-06", 2]
    ]


def test_worse_than_the_best_global_calibrator_with_hindsight(store):
    [table] = tables.hindsight_table(store, "rmse")
    # On vote platt is the best and the tree as good; mcgrad, better still, is not global.
    assert [list(row) for row in table.rows] == [
        ["tree", "vowel", "svm", "+5.0%", "none", "0.2120", "0.2020", "1.2e-06", 2]
    ]
    assert table.title.endswith("best global calibrator of the cell, by RMSE")
    assert table.note.startswith("Cells: tree 1 of 2, forest 0 of 0, boosting 0 of 0, ")
    assert "The best, with hindsight, of none, platt. " in table.note
    # A global calibrator is judged by the others.
    [table] = tables.hindsight_table(store, "rmse", 1, ["platt", "none"])
    assert [list(row)[:5] for row in table.rows] == [
        ["platt", "vowel", "svm", "+49.5%", "none"],
        ["none", "vote", "svm", "+19.8%", "platt"],
    ]


GLOBAL = [
    "none",
    "platt",
    "isotonic",
    "temperature",
    "our_temperature",
    "our_beta",
    "beta",
    "venn_abers",
    "logistic",
    "spline",
]


def test_which_calibrators_are_global():
    assert [name for name, entry in calibrators.ALL.items() if entry.is_global] == GLOBAL


@pytest.mark.parametrize("name", GLOBAL)
def test_global_calibrators_do_not_look_at_attributes(name):
    if name == "temperature":
        pytest.importorskip("sklearn", minversion="1.8")
    entry = calibrators.ALL[name]
    if not all(map(find_spec, entry.modules)):
        pytest.skip(f"needs {', '.join(entry.modules)}")
    _, y, scores = make_rows(60)
    with threadpool_limits(1):
        made = entry.make(0).fit(None, y, scores)
        assert made.predict_proba(None, scores).shape == (60, 2)


def test_an_auc_is_compared_by_what_it_lacks_to_1(store):
    cells = [Cell("vote", "naive_bayes", 0, fold) for fold in range(5)]
    for cell in cells:
        found = {"none": {"auc": 0.75}, "tree": {"auc": 0.8125 + 0.01 * (cell.fold - 2)}}
        store.add(cell, found, {})
    [pair] = grid.compared(grid.read(store, "auc"), "tree", "none")
    assert (pair.mine, pair.other, pair.verdict) == (0.1875, 0.25, "win")
    titles = [table.title for table in tables.all_tables(store, "auc")]
    assert "tree against the others, by 1 - AUC" in titles
    # A fold without an AUC takes its run along, and only that.
    store.add(Cell("vote", "naive_bayes", 1, 0), {"none": {"auc": 0.5}, "tree": {"auc": 0.5}}, {})
    store.add(Cell("vote", "naive_bayes", 1, 1), {"none": {"rmse": 0.5}, "tree": {"rmse": 0.5}}, {})
    assert grid.compared(grid.read(store, "auc"), "tree", "none") == [pair]


def test_nothing_is_a_part_of_an_error_of_zero(store):
    for fold in range(5):
        found = {"none": {"auc": 1.0}, "platt": {"auc": 1.0}, "tree": {"auc": 0.75}}
        store.add(Cell("vote", "naive_bayes", 0, fold), found, {})
    read = grid.read(store, "auc")
    [pair], [same] = grid.compared(read, "tree", "none"), grid.compared(read, "platt", "none")
    assert (pair.worse_by, same.worse_by) == (math.inf, 0.0)
    [row] = tables.all_tables(store, "auc")[-1].rows
    assert list(row)[:6] == ["tree", "vote", "naive_bayes", "+inf%", "0.2500", "0.0000"]


def test_what_there_is(store):
    rows = table_of(store, "What there is")
    assert rows[-1] == ["tree", 2, 0, 22, pytest.approx(40 / 22), pytest.approx(20 / 11)]
    assert [row[:4] for row in rows[:3]] == [
        ["none", 2, 0, 22],
        ["platt", 2, 0, 22],
        ["mcgrad", 1, 0, 11],
    ]


def test_tables_are_printed_and_nothing_to_show_is_no_error(run, store):
    given = ["--store", str(store.path)]
    said = run("table", *given).out
    assert said.count("**") == 16
    assert "| platt | 1 | 1 | 0 | 100% | 2 | 0 |" in said
    cells = run("table", *given, "--cells", "--runs", "2").out
    assert "| vowel | svm | 11 | 10 | 0.2020 | 0.3020 |  | 0.2120 |" in cells
    best = run("table", *given, "--against-best").out
    assert "| tree | vowel | svm | +5.0% | none |" in best and best.count("**") == 2
    best = run("table", *given, "--against-best", "platt", "--measure", "rmse", "--runs", "2").out
    assert "Cells: platt 1 of 2." in best
    run("forget", *given, "--calibrators", "none,platt,mcgrad,tree")
    assert "No significant losses" in run("table", *given, "--measure", "log_loss").out
