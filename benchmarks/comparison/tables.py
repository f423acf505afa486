"""What the comparison shows, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scipy.stats import rankdata

from caltree.paper.render import Cell as Text
from caltree.paper.render import Table
from caltree.paper.store import Store

from .calibrators import ALL
from .grid import (
    SIGNIFICANCE,
    Grid,
    Pair,
    against_best_global,
    common_means,
    compared,
    mean,
    read,
)

OURS = ("tree", "forest", "boosting", "ensemble")
"""The calibrators that are compared with all others."""
WORSE_THAN_OTHERS = 0.01
"""By which part of another's mean a calibrator may be worse before it is listed."""
FEW_ROWS = 2000
"""Ranks of data sets with at most so many rows are also given apart."""

_PLACES = "A cell is a data set and a learner. A run counts if both have all of its folds"


def all_tables(store: Store, measure: str = "rmse", runs: int | None = None) -> list[Table]:
    """Everything but the single means.

    Parameters
    ----------
    store : Store
        The results, complete or not.
    measure : str
        One of `grid.MEASURES`.
    runs : int, optional
        As for `grid.read`.

    Returns
    -------
    list of Table
        What there is; wins, draws and losses of ours; ranks; where ours are worse.
    """
    grid = read(store, measure, runs)
    ours = [name for name in OURS if name in grid.calibrators()]
    return [
        _there(store, grid),
        *(_wins(grid, name, measure) for name in ours),
        *_ranks(grid, measure),
        _losses(grid, ours, measure),
        _worse_than_none(grid, ours, measure),
    ]


def cells_table(store: Store, measure: str = "rmse", runs: int | None = None) -> list[Table]:
    """The mean of every calibrator in every cell."""
    grid = read(store, measure, runs)
    names, rows = grid.calibrators(), []
    for place, there in grid.results.items():
        n_results = {len(results) for results in there.values()}
        means = [_number(mean(there[name].values())) if name in there else "" for name in names]
        folds = str(min(n_results)) if len(n_results) == 1 else f"{min(n_results)}–{max(n_results)}"
        rows.append([*place, grid.n_classes[place[0]], folds, *means])
    note = "Means over the folds that each calibrator has; “folds” says how many that is."
    header = ["data set", "learner", "classes", "folds", *names]
    return [Table(f"{_title(measure)} of every cell", header, rows, note)]


def hindsight_table(
    store: Store, measure: str = "rmse", runs: int | None = None, names: Sequence[str] = OURS
) -> list[Table]:
    """Where calibrators are worse than the global one that turned out to be the best there.

    Nobody could have chosen that one beforehand: it is a bound on what can be lost, cell by cell.

    Parameters
    ----------
    store, measure, runs
        As for `all_tables`.
    names : sequence of str
        The calibrators that are judged.
    """
    grid = read(store, measure, runs)
    rows, counts = [], []
    for mine in names:
        found = against_best_global(grid, mine)
        worse = [(other, pair) for other, pair in found if pair.worse_by > WORSE_THAN_OTHERS]
        counts.append(f"{mine} {len(worse)} of {len(found)}")
        rows += [
            [mine, *pair.place, f"{pair.worse_by:+.1%}", other, *_in_columns(pair)]
            for other, pair in worse
        ]
    header = ["calibrator", "data set", "learner", "worse by", "than", f"its {_title(measure)}"]
    header += ["the other's", "p", "runs"]
    rivals = [name for name in grid.calibrators() if ALL[name].is_global]
    note = (
        f"Cells: {', '.join(counts)}. The best, with hindsight, of {', '.join(rivals)}. {_PLACES}."
    )
    title = f"More than {WORSE_THAN_OTHERS:.0%} worse than the best global calibrator of the cell"
    return [Table(f"{title}, by {_title(measure)}", header, rows, note)]


def _there(store: Store, grid: Grid) -> Table:
    """How far the work is, and what each calibrator costs."""
    n_runs, rows = grid.n_runs(), []
    costs = store.costs()
    for name in grid.calibrators():
        found = [there[name] for there in grid.results.values() if name in there]
        complete = sum(len(each) == n_runs * grid.n_folds for each in found)
        seconds = [(cost, n) for _, _, step, cost, n in costs if step == f"calibrator {name}"]
        total = sum(cost * n for cost, n in seconds)
        average = total / max(1, sum(n for _, n in seconds))
        longest = max((cost for cost, _ in seconds), default=0.0)
        rows.append([name, len(found), complete, sum(map(len, found)), average, longest])
    header = ["calibrator", "cells", _whole_runs(n_runs), "folds"]
    header += ["seconds per fold", "in the slowest cell"]
    n_datasets = len({dataset for dataset, _ in grid.results})
    note = f"{len(grid.results)} cells of {n_datasets} data sets have results. Seconds of a "
    note += "processor: to fit on the training rows and predict the test rows of a fold."
    return Table("What there is", header, rows, note)


def _whole_runs(n_runs: int) -> str:
    return "with a whole run" if n_runs == 1 else f"with all {n_runs} runs"


def _wins(grid: Grid, mine: str, measure: str) -> Table:
    rows = []
    for other in _others(grid, mine):
        pairs = compared(grid, mine, other)
        verdicts = Counter(pair.verdict for pair in pairs)
        counts = [verdicts[verdict] for verdict in ("win", "draw", "loss")]
        n_good = sum(pair.mine <= pair.other for pair in pairs)
        share = f"{n_good / len(pairs):.0%}" if pairs else ""
        complete = sum(pair.n_runs == grid.n_runs() for pair in pairs)
        rows.append([other, *counts, share, len(pairs), complete])
    header = ["against", "wins", "draws", "losses", "at least as good", "cells"]
    header += [_whole_runs(grid.n_runs())]
    note = f"Wins and losses at p = {SIGNIFICANCE} by the corrected resampled t-test; “at least as "
    note += f"good”: the share of the cells in which its mean is not higher. {_PLACES}."
    return Table(f"{mine} against the others, by {_title(measure)}", header, rows, note)


def _ranks(grid: Grid, measure: str) -> list[Table]:
    """Of two classes with all calibrators, and of any number with those that know them.

    The latter also of few rows and of many.
    """
    two = grid.where(lambda name: grid.n_classes[name] == 2)
    few = grid.where(lambda name: grid.n_rows[name] <= FEW_ROWS)
    many = grid.where(lambda name: grid.n_rows[name] > FEW_ROWS)
    names = grid.calibrators()
    anywhere = [name for name in names if not ALL[name].only_two_classes]
    return [
        _rank_table(two, names, "cells of two classes, all calibrators", measure),
        _rank_table(grid, anywhere, "all cells, the calibrators that know many classes", measure),
        _rank_table(few, anywhere, f"data sets of up to {FEW_ROWS:,} rows, the same", measure),
        _rank_table(many, anywhere, f"data sets of more than {FEW_ROWS:,} rows, the same", measure),
    ]


def _rank_table(grid: Grid, names: Sequence[str], which: str, measure: str) -> Table:
    found = list(common_means(grid, names).values())
    ranks = [rankdata([means[name] for name in names]) for means in found]
    rows: list[list[Text]] = []
    for i, name in enumerate(names if found else ()):
        values = [means[name] for means in found]
        firsts = sum(bool(rank[i] == 1) for rank in ranks)
        rows.append([name, float(mean(rank[i] for rank in ranks)), firsts, _number(mean(values))])
    rows.sort(key=lambda row: row[1])
    header = ["calibrator", "mean rank", "alone in front", f"mean {_title(measure)}"]
    note = f"Cells in which all of them have a whole run: {len(found)}. Equal means share a rank."
    return Table(f"Mean ranks: {which}", header, rows, note)


def _losses(grid: Grid, ours: Sequence[str], measure: str) -> Table:
    rows = [
        [mine, *pair.place, other, *_in_columns(pair)]
        for mine in ours
        for other in _others(grid, mine)
        for pair in compared(grid, mine, other)
        if pair.verdict == "loss"
    ]
    header = ["calibrator", "data set", "learner", "against", f"its {_title(measure)}"]
    header += ["the other's", "p", "runs"]
    note = f"{len(rows) or 'No'} significant losses (p < {SIGNIFICANCE}). {_PLACES}."
    return Table("Significant losses", header, rows, note)


def _worse_than_none(grid: Grid, ours: Sequence[str], measure: str) -> Table:
    rows = [
        [mine, *pair.place, f"{pair.worse_by:+.1%}", *_in_columns(pair)]
        for mine in ours
        for pair in compared(grid, mine, "none")
        if pair.worse_by > WORSE_THAN_OTHERS
    ]
    header = ["calibrator", "data set", "learner", "worse by", f"its {_title(measure)}"]
    header += ["none's", "p", "runs"]
    n_cells = {mine: len(compared(grid, mine, "none")) for mine in ours}
    note = "Of the cells that have both: "
    note += ", ".join(f"{n} of {mine}" for mine, n in n_cells.items()) + f". {_PLACES}."
    return Table(f"More than {WORSE_THAN_OTHERS:.0%} worse than no calibration", header, rows, note)


def _others(grid: Grid, mine: str) -> list[str]:
    return [name for name in grid.calibrators() if name != mine]


def _in_columns(pair: Pair) -> list[Text]:
    return [_number(pair.mine), _number(pair.other), f"{pair.p:.2g}", pair.n_runs]


def _number(value: float) -> str:
    return f"{value:.4f}"


def _title(measure: str) -> str:
    return {"rmse": "RMSE", "auc": "1 - AUC"}.get(measure, measure.replace("_", " "))
