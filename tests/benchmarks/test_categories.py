"""The benchmark of many categories: a row for each calibrator, made-up data and census files."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import categories

ONCE = ("--seeds", "1", "--trees", "2", "--rows", "300")


@pytest.fixture
def table(monkeypatch, capsys):
    """Run the command on few rows; returns the cells of its table."""
    monkeypatch.setattr(categories, "TEST_ROWS", 200)
    monkeypatch.setattr(categories, "TRAINED_ROWS", 200)

    def table(*given):
        categories.main([*ONCE, *given])
        lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]

    return table


def test_made_up_categories(table):
    rows = table("--codes", "10")
    assert [row[:3] for row in rows] == [
        [calibrator, f"{effect}, 10 codes", "300"]
        for effect in ("random", "ordered", "useless")
        for calibrator in ("tree", "forest")
    ]
    for *_, none, numbers, found, to_numbers, to_none in rows:
        for other, percent in ((numbers, to_numbers), (none, to_none)):
            expected = 100 * (float(found) / float(other) - 1)
            assert float(percent.removesuffix(" %")) == pytest.approx(expected, abs=0.05)


def test_the_same_problem_each_time():
    one, other = (categories.make_up("random", 20, 100, 3) for _ in range(2))
    assert one.X.equals(other.X) and np.array_equal(one.y, other.y)


@pytest.mark.filterwarnings("ignore:.*that training did not have")
def test_codes_of_the_census(table, tmp_path):
    rng = np.random.default_rng(0)
    names = ["RELP", "COW", "SCHL", "JWMNP", "WKHP", "AGEP", "SEX", "PINCP"]
    for part in ("validation", "test"):
        rows = pd.DataFrame({name: rng.integers(0, 4, 600) for name in names})
        rows.assign(MIG=rng.integers(0, 2, 600)).to_parquet(
            tmp_path / f"ACSMobility.{part}.parquet"
        )
    codes = [row[1] for row in table("--data-dir", str(tmp_path))]
    assert codes[::2] == codes[1::2]
    assert codes[::2] == ["RELP, COW, SCHL, JWMNP, WKHP", "AGEP x RELP", "WKHP x COW, AGEP x SCHL"]


def test_pairs_are_numbered_in_their_order():
    rows = pd.DataFrame({"a": [2, 1, 1, 2], "b": [0, 5, 3, 0]})
    assert categories.codes_of(rows, "a*b").tolist() == [2, 1, 0, 2]
    assert categories.codes_of(rows, "b").tolist() == [0, 2, 1, 0]
