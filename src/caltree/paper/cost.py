"""The cost of the experiments: as measured, and estimated for all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from . import published
from .datasets import NAMES
from .published import CALIBRATORS, IN_WORDS, LEARNERS, Size
from .render import Cell as Text
from .render import Table
from .store import Store

# The time of a fold is taken to be in proportion to this.
_GROWTH: Mapping[str, Callable[[Size], float]] = {
    "naive_bayes": lambda size: size.rows * size.attributes * size.classes,
    "boosted_stumps": lambda size: size.rows * size.attributes * _problems(size),
    "boosted_trees": lambda size: size.rows * size.attributes * _problems(size),
    "svm": lambda size: size.rows**2 * _problems(size) * _searches(size),
    "calibrator pct": lambda size: size.rows * (size.attributes + size.classes * _problems(size)),
}

_MANY_ROWS = 1000

_OF_PAPER = {*LEARNERS, *(f"calibrator {name}" for name in (*CALIBRATORS, "none"))}

_ESTIMATE = (
    "For 10 x 10 folds in one process. Estimated: what was not measured, in "
    "proportion to rows x attributes x classes for naive Bayes and boosting, to rows² x classes "
    "for SVMs (8.5 times that where the grid is searched on all rows, 6.1 and 6.0 times where on "
    "a fifth and a tenth), to rows x (attributes + classes²) for PCT and to rows x classes for the "
    "other calibrators; two classes count as one where one problem does for both. Noisy classes "
    "make support vectors of nearly all rows: SVMs of two classes are estimated at the highest "
    "rate that was measured on two classes and 1,000 rows or more, the others at the mean rate."
)


def _rows_and_classes(size: Size) -> float:
    return size.rows * size.classes


def _searches(size: Size) -> float:
    """The number of fits to all rows in a fold: six, and the search.

    It fits 25 points twice to half of its rows, which costs as much as ten fits to these, since
    they share kernels.
    """
    few = 0.2 if size.rows <= 5000 else 0.1
    fraction = 1.0 if size.classes == 2 else few
    return 6.0 + 10.0 * (fraction / 2.0) ** 2


def _problems(size: Size) -> int:
    """The number of two-class problems of a data set."""
    return 1 if size.classes == 2 else size.classes


def cost_summary(store: Store) -> Table:
    """The mean cost of learners and calibrators, and that of the whole experiment.

    The note names what was not measured; nothing is estimated.
    """
    costs: dict[str, list[float]] = {}
    for _, _, step, seconds, _ in store.costs():
        costs.setdefault(step, []).append(seconds)
    rows: list[list[Text]] = []
    for step in sorted(costs, key=lambda step: (step not in LEARNERS, step)):
        means = costs[step]
        name = IN_WORDS[step] if step in LEARNERS else _step_in_words(step)
        of = len(NAMES) * (1 if step in LEARNERS else len(LEARNERS))
        rows.append([name, math.fsum(means) / len(means), len(means), of, _hours(*means)])
    n_measured = sum(len(costs.get(learner, ())) for learner in LEARNERS)
    everything = _hours(*(seconds for means in costs.values() for seconds in means))
    rows.append(["everything", None, n_measured, len(NAMES) * len(LEARNERS), everything])
    header = ["step", "seconds a fold", "measured", "of", "hours for 10 x 10 folds"]
    return Table("Cost in sum", header, rows, _cost_note(store))


def _cost_note(store: Store) -> str:
    note = "Seconds are means over data sets, for a calibrator over data sets and learners; "
    note += "hours are those of one process on what was measured, and of nothing else."
    measured = {(dataset, step) for dataset, _, step, _, _ in store.costs()}
    for learner in LEARNERS:
        absent = [name for name in NAMES if (name, learner) not in measured]
        names = "every data set" if len(absent) == len(NAMES) else ", ".join(absent)
        note += f" Not measured with {IN_WORDS[learner]}: {names}." if absent else ""
    return note


def _hours(*seconds: float) -> float:
    """Of all folds of all runs of the paper, from seconds a fold."""
    level = published.significance()
    return math.fsum(seconds) * level.runs * level.folds / 3600


def _step_in_words(step: str) -> str:
    return "training" if step in LEARNERS else IN_WORDS[step.removeprefix("calibrator ")]


def cost_of_all(store: Store, datasets: Sequence[str] = NAMES) -> Table:
    """The cost of some data sets, of all 32 unless told: as measured, estimated elsewhere."""
    measured: dict[tuple[str, str], dict[str, float]] = {}
    for dataset, learner, step, seconds, _ in store.costs():
        measured.setdefault((learner, step), {})[dataset] = seconds
    rows: list[list[Text]] = []
    of_paper: list[list[Text]] = []
    for (learner, step), by_dataset in sorted(measured.items()):
        known = math.fsum(by_dataset.get(name, 0.0) for name in datasets)
        guessed = _estimate(step, by_dataset, datasets)
        n_measured = len(set(by_dataset) & set(datasets))
        row: list[Text] = [IN_WORDS[learner], _step_in_words(step), n_measured]
        rows.append([*row, _hours(known), _hours(guessed), _hours(known, guessed)])
        if step in _OF_PAPER:
            of_paper.append(rows[-1])
    totals = [["everything", "", None, *_add_up(rows)]]
    if len(of_paper) < len(rows):
        totals.insert(0, ["what the paper has", "", None, *_add_up(of_paper)])
    rows += totals
    header = ["learner", "step", "data sets", "hours, measured", "hours, estimated", "hours"]
    return Table("Cost of all data sets", header, rows, _ESTIMATE)


def _add_up(rows: Sequence[Sequence[Text]]) -> list[float]:
    """The sums of the hours: measured, estimated, and both."""
    return [math.fsum(float(row[column] or 0) for row in rows) for column in (3, 4, 5)]


def _estimate(step: str, seconds: Mapping[str, float], datasets: Sequence[str]) -> float:
    """Seconds a fold of each data set that was not measured, in sum."""
    growth = _GROWTH.get(step, _rows_and_classes)
    sizes = {name: growth(size) for name, size in published.sizes().items()}
    rate = math.fsum(seconds.values()) / math.fsum(sizes[name] for name in seconds)
    highest = max((seconds[name] / sizes[name] for name in seconds if _is_telling(name)), default=0)
    return math.fsum(
        sizes[name] * (max(rate, highest) if step == "svm" and _is_telling(name) else rate)
        for name in datasets
        if name not in seconds
    )


def _is_telling(name: str) -> bool:
    """Whether an SVM's time on a data set says how long noisy classes take: two, many rows."""
    size = published.sizes()[name]
    return size.classes == 2 and size.rows >= _MANY_ROWS
