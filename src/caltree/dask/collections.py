"""Dask collections, a partition at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array
import numpy as np
from dask.base import is_dask_collection, tokenize
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from dask.utils import is_dataframe_like, is_series_like
from distributed import Client, get_client


def current_client() -> Client:
    """The client that was made last, or whose `as_current` is in force."""
    try:
        return get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client; connect to a cluster first: client = distributed.Client("
            "address), or distributed.Client() for one on this machine"
        ) from None


def partitions(**collections: Any) -> dict[str, list[Delayed]]:
    """The partitions of collections that have the same rows, by the names of the arguments.

    What is None is left out. Arrays of known sizes are divided as the first of them is.
    """
    found = {name: _parts_of(value) for name, value in align(**collections).items()}
    first, *others = found
    for name in others:
        if len(found[name]) != len(found[first]):
            raise ValueError(
                f"{name} has {len(found[name])} partitions, but {first} has "
                f"{len(found[first])}; repartition it"
            )
    return found


def zip_rows(parts: dict[str, list[Delayed]], *names: str) -> list[tuple[Any, ...]]:
    """The partitions of several collections side by side; None of one that is not there."""
    nothing = [None] * len(parts["X"])
    return list(zip(*(parts.get(name, nothing) for name in names), strict=True))


def align(**collections: Any) -> dict[str, Any]:
    """Collections with their arrays divided alike, as far as sizes are known."""
    given = {name: value for name, value in collections.items() if value is not None}
    for name, value in given.items():
        if not _is_table(value):
            raise TypeError(
                f"{name} must be a Dask array or dataframe, got {type(value).__name__}; use "
                "dask.array.from_array, or caltree without Dask"
            )
    first = next(iter(given))
    return {name: _align_array(name, value, first, given[first]) for name, value in given.items()}


def _is_table(value: Any) -> bool:
    if isinstance(value, dask.array.Array):
        return bool(value.ndim > 0)
    looks_so = is_dataframe_like(value) or is_series_like(value)
    return bool(is_dask_collection(value) and looks_so)


def _align_array(name: str, value: Any, first_name: str, first: Any) -> Any:
    """An array in one piece across, and in the pieces of another along."""
    if not isinstance(value, dask.array.Array):
        return value
    if value.ndim > 1 and value.numblocks[1] > 1:
        value = value.rechunk({1: -1})
    if isinstance(first, dask.array.Array) and value.chunks[0] != first.chunks[0]:
        sizes = first.chunks[0]
        if not any(math.isnan(size) for size in (*sizes, *value.chunks[0])):
            if value.shape[0] != first.shape[0]:
                raise ValueError(
                    f"{name} has {value.shape[0]} rows, but {first_name} has {first.shape[0]}; "
                    "give both the same rows"
                )
            value = value.rechunk({0: sizes})
    return value


def _parts_of(value: Any) -> list[Delayed]:
    return list(np.asarray(value.to_delayed(), dtype=object).ravel())


def rebuild(like: Any, parts: Sequence[Any], sizes: Sequence[int]) -> Any:
    """A collection of the kind of another, of other partitions."""
    if isinstance(like, dask.array.Array):
        return join_parts(parts, [(size, *like.shape[1:]) for size in sizes], like.dtype)
    # Imported here: arrays need no pandas.
    from dask.dataframe import from_delayed

    return from_delayed(list(parts), meta=like._meta)


def join_parts(
    parts: Sequence[Delayed], shapes: Sequence[tuple[float, ...]], dtype: Any = np.float64
) -> dask.array.Array:
    """A lazy array whose pieces are some partitions; a size that is not known is NaN.

    Unlike `dask.array.concatenate`, it keeps those without rows.
    """
    across = shapes[0][1:]
    name = f"joined-{tokenize([part.key for part in parts], shapes)}"
    ends = (0,) * len(across)
    pieces = {(name, i, *ends): part.key for i, part in enumerate(parts)}
    graph = HighLevelGraph.from_collections(name, pieces, dependencies=parts)
    chunks = (tuple(shape[0] for shape in shapes), *((size,) for size in across))
    return dask.array.Array(graph, name, chunks, dtype=dtype)


def lazy_matrix(
    function: Callable[..., Any], parts: Sequence[Sequence[Delayed]], like: Any, n_columns: int
) -> dask.array.Array:
    """A lazy array of what a function makes of the partitions, each a piece of it."""
    sizes: Sequence[float] = [math.nan] * len(parts)
    if isinstance(like, dask.array.Array):
        sizes = like.chunks[0]
    make = dask.delayed(function, pure=True)
    return join_parts([make(*part) for part in parts], [(size, n_columns) for size in sizes])
