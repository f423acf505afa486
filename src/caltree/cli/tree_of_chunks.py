"""A calibration tree whose rows are read a chunk at a time, as often as need be."""

from __future__ import annotations

from typing import Self

from .._base import FittedRows
from .._histogram.engine import HistogramEngine
from .._histogram.storing import Folder
from .._histogram.streamed import Read, Reader
from .._inputs.folds import deal_by_number, folds_by_number
from .._running import progress
from .._training.fit_tree import fit_tree
from .._training.settings import READING
from ..tree import CalibrationTree


class TreeOfChunks(CalibrationTree):
    """A calibration tree that reads its rows a chunk at a time, three times in all.

    It is the tree of ``tree_method="hist"`` on the same rows. Attributes stay in bins of one or two
    bytes, in files, of which only what is worked on is in memory.
    """

    def suits(self, n_rows: int) -> bool:
        """Whether so many rows would be put into bins if they were in memory, too."""
        return self._uses_histograms(n_rows)

    def fit_chunks(self, read: Read, folder: Folder) -> Self:
        """Fit the tree to rows that `read` reads from the first on, whenever it is called."""
        with progress.fitting(self, self.verbose):
            with progress.stage(READING) as reading:
                engine, facts = self._bin_chunks(Reader(read, self.n_jobs), folder)
                reading.say(f"put {facts.n_rows:,} rows into bins")
            self._set_fitted(*fit_tree(engine, self._settings()), facts)
        return self

    def _bin_chunks(self, reader: Reader, folder: Folder) -> tuple[HistogramEngine, FittedRows]:
        settings, identifiers = self._settings(), self._identifiers()
        known = reader.look_at_all(
            self.categorical_features, self.max_bins, self.score_type, self.pos_label, identifiers
        )
        known.summary.warn(identifiers)
        folds = 0, folds_by_number(1, 0, 0)
        if settings.needs_folds:
            folds = deal_by_number(self.cv, known.n_rows, self.random_state)
        rows = reader.put_into_bins(known, folds, settings.scoring, folder)
        scores = rows.scores
        scores.warn(known.classes)
        rows.seen.copies.warn(rows.attributes)
        growth = self._growth(scores.kind, scores.columns.n_columns)
        engine = HistogramEngine(rows.pool, rows.plan, rows.attributes, growth)
        return engine, FittedRows(
            known.classes,
            scores.kind.score_type,
            scores.kind.limits,
            scores.columns,
            known.n_rows,
            rows.seen.fingerprint,
        )

    def to_tree(self) -> CalibrationTree:
        """The same fitted tree, which knows nothing of chunks."""
        tree = CalibrationTree(**self.get_params())
        tree.__dict__ |= {name: v for name, v in vars(self).items() if name.endswith("_")}
        return tree
