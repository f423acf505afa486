"""Tables as Markdown, as LaTeX and as CSV."""

import csv
import io

import pandas as pd
import pytest

from caltree.paper.render import Table, comma_separated, is_numeric, latex, markdown, text
from caltree.paper.store import Store
from caltree.paper.summary import all_tables

TABLE = Table(
    "Table 7: a & b",
    ["data set", "rows", "RMSE", "", "p"],
    [["kr-vs-kp", 3196, 1 / 3, "●", "<0.00001"], ["a|b", None, 0.5, "○", ""]],
    "50% of {it}",
)


@pytest.mark.parametrize(
    ("cell", "shown"), [(None, ""), (0.12345, "0.123"), (2, "2"), ("x", "x"), (0.0, "0.000")]
)
def test_a_cell_as_it_is_shown(cell, shown):
    assert text(cell) == shown


def test_a_column_is_numeric_if_it_has_numbers_and_no_text():
    table = Table("", ["a", "b", "c", "d"], [[1, "x", None, None], [None, 2.0, 0.5, None]])
    assert [is_numeric(table, column) for column in range(4)] == [True, False, True, False]


def test_markdown():
    assert markdown(TABLE) == (
        "**Table 7: a & b**\n"
        "\n"
        "| data set | rows | RMSE |  | p |\n"
        "| --- | ---: | ---: | --- | --- |\n"
        "| kr-vs-kp | 3196 | 0.333 | ● | <0.00001 |\n"
        "| a\\|b |  | 0.500 | ○ |  |\n"
        "\n"
        "50% of {it}\n"
    )


def test_markdown_without_rows_and_note():
    assert markdown(Table("T", ["a"], [])) == "**T**\n\n| a |\n| --- |\n"


def test_latex():
    assert latex(TABLE) == "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            r"\caption{Table 7: a \& b}",
            r"\begin{tabular}{lrrll}",
            r"\toprule",
            r"data set & rows & RMSE &  & p \\",
            r"\midrule",
            r"kr-vs-kp & 3196 & 0.333 & $\bullet$ & \textless{}0.00001 \\",
            r"a|b &  & 0.500 & $\circ$ &  \\",
            r"\bottomrule",
            r"\end{tabular}",
            r"\par 50\% of \{it\}",
            r"\end{table}",
            "",
        ]
    )
    assert r"\par" not in latex(Table("T", ["a"], []))


def test_latex_takes_nothing_for_a_command():
    special = Table("T", ["h"], [[r"[a] \b {c} $d_1^2 #~%&"]])
    row = latex(special).splitlines()[7]
    expected = r"{[}a] \textbackslash{}b \{c\} \$d\_1\textasciicircum{}2 \#\textasciitilde{}\%\&"
    assert row == expected + r" \\"


def test_csv_keeps_every_digit():
    written = comma_separated(TABLE)
    header, *rows = csv.reader(io.StringIO(written))
    assert header == ["data set", "rows", "RMSE", "RMSE mark", "p"]
    assert rows == [
        ["kr-vs-kp", "3196", "0.3333333333333333", "●", "<0.00001"],
        ["a|b", "", "0.5", "○", ""],
    ]
    frame = pd.read_csv(io.StringIO(written))
    assert frame["RMSE"].tolist() == [1 / 3, 0.5]
    assert frame["rows"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (
            ["data set", "PCT", "paper", "PS", "", "paper", ""],
            ["data set", "PCT", "PCT paper", "PS", "PS mark", "PS paper", "PS paper mark"],
        ),
        (["rows", "paper", "classes", "paper"], ["rows", "rows paper", "classes", "classes paper"]),
        (["a", "a", "a"], ["a", "a again", "a again again"]),
        (["", ""], ["mark", "mark mark"]),
    ],
)
def test_csv_has_a_name_for_every_column(header, names):
    assert comma_separated(Table("", header, [])).splitlines() == [",".join(names)]


def test_all_tables_can_be_written_and_read(tmp_path):
    tables = all_tables(Store(tmp_path / "results.sqlite", {"folds": "10"}))
    for table in tables.values():
        frame = pd.read_csv(io.StringIO(comma_separated(table)))
        assert frame.shape == (len(table.rows), len(table.header))
        assert len(set(frame.columns)) == len(table.header)
        lines = markdown(table).splitlines()
        assert {line.count("|") for line in lines if line.startswith("|")} == {
            len(table.header) + 1
        }
        assert latex(table).count(r" \\") == len(table.rows) + 1
