"""Dask collections, a partition at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed


def partitions(**collections: Any) -> dict[str, list[Delayed]]:
    """The partitions of collections that have the same rows, by the names of the arguments.

    What is None is left out. Arrays of known sizes are divided as the first of them is.
    """
    given = {name: value for name, value in collections.items() if value is not None}
    for name, value in given.items():
        if not is_dask_collection(value) or not hasattr(value, "npartitions"):
            raise TypeError(
                f"{name} must be a Dask array or dataframe, got {type(value).__name__}; use "
                "dask.array.from_array, or caltree without Dask"
            )
    first_name, first = next(iter(given.items()))
    found = {}
    for name, value in given.items():
        aligned = _aligned(value, first)
        found[name] = _delayed(aligned)
        if len(found[name]) != len(found[first_name]):
            raise ValueError(
                f"{name} has {len(found[name])} partitions, but {first_name} has "
                f"{len(found[first_name])}; repartition it"
            )
    return found


def _aligned(value: Any, first: Any) -> Any:
    """An array in one piece across, and in the pieces of another along."""
    if not isinstance(value, dask.array.Array):
        return value
    if value.ndim > 1 and value.numblocks[1] > 1:
        value = value.rechunk({1: -1})
    if isinstance(first, dask.array.Array) and value.chunks[0] != first.chunks[0]:
        sizes = first.chunks[0]
        known = not any(math.isnan(size) for size in (*sizes, *value.chunks[0]))
        if known and sum(sizes) == value.shape[0]:
            value = value.rechunk({0: sizes})
    return value


def _delayed(value: Any) -> list[Delayed]:
    return list(np.asarray(value.to_delayed(), dtype=object).ravel())


def lazy_matrix(
    function: Callable[..., Any], parts: Sequence[Sequence[Delayed]], like: Any, n_columns: int
) -> dask.array.Array:
    """A lazy array of what a function makes of the partitions, each a piece of it."""
    sizes: Sequence[float] = [math.nan] * len(parts)
    if isinstance(like, dask.array.Array):
        sizes = like.chunks[0]
    make = dask.delayed(function, pure=True)
    pieces = [
        dask.array.from_delayed(make(*part), shape=(size, n_columns), dtype=np.float64)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return dask.array.concatenate(pieces, axis=0, allow_unknown_chunksizes=True)
