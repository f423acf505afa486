"""The benchmark of many classes: a row for each calibrator and number of classes."""

import numpy as np
import pytest

from benchmarks import classes


def test_a_row_for_each_number_of_classes(capsys):
    given = ("--classes", "4", "3", "--calibrators", "platt", "forest", "--rows", "60")
    classes.main([*given, "--trees", "2"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    assert [row[:2] for row in rows] == [
        [name, number] for name in ("platt", "forest") for number in ("3", "4")
    ]
    for _, number, fit, times, *_, memory, _ in rows:
        assert float(fit.removesuffix(" s")) >= 0 and memory.endswith(" MB")
        assert number == "4" or times == "1.0"


@pytest.mark.parametrize("n_classes", [3, 40])
def test_every_class_has_rows_and_a_score(n_classes):
    X, y, scores = classes.make_rows(n_classes, 100)
    assert X.shape == (100, classes.N_ATTRIBUTES) and scores.shape == (100, n_classes)
    assert np.array_equal(np.unique(y), np.arange(n_classes))
