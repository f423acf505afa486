"""The same table in CSV, Parquet and JSON lines is read alike, whatever is between the fields."""

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from .conftest import make_visits, write


def make_table(n_rows=600):
    """Columns of every type that files may have, some values missing."""
    table = make_visits(n_rows)
    rng = np.random.default_rng(5)
    table["p_yes"] = table["p_yes"].round(6)
    table["age"] = table["age"].astype("Int64")
    table["visits"] = rng.integers(0, 2, n_rows)
    table["plan"] = rng.choice([3, 5, 12], n_rows)
    table["height"] = rng.choice([1.5, 2.5, np.nan], n_rows)
    table["opened"] = 1_700_000_000_000_000_001 + rng.integers(0, 5, n_rows) * 10**15
    table["truth"] = np.where(rng.random(n_rows) < 0.1, None, table["member"])
    table["empty"] = pd.Series([None] * n_rows, dtype=object)
    return table


def model_of(run, name, *options):
    result = run("fit", name, "--out", "m.json", "--quiet", *options)
    assert result.exit_code == 0, result.stderr
    found = json.loads(Path("m.json").read_text())
    fitted = ("classes", "fingerprint", "score_type", "chosen", "selection", "model", "columns")
    return {name: found[name] for name in fitted}


@pytest.mark.parametrize(
    "options", [["--exclude", "zip"], ["--categorical", "plan,height,zip,visits"]]
)
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "arrow"])
def test_every_format_gives_the_same_model(run, ending, options):
    table = make_table()
    write(table, "scored.parquet")
    expected = model_of(run, "scored.parquet", *options)
    write(table, f"scored.{ending}")
    assert model_of(run, f"scored.{ending}", *options) == expected


def test_an_index_of_pandas_is_no_attribute(run):
    table = make_table()
    table.index = np.repeat(np.arange(len(table) // 2), 2)
    table.to_parquet("scored.parquet")
    assert "__index_level_0__" in pq.read_schema("scored.parquet").names
    model = model_of(run, "scored.parquet")
    assert "__index_level_0__" not in model["columns"]["attributes"]
    model = model_of(run, "scored.parquet", "--attributes", "age,__index_level_0__")
    assert model["columns"]["attributes"] == ["age", "__index_level_0__"]


INDEX_NOTE = (
    "Leaving out __index_level_0__, the index of a pandas table in scored.parquet; to keep it, "
    "name all attributes in --attributes.\n"
)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), True),
        (("--quiet",), False),
        (("--exclude", "__index_level_0__"), False),
        (("--attributes", "age,__index_level_0__"), False),
        (("--groups", "__index_level_0__"), False),
        (("--calibrator", "platt"), False),
    ],
)
def test_an_index_of_pandas_is_left_out_with_a_note(run, arguments, told):
    make_table().sample(frac=1.0, random_state=0).to_parquet("scored.parquet")
    result = run("fit", "scored.parquet", "--out", "m.json", *arguments)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count(INDEX_NOTE) == told
    if arguments == ():
        result = run("audit", "scored.parquet")
        assert result.stderr == INDEX_NOTE


@pytest.mark.parametrize(
    ("command", "option"),
    [(("fit", "--out", "m.json"), "--categorical"), (("audit",), "--by")],
)
def test_an_index_of_pandas_that_is_named_as_an_attribute(run, command, option):
    make_table().sample(frac=1.0, random_state=0).to_parquet("scored.parquet")
    result = run(*command, "scored.parquet", "--quiet", option, "__index_level_0__")
    assert result.exit_code == 1
    assert result.stderr == (
        f"caltree: error: {option} names __index_level_0__, the index of a pandas table, which is "
        "an attribute only if --attributes names it; name all attributes there\n"
    )


def test_what_apply_wrote_is_no_attribute(run):
    make_visits().to_csv("scored.csv", index=False)
    assert run("fit", "scored.csv", "--out", "m.json", "--intervals").exit_code == 0
    assert (
        run("apply", "m.json", "scored.csv", "--out", "n.csv", "--interval", "0.9").exit_code == 0
    )
    written = [f"calibrated_{c}{end}" for c in ("no", "yes") for end in ("", "_lower", "_upper")]
    assert set(pd.read_csv("n.csv")) - set(pd.read_csv("scored.csv")) == set(written)
    result = run("fit", "n.csv", "--out", "again.json")
    note = result.stderr.splitlines()[0]
    assert note.startswith("Leaving out calibrated_no, ")
    assert note.endswith(
        "caltree apply wrote in n.csv; to keep them, name all attributes in --attributes."
    )
    columns = [json.loads(Path(name).read_text())["columns"] for name in ("m.json", "again.json")]
    assert columns[0] == columns[1]
    kept = ("--attributes", "age,calibrated_no")
    assert "Leaving out" not in run("fit", "n.csv", "--out", "again.json", *kept).stderr


def test_a_score_of_a_class_without_rows_is_said_to_be_an_attribute(run):
    visits = make_visits().drop(columns="p_yes")
    visits["p_no"], visits["p_yes"], visits["p_maybe"] = 0.6, 0.3, 0.1
    visits.to_csv("scored.csv", index=False)
    scores = ("--scores", "p_no,p_yes")
    note = (
        "p_maybe is named like the scores, but no row has that class, so it is among the "
        "attributes; leave it out with --exclude.\n"
    )
    assert note in run("fit", "scored.csv", "--out", "m.json", *scores).stderr
    calm = (*scores, "--exclude", "p_maybe")
    assert "p_maybe" not in run("fit", "scored.csv", "--out", "m.json", *calm).stderr
    one = ("--scores", "p_yes")  # others may stand for anything
    assert "named like" not in run("fit", "scored.csv", "--out", "m.json", *one).stderr


@pytest.mark.parametrize("labels", [["no", "yes"], [0, 1], [False, True], [0.0, 1.0]])
def test_labels_are_the_same_classes(run, labels):
    table = make_visits(300)[["channel", "p_yes", "y"]].round({"p_yes": 6})
    table["y"] = [labels[int(label == "yes")] for label in table["y"]]
    options = ["--scores", "p_yes", "--label", "y"]
    models = []
    for ending in ("parquet", "csv", "jsonl"):
        write(table, f"s.{ending}")
        models.append(model_of(run, f"s.{ending}", *options))
        result = run("evaluate", "m.json", f"s.{ending}", "--json")
        assert json.loads(result.stdout)["rows"] == 300
    assert models[0] == models[1] == models[2]


@pytest.mark.parametrize("fitted", ["csv", "parquet"])
@pytest.mark.parametrize("as_numbers", [False, True])
def test_truth_values_may_be_written_as_0_and_1(run, fitted, as_numbers):
    table = make_visits(600)[["channel", "member", "p_yes", "y"]].round({"p_yes": 6})
    kinds = [table["member"], table["member"].astype(int), table["member"].astype(float)]
    write(table.assign(member=kinds[as_numbers]), f"s.{fitted}")
    model_of(run, f"s.{fitted}")
    found = []
    for member in kinds:
        for ending in ("csv", "parquet"):
            write(table.assign(member=member), f"new.{ending}")
            assert run("apply", "m.json", f"new.{ending}", "--out", "o.csv").exit_code == 0
            found.append(pd.read_csv("o.csv")["calibrated_yes"].tolist())
    assert all(values == found[0] for values in found)


DATES = {
    "dates": datetime.date(2024, 1, 31),
    "timestamps": pd.Timestamp("2024-01-31 12:30:05.25"),
    "with a zone": pd.Timestamp("2024-01-31 12:30", tz="UTC"),
    "times": datetime.time(12, 30, 5),
    "text": "2024-01-31",
    "German": "31.01.2024",
    "American": "1/31/2024 12:30",
}


@pytest.mark.parametrize("kind", DATES)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates_are_no_attributes(run, complaint, kind, ending, tmp_path):
    table = make_visits(100).drop(columns="zip")
    table["day"] = DATES[kind]
    table.loc[3, "day"] = None
    write(table, tmp_path / f"s.{ending}")
    line = complaint("fit", f"s.{ending}", "--out", "m.json")
    assert line.startswith(f"s.{ending}: the column 'day' ")
    assert "; leave it out with --exclude, or turn it into numbers" in line
    assert run("fit", f"s.{ending}", "--out", "m.json", "--exclude", "day").exit_code == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_dates_may_be_categories(run, ending):
    table = make_visits(300)[["p_yes", "y"]].round({"p_yes": 6})
    table["month"] = np.where(np.arange(300) % 3, datetime.date(2024, 1, 1), None)
    write(table, f"s.{ending}")
    found = model_of(run, f"s.{ending}", "--categorical", "month")
    assert found["model"]["attributes"]["columns"][0]["categories"] == ["2024-01-01"]
    result = run("apply", "m.json", f"s.{ending}", "--out", "o.csv")
    assert result.exit_code == 0, result.stderr


def test_numbers_with_a_decimal_comma_are_not_taken_for_words(complaint, tmp_path):
    table = make_visits(100).drop(columns="zip").assign(height="1,5")
    table.loc[:50, "height"] = "2"
    write(table, tmp_path / "s.csv")
    line = complaint("fit", "s.csv", "--out", "m.json")
    assert (
        "'height' holds numbers with a comma, such as '1,5'; write them with a decimal po" in line
    )


# What stands between fields


def write_with(table, path, delimiter):
    table.to_csv(path, index=False, sep=delimiter)


@pytest.mark.parametrize(
    ("delimiter", "word"), [(";", ";"), ("\t", "tab"), ("\t", r"\t"), ("|", "|")]
)
def test_other_delimiters_can_be_had(run, complaint, delimiter, word, tmp_path):
    table = make_visits(300).round({"p_yes": 6})
    table.loc[5, "channel"] = f'w"e{delimiter}b\n,'
    table["note, if any"] = "a, b"
    write_with(table, tmp_path / "s.csv", delimiter)
    line = complaint("fit", "s.csv", "--out", "m.json")
    shown = "tab" if delimiter == "\t" else f"'{delimiter}'"
    assert line == (
        "cannot read s.csv: its first line has 2 name(s) if ',' separates them, and 7 if "
        f"{shown} does; use --delimiter {shown}, or ',' if that is right"
    )
    write_with(table, tmp_path / "comma.csv", ",")
    expected = model_of(run, "comma.csv", "--categorical", "zip")
    found = model_of(run, "s.csv", "--categorical", "zip", "--delimiter", word)
    assert found == expected
    assert run("evaluate", "m.json", "s.csv", "--delimiter", word).exit_code == 0
    given = ["s.csv", "--delimiter", word]
    assert run("apply", "m.json", *given, "--out", "o.csv").exit_code == 0
    written = pd.read_csv("o.csv", sep=delimiter)
    assert written["channel"].tolist()[5] == table["channel"][5]
    assert run("apply", "m.json", "comma.csv", "--out", "c.csv").exit_code == 0
    pd.testing.assert_frame_equal(written, pd.read_csv("c.csv"))
    assert run("apply", "m.json", *given, "--out", "-").stdout == Path("o.csv").read_text()


def test_the_ending_tsv_says_that_there_are_tabs(run, complaint, tmp_path):
    table = make_visits(300).drop(columns="zip")
    write_with(table, tmp_path / "s.tsv", "\t")
    assert run("fit", "s.tsv", "--out", "m.json").exit_code == 0
    assert run("apply", "m.json", "s.tsv", "--out", "o.tsv").exit_code == 0
    assert len(pd.read_csv("o.tsv", sep="\t").columns) == len(table.columns) + 2
    write_with(table, tmp_path / "s.tsv", ",")
    line = complaint("fit", "s.tsv", "--out", "other.json")
    assert line.endswith("; use --delimiter ',', or tab if that is right")


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "é"])
def test_a_delimiter_is_one_character(complaint, delimiter):
    line = complaint("fit", "s.csv", "--out", "m.json", "--delimiter", delimiter, code=2)
    assert "is not a delimiter; give one character, such as ';', or tab" in line


def test_only_csv_has_a_delimiter(complaint, tmp_path):
    write(make_visits(100), tmp_path / "s.parquet")
    line = complaint("fit", "s.parquet", "--out", "m.json", "--delimiter", ";", code=2)
    assert line.startswith("--delimiter is for CSV, but s.parquet is parquet; leave it out")


def test_a_single_column_may_hold_anything_if_the_delimiter_is_given(complaint, tmp_path):
    (tmp_path / "s.csv").write_text("a;b\n1\n")
    line = complaint("fit", "s.csv", "--out", "m.json", "--delimiter", ",")
    assert line.startswith("cannot tell which column of s.csv is the label")
