"""Where our results differ from the printed ones, of results that are made by hand."""

import pytest

from caltree.paper import published
from caltree.paper.agreement import far_table, marks_table, order_table, own_table
from caltree.paper.store import Cell, Shape, Store


@pytest.fixture
def store(tmp_path):
    """Two folds a run."""
    return Store(tmp_path / "results.sqlite", {"folds": "2", "seed": "1"})


def fill(store, dataset, learner="svm", n_classes=2, notes="", **results):
    store.add_dataset(dataset, Shape(100, 5, n_classes, "", notes))
    for calibrator, values in results.items():
        for fold, value in enumerate(values):
            measures = {calibrator: {"rmse": value, "log_loss": 10.0 * value}}
            store.add(Cell(dataset, learner, *divmod(fold, 2)), measures, {})


# Figures


def test_figures_far_from_the_printed_ones_are_listed(store):
    printed = published.rmse("svm", "vote"), published.rmse("svm", "vote", "platt")
    fill(store, "vote", pct=[printed[0] + 0.0201] * 2, platt=[printed[1] - 0.0199] * 2)
    table = far_table(store)
    [row] = table.rows
    assert row[:3] == ["SVMs with RBF kernels", "vote", "PCT"]
    assert row[3:7] == pytest.approx([printed[0] + 0.0201, printed[0], 0.0201, 0.0])
    assert row[7] == "not known"
    assert table.note.startswith("1 of 2 figures.")


def test_the_reasons_are_those_that_can_be_told(store):
    printed = published.rmse("svm", "vote")
    spread = [printed + 0.03 - 0.1, printed + 0.03 + 0.1]  # 0.03 from it, standard error 0.1
    fill(store, "vote", pct=spread)
    fill(store, "yeast", n_classes=10, pct=[0.9] * 2, platt=[0.9] * 2)
    fill(store, "sick", notes="3 rows; the paper has 4.", pct=[0.9] * 2)
    rows = {(row[1], row[2]): row for row in far_table(store).rows}
    assert rows["vote", "PCT"][6] == pytest.approx(0.1)
    assert rows["vote", "PCT"][7] == "Chance: less than two standard errors."
    assert rows["yeast", "PCT"][7] == "not known"
    assert rows["yeast", "PS"][7].endswith("ours is one-vs-rest.")
    assert rows["sick", "PCT"][7] == "Another copy: 3 rows; the paper has 4."


def test_one_fold_has_no_standard_error(store):
    fill(store, "vote", pct=[0.9], platt=[0.9])
    row, _ = far_table(store).rows
    assert row[6] is None and row[7] == "1 of 2 folds."
    # Nor does it say which is better.
    assert all(row[2] == 0 for row in order_table(store).rows)


# Order


def test_the_order_is_that_of_means_to_three_digits(store):
    fill(store, "vote", pct=[0.1, 0.3], platt=[0.2, 0.3], isotonic=[0.2001, 0.2001])
    fill(store, "sick", pct=[0.2, 0.2], platt=[0.1, 0.1])
    table = order_table(store)
    rows = {tuple(row[:2]): row[2:] for row in table.rows}
    svm = "SVMs with RBF kernels"
    assert rows[svm, "PS"][:5] == [2, 1, 0, 1, "1.00000"]
    assert rows[svm, "IR"][:5] == [1, 0, 1, 0, "1.00000"]
    printed = [
        (published.rmse("svm", name), published.rmse("svm", name, "platt"))
        for name in ("vote", "sick")
    ]
    expected = [
        sum(tree < other for tree, other in printed),
        sum(tree == other for tree, other in printed),
        sum(tree > other for tree, other in printed),
    ]
    assert rows[svm, "PS"][5:8] == expected
    assert rows["naive Bayes", "PS"][:5] == [0, 0, 0, 0, "1.00000"]


def test_means_are_of_runs_that_both_have_whole(store):
    fill(store, "vote", pct=[0.1, 0.1, 0.9, 0.9], platt=[0.2, 0.2, 0.2])
    rows = {tuple(row[:2]): row[2:] for row in order_table(store).rows}
    assert rows["SVMs with RBF kernels", "PS"][:4] == [1, 1, 0, 0]


# Tests of single data sets


def test_tests_that_say_what_the_paper_says_are_left_out(store):
    assert published.mark("naive_bayes", "segment", "platt") == "win"
    assert published.mark("naive_bayes", "pima-diabetes", "platt") == "draw"
    better, same = [0.1, 0.1], [0.3, 0.3]
    fill(store, "segment", "naive_bayes", pct=better, platt=same)
    fill(store, "pima-diabetes", "naive_bayes", pct=same, platt=same)
    table = marks_table(store)
    assert table.rows == [] and table.note.startswith("0 of 2 comparisons")
    fill(store, "segment", "naive_bayes", isotonic=[0.2, 0.05])
    fill(store, "vote", "naive_bayes", pct=same, platt=better)
    segment, vote = sorted(marks_table(store).rows, key=lambda row: row[1])
    figures = [published.rmse("naive_bayes", "segment", name) for name in ("pct", "isotonic")]
    assert segment[:4] == ["naive Bayes", "segment", "IR", 2]
    assert segment[4:7] == [pytest.approx(0.1), pytest.approx(0.125), ""]
    assert segment[8:] == [*figures, "better"]
    assert vote[1:3] == ["vote", "PS"] and vote[6:8] == ["worse", "<0.00001"]


# What is not in the paper


def test_our_own_are_compared_with_the_published_tree(store):
    fill(store, "vote", pct=[0.2, 0.2], tree=[0.1, 0.1])
    fill(store, "sick", pct=[0.4, 0.4], tree=[0.5, 0.5])
    fill(store, "vote", "logistic_model_tree", none=[0.3, 0.1])
    tree, alone = own_table(store).rows
    assert tree[:3] == ["SVMs with RBF kernels", "tree with our defaults", 2]
    assert tree[3:5] == pytest.approx([0.3, 0.3]) and tree[5:] == [1, 0, 1, "1.00000"]
    assert alone[1:3] == ["logistic model tree", 1] and alone[5:8] == [0, 1, 0]
    by_log_loss = own_table(store, "log_loss")
    assert by_log_loss.title.endswith(": log loss") and "mean log loss" in by_log_loss.header
    assert by_log_loss.rows[0][3:5] == pytest.approx([3.0, 3.0])
