"""The page of all benchmarks: docs/benchmarks.md and its plots, from stored results.

The accuracy is that of the first two tables of docs/accuracy.md, which says by which commands they
were made; the ratios are those of benchmarks/ratios.json, made by benchmarks/ratios.py --store.

    python benchmarks/page.py
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RATIOS = Path(__file__).with_name("ratios.json")
OURS = "#1f77b4"
OTHERS = "#b0b7c0"
GROUPS = {
    "fit": "Fits",
    "scale": "Fits on many rows",
    "prediction": "Predictions",
}

PAGE = """# Benchmarks

This page is written by `python benchmarks/page.py` from stored results. Lower is better everywhere.

## Accuracy, on data that nothing was tuned on

Nine public data sets, five learners, one run of five folds:

![Mean rank and mean log loss of each calibrator](benchmarks-accuracy.png)

{fresh}

Census data with 159,361 rows. MCE (multicalibration error) is the error in the worst of many
groups, in standard deviations. The time is a multiple of LightGBM's:

![Log loss and error in the worst group, with scores of logistic regression](benchmarks-census.png)

{census}

[Accuracy](accuracy.md) has the commands, the data that defaults were tuned on, and the cases in
which a simple curve did better.

## Speed and scale

Processor time of caltree as a multiple of a known program's, on the same rows with 20 attributes.
Both run on one thread, in turns. Below 1, caltree is faster. Processor: {processor}. On others the
ratios differ; [Speed](speed.md) has the published tree on two.

![Time of caltree as a multiple of a known program's](benchmarks-speed.png)

{ratios}

`make bench-check` measures these ratios again, and fails if one is more than 20 % above the stored
one. `make bench-store` stores new ones and writes this page. [Speed](speed.md) has more cases.
"""


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown page: rows of cells, the heading first."""
    blocks = groupby(text.splitlines(), key=lambda line: line.startswith("|"))
    found = []
    for is_table, lines in blocks:
        if is_table:
            rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
            found.append([rows[0], *rows[2:]])
    return found


def as_markdown(rows: list[list[str]]) -> str:
    """A table of Markdown."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def ratio_rows(cases: list[dict[str, Any]]) -> list[list[str]]:
    """The ratios as a table."""
    rows = [
        [GROUPS[case["group"]], case["name"], case["peer"], str(case["ratio"])] for case in cases
    ]
    return [["", "caltree", "compared with", "ratio"], *rows]


def render(accuracy: str, ratios: dict[str, Any]) -> str:
    """The page."""
    fresh, census = tables(accuracy)[:2]
    return PAGE.format(
        fresh=as_markdown(fresh),
        census=as_markdown(census),
        processor=ratios["processor"],
        ratios=as_markdown(ratio_rows(ratios["cases"])),
    )


def draw_bars(path: Path, names: list[str], columns: dict[str, list[float]]) -> None:
    """Bars beside each other, a panel per column; ours in colour."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 0.32 * len(names) + 1.0), layout="constrained")
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    colours = [OURS if name.startswith("`") else OTHERS for name in names]
    shown = [name.strip("`") if name.startswith("`") else name.replace("`", "") for name in names]
    for panel, (title, values) in zip(panels, columns.items(), strict=True):
        bars = panel.barh(shown, values, color=colours)
        panel.bar_label(bars, fmt="%.3g", padding=3, fontsize=8)
        panel.margins(x=0.15)
        panel.set_title(title, fontsize=10)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].invert_yaxis()
    figure.savefig(path, dpi=110)


def draw_ratios(path: Path, cases: list[dict[str, Any]]) -> None:
    """The ratios on a logarithmic axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 0.36 * len(cases) + 1.2), layout="constrained")
    axes = figure.subplots()
    names = [f"{case['name']} ({case['group']})\nagainst {case['peer']}" for case in cases]
    values = [case["ratio"] for case in cases]
    axes.scatter(values, names, color=[OURS if value <= 1.0 else "#d95f02" for value in values])
    for value, name in zip(values, names, strict=True):
        axes.annotate(f"{value:.2g}", (value, name), xytext=(7, -3), textcoords="offset points")
    axes.axvline(1.0, color="black", linewidth=0.8, linestyle="dashed")
    axes.set_xscale("log")
    axes.margins(x=0.1)
    axes.tick_params(axis="y", labelsize=7)
    axes.set_xlabel("time of ours / time of the other, processor time")
    axes.spines[["top", "right"]].set_visible(False)
    axes.invert_yaxis()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Write the page and its plots."""
    accuracy = (DOCS / "accuracy.md").read_text(encoding="utf-8")
    ratios = json.loads(RATIOS.read_text())
    (DOCS / "benchmarks.md").write_text(render(accuracy, ratios), encoding="utf-8")
    (_, *fresh), (_, *census) = tables(accuracy)[:2]
    draw_bars(
        DOCS / "benchmarks-accuracy.png",
        [row[0] for row in fresh],
        {
            "mean rank by RMSE": [float(row[1]) for row in fresh],
            "mean log loss": [float(row[3]) for row in fresh],
        },
    )
    draw_bars(
        DOCS / "benchmarks-census.png",
        [row[0] for row in census],
        {
            "log loss": [float(row[1]) for row in census],
            "error in the worst group, standard deviations": [float(row[2]) for row in census],
        },
    )
    draw_ratios(DOCS / "benchmarks-speed.png", ratios["cases"])


if __name__ == "__main__":
    main()
