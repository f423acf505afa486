"""The rows of a table in this process, put into bins for the histogram engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from .._fitted.fingerprint import Fingerprint
from .._inputs.arrays import Labels
from .._inputs.attributes import Identifiers
from .._inputs.folds import (
    IN_NO_FOLD,
    Fold,
    FoldOf,
    check_folds,
    deal_by_number,
    folds_by_number,
    judged_folds,
    make_folds,
    random_generator,
)
from .._inputs.groups import GroupNumbers, deal_groups, number_groups
from .._inputs.indexing import count_rows, take_rows
from .._inputs.tables import read_table
from .._inputs.training_rows import TrainingRows
from .._running.threads import count_threads, run_in_threads
from .._training.settings import Growth, Settings
from .chunk import Chunk
from .engine import HistogramEngine
from .pool import LocalPool
from .prepare import MatrixSeen, Part, Sample, bin_rows, make_plan, sample_rows
from .summaries import TableSummary, merge_summaries

# Rows of a chunk: enough that the sums over them are small in comparison, and not so many that
# what is made of them on the way takes much memory; but several chunks, for the threads.
_FEWEST_ROWS, _MOST_ROWS = 2**15, 2**19
_CHUNKS = 8


def make_histogram_engine(
    X: Any,
    rows: TrainingRows,
    growth: Growth,
    settings: Settings,
    *,
    cv: Any,
    random_state: Any,
    categorical_features: Any,
    identifiers: Identifiers,
    n_jobs: int | None,
) -> tuple[HistogramEngine, Fingerprint]:
    """Put the rows of a table into bins, a chunk at a time; return an engine and a fingerprint."""
    n_groups, groups = 0, None
    if rows.kept_groups is not None:
        n_groups, groups = number_groups(rows.kept_groups)
    n_folds, fold_of = _deal_folds(rows, groups, settings, cv, random_state)
    n_threads = count_threads(n_jobs)
    parts = _divide(X, rows, groups, _chunk_size(len(rows.labels)))
    first = np.cumsum([0, *map(len, parts)]).tolist()
    numbered = list(zip(parts, first[:-1], strict=True))
    kind = rows.kind

    def summarise(part: Part) -> TableSummary:
        return part.summarise(categorical_features, growth.max_bins)

    summary = merge_summaries(run_in_threads(summarise, parts, n_threads))
    summary.warn(identifiers)
    known = summary.attributes(identifiers)

    def sample(numbered: tuple[Part, int]) -> Sample:
        return sample_rows(*numbered, first[-1], known)

    samples = run_in_threads(sample, numbered, n_threads)
    plan, attributes = make_plan(
        reduce(Sample.merge, samples),
        summary,
        known,
        kind,
        n_rows=first[-1],
        n_folds=n_folds,
        largest_weight=1.0 if rows.weights is None else float(rows.weights.max()),
        scoring=settings.scoring,
        n_groups=n_groups,
    )

    def put_into_bins(numbered: tuple[Part, int]) -> tuple[Chunk, MatrixSeen]:
        part, begin = numbered
        return bin_rows(part, attributes, plan.bins, kind, fold_of(begin, len(part)))

    binned = run_in_threads(put_into_bins, numbered, n_threads)
    seen = reduce(MatrixSeen.merge, (facts for _, facts in binned))
    seen.copies.warn(attributes)
    pool = LocalPool(plan, [chunk for chunk, _ in binned], [None] * len(binned), n_jobs)
    return HistogramEngine(pool, plan, attributes, growth), seen.fingerprint


def _chunk_size(n_rows: int) -> int:
    return min(max(_FEWEST_ROWS, -(-n_rows // _CHUNKS)), _MOST_ROWS)


def _deal_folds(
    rows: TrainingRows, groups: GroupNumbers | None, settings: Settings, cv: Any, random_state: Any
) -> tuple[int, FoldOf]:
    """Return the number of folds that trees are grown for, and the fold of every row."""
    n_rows = len(rows.labels)
    if not settings.needs_folds:
        return 0, folds_by_number(1, 0, 0)
    if isinstance(cv, Integral):
        if groups is None:
            return deal_by_number(int(cv), n_rows, random_state)
        return _deal_whole_groups(groups, rows.labels, int(cv), random_state)
    folds = make_folds(cv, rows.labels, rows.keep, random_state, rows.groups)
    check_folds(len(folds), n_rows)
    return len(folds), given_folds(folds, n_rows)


def _deal_whole_groups(
    groups: GroupNumbers, labels: Labels, n_folds: int, random_state: Any
) -> tuple[int, FoldOf]:
    check_folds(n_folds, len(labels))
    n_judged = judged_folds(n_folds, len(labels))
    random = None if random_state is None else random_generator(random_state)
    fold = deal_groups(groups, labels, n_folds, random).astype(np.uint8)
    fold[fold >= n_judged] = IN_NO_FOLD
    return n_judged, _known_folds(fold)


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
                f"fold {number} of cv has rows in both of its parts or in none, but with "
                "tree_method='hist' each row must be in one; use tree_method='exact'"
            )
    if held_out != np.count_nonzero(fold != IN_NO_FOLD):
        raise ValueError(
            "cv holds a row out more than once, which tree_method='hist' does not support; use "
            "tree_method='exact'"
        )
    return _known_folds(fold)


def _known_folds(fold: npt.NDArray[np.uint8]) -> FoldOf:
    def of_rows(first: int, count: int) -> npt.NDArray[np.uint8]:
        return fold[first : first + count]

    return of_rows


def _divide(X: Any, rows: TrainingRows, groups: GroupNumbers | None, chunk_rows: int) -> list[Part]:
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
            Part(
                take_rows(X, slice(begin, end)),
                keep,
                rows.labels[kept],
                rows.scores[kept],
                weights,
                None if groups is None else groups[kept],
            )
        )
        first += count
    return parts
