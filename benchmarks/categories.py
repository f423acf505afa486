"""Attributes of many categories: as categories, as plain numbers, and left out.

A Markdown table of log losses on other rows, in percent above or below those of plain numbers and
of no such attribute. The made-up categories shift the log-odds at random, or smoothly along their
codes, or not at all, and the scores do not know them; the losses are expected ones, under the
probabilities that the labels were drawn with. With the folder of the census files
``ACSMobility.validation.parquet`` and ``ACSMobility.test.parquet``, codes of these are tried, too:
columns, and pairs of columns as one.

    python benchmarks/categories.py                       made-up data
    python benchmarks/categories.py --rows 2000 8000      fewer rows, which is faster
    python benchmarks/categories.py --data-dir FOLDER     the census
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from caltree import CalibrationForest, CalibrationTree

EFFECTS = ("random", "ordered", "useless")
SIZES = (10, 30, 100, 300, 1000)
ROWS = (2_000, 8_000, 60_000)
TEST_ROWS = 20_000
TRAINED_ROWS = 20_000  # of the census, for the classifier
CENSUS = ("RELP,COW,SCHL,JWMNP,WKHP", "AGEP*RELP", "WKHP*COW,AGEP*SCHL")
LABEL = "MIG"
WAYS = ("none", "numbers", "categories")


@dataclass(frozen=True)
class Problem:
    """Rows to fit a calibrator to, rows to judge it by, and which columns are codes."""

    X: pd.DataFrame
    y: np.ndarray
    scores: np.ndarray
    X_test: pd.DataFrame
    truth: np.ndarray  # the label, or its probability
    scores_test: np.ndarray
    codes: list[str]


def make_up(effect: str, n_codes: int, n_rows: int, seed: int) -> Problem:
    """Scores that miss an interaction of two attributes, and the category."""
    rng = np.random.default_rng([seed, n_rows, n_codes, EFFECTS.index(effect)])
    shares = rng.lognormal(size=n_codes)
    shifts = {
        "random": rng.normal(0, 0.7, n_codes),
        "ordered": np.sin(1 + 3 * np.pi * np.linspace(0, 1, n_codes)),
        "useless": np.zeros(n_codes),
    }[effect]
    n = n_rows + TEST_ROWS
    x, code = rng.normal(size=(n, 4)), rng.choice(n_codes, n, p=shares / shares.sum())
    known = -0.5 + x[:, 0] + 0.5 * x[:, 1]
    log_odds = known + np.where(x[:, 2] > 0, 0.6, -0.6) * x[:, 1] + shifts[code]
    truth, scores = 1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(-known))
    y = (rng.random(n) < truth).astype(int)
    X = pd.DataFrame(x, columns=list("abcd")).assign(code=code.astype(float))
    fit, test = slice(n_rows), slice(n_rows, None)
    return Problem(X[fit], y[fit], scores[fit], X[test], truth[test], scores[test], ["code"])


@cache
def census_rows(folder: str, part: str) -> pd.DataFrame:
    return pd.read_parquet(Path(folder) / f"ACSMobility.{part}.parquet").reset_index(drop=True)


def read_census(folder: str, columns: str, n_rows: int, seed: int) -> Problem:
    """Scores of a logistic model that does not see the columns, or those that were crossed."""
    rows = census_rows(folder, "validation").sample(TRAINED_ROWS + n_rows, random_state=seed)
    test = census_rows(folder, "test").sample(TEST_ROWS, random_state=seed)
    hidden = [name for column in columns.split(",") for name in column.split("*")]
    seen = [name for name in rows.columns if name != LABEL and name not in hidden]
    both = pd.concat([rows, test])
    X = both[seen].assign(**{column: codes_of(both, column) for column in columns.split(",")})
    trained = rows[:TRAINED_ROWS]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))
    scores = model.fit(trained[seen], trained[LABEL]).predict_proba(X[seen])[:, 1]
    fit, judge = slice(TRAINED_ROWS, len(rows)), slice(len(rows), None)
    y = both[LABEL].to_numpy()
    names = columns.split(",")
    return Problem(X[fit], y[fit], scores[fit], X[judge], y[judge], scores[judge], names)


def codes_of(rows: pd.DataFrame, column: str) -> np.ndarray:
    """The codes of a column, or of the pairs of two, in their order."""
    pairs = pd.MultiIndex.from_frame(rows[column.split("*")])
    return pairs.factorize(sort=True)[0].astype(float)


def judge(problem: Problem, calibrator: str, way: str, n_trees: int, seed: int) -> float:
    """The log loss of a calibrator that is given the codes in one of the ways."""
    X, X_test = problem.X, problem.X_test
    if way == "none":
        X, X_test = (table.drop(columns=problem.codes) for table in (X, X_test))
    nominal = problem.codes if way == "categories" else None
    model: CalibrationTree | CalibrationForest
    if calibrator == "tree":
        model = CalibrationTree(categorical_features=nominal, drop_identifiers=False)
    else:
        model = CalibrationForest(
            n_trees, categorical_features=nominal, drop_identifiers=False, random_state=seed
        )
    model.fit(X, problem.y, scores=problem.scores)
    p = model.predict_proba(X_test, scores=problem.scores_test)[:, 1].clip(1e-15, 1 - 1e-15)
    truth = problem.truth
    return float(-(truth * np.log(p) + (1 - truth) * np.log(1 - p)).mean())


def problems(folder: str | None, sizes: list[int]) -> Iterator[tuple[str, Callable[..., Problem]]]:
    """The name of each problem, and what makes it of a number of rows and a seed."""
    if folder is not None:
        for columns in CENSUS:
            yield (
                columns.replace("*", " x ").replace(",", ", "),
                partial(read_census, folder, columns),
            )
        return
    for effect in EFFECTS:
        for size in sizes:
            yield f"{effect}, {size:,} codes", partial(make_up, effect, size)


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", help="the folder of the census files; made-up data without")
    parser.add_argument("--rows", type=int, nargs="+", default=list(ROWS))
    parser.add_argument("--codes", type=int, nargs="+", default=list(SIZES), help="of made-up data")
    parser.add_argument("--seeds", type=int, default=2, help="how often, of which means are taken")
    parser.add_argument("--trees", type=int, default=20, help="of the forest")
    options = parser.parse_args(given)
    start = time.perf_counter()
    print("| calibrator | codes | rows | none | numbers | categories | to numbers | to none |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name, make in problems(options.data_dir, options.codes):
        for n_rows in options.rows:
            drawn = [make(n_rows, seed) for seed in range(options.seeds)]
            for calibrator in ("tree", "forest"):
                fit = partial(judge, calibrator=calibrator, n_trees=options.trees)
                loss = {way: mean_loss(drawn, partial(fit, way=way)) for way in WAYS}
                print(table_row(f"{calibrator} | {name} | {n_rows:,}", loss), flush=True)
    print(f"\n{time.perf_counter() - start:.0f} seconds")


def mean_loss(drawn: list[Problem], judge_one: Callable[..., float]) -> float:
    return float(np.mean([judge_one(problem, seed=seed) for seed, problem in enumerate(drawn)]))


def table_row(cell: str, loss: dict[str, float]) -> str:
    found = loss["categories"]
    changes = [100 * (found / loss[way] - 1) for way in ("numbers", "none")]
    return (
        f"| {cell} | {loss['none']:.4f} | {loss['numbers']:.4f} | {found:.4f} "
        f"| {changes[0]:+.2f} % | {changes[1]:+.2f} % |"
    )


if __name__ == "__main__":
    main()
