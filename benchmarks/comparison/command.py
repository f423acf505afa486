"""The command: run, forget, table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from caltree.paper import render
from caltree.paper.experiment import Done

from .calibrators import ALL, CALIBRATORS, check_installed
from .data import LEARNERS, names_in
from .grid import MEASURES
from .tables import OURS, all_tables, cells_table, hindsight_table
from .work import Comparison, Results, carry_out, remaining


def main(given: Sequence[str] | None = None) -> int:
    """Do what the command line asks for; returns the exit status."""
    arguments = _parser().parse_args(given)
    try:
        return int(arguments.action(arguments))
    except (OSError, ValueError, ImportError) as error:
        print(f"error: {' '.join(str(error).split())}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Compare calibrators by their accuracy.")
    actions = parser.add_subparsers(required=True, metavar="run|forget|table")
    run = actions.add_parser("run", help="carry out folds; what is there is not done again")
    run.set_defaults(action=_run)
    run.add_argument("--data-dir", required=True, help="a folder of ARFF files, gzip allowed")
    run.add_argument("--scores", help="the folder of the learners' scores; beside the store if not")
    run.add_argument("--datasets", type=_names, help="names between commas; all if not")
    run.add_argument("--learners", type=names_of(LEARNERS), default=tuple(LEARNERS))
    run.add_argument("--calibrators", type=names_of(ALL), default=tuple(CALIBRATORS))
    run.add_argument("--runs", type=_count, default=3)
    run.add_argument("--only-cached", action="store_true", help="only folds whose scores are there")
    run.add_argument("--n-jobs", type=int, default=1, help="folds at a time")
    run.add_argument("--scheduler", help="address of a Dask scheduler, whose workers do the work")
    run.add_argument("--quiet", action="store_true", help="say nothing of single folds")
    forget = actions.add_parser("forget", help="remove results, to measure them again")
    forget.set_defaults(action=_forget)
    forget.add_argument("--calibrators", type=names_of(ALL), required=True)
    table = actions.add_parser("table", help="print what is known, as Markdown")
    table.set_defaults(action=_table)
    table.add_argument("--measure", choices=MEASURES, default=MEASURES[0])
    table.add_argument(
        "--runs", type=_count, help="only the first runs, where all of them are there"
    )
    other = table.add_mutually_exclusive_group()
    other.add_argument("--cells", action="store_true", help="every mean")
    other.add_argument(
        "--against-best",
        type=names_of(ALL),
        nargs="?",
        const=OURS,
        metavar="NAMES",
        help="where these, or tree and forest, are worse than the best global calibrator there",
    )
    for action in (run, forget, table):
        action.add_argument("--store", default="accuracy.sqlite", help="the file of results")
    return parser


def _names(given: str) -> tuple[str, ...]:
    """Names between commas."""
    names = tuple(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if not names:
        raise argparse.ArgumentTypeError("give at least one name")
    return names


def names_of(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """A reader of names between commas that are all known."""

    def read(given: str) -> tuple[str, ...]:
        names = _names(given)
        unknown = [name for name in names if name not in known]
        if unknown:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown)} is not among {', '.join(known)}"
            )
        return names

    return read


def _count(given: str) -> int:
    """A number from 1 on."""
    if not given.isdecimal() or int(given) < 1:
        raise argparse.ArgumentTypeError(f"{given} is not a number of at least 1")
    return int(given)


def _run(arguments: argparse.Namespace) -> int:
    check_installed(arguments.calibrators, arguments.learners)
    store = Path(arguments.store)
    scores = Path(arguments.scores or store.with_suffix(".scores"))
    plan = Comparison(
        datasets=arguments.datasets or names_in(arguments.data_dir),
        learners=arguments.learners,
        calibrators=arguments.calibrators,
        runs=arguments.runs,
        # Workers may be at home elsewhere.
        data_dir=str(Path(arguments.data_dir).resolve()),
        scores=str(scores.resolve()),
        only_cached=arguments.only_cached,
    )
    results = Results(store, plan.settings())
    report = (lambda done: None) if arguments.quiet else _report
    failures = carry_out(
        plan, results, n_jobs=arguments.n_jobs, scheduler=arguments.scheduler, report=report
    )
    for failure in failures:
        print(f"failed: {_in_words(failure)}\n{failure.error}", file=sys.stderr)
    n_cells, n_left = len(plan.cells()), len(remaining(plan, results))
    what = "folds whose scores are there" if plan.only_cached else "folds"
    print(f"{n_cells - n_left} of {n_cells} {what} are complete in {store}", file=sys.stderr)
    return 1 if failures else 0


def _report(done: Done) -> None:
    seconds = done.outcome.seconds if done.outcome else {}
    parts = [f"{step.removeprefix('calibrator ')} {value:.2f}" for step, value in seconds.items()]
    print(f"{_in_words(done)}: {', '.join(parts)} s", file=sys.stderr, flush=True)


def _in_words(done: Done) -> str:
    cell = done.cell
    return f"{cell.dataset}, {cell.learner}, run {cell.run + 1}, fold {cell.fold + 1}"


def _forget(arguments: argparse.Namespace) -> int:
    n_folds = Results(arguments.store).forget(arguments.calibrators)
    print(f"forgotten: {', '.join(arguments.calibrators)}, of {n_folds} folds", file=sys.stderr)
    return 0


def _table(arguments: argparse.Namespace) -> int:
    given = (Results(arguments.store), arguments.measure, arguments.runs)
    if arguments.against_best:
        tables = hindsight_table(*given, arguments.against_best)
    else:
        tables = cells_table(*given) if arguments.cells else all_tables(*given)
    for table in tables:
        print(render.markdown(table))
    return 0
