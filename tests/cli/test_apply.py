"""`caltree apply`."""

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from caltree import CalibrationTree
from caltree.cli.io import sources

from ..support.marks import new_values
from .conftest import make_visits, write

ATTRIBUTES = ["channel", "age", "member", "zip"]
NEW = ["calibrated_no", "calibrated_yes"]


@pytest.fixture
def new():
    return make_visits(500, seed=1).drop(columns="y")


@pytest.fixture
def small_batches(monkeypatch):
    """Blocks and batches so small that there are many."""
    monkeypatch.setattr(sources, "_MOST_ROWS", 32)
    monkeypatch.setattr(sources, "_FEWEST_ROWS", 32)
    monkeypatch.setattr(sources, "_JSON_ROWS", 32)
    monkeypatch.setattr(sources, "_BLOCK", 700)
    monkeypatch.setattr(sources, "_BUFFER", 300)


def expected(model, frame):
    return CalibrationTree.load(model).predict_proba(frame[ATTRIBUTES], frame["p_yes"])


def read(path):
    name = str(path)
    if ".csv" in name:
        return pd.read_csv(path, dtype={"zip": str}, keep_default_na=False, na_values=[""])
    if ".jsonl" in name:
        return pd.read_json(path, lines=True, dtype={"zip": str})
    if name.endswith(".arrows"):
        return pa.ipc.open_stream(Path(path).read_bytes()).read_pandas()
    return pd.read_feather(path) if name.endswith(".arrow") else pd.read_parquet(path)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("out", ["csv", "csv.gz", "parquet", "arrow", "arrows", "jsonl"])
@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "jsonl", "jsonl.gz"])
def test_every_format_becomes_every_other(run, model, new, ending, out):
    write(new, f"new.{ending}")
    result = run("apply", model, f"new.{ending}", "--out", f"out.{out}")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"500 rows calibrated: out.{out}\n"
    found = read(f"out.{out}")
    assert found.columns.tolist() == [*new.columns, *NEW]
    np.testing.assert_allclose(found[NEW], expected(model, new), rtol=0, atol=1e-9)
    assert found["zip"].tolist() == new["zip"].tolist()
    np.testing.assert_allclose(found["age"], new["age"])
    assert found["channel"].isna().tolist() == new["channel"].isna().tolist()


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_result_does_not_depend_on_threads_or_batches(run, model, new, n_jobs):
    write(new, "new.parquet")
    assert (
        run("apply", model, "new.parquet", "--out", "o.parquet", "--n-jobs", n_jobs).exit_code == 0
    )
    assert np.array_equal(pd.read_parquet("o.parquet")[NEW], expected(model, new))


def test_other_columns_and_their_metadata_stay(run, model, new):
    table = pa.Table.from_pandas(new.assign(day=pd.Timestamp("2020-01-01"), n=1))
    table = table.append_column("tags", pa.array([["a", "b"]] * len(new)))
    pq.write_table(table, "new.parquet")
    assert run("apply", model, "new.parquet", "--out", "out.parquet").exit_code == 0
    found = pq.read_table("out.parquet")
    assert found.drop_columns(NEW).equals(pq.read_table("new.parquet"))
    assert found.schema.metadata[b"pandas"] == table.schema.metadata[b"pandas"]


def test_text_of_csv_stays_to_the_letter(run, model, new):
    new = new.assign(note=' "a", b\n', day="2020-01-01", code="007", number="1.50")
    write(new, "new.csv")
    assert run("apply", model, "new.csv", "--out", "out.csv").exit_code == 0
    before, after = (pd.read_csv(name, dtype=str) for name in ("new.csv", "out.csv"))
    pd.testing.assert_frame_equal(before, after.drop(columns=NEW))


def test_columns_may_stand_in_any_order(run, model, new):
    write(new[new.columns[::-1]], "new.csv")
    assert run("apply", model, "new.csv", "--out", "out.csv").exit_code == 0
    np.testing.assert_allclose(pd.read_csv("out.csv")[NEW], expected(model, new), atol=1e-9)


@pytest.mark.parametrize(
    ("convert", "values"),
    [
        (lambda f: f.assign(age=f["age"].astype("float32")), None),
        (lambda f: f.assign(age=f["age"].map(lambda v: "NA" if v != v else f" {v} ")), None),
        (lambda f: f.assign(member=f["member"].map({True: "TRUE", False: "false"})), None),
        (lambda f: f.assign(member=f["member"].astype(int)), None),
        (lambda f: f.astype({"channel": "category", "zip": "category"}), None),
        (lambda f: f.assign(zip="22"), lambda f: f.assign(zip=22)),
        (lambda f: f.assign(channel=None), None),
        (lambda f: f.assign(channel="never seen"), None),
    ],
    ids=["single", "spaces", "words", "0 and 1", "category", "digits", "missing", "unseen"],
)
@new_values
def test_columns_become_what_the_model_learned(run, model, new, convert, values):
    plain = convert(new)
    write(values(plain) if values else plain, "new.parquet")
    result = run("apply", model, "new.parquet", "--out", "out.parquet")
    assert result.exit_code == 0, result.output
    truth = {"TRUE": True, "false": False, 0: False, 1: True}
    plain = plain.assign(
        age=pd.to_numeric(plain["age"], errors="coerce"),
        member=[bool(truth.get(value, value)) for value in plain["member"]],
        channel=plain["channel"].astype(object),
        zip=plain["zip"].astype(object),
    )
    assert np.array_equal(pd.read_parquet("out.parquet")[NEW], expected(model, plain))


@pytest.mark.usefixtures("small_batches")
def test_a_column_that_turns_to_text_later_is_named_with_its_row(complaint, model, new, tmp_path):
    new = new.astype({"age": object})
    new.loc[400, "age"] = "old"
    write(new, tmp_path / "new.csv")
    assert complaint("apply", model, "new.csv", "--out", "out.csv") == (
        "new.csv: the column 'age' holds 'old', which is not a number, in row 401; correct it or "
        "leave it empty"
    )


@pytest.mark.usefixtures("small_batches")
def test_quoted_line_breaks_at_every_place_survive(run, model, new):
    notes = ['"', "\n", 'x"\ny', "a,b", ",\n", "", '5" wide', "\r\n"]
    new = new.assign(note=[notes[row % len(notes)] * (row % 7 + 1) for row in range(len(new))])
    write(new, "new.csv")
    assert run("apply", model, "new.csv", "--out", "out.csv").exit_code == 0
    after = pd.read_csv("out.csv", keep_default_na=False)
    assert after["note"].tolist() == new["note"].tolist()


def test_a_table_without_rows_stays_one(run, model, new):
    for ending in ("csv", "parquet", "arrow"):
        write(new.iloc[:0].astype({"age": float}), f"new.{ending}")
        result = run("apply", model, f"new.{ending}", "--out", f"out.{ending}")
        assert result.exit_code == 0, result.output
        found = read(f"out.{ending}")
        assert found.columns.tolist() == [*new.columns, *NEW] and len(found) == 0


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "arrow", "jsonl"])
def test_standard_input_is_sniffed_and_standard_output_is_alike(run, model, new, ending):
    write(new, f"new.{ending}")
    content = Path(f"new.{ending}").read_bytes()
    result = run("apply", model, "-", "--out", "-", "--quiet", stdin=content)
    assert (result.exit_code, result.stderr) == (0, "")
    ending = {"arrow": "arrows", "csv.gz": "csv"}.get(ending, ending)
    Path(f"out.{ending}").write_bytes(result.stdout_bytes)
    np.testing.assert_allclose(read(f"out.{ending}")[NEW], expected(model, new), atol=1e-9)


def test_an_arrow_stream_of_another_library_is_read(run, model, new):
    pl.from_pandas(new).write_ipc_stream("new.arrows")
    assert run("apply", model, "new.arrows", "--out", "out.parquet").exit_code == 0
    assert np.array_equal(pd.read_parquet("out.parquet")[NEW], expected(model, new))


def test_the_format_may_be_said(run, model, new):
    write(new, "new.csv")
    Path("new.csv").rename("new.txt")
    given = ["--format", "csv", "--out", "out.dat", "--out-format", "jsonl"]
    assert run("apply", model, "new.txt", *given).exit_code == 0
    assert json.loads(Path("out.dat").read_text().splitlines()[0])["zip"] == new["zip"][0]


def test_the_names_of_the_new_columns(run, complaint, model, new, tmp_path):
    write(new, tmp_path / "new.csv")
    assert "has a column 'p_yes' already; choose other names with --prefix" in complaint(
        "apply", model, "new.csv", "--out", "out.csv", "--prefix", "p_"
    )
    assert run("apply", model, "new.csv", "--out", "out.csv", "--prefix", "q_").exit_code == 0
    assert pd.read_csv("out.csv").columns[-2:].tolist() == ["q_no", "q_yes"]


@pytest.mark.parametrize("named", [True, False])
def test_a_model_that_the_library_saved_needs_options(run, complaint, new, named, tmp_path):
    frame = make_visits(400)
    X = frame[ATTRIBUTES] if named else frame[ATTRIBUTES].to_numpy(dtype=object)
    tree = CalibrationTree().fit(X, frame["y"], frame["p_yes"].to_numpy())
    tree.save(tmp_path / "saved.json")
    write(new, tmp_path / "new.csv")
    line = complaint("apply", "saved.json", "new.csv", "--out", "out.csv")
    assert line == "saved.json does not say which columns are the scores; give --scores"
    options = ["--scores", "p_yes"]
    if not named:
        line = complaint("apply", "saved.json", "new.csv", "--out", "out.csv", *options)
        assert line.endswith("are the attributes; give --attributes, 4 names separated by commas")
        options += ["--attributes", ",".join(ATTRIBUTES)]
    result = run("apply", "saved.json", "new.csv", "--out", "out.csv", *options)
    assert result.exit_code == 0, result.output
    X = new[ATTRIBUTES] if named else new[ATTRIBUTES].to_numpy(dtype=object)
    wanted = tree.predict_proba(X, new["p_yes"])
    np.testing.assert_allclose(pd.read_csv("out.csv")[NEW], wanted, atol=1e-9)


def test_numbers_without_names_need_no_objects(run, new, tmp_path):
    rng = np.random.default_rng(0)
    X, scores = rng.normal(size=(300, 2)), rng.random(300)
    y = rng.random(300) < np.where(X[:, 0] > 0, scores, 1 - scores)
    tree = CalibrationTree().fit(X, y, scores)
    tree.save("saved.json")
    write(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "s": scores}), "new.csv")
    given = ["--scores", "s", "--attributes", "a,b"]
    assert run("apply", "saved.json", "new.csv", "--out", "out.csv", *given).exit_code == 0
    found = pd.read_csv("out.csv")[["calibrated_False", "calibrated_True"]]
    np.testing.assert_allclose(found, tree.predict_proba(X, scores), atol=1e-9)


def test_json_lines_may_change_their_types_and_members(run, complaint, model, new, monkeypatch):
    monkeypatch.setattr(sources, "_JSON_ROWS", 2)
    rows = json.loads(new.head(6).to_json(orient="records"))
    rows[0]["n"], rows[4]["n"], rows[5]["more"] = 1, "text", [1, 2]
    Path("new.jsonl").write_text("".join(json.dumps(row) + "\n\n" for row in rows))
    assert run("apply", model, "new.jsonl", "--out", "out.jsonl").exit_code == 0
    found = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row.get("n") for row in found] == [1, None, None, None, "text", None]
    assert found[5]["more"] == [1, 2]
    line = complaint("apply", model, "new.jsonl", "--out", "out.parquet")
    assert "the column 'more' appears in later rows only; give it to the first row too" in line
    Path("new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:5]))
    line = complaint("apply", model, "new.jsonl", "--out", "out.parquet")
    assert "the column 'n' is int64 in the first rows and string later; make them" in line


def test_csv_cannot_hold_lists(complaint, model, new, tmp_path):
    table = pa.Table.from_pandas(new).append_column("tags", pa.array([["a"]] * len(new)))
    pq.write_table(table, tmp_path / "new.parquet")
    line = complaint("apply", model, "new.parquet", "--out", "out.csv")
    assert line.startswith("CSV cannot hold the column 'tags' of type list<")


def test_a_compressed_file_is_the_same_every_time(run, model, new):
    write(new, "new.csv")
    for name in ("a.csv.gz", "b.csv.gz"):
        assert run("apply", model, "new.csv", "--out", name).exit_code == 0
    first, second = (Path(name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert first == second and gzip.decompress(first).startswith(b"channel,age,")


def test_numbers_that_are_all_different_get_no_dictionary(run, model, new):
    write(new.assign(few=[0.5, 1.5] * 250), "new.parquet")
    assert run("apply", model, "new.parquet", "--out", "out.parquet").exit_code == 0
    group = pq.ParquetFile("out.parquet").metadata.row_group(0)
    columns = [group.column(j) for j in range(group.num_columns)]
    has = {column.path_in_schema: column.has_dictionary_page for column in columns}
    assert has["few"] and has["channel"] and not has["p_yes"] and not has["calibrated_yes"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl", "arrow"])
@pytest.mark.parametrize("out", ["csv", "parquet", "jsonl"])
def test_bad_rows_may_pass_as_null(run, complaint, model, new, ending, out, tmp_path):
    write(new, tmp_path / f"right.{ending}")
    assert run("apply", model, f"right.{ending}", "--out", f"right-{out}.{out}").exit_code == 0
    new.loc[[4, 9], "p_yes"] = [np.nan, 1.5]
    write(new, tmp_path / f"wrong.{ending}")
    line = complaint("apply", model, f"wrong.{ending}", "--out", f"o.{out}")
    assert (
        "holds no score in row 5; drop such rows or fill in a finite number; caltree appl" in line
    )
    options = ["--on-bad-row", "null"]
    result = run("apply", model, f"wrong.{ending}", "--out", f"o.{out}", *options)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        f"caltree: warning: 2 of {len(new):,} rows have no probabilities: their score is missing, "
        "infinite or not a probability; the first is row 5\n"
        f"{len(new) - 2:,} rows calibrated: o.{out}\n"
    )
    found, right = read(f"o.{out}"), read(f"right-{out}.{out}")
    for name in ("calibrated_no", "calibrated_yes"):
        assert found[name].isna().to_numpy().nonzero()[0].tolist() == [4, 9]
        assert found[name].drop([4, 9]).tolist() == right[name].drop([4, 9]).tolist()
    if out == "parquet":
        assert pq.read_table(f"o.{out}")["calibrated_yes"].null_count == 2
