"""Facts about Dask collections: what is learned of partitions travels, rows do not."""

from __future__ import annotations

from typing import Any

import dask
from dask.delayed import Delayed

from .._histogram.partitions import Known, look, merge_seen
from .._inputs.attributes import Identifiers
from .collections import zip_rows
from .pool import merge
from .tasks import Tasks


def look_at_all(
    tasks: Tasks,
    parts: dict[str, list[Delayed]],
    categorical_features: Any,
    max_bins: int,
    score_type: str,
    pos_label: Any = None,
    identifiers: Identifiers = "keep",
) -> Known:
    """Learn the facts about all rows that are needed before they are put into bins."""
    looked = tasks.compute(
        [
            dask.delayed(look)(i, *rows, categorical_features, max_bins)
            for i, rows in enumerate(zip_rows(parts, "X", "y", "sample_weight"))
        ]
    )
    seen = merge(tasks, looked, merge_seen).result()
    return Known.of(seen, score_type, pos_label, identifiers)
