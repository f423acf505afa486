"""Rows of this process as chunks, and trees on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from .._base import Training
from .._fitted.fingerprint import Fingerprint, SmallestHashes
from .._inputs.attributes import Attributes
from .._inputs.folds import (
    IN_NO_FOLD,
    Fold,
    check_folds,
    hashed_folds,
    judged_folds,
    make_folds,
    seed_of,
)
from .._inputs.indexing import count_rows, slice_rows
from .._inputs.scores import ScoreKind
from .._inputs.tables import read_table
from .._training.fit_tree import Made
from .._training.settings import Recipe
from .engine import make_tree
from .pool import LocalPool
from .prepare import FoldOf, Part, Sample, make_plan, put_in_bins, sampled
from .surveys import merged_survey

# Rows of a chunk: enough that the sums over them are small in comparison, and not so many that
# what is made of them on the way takes much memory; but several chunks, for the threads.
_FEWEST_ROWS, _MOST_ROWS = 2**15, 2**19
_CHUNKS = 8


def make_tree_here(
    X: Any,
    rows: Training,
    recipe: Recipe,
    *,
    cv: Any,
    random_state: Any,
    extremes: str,
    categorical_features: Any,
    n_jobs: int | None,
) -> tuple[Made, Fingerprint]:
    """A tree on the rows of a table, and a fingerprint of them."""
    n_rows = len(rows.labels)
    n_folds, fold_of = 0, folds_by_number(1, 0, 0)
    if recipe.needs_folds and isinstance(cv, Integral):
        check_folds(int(cv), n_rows)
        n_folds = judged_folds(int(cv), n_rows)
        fold_of = folds_by_number(int(cv), n_folds, seed_of(random_state))
    elif recipe.needs_folds:
        folds = make_folds(cv, rows.labels, rows.keep, random_state)
        check_folds(len(folds), n_rows)
        n_folds, fold_of = len(folds), given_folds(folds, n_rows)
    pool, known, fingerprint = local_pool(
        X,
        rows,
        fold_of=fold_of,
        n_folds=n_folds,
        extremes=extremes,
        categorical_features=categorical_features,
        max_bins=recipe.max_bins,
        objective=recipe.objective,
        n_jobs=n_jobs,
    )
    return make_tree(pool, pool.plan, known, recipe), fingerprint


def local_pool(
    X: Any,
    rows: Training,
    *,
    fold_of: FoldOf,
    n_folds: int,
    extremes: str,
    categorical_features: Any,
    max_bins: int,
    objective: str,
    n_jobs: int | None,
    chunk_rows: int | None = None,
) -> tuple[LocalPool, Attributes, Fingerprint]:
    """The chunks of a table, its attributes, and the fingerprint of its rows."""
    run = Parallel(n_jobs=n_jobs, require="sharedmem")
    if chunk_rows is None:
        chunk_rows = min(max(_FEWEST_ROWS, -(-len(rows.labels) // _CHUNKS)), _MOST_ROWS)
    parts = _parts(X, rows, chunk_rows)
    first = np.cumsum([0, *map(len, parts)]).tolist()
    kind = ScoreKind(len(rows.classes), rows.score_type, extremes == "published")
    survey = merged_survey(
        run(delayed(part.survey)(categorical_features, max_bins) for part in parts)
    )
    known = survey.attributes()
    n_rows = first[-1]
    samples = run(
        delayed(sampled)(part, begin, n_rows, known)
        for part, begin in zip(parts, first[:-1], strict=True)
    )
    plan, known = make_plan(
        reduce(Sample.merge, samples),
        survey,
        known,
        kind,
        n_rows=n_rows,
        n_folds=n_folds,
        largest_weight=1.0 if rows.weights is None else float(rows.weights.max()),
        objective=objective,
    )
    made = run(
        delayed(put_in_bins)(part, known, plan.bins, kind, fold_of(begin, len(part)))
        for part, begin in zip(parts, first[:-1], strict=True)
    )
    smallest = reduce(SmallestHashes.merge, (few for _, few in made))
    return LocalPool(plan, [chunk for chunk, _ in made], n_jobs), known, smallest.fingerprint()


def folds_by_number(n_folds: int, n_judged: int, seed: int) -> FoldOf:
    """Folds that the numbers of the rows decide on."""
    return partial(hashed_folds, n_folds=n_folds, n_judged=n_judged, seed=seed)


def given_folds(folds: Sequence[Fold], n_rows: int) -> FoldOf:
    """Folds that a splitter gave, if each row is held out at most once and trained on otherwise."""
    fold = np.full(n_rows, IN_NO_FOLD, dtype=np.uint8)
    held_out = 0
    for number, (train, test) in enumerate(folds):
        fold[test] = number
        held_out += len(test)
        trained = np.unique(train)
        if len(trained) + len(test) != n_rows or len(np.intersect1d(trained, test)) > 0:
            raise ValueError(
                f"fold {number} of cv does not train on all the rows that it does not hold out, as "
                "histograms need; use histograms=False"
            )
    if held_out != np.count_nonzero(fold != IN_NO_FOLD):
        raise ValueError(
            "cv holds a row out more than once, which histograms cannot; use histograms=False"
        )

    def of_rows(first: int, count: int) -> npt.NDArray[np.uint8]:
        return fold[first : first + count]

    return of_rows


def _parts(X: Any, rows: Training, chunk_rows: int) -> list[Part]:
    if isinstance(X, list | tuple):
        X = read_table(X, "X").data  # once for all
    n_rows = count_rows(X, "X")
    parts, first = [], 0
    for begin in range(0, n_rows, chunk_rows):
        end = min(begin + chunk_rows, n_rows)
        keep = None if rows.keep is None else rows.keep[begin:end]
        count = end - begin if keep is None else int(np.count_nonzero(keep))
        if count == 0:
            continue
        kept = slice(first, first + count)
        weights = None if rows.weights is None else rows.weights[kept]
        parts.append(
            Part(slice_rows(X, begin, end), keep, rows.labels[kept], rows.scores[kept], weights)
        )
        first += count
    return parts
