"""The fixtures: inputs and expected outputs of the published implementation, one JSON file each."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
OPEN = sorted((ROOT / "tests" / "fixtures").glob("*.json.gz"))
# Rows of data sets that must not be copied; read where they are, if they are.
UCI = sorted((ROOT.parent / "shared" / "reference" / "uci").glob("*.json.gz"))


def name_of(path: Path) -> str:
    return path.name.removesuffix(".json.gz")


class Fixture:
    """One fixture, as a user would hold the data."""

    def __init__(self, path: Path) -> None:
        self.name = name_of(path)
        with gzip.open(path) as file:
            stored = json.load(file)
        self._attributes = stored["attributes"]
        self.classes: list[str] = stored["classes"]
        self.expected: dict[str, Any] = stored["expected"]
        self._parts = {part: stored[part] for part in ("train", "test")}

    @property
    def fixed_iterations(self) -> int | None:
        """The number of boosting iterations, where it was not chosen."""
        return 3 if "3_iterations" in self.name else None

    def table(self, part: str) -> pd.DataFrame:
        """The attributes; nominal ones as categoricals with all their declared categories."""
        columns = zip(*self._parts[part]["X"], strict=True)
        table = {}
        for attribute, values in zip(self._attributes, columns, strict=True):
            if "categories" in attribute:
                codes = [-1 if value is None else int(value) for value in values]
                table[attribute["name"]] = pd.Categorical.from_codes(
                    codes, categories=attribute["categories"]
                )
            else:
                table[attribute["name"]] = np.array(values, dtype=float)
        return pd.DataFrame(table)

    def labels(self, part: str) -> np.ndarray:
        """Class indices."""
        return np.array(self._parts[part]["y"])

    def probabilities(self, part: str) -> np.ndarray:
        """What the base classifier said."""
        return np.array(self._parts[part]["probabilities"], dtype=float)


@lru_cache(maxsize=4)
def load(path: Path) -> Fixture:
    return Fixture(path)
