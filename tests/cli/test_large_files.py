"""Files larger than memory give the models of files that are read into memory."""

import json
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from caltree.cli import large_files
from caltree.cli.fit import LARGE_FILES
from caltree.cli.io import sources

from .conftest import make_visits, write

HIST = ("--param", "tree_method=hist")
N_ROWS = 900


@pytest.fixture
def small_chunks(monkeypatch):
    """Every file of a type is large, and is read a few rows at a time."""
    monkeypatch.setattr(large_files, "MOST_VALUES", 100)
    monkeypatch.setattr(sources, "_rows_of_batch", lambda n_columns: 70)


def fit(run, table, *options):
    """The model, without the time it was made, and what was said."""
    result = run("fit", str(table), "--out", "model.json", *options)
    assert result.exit_code == 0, result.stderr
    with open("model.json") as file:
        model = json.load(file)
    model.pop("made")
    return model, result.stderr


def weighted_visits():
    visits = make_visits(N_ROWS)
    visits["w"] = np.random.default_rng(1).integers(0, 3, N_ROWS).astype(float)
    visits.loc[140:209, "w"] = 0.0  # all rows of a chunk
    return visits


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--weight", "w", "--scoring", "log_loss", "--random-state", "3"),
        ("--categorical", "age", "--param", "cv=2"),
        ("--positive", "no"),
    ],
)
def test_the_model_is_that_of_all_rows_in_memory(run, tmp_path, small_chunks, ending, options):
    table = write(weighted_visits(), tmp_path / f"visits.{ending}")
    exclude = () if "w" in options else ("--exclude", "w")
    options = (*HIST, *exclude, *options)
    with patch.object(large_files, "MOST_VALUES", 10**9):
        expected, said = fit(run, table, *options)
    assert "in chunks" not in said
    found, said = fit(run, table, *options)
    assert "Reading" in said
    assert "in chunks" in said
    assert found == expected


def test_rows_held_out_are_the_same(run, tmp_path, small_chunks):
    table = write(make_visits(N_ROWS), tmp_path / "visits.parquet")
    options = (*HIST, "--holdout", "0.3", "--report", "report.html")
    with patch.object(large_files, "MOST_VALUES", 10**9):
        expected, about_all = fit(run, table, *options)
    found, about_chunks = fit(run, table, *options)
    assert found == expected
    first, _, rest = about_chunks.partition("\n")
    assert first.startswith("Reading ")
    assert rest == about_all


def test_a_tree_of_few_rows_is_exact_as_ever(run, tmp_path, small_chunks):
    table = write(make_visits(N_ROWS), tmp_path / "visits.parquet")
    with patch.object(large_files, "MOST_VALUES", 10**9):
        expected, _ = fit(run, table)
    found, said = fit(run, table)
    assert found == expected
    assert "a tree of so few rows" in said
    assert "needs all rows" in said


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--calibrator", "forest", "--param", "n_estimators=5"), "--calibrator forest"),
        ((*HIST, "--groups", "zip", "--param", "cv=2", "--holdout", "0.3"), "--groups"),
    ],
)
def test_what_needs_memory_is_said_aloud(run, tmp_path, small_chunks, options, reason):
    table = write(make_visits(N_ROWS), tmp_path / "visits.parquet")
    with patch.object(large_files, "MOST_VALUES", 10**9):
        expected, quiet = fit(run, table, *options)
    found, said = fit(run, table, *options)
    assert found == expected
    assert f"where {reason} needs all rows" in said
    assert "warning" not in quiet


def test_global_calibrators_read_scores_and_labels_alone(run, tmp_path, monkeypatch):
    """Of a wide file they take little: nothing is to be said."""
    table = write(make_visits(N_ROWS), tmp_path / "visits.parquet")
    expected, _ = fit(run, table, "--calibrator", "platt")
    monkeypatch.setattr(large_files, "MOST_VALUES", 3 * N_ROWS)
    read = []
    open_parquet = sources._parquet

    def watch(stream, stack, columns):
        read.append(columns)
        return open_parquet(stream, stack, columns)

    monkeypatch.setattr(sources, "_parquet", watch)
    found, said = fit(run, table, "--calibrator", "platt")
    assert found == expected
    assert "warning" not in said
    assert read == [None, ["y"], ["p_yes", "y"]]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_files_without_types_are_read_into_memory(run, tmp_path, small_chunks, ending):
    table = write(make_visits(N_ROWS), tmp_path / f"visits.{ending}")
    _, said = fit(run, table, *HIST)
    assert "in chunks" not in said


def test_errors_name_the_row_of_the_file(run, tmp_path, small_chunks):
    visits = make_visits(N_ROWS)
    visits.loc[300, "age"] = np.inf
    table = write(visits, tmp_path / "visits.parquet")
    result = run("fit", str(table), "--out", "model.json", *HIST)
    assert result.exit_code == 1
    assert "the column 'age' holds infinity in row 301" in result.stderr
    visits.loc[500, "p_yes"] = np.nan
    write(visits.assign(age=1.0), table)
    result = run("fit", str(table), "--out", "model.json", *HIST)
    assert "the column 'p_yes' holds no score in row 501" in result.stderr


def test_temporary_files_are_removed(run, tmp_path, small_chunks, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    table = write(make_visits(N_ROWS), tmp_path / "visits.parquet")
    fit(run, table, *HIST)
    assert list(folder.iterdir()) == []


def test_categories_of_any_chunk(run, tmp_path, small_chunks):
    """Row groups of their own dictionaries, and classes that come late."""
    visits = make_visits(N_ROWS).sort_values("y", kind="stable").reset_index(drop=True)
    visits["channel"] = np.where(visits.index < 300, "late", visits["channel"])
    table = pa.Table.from_pandas(visits, preserve_index=False)
    dictionary = table.column("channel").dictionary_encode()
    table = table.set_column(0, "channel", dictionary)
    pa.parquet.write_table(table, tmp_path / "visits.parquet", row_group_size=130)
    with patch.object(large_files, "MOST_VALUES", 10**9):
        expected, _ = fit(run, tmp_path / "visits.parquet", *HIST)
    found, _ = fit(run, tmp_path / "visits.parquet", *HIST)
    assert found == expected


@pytest.mark.parametrize("ending", ["parquet", "csv"])
@pytest.mark.parametrize("kind", ["tree", "forest", "platt"])
def test_a_report_in_parts_is_that_of_all_rows(run, tmp_path, monkeypatch, ending, kind):
    visits = weighted_visits()
    table = write(visits, tmp_path / f"visits.{ending}")
    params = ("--param", "n_estimators=5") if kind == "forest" else ()
    fit(run, table, "--calibrator", kind, "--weight", "w", *params)
    options = ("--by", "zone", "--by", "channel", "--quiet")
    table = write(visits.assign(zone=np.arange(len(visits)) % 3), table)
    pages = []
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    for n_rows in (10**6, 70):
        monkeypatch.setattr(sources, "_rows_of_batch", lambda n_columns, n=n_rows: n)
        result = run("report", "model.json", str(table), "--out", "page.html", *options)
        assert result.exit_code == 0, result.stderr
        pages.append((tmp_path / "page.html").read_text())
    assert pages[0] == pages[1]


def test_a_report_needs_rows_that_count(run, tmp_path):
    visits = weighted_visits()
    fit(run, write(visits, tmp_path / "visits.parquet"), "--weight", "w")
    nothing = write(visits.assign(w=0.0), tmp_path / "nothing.parquet")
    result = run("report", "model.json", str(nothing), "--out", "page.html")
    assert result.exit_code == 1
    assert "all rows have weight 0" in result.stderr


def test_the_help_says_what_is_large():
    assert f"{large_files.MOST_VALUES:,} values" in LARGE_FILES


@pytest.mark.parametrize("holdout", ["0", "0.2"])
def test_a_copy_of_the_label_is_noticed_in_chunks(run, tmp_path, small_chunks, holdout):
    visits = make_visits(N_ROWS)
    visits["left"] = visits["y"] == "yes"
    options = (*HIST, "--holdout", holdout)
    words = "caltree: warning: attribute 'left' has one value for each class"
    _, said = fit(run, write(visits, tmp_path / "visits.parquet"), *options)
    assert "in chunks" in said
    assert said.count(words) == 1
    visits.loc[visits.index[-3:], "left"] ^= True
    _, said = fit(run, write(visits, tmp_path / "visits.parquet"), *options)
    assert words not in said
