"""The tables of the paper, ours beside the printed ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from . import published
from .cost import cost_of_all, cost_summary, cost_table
from .datasets import NAMES
from .protocol import n_test_rows
from .published import CALIBRATORS, IN_WORDS, LEARNERS, RIVALS, Counts
from .render import Cell as Text
from .render import Table
from .statistics import compare, sign_test
from .store import Store, pair_folds

_MARKS = {"win": "●", "loss": "○", "draw": ""}


@dataclass(frozen=True)
class Comparison:
    """A calibrator's RMSE on a data set, and how the tree's compares."""

    rmse: float
    n_results: int
    mark: published.Mark | None
    """None where there is no complete run of both."""


def all_tables(store: Store, *, pooled: bool = False) -> dict[str, Table]:
    """Return tables 1 to 6 of the paper and the cost of the experiments, by name.

    A pooled RMSE is that of all test rows together, and not the mean over the folds.
    """
    numbers = {learner: 2 + i for i, learner in enumerate(LEARNERS)}
    results = {
        f"table-{number}": results_table(store, learner, number, pooled=pooled)
        for learner, number in numbers.items()
    }
    costs = {"cost": cost_table(store), "cost-in-sum": cost_summary(store)}
    costs["cost-of-all"] = cost_of_all(store)
    return {"table-1": datasets_table(store), **results, "table-6": sign_table(store), **costs}


def datasets_table(store: Store) -> Table:
    """The data sets: table 1."""
    used, rows = store.datasets(), []
    for name, size in published.sizes().items():
        row: list[Text] = [name]
        for part in ("rows", "attributes", "classes"):
            ours = getattr(used[name], part) if name in used else None
            row += [ours, getattr(size, part)]
        rows.append([*row, used[name].notes if name in used else ""])
    header = ["data set"]
    for part in ("rows", "attributes", "classes"):
        header += [part, "paper"]
    return Table("Table 1: the data sets", [*header, "differences"], rows)


def compare_with_tree(
    store: Store, learner: str, dataset: str, calibrator: str, *, pooled: bool = False
) -> Comparison | None:
    """A calibrator's result, and whether the tree's is significantly better or worse."""
    own = store.results(dataset, learner, calibrator)
    if not own:
        return None
    mark, n_folds = None, int(store.settings()["folds"])
    tree, other = pair_folds(store.results(dataset, learner, "pct"), own, n_folds)
    if calibrator != "pct" and len(tree):
        mark = compare(tree, other, published.significance().p, n_folds=n_folds)
    if pooled:
        error = pooled_rmse(own, store.datasets()[dataset].rows, n_folds)
    else:
        error = math.fsum(own.values()) / len(own)
    return Comparison(error, len(own), mark)


def pooled_rmse(results: Mapping[tuple[int, int], float], n_rows: int, n_folds: int) -> float:
    """Return the RMSE of the test rows of all folds together, from that of each run and fold.

    The rows of the data set and the folds of a run say how much each fold counts.
    """
    sizes = {key: n_test_rows(n_rows, n_folds, key[1]) for key in results}
    squares = math.fsum(size * results[key] ** 2 for key, size in sizes.items())
    return math.sqrt(squares / sum(sizes.values()))


def results_table(store: Store, learner: str, number: int, *, pooled: bool = False) -> Table:
    """The RMSE on every data set that has results: tables 2 to 5."""
    rows: list[list[Text]] = []
    for dataset in NAMES:
        found = {
            name: compare_with_tree(store, learner, dataset, name, pooled=pooled)
            for name in CALIBRATORS
        }
        n_results = [each.n_results for each in found.values() if each]
        if n_results:
            cells = [_beside_the_paper(learner, dataset, name, found[name]) for name in found]
            rows.append([dataset, min(n_results), *(cell for part in cells for cell in part)])
    header = ["data set", "folds", "PCT", "paper"]
    for name in RIVALS:
        header += [IN_WORDS[name], "", "paper", ""]
    note = f"● the tree is significantly better, ○ worse (p = {published.significance().p}, "
    note += "corrected resampled t-test of complete runs)."
    absent = [name for name in NAMES if name not in {row[0] for row in rows}]
    note += f" No results: {', '.join(absent)}." if absent else ""
    what = "pooled RMSE" if pooled else "RMSE"
    return Table(f"Table {number}: {what} of calibrated {IN_WORDS[learner]}", header, rows, note)


def _beside_the_paper(
    learner: str, dataset: str, calibrator: str, ours: Comparison | None
) -> list[Text]:
    """A calibrator's cells: our RMSE and the paper's, each of a rival with its mark."""
    error, printed = ours.rmse if ours else None, published.rmse(learner, dataset, calibrator)
    if calibrator == "pct":
        return [error, printed]
    mark = _MARKS[ours.mark] if ours and ours.mark else ""
    return [error, mark, printed, _MARKS[published.mark(learner, dataset, calibrator)]]


def counts(store: Store, learner: str, versus: str) -> Counts:
    """On how many data sets the tree is significantly better, no different and worse."""
    found = [compare_with_tree(store, learner, dataset, versus) for dataset in store.datasets()]
    marks = Counter(each.mark for each in found if each is not None)
    return Counts(marks["win"], marks["draw"], marks["loss"])


def sign_table(store: Store) -> Table:
    """The sign tests: table 6."""
    rows: list[list[Text]] = []
    for learner in LEARNERS:
        for versus in RIVALS:
            ours, paper = counts(store, learner, versus), published.sign_test(learner, versus)
            tested = sign_test(ours.wins, ours.losses)
            printed = sign_test(paper.counts.wins, paper.counts.losses)
            rows.append(
                [
                    IN_WORDS[learner],
                    IN_WORDS[versus],
                    *_in_columns(ours, tested.p, tested.p_exact),
                    *_in_columns(paper.counts, paper.p, printed.p_exact),
                ]
            )
    header = ["learner", "PCT against", "W", "D", "L", "p", "exact p"]
    header += ["W, paper", "D, paper", "L, paper", "p, paper", "exact p, paper"]
    note = "p: two-tailed, by the normal approximation that the paper uses, draws left out; "
    note += "exact p: the binomial test. In the paper: " + " ".join(published.discrepancies())
    return Table("Table 6: sign tests over the data sets", header, rows, note)


def _in_columns(found: Counts, p: float | str, exact: float) -> list[Text]:
    shown = p if isinstance(p, str) else _p(p)
    return [found.wins, found.draws, found.losses, shown, _p(exact)]


def _p(value: float) -> str:
    return "<0.00001" if value < 1e-5 else f"{value:.5f}"
