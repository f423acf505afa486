"""The tables of the paper, ours beside the printed ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from . import published
from .agreement import far_table, marks_table, order_table, own_table
from .datasets import NAMES
from .published import CALIBRATORS, IN_WORDS, LEARNERS, RIVALS, Counts
from .render import Cell as Text
from .render import Table, p_value
from .rmse import OWN, overall_rmse
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
    """Return tables 1 to 6 of the paper and how far ours agree with them, by name.

    A pooled RMSE is that of all test rows together, and not the mean over the folds.
    """
    numbers = {learner: 2 + i for i, learner in enumerate(LEARNERS)}
    results = {
        f"table-{number}": results_table(store, learner, number, pooled=pooled)
        for learner, number in numbers.items()
    }
    return {
        "table-1": datasets_table(store),
        **results,
        "table-6": sign_table(store),
        "order": order_table(store),
        "tests-that-differ": marks_table(store),
        "figures-that-differ": far_table(store),
        "own": own_table(store),
        "own-log-loss": own_table(store, "log_loss"),
    }


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
    error = overall_rmse(store, learner, dataset, calibrator, pooled=pooled)
    if error is None:
        return None
    own = store.results(dataset, learner, calibrator)
    mark, n_folds = None, int(store.settings()["folds"])
    tree, other = pair_folds(store.results(dataset, learner, "pct"), own, n_folds)
    if calibrator != "pct" and len(tree):
        mark = compare(tree, other, published.significance().p, n_folds=n_folds)
    return Comparison(error, len(own), mark)


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
            own = [overall_rmse(store, learner, dataset, name, pooled=pooled) for name in OWN]
            rows.append([dataset, min(n_results), *(cell for part in cells for cell in part), *own])
    header = ["data set", "folds", "PCT", "paper"]
    for name in RIVALS:
        header += [IN_WORDS[name], "", "paper", ""]
    header += [IN_WORDS[name] for name in OWN]
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
    shown = p if isinstance(p, str) else p_value(p)
    return [found.wins, found.draws, found.losses, shown, p_value(exact)]
