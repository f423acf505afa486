"""The benchmark of audits: its made-up rows, how it reads regions, and that it runs."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import audit
from caltree.metrics import multicalibration_error


@pytest.mark.parametrize("two", [False, True])
def test_a_tenth_of_the_rows_is_off(two):
    _, labels, scores, inside = audit.group_off(1.0, two, 0)
    assert inside.mean() == pytest.approx(0.1, abs=0.02)
    assert labels[inside].mean() > scores[inside].mean() + 0.1
    assert labels[~inside].mean() == pytest.approx(scores[~inside].mean(), abs=0.03)


def test_one_value_in_five_is_missing_and_scores_are_the_truth():
    table, labels, scores = audit.true_scores(4000, 4, 0)
    assert table.isna().to_numpy().mean() == pytest.approx(0.2, abs=0.02)
    assert np.bincount(labels) / 4000 == pytest.approx(scores.mean(axis=0), abs=0.03)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("x <= 2", [0, 1]),
        ("x > 2", [2, 3]),
        ("1 < x <= 3", [1, 2]),
        ("c = a", [0, 2]),
        ("c in a, b", [0, 1, 2]),
    ],
)
def test_conditions_are_read(text, rows):
    table = pd.DataFrame({"x": [1, 2, 3, 4], "c": ["a", "b", "a", "d"]})
    assert np.flatnonzero(audit.meets(table, text)).tolist() == rows


def test_the_level_is_printed(capsys, monkeypatch):
    monkeypatch.setattr(audit, "rejects", lambda *given: (True, False))
    audit.main(["level", "--repeats", "2"])
    assert "all                    100.0%                         0.0%" in capsys.readouterr().out


def test_power_is_printed_with_the_standard_error_of_the_difference(capsys, monkeypatch):
    monkeypatch.setattr(audit, "null_sigmas", lambda seed: (4.0, 0.5))
    # The audit detects all, MCGrad every other group, of which it names none.
    monkeypatch.setattr(
        audit,
        "detects",
        lambda shift, two, seed: (True, True, True, 3.0 + 2.0 * (seed % 2), True, seed % 2 == 0),
    )
    audit.main(["power", "--repeats", "4"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + 6
    assert lines[-1].split()[2:] == [
        *("100%", "100%", "100%", "50%", "0%", "50%", "100%"),
        *("+50.0%", "±", "25.0%"),
    ]


def test_a_segment_of_all_rows_is_no_group(monkeypatch):
    monkeypatch.setattr(audit, "multicalibration", lambda *given: (5.0, 0.01))
    whole = multicalibration_error(np.zeros((50, 1)), np.arange(50) % 2, np.full(50, 0.4))
    assert whole.segment == audit.ALL_ROWS
    monkeypatch.setattr(audit, "multicalibration_error", lambda *given: whole)
    assert not audit.detects(1.0, False, 0)[-1]
