"""Plain rows in partitions."""

from itertools import pairwise

import dask.array as da
import dask.dataframe as dd
import numpy as np
from dask import delayed

# Every question is a message to the workers and back: no test asks more than it needs to.
QUICK = {"max_depth": 1, "cv": 2}


def slices(sizes):
    return [slice(*ends) for ends in pairwise(np.cumsum([0, *sizes]).tolist())]


def divided(values, sizes):
    """A Dask array or dataframe of plain values, in partitions of some sizes."""
    if values is None:
        return None
    if isinstance(values, np.ndarray):
        return da.from_array(values, chunks=(tuple(sizes), *values.shape[1:]))
    parts = [delayed(values.iloc[rows]) for rows in slices(sizes)]
    return dd.from_delayed(parts, meta=values.iloc[:0])
