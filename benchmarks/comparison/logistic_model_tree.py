"""Logistic model trees beside scikit-learn's classifiers, in the same folds."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from caltree import LogisticModelTree
from caltree.metrics import log_loss, rmse
from caltree.paper.data import DataSet
from caltree.paper.datasets import load
from caltree.paper.protocol import outer_folds

from .data import capped, names_in, with_plain_names

MOST_ROWS = 10_000
MOST_CATEGORIES = 255  # of a column, in scikit-learn's gradient boosting
STRENGTHS = (0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
DECIMALS = {"accuracy": 4, "rmse": 4, "log loss": 4, "leaves": 1, "seconds": 2}


def numbers() -> Any:
    """Attributes as numbers without missing values."""
    nominal = make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(drop="if_binary", handle_unknown="ignore", sparse_output=False),
    )
    return make_column_transformer(
        (nominal, make_column_selector(dtype_include="category")),
        (SimpleImputer(keep_empty_features=True), make_column_selector(dtype_exclude="category")),
    )


def regression() -> Any:
    return make_pipeline(numbers(), StandardScaler(), LogisticRegression(max_iter=1000))


def pruned_tree() -> Any:
    # Shuffled, since the rows of some data sets are in order.
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    tree, strengths = DecisionTreeClassifier(random_state=0), {"ccp_alpha": STRENGTHS}
    search = GridSearchCV(tree, strengths, cv=folds, error_score="raise")
    return make_pipeline(numbers(), search)


def few_categories(X: pd.DataFrame) -> pd.DataFrame:
    """A table whose nominal columns of more than 255 categories are numbers, their codes."""
    many = [name for name in X if getattr(X[name].dtype, "categories", None) is not None]
    many = [name for name in many if len(X[name].dtype.categories) > MOST_CATEGORIES]
    codes = {name: X[name].cat.codes.astype(float).replace(-1.0, np.nan) for name in many}
    return X.assign(**codes)


def boosting() -> Any:
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    return make_pipeline(FunctionTransformer(few_categories), model)


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "logistic model tree": LogisticModelTree,
    "logistic regression": regression,
    "decision tree": pruned_tree,
    "gradient boosting": boosting,
}


def count_leaves(model: Any) -> float:
    """The leaves of a single tree; NaN of anything else."""
    if hasattr(model, "steps"):
        model = getattr(model[-1], "best_estimator_", None)
    return float(model.get_n_leaves()) if hasattr(model, "get_n_leaves") else np.nan


def judge(name: str, data: DataSet, train: Any, test: Any) -> dict[str, float]:
    """Fit a classifier to the training rows of a fold, and judge it by the others."""
    model = CLASSIFIERS[name]()
    with warnings.catch_warnings():
        # Rare classes are in few folds, and some regressions have no finite optimum.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        model.fit(data.X.iloc[train], data.y[train])
        seconds = time.process_time() - start
        found = model.predict_proba(data.X.iloc[test])
    probabilities = pd.DataFrame(found, columns=model.classes_)
    probabilities = probabilities.reindex(columns=np.unique(data.y), fill_value=0.0)
    said = probabilities.columns.to_numpy()[probabilities.to_numpy().argmax(axis=1)]
    given = data.y[test], probabilities.to_numpy()
    return {
        "accuracy": float((said == data.y[test]).mean()),
        "rmse": rmse(*given, labels=probabilities.columns),
        "log loss": log_loss(*given, labels=probabilities.columns),
        "leaves": count_leaves(model),
        "seconds": seconds,
    }


def results_of(store: Path) -> pd.DataFrame:
    """The folds in a file; none if there is no such file."""
    keys = ["dataset", "classifier", "fold"]
    if not store.exists():
        return pd.DataFrame(columns=[*keys, *DECIMALS])
    return pd.read_csv(store)


def carry_out(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Judge all classifiers in all folds that are not in the file yet."""
    known = results_of(arguments.store)
    done = set(zip(known["dataset"], known["classifier"], known["fold"], strict=True))
    for dataset in arguments.datasets or names_in(arguments.data_dir):
        data = with_plain_names(capped(load(dataset, arguments.data_dir), MOST_ROWS))
        # Gradient boosting cannot take an attribute without any value.
        data = replace(data, X=data.X.dropna(axis="columns", how="all"))
        folds = outer_folds(data.y, 0, arguments.folds, seed=1)
        for number, (train, test) in enumerate(folds):
            for name in CLASSIFIERS:
                if (dataset, name, number) not in done:
                    found = judge(name, data, train, test)
                    yield {"dataset": dataset, "classifier": name, "fold": number, **found}


def table_of(results: pd.DataFrame, measure: str) -> str:
    """The means over folds of a measure, by data set, and the means of these."""
    cells = results.pivot_table(measure, "dataset", "classifier", dropna=False)
    cells = cells.reindex(columns=list(CLASSIFIERS)).dropna(axis="columns", how="all")
    cells = pd.concat([cells, cells.mean().to_frame("mean").T])
    lines = [["data set", *cells.columns], ["---"] + ["---:"] * cells.shape[1]]
    for dataset, row in cells.iterrows():
        lines.append([str(dataset), *(f"{value:.{DECIMALS[measure]}f}" for value in row)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def wins_of(results: pd.DataFrame) -> list[str]:
    """On how many data sets the logistic model tree beats each peer, by accuracy and log loss."""
    ours, *peers = CLASSIFIERS
    means = results.pivot_table(["accuracy", "log loss"], "dataset", "classifier")
    gains, losses = (
        means[measure][peers].rsub(means[measure][ours], axis=0)
        for measure in ("accuracy", "log loss")
    )
    by_accuracy = [
        f"{ours} against {peer}: better on {(gain > 0).sum()}, worse on {(gain < 0).sum()} of "
        f"{len(gain)} data sets, {100 * gain.mean():+.2f} points on average"
        for peer, gain in gains.items()
    ]
    by_log_loss = [
        f"{ours} against {peer}, by log loss: better on {(loss < 0).sum()}, worse on "
        f"{(loss > 0).sum()} of {len(loss)} data sets"
        for peer, loss in losses.items()
    ]
    return [*by_accuracy, *by_log_loss]


def main(given: Sequence[str] | None = None) -> None:
    """Carry out what is missing, and print the tables."""
    parser = argparse.ArgumentParser(description="Compare logistic model trees with their peers.")
    parser.add_argument("--data-dir", required=True, help="a folder of ARFF files, gzip allowed")
    parser.add_argument("--datasets", type=lambda names: names.split(","), help="all if not given")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--store", type=Path, default=Path("logistic_model_tree.csv"))
    arguments = parser.parse_args(given)
    with threadpool_limits(1):
        for result in carry_out(arguments):
            is_new = not arguments.store.exists()
            pd.DataFrame([result]).to_csv(arguments.store, mode="a", index=False, header=is_new)
    results = results_of(arguments.store)
    for measure in DECIMALS:
        print(f"\n**{measure}**\n\n{table_of(results, measure)}")
    print("", *wins_of(results), sep="\n")


if __name__ == "__main__":
    main()
