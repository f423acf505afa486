"""Calibration on a Dask cluster: rows stay where they are, and sums over them travel.

Takes Dask arrays and dataframes, and gives lazy ones. Needs ``pip install caltree[dask]``.
"""

try:
    import dask.array  # noqa: F401  # only to see whether it is there
    import distributed  # noqa: F401  # only to see whether it is there
except ImportError as error:
    raise ImportError(f"caltree.dask needs Dask: pip install caltree[dask] ({error})") from None

from .boosting import CalibrationBoosting
from .classifier import CalibratedClassifier
from .tree import CalibrationTree

__all__ = ["CalibratedClassifier", "CalibrationBoosting", "CalibrationTree"]
