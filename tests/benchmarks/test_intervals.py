"""The benchmark of intervals: its made-up rows, its truth, and that it runs."""

import numpy as np
import pytest

from benchmarks import intervals
from caltree.cli.demo_data import make_loans


@pytest.mark.parametrize("name", intervals.CONSTRUCTIONS)
def test_strong_scores_are_nearer_to_the_truth(name):
    errors = []
    for strength in intervals.STRENGTHS:
        construct = intervals.CONSTRUCTIONS[name]
        _, truth, scores = construct(400, strength, np.random.default_rng(0))
        np.testing.assert_allclose(truth.sum(axis=1), 1.0)
        errors.append(
            np.mean((truth - (intervals.both(scores) if scores.ndim == 1 else scores)) ** 2)
        )
    assert errors[0] < errors[1]


def test_the_truth_of_loans_is_what_happens_given_the_columns():
    loans = make_loans(20_000, np.random.default_rng(0))
    truth = intervals.loans_truth(loans.X)
    happened = loans.y == "yes"
    for part in np.array_split(np.argsort(truth), 5):
        assert happened[part].mean() == pytest.approx(truth[part].mean(), abs=0.02)
    # Less is known without the strain.
    assert truth.std() < loans.probability.std()
    assert np.mean((happened - truth) ** 2) > np.mean((happened - loans.probability) ** 2)


def test_tenths_of_few_rows_do_not_count():
    said = np.r_[np.full(199, 0.05), 0.95]
    found = intervals.by_tenth(said, said < 0.5)
    assert found[0] == 1.0 and np.isnan(found[1:]).all()


def test_a_line_says_whether_the_bar_is_met(capsys, monkeypatch):
    said = np.linspace(0.0, 1.0, 1_000)
    held = np.arange(1_000) % 20 > 0
    monkeypatch.setattr(intervals, "measure", lambda *given: (said, held, said, (1.0, 2.0)))
    monkeypatch.setattr(
        "sys.argv",
        ["intervals.py", "--rows", "7", "--constructions", "rare", "--calibrators", "tree"],
    )
    intervals.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split()[:7] == ["rare", "strong", "7", "tree", "95.0", "95.0", "within"]
    assert lines[-1].startswith("tree, 7 rows: 95.0 %, lowest tenth 95.0 %: met.")
    assert lines[-1].endswith(
        "Single constructions: 95.0 to 95.0 %, lowest tenth 95.0 %; 2 of 2 meet it."
    )


def test_the_bar_is_of_the_mean_of_all_constructions():
    def say(*shares):
        said = np.repeat([0.25, 0.75], 100)
        cells = [(said, np.tile(np.arange(100), 2) < np.repeat(share, 100)) for share in shares]
        return intervals.summary("tree", 1_000, cells)

    found = say((80, 98), (94, 100))
    assert "tree, 1,000 rows: 93.0 %, lowest tenth 87.0 %: met." in found
    assert "89.0 to 97.0 %, lowest tenth 80.0 %; 1 of 2 meet it." in found
    assert "MISSED" in say((80, 100), (86, 100))
    assert "MISSED" in say((99, 99), (98, 98))
