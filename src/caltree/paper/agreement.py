"""How far our results agree with those that the paper prints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable
from itertools import product
from statistics import stdev

from . import published
from .datasets import NAMES
from .published import CALIBRATORS, IN_WORDS, LEARNERS, RIVALS
from .render import Cell as Text
from .render import Table, p_value
from .rmse import OWN, mean_pairs, overall_rmse
from .statistics import compare, corrected_resampled_t_test, sign_test
from .store import Store, pair_folds

FAR = 0.02
"""A figure that is farther from the printed one is listed, with the reason if there is one."""

_DIGITS = 3  # those that the paper prints
_MARKS = {"win": "better", "draw": "", "loss": "worse"}

_MANY_CLASSES = "The paper does not say how PS treats more than two classes; ours is one-vs-rest."


def far_table(store: Store) -> Table:
    """The figures that are more than `FAR` from the printed ones."""
    rows: list[list[Text]] = []
    n_compared = 0
    for learner, dataset, calibrator in product(LEARNERS, NAMES, CALIBRATORS):
        ours = overall_rmse(store, learner, dataset, calibrator)
        if ours is None:
            continue
        n_compared += 1
        printed = published.rmse(learner, dataset, calibrator)
        if abs(ours - printed) > FAR:
            folds = store.results(dataset, learner, calibrator).values()
            error = _standard_error(folds)
            by_chance = error is not None and abs(ours - printed) < 2.0 * error
            why = reason(store, dataset, calibrator, len(folds), by_chance)
            names: list[Text] = [IN_WORDS[learner], dataset, IN_WORDS[calibrator]]
            rows.append([*names, ours, printed, ours - printed, error, why])
    header = ["learner", "data set", "calibrator", "ours", "paper", "difference"]
    header += ["standard error", "why"]
    note = f"{len(rows)} of {n_compared} figures. The standard error is that of our mean of folds."
    return Table(f"Figures more than {FAR} from the printed ones", header, rows, note)


def reason(store: Store, dataset: str, calibrator: str, n_folds: int, by_chance: bool) -> str:
    """Why a figure may differ from the printed one; "not known" unless something is."""
    shape, n_all = store.datasets()[dataset], int(store.settings()["folds"])
    found = [f"{n_folds} of {n_all} folds."] if n_folds < n_all else []
    found += ["Chance: less than two standard errors."] if by_chance else []
    found += [_MANY_CLASSES] if calibrator == "platt" and shape.classes > 2 else []
    found += [f"Another copy: {shape.notes}"] if shape.notes else []
    return " ".join(found) or "not known"


def _standard_error(folds: Collection[float]) -> float | None:
    return stdev(folds) / math.sqrt(len(folds)) if len(folds) > 1 else None


def order_table(store: Store) -> Table:
    """Whether the tree has the lower mean RMSE, significantly so or not, as in the paper."""
    rows: list[list[Text]] = []
    for learner in LEARNERS:
        for rival in RIVALS:
            ours = mean_pairs(store, learner, "pct", rival, NAMES)
            printed = [
                (published.rmse(learner, name), published.rmse(learner, name, rival))
                for name in ours
            ]
            names: list[Text] = [IN_WORDS[learner], IN_WORDS[rival], len(ours)]
            rows.append([*names, *_count(ours.values()), *_count(printed)])
    header = ["learner", "PCT against", "data sets", "lower", "equal", "higher", "exact p"]
    header += ["lower, paper", "equal, paper", "higher, paper", "exact p, paper"]
    note = (
        "Mean RMSE of complete runs to three digits, and the paper's of the same data sets. It is "
    )
    note += (
        "not asked whether a difference is significant, so that the number of folds hardly matters."
    )
    return Table("On how many data sets the tree has the lower RMSE", header, rows, note)


def marks_table(store: Store) -> Table:
    """The data sets on which the tree is significantly better or worse here or there, not both."""
    n_folds = int(store.settings()["folds"])
    rows: list[list[Text]] = []
    n_compared = 0
    for learner, rival, dataset in product(LEARNERS, RIVALS, NAMES):
        tree, other = store.results(dataset, learner, "pct"), store.results(dataset, learner, rival)
        ours, theirs = pair_folds(tree, other, n_folds)
        if not len(ours):
            continue
        n_compared += 1
        mark, printed = (
            compare(ours, theirs, n_folds=n_folds),
            published.mark(learner, dataset, rival),
        )
        if mark != printed:
            names: list[Text] = [IN_WORDS[learner], dataset, IN_WORDS[rival], len(ours)]
            p = corrected_resampled_t_test(ours, theirs, n_folds).p
            figures = [published.rmse(learner, dataset, name) for name in ("pct", rival)]
            here: list[Text] = [float(ours.mean()), float(theirs.mean()), _MARKS[mark], p_value(p)]
            rows.append([*names, *here, *figures, _MARKS[printed]])
    header = ["learner", "data set", "PCT against", "folds", "PCT", "other", "PCT is", "p"]
    header += ["PCT, paper", "other, paper", "PCT is, paper"]
    note = f"{len(rows)} of {n_compared} comparisons; in the others both say the same."
    return Table("Where the tests of the data sets differ from the paper's", header, rows, note)


def own_table(store: Store, measure: str = "rmse") -> Table:
    """Our calibrators and the logistic model tree against the published tree, by mean RMSE.

    Or by log loss, which the paper does not print.
    """
    rows: list[list[Text]] = []
    for learner in LEARNERS:
        for own in OWN:
            pairs = mean_pairs(store, learner, own, "pct", NAMES, measure)
            if pairs:
                means = [math.fsum(each) / len(pairs) for each in zip(*pairs.values(), strict=True)]
                names: list[Text] = [IN_WORDS[learner], IN_WORDS[own], len(pairs)]
                rows.append([*names, *means, *_count(pairs.values())])
    in_words = {"rmse": "RMSE", "log_loss": "log loss"}[measure]
    header = ["learner", "", "data sets", f"mean {in_words}", "of PCT", "lower", "equal", "higher"]
    of_measure = "" if measure == "rmse" else f": {in_words}"
    title = f"What is not in the paper, against PCT{of_measure}"
    return Table(title, [*header, "exact p"], rows)


def _count(pairs: Iterable[tuple[float, float]]) -> list[Text]:
    """On how many data sets the first is lower, equal and higher, and the exact sign test."""
    signs = Counter(_sign(round(one, _DIGITS), round(other, _DIGITS)) for one, other in pairs)
    return [signs[-1], signs[0], signs[1], p_value(sign_test(signs[-1], signs[1]).p_exact)]


def _sign(one: float, other: float) -> int:
    return (one > other) - (one < other)
