"""Tables of text and numbers: as Markdown, as LaTeX and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Cell: TypeAlias = str | int | float | None

_LATEX = {"●": r"$\bullet$", "○": r"$\circ$", "<": r"\textless{}", ">": r"\textgreater{}"}
_LATEX |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
_LATEX |= {character: "\\" + character for character in "&%$#_{}"}
_LATEX |= {"[": "{[}"}  # at the beginning of a row it would belong to the line break before it


@dataclass(frozen=True)
class Table:
    """A title, a header, rows as long as the header, and a note; None is an empty cell."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def text(cell: Cell) -> str:
    """A cell as it is shown."""
    if cell is None:
        return ""
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)


def p_value(value: float) -> str:
    """A p-value with five decimals, as the paper prints them."""
    return "<0.00001" if value < 1e-5 else f"{value:.5f}"


def is_numeric(table: Table, column: int) -> bool:
    """Whether a column holds nothing but numbers and gaps."""
    cells = [row[column] for row in table.rows if row[column] is not None]
    return bool(cells) and all(isinstance(cell, int | float) for cell in cells)


def markdown(table: Table) -> str:
    """The table in GitHub's Markdown."""
    columns = range(len(table.header))
    rule = ["---:" if is_numeric(table, column) else "---" for column in columns]
    lines = [f"**{table.title}**", "", _pipes(table.header), _pipes(rule)]
    lines += [_pipes([text(cell) for cell in row]) for row in table.rows]
    return "\n".join([*lines, *(["", table.note] if table.note else []), ""])


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def latex(table: Table) -> str:
    """The table in LaTeX, with the rules of the package booktabs."""
    columns = range(len(table.header))
    alignment = "".join("r" if is_numeric(table, column) else "l" for column in columns)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_escape(table.title)}}}"]
    lines += [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", _ampersands(table.header)]
    lines += [r"\midrule", *(_ampersands([text(cell) for cell in row]) for row in table.rows)]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par {_escape(table.note)}"] if table.note else []
    return "\n".join([*lines, r"\end{table}", ""])


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(map(_escape, cells)) + r" \\"


def _escape(value: str) -> str:
    return "".join(_LATEX.get(character, character) for character in value)


def comma_separated(table: Table) -> str:
    """The table as CSV, every digit of the numbers kept."""
    output = io.StringIO()
    writer = csv.writer(output, lineterminator="\n")
    writer.writerow(_distinct_names(table.header))
    writer.writerows([["" if cell is None else cell for cell in row] for row in table.rows])
    return output.getvalue()


def _distinct_names(header: Sequence[str]) -> list[str]:
    """Names of columns that differ: repeated ones are also named after the last that is not.

    A column without a name marks the one before it.
    """
    names: list[str] = []
    before = ""
    for name in header:
        if not name:
            full = f"{names[-1] if names else ''} mark".strip()
        elif header.count(name) > 1:
            full = f"{before} {name}".strip()
        else:
            full = before = name
        while full in names:
            full += " again"
        names.append(full)
    return names
