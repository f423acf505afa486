"""Coverage of `predict_interval`, against probabilities that are known.

    python benchmarks/intervals.py --rows 1000 10000 --repeats 3

Rows are drawn from constructions whose true probability of each class is known, given attributes
and scores. Of some the scores are strong, near the truth but for a few regions or a bend, of others
weak. A calibrator is fitted to some rows, `fit_intervals` is called, and 95 % intervals of 5,000
new rows are compared with their truth. Of calibrators that use the scores alone the truth is the
mean probability of rows of the same score; give many repeats for these, since all rows of a data
set lie on one curve, which is off or not. The method was made on all constructions but `last
steps`, which was written and run after it was finished. Times are of the processor.

The bar, on average over all constructions and strengths: intervals cover 92 to 98 % of the rows,
and at least 85 % in each tenth of the predicted probability that has one in a hundred rows. How
many constructions meet it by themselves, and the worst of them, is said, too.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit, softmax
from scipy.stats import norm, poisson
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from caltree import (
    BetaScaling,
    CalibrationBoosting,
    CalibrationEnsemble,
    CalibrationForest,
    CalibrationTree,
    IsotonicScaling,
    PlattScaling,
    PublishedCalibrationTree,
    TemperatureScaling,
)
from caltree.cli.demo_data import ATTRIBUTES, _naive_bayes, make_loans

CALIBRATORS: dict[str, Callable[[], Any]] = {
    "tree": CalibrationTree,
    "forest": lambda: CalibrationForest(random_state=0),
    "boosting": lambda: CalibrationBoosting(random_state=0),
    "ensemble": lambda: CalibrationEnsemble(random_state=0),
    "published": PublishedCalibrationTree,
    "platt": PlattScaling,
    "isotonic": IsotonicScaling,
    "temperature": TemperatureScaling,
    "beta": BetaScaling,
}
GLOBAL = ("platt", "isotonic", "temperature", "beta")
STRENGTHS = ("strong", "weak")
TEST_ROWS, ROWS_BY_SCORE, SCORE_BINS = 5_000, 100_000, 200
MEAN, TENTH, FEWEST = (0.92, 0.98), 0.85, 0.01

Drawn = tuple[Any, np.ndarray, np.ndarray]
"""Attributes, the true probabilities of all classes, scores."""


def both(second: np.ndarray) -> np.ndarray:
    """Probabilities of two classes."""
    return np.column_stack([1.0 - second, second])


def loans(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """The loans of `caltree demo`; weak scores are those of naive Bayes."""
    drawn = make_loans(n_rows, random)
    truth = loans_truth(drawn.X)
    table = pd.DataFrame(drawn.X, columns=list(ATTRIBUTES))
    table = table.astype({name: float for name in ATTRIBUTES[1:]})
    if strength == "strong":
        return (
            table,
            both(truth),
            expit(1.2 * logit(truth) + 0.2 + 0.3 * random.normal(size=n_rows)),
        )
    others = make_loans(20_000, np.random.default_rng(99))
    scores = _naive_bayes().fit(others.X, others.y).predict_proba(drawn.X)[:, 1]
    return table, both(truth), np.clip(scores, 1e-6, 1 - 1e-6)


def loans_truth(X: Any) -> np.ndarray:
    """The probability of a default given the columns: the mean over the strain, by its density."""
    strain = np.linspace(-4.5, 4.5, 181)
    contract = X[:, :1]
    income, debt, used, late, years = (X[:, [j]].astype(float) for j in (2, 3, 4, 5, 6))
    found = []
    for begin in range(0, len(X), 5_000):
        rows = slice(begin, begin + 5_000)
        with np.errstate(divide="ignore"):
            logs = norm.logpdf(np.log(income[rows]), 8.0 - 0.25 * strain, 0.35)
        logs = np.where(np.isnan(logs), 0.0, logs) + norm.logpdf(strain)
        for value, mean, deviation in (
            (debt[rows], 0.35 + 0.13 * strain, 0.06),
            (used[rows], 0.45 + 0.22 * strain, 0.10),
        ):  # rounded to hundredths, and clipped to 0 and 1
            above = norm.cdf(np.where(value >= 1, np.inf, value + 0.005), mean, deviation)
            below = norm.cdf(np.where(value <= 0, -np.inf, value - 0.005), mean, deviation)
            logs += np.log(np.maximum(above - below, 1e-300))
        logs += poisson.logpmf(late[rows], np.exp(0.6 * strain - 0.9))
        self_employed = contract[rows] == "self-employed"
        chances = expit(
            np.select(
                [contract[rows] == "student", self_employed & (years[rows] < 5), self_employed],
                [-2.7 + 0.1 * strain, 0.8 + 0.3 * strain, -1.5 - 0.4 * strain],
                -1.3 + 1.2 * strain,
            )
        )
        found.append((softmax(logs, axis=1) * chances).sum(axis=1))
    return np.concatenate(found)


def regions(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Scores that are right but in two regions, or know one attribute of two."""
    X = random.normal(size=(n_rows, 8))
    X[:, 7] = random.integers(0, 4, n_rows)
    line = 1.2 * X[:, 0] + 0.8 * X[:, 1] - 0.3
    inside, other = (X[:, 2] > 0.3) & (X[:, 7] >= 2), X[:, 3] < -0.5
    truth = np.where(inside, 0.8 - 0.5 * line, np.where(other, 0.4 * line - 1.0, line))
    noise = random.normal(size=n_rows)
    scores = line + 0.1 * noise if strength == "strong" else 0.9 * X[:, 0] + noise
    return X, both(expit(truth)), expit(scores)


def smooth(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Curves in five attributes; weak scores know one of them."""
    X = random.uniform(-1, 1, size=(n_rows, 6))
    truth = 1.5 * np.sin(3 * X[:, 0]) + 2 * X[:, 1] ** 2 + 1.2 * X[:, 2] * X[:, 3] - 0.5 + X[:, 4]
    noise = random.normal(size=n_rows)
    bent = 0.8 * truth + 0.3 + 0.4 * np.sin(2 * X[:, 1]) + 0.2 * noise
    scores = bent if strength == "strong" else X[:, 4] + 0.8 * noise
    return X, both(expit(truth)), expit(scores)


def classes(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Five classes; scores are too sure, and wrong in two regions."""
    slopes = 0.8 * np.random.default_rng(5).normal(size=(6, 5))
    X = random.normal(size=(n_rows, 6))
    line = X @ slopes
    truth = line.copy()
    truth[:, 0] += 1.5 * (X[:, 0] > 0.5)
    truth[:, 1] -= 1.5 * ((X[:, 1] > 0) & (X[:, 2] > 0))
    noise = random.normal(size=truth.shape)
    known = line + 0.07 * noise if strength == "strong" else X[:, :2] @ slopes[:2] + 0.5 * noise
    return X, softmax(truth, axis=1), softmax(1.5 * known, axis=1)


def rare(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """One row in twenty, and an attribute of twenty categories."""
    X = random.normal(size=(n_rows, 5))
    category = random.integers(0, 20, n_rows)
    effects = np.random.default_rng(3).permutation(np.linspace(-1, 1, 20))
    high = X[:, 2] > 1
    truth = -3.6 + 0.9 * X[:, 0] + effects[category] + 0.7 * np.maximum(X[:, 1], 0) + 0.8 * high
    noise = random.normal(size=n_rows)
    if strength == "strong":
        scores = truth - 0.5 * high + 0.5 + 0.15 * noise
    else:
        scores = -3.0 + 0.9 * X[:, 0] + 0.5 * noise
    table = pd.DataFrame(X, columns=list("abcde"))
    table["category"] = [f"c{code:02d}" for code in category]
    return table, both(expit(truth)), expit(scores)


def other_gaps(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Two attributes that tell nothing alone, and one that is missing where it matters."""
    X = random.normal(size=(n_rows, 6))
    crossed, gone = X[:, 0] * X[:, 1] > 0, random.random(n_rows) < 0.25
    line = X[:, 2] + 0.6 * X[:, 3]
    truth = line + 1.2 * crossed - 0.6 + 0.8 * gone
    X[gone, 4] = np.nan
    scores = (
        1.4 * line + 0.2 if strength == "strong" else 0.5 * X[:, 3] + random.normal(size=n_rows)
    )
    return X, both(expit(truth)), expit(scores)


def other_rings(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Ten classes by angle and distance; scores know the angle alone, or a blurred truth."""
    X = random.normal(size=(n_rows, 5))
    angle, distance = np.arctan2(X[:, 1], X[:, 0]), np.hypot(X[:, 0], X[:, 1])
    centres = np.linspace(-np.pi, np.pi, 10, endpoint=False)
    around = 2.0 * np.cos(angle[:, np.newaxis] - centres)
    truth = around + 0.6 * (distance[:, np.newaxis] - 1.2) * np.array([1, -1] * 5)
    noise = random.normal(size=truth.shape)
    known = truth + 0.1 * noise if strength == "strong" else 0.7 * around + 0.5 * noise
    return X, softmax(truth, axis=1), softmax(0.7 * known, axis=1)


def last_steps(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Stripes and a corner; scores are noisy with long tails, or know one attribute."""
    X = random.uniform(size=(n_rows, 7))
    stripes, corner = np.floor(4 * X[:, 0]) % 2, (X[:, 1] > 0.6) & (X[:, 2] > 0.4)
    truth = 1.2 * stripes - 1.4 * corner + 2.0 * X[:, 3] - 1.3 + 0.5 * X[:, 4] ** 3
    noise = random.standard_t(5, n_rows)
    scores = 0.85 * truth + 0.2 * noise if strength == "strong" else 2.0 * X[:, 3] - 1.0 + noise / 2
    return X, both(expit(truth)), expit(scores)


def other_models(n_rows: int, strength: str, random: np.random.Generator) -> Drawn:
    """Twelve attributes; scores of gradient boosting, or of a logistic regression of three."""
    X, truth = mixed_attributes(n_rows, random)
    model, columns = fitted_models()[strength]
    return X, both(truth), model.predict_proba(X[columns])[:, 1]


def mixed_attributes(n_rows: int, random: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Attributes of several kinds, four of which tell nothing, and the truth."""
    found = {f"x{j}": random.normal(size=n_rows) for j in range(6)}
    found |= {f"count{j}": random.poisson(2.0, n_rows).astype(float) for j in range(3)}
    found |= {f"kind{j}": random.integers(0, 4, n_rows).astype(float) for j in range(3)}
    X = pd.DataFrame(found)
    late = (X["count0"] >= 4) & (X["x1"] > 0)
    truth = 0.9 * X["x0"] - 0.5 * np.abs(X["x1"]) + 0.3 * X["count1"] - 1.2 + 1.1 * late
    truth += np.array([0.0, 0.6, -0.6, 0.2])[X["kind0"].astype(int)] * (1 + (X["x2"] > 0.5))
    return X, expit(truth.to_numpy())


@cache
def fitted_models() -> dict[str, tuple[Any, list[str]]]:
    """A strong and a weak classifier, fitted to other rows, and the columns that they use."""
    random = np.random.default_rng(98)
    X, truth = mixed_attributes(20_000, random)
    y = random.random(len(X)) < truth
    few = ["x0", "count1", "kind1"]
    boosting = GradientBoostingClassifier(n_estimators=60, random_state=0).fit(X, y)
    return {"strong": (boosting, list(X)), "weak": (LogisticRegression().fit(X[few], y), few)}


CONSTRUCTIONS: dict[str, Callable[[int, str, np.random.Generator], Drawn]] = {
    "loans": loans,
    "regions": regions,
    "smooth": smooth,
    "classes": classes,
    "rare": rare,
    "other gaps": other_gaps,
    "other rings": other_rings,
    "other models": other_models,
    "last steps": last_steps,
}


@cache
def curve_of_scores(name: str, strength: str) -> tuple[np.ndarray, np.ndarray]:
    """The mean probability of rows of a score, from many rows: log-odds and means."""
    random = np.random.default_rng(10**6)
    _, truth, scores = CONSTRUCTIONS[name](ROWS_BY_SCORE, strength, random)
    order = np.argsort(scores)
    odds, means = logit(scores[order]), truth[order, 1]
    parts = [np.array_split(values, SCORE_BINS) for values in (odds, means)]
    return tuple(np.array([part.mean() for part in each]) for each in parts)


def measure(
    name: str, strength: str, n_rows: int, calibrator: str, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[float, float]]:
    """Predicted probabilities, whether intervals hold the truth, their widths; the times."""
    random = np.random.default_rng([seed, n_rows])
    construct = CONSTRUCTIONS[name]
    X, truth, scores = construct(n_rows, strength, random)
    y = (random.random((n_rows, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    X_new, truth, scores_new = construct(TEST_ROWS, strength, np.random.default_rng(10**7 + seed))
    if calibrator in GLOBAL:
        truth = both(np.interp(logit(scores_new), *curve_of_scores(name, strength)))
    model = CALIBRATORS[calibrator]()
    begin = time.process_time()
    model.fit(X, y, scores)
    middle = time.process_time()
    model.fit_intervals(X, y, scores)
    times = (middle - begin, time.process_time() - middle)
    ends = model.predict_interval(X_new, scores_new)
    said = model.predict_proba(X_new, scores_new)
    held = (ends[..., 0] <= truth) & (truth <= ends[..., 1])
    widths = ends[..., 1] - ends[..., 0]
    if said.shape[1] == 2:
        said, held, widths = said[:, 1], held[:, 1], widths[:, 1]
    return said.ravel(), held.ravel(), widths.ravel(), times


def by_tenth(said: np.ndarray, held: np.ndarray) -> list[float]:
    """Coverage in each tenth of the predicted probability; NaN where there are few rows."""
    tenth = np.minimum((10 * said).astype(int), 9)
    parts = [held[tenth == i] for i in range(10)]
    return [part.mean() if len(part) >= FEWEST * len(said) else np.nan for part in parts]


def run(arguments: argparse.Namespace) -> None:
    """Print a line for each construction, strength, number of rows and calibrator."""
    print("95 % intervals: % of rows that they cover, overall and by tenth of the probability")
    print(
        f"{'construction':13}{'scores':8}{'rows':>7}  {'calibrator':12}{'mean':>6}{'lowest':>8}",
        end="",
    )
    print(f"{'':9}{'width':>6}{'fit':>7}{'intervals':>10}   by tenth")
    cells: dict[tuple[str, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for name in arguments.constructions:
        for strength in STRENGTHS:
            for n_rows in arguments.rows:
                for calibrator in arguments.calibrators:
                    if calibrator in GLOBAL and name in ("classes", "other rings"):
                        continue  # the truth of several scores is not known
                    found = [
                        measure(name, strength, n_rows, calibrator, seed)
                        for seed in range(arguments.seed, arguments.seed + arguments.repeats)
                    ]
                    said, held, widths = (
                        np.concatenate([each[i] for each in found]) for i in range(3)
                    )
                    times = np.mean([each[3] for each in found], axis=0)
                    tenths, mean = by_tenth(said, held), held.mean()
                    lowest = np.nanmin(tenths)
                    cells.setdefault((calibrator, n_rows), []).append((said, held))
                    good = MEAN[0] <= mean <= MEAN[1] and lowest >= TENTH
                    line = " ".join("  -" if np.isnan(x) else f"{100 * x:3.0f}" for x in tenths)
                    print(
                        f"{name:13}{strength:8}{n_rows:>7}  {calibrator:12}{100 * mean:6.1f}"
                        f"{100 * lowest:8.1f}  {'within' if good else 'outside':7}"
                        f"{widths.mean():6.2f}{times[0]:6.1f}s{times[1]:9.1f}s   {line}",
                        flush=True,
                    )
    for (calibrator, n_rows), found_cells in cells.items():
        print(summary(calibrator, n_rows, found_cells))


def summary(calibrator: str, n_rows: int, cells: list[tuple[np.ndarray, np.ndarray]]) -> str:
    """The bar for one calibrator and number of rows: on average, and how many cells meet it."""
    means = np.array([held.mean() for _, held in cells])
    tenths = np.array([by_tenth(said, held) for said, held in cells])
    lowests = np.nanmin(tenths, axis=1)
    known = ~np.isnan(tenths).all(axis=0)
    mean, lowest = means.mean(), np.nanmean(tenths[:, known], axis=0).min()
    alone = np.count_nonzero((means >= MEAN[0]) & (means <= MEAN[1]) & (lowests >= TENTH))
    met = MEAN[0] <= mean <= MEAN[1] and lowest >= TENTH
    return (
        f"{calibrator}, {n_rows:,} rows: {100 * mean:.1f} %, lowest tenth {100 * lowest:.1f} %: "
        f"{'met' if met else 'MISSED'}. Single constructions: {100 * means.min():.1f} to "
        f"{100 * means.max():.1f} %, lowest tenth {100 * lowests.min():.1f} %; "
        f"{alone} of {len(cells)} meet it."
    )


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    names = parser.add_argument("--constructions", nargs="+", choices=list(CONSTRUCTIONS))
    names.default = list(CONSTRUCTIONS)
    kinds = parser.add_argument("--calibrators", nargs="+", choices=list(CALIBRATORS))
    kinds.default = ["tree", "forest", "boosting", "ensemble"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(parser.parse_args())


if __name__ == "__main__":
    main()
