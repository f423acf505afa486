"""Types of the arrays that travel through the package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int32]
Mask: TypeAlias = npt.NDArray[np.bool_]
Labels: TypeAlias = npt.NDArray[np.uint16]
"""The class of each row, as an index into the sorted classes."""
Classes: TypeAlias = npt.NDArray[Any]
"""Labels as the user gave them: strings, numbers or booleans."""
Rows: TypeAlias = npt.NDArray[np.integer[Any]]
"""Row numbers."""
