"""The tables, of results that are made by hand, and the paper's figures beside them."""

import math

import numpy as np
import pytest

from caltree.metrics import rmse
from caltree.paper import published
from caltree.paper.cost import cost_of_all, cost_summary
from caltree.paper.datasets import NAMES
from caltree.paper.generators import led24
from caltree.paper.protocol import outer_folds
from caltree.paper.rmse import pooled_rmse
from caltree.paper.statistics import corrected_resampled_t_test
from caltree.paper.store import Cell, Shape, Store
from caltree.paper.summary import (
    all_tables,
    compare_with_tree,
    counts,
    datasets_table,
    results_table,
    sign_table,
)

SAME = [0.2, 0.2, 0.2, 0.2]
RISING = [0.2, 0.3, 0.4, 0.5]


@pytest.fixture
def store(tmp_path):
    """Two folds a run."""
    return Store(tmp_path / "results.sqlite", {"folds": "2", "seed": "1"})


def fill(store, dataset, learner="naive_bayes", rows=101, **results):
    """Results of whole runs of two folds, and then some."""
    store.add_dataset(dataset, Shape(rows, 5, 2, "", ""))
    for number in range(max(map(len, results.values()))):
        measures = {
            calibrator: {"rmse": values[number], "accuracy": 0.0}
            for calibrator, values in results.items()
            if number < len(values)
        }
        store.add(Cell(dataset, learner, *divmod(number, 2)), measures, {})


def by_name(table):
    return {row[0]: row for row in table.rows}


# Table 1


def test_data_sets_stand_beside_those_of_the_paper(store):
    store.add_dataset("vote", Shape(434, 15, 2, "", "434 rows; the paper has 435."))
    table = datasets_table(store)
    assert table.header == [
        *("data set", "rows", "paper", "attributes", "paper", "classes", "paper", "differences")
    ]
    rows = by_name(table)
    assert tuple(rows) == NAMES
    assert rows["vote"] == ["vote", 434, 435, 15, 16, 2, 2, "434 rows; the paper has 435."]
    for name, size in published.sizes().items():
        assert rows[name][2:7:2] == [size.rows, size.attributes, size.classes]
    assert rows["yeast"] == ["yeast", None, 1484, None, 8, None, 10, ""]


# Tables 2 to 5


def test_means_marks_and_figures_of_the_paper(store):
    fill(store, "yeast", pct=RISING, platt=[0.3, 0.4, 0.5, 0.6], isotonic=[0.1, 0.2, 0.3, 0.4])
    table = results_table(store, "naive_bayes", 2)
    assert table.title == "Table 2: RMSE of calibrated naive Bayes"
    assert table.header == [
        *("data set", "folds", "PCT", "paper"),
        *("PS", "", "paper", "", "IR", "", "paper", ""),
        *("uncalibrated", "tree with our defaults", "forest", "logistic model tree"),
    ]
    [row] = table.rows
    assert row[12:] == [None] * 4
    ours, paper = row[:3] + row[4:6] + row[8:10], [row[3], *row[6:8], *row[10:12]]
    assert ours == ["yeast", 4, pytest.approx(0.35), pytest.approx(0.45), "●", 0.25, "○"]
    assert paper == [
        published.rmse("naive_bayes", "yeast"),
        published.rmse("naive_bayes", "yeast", "platt"),
        "●",
        published.rmse("naive_bayes", "yeast", "isotonic"),
        "○",
    ]
    assert "(p = 0.01, corrected resampled t-test of complete runs)" in table.note


def test_every_figure_of_the_paper_is_in_its_place(store):
    for name in NAMES:
        for learner in published.LEARNERS:
            fill(store, name, learner, platt=[0.5])
    circles = {"win": "●", "draw": "", "loss": "○"}
    tables = all_tables(store)
    for number, learner in enumerate(published.LEARNERS, 2):
        table = tables[f"table-{number}"]
        assert table.title.startswith(f"Table {number}: RMSE of calibrated ")
        assert tuple(by_name(table)) == NAMES
        assert "No results" not in table.note
        for name, row in by_name(table).items():
            assert row[1:3] == [1, None] and row[4:6] == [0.5, ""] and row[8:10] == [None, ""]
            assert row[3] == published.rmse(learner, name, "pct")
            for place, rival in ((6, "platt"), (10, "isotonic")):
                assert row[place] == published.rmse(learner, name, rival)
                assert row[place + 1] == circles[published.mark(learner, name, rival)]


def test_data_sets_without_results_are_named(store):
    fill(store, "vote", pct=SAME)
    fill(store, "sick", "svm", pct=SAME)
    note = results_table(store, "naive_bayes", 2).note
    absent = note.partition(" No results: ")[2].removesuffix(".").split(", ")
    assert absent == [name for name in NAMES if name != "vote"]


def test_the_folds_are_those_of_the_calibrator_that_has_fewest(store):
    fill(store, "vote", pct=SAME, platt=SAME[:3], isotonic=SAME)
    [row] = results_table(store, "naive_bayes", 2).rows
    assert row[1] == 3


def test_what_is_not_in_the_paper_has_columns_of_its_own(store):
    fill(store, "vote", pct=SAME, none=RISING, tree=[0.1, 0.2], forest=[0.3])
    fill(store, "vote", "logistic_model_tree", none=[0.6, 0.7])
    fill(store, "sick", "logistic_model_tree", none=[0.6, 0.7])
    [row] = results_table(store, "naive_bayes", 2).rows  # sick has no results of naive Bayes
    assert row[12:] == [pytest.approx(mean) for mean in (0.35, 0.15, 0.3, 0.65)]
    pooled = results_table(store, "naive_bayes", 2, pooled=True).rows[0][15]
    assert pooled == pytest.approx(math.sqrt((51 * 0.6**2 + 50 * 0.7**2) / 101))


def test_runs_that_are_not_complete_do_not_count_for_marks(store):
    # The first run is a win by far, and the first fold of the second run would spoil it.
    fill(store, "vote", pct=[0.1, 0.1, 0.9], platt=[0.5, 0.5, 0.1], isotonic=[0.5])
    found = compare_with_tree(store, "naive_bayes", "vote", "platt")
    assert (found.mark, found.n_results, found.rmse) == ("win", 3, pytest.approx(1.1 / 3))
    assert compare_with_tree(store, "naive_bayes", "vote", "isotonic").mark is None
    assert compare_with_tree(store, "naive_bayes", "vote", "pct").mark is None
    assert compare_with_tree(store, "naive_bayes", "vote", "none") is None
    assert counts(store, "naive_bayes", "platt") == published.Counts(1, 0, 0)
    assert counts(store, "naive_bayes", "isotonic") == published.Counts(0, 0, 0)


def test_a_mark_is_that_of_the_corrected_test(store):
    wide = [0.1, 0.2, 0.3, 0.4]
    fill(store, "vote", pct=SAME, platt=[a + b for a, b in zip(SAME, wide, strict=True)])
    assert corrected_resampled_t_test(SAME, [0.3, 0.4, 0.5, 0.6], 2).p > 0.01
    assert compare_with_tree(store, "naive_bayes", "vote", "platt").mark == "draw"


def test_pooled_rmse_worked_by_hand(store):
    # Three rows and two folds: two rows in the first, one in the second.
    expected = math.sqrt((2 * 0.1**2 + 0.4**2 + 2 * 0.3**2 + 0.2**2) / 6)
    fill(store, "vote", rows=3, pct=[0.1, 0.4, 0.3, 0.2])
    found = compare_with_tree(store, "naive_bayes", "vote", "pct", pooled=True)
    assert found.rmse == pytest.approx(expected)
    table = all_tables(store, pooled=True)["table-2"]
    assert table.title == "Table 2: pooled RMSE of calibrated naive Bayes"
    assert table.rows[0][2] == pytest.approx(expected)
    assert all_tables(store)["table-2"].rows[0][2] == pytest.approx(0.25)


def test_pooled_rmse_is_that_of_all_rows_together():
    data = led24(47)
    frequencies = np.full(len(data.classes), 0.3)
    probabilities = np.random.default_rng(0).dirichlet(frequencies, len(data.y))
    found = {}
    for run in (0, 1):
        for fold, (_, test) in enumerate(outer_folds(data.y, run, 10, 1)):
            found[run, fold] = rmse(data.y[test], probabilities[test], labels=data.classes)
    together = rmse(data.y, probabilities, labels=data.classes)
    assert pooled_rmse(found, 47, 10) == pytest.approx(together, rel=1e-12)
    assert sum(found.values()) / 20 != pytest.approx(together, rel=1e-4)


# Table 6


def test_sign_tests_count_the_marks(store):
    same, higher, lower = [0.2] * 2, [0.3] * 2, [0.1] * 2
    for name in NAMES[:9]:
        fill(store, name, "svm", pct=same, platt=higher, isotonic=lower)
    for name in NAMES[9:12]:
        fill(store, name, "svm", pct=same, platt=lower, isotonic=same)
    table = sign_table(store)
    assert table.header[2:7] == ["W", "D", "L", "p", "exact p"]
    rows = {tuple(row[:2]): row[2:] for row in table.rows}
    assert len(rows) == 8
    # z = (9 - 3) / sqrt(12) = sqrt(3); exactly, 2 * (1 + 12 + 66 + 220) / 4096.
    two_tails = math.erfc(math.sqrt(3 / 2))
    svm = "SVMs with RBF kernels"
    assert rows[svm, "PS"][:5] == [9, 0, 3, f"{two_tails:.5f}", f"{2 * 299 / 4096:.5f}"]
    assert rows[svm, "IR"][:5] == [0, 3, 9, "0.00270", f"{2 / 512:.5f}"]
    assert rows["naive Bayes", "PS"][:5] == [0, 0, 0, "1.00000", "1.00000"]


def test_sign_tests_of_the_paper_stand_beside_ours(store):
    rows = sign_table(store).rows
    pairs = [(learner, rival) for learner in published.LEARNERS for rival in published.RIVALS]
    for (learner, rival), row in zip(pairs, rows, strict=True):
        printed = published.sign_test(learner, rival)
        expected = [printed.counts.wins, printed.counts.draws, printed.counts.losses, printed.p]
        assert row[7:11] == expected
    # 9 wins and no loss: 2 / 2**9.
    assert rows[6][11] == "0.00391"


def test_so_many_wins_leave_a_small_p(store):
    for name in NAMES:
        fill(store, name, pct=SAME[:2], platt=[0.3] * 2)
    assert sign_table(store).rows[0][2:7] == [32, 0, 0, "<0.00001", "<0.00001"]


def test_the_paper_does_not_always_count_its_own_marks(store):
    [sentence] = published.discrepancies()
    assert "23 wins" in sentence and sign_table(store).note.endswith(sentence)


# Cost


def test_costs_in_sum_are_of_what_was_measured(store):
    def spend(dataset, learner, seconds, **calibrators):
        steps = {learner: seconds, **{f"calibrator {k}": v for k, v in calibrators.items()}}
        store.add(Cell(dataset, learner, 0, 0), {}, steps)

    spend("vote", "svm", 36.0, pct=3.6, none=0.0)
    spend("sick", "svm", 72.0, pct=7.2)
    spend("vote", "naive_bayes", 18.0, pct=1.8)
    table = cost_summary(store)
    assert table.rows == [
        ["naive Bayes", 18.0, 1, 32, pytest.approx(0.5)],
        ["SVMs with RBF kernels", 54.0, 2, 32, pytest.approx(3.0)],
        ["uncalibrated", 0.0, 1, 128, 0.0],
        ["PCT", pytest.approx(4.2), 3, 128, pytest.approx(0.35)],
        ["everything", None, 3, 128, pytest.approx(3.85)],
    ]
    others = [name for name in NAMES if name not in ("sick", "vote")]
    for sentence in (
        "and of nothing else.",
        f" Not measured with naive Bayes: {', '.join(n for n in NAMES if n != 'vote')}.",
        " Not measured with boosted stumps: every data set.",
        f" Not measured with SVMs with RBF kernels: {', '.join(others)}.",
    ):
        assert sentence in table.note


def test_where_everything_is_measured_nothing_is_said_to_be_missing(store):
    for name in NAMES:
        for learner in published.LEARNERS:
            store.add(Cell(name, learner, 0, 0), {}, {learner: 9.0})
    table = cost_summary(store)
    assert table.rows[-1] == ["everything", None, 128, 128, pytest.approx(32.0)]
    assert "Not measured" not in table.note


def test_what_was_not_measured_is_estimated_in_proportion_to_its_size(store):
    store.add(Cell("vote", "svm", 0, 0), {}, {"svm": 36.0, "calibrator platt": 3.6})
    store.add(Cell("sick", "svm", 0, 0), {}, {"svm": 72.0})
    sizes = published.sizes()

    def total(growth, but):
        return sum(growth(size) for name, size in sizes.items() if name not in but)

    def squares(size):
        if size.classes == 2:
            return size.rows**2 * 8.5
        return size.rows**2 * size.classes * (6.1 if size.rows <= 5000 else 6.025)

    both = squares(sizes["vote"]) + squares(sizes["sick"])
    mean, highest = 108.0 / both, max(108.0 / both, 72.0 / squares(sizes["sick"]))
    noisy = [name for name, size in sizes.items() if size.classes == 2 and size.rows >= 1000]
    assert "news-popularity" in noisy
    others = mean * total(squares, ("vote", *noisy)) / 36
    others += highest * sum(squares(sizes[name]) for name in noisy if name != "sick") / 36
    rest = total(lambda size: size.rows * size.classes, ("vote",)) / (435 * 2) * 0.1
    svm, known = "SVMs with RBF kernels", pytest.approx
    assert cost_of_all(store).rows == [
        [svm, "PS", 1, known(0.1), known(rest), known(rest + 0.1)],
        [svm, "training", 2, known(3.0), known(others), known(others + 3.0)],
        ["everything", "", None, known(3.1), known(rest + others), known(rest + others + 3.1)],
    ]


def test_an_svm_of_two_noisy_classes_takes_as_long_as_the_slowest_that_was_measured(store):
    sizes = published.sizes()
    for name, rate in (("german-credit", 5e-8), ("sick", 1e-8), ("vote", 9e-8)):
        store.add(Cell(name, "svm", 0, 0), {}, {"svm": rate * sizes[name].rows ** 2 * 8.5})
    [svm, _] = cost_of_all(store, ["news-popularity"]).rows
    # That of german-credit; vote is too small to tell.
    assert svm[4] == pytest.approx(5e-8 * sizes["news-popularity"].rows ** 2 * 8.5 / 36)


def test_the_cost_of_some_data_sets(store):
    for name, seconds in (("vote", 36.0), ("sick", 72.0)):
        store.add(Cell(name, "naive_bayes", 0, 0), {}, {"naive_bayes": seconds})
    *_, everything = cost_of_all(store, ["vote"]).rows
    assert everything[3:] == [pytest.approx(1.0), 0.0, pytest.approx(1.0)]
    [nb, _] = cost_of_all(store, ["vote", "yeast"]).rows
    assert nb[2] == 1 and nb[4] > 0


def test_what_is_not_in_the_paper_is_counted_apart(store):
    store.add(Cell("vote", "svm", 0, 0), {}, {"svm": 36.0, "calibrator pct": 3.6})
    assert [row[0] for row in cost_of_all(store).rows[2:]] == ["everything"]
    store.add(Cell("vote", "svm", 0, 0), {}, {"calibrator tree": 7.2})
    *_, of_paper, everything = cost_of_all(store, ["vote"]).rows
    assert of_paper == ["what the paper has", "", None, pytest.approx(1.1), 0.0, pytest.approx(1.1)]
    assert everything[3:] == [pytest.approx(1.3), 0.0, pytest.approx(1.3)]


@pytest.mark.parametrize("learner", published.LEARNERS)
def test_nothing_is_estimated_where_everything_is_measured(store, learner):
    for name in NAMES:
        steps = {learner: 9.0, "calibrator pct": 0.9, "calibrator none": 0.0}
        store.add(Cell(name, learner, 0, 0), {}, steps)
    *_, everything = cost_of_all(store).rows
    assert everything[3:] == [pytest.approx(8.8), 0.0, pytest.approx(8.8)]


# All


def test_an_empty_store_has_all_tables(store):
    tables = all_tables(store)
    names = ["table-1", "table-2", "table-3", "table-4", "table-5", "table-6"]
    others = ["order", "tests-that-differ", "figures-that-differ", "own", "own-log-loss"]
    assert list(tables) == [*names, *others]
    n_rows = [len(table.rows) for table in tables.values()]
    assert n_rows == [32, 0, 0, 0, 0, 8, 8, 0, 0, 0, 0]
    for table in tables.values():
        assert all(len(row) == len(table.header) for row in table.rows)
