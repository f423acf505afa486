"""Rows that are read a partition at a time, as often as need be, and put into bins in files.

At no time are more of them in memory than are worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias, TypeVar

from .._inputs.attributes import Attributes, Identifiers
from .._inputs.folds import FoldOf
from .._running.threads import count_threads, in_order
from .chunk import Chunk, Plan
from .partitions import (
    Given,
    Known,
    Planned,
    RowsSeen,
    ScoresRead,
    ScoresSeen,
    bin_part,
    look,
    plan_of,
    sample_part,
)
from .pool import LocalPool
from .prepare import MatrixSeen
from .storing import Folder, Stored

Read: TypeAlias = Callable[[], Iterator[Given]]
"""Reads all rows from the first on: attributes, labels, scores and weights of each partition."""
Result = TypeVar("Result")


@dataclass(frozen=True)
class BinnedRows:
    """Rows in bins, and the facts about all of them."""

    pool: LocalPool[None]
    plan: Plan
    attributes: Attributes
    scores: ScoresRead
    known: Known
    seen: MatrixSeen


@dataclass(frozen=True)
class Reader:
    """Reads partitions, and works on some of them at the same time."""

    read: Read
    n_jobs: int | None

    def look_at_all(
        self,
        categorical_features: Any,
        max_bins: int,
        score_type: str,
        pos_label: Any,
        identifiers: Identifiers,
    ) -> Known:
        """Learn the facts about all rows that are needed before they are put into bins."""

        def look_at(numbered: tuple[int, Given]) -> RowsSeen:
            partition, (X, y, _, weights) = numbered
            return look(partition, X, y, weights, categorical_features, max_bins)

        with closing(self._map(look_at)) as found:
            seen = reduce(RowsSeen.merge, found)
        return Known.of(seen, score_type, pos_label, identifiers)

    def put_into_bins(
        self, known: Known, folds: tuple[int, FoldOf], scoring: str, folder: Folder
    ) -> BinnedRows:
        """Draw a sample, and put all rows into bins, in files of a folder."""
        n_folds, fold_of = folds

        def sample(numbered: tuple[int, Given]) -> ScoresSeen:
            return sample_part(*numbered, known)

        with closing(self._map(sample, known)) as samples:
            seen = reduce(ScoresSeen.merge, samples)
        planned: Planned = plan_of(seen, known, n_folds, scoring)

        def put(numbered: tuple[int, Given]) -> tuple[Stored[Chunk], MatrixSeen]:
            chunk, facts = bin_part(*numbered, known, planned, fold_of)
            return folder.store(chunk), facts

        with closing(self._map(put, known)) as found:
            chunks, facts = zip(*found, strict=True)
        plan, attributes, scores = planned
        return BinnedRows(
            LocalPool(plan, chunks, [None] * len(chunks), self.n_jobs, folder),
            plan,
            attributes,
            scores,
            known,
            reduce(MatrixSeen.merge, facts),
        )

    def _map(
        self, function: Callable[[tuple[int, Given]], Result], known: Known | None = None
    ) -> Any:
        """Results of a function of each partition with its number, in their order.

        Partitions without a row that counts are left out as soon as they are known.
        """
        n_threads = count_threads(self.n_jobs)
        numbered: Iterable[tuple[int, Given]] = enumerate(self.read())
        some = (each for each in numbered if known is None or known.counts[each[0]] > 0)
        return in_order(function, some, n_threads, n_ahead=n_threads)
