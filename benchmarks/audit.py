"""Level, power and speed of `caltree.audit`, beside MCGrad's multicalibration error.

    python benchmarks/audit.py level   # scores that are the truth: how often is anything claimed?
    python benchmarks/audit.py power   # a group that is off: how often is it detected, and named?
    python benchmarks/audit.py speed   # 200,000 x 20 rows, beside the fit of a tree; reports

Without a name, all three. `--repeats` sets the number of data sets of each kind; `--n-jobs` the
processes. MCGrad's p-value is that of the worst of up to a thousand segments, without adjustment,
so that it rejects calibrated scores, too. The table therefore also has its statistic compared with
what it would be if the scores were right, which costs simulations that only a benchmark has; and
MCGrad's own rule, five standard deviations. MCGrad names a group if it detects one and its worst
segment overlaps with the group as much as a region must.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import expit, softmax
from threadpoolctl import threadpool_limits

from caltree import CalibrationTree, audit
from caltree.metrics import multicalibration_error
from caltree.report import report

ATTRIBUTES = 10
SHARES = [(0.6, 0.3, 0.1), (0.35, 0.33, 0.32), (0.4, 0.3, 0.3), (0.5, 0.3, 0.2), (0.4, 0.3, 0.3)]
SHIFTS = (0.3, 0.5, 1.0)
POWER_ROWS = 5_000
# A region is about the group if their rows overlap so much, as a share of both together.
ABOUT = 0.5
FIVE_SIGMAS = 5.0
# The segment of all rows, as `multicalibration_error` calls it.
ALL_ROWS = "all rows"


def make_table(n_rows: int, random: np.random.Generator) -> pd.DataFrame:
    """Five numbers, and five attributes of three categories."""
    found: dict[str, Any] = {}
    for j in range(ATTRIBUTES // 2):
        found[f"x{j}"] = random.normal(size=n_rows)
    for j in range(ATTRIBUTES // 2):
        found[f"c{j}"] = np.array(["a", "b", "c"])[random.choice(3, n_rows, p=SHARES[j])]
    return pd.DataFrame(found)


def with_gaps(table: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
    """The table without one value in five."""
    gaps = random.random(table.shape) < 0.2
    return table.mask(pd.DataFrame(gaps, columns=table.columns))


def log_odds(table: pd.DataFrame, random: np.random.Generator) -> np.ndarray:
    """The log-odds of an event that depends on some attributes."""
    noise = 0.5 * random.normal(size=len(table))
    return 1.2 * table["x0"].to_numpy() + 0.8 * (table["c0"] == "b").to_numpy() - 0.7 + noise


def true_scores(n_rows: int, n_classes: int, seed: int) -> tuple[Any, Any, Any]:
    """Rows whose scores are the truth, with missing values."""
    random = np.random.default_rng(seed)
    table = make_table(n_rows, random)
    if n_classes == 2:
        second = expit(log_odds(table, random))
        scores = np.column_stack([1.0 - second, second])
    else:
        centre = np.zeros((n_rows, n_classes))
        centre[:, 0], centre[:, 1] = table["x0"], 0.5 * table["x1"]
        centre[:, 2] = table["c0"] == "a"
        scores = softmax(centre + random.normal(size=centre.shape), axis=1)
    drawn = random.random((n_rows, 1)) > np.cumsum(scores, axis=1)[:, :-1]
    return with_gaps(table, random), drawn.sum(axis=1), scores


def group_off(shift: float, two: bool, seed: int) -> tuple[Any, Any, Any, np.ndarray]:
    """Rows of which a group of one in ten is off by a shift of log-odds."""
    random = np.random.default_rng(seed)
    table = make_table(POWER_ROWS, random)
    odds = log_odds(table, random)
    if two:
        inside = ((table["c1"] == "b") & (table["c2"] == "b")).to_numpy()
    else:
        inside = (table["c0"] == "c").to_numpy()
    labels = (random.random(POWER_ROWS) < expit(odds + shift * inside)).astype(int)
    return table, labels, expit(odds), inside


def rejects(n_rows: int, n_classes: int, seed: int) -> tuple[bool, bool]:
    """Whether the whole is rejected, and whether any group or region is claimed."""
    table, labels, scores = true_scores(n_rows, n_classes, seed)
    found = audit(table, labels, scores, by=["c0", "c1", "x0"])
    return found.p_value <= 0.05, any(each.is_off for each in [*found.groups, *found.regions])


def detects(shift: float, two: bool, seed: int) -> tuple[bool, bool, bool, float, bool, bool]:
    """Whether the audit rejects, claims a region and names the group.

    Then MCGrad's sigmas, whether its p-value is small, and whether its worst segment is the group.
    """
    table, labels, scores, inside = group_off(shift, two, seed)
    found = audit(table, labels, scores)
    off = [each for each in found.regions if each.is_off]
    named = any(overlap(table, scores, each.conditions, inside) >= ABOUT for each in off)
    sigmas, p_value = multicalibration(table, labels, scores)
    worst = multicalibration_error(table, labels, scores).segment.split(" and ")
    is_group = worst != [ALL_ROWS] and overlap(table, scores, worst, inside) >= ABOUT
    return found.p_value <= 0.05, bool(off), named, sigmas, p_value <= 0.05, is_group


def overlap(table: pd.DataFrame, scores: Any, conditions: list[str], inside: Any) -> float:
    """The rows of a region and a group, as a share of those of either."""
    region = np.ones(len(table), dtype=bool)
    for text in conditions:
        region &= meets(table.assign(score=scores), text)
    return float((region & inside).sum() / (region | inside).sum())


def meets(table: pd.DataFrame, text: str) -> np.ndarray:
    """The rows that meet a condition as an audit writes it."""
    words = text.split()
    if words[1] == "<":  # 3 < x <= 5
        values = table[words[2]]
        return ((values > float(words[0])) & (values <= float(words[4]))).to_numpy()
    values, sign = table[words[0]], words[1]
    if sign == "<=":
        return (values <= float(words[2])).to_numpy()
    if sign == ">":
        return (values > float(words[2])).to_numpy()
    if sign == "=":
        return (values == words[2]).to_numpy()
    if sign == "in":
        return values.isin([word.strip(",") for word in words[2:]]).to_numpy()
    raise ValueError(f"cannot read the condition {text!r}")


def multicalibration(table: pd.DataFrame, labels: Any, scores: Any) -> tuple[float, float]:
    """MCGrad's multicalibration error in standard deviations, and its p-value."""
    from mcgrad.metrics import MulticalibrationError

    found = MulticalibrationError(
        table.assign(label=labels, score=scores),
        "label",
        "score",
        categorical_segment_columns=[name for name in table if name.startswith("c")],
        numerical_segment_columns=[name for name in table if name.startswith("x")],
    )
    return float(found.mce_sigma), float(found.mce_pvalue)


def null_sigmas(seed: int) -> tuple[float, float]:
    """MCGrad's error of scores that are the truth, and its p-value.

    It is that of `caltree.metrics`, which is the same (a test compares them) and faster: a
    threshold needs many data sets.
    """
    found = multicalibration_error(*group_off(0.0, False, 10**6 + seed)[:3])
    return found.sigmas, found.p_value


def quietly(call: Any, *arguments: Any) -> Any:
    """Call without warnings, in any process."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call(*arguments)


def run_level(repeats: int, n_jobs: int) -> None:
    """Print how often calibrated scores are rejected."""
    print(f"Level: {repeats} data sets of each kind, scores are the truth, 20 % missing")
    print("  classes   rows  whole rejects  any group or region claimed")
    every = []
    for n_classes in (2, 4):
        for n_rows in (500, 5_000):
            jobs = (delayed(quietly)(rejects, n_rows, n_classes, s) for s in range(repeats))
            found = np.array(Parallel(n_jobs)(jobs))
            every.append(found)
            whole, claimed = found.mean(axis=0)
            print(f"  {n_classes:>7}  {n_rows:>5}  {whole:>13.1%}  {claimed:>27.1%}", flush=True)
    whole, claimed = np.concatenate(every).mean(axis=0)
    print(f"  all             {whole:>13.1%}  {claimed:>27.1%}")


def run_power(repeats: int, n_jobs: int) -> None:
    """Print how often a group that is off is detected and named."""
    jobs = (delayed(quietly)(null_sigmas, seed) for seed in range(10 * repeats))
    null = np.array(Parallel(n_jobs)(jobs))
    threshold = float(np.quantile(null[:, 0], 0.95))
    print(f"Power: {repeats} data sets of {POWER_ROWS:,} rows, a group of 10 % is off")
    print(
        f"  MCGrad on {len(null)} calibrated data sets: p <= 0.05 in "
        f"{np.mean(null[:, 1] <= 0.05):.0%}; 95 % are below {threshold:.2f} sigmas"
    )
    print(
        "  named by  shift  audit rejects  region claimed  named  "
        "MCGrad at its 95 %  named  at 5 sigmas  at its p  audit more often by"
    )
    for two in (False, True):
        for shift in SHIFTS:
            jobs = (delayed(quietly)(detects, shift, two, seed) for seed in range(repeats))
            found = np.array(Parallel(n_jobs)(jobs), dtype=float)
            whole, claimed, named, _, nominal, _ = found.mean(axis=0)
            level = found[:, 3] > threshold
            segment = np.mean(level & (found[:, 5] > 0.0))
            five = np.mean(found[:, 3] >= FIVE_SIGMAS)
            more = found[:, 0] - level
            error = more.std() / math.sqrt(repeats)
            print(
                f"  {2 if two else 1:>8}  {shift:>5}  {whole:>13.0%}  {claimed:>14.0%}  "
                f"{named:>5.0%}  {level.mean():>18.0%}  {segment:>5.0%}  {five:>11.0%}  "
                f"{nominal:>8.0%}  {more.mean():>+11.1%} ± {error:.1%}",
                flush=True,
            )


def run_speed(repeats: int, n_jobs: int) -> None:
    """Print the processor time of an audit, a fit and a report, of one thread each."""
    del n_jobs
    random = np.random.default_rng(0)
    table = random.normal(size=(200_000, 20))
    odds = 1.5 * random.normal(size=len(table))
    labels = random.random(len(table)) < expit(odds + 0.5 * (table[:, 0] > 1.3))
    known, new = slice(0, 100_000), slice(100_000, None)
    tree = CalibrationTree().fit(table[known], labels[known], scores=expit(odds[known]))

    def look(make: Callable[..., Any], rows: slice) -> Any:
        return make(table[rows], labels[rows], expit(odds[rows]), by=[0, 1], n_jobs=1)

    whole = slice(None)
    seconds = fastest(
        {
            "fit": lambda: CalibrationTree(n_jobs=1).fit(table, labels, scores=expit(odds)),
            "audit": lambda: look(audit, whole),
            "audit of half": lambda: look(audit, new),
            "report on half": lambda: look(partial(report, tree), new).to_html(),
        },
        min(repeats, 2),
    )
    ratio = seconds["audit"] / seconds["fit"]
    print(
        f"Speed, 200,000 x 20: fit {seconds['fit']:.1f} s, audit {seconds['audit']:.1f} s, "
        f"{ratio:.2f} times"
    )
    print(
        f"Speed, 100,000 x 20: audit {seconds['audit of half']:.1f} s, report, before and after, "
        f"{seconds['report on half']:.1f} s"
    )


def fastest(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The smallest processor times of some calls, made in turn."""
    found = dict.fromkeys(calls, math.inf)
    for _ in range(repeats):
        for name, call in calls.items():
            # Threads of BLAS that wait for work would count, too.
            with threadpool_limits(1):
                start = time.process_time()
                call()
                found[name] = min(found[name], time.process_time() - start)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    runs = {"level": run_level, "power": run_power, "speed": run_speed}
    parser.add_argument("which", nargs="*", choices=[*runs, []], default=[])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--n-jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    for name in given.which or runs:
        runs[name](given.repeats, given.n_jobs)


if __name__ == "__main__":
    main()
