"""The figures of the paper, against what can be read in its tables."""

import pytest

from caltree.paper import published
from caltree.paper.published import CALIBRATORS, LEARNERS, RIVALS, Counts, Size


def test_all_figures_are_there():
    assert len(published.sizes()) == 32
    for learner in LEARNERS:
        for dataset in published.sizes():
            for calibrator in CALIBRATORS:
                assert 0 <= published.rmse(learner, dataset, calibrator) < 0.5
            for versus in RIVALS:
                assert published.mark(learner, dataset, versus) in ("win", "draw", "loss")


@pytest.mark.parametrize(
    ("learner", "dataset", "figures", "marks"),
    [
        ("naive_bayes", "optdigits", (0.123, 0.170, 0.116), ("win", "loss")),
        ("naive_bayes", "led24", (0.194, 0.194, 0.194), ("draw", "loss")),
        ("boosted_stumps", "sick", (0.102, 0.133, 0.132), ("win", "win")),
        ("boosted_trees", "sick", (0.086, 0.083, 0.085), ("draw", "draw")),
        ("svm", "led24", (0.197, 0.198, 0.199), ("draw", "draw")),
    ],
)
def test_rows_of_the_results_tables(learner, dataset, figures, marks):
    assert tuple(published.rmse(learner, dataset, name) for name in CALIBRATORS) == figures
    assert tuple(published.mark(learner, dataset, name) for name in RIVALS) == marks


def test_a_mark_never_contradicts_the_figures():
    for learner in LEARNERS:
        for dataset in published.sizes():
            for versus in RIVALS:
                ours = published.rmse(learner, dataset)
                other = published.rmse(learner, dataset, versus)
                mark = published.mark(learner, dataset, versus)
                assert not (mark == "win" and ours > other)
                assert not (mark == "loss" and ours < other)


def test_sizes_keep_the_order_of_the_paper_and_cannot_be_changed():
    assert list(published.sizes())[:3] == ["audiology", "news-popularity", "bankruptcy"]
    assert published.sizes()["shuttle"] == Size(58000, 9, 7)
    with pytest.raises(TypeError, match="does not support item assignment"):
        published.sizes()["shuttle"] = Size(1, 1, 1)


def test_significance_is_that_of_ten_times_ten_folds():
    significance = published.significance()
    assert (significance.p, significance.runs, significance.folds) == (0.01, 10, 10)


def test_marks_add_up_to_the_printed_sign_tests_but_for_one():
    counts = {
        (learner, versus): (
            published.count_marks(learner, versus),
            published.sign_test(learner, versus).counts,
        )
        for learner in LEARNERS
        for versus in RIVALS
    }
    differing = {pair: both for pair, both in counts.items() if both[0] != both[1]}
    assert differing == {("naive_bayes", "isotonic"): (Counts(22, 7, 3), Counts(23, 6, 3))}
    assert published.discrepancies() == (
        "naive_bayes, pct against isotonic: the sign test counts 23 wins, 6 draws and 3 losses; "
        "the table marks 22 wins, 7 draws and 3 losses",
    )


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: published.rmse("bayes", "yeast"), "learner"),
        (lambda: published.rmse("svm", "iris"), "dataset"),
        (lambda: published.rmse("svm", "yeast", "beta"), "calibrator"),
        (lambda: published.mark("svm", "yeast", "pct"), "versus"),
        (lambda: published.sign_test("svm", "pct"), "versus"),
        (lambda: published.sign_test("bayes", "platt"), "learner"),
    ],
)
def test_unknown_names_are_refused(call, argument):
    with pytest.raises(ValueError, match=f"{argument} must be one of"):
        call()
