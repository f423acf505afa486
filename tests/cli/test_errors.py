"""Errors of files, models and options: one line each, and nothing left behind."""

import json
import os
import sys
from pathlib import Path

import pytest

from caltree import cli
from caltree.cli import command

from .conftest import make_visits, write


@pytest.fixture
def new(tmp_path):
    frame = make_visits(100, seed=1)
    for ending in ("csv", "parquet", "arrow", "jsonl"):
        write(frame, tmp_path / f"new.{ending}")
    return frame


def test_scores_that_lack_a_class(complaint, tmp_path):
    visits = make_visits(300)
    visits.loc[visits["zip"] == "1", "y"] = "old"
    visits["p_no"] = 1.0 - visits["p_yes"]
    write(visits, tmp_path / "s.csv")
    line = complaint("fit", "s.csv", "--out", "m.json")
    assert "(there are p_no, p_yes, but none for the class old)" in line


@pytest.mark.parametrize("arguments", [[], ["fit"], ["apply"], ["evaluate"], ["report"], ["show"]])
def test_every_command_has_help(run, arguments):
    result = run(*arguments, "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"Usage: {' '.join(['caltree', *arguments])} [OPTIONS]")
    if not arguments:
        assert "130  interrupted" in result.stdout
        assert run("demo", "--help").exit_code == run("paper", "--help").exit_code == 0


def test_without_a_command_there_is_help(run):
    result = run()
    assert result.exit_code == 2 and "Exit codes:" in result.output


HEADER = "channel,age,member,zip,p_yes"
MODELS = {
    "": "it is empty; make it with caltree fit",
    "hello": "it is not JSON: Expecting value: line 1 column 1 (char 0); make it with caltree fit",
    "[1]": "it has no format; make it with caltree fit",
    '{"format": "other"}': "its format is 'other'; make it with caltree fit",
    '{"format": "caltree.Tea"}': "this version of caltree does not know "
    "caltree.Tea; make it with caltree fit",
    '{"format": "caltree.PlattScaling", "version": 9}': "this calibrator was stored in version 9 "
    "of the format and only version 2 is known here; use the caltree that stored it or a newer one",
}


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize("content", MODELS)
def test_what_is_no_model_is_said(complaint, content, tmp_path):
    (tmp_path / "m.json").write_text(content)
    expected = f"cannot use m.json as a model: {MODELS[content]}"
    assert complaint("show", "m.json") == expected
    assert complaint("apply", "m.json", "new.csv", "--out", "o.csv") == expected


@pytest.mark.usefixtures("new")
def test_a_table_in_the_place_of_the_model_is_said(complaint, model):
    assert complaint("apply", "new.csv", model, "--out", "o.csv") == (
        "cannot use new.csv as a model: its name ends like that of a table; give a file of caltree "
        "fit"
    )


@pytest.mark.parametrize("columns", [1, {}, {"scores": "p"}, {"label": 1}, {"attributes": [1]}])
def test_malformed_columns_are_refused(complaint, stored_model, columns, tmp_path):
    stored = json.loads(stored_model)
    stored["columns"] = {**stored["columns"], **columns} if columns and columns != 1 else columns
    (tmp_path / "m.json").write_text(json.dumps(stored))
    line = complaint("show", "m.json")
    assert line.startswith("cannot use m.json as a model: the section columns of the model is malf")


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("nowhere.csv", "cannot read nowhere.csv: No such file or directory; check the path"),
        (".", "cannot read .: Is a directory; give a file"),
        ("new.doc", "cannot tell the format of new.doc: its name should end in .csv, .tsv, .parq"),
        ("empty.csv", "cannot read empty.csv: it is empty; there should be a line with the names"),
        ("empty.jsonl", "cannot read empty.jsonl: it is empty; there should be one JSON object p"),
        ("empty.parquet", "cannot read empty.parquet: Parquet file size is 0 bytes; if it is not "),
        ("cut.parquet", "cannot read cut.parquet: "),
        ("cut.arrow", "cannot read cut.arrow: "),
        ("cut.csv.gz", "cannot read cut.csv.gz: "),
        ("latin.csv", "cannot read latin.csv: it is not UTF-8 from row 1 on; convert it"),
        ("latin-header.csv", "cannot read latin-header.csv: it is not text in UTF-8; convert it, "),
        ("ragged.csv", "cannot read ragged.csv: row 2 has 4 fields, but there are 5 columns; corr"),
        ("twice.csv", "twice.csv has several columns named a; rename them"),
        (
            "other.csv",
            "other.csv lacks the columns p_yes, channel, age, member, zip, which the model takes "
            "(for other names, use --scores and --attributes); it has a, b",
        ),
        ("bad.jsonl", "cannot read bad.jsonl: line 2 is not JSON (Expecting value: line 1 column"),
        ("list.jsonl", "cannot read list.jsonl: line 1 is not a JSON object"),
        ("mixed.jsonl", "cannot read mixed.jsonl: 'a' holds values of several types (int, str) be"),
        ("new.parquet.gz", "new.parquet.gz cannot be parquet and compressed as a whole; decompr"),
    ],
)
def test_what_cannot_be_read_is_said(complaint, model, table, message, tmp_path):
    for name in ("new.doc", "empty.csv", "empty.jsonl", "empty.parquet", "new.parquet.gz"):
        (tmp_path / name).touch()
    for name in ("new.parquet", "new.arrow"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name.replace("new", "cut")).write_bytes(content[: len(content) // 2])
    write(make_visits(100), tmp_path / "whole.csv.gz")
    (tmp_path / "cut.csv.gz").write_bytes((tmp_path / "whole.csv.gz").read_bytes()[:-500])
    for name, text in {
        "latin.csv": f"{HEADER}\n\xe9,1,true,01,0.5\n",
        "latin-header.csv": "\xe9,b\n1,2\n",
        "ragged.csv": f"{HEADER}\napp,1,true,01,0.5\napp,1,true,01\n",
        "twice.csv": "a,a\n1,2\n",
        "other.csv": "a,b\n1,2\n",
        "bad.jsonl": '{"a": 1}\n?\n',
        "list.jsonl": "[1]\n",
        "mixed.jsonl": '{"a": 1}\n{"a": "x"}\n',
    }.items():
        (tmp_path / name).write_text(text, encoding="latin-1")
    assert message in complaint("apply", model, table, "--out", "o.csv")


@pytest.mark.usefixtures("new")
@pytest.mark.parametrize(
    ("out", "code", "message"),
    [
        ("nowhere/o.csv", 1, "cannot write nowhere/o.csv: No such file or directory; check the p"),
        ("new.csv/o.csv", 1, "cannot write new.csv/o.csv: Not a directory; check the path"),
        (".", 1, "cannot write .: it is a folder; give the name of a file"),
        ("o.doc", 1, "cannot tell the format of o.doc: "),
        ("new.csv", 2, "--out new.csv is the file that is read; give another name"),
        ("./link.csv", 2, "--out ./link.csv is the file that is read; give another name"),
        ("model.json", 2, "--out model.json is the file that is read; give another name"),
    ],
)
def test_what_cannot_be_written_is_said(complaint, model, out, code, message, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "new.csv")
    assert message in complaint("apply", model, "new.csv", "--out", out, code=code)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("p_yes", 1.5, "new.csv: the column 'p_yes' holds the score 1.5 in row 51; a probability"),
        ("p_yes", None, "new.csv: the column 'p_yes' holds no score in row 51; drop such rows"),
        ("member", "maybe", "'member' holds 'maybe' in row 51; it should be true or false"),
        ("age", "old", "'age' holds 'old', which is not a number, in row 51; correct it or leave"),
        ("y", "maybe", "'y' holds the label 'maybe' in row 51; the model knows no, yes; drop"),
        ("y", None, "'y' holds no label in row 51; drop the rows without one"),
    ],
)
def test_a_wrong_value_is_named_with_its_row(
    complaint, model, new, column, value, message, tmp_path
):
    new = new.astype({column: object})
    new.loc[50, column] = value
    write(new, tmp_path / "new.csv")
    assert message in complaint("evaluate", model, "new.csv")
    if column != "y":
        assert message in complaint("apply", model, "new.csv", "--out", "o.csv")


@pytest.mark.usefixtures("new")
def test_another_number_of_scores_than_in_the_fit_is_refused(complaint, model):
    line = complaint("evaluate", model, "new.csv", "--scores", "p_yes,age")
    assert line.startswith(
        "--scores names 2 column(s), but the model was fitted to 1; give as many"
    )
    line = complaint("apply", model, "new.csv", "--out", "o.csv", "--attributes", "age")
    assert line.startswith("--attributes names 1 column(s), but the model was fitted to 4; give")


@pytest.mark.usefixtures("new")
def test_a_model_without_a_label_asks_for_it(complaint, stored_model, tmp_path):
    stored = json.loads(stored_model)
    stored["columns"]["label"] = None
    (tmp_path / "m.json").write_text(json.dumps(stored))
    line = complaint("evaluate", "m.json", "new.csv")
    assert line == (
        "the model does not say which column is the label; give --label: new.csv has channel, "
        "age, member, zip, p_yes, y"
    )
    assert "new.csv lacks the column z" in complaint(
        "evaluate", "m.json", "new.csv", "--label", "z"
    )


@pytest.mark.usefixtures("new")
def test_a_terminal_gets_no_bytes_it_cannot_show(complaint, model, monkeypatch):
    monkeypatch.setattr("caltree.cli.io.targets.is_terminal", lambda: True)
    line = complaint("apply", model, "new.parquet", "--out", "-", code=2)
    assert line.startswith(
        "standard output is a terminal, which cannot show parquet; use --out FILE"
    )


@pytest.mark.usefixtures("new")
def test_what_was_there_stays_if_writing_fails(complaint, model, monkeypatch, tmp_path):
    (tmp_path / "o.csv").write_text("precious")

    def replace(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", replace)
    line = complaint("apply", model, "new.csv", "--out", "o.csv")
    assert line == (
        "cannot write o.csv: No space left on device; make room or choose another place"
    )
    assert (tmp_path / "o.csv").read_text() == "precious"


def test_a_link_stays_a_link(run, model, new, tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "o.csv").symlink_to(tmp_path / "there" / "o.csv")
    assert run("apply", model, "new.csv", "--out", "o.csv").exit_code == 0
    assert (tmp_path / "o.csv").is_symlink()
    assert os.listdir(tmp_path / "there") == ["o.csv"]


def test_an_exit_code_says_which_signal_it_was(run, monkeypatch):
    def stop(path):
        raise command.Stopped(15)

    monkeypatch.setattr("caltree.cli.models.read_model", stop)
    result = run("show", "m.json")
    assert (result.exit_code, result.stderr) == (143, "caltree: interrupted; no file was changed\n")


def test_an_interrupted_demonstration_has_the_code_of_others(run, monkeypatch):
    def compare():
        raise KeyboardInterrupt

    monkeypatch.setattr("caltree.cli.demo_data.compare", compare)
    result = run("demo", "--no-files")
    assert result.exit_code == 130 and result.stderr.endswith("caltree: interrupted\n")


def test_a_missing_pyarrow_is_named(monkeypatch, model):
    monkeypatch.setattr(sys, "argv", ["caltree", "apply", str(model), "a.csv", "--out", "b.csv"])
    for name in ("io.sources", "io.sinks", "io.convert", "model_rows", "streaming"):
        monkeypatch.delitem(sys.modules, f"caltree.cli.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        SystemExit, match=r'pyarrow is not installed; run: pip install "caltree\[cli'
    ):
        cli.main()
    assert not Path("b.csv").exists()


@pytest.mark.parametrize("arguments", [[], ["fit"], ["apply"], ["evaluate"], ["report"], ["show"]])
def test_examples_in_the_help_stand_on_lines_of_their_own(run, arguments):
    text = run(*arguments, "--help").stdout
    assert "\\b" not in text and "\b" not in text
    if "Example" in text:
        assert f"  caltree {arguments[0]} " in text.split("Example")[1].splitlines()[1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('app,1,true,01,0.5\napp,1,true,01,"0.6\nweb,2,true,01,0.5\n', "row 2 opens a quote"),
        ('"a\nb",1,true,"01\n",0.5\n\n"app,1,true,01,0.6\n', "row 2 opens a quote that is never"),
        ('app,1,true,01,"', "row 1 opens a quote that is never closed; close it: app,1,true,01,"),
    ],
)
def test_a_quote_that_is_never_closed_is_named_with_its_row(
    complaint, model, rows, message, tmp_path
):
    (tmp_path / "new.csv").write_text(f"{HEADER}\n{rows}")
    line = complaint("apply", model, "new.csv", "--out", "o.csv")
    assert line.startswith("cannot read new.csv: ") and message in line


def test_a_quote_that_is_never_closed_in_the_header_is_said(complaint, model, tmp_path):
    (tmp_path / "new.csv").write_text('channel,"age,member,zip,p_yes\napp,1,true,01,0.5\n')
    line = complaint("apply", model, "new.csv", "--out", "o.csv")
    assert "the line with the names of the columns is wrong" in line


def test_a_loop_of_links_is_no_output(complaint, model, new, tmp_path):
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    line = complaint("apply", model, "new.csv", "--out", "a.csv")
    assert line.startswith("cannot write a.csv: Too many levels of symbolic links; the links lead")
    assert (tmp_path / "a.csv").is_symlink()


@pytest.mark.parametrize("word", ["export", "SQL", "onnx"])
def test_who_looks_for_an_export_is_sent_to_python(complaint, word):
    line = complaint(word, "m.json", code=2)
    assert 'Python exports a model: caltree.load("model.json").to_sql("duckdb"), to_onnx().' in line
